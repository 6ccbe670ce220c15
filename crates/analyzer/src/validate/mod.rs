//! The validator: finds every read that returned data that no correct store could have returned.
//! It needs the intervals of all operations of a fragment, in the order of their start.
//!
//! `count`, `membership` and `register` are models of one item each: what a read of it may return,
//! given its writes. A family (in `family/`) says which operations change and observe which items.

#[cfg(test)]
pub(crate) mod brute;
pub(crate) mod count;
pub(crate) mod membership;
pub(crate) mod register;
pub(crate) mod sum;
#[cfg(test)]
mod tests;
pub(crate) mod touched;

use std::collections::{BTreeMap, VecDeque};

use schemas::oplog::{Outcome, TryEnd};
use schemas::vocabulary::Operation;

pub use count::{CountWrite, Range, acceptable_range};
pub use membership::{ElementWrite, States, acceptable_states};
pub use register::{RegisterWrite, may_return, newest_before};
pub use sum::{Change, Sum};
pub use touched::{Act, DELETED, INITIAL, Item, Touch, Touched};

use crate::join::Row;

/// The end of a write of unknown fate: it may happen at any time after its start, or never.
pub const FOREVER: i64 = i64::MAX;

/// When an operation ran. Intervals that touch overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Its start, in nanoseconds from the experiment's start.
    pub start: i64,
    /// Its end.
    pub end: i64,
}

/// The items of a fragment during an experiment, each with its initial state and the writes that are
/// not settled yet.
pub trait Items<O> {
    /// Registers a write. After this call, no read that starts before `horizon` is checked.
    fn register(&mut self, operation: &O, at: Interval, horizon: i64) -> Result<(), UnknownId>;

    /// Adds to `findings` what is wrong with the answer to a read, and how old its items were.
    /// The read starts at or after `horizon`, and every write that may overlap it is registered.
    /// An answer of the wrong shape says nothing about its items.
    fn check(
        &mut self,
        operation: &O,
        observed: &[i64],
        read: Interval,
        horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId>;

    /// Calls `each` with the versions of items that an operation read or wrote, for the check of
    /// transactions; with None for a read of an item whose version is not known.
    fn history(&self, _operation: &O, _observed: &[i64], _each: &mut dyn FnMut(Option<Touched>)) {}

    /// Calls `each` with the registers that an operation wrote, or that a read observed which ended then. All
    /// writes that started before the end of the read are registered.
    fn registers(&self, _operation: &O, _observed: &[i64], _end: i64, _each: &mut dyn FnMut(Item, Touch)) {}

    /// Whether the sessions before the experiment leave several states possible.
    fn is_open(&self) -> bool {
        false
    }

    /// Registers what the closing read before the experiment saw of an item. All writes before the
    /// experiment are registered, and none of it. What no correct store could have returned says
    /// nothing about the state.
    fn begin_with(&mut self, _operation: &O, _observed: &[i64]) -> Result<(), UnknownId> {
        Ok(())
    }

    /// Follows the sum of a family that has one. Gets every row once; those of a session are in their
    /// order, with all tries of a transaction.
    fn account(&mut self, _row: &Row<O>, _observed: &[i64]) {}

    /// Adds what the closing read saw of an item.
    fn account_closing(&mut self, _observed: &[i64]) {}

    /// The sum after the closing read; None if the family has none.
    fn sum(&mut self) -> Option<Sum> {
        None
    }
}

/// The item of an answer with a wrong number of values.
pub const SHAPE: &str = "shape";

/// A data item that a read returned and that no correct store could have returned: a row of
/// [`schemas::sealed::UNPREDICTABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong: the name of an item of the family, or [`SHAPE`].
    pub item: &'static str,
    /// Whose item it is.
    pub owner: u64,
    /// The element of a list, or the place in it.
    pub element: Option<i64>,
    /// What the read returned.
    pub observed: i64,
    /// The lowest correct value.
    pub low: i64,
    /// The highest correct value.
    pub high: i64,
}

/// An operation has an id that is not in the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} {id} is not in the fragment's data set")]
pub struct UnknownId {
    /// What the id stands for, such as `member`.
    pub what: &'static str,
    /// The id.
    pub id: u64,
}

/// Checks the operations of a fragment one by one, in the order of their start.
///
/// A read can be checked once every write that may overlap it is known: when the stream has
/// passed its end. Until then it waits in a window, first in, first out. No unchecked read starts
/// before the first one in the window. So writes that ended before that start are settled for all
/// of them.
pub struct Validator<I, O> {
    items: I,
    window: VecDeque<Row<O>>,
    /// When the transactions began that have rows in the window, or still to come, and how many began
    /// then. Their reads count from there.
    begun: BTreeMap<i64, u32>,
    findings: Findings,
}

/// The findings about one read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// The data that no correct store could have returned.
    pub violations: Vec<Violation>,
    /// The items that had been updated before the read, since the experiment's start.
    pub items: Vec<ItemRead>,
}

/// A count, a whole list or a record in the answer to a read, with at least one write that
/// was complete before the read started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemRead {
    /// From the end of the last such write to the start of the read, in nanoseconds.
    pub age_ns: i64,
    /// Whether nothing of the item is wrong: the read showed all those writes.
    pub is_fresh: bool,
}

impl ItemRead {
    /// None when the last write ended before the experiment's start, which is 0.
    pub fn after(last_end: i64, read_start: i64, is_fresh: bool) -> Option<ItemRead> {
        (last_end >= 0).then(|| ItemRead { age_ns: read_start - last_end, is_fresh })
    }
}

impl<O: Operation, I: Items<O>> Validator<I, O> {
    /// A validator that starts from this state of the items.
    pub fn new(items: I) -> Validator<I, O> {
        Validator { items, window: VecDeque::new(), begun: BTreeMap::new(), findings: Findings::default() }
    }

    /// The items.
    pub fn items(&self) -> &I {
        &self.items
    }

    /// Adds the next row; rows come in the order of their start.
    pub fn enter(&mut self, row: Row<O>) -> Result<(), UnknownId> {
        if row.of_try.is_some_and(|of_try| of_try.is_first) {
            *self.begun.entry(row.log.start_ns).or_default() += 1;
        }
        if let (Some(at), true) = (happened(&row), row.operation.writes()) {
            self.items.register(&row.operation, at, self.horizon(row.log.start_ns))?;
        }
        self.window.push_back(row);
        Ok(())
    }

    /// The items, for what the rows change in them besides.
    pub fn items_mut(&mut self) -> &mut I {
        &mut self.items
    }

    /// Removes the first row of the window, once nothing that starts at `now` or later can
    /// overlap it. Without `now` the stream has ended.
    pub fn leave(&mut self, now: Option<i64>) -> Option<Row<O>> {
        let first = self.window.front()?;
        let needed_until = match first.of_try {
            // The row that begins a transaction stays until all reads of it can be checked.
            Some(of_try) if of_try.is_first => Some(of_try.end_ns),
            _ => is_checked(first).then_some(first.log.end_ns),
        };
        if needed_until.zip(now).is_some_and(|(end, now)| now <= end) {
            return None;
        }
        let row = self.window.pop_front()?;
        if let Some(of_try) = row.of_try.filter(|of_try| of_try.is_last)
            && let Some(count) = self.begun.get_mut(&of_try.begin_ns)
        {
            *count -= 1;
            if *count == 0 {
                self.begun.remove(&of_try.begin_ns);
            }
        }
        Some(row)
    }

    /// No read that counts from an earlier time is still to be checked. `start` is that of the row at hand.
    fn horizon(&self, start: i64) -> i64 {
        let first = self.window.front().map_or(start, |first| first.log.start_ns.min(start));
        self.begun.first_key_value().map_or(first, |(begin, _)| first.min(*begin))
    }

    /// Checks a row that has just left the window.
    pub fn check(&mut self, row: &Row<O>, observed: &[i64]) -> Result<&Findings, UnknownId> {
        self.findings.violations.clear();
        self.findings.items.clear();
        if is_checked(row) {
            let read = Interval { start: row.snapshot_ns(), end: row.log.end_ns };
            let horizon = self.horizon(read.start);
            self.items.check(&row.operation, observed, read, horizon, &mut self.findings)?;
        }
        Ok(&self.findings)
    }
}

impl<O: Operation, I: Items<O>> Validator<I, O> {
    /// Checks a closing read. All rows must have entered before.
    pub fn check_closing(&mut self, operation: &O, observed: &[i64], read: Interval) -> Result<&Findings, UnknownId> {
        self.findings.violations.clear();
        self.findings.items.clear();
        // Closing reads are not in the order of their start. All of them start after the experiment's.
        self.items.check(operation, observed, read, 0, &mut self.findings)?;
        Ok(&self.findings)
    }
}

/// Only a read that was answered can be wrong.
fn is_checked<O: Operation>(row: &Row<O>) -> bool {
    let is_answered = row.log.outcome == Outcome::Ok && row.operation.reads();
    is_answered && row.of_try.is_none_or(|of_try| of_try.is_checked())
}

/// When an operation happened; None if it did not. One of a transaction happened between its start and
/// the end of the transaction, if that was committed.
pub(crate) fn happened<O: Operation>(row: &Row<O>) -> Option<Interval> {
    let start = row.log.start_ns;
    let outcome = match row.of_try {
        None => row.log.outcome,
        Some(of_try) => match (of_try.end, row.log.outcome) {
            (TryEnd::BestEffort | TryEnd::Committed, outcome) => outcome,
            (TryEnd::Unknown, Outcome::Ok | Outcome::Unknown) => Outcome::Unknown,
            _ if of_try.may_go_on => Outcome::Unknown,
            _ => return None,
        },
    };
    match outcome {
        Outcome::Ok => Some(Interval { start, end: row.visible_ns() }),
        Outcome::Unknown => Some(Interval { start, end: FOREVER }),
        Outcome::Failed | Outcome::Skipped | Outcome::Aborted => None,
    }
}
