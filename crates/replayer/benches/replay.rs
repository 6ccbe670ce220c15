//! Replay against `null:`, with its log: what one core of the replayer can do.
//!
//! `taskset -c 0 cargo bench -p replayer --bench replay --profile release`; the figures in
//! docs/src/explanation/performance.md are those of `benches/run`, which counts CPU seconds of the whole process.

use std::path::Path;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use replayer::any_store;
use replayer::experiment::{Control, Experiment};
use schemas::manifest::Manifest;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::spec::Spec;

const SESSIONS: u64 = 1_000_000;

fn trace(folder: &Path) -> Manifest {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/quickstart.toml");
    let mut spec = Spec::read(&spec).expect("the quickstart spec");
    spec.sessions = SESSIONS;
    tracegen::generate(&spec, folder, &tracegen::GenerateOptions::default()).expect("a trace set")
}

fn replay(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let trace_folder = folder.path().join("quickstart.trace");
    let manifest = trace(&trace_folder);
    let store = any_store::open("null:").expect("a store");
    let mut group = criterion.benchmark_group("replay_null");
    group.throughput(Throughput::Elements(SESSIONS)).sampling_mode(SamplingMode::Flat).sample_size(10);
    for threads in [1, 64, 1000] {
        group.bench_function(BenchmarkId::from_parameter(threads), |bencher| {
            bencher.iter(|| {
                let plan = Plan {
                    format_version: schemas::RUN_FORMAT_VERSION,
                    experiment: 1,
                    trace: trace_folder.clone(),
                    trace_id: manifest.trace_id.clone(),
                    store: "null:".into(),
                    threads,
                    workers: 1,
                    limit: Limit::WholeTrace,
                    fragments: vec![FragmentPlan {
                        fragment: 0,
                        first_session: 0,
                        given_back: Vec::new(),
                        warmup_sessions: 0,
                    }],
                    unique_actors: true,
                    closing_read: None,
                    open_loop: None,
                    target_per_s: None,
                    threads_over_time: Vec::new(),
                    transactions: Default::default(),
                };
                let run = tempfile::tempdir_in(folder.path()).expect("a folder");
                let experiment = Experiment::prepare(plan, run.path().to_path_buf()).expect("a plan");
                let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect("a replay");
                assert_eq!(report.ok, SESSIONS);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
