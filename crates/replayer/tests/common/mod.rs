//! A small busy trace set, and plans for it.

use std::path::Path;

use replayer::source::Source;
use schemas::plan::{Limit, Plan};
use schemas::run::FragmentPosition;
use schemas::spec::Spec;

const SPEC: &str = r#"
name = "phases"
sessions = 400
[data]
members = 40
friends_per_member = 4
pending_per_member = 3
resources_per_member = 2
comments_per_resource = 1
[access]
dependency_window = 8
[mix]
view_profile = 20
list_friends = 20
invite_friend = 20
accept_friend_request = 10
thaw_friendship = 10
post_comment = 10
delete_comment = 10
"#;

/// Generates the trace set with some settings of the specification replaced.
pub fn trace(folder: &Path, settings: &[&str]) -> Source {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let spec = Spec::parse_with(SPEC, "spec", &settings).expect("a spec");
    let path = folder.join("phases.trace");
    tracegen::generate(&spec, &path, &tracegen::GenerateOptions::default()).expect("a trace set");
    Source::open(&path).expect("a trace set")
}

/// A plan for the whole trace set from the given positions on.
pub fn plan(source: &Source, threads: u32, limit: Limit, positions: &[FragmentPosition], warmup: u64) -> Plan {
    Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: source.folder.clone(),
        trace_id: source.manifest.trace_id.clone(),
        store: "memory:".into(),
        threads,
        workers: 1,
        limit,
        fragments: schemas::plan::fragments(&source.manifest, positions, warmup),
        unique_actors: true,
        closing_read: None,
        open_loop: None,
        target_per_s: None,
        threads_over_time: Vec::new(),
        transactions: Default::default(),
    }
}
