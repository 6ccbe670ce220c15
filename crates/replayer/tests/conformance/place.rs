//! A folder with a trace set to work on.

use std::path::{Path, PathBuf};

use replayer::experiment::Experiment;
use replayer::source::Source;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::social::{Action, Operation, Social};
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::vocabulary::Vocabulary;
use schemas::workload::social::dataset::Table;

/// A workload in which every action occurs and every relation is written often.
pub const BUSY: &str = r#"
name = "busy"
sessions = 700
[data]
members = 60
friends_per_member = 8
pending_per_member = 4
resources_per_member = 2
comments_per_resource = 1
attribute_bytes = 40
image_bytes = 100
thumbnail_bytes = 20
[access]
own_profile_share = 0.3
dependency_window = 8
[mix]
view_profile = 10
list_friends = 10
view_friend_requests = 10
invite_friend = 14
accept_friend_request = 8
reject_friend_request = 4
thaw_friendship = 8
view_top_k_resources = 4
view_comments = 10
post_comment = 6
delete_comment = 6
"#;

/// A folder that holds a trace set.
pub struct Place {
    folder: tempfile::TempDir,
    /// The trace set.
    pub source: Source,
}

impl Place {
    /// A place with the trace set of a spec; `overrides` replaces values of the spec.
    pub fn with(spec: &str, overrides: &[&str]) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let overrides: Vec<String> = overrides.iter().map(|o| o.to_string()).collect();
        let spec = Spec::parse_with(spec, "spec", &overrides).expect("a spec");
        let trace = folder.path().join("t.trace");
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace set");
        Place { source: Source::open(&trace).expect("a trace set"), folder }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The digest after the first sessions, or all.
    pub fn digest(&self, sessions: Option<u64>) -> String {
        tracegen::digest(&self.source.folder, sessions.map_or(tracegen::Ran::All, tracegen::Ran::First))
            .expect("a digest")
            .to_string()
    }

    /// The operations of fragment 0 in order.
    pub fn operations(&self) -> Vec<Operation> {
        self.operations_of::<Social>()
    }

    /// The operations of fragment 0 in order, of any vocabulary.
    pub fn operations_of<V: Vocabulary>(&self) -> Vec<V::Operation> {
        let files = self.source.manifest.operation_files(&self.source.folder, 0);
        let mut reader = OperationsReader::<V>::new(0, files, 1024);
        let (mut chunk, mut all) = (Vec::new(), Vec::new());
        while reader.next_rows(&mut chunk).expect("a chunk") {
            all.extend(chunk.iter().map(|row| row.operation));
        }
        all
    }

    /// The rows of a table of fragment 0's data set.
    pub fn rows<const N: usize>(&self, table: Table) -> Vec<[u64; N]> {
        let mut rows = Vec::new();
        table.for_each(&self.source.folder, 0, |row| rows.push(row)).expect("a table");
        rows
    }

    /// A replay of the whole trace, whose log goes into a folder of this name.
    pub fn experiment(&self, store: &str, threads: u32, name: &str) -> Experiment {
        let fragments = self.source.fragments().map(|fragment| FragmentPlan {
            fragment,
            first_session: 0,
            given_back: Vec::new(),
            warmup_sessions: 0,
        });
        let plan = Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            trace: self.source.folder.clone(),
            trace_id: self.source.manifest.trace_id.clone(),
            store: store.to_string(),
            threads,
            workers: 2,
            limit: Limit::WholeTrace,
            fragments: fragments.collect(),
            unique_actors: true,
            closing_read: None,
            open_loop: None,
            target_per_s: None,
            threads_over_time: Vec::new(),
            transactions: Default::default(),
        };
        let folder: PathBuf = self.path().join(name);
        Experiment::prepare(plan, folder).expect("a plan")
    }
}

/// An operation on a member or resource.
pub fn operation(action: Action, socialite: u64, target: u64) -> Operation {
    Operation { action, socialite, target, comment: None }
}
