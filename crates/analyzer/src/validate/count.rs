//! Counts: the values that a read may return, given the writes that change the count and when
//! each of them ran.

use super::{FOREVER, Interval};

/// A write that changes a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountWrite {
    /// When it ran; a write of unknown fate ends at [`FOREVER`].
    pub at: Interval,
    /// By how much it changes the count.
    pub delta: i64,
}

/// The smallest and the largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// The smallest.
    pub low: i64,
    /// The largest.
    pub high: i64,
}

impl Range {
    /// Whether the value is in the range.
    pub fn contains(self, value: i64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    fn include(&mut self, other: Range) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    fn shifted(self, by: i64) -> Range {
        Range { low: self.low + by, high: self.high + by }
    }
}

/// The values that the read may return, over every order of the writes and the read that agrees
/// with their intervals.
///
/// The writes before the read are a set. If it contains a write, it contains all writes that
/// ended before that one started. The sets are enumerated by their latest start s. Of the writes
/// that overlap the read, those that ended before s are in the set, and so is one that starts at
/// s. Those that are open at s may be in the set or not. If every delta is 1 or -1, each value
/// between the bounds is possible; otherwise some may not be.
pub fn acceptable_range(base: i64, writes: &[CountWrite], read: Interval) -> Range {
    let mut must = base;
    let mut overlapping = Vec::with_capacity(writes.len());
    for write in writes {
        if write.at.end < read.start {
            must += write.delta;
        } else if write.at.start <= read.end {
            overlapping.push(*write);
        }
    }
    let mut range = Range { low: must, high: must };
    if !overlapping.is_empty() {
        range.include(sweep(&mut overlapping).shifted(must));
    }
    range
}

/// The sums of the sets that contain at least one of the writes.
fn sweep(writes: &mut [CountWrite]) -> Range {
    writes.sort_unstable_by_key(|w| w.at.start);
    let mut by_end: Vec<(i64, i64)> = writes.iter().map(|w| (w.at.end, w.delta)).collect();
    by_end.sort_unstable();
    let mut by_end = by_end.into_iter().peekable();

    let mut ended = 0;
    let mut open = Range::default();
    let mut found: Option<Range> = None;
    for group in writes.chunk_by(|a, b| a.at.start == b.at.start) {
        for write in group {
            open.low += write.delta.min(0);
            open.high += write.delta.max(0);
        }
        // A write that ended before this start also started before it, so it has been counted as
        // open.
        while let Some((_, delta)) = by_end.next_if(|(end, _)| *end < group[0].at.start) {
            ended += delta;
            open.low -= delta.min(0);
            open.high -= delta.max(0);
        }
        for write in group {
            let others = Range { low: open.low - write.delta.min(0), high: open.high - write.delta.max(0) };
            let with = others.shifted(ended + write.delta);
            found.get_or_insert(with).include(with);
        }
    }
    found.unwrap_or_default()
}

/// A count during an experiment.
#[derive(Debug, Clone)]
pub(crate) struct Count {
    /// The initial value and all writes that every later read must see.
    settled: i64,
    /// Writes of unknown fate that any later read may see or not: the sums of the negative and of
    /// the positive ones.
    free: Range,
    open: Vec<CountWrite>,
    /// The latest end of a settled write.
    last_end: i64,
}

impl Count {
    pub(crate) fn new(initial: i64) -> Count {
        Count { settled: initial, free: Range::default(), open: Vec::new(), last_end: i64::MIN }
    }

    pub(crate) fn register(&mut self, write: CountWrite, horizon: i64) {
        self.settle(horizon);
        self.open.push(write);
    }

    /// The values that a read may return that starts at or after the horizon.
    pub(crate) fn acceptable(&mut self, read: Interval, horizon: i64) -> Range {
        self.settle(horizon);
        let known = if self.open.is_empty() {
            Range { low: self.settled, high: self.settled }
        } else {
            acceptable_range(self.settled, &self.open, read)
        };
        Range { low: known.low + self.free.low, high: known.high + self.free.high }
    }

    /// The end of the last write that was complete before `start`, which is at or after the
    /// horizon; the smallest number if there is none.
    pub(crate) fn last_end_before(&self, start: i64) -> i64 {
        let ends = self.open.iter().map(|write| write.at.end).filter(|end| *end < start);
        ends.fold(self.last_end, i64::max)
    }

    /// Settles the writes that are the same for every read from the horizon on. A write of
    /// unknown fate requires the writes that ended before its start. Once the horizon has passed
    /// that start, all those are settled, so any read may see the write or not.
    fn settle(&mut self, horizon: i64) {
        let Count { settled, free, open, last_end } = self;
        open.retain(|write| {
            if write.at.end < horizon {
                *settled += write.delta;
                *last_end = write.at.end.max(*last_end);
                false
            } else if write.at.end == FOREVER && write.at.start <= horizon {
                free.low += write.delta.min(0);
                free.high += write.delta.max(0);
                false
            } else {
                true
            }
        });
    }
}
