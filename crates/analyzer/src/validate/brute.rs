//! Brute force, for tests: every order of a small history that keeps precedence.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{FOREVER, Interval};

/// An interval.
pub fn at(start: i64, end: i64) -> Interval {
    Interval { start, end }
}

/// A write as the brute force sees it.
#[derive(Debug, Clone, Copy)]
pub struct Write<E> {
    pub at: Interval,
    pub optional: bool,
    pub effect: E,
}

/// The states in which the read can find the item, over all linear extensions
/// and all choices of the optional writes.
pub fn brute_force<S: Copy + Ord, E: Copy>(
    initial: S,
    writes: &[Write<E>],
    read: Interval,
    apply: &dyn Fn(S, E) -> S,
) -> BTreeSet<S> {
    let mut found = BTreeSet::new();
    for chosen in 0u32..1 << writes.len() {
        let in_force: Vec<Write<E>> = (0..writes.len()).filter(|i| chosen >> i & 1 == 1).map(|i| writes[i]).collect();
        if (0..writes.len()).all(|i| chosen >> i & 1 == 1 || writes[i].optional) {
            extend(initial, &in_force, 0, read, apply, &mut found);
        }
    }
    found
}

fn extend<S: Copy + Ord, E: Copy>(
    state: S,
    writes: &[Write<E>],
    done: u32,
    read: Interval,
    apply: &dyn Fn(S, E) -> S,
    found: &mut BTreeSet<S>,
) {
    let waits_for = |at: Interval| (0..writes.len()).any(|i| done >> i & 1 == 0 && writes[i].at.end < at.start);
    if !waits_for(read) {
        found.insert(state);
    }
    for (i, write) in writes.iter().enumerate() {
        // If the read precedes a write, the write comes after it and no longer matters.
        if done >> i & 1 == 0 && !waits_for(write.at) && write.at.start <= read.end {
            extend(apply(state, write.effect), writes, done | 1 << i, read, apply, found);
        }
    }
}

/// Short intervals that often overlap.
pub fn interval() -> impl Strategy<Value = Interval> {
    (0i64..10, 0i64..5).prop_map(|(start, length)| at(start, start + length))
}

/// The interval of a write that may not have happened.
pub fn open_ended(at: Interval, optional: bool) -> Interval {
    if optional { Interval { end: FOREVER, ..at } } else { at }
}
