//! Counts: which values may a read return, given the writes that change the
//! count and when each of them ran.

use super::{FOREVER, Interval};

/// A write that changes a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountWrite {
    /// When it ran; [`FOREVER`] is the end of one of unknown fate.
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
    /// Is the value in the range?
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

/// The values that some order of the writes and the read, in keeping with
/// their intervals, gives to the read.
///
/// The writes before the read are a set that holds, with each write, all those
/// that ended before it started. Such a set is told by its latest start s:
/// of the writes that overlap the read, those that ended before s are in, one
/// that starts at s is in, those open at s may be in or out. When every delta is
/// 1 or -1 each value between the bounds is reached, else some may not be.
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

/// The sums of the sets that hold at least one of the writes.
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
        // Whatever ended before this start also started before it, so it has been counted as open.
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

/// A count in the course of an experiment.
#[derive(Debug, Clone)]
pub(super) struct Count {
    /// The initial value and all writes that every later read must see.
    settled: i64,
    /// Writes of unknown fate that no later read need see or miss: the sums of the negative and positive ones.
    free: Range,
    open: Vec<CountWrite>,
    /// The end of the last of the settled writes.
    last_end: i64,
}

impl Count {
    pub(super) fn new(initial: i64) -> Count {
        Count { settled: initial, free: Range::default(), open: Vec::new(), last_end: i64::MIN }
    }

    pub(super) fn register(&mut self, write: CountWrite, horizon: i64) {
        self.settle(horizon);
        self.open.push(write);
    }

    /// What a read may return that starts at or after the horizon.
    pub(super) fn acceptable(&mut self, read: Interval, horizon: i64) -> Range {
        self.settle(horizon);
        let known = if self.open.is_empty() {
            Range { low: self.settled, high: self.settled }
        } else {
            acceptable_range(self.settled, &self.open, read)
        };
        Range { low: known.low + self.free.low, high: known.high + self.free.high }
    }

    /// When the last write ended that was complete before `start`, at or after the
    /// horizon; the smallest number when there is none.
    pub(super) fn last_end_before(&self, start: i64) -> i64 {
        let ends = self.open.iter().map(|write| write.at.end).filter(|end| *end < start);
        ends.fold(self.last_end, i64::max)
    }

    /// Folds what is the same for every read from the horizon on. A write of
    /// unknown fate asks for the writes that ended before its start; once the horizon
    /// has passed that start, all those are settled, so it may be in or out at will.
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
