//! A truthful store is never accused; every visible lie is found.
//!
//! With one thread no operation overlaps another, so that every answer that
//! differs from the truth is a visible lie, and the store itself has counted
//! them.

use std::path::Path;

use replayer::experiment::{Control, Experiment};
use replayer::stores;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::RunFolder;
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Verdict;

use crate::support::BUSY_SPEC;

const SEEDS: u64 = 200;

/// Replays the whole small trace of a seed; the verdict, and the lies that the
/// store says it has told.
fn replay(folder: &Path, seed: u64, store: &str, threads: u32) -> (Verdict, u64) {
    let settings = [
        format!("seed={seed}"),
        "sessions=400".into(),
        "data.members=40".into(),
        "data.friends_per_member=4".into(),
        "data.pending_per_member=3".into(),
    ];
    let spec = Spec::parse_with(BUSY_SPEC, "busy.toml", &settings).expect("a good spec");
    let trace = folder.join(format!("{seed}.trace"));
    if !trace.exists() {
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace");
    }
    let store_name: String = store.chars().filter(char::is_ascii_alphanumeric).collect();
    let run = RunFolder::new(folder.join(format!("{seed}-{threads}-{store_name}")));
    let manifest = schemas::manifest::Manifest::read(&trace).expect("a manifest");
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace,
        trace_id: manifest.trace_id.clone(),
        store: store.to_string(),
        threads,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: manifest
            .fragments
            .iter()
            .map(|f| FragmentPlan { fragment: f.fragment, first_session: 0, warmup_sessions: 0 })
            .collect(),
        unique_socialites: true,
    };
    let experiment = Experiment::prepare(plan, run.experiment(1, threads).root().to_path_buf()).expect("a plan");
    let store = stores::open(store).expect("a store");
    store.load(experiment.source(), &|_, _| {}).expect("a load");
    let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect("a replay");
    let verdict = analyzer::analyze(&run, 1, Some(&Sla::default())).expect("an analysis");
    let lies = report.store_counters["lies_told"];
    (verdict, lies)
}

#[test]
fn a_truthful_store_is_never_accused() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..SEEDS {
        // Overlapping operations, failures and writes of unknown fate are no excuse.
        let store = format!("memory:?latency_us=300&error=0.02&unknown=0.02&seed={seed}");
        let (verdict, lies) = replay(folder.path(), seed, &store, 8);
        assert_eq!((verdict.figures.unpredictable_reads, lies), (0, 0), "seed {seed}");
        assert!(verdict.figures.reads > 100, "seed {seed}");
    }
}

#[test]
fn every_visible_lie_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut told = 0;
    for seed in 0..SEEDS {
        for lie in ["stale=0.2", "lost=0.1"] {
            let (verdict, lies) = replay(folder.path(), seed, &format!("memory:?{lie}&seed={seed}"), 1);
            assert_eq!(verdict.figures.unpredictable_reads, lies, "seed {seed} {lie}");
            told += lies;
        }
    }
    assert!(told > SEEDS, "the stores told only {told} lies: the test proves nothing");
}

/// Among overlapping operations a lie may be indistinguishable from a race, but
/// nothing that is not a lie may be taken for one.
#[test]
fn overlapping_operations_are_accused_of_lies_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut found = 0;
    for seed in 0..SEEDS / 4 {
        let store = format!("memory:?stale=0.3&latency_us=300&seed={seed}");
        let (verdict, lies) = replay(folder.path(), seed, &store, 8);
        assert!(verdict.figures.unpredictable_reads <= lies, "seed {seed}");
        found += verdict.figures.unpredictable_reads;
    }
    assert!(found > 0, "not one lie was found: the test proves nothing");
}
