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
    // Most transactions that see half of another one lose an update too, and have no order then.
    let mut skews = 0;
    for seed in 0..5 {
        let check = |mode, items, level| {
            let found = found(&simulator(mode, items, 4000, seed).history(), Limits::default());
            assert_eq!(found.strongest(), level, "{mode:?}: {:?}", classes(&found));
            assert_eq!(found.unordered_writes, 0);
            found
        };
        check(Mode::Serializable, 30, Some(Isolation::StrictSerializable));
        let snapshot = check(Mode::Snapshot, 15, Some(Isolation::Snapshot));
        assert!(count(&snapshot, Class::WriteSkew) > 0, "{:?}", classes(&snapshot));
        let committed = check(Mode::ReadCommitted, 30, Some(Isolation::ReadCommitted));
        assert!(count(&committed, Class::LostUpdate) > 20, "{:?}", classes(&committed));
        skews += count(&committed, Class::ReadSkew);
        let uncommitted = found(&simulator(Mode::ReadUncommitted, 8, 4000, seed).history(), Limits::default());
        for class in [Class::AbortedRead, Class::CircularRead, Class::DirtyWrite] {
            assert!(count(&uncommitted, class) > 0, "{class:?}: {:?}", classes(&uncommitted));
        }
    }
    assert!(skews > 0);
}

/// Forgetting changes nothing: neither counts nor witnesses' classes nor the level.
#[test]
fn a_small_window_finds_what_an_unbounded_one_finds() {
    for mode in [Mode::Serializable, Mode::Snapshot, Mode::ReadCommitted] {
        for seed in 0..4 {
            // Few conflicts, so that cycles are short; in a crowd they join to ever longer ones.
            let history = simulator(mode, 400, 12_000, seed).history();
            let whole = found(&history, Limits { window: usize::MAX / 4, most: usize::MAX });
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
        let whole = found(&history, Limits { window: usize::MAX / 4, most: usize::MAX });
        let bounded = found(&history, Limits { window: 200, most: 2000 });
        let names = |found| classes(found).into_iter().map(|(class, _)| class).collect::<Vec<_>>();
        assert_eq!(names(&bounded), names(&whole));
    }
}

/// Each transaction has read what the one before it and the one after it wrote: all are in one component.
#[test]
fn a_long_history_of_cycles_is_counted_in_bounded_memory() {
    const COUNT: u64 = 300_000;
    for window in [4096, usize::MAX / 4] {
        let mut checker = Checker::new(0, Limits { window, most: usize::MAX });
        let mut most = 0;
        for number in 1..=COUNT {
            let (up, down) = (|at| Item::new(at, 0), |at| Item::new(at, 1));
            let (own, at) = (number as i64 * 10, number as i64 * 1000);
            let told = txn(
                number,
                (at, at + 3000),
                Fate::Committed,
                &[
                    (Act::Insert, up(number + 1), own + 1),
                    (Act::Insert, down(number - 1), own + 2),
                    (Act::Read, up(number), if number > 1 { own - 10 + 1 } else { 0 }),
                    (Act::Read, down(number), if number < COUNT { own + 10 + 2 } else { 0 }),
                ],
            );
            checker.advance(at);
            checker.add(&told.transaction, &told.events);
            most = most.max(checker.window.len());
        }
        let found = checker.finish();
        assert!(most <= 3 * 4096 || window > 4096, "{most}");
        assert_eq!(classes(&found), [(Class::CircularRead, COUNT)]);
        assert_eq!(found.witness(Class::CircularRead).unwrap().transactions.len(), 2);
    }
}

#[test]
fn a_crowd_without_isolation_is_counted_in_bounded_memory() {
    let mut checker = Checker::new(0, Limits { window: 4096, most: 16_384 });
    let mut most = 0;
    let settings = Settings { mode: Mode::ReadUncommitted, threads: 64, items: 40, transactions: 150_000 };
    Simulator::new(settings, 1).run(|told, low| {
        checker.advance(low);
        checker.add(&told.transaction, &told.events);
        most = most.max(checker.window.len());
    });
    let found = checker.finish();
    assert!(most <= 16_384, "{most}");
    assert_eq!(found.committed + found.aborted + found.unknown, 150_000);
    assert!(found.counts.iter().sum::<u64>() > 50_000, "{:?}", classes(&found));
    assert_eq!(found.strongest(), None);
}
