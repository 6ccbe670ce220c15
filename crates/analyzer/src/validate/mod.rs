//! The validator: finds every read that returned what no correct store could
//! have, given the intervals of all operations of a fragment in the order of their start.

mod counts;
mod memberships;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use schemas::oplog::Outcome;

pub use counts::{CountWrite, Range, acceptable_range};
pub use memberships::{ElementWrite, States, acceptable_states};
pub use state::{Item, State, UnknownId, Violation};

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

/// Checks the operations of a fragment one by one, in the order of their start.
///
/// A read can be checked once every write that may overlap it has come by: when
/// the stream has passed its end. Until then it waits in a window, first in,
/// first out. No read that is still to be checked starts before the first one in
/// the window; what ended before that is settled for all of them.
pub struct Validator {
    state: State,
    window: VecDeque<Row>,
    findings: Findings,
}

/// What the check of one read found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// What no correct store could have returned.
    pub violations: Vec<Violation>,
    /// The items that had been updated before, since the experiment's start.
    pub items: Vec<ItemRead>,
}

/// A count or a whole list in the answer to a read, with at least one write that
/// was complete before the read started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemRead {
    /// From the end of the last such write to the start of the read, in nanoseconds.
    pub age_ns: i64,
    /// Nothing of the item is wrong: it showed all those writes.
    pub is_fresh: bool,
}

impl ItemRead {
    /// None when the last write ended before the experiment's start, which is 0.
    fn after(last_end: i64, read_start: i64, is_fresh: bool) -> Option<ItemRead> {
        (last_end >= 0).then(|| ItemRead { age_ns: read_start - last_end, is_fresh })
    }
}

impl Validator {
    /// Starts from a state.
    pub fn new(state: State) -> Validator {
        Validator { state, window: VecDeque::new(), findings: Findings::default() }
    }

    /// Takes in the next row; rows come in the order of their start.
    pub fn enter(&mut self, row: Row) -> Result<(), UnknownId> {
        let at = match row.log.outcome {
            Outcome::Ok => Some(Interval { start: row.log.start_ns, end: row.log.end_ns }),
            Outcome::Unknown => Some(Interval { start: row.log.start_ns, end: FOREVER }),
            Outcome::Failed | Outcome::Skipped => None,
        };
        if let (Some(at), true) = (at, row.operation.action.is_write()) {
            let horizon = self.window.front().map_or(row.log.start_ns, |first| first.log.start_ns);
            self.state.register(&row.operation, at, horizon)?;
        }
        self.window.push_back(row);
        Ok(())
    }

    /// The first row of the window once nothing that starts at `now` or later can
    /// overlap it; without `now` the stream has ended.
    pub fn leave(&mut self, now: Option<i64>) -> Option<Row> {
        let first = self.window.front()?;
        let ready = !is_checked(first) || now.is_none_or(|now| now > first.log.end_ns);
        if ready { self.window.pop_front() } else { None }
    }

    /// What is found of a row that has just left the window.
    pub fn check(&mut self, row: &Row, observed: &[i64]) -> Result<&Findings, UnknownId> {
        self.findings.violations.clear();
        self.findings.items.clear();
        if is_checked(row) {
            let read = Interval { start: row.log.start_ns, end: row.log.end_ns };
            self.state.check(&row.operation, observed, read, row.log.start_ns, &mut self.findings)?;
        }
        Ok(&self.findings)
    }
}

/// Only a read that was answered can be wrong.
fn is_checked(row: &Row) -> bool {
    row.log.outcome == Outcome::Ok && row.operation.action.is_read()
}
