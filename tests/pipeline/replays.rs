//! Replays and analyses in the test's own process. A test can watch a replay and act on the store
//! while it runs.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use replayer::any_store::{self, AnyStore};
use replayer::experiment::{Control, Experiment, Snapshot};
use replayer::stores::StoreError;
use schemas::manifest::Manifest;
use schemas::plan::{FragmentPlan, Limit, Plan, Transactions, redact};
use schemas::run::{Host, ReplayReport, RunDocument, RunFolder, RunState};
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Verdict;

use crate::support::BUSY_SPEC;

/// A replay to be done.
pub struct Replay<'a> {
    /// The folder for trace sets and runs.
    pub folder: &'a Path,
    /// The workload's specification.
    pub spec: &'a str,
    /// Settings that differ from it, as `key=value`.
    pub settings: &'a [&'a str],
    /// T.
    pub threads: u32,
    /// When it ends.
    pub limit: Limit,
    /// How transactions are run.
    pub transactions: Transactions,
}

/// What a replay and its analysis gave.
pub struct Replayed {
    /// The replayer's report.
    pub report: ReplayReport,
    /// The analyzer's verdict.
    pub verdict: Verdict,
    /// The run's folder, with every operation.
    pub run: RunFolder,
    trace: PathBuf,
}

impl Replayed {
    /// Writes the document that the program has to find in a run folder; returns that folder.
    pub fn documented(&self, store: &str) -> String {
        let manifest = Manifest::read(&self.trace).expect("a manifest");
        let document = RunDocument {
            format_version: schemas::RUN_FORMAT_VERSION,
            encore_version: env!("CARGO_PKG_VERSION").into(),
            name: "run".into(),
            started_unix_s: 0,
            state: RunState::Complete,
            sla: None,
            trace: self.trace.clone(),
            trace_id: manifest.trace_id,
            workload_id: manifest.workload_id,
            spec: manifest.spec,
            store: redact(store),
            store_settings: self.report.store_settings.clone(),
            host: Host::current(),
            command: Vec::new(),
        };
        schemas::files::write_json(&self.run.document(), &document).expect("a document");
        self.run.root().display().to_string()
    }
}

impl<'a> Replay<'a> {
    /// The whole busy trace with eight threads.
    pub fn new(folder: &'a Path) -> Replay<'a> {
        let (limit, transactions) = (Limit::WholeTrace, Transactions::default());
        Replay { folder, spec: BUSY_SPEC, settings: &[], threads: 8, limit, transactions }
    }

    /// The trace set, generated if it does not exist yet.
    fn trace(&self) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (self.spec, self.settings).hash(&mut hasher);
        let trace = self.folder.join(format!("{:016x}.trace", hasher.finish()));
        if !trace.exists() {
            let settings: Vec<String> = self.settings.iter().map(|setting| setting.to_string()).collect();
            let spec = Spec::parse_with(self.spec, "spec.toml", &settings).expect("a good spec");
            tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace");
        }
        trace
    }

    fn experiment(&self, store: &str) -> (Experiment, RunFolder) {
        let trace = self.trace();
        let manifest = Manifest::read(&trace).expect("a manifest");
        let fragments = manifest.fragments.iter().map(|f| FragmentPlan {
            fragment: f.fragment,
            first_session: 0,
            given_back: Vec::new(),
            warmup_sessions: 0,
        });
        let plan = Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            trace,
            trace_id: manifest.trace_id.clone(),
            store: store.to_string(),
            threads: self.threads,
            workers: 1,
            limit: self.limit,
            fragments: fragments.collect(),
            unique_actors: true,
            closing_read: None,
            open_loop: None,
            target_per_s: None,
            threads_over_time: Vec::new(),
            transactions: self.transactions,
        };
        let free = |number: &u32| !self.folder.join(format!("run-{number}")).exists();
        let number = (0..).find(free).expect("a free name");
        let run = RunFolder::new(self.folder.join(format!("run-{number}")));
        let experiment = Experiment::prepare(plan, run.experiment(1, self.threads).root().to_path_buf());
        (experiment.expect("a plan"), run)
    }

    /// Loads a store with the trace set's data.
    pub fn load(&self, store: &str) -> Result<(), StoreError> {
        let (experiment, _) = self.experiment(store);
        any_store::open(store)?.load(experiment.source(), &|_, _| {}).map(drop)
    }

    /// Loads a store and replays on it.
    pub fn on(&self, store: &str) -> Replayed {
        self.load(store).unwrap_or_else(|error| panic!("{error}"));
        self.on_loaded(store, &mut |_| {})
    }

    /// Replays on a store that is already loaded (perhaps through another URL). `watch` is called
    /// several times a second.
    pub fn on_loaded(&self, store: &str, watch: &mut dyn FnMut(Snapshot)) -> Replayed {
        self.until(store, &mut |snapshot| {
            watch(snapshot);
            false
        })
    }

    /// The same, but stops once `watch` returns true. The limit ends a replay for which `watch`
    /// never does.
    pub fn until(&self, store: &str, watch: &mut dyn FnMut(Snapshot) -> bool) -> Replayed {
        let opened = any_store::open(store).unwrap_or_else(|error| panic!("{error}"));
        self.on_opened(opened.as_ref(), store, watch)
    }

    fn on_opened(&self, opened: &dyn AnyStore, store: &str, watch: &mut dyn FnMut(Snapshot) -> bool) -> Replayed {
        let (experiment, run) = self.experiment(store);
        if opened.in_process() {
            opened.load(experiment.source(), &|_, _| {}).expect("a load");
        }
        let control = Control::default();
        let mut watch = |snapshot| {
            if watch(snapshot) {
                control.stop.store(true, Ordering::Relaxed);
            }
        };
        let report = opened.run(&experiment, &control, &mut watch).unwrap_or_else(|error| panic!("{error}"));
        let verdict = analyzer::analyze(&run, 1, Some(&Sla::default())).expect("an analysis");
        let trace = self.trace();
        Replayed { report, verdict, run, trace }
    }
}
