//! k-atomicity (Aiyer, Alvisi, Bazzi, 2005): a history is k-atomic if there is an order of all operations
//! that keeps what precedes what, and in which each read sees one of the k newest writes before it.
//! 1-atomic is linearizable. Whether a history is 2-atomic is found with limited backtracking, as LBT of
//! Golab, Hurwitz and Li ("On the k-atomicity-verification problem", 2013) does.
//!
//! Only the order of the writes matters, since reads can then be placed if, with b the start of
//! a write, f the least end of its cluster and r the greatest start of its reads:
//!
//! - for each write, f(later) >= b(write) for all later writes;
//! - for each write, f(later) >= r(write) for all later writes but the next one.
//!
//! The order is built from its end. A write can be the last one of those that remain if none of
//! the others starts after its f, and at most one of the others has a read that starts after its f. That one
//! must be next to last, and so on, until a write forces no other one. Then the writes so far can stay at the
//! end whatever the rest is: taking writes out of an order only brings the others closer together. So
//! a failure is never due to a choice before, and only the writes that overlap the last one are tried. They
//! are tried in parallel, so n writes, of which at most c overlap, take O(n log n + c n).

use schemas::verdict::K;

use super::gamma::Gamma;
use super::history::Cluster;

/// k of clusters that are not linearizable, whose Γ is known.
pub fn of_broken(clusters: &[Cluster], gamma: &Gamma) -> K {
    let has_future = clusters.iter().any(|cluster| cluster.future > 0);
    if !has_future && Search::new(clusters, gamma).finds_order() { K::Two } else { K::More }
}

/// In place of the number of a try: the cluster has its place at the end of the order.
const PLACED: u32 = u32::MAX;

/// The search for an order of the writes.
struct Search<'a> {
    clusters: &'a [Cluster],
    /// The clusters by f, b and r, each from the greatest one on.
    by_end: Vec<u32>,
    by_written: Vec<u32>,
    by_read: Vec<u32>,
    /// [`PLACED`], or the last try that placed the cluster.
    taken: Vec<u32>,
    tries: u32,
}

/// How a try ended.
enum Tried {
    /// These clusters can stay at the end.
    Placed(Vec<u32>),
    /// The cluster cannot be the last one.
    Refused,
    /// The try took too many steps so far.
    Cut,
}

impl<'a> Search<'a> {
    fn new(clusters: &'a [Cluster], gamma: &Gamma) -> Search<'a> {
        let mut by_read: Vec<(i64, u32)> = clusters.iter().map(|cluster| cluster.last_read).zip(0..).collect();
        by_read.sort_unstable();
        Search {
            clusters,
            by_end: gamma.order().iter().rev().map(|(_, index)| *index).collect(),
            // Clusters come in the order of their writes.
            by_written: (0..clusters.len() as u32).rev().collect(),
            by_read: by_read.into_iter().rev().map(|(_, index)| index).collect(),
            taken: vec![0; clusters.len()],
            tries: 0,
        }
    }

    fn finds_order(mut self) -> bool {
        let mut left = self.clusters.len();
        // Where the first clusters that are not placed are.
        let mut fronts = [0; 3];
        while left > 0 {
            let orders = [&self.by_end, &self.by_written, &self.by_read];
            for (front, order) in fronts.iter_mut().zip(orders) {
                while self.taken[order[*front] as usize] == PLACED {
                    *front += 1;
                }
            }
            let mut candidates = self.candidates(fronts);
            let mut steps = 4;
            let placed = loop {
                let mut uncertain = Vec::new();
                let mut placed = None;
                for candidate in candidates {
                    match self.try_last(candidate, fronts, steps) {
                        Tried::Placed(chain) => {
                            placed = Some(chain);
                            break;
                        }
                        Tried::Cut => uncertain.push(candidate),
                        Tried::Refused => {}
                    }
                }
                if placed.is_some() || uncertain.is_empty() {
                    break placed;
                }
                (candidates, steps) = (uncertain, steps * 2);
            };
            let Some(placed) = placed else { return false };
            left -= placed.len();
            for index in placed {
                self.taken[index as usize] = PLACED;
            }
        }
        true
    }

    /// The clusters that may be last: at most one of the others, the one with the greatest start, is written
    /// after their f. (Then it must be themselves.)
    fn candidates(&self, [end, written, _]: [usize; 3]) -> Vec<u32> {
        let is_left = |index: &&u32| self.taken[**index as usize] != PLACED;
        let second = self.by_written[written..].iter().filter(is_left).nth(1);
        let Some(second) = second else { return self.by_end[end..].iter().copied().filter(|i| is_left(&i)).collect() };
        let least = self.clusters[*second as usize].written;
        let ends_late = |index: &&u32| self.clusters[**index as usize].first_end >= least;
        self.by_end[end..].iter().filter(is_left).take_while(ends_late).copied().collect()
    }

    /// Tries to place a cluster at the end, and what it forces before it.
    fn try_last(&mut self, candidate: u32, [_, mut written, mut read]: [usize; 3], steps: usize) -> Tried {
        self.tries += 1;
        let (own, mut last, mut chain) = (self.tries, candidate, Vec::new());
        for _ in 0..steps {
            self.taken[last as usize] = own;
            chain.push(last);
            let first_end = self.clusters[last as usize].first_end;
            if let Some(other) = self.first_left(&self.by_written, &mut written, own)
                && self.clusters[other as usize].written > first_end
            {
                return Tried::Refused;
            }
            let forced = self.first_left(&self.by_read, &mut read, own);
            let Some(forced) = forced.filter(|other| self.clusters[*other as usize].last_read > first_end) else {
                return Tried::Placed(chain);
            };
            let mut after = read + 1;
            if let Some(second) = self.first_left(&self.by_read, &mut after, own)
                && self.clusters[second as usize].last_read > first_end
            {
                return Tried::Refused;
            }
            last = forced;
        }
        Tried::Cut
    }

    /// The first cluster from `front` on that is neither placed nor taken by this try.
    fn first_left(&self, order: &[u32], front: &mut usize, own: u32) -> Option<u32> {
        while let Some(index) = order.get(*front) {
            let taken = self.taken[*index as usize];
            if taken != PLACED && taken != own {
                return Some(*index);
            }
            *front += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::brute::{self, Event, histories, history, r, w};
    use super::super::history::History;
    use super::*;

    fn k(history: &History) -> K {
        let clusters = history.clusters();
        let gamma = Gamma::of(&clusters);
        if gamma.is_linearizable() { K::One } else { of_broken(&clusters, &gamma) }
    }

    #[test]
    fn k_is_what_exhaustive_search_finds() {
        let mut counts = [0; 3];
        for (writes, reads) in histories(8_000, 21, 16) {
            let history = History::new(writes, reads);
            let expected = match brute::k(&history) {
                Some(1) => K::One,
                Some(_) => K::Two,
                None => K::More,
            };
            assert_eq!(k(&history), expected, "{history:?}");
            counts[expected as usize] += 1;
        }
        assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    }

    #[test]
    fn known_answers() {
        let of = |events: &[Event]| k(&history(events));
        assert_eq!(of(&[w(1, 0, 1), w(2, 2, 3), r(2, 4, 5)]), K::One);
        assert_eq!(of(&[w(1, 0, 1), w(2, 2, 3), r(1, 4, 5)]), K::Two);
        assert_eq!(of(&[w(1, 0, 1), w(2, 2, 3), w(3, 4, 5), r(1, 6, 7)]), K::More);
        assert_eq!(of(&[r(1, 0, 1), w(1, 2, 3)]), K::More);
        // Each of two values is seen again after the other one: both cannot be next to last.
        assert_eq!(of(&[w(1, 0, 1), w(2, 2, 3), r(1, 4, 5), r(2, 6, 7), r(1, 8, 9)]), K::Two);
    }

    /// Each read sees the value before the newest one, for ten thousand writes: a chain of all of them.
    #[test]
    fn long_chains_end_soon() {
        let one_behind = |n: i64| -> Vec<Event> {
            let each = (1..=n).flat_map(|i| [w(i, 10 * i, 10 * i + 1), r(i - 1, 10 * i + 3, 10 * i + 4)]);
            each.collect()
        };
        let mut events = one_behind(10_000);
        assert_eq!(of_events(&events), K::Two);
        events.push(r(1, 200_000, 200_001));
        assert_eq!(of_events(&events), K::More);
    }

    fn of_events(events: &[Event]) -> K {
        k(&history(events))
    }
}
