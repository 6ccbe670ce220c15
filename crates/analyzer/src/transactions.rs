//! Puts the rows of a transaction's try together, since what its operations count as is known only at its
//! end, and finds the trace rows of later tries.

use std::collections::HashMap;

use schemas::oplog::{LogRow, Outcome, TryEnd};
use schemas::trace::TraceRow;
use schemas::verdict::TransactionFigures;
use schemas::vocabulary::{Control, Operation};

use crate::join::{JoinError, OfTry, Row};

/// Counts a row of a try.
pub(crate) trait CountTries {
    fn add<O: Operation>(&mut self, row: &Row<O>, of_try: &OfTry);
}

impl CountTries for TransactionFigures {
    fn add<O: Operation>(&mut self, row: &Row<O>, of_try: &OfTry) {
        self.rows += u64::from(row.operation.control().is_some());
        if !of_try.is_last {
            return;
        }
        self.tries += 1;
        self.transactions += u64::from(row.log.try_number == 0);
        *match of_try.end {
            TryEnd::Committed => &mut self.committed,
            TryEnd::AbortAsked => &mut self.aborts,
            TryEnd::Aborted => &mut self.aborted,
            TryEnd::Failed => &mut self.failed,
            TryEnd::Unknown => &mut self.unknown,
            TryEnd::Skipped => &mut self.skipped,
            TryEnd::BestEffort => &mut self.best_effort,
        } += 1;
    }
}

/// The tries that are under way in a log, each on a thread of its own.
pub(crate) struct Tries<O> {
    open: HashMap<u32, Vec<Row<O>>>,
    /// The trace rows of the transaction that a thread tried last, each with the number of the last try.
    known: HashMap<u32, Vec<(TraceRow<O>, u16)>>,
    /// Whether the log is that of a killed replayer.
    is_torn: bool,
}

impl<O: Operation> Tries<O> {
    pub(crate) fn new(is_torn: bool) -> Tries<O> {
        Tries { open: HashMap::new(), known: HashMap::new(), is_torn }
    }

    /// Remembers the trace row of a first try.
    pub(crate) fn remember(&mut self, thread: u32, row: TraceRow<O>) {
        let known = self.known.entry(thread).or_default();
        if known.first().is_some_and(|(first, _)| (first.session, first.txn) != (row.session, row.txn)) {
            known.clear();
        }
        known.push((row, 0));
    }

    /// The trace row of a later try.
    pub(crate) fn again(&mut self, log: &LogRow) -> Result<TraceRow<O>, JoinError> {
        let (session, step) = (log.session, log.step);
        let known = self.known.get_mut(&log.thread).map(Vec::as_mut_slice).unwrap_or_default();
        match known.iter_mut().find(|(row, _)| (row.session, row.step) == (session, step)) {
            Some((row, number)) if log.try_number == *number + 1 => {
                *number = log.try_number;
                Ok(*row)
            }
            _ => Err(JoinError::OtherTry { session, step, number: log.try_number }),
        }
    }

    /// Takes a row in the order of the log. Calls `each` with the rows whose try is complete.
    pub(crate) fn push(&mut self, row: Row<O>, mut each: impl FnMut(Row<O>)) {
        if row.txn.is_none() {
            return each(row);
        }
        let ends = matches!(row.operation.control(), Some(Control::Commit | Control::Abort));
        let rows = self.open.entry(row.log.thread).or_default();
        rows.push(row);
        if ends {
            complete(rows, self.is_torn, each);
            rows.clear();
        }
    }

    /// The earliest start of the rows that [`Tries::push`] has not passed on.
    pub(crate) fn earliest(&self) -> i64 {
        self.open.values().filter_map(|rows| rows.first()).map(|row| row.log.start_ns).min().unwrap_or(i64::MAX)
    }

    /// Passes on the rows of tries that a killed replayer did not end.
    pub(crate) fn flush(&mut self, mut each: impl FnMut(Row<O>)) {
        for (_, rows) in self.open.drain() {
            complete(&rows, self.is_torn, &mut each);
        }
    }
}

/// Passes on the rows of a try with what is known of it.
fn complete<O: Operation>(rows: &[Row<O>], is_torn: bool, mut each: impl FnMut(Row<O>)) {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
    let ending = last.operation.control().filter(|control| *control != Control::Begin);
    let has_error = rows.iter().any(|row| {
        row.operation.control().is_none()
            && matches!(row.log.outcome, Outcome::Failed | Outcome::Unknown | Outcome::Skipped)
    });
    let end = TryEnd::of(&first.log, ending.map(|control| (control, &last.log)), has_error);
    for (place, row) in rows.iter().enumerate() {
        let of_try = OfTry {
            end,
            begin_ns: first.log.start_ns,
            end_ns: last.log.end_ns,
            is_first: place == 0,
            is_last: place + 1 == rows.len(),
            may_go_on: is_torn && end == TryEnd::Aborted,
        };
        each(Row { of_try: Some(of_try), ..*row });
    }
}
