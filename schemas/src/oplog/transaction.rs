//! How a try of a transaction ended, from its rows in the log, and what that means for its operations.

use super::{LogRow, Outcome};
use crate::vocabulary::Control;

/// How a try of a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TryEnd {
    /// It was committed: all of it happened.
    Committed,
    /// The trace asked to abort it: none of it happened.
    AbortAsked,
    /// The store rolled it back because of others: none of it happened.
    Aborted,
    /// An error ended it: none of it happened.
    Failed,
    /// It is not known whether it was committed.
    Unknown,
    /// None of it was sent, because of an operation that it depends on or because the experiment ended.
    Skipped,
    /// Transactions were not used: each operation counts by itself.
    BestEffort,
}

impl TryEnd {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            TryEnd::Committed => "committed",
            TryEnd::AbortAsked => "abort",
            TryEnd::Aborted => "aborted",
            TryEnd::Failed => "failed",
            TryEnd::Unknown => "unknown",
            TryEnd::Skipped => "skipped",
            TryEnd::BestEffort => "best effort",
        }
    }

    /// Of the rows of a try: `begin` and `end` are those that begin and end it. The end is missing if the
    /// replayer was killed. `has_error` if an operation of the try failed or has an unknown outcome.
    pub fn of(begin: &LogRow, end: Option<(Control, &LogRow)>, has_error: bool) -> TryEnd {
        let is_noop = |row: &LogRow| row.outcome == Outcome::Ok && row.attempts == 0;
        if is_noop(begin) || end.is_some_and(|(_, end)| is_noop(end)) {
            return TryEnd::BestEffort;
        }
        let Some((control, end)) = end else { return TryEnd::Unknown };
        match (control, end.outcome) {
            (_, Outcome::Skipped) if begin.outcome == Outcome::Skipped => TryEnd::Skipped,
            // The replayer gave it up halfway, or could not begin it.
            (_, Outcome::Skipped) => TryEnd::Failed,
            (Control::Abort, Outcome::Ok) => TryEnd::AbortAsked,
            (_, Outcome::Ok) => TryEnd::Committed,
            (Control::Commit, Outcome::Unknown) => TryEnd::Unknown,
            (_, Outcome::Failed | Outcome::Unknown) => TryEnd::Failed,
            (_, Outcome::Aborted) if has_error => TryEnd::Failed,
            (_, Outcome::Aborted) => TryEnd::Aborted,
        }
    }

    /// What an operation of the try counts as, which had this outcome by itself.
    #[inline]
    pub fn counts_as(self, outcome: Outcome, writes: bool) -> Outcome {
        match (self, outcome) {
            (TryEnd::Aborted, Outcome::Ok) => Outcome::Aborted,
            (TryEnd::Failed, Outcome::Ok) => Outcome::Failed,
            (TryEnd::Unknown, Outcome::Ok) if writes => Outcome::Unknown,
            (_, outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcome: Outcome, attempts: u16) -> LogRow {
        LogRow {
            session: 0,
            step: 0,
            try_number: 0,
            thread: 0,
            due_ns: None,
            start_ns: 0,
            end_ns: 0,
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts,
            outcome,
        }
    }

    #[test]
    fn a_try_ends_as_its_last_row_says() {
        use Control::{Abort, Commit};
        use Outcome::{Aborted, Failed, Ok, Skipped, Unknown};
        let end = |control, outcome, has_error| TryEnd::of(&row(Ok, 1), Some((control, &row(outcome, 1))), has_error);
        assert_eq!(end(Commit, Ok, false), TryEnd::Committed);
        assert_eq!(end(Abort, Ok, false), TryEnd::AbortAsked);
        assert_eq!(end(Commit, Aborted, false), TryEnd::Aborted);
        assert_eq!(end(Commit, Aborted, true), TryEnd::Failed);
        assert_eq!(end(Commit, Failed, false), TryEnd::Failed);
        assert_eq!(end(Commit, Unknown, false), TryEnd::Unknown);
        assert_eq!(end(Abort, Unknown, false), TryEnd::Failed);
        assert_eq!(end(Commit, Skipped, false), TryEnd::Failed);
        assert_eq!(TryEnd::of(&row(Skipped, 0), Some((Commit, &row(Skipped, 0))), false), TryEnd::Skipped);
        assert_eq!(TryEnd::of(&row(Ok, 1), None, false), TryEnd::Unknown, "the replayer was killed");
        assert_eq!(TryEnd::of(&row(Ok, 0), Some((Commit, &row(Ok, 0))), false), TryEnd::BestEffort);
    }

    #[test]
    fn only_what_happened_counts_as_ok() {
        let counts = |end: TryEnd| [true, false].map(|writes| end.counts_as(Outcome::Ok, writes));
        assert_eq!(counts(TryEnd::Committed), [Outcome::Ok; 2]);
        assert_eq!(counts(TryEnd::BestEffort), [Outcome::Ok; 2]);
        assert_eq!(counts(TryEnd::AbortAsked), [Outcome::Ok; 2], "it did what the trace asks for");
        assert_eq!(counts(TryEnd::Aborted), [Outcome::Aborted; 2]);
        assert_eq!(counts(TryEnd::Failed), [Outcome::Failed; 2]);
        assert_eq!(counts(TryEnd::Unknown), [Outcome::Unknown, Outcome::Ok]);
        assert_eq!(TryEnd::Aborted.counts_as(Outcome::Failed, true), Outcome::Failed);
    }
}
