//! How stale reads are, and when writes become visible.
//!
//! A write is newer than a value if it started after the write of that value had ended. A write
//! of unknown fate may take effect at any time, so nothing is newer than its value, and it overwrites
//! nothing.
//!
//! - k-staleness of a read: how many writes that ended before its start are newer than what it saw. It is
//!   the least number over all orders that the intervals allow.
//! - t-staleness: how long before its start the value had been overwritten, at least: since the least end of
//!   the newer writes.
//! - t-visibility of a write: from its end to the start of the last read that saw a value that the write is
//!   newer than; 0 if there is none.
//!
//! A read is stale (k above 0, and so t) exactly if the validator calls it unpredictable for the value
//! that it saw.

use super::history::{BEFORE, Cluster, History};
use crate::validate::{FOREVER, Interval};

/// How stale a read was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Staleness {
    /// Its k-staleness.
    pub k: u64,
    /// Its t-staleness, in nanoseconds.
    pub t_ns: i64,
    /// From the last end of a write to the start of the read; None if no write had ended.
    pub age_ns: Option<i64>,
}

/// Computes staleness. What it allocates is kept for the next history.
#[derive(Default)]
pub struct Stalenesses {
    /// The known writes, by start.
    starts: Vec<(i64, i64)>,
    /// The least end of each of them and all that start later.
    least_end: Vec<i64>,
    /// Their ends, ascending, with their places in `starts`.
    ends: Vec<(i64, u32)>,
    /// The greatest start of each of these and all that end earlier.
    newest: Vec<i64>,
    stale: Vec<Stale>,
    tree: Vec<u32>,
    /// The ends of the known writes, with the last reads of their values.
    last_until: Vec<(i64, i64)>,
}

/// A stale read: how many writes ended before it, and the first write by start that is newer than what it
/// saw.
struct Stale {
    index: usize,
    ended: usize,
    first_newer: usize,
}

impl Stalenesses {
    /// The staleness of each read of a history, in the order of [`History::reads`].
    pub fn of_reads(&mut self, history: &History, found: &mut Vec<Staleness>) {
        let Stalenesses { starts, least_end, ends, newest, stale, .. } = self;
        starts.clear();
        let known = history.writes.iter().filter(|write| write.at.end != FOREVER);
        starts.extend(known.map(|write| (write.at.start, write.at.end)));
        least_end.clear();
        least_end.extend(starts.iter().map(|(_, end)| *end));
        for index in (1..least_end.len()).rev() {
            least_end[index - 1] = least_end[index - 1].min(least_end[index]);
        }
        ends.clear();
        ends.extend(starts.iter().zip(0..).map(|((_, end), rank)| (*end, rank)));
        ends.sort_unstable();
        let mut last = BEFORE;
        newest.clear();
        newest.extend(ends.iter().map(|(_, rank)| {
            last = last.max(starts[*rank as usize].0);
            last
        }));
        stale.clear();
        found.clear();
        let mut ended = 0;
        for (index, read) in history.reads.iter().enumerate() {
            let start = read.access.at.start;
            while ended < ends.len() && ends[ended].0 < start {
                ended += 1;
            }
            let Some(last) = ended.checked_sub(1) else {
                found.push(Staleness::default());
                continue;
            };
            let mut staleness = Staleness { age_ns: Some(start - ends[last].0), ..Staleness::default() };
            let seen_end = history.written(read.saw).end;
            if newest[last] > seen_end {
                let first_newer = starts.partition_point(|(start, _)| *start <= seen_end);
                staleness.t_ns = start - least_end[first_newer];
                stale.push(Stale { index, ended, first_newer });
            }
            found.push(staleness);
        }
        self.count_newer(found);
    }

    /// Counts the writes that are newer and ended before, with a tree of sums over the writes by their
    /// start. Stale reads come in the order of their start.
    fn count_newer(&mut self, found: &mut [Staleness]) {
        let Stalenesses { ends, stale, tree, .. } = self;
        if stale.is_empty() {
            return;
        }
        tree.clear();
        tree.resize(ends.len() + 1, 0);
        let mut entered = 0;
        for Stale { index, ended, first_newer } in stale {
            for (_, rank) in &ends[entered..*ended] {
                let mut at = *rank as usize + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
            entered = *ended;
            let (mut older, mut at) = (0, *first_newer);
            while at > 0 {
                older += u64::from(tree[at]);
                at &= at - 1;
            }
            found[*index].k = entered as u64 - older;
        }
    }

    /// The t-visibility of each write, in nanoseconds, in the order of [`History::writes`]; None for a write of
    /// unknown fate. `clusters` are those of the history, and know when the value of each write was read
    /// last.
    pub fn of_writes(&mut self, history: &History, clusters: &[Cluster], found: &mut Vec<Option<i64>>) {
        let (mut initial, last_until) = (BEFORE, &mut self.last_until);
        last_until.clear();
        for cluster in clusters {
            match cluster.write {
                None => initial = cluster.last_read,
                Some(index) => {
                    let end = history.writes[index as usize].at.end;
                    if end != FOREVER {
                        last_until.push((end, cluster.last_read));
                    }
                }
            }
        }
        last_until.sort_unstable();
        let mut last = initial;
        for (_, own) in last_until.iter_mut() {
            last = last.max(*own);
            *own = last;
        }
        found.clear();
        found.extend(history.writes.iter().map(|write| {
            let Interval { start, end } = write.at;
            if end == FOREVER {
                return None;
            }
            // Only a read that came after the end can have missed it. Mostly none has.
            if last <= end {
                return Some(0);
            }
            let older = last_until.partition_point(|(end, _)| *end < start);
            let missed = older.checked_sub(1).map_or(initial, |older| last_until[older].1);
            Some(missed.saturating_sub(end).max(0))
        }));
    }
}

/// The staleness of each read of a history, in the order of [`History::reads`].
pub fn of_reads(history: &History) -> Vec<Staleness> {
    let mut found = Vec::new();
    Stalenesses::default().of_reads(history, &mut found);
    found
}

/// The t-visibility of the known writes that a read followed, in nanoseconds, in the order of the writes.
pub fn of_writes(history: &History) -> Vec<i64> {
    let Some(last_read) = history.reads.last().map(|read| read.access.at.start) else { return Vec::new() };
    let mut found = Vec::new();
    Stalenesses::default().of_writes(history, &history.clusters(), &mut found);
    let followed = history.writes.iter().zip(found).filter(|(write, _)| write.at.end < last_read);
    followed.filter_map(|(_, visible)| visible).collect()
}

#[cfg(test)]
mod tests {
    use super::super::brute::{self, histories, history, r, shuffled, w};
    use super::super::history::{Access, Read};
    use super::*;
    use crate::validate::{RegisterWrite, may_return};

    #[test]
    fn staleness_is_what_exhaustive_search_finds() {
        let mut stale = 0;
        for (writes, reads) in histories(3_000, 31, 14) {
            let history = History::new(writes.clone(), reads.clone());
            let found = of_reads(&history);
            for (index, staleness) in found.iter().enumerate() {
                assert_eq!((staleness.k, staleness.t_ns), brute::staleness(&history, index), "{index} {history:?}");
                assert_eq!(staleness.k > 0, staleness.t_ns > 0);
                stale += u32::from(staleness.k > 0);
            }
            assert_eq!(of_reads(&shuffled(&writes, &reads, 3)), found);
        }
        assert!(stale > 500, "{stale}");
    }

    /// A read that saw a value that had been written is stale exactly if the validator finds it.
    #[test]
    fn stale_reads_are_the_unpredictable_ones() {
        let mut both = 0;
        for (writes, reads) in histories(6_000, 32, 40) {
            let history = History::new(writes, reads);
            let known = |write: &Access| RegisterWrite { at: write.at, places: 1, value: write.value };
            let registered: Vec<RegisterWrite> = history.writes.iter().map(known).collect();
            for (read, staleness) in history.reads.iter().zip(of_reads(&history)) {
                if history.written(read.saw).start > read.access.at.end {
                    continue;
                }
                let is_right = may_return(Some(0), &registered, 0, read.access.at, read.access.value);
                assert_eq!(is_right, staleness.k == 0, "{read:?} {history:?}");
                both += u32::from(!is_right);
            }
        }
        assert!(both > 1_000, "{both}");
    }

    /// From the definition, write by write and read by read.
    #[test]
    fn visibility_is_as_defined() {
        for (writes, reads) in histories(4_000, 33, 30) {
            let history = History::new(writes, reads);
            let mut expected = Vec::new();
            for write in history.writes.iter().filter(|write| write.at.end != FOREVER) {
                let after = || history.reads.iter().filter(|read| read.access.at.start > write.at.end);
                let misses = |read: &&Read| history.written(read.saw).end < write.at.start;
                let waits = after().filter(misses).map(|read| read.access.at.start - write.at.end);
                expected.extend(after().next().map(|_| (write.at.end, waits.max().unwrap_or(0))));
            }
            expected.sort_unstable_by_key(|(end, _)| *end);
            let (mut found, mut expected) =
                (of_writes(&history), expected.into_iter().map(|e| e.1).collect::<Vec<_>>());
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{history:?}");
        }
    }

    #[test]
    fn known_answers() {
        let stale = history(&[w(1, 0, 5), w(2, 10, 15), r(0, 25, 26), r(1, 40, 41), r(2, 50, 51)]);
        let found: Vec<_> = of_reads(&stale).iter().map(|read| (read.k, read.t_ns, read.age_ns)).collect();
        assert_eq!(found, [(2, 20, Some(10)), (1, 25, Some(25)), (0, 0, Some(35))]);
        // The first write is missed by the read at 25, the second one until 40.
        assert_eq!(of_writes(&stale), [20, 25]);
        // A write of unknown fate is not newer than anything.
        assert_eq!(of_reads(&history(&[w(1, 0, FOREVER), r(0, 9, 10)])), [Staleness::default()]);
        assert_eq!(of_writes(&history(&[w(1, 0, FOREVER), r(0, 9, 10)])), [0; 0]);
    }
}
