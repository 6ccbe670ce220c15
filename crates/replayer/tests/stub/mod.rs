//! A store whose connections a test or bench provides, and the log of a replay against it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use replayer::any_store::{Opened, Serving};
use replayer::experiment::{Control, Experiment, Snapshot};
use replayer::source::Source;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Connection, HeldState, LoadProgress, Serves, Store, StoreError};
use schemas::digest::StateDigest;
use schemas::oplog::{LogColumns, LogReader, LogRow};
use schemas::plan::{Limit, Plan};
use schemas::run::ReplayReport;
use schemas::social::{Social, TraceRow};
use schemas::spec::Spec;
use schemas::trace::OperationsReader;

/// The store that holds nothing, and answers as its connections do.
pub struct Stub<F> {
    url: StoreUrl,
    connect: F,
    connections_max: Option<u32>,
}

impl<F> Stub<F> {
    /// `connect` makes a connection.
    pub fn new(connect: F, connections_max: Option<u32>) -> Stub<F> {
        Stub { url: StoreUrl::parse("stub:").expect("a URL"), connect, connections_max }
    }
}

impl<F: Send + Sync + 'static> Store for Stub<F> {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(None)
    }

    async fn set_held(&self, _state: &HeldState) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        Ok(BTreeMap::new())
    }
}

impl<C: Connection<Social>, F: Fn() -> C + Send + Sync + 'static> Serves<Social> for Stub<F> {
    type Connection = C;

    async fn load(&self, _source: &Source, _progress: LoadProgress<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn check_loaded(&self, _source: &Source) -> Result<(), StoreError> {
        Ok(())
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        Err(StoreError::usage(&self.url, "holds nothing"))
    }

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<C>, StoreError> {
        Ok(threads.map(|_| (self.connect)()).collect())
    }
}

/// The result of a replay.
pub struct Replayed {
    /// The rows of the log, each with its row of the trace.
    pub rows: Vec<(TraceRow, LogRow)>,
    /// The last figures that were published.
    pub last: Snapshot,
    /// The report.
    pub report: ReplayReport,
}

/// Generates a trace set of one fragment.
pub fn trace(folder: &Path, spec: &str) -> Source {
    let spec = Spec::parse(spec, "spec").expect("a spec");
    let path = folder.join("stub.trace");
    tracegen::generate(&spec, &path, &tracegen::GenerateOptions::default()).expect("a trace set");
    Source::open(&path).expect("a trace set")
}

/// Replays the first sessions of a trace set, with one worker.
pub fn replay<S: Serves<Social>>(store: S, source: &Source, threads: u32, sessions: u64) -> Replayed {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: source.folder.clone(),
        trace_id: source.manifest.trace_id.clone(),
        store: store.url().redacted(),
        threads,
        workers: 1,
        limit: Limit::Sessions(sessions),
        fragments: schemas::plan::fragments(&source.manifest, &[], 0),
        unique_actors: false,
        closing_read: None,
        open_loop: None,
        target_per_s: None,
        threads_over_time: Vec::new(),
        transactions: Default::default(),
    };
    let experiment = Experiment::prepare(plan, folder.path().to_path_buf()).expect("a plan");
    let mut last = Snapshot::default();
    let store = Opened::new(store).serving::<Social>();
    let report = store.run(&experiment, &Control::default(), &mut |snapshot| last = snapshot).expect("a replay");
    let traced = operations(source, sessions);
    let logged = log(&folder.path().join("log/fragment-0.arrows"));
    let rows = logged.into_iter().map(|row| (traced[&(row.session, row.step)], row)).collect();
    Replayed { rows, last, report }
}

/// The operations of the first sessions, by session and step.
fn operations(source: &Source, sessions: u64) -> HashMap<(u64, u16), TraceRow> {
    let mut reader = OperationsReader::<Social>::new(0, source.manifest.operation_files(&source.folder, 0), 1024);
    let (mut chunk, mut all) = (Vec::new(), HashMap::new());
    while reader.next_rows(&mut chunk).expect("a chunk") {
        let first = chunk.iter().filter(|row| row.session < sessions);
        all.extend(first.map(|row| ((row.session, row.step), *row)));
    }
    all
}

fn log(path: &Path) -> Vec<LogRow> {
    let mut rows = Vec::new();
    for batch in LogReader::open(path).expect("a log") {
        let batch = batch.expect("a batch");
        let columns = LogColumns::of(&batch, path).expect("columns");
        rows.extend((0..columns.len()).map(|at| columns.row(at)));
    }
    rows
}

/// The value that `percent` of the sorted values do not exceed.
pub fn percentile(sorted: &[i64], percent: f64) -> i64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}
