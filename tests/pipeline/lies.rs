//! A correct store is never accused, and every visible lie is found.
//!
//! With one thread no operation overlaps another. So every wrong answer is a visible lie, and the
//! store's own count of its lies is exact.

use std::path::Path;

use schemas::verdict::Verdict;

use crate::replays::Replay;

const SEEDS: u64 = 200;

/// Replays the whole small trace of a seed. Returns the verdict and the store's own count of its lies.
fn replay(folder: &Path, seed: u64, store: &str, threads: u32) -> (Verdict, u64) {
    let settings = [
        &format!("seed={seed}"),
        "sessions=400",
        "data.members=40",
        "data.friends_per_member=4",
        "data.pending_per_member=3",
    ];
    let replay = Replay { settings: &settings, threads, ..Replay::new(folder) };
    let replayed = replay.on(store);
    (replayed.verdict, replayed.report.store_counters["lies_told"])
}

#[test]
fn a_truthful_store_is_never_accused() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..SEEDS {
        // Overlapping operations, failures and writes of unknown fate must not lead to a wrong
        // accusation.
        let store = format!("memory:?latency_us=300&error=0.02&unknown=0.02&seed={seed}");
        let (verdict, lies) = replay(folder.path(), seed, &store, 8);
        assert_eq!((verdict.figures.unpredictable_reads, lies), (0, 0), "seed {seed}");
        assert!(verdict.figures.reads > 100, "seed {seed}");
    }
}

#[test]
fn every_visible_lie_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lies_in_all = 0;
    for seed in 0..SEEDS {
        for lie in ["stale=0.2", "lost=0.1"] {
            let (verdict, lies) = replay(folder.path(), seed, &format!("memory:?{lie}&seed={seed}"), 1);
            assert_eq!(verdict.figures.unpredictable_reads, lies, "seed {seed} {lie}");
            lies_in_all += lies;
        }
    }
    assert!(lies_in_all > SEEDS, "the stores told only {lies_in_all} lies: the test proves nothing");
}

/// Among overlapping operations, a lie may look like a race. But the validator must not report more
/// unpredictable reads than there are lies.
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
