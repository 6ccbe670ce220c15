//! The history of a register, and its clusters: a value with its write and its reads.
//!
//! A register holds what was written into it last, and every write writes a value of its own. So a
//! read says which write it saw.

use crate::validate::{FOREVER, Interval};

/// The time of the write of the initial value: before everything.
pub const BEFORE: i64 = i64::MIN;

/// The initial value of every register.
pub const INITIAL: i64 = 0;

/// Who ran an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clients {
    /// The thread of the replayer. Each thread has a connection of its own.
    pub thread: u32,
    /// On whose behalf the session ran.
    pub actor: u64,
}

/// A write of a register, or an answered read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The value that was written, or that the read saw.
    pub value: i64,
    /// When it ran. A write of unknown fate ends at [`FOREVER`].
    pub at: Interval,
    /// Who ran it.
    pub by: Clients,
    /// Of a read, whether it still counts: [`COUNTED`], [`NEW`], or the number of its operation.
    pub tag: u32,
}

/// The tag of a read that was counted before: it is only there for what comes after it.
pub const COUNTED: u32 = u32::MAX;

/// The tag of a read of which only its register is of interest.
pub const NEW: u32 = u32::MAX - 1;

/// In place of the value of a read that says nothing: no write has it.
pub const NOTHING: i64 = i64::MIN;

/// A read, and which write it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The read.
    pub access: Access,
    /// The index of the write that it saw in [`History::writes`]; None for the initial value.
    pub saw: Option<u32>,
}

/// The history of one register. It can be filled again, so that it allocates seldom.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The writes, by their start.
    pub writes: Vec<Access>,
    /// The reads whose write is known, by their start.
    pub reads: Vec<Read>,
    /// How many reads saw a value that no write of the history wrote. Nothing is concluded from them.
    pub unattributed: u64,
    /// Those of them that saw a value at all.
    pub lost: u64,
    by_value: Vec<(i64, u32)>,
}

/// How many of the newest writes are compared with a read before the writes are searched.
const NEAR: usize = 8;

impl History {
    /// The history of these writes and reads, in any order. Failed operations must be left out.
    pub fn new(mut writes: Vec<Access>, mut reads: Vec<Access>) -> History {
        let key = |access: &Access| (access.at.start, access.at.end, access.value);
        // Two reads of one value at the same time differ in nothing but their clients.
        writes.sort_unstable_by_key(key);
        reads.sort_unstable_by_key(|read| (key(read), read.by.thread, read.by.actor));
        let mut history = History { writes, ..History::default() };
        history.attribute(reads.into_iter());
        history
    }

    /// Takes in the reads, which come by their start. The writes must be complete.
    pub fn attribute(&mut self, reads: impl Iterator<Item = Access>) {
        self.reads.clear();
        self.by_value.clear();
        (self.unattributed, self.lost) = (0, 0);
        let mut begun = 0;
        for access in reads {
            let value = access.value;
            while begun < self.writes.len() && self.writes[begun].at.start <= access.at.end {
                begun += 1;
            }
            // Most reads see one of the newest values.
            let near = (begun.saturating_sub(NEAR)..begun).rev().find(|index| self.writes[*index].value == value);
            let saw = match near {
                Some(index) => Some(index as u32),
                None if value == INITIAL => None,
                None => match self.find(value) {
                    Some(index) => Some(index),
                    None => {
                        let is_new = u64::from(access.tag != COUNTED);
                        self.unattributed += is_new;
                        self.lost += if value == NOTHING { 0 } else { is_new };
                        continue;
                    }
                },
            };
            self.reads.push(Read { access, saw });
        }
    }

    /// The write of a value.
    fn find(&mut self, value: i64) -> Option<u32> {
        if value == NOTHING {
            return None;
        }
        if self.by_value.is_empty() {
            self.by_value.extend((0..).zip(&self.writes).map(|(index, write)| (write.value, index)));
            self.by_value.sort_unstable();
        }
        let at = self.by_value.binary_search_by_key(&value, |(value, _)| *value).ok()?;
        Some(self.by_value[at].1)
    }

    /// When the write that a read saw ran.
    pub fn written(&self, saw: Option<u32>) -> Interval {
        saw.map_or(Interval { start: BEFORE, end: BEFORE }, |index| self.writes[index as usize].at)
    }

    /// The clusters: first that of the initial value, then one for each write in the order of
    /// [`History::writes`]. A write of unknown fate that no read saw has none.
    pub fn clusters(&self) -> Vec<Cluster> {
        let mut all = Vec::new();
        self.clusters_after(&mut all, BEFORE, |_| None);
        all
    }

    /// The same, where reads that are not in the history any more have changed the clusters: when the last
    /// one of the initial value started, and what is known of the value of each write.
    pub fn clusters_after(
        &self,
        all: &mut Vec<Cluster>,
        initial_last_read: i64,
        known: impl Fn(u32) -> Option<Cluster>,
    ) {
        all.clear();
        let initial = Cluster::of(None, Interval { start: BEFORE, end: BEFORE });
        all.push(Cluster { last_read: initial_last_read, ..initial });
        all.extend((0..).zip(&self.writes).map(|(index, write)| {
            let own = Cluster::of(Some(index), write.at);
            known(index).map_or(own, |known| Cluster { write: Some(index), ..known })
        }));
        for read in &self.reads {
            let cluster = &mut all[read.saw.map_or(0, |index| index as usize + 1)];
            let Interval { start, end } = read.access.at;
            cluster.first_end = cluster.first_end.min(end);
            cluster.last_read = cluster.last_read.max(start);
            cluster.future = cluster.future.max(cluster.written.saturating_sub(end));
        }
        all.retain(|cluster| cluster.first_end != FOREVER);
    }
}

/// A value: its write and its reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// The index of the write in [`History::writes`]; None for the initial value.
    pub write: Option<u32>,
    /// The start of the write.
    pub written: i64,
    /// f: the least end of the write and its reads. The value was in the register by then.
    pub first_end: i64,
    /// The greatest start of its reads; [`BEFORE`] without reads.
    pub last_read: i64,
    /// How long before the start of the write a read of it ended, at most; else 0.
    pub future: i64,
}

impl Cluster {
    fn of(write: Option<u32>, at: Interval) -> Cluster {
        Cluster { write, written: at.start, first_end: at.end, last_read: BEFORE, future: 0 }
    }

    /// s: the greatest start of the write and its reads. The value was still to be written or read
    /// then.
    pub fn last_start(&self) -> i64 {
        self.written.max(self.last_read)
    }
}

/// For each beginning of a list of numbers, its two greatest ones and their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Peaks {
    each: Vec<[(i64, u32); 2]>,
}

impl Peaks {
    #[cfg(test)]
    pub(super) fn new(numbers: impl Iterator<Item = i64>) -> Peaks {
        let mut peaks = Peaks::default();
        peaks.fill(numbers);
        peaks
    }

    pub(super) fn fill(&mut self, numbers: impl Iterator<Item = i64>) {
        let mut peaks = [(BEFORE, u32::MAX); 2];
        self.each.clear();
        self.each.extend((0..).zip(numbers).map(|(place, number)| {
            if number > peaks[0].0 {
                peaks = [(number, place), peaks[0]];
            } else if number > peaks[1].0 {
                peaks[1] = (number, place);
            }
            peaks
        }));
    }

    /// The greatest of the first numbers up to `last`, without the one at `without`, and its place.
    pub(super) fn greatest(&self, last: usize, without: usize) -> (i64, usize) {
        let peaks = &self.each[last];
        let (number, place) = peaks[usize::from(peaks[0].1 as usize == without)];
        (number, place as usize)
    }
}

/// The greatest `min(falls(place), rises(place))` of the places below `end`, and its place. `falls` never
/// rises and `rises` never falls, so the greatest one is where they cross.
pub(super) fn crossing(end: usize, falls: impl Fn(usize) -> i64, rises: impl Fn(usize) -> i64) -> Option<(i64, usize)> {
    let crossed = |place: usize| rises(place) >= falls(place);
    // What conflicts is near the end, so the search begins there, with steps that grow.
    let (mut low, mut high, mut step) = (0, end, 1);
    while high > 0 {
        let before = high.saturating_sub(step);
        if !crossed(before) {
            low = before + 1;
            break;
        }
        (high, step) = (before, step * 2);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if crossed(middle) { high = middle } else { low = middle + 1 }
    }
    let at = |place: usize| (falls(place).min(rises(place)), place);
    let after = (low < end).then(|| at(low));
    let before = low.checked_sub(1).map(at);
    after.max(before)
}

#[cfg(test)]
mod tests {
    use super::super::brute::{histories, shuffled};
    use super::*;

    #[test]
    fn a_history_does_not_depend_on_the_order_of_input() {
        for (writes, reads) in histories(500, 1, 12) {
            let (a, b) = (History::new(writes.clone(), reads.clone()), shuffled(&writes, &reads, 99));
            assert_eq!(
                (a.writes.clone(), a.reads.clone(), a.clusters()),
                (b.writes.clone(), b.reads.clone(), b.clusters())
            );
        }
    }

    #[test]
    fn reads_of_values_that_no_write_wrote_are_left_out() {
        let access =
            |value, start, end| Access { value, at: Interval { start, end }, by: Clients::default(), tag: NEW };
        let history = History::new(vec![access(7, 0, 5)], vec![access(9, 6, 7), access(7, 6, 8), access(0, 1, 2)]);
        assert_eq!(history.unattributed, 1);
        assert_eq!(history.reads.iter().map(|read| read.saw).collect::<Vec<_>>(), [None, Some(0)]);
        // A write of unknown fate counts once a read saw it.
        let unknown = access(8, 0, FOREVER);
        assert_eq!(History::new(vec![unknown], vec![]).clusters().len(), 1);
        let seen = History::new(vec![unknown], vec![access(8, 4, 5)]).clusters()[1];
        assert_eq!((seen.first_end, seen.last_start()), (5, 4));
    }

    #[test]
    fn peaks_leave_one_place_out() {
        let peaks = Peaks::new([3, 9, 4, 9].into_iter());
        assert_eq!([peaks.greatest(0, 0).0, peaks.greatest(2, 1).0, peaks.greatest(3, 1).0], [BEFORE, 4, 9]);
        assert_eq!(peaks.greatest(3, 0), (9, 1));
    }
}
