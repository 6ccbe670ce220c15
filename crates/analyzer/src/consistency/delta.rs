//! Δ (Golab, Li, Shah: "Analyzing consistency properties for fun and profit", 2011): the least time t
//! such that the history is linearizable once each read starts t earlier. It says how stale a read
//! was, at least, if the writes took effect within their intervals.
//!
//! Moving the starts of reads changes no end. So `v` can be before `w` at the cost of
//! max(0, greatest start of the reads of v - f(w)), and not at all if v was written after f(w). Of two values
//! the less costly order counts, and Δ is the greatest of these costs over all pairs. It is found as
//! Γ is.

use super::gamma::Gamma;
use super::history::{BEFORE, Cluster, Peaks, crossing};

/// An order that no shift of reads allows.
const NEVER: i64 = i64::MAX;

/// Δ of the clusters of a history, whose Γ is known: only values with a Γ cost anything. None if a read ended before its
/// write started: no shift of the starts of reads helps.
pub fn delta(clusters: &[Cluster], gamma: &Gamma) -> Option<i64> {
    if clusters.iter().any(|cluster| cluster.future > 0) {
        return None;
    }
    let order = gamma.order();
    let cluster = |place: usize| &clusters[order[place].1 as usize];
    let (mut written, mut read) = (Peaks::default(), Peaks::default());
    written.fill((0..order.len()).map(|place| cluster(place).written));
    read.fill((0..order.len()).map(|place| cluster(place).last_read));
    let mut greatest = 0;
    // The clusters before this place end before the one at hand starts last. It moves little.
    let mut end = 0;
    for (place, (first_end, index)) in order.iter().enumerate() {
        if gamma.values[*index as usize] == 0 {
            continue;
        }
        let own = &clusters[*index as usize];
        let last_start = own.last_start();
        while end < order.len() && order[end].0 < last_start {
            end += 1;
        }
        while end > 0 && order[end - 1].0 >= last_start {
            end -= 1;
        }
        let falls = |other: usize| cost(own.written, own.last_read, order[other].0);
        let rises = |other: usize| cost(written.greatest(other, place).0, read.greatest(other, place).0, *first_end);
        if let Some((found, _)) = crossing(end, falls, rises) {
            greatest = found.max(greatest);
        }
    }
    Some(greatest)
}

/// By how much reads must start earlier for a value to be before one that was there at `first_end`.
fn cost(written: i64, last_read: i64, first_end: i64) -> i64 {
    match (written > first_end, last_read) {
        (true, _) => NEVER,
        (false, BEFORE) => 0,
        (false, last_read) => last_read.saturating_sub(first_end).max(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::brute::{self, histories, history, r, w};
    use super::super::history::History;
    use super::*;

    fn of(clusters: &[Cluster]) -> Option<i64> {
        delta(clusters, &Gamma::of(clusters))
    }

    #[test]
    fn delta_is_what_exhaustive_search_finds() {
        let (mut undefined, mut stale) = (0, 0);
        for (writes, reads) in histories(4_000, 11, 14) {
            let history = History::new(writes, reads);
            let found = of(&history.clusters());
            assert_eq!(found, brute::delta(&history), "{history:?}");
            undefined += u32::from(found.is_none());
            stale += u32::from(found.is_some_and(|found| found > 0));
        }
        assert!(undefined > 100 && stale > 500, "{undefined} {stale}");
    }

    #[test]
    fn known_answers() {
        let answer = |accesses: &[brute::Event]| of(&history(accesses).clusters());
        assert_eq!(answer(&[w(1, 0, 5), r(1, 6, 7)]), Some(0));
        assert_eq!(answer(&[w(1, 0, 5), r(0, 15, 16)]), Some(10));
        assert_eq!(answer(&[w(1, 0, 100), r(1, 10, 20), r(0, 50, 60)]), Some(30));
        assert_eq!(answer(&[r(1, 0, 5), w(1, 9, 12)]), None);
    }
}
