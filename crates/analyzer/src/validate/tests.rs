//! Tests the models of items against brute force.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::brute::{Write, at, brute_force, interval, open_ended};
use super::*;

#[test]
fn figure_10_of_bg_2013() {
    let write = |start, end, delta| CountWrite { at: at(start, end), delta };
    let writes = [write(1, 3, -1), write(2, 4, 1), write(5, 6, 2)];
    let read = at(0, 10);
    assert_eq!(acceptable_range(0, &writes, read), Range { low: -1, high: 2 });
    let brute: Vec<Write<i64>> = writes.iter().map(|w| Write { at: w.at, optional: false, effect: w.delta }).collect();
    let values = brute_force(0, &brute, read, &|sum, delta| sum + delta);
    assert_eq!(values.into_iter().collect::<Vec<_>>(), [-1, 0, 1, 2]);
}

/// Intervals that touch overlap, and one nanosecond more makes an order.
#[test]
fn touching_end_points_overlap() {
    let write = |end| [CountWrite { at: at(0, end), delta: 1 }];
    assert_eq!(acceptable_range(5, &write(10), at(10, 20)), Range { low: 5, high: 6 });
    assert_eq!(acceptable_range(5, &write(9), at(10, 20)), Range { low: 6, high: 6 });
    let states = acceptable_states(States::only(false), &[ElementWrite { at: at(20, 30), present: true }], at(10, 20));
    assert_eq!(states, States { absent: true, present: true });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn counts_are_what_brute_force_finds(
        base in -2i64..3,
        history in prop::collection::vec((interval(), any::<bool>(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        let delta = |up: bool| if up { 1 } else { -1 };
        let brute: Vec<Write<i64>> = history
            .iter()
            .map(|(at, up, optional)| Write { at: open_ended(*at, *optional), optional: *optional, effect: delta(*up) })
            .collect();
        let writes: Vec<CountWrite> =
            history.iter().map(|(at, up, optional)| CountWrite { at: open_ended(*at, *optional), delta: delta(*up) }).collect();
        let found = acceptable_range(base, &writes, read);
        let expect = brute_force(base, &brute, read, &|sum, delta| sum + delta);
        prop_assert_eq!((found.low..=found.high).collect::<BTreeSet<_>>(), expect);
    }

    #[test]
    fn any_deltas_stay_between_the_bounds_that_brute_force_finds(
        history in prop::collection::vec((interval(), -3i64..4), 0..=6),
        read in interval(),
    ) {
        let brute: Vec<Write<i64>> =
            history.iter().map(|(at, delta)| Write { at: *at, optional: false, effect: *delta }).collect();
        let writes: Vec<CountWrite> = history.iter().map(|(at, delta)| CountWrite { at: *at, delta: *delta }).collect();
        let found = acceptable_range(0, &writes, read);
        let expect = brute_force(0, &brute, read, &|sum, delta| sum + delta);
        prop_assert_eq!(Some(&found.low), expect.first());
        prop_assert_eq!(Some(&found.high), expect.last());
    }

    #[test]
    fn memberships_are_what_brute_force_finds(
        initial in any::<bool>(),
        history in prop::collection::vec((interval(), any::<bool>(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        let brute: Vec<Write<bool>> = history
            .iter()
            .map(|(at, present, optional)| Write { at: open_ended(*at, *optional), optional: *optional, effect: *present })
            .collect();
        let writes: Vec<ElementWrite> = history
            .iter()
            .map(|(at, present, optional)| ElementWrite { at: open_ended(*at, *optional), present: *present })
            .collect();
        let found = acceptable_states(States::only(initial), &writes, read);
        let expect = brute_force(initial, &brute, read, &|_, present| present);
        prop_assert_eq!(found, States { absent: expect.contains(&false), present: expect.contains(&true) });
    }

    /// The values of a field: each write has one of its own.
    #[test]
    fn registers_are_what_brute_force_finds(
        has_initial in any::<bool>(),
        history in prop::collection::vec((interval(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        const NEVER: i64 = -5;
        let writes: Vec<RegisterWrite> = (1..)
            .zip(&history)
            .map(|(value, (at, optional))| RegisterWrite { at: open_ended(*at, *optional), places: 0b100, value })
            .collect();
        let brute: Vec<Write<i64>> = writes
            .iter()
            .map(|write| Write { at: write.at, optional: write.at.end == FOREVER, effect: write.value })
            .collect();
        let initial = has_initial.then_some(0);
        let mut expect = brute_force(initial.unwrap_or(NEVER), &brute, read, &|_, value| value);
        expect.remove(&NEVER);
        let found: BTreeSet<i64> = (0..=7).filter(|value| may_return(initial, &writes, 2, read, *value)).collect();
        prop_assert_eq!(found, expect);
        prop_assert!(!may_return(initial, &writes, 1, read, 1), "no write of another register is seen");
    }

    /// Whether a record exists: inserts leave one value, deletes the other.
    #[test]
    fn existence_is_what_brute_force_finds(
        initial in any::<bool>(),
        history in prop::collection::vec((interval(), any::<bool>(), prop::bool::weighted(0.2)), 0..=6),
        read in interval(),
    ) {
        let writes: Vec<RegisterWrite> = (1..)
            .zip(&history)
            .map(|(id, (at, present, optional))| RegisterWrite {
                at: open_ended(*at, *optional),
                places: 1 << register::EXISTENCE,
                value: if *present { id } else { 0 },
            })
            .collect();
        let brute: Vec<Write<bool>> = history
            .iter()
            .map(|(at, present, optional)| Write { at: open_ended(*at, *optional), optional: *optional, effect: *present })
            .collect();
        let found: BTreeSet<bool> = [false, true]
            .into_iter()
            .filter(|exists| {
                may_return(Some(initial.into()), &writes, register::EXISTENCE, read, (*exists).into())
            })
            .collect();
        prop_assert_eq!(found, brute_force(initial, &brute, read, &|_, present| present));
    }
}

/// A record that is written all the time takes no more memory than the writes under way.
#[test]
fn registers_forget_what_no_read_may_return() {
    let mut registers = register::Registers::default();
    let mut most = 0;
    for time in 0..100_000 {
        let places = if time % 7 == 0 { 0b111 } else { 1 << (time % 3) };
        let write = RegisterWrite { at: at(time, time + 5), places, value: time + 1 };
        registers.register(write, time - 10);
        most = most.max(registers.kept());
    }
    assert!(most <= 64, "{most}");
    let read = at(100_100, 100_101);
    for place in 0..3 {
        let possible = (90_000..=100_000).filter(|value| registers.may_return(Some(0), place, read, *value)).count();
        assert!((1..=6).contains(&possible), "{possible}");
        assert!(!registers.may_return(Some(0), place, read, 0));
    }
}
