//! Histories of a simulated store.

use schemas::isolation::Isolation;

use super::simulator::{Mode, Settings, Simulator};
use super::*;

fn simulator(mode: Mode, items: u64, transactions: u64, seed: u64) -> Simulator {
    Simulator::new(Settings { mode, threads: 8, items, transactions }, seed)
}

fn count(found: &Anomalies, class: Class) -> u64 {
    found.count(class)
}

#[test]
fn each_level_shows_what_it_allows_and_nothing_worse() {
    for seed in 0..5 {
        let check = |mode, items, level| {
            let found = found(&simulator(mode, items, 4000, seed).history(), Limits::default());
            assert_eq!(found.strongest(), level, "{mode:?}: {:?}", classes(&found));
            assert_eq!(found.unordered_writes, 0);
            found
        };
        check(Mode::Serializable, 30, Some(Isolation::StrictSerializable));
        let snapshot = check(Mode::Snapshot, 30, Some(Isolation::Snapshot));
        assert!(count(&snapshot, Class::WriteSkew) > 20, "{:?}", classes(&snapshot));
        let committed = check(Mode::ReadCommitted, 30, Some(Isolation::ReadCommitted));
        assert!(count(&committed, Class::LostUpdate) > 20 && count(&committed, Class::ReadSkew) > 20);
        let uncommitted = found(&simulator(Mode::ReadUncommitted, 30, 4000, seed).history(), Limits::default());
        for class in [Class::AbortedRead, Class::CircularRead, Class::DirtyWrite] {
            assert!(count(&uncommitted, class) > 0, "{class:?}: {:?}", classes(&uncommitted));
        }
    }
}

/// Forgetting changes nothing: neither counts nor witnesses' classes nor the level.
#[test]
fn a_small_window_finds_what_an_unbounded_one_finds() {
    for mode in [Mode::Serializable, Mode::Snapshot, Mode::ReadCommitted] {
        for seed in 0..4 {
            // Few conflicts, so that cycles are short; in a crowd they join to ever longer ones.
            let history = simulator(mode, 400, 12_000, seed).history();
            let whole = found(&history, Limits { window: usize::MAX / 2, most: usize::MAX });
            let bounded = found(&history, Limits { window: 2500, most: 20_000 });
            assert_eq!(classes(&bounded), classes(&whole), "{mode:?} seed {seed}");
            assert_eq!(bounded.per_second, whole.per_second);
            let sizes = |found: &Anomalies| -> Vec<(Class, usize)> {
                found.witnesses.iter().map(|witness| (witness.class, witness.transactions.len())).collect()
            };
            assert_eq!(sizes(&bounded), sizes(&whole));
        }
    }
    // In a crowd the level and the classes are the same.
    for seed in 0..4 {
        let history = simulator(Mode::ReadUncommitted, 20, 6000, seed).history();
        let whole = found(&history, Limits { window: usize::MAX / 2, most: usize::MAX });
        let bounded = found(&history, Limits { window: 200, most: 2000 });
        let names = |found| classes(found).into_iter().map(|(class, _)| class).collect::<Vec<_>>();
        assert_eq!(names(&bounded), names(&whole));
    }
}

/// Every transaction is in one cycle with all others, and the memory stays that of the window.
#[test]
fn a_long_history_of_cycles_is_counted_in_bounded_memory() {
    let mut checker = Checker::new(0, Limits { window: 4096, most: 16_384 });
    let mut most = 0;
    let settings = Settings { mode: Mode::ReadUncommitted, threads: 64, items: 40, transactions: 250_000 };
    Simulator::new(settings, 1).run(|told, low| {
        checker.advance(low);
        checker.add(&told.transaction, &told.events);
        most = most.max(checker.window.len());
    });
    let found = checker.finish();
    assert!(most <= 16_384, "{most}");
    assert_eq!(found.committed + found.aborted + found.unknown, 250_000);
    let in_cycles: u64 = [Class::DirtyWrite, Class::CircularRead].map(|class| found.count(class)).iter().sum();
    assert!(in_cycles > 150_000, "{:?}", classes(&found));
    assert_eq!(found.strongest(), None);
}
