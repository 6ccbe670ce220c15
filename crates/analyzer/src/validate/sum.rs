//! A sum that every transaction keeps, such as that of all balances: what it was at the start, what
//! transactions took out and put in, and what the closing read has found.
//!
//! Money that is taken out and put in is known from the log, so it does not count as a change. What is
//! left is a change that no serial order of the transactions explains (ycsb-t-2014, section IV-C).

use serde::{Deserialize, Serialize};

/// What a transaction changes in the sum: exactly `net` more, and between `low` and `high` besides by
/// operations of unknown fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    net: i64,
    low: i64,
    high: i64,
}

impl Change {
    /// An operation has added this.
    pub fn add(&mut self, amount: i64) {
        self.net = self.net.saturating_add(amount);
    }

    /// An operation may have added this.
    pub fn may_add(&mut self, amount: i64) {
        self.low = self.low.saturating_add(amount.min(0));
        self.high = self.high.saturating_add(amount.max(0));
    }

    /// The same, if it is not known whether the transaction happened.
    pub fn unless_lost(self) -> Change {
        let Change { net, low, high } = self;
        Change { net: 0, low: net.saturating_add(low).min(0), high: net.saturating_add(high).max(0) }
    }
}

/// The sum of a fragment, or of several. Fragments share nothing, so each has a sum of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sum {
    /// At the start of the experiment.
    pub start: i64,
    /// By the closing read.
    pub end: i64,
    /// What transactions took out.
    pub captured: i64,
    /// What transactions put in.
    pub released: i64,
    /// What operations of unknown fate may have changed, at least and at most.
    pub unknown: (i64, i64),
    /// Transactions that began; tries of one count once.
    pub transactions: u64,
    /// Of these, those that the store did not run as transactions.
    pub apart: u64,
    /// What is not explained, without its sign; added up over fragments.
    pub off: u64,
    /// Whether the start or the end is not known.
    pub is_incomplete: bool,
}

impl Sum {
    /// Adds what a transaction has changed.
    pub fn add(&mut self, change: Change) {
        let Change { net, low, high } = change;
        self.captured = self.captured.saturating_sub(net.min(0));
        self.released = self.released.saturating_add(net.max(0));
        self.unknown = (self.unknown.0.saturating_add(low), self.unknown.1.saturating_add(high));
    }

    /// The sum of a fragment whose closing read is done.
    pub fn closed(mut self) -> Sum {
        let expected = i128::from(self.start) - i128::from(self.captured) + i128::from(self.released);
        let (low, high) = (expected + i128::from(self.unknown.0), expected + i128::from(self.unknown.1));
        let end = i128::from(self.end);
        let off = (low - end).max(end - high).max(0);
        self.off = u64::try_from(off).unwrap_or(u64::MAX);
        self
    }

    /// Adds the sum of other fragments.
    pub fn merge(&mut self, other: &Sum) {
        for (mine, theirs) in [
            (&mut self.start, other.start),
            (&mut self.end, other.end),
            (&mut self.captured, other.captured),
            (&mut self.released, other.released),
            (&mut self.unknown.0, other.unknown.0),
            (&mut self.unknown.1, other.unknown.1),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.transactions = self.transactions.saturating_add(other.transactions);
        self.apart = self.apart.saturating_add(other.apart);
        self.off = self.off.saturating_add(other.off);
        self.is_incomplete |= other.is_incomplete;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(start: i64, end: i64, changes: &[Change]) -> Sum {
        let mut sum = Sum { start, end, ..Sum::default() };
        changes.iter().for_each(|change| sum.add(*change));
        sum.closed()
    }

    fn certain(net: i64) -> Change {
        Change { net, ..Change::default() }
    }

    #[test]
    fn what_was_captured_and_released_is_no_change() {
        let kept = sum(1_000, 907, &[certain(-100), certain(7), certain(0)]);
        assert_eq!((kept.captured, kept.released, kept.off), (100, 7, 0));
        assert_eq!(sum(1_000, 906, &[certain(-100), certain(7)]).off, 1);
        assert_eq!(sum(1_000, 909, &[certain(-100), certain(7)]).off, 2);
    }

    /// A correct store is never accused, whichever operations of unknown fate have happened.
    #[test]
    fn what_may_have_happened_explains_all_between() {
        let mut half = Change::default();
        half.add(-1);
        half.may_add(1);
        for (end, off) in [(998, 1), (999, 0), (1_000, 0), (1_001, 1)] {
            assert_eq!(sum(1_000, end, &[half]).off, off, "{end}");
        }
        // A delete in a transaction whose commit was lost.
        for (end, off) in [(1_000, 0), (900, 0), (950, 0), (899, 1), (1_001, 1)] {
            assert_eq!(sum(1_000, end, &[certain(-100).unless_lost()]).off, off, "{end}");
        }
    }

    /// A gain of one fragment does not hide the loss of another.
    #[test]
    fn fragments_do_not_explain_each_other() {
        let mut whole = sum(10, 11, &[]);
        whole.merge(&sum(10, 8, &[]));
        assert_eq!((whole.start, whole.end, whole.off), (20, 19, 3));
    }
}
