//! What every row of a trace set must be, so that a replay can follow it. Trace sets come from
//! elsewhere, and the sums in a manifest only say that a file is the one that its writer meant.

use std::ops::Range;

use super::{ACTOR, Chunk};
use crate::arrivals::DUE_US_MAX;
use crate::vocabulary::{Control, Operation as _, Vocabulary};

/// What a family expects of the operations of a fragment, besides what every trace has.
pub trait Rules<V: Vocabulary>: Send {
    /// Refuses the first of these rows whose operation does not fit the specification.
    fn check(&self, chunk: &Chunk<V>, rows: Range<usize>) -> Result<(), BadRow>;
}

/// A row that does not fit the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The row in its chunk.
    pub row: usize,
    /// The column, its value, and what is wrong with it.
    pub message: String,
}

/// The rules of a family that expects nothing more.
#[derive(Debug, Clone, Copy)]
pub struct NoRules;

impl<V: Vocabulary> Rules<V> for NoRules {
    fn check(&self, _chunk: &Chunk<V>, _rows: Range<usize>) -> Result<(), BadRow> {
        Ok(())
    }
}

/// What the envelopes of a trace must have, by its specification.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The number of actors; their ids are lower.
    pub actors: u64,
    /// Whether sessions have due times.
    pub due_times: DueTimes,
}

/// Whether sessions have due times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueTimes {
    /// Every session has one (open loop).
    All,
    /// No session has one (closed loop).
    None,
}

/// Checks the rows of a fragment in their order.
pub(super) struct RowCheck<V> {
    order: Order,
    rules: Box<dyn Rules<V>>,
}

impl<V: Vocabulary> RowCheck<V> {
    /// From a session on.
    pub(super) fn new(expected: Expected, rules: Box<dyn Rules<V>>, first_session: u64) -> RowCheck<V> {
        RowCheck { order: Order { session: first_session, step: 0, due_us: 0, open: None, expected }, rules }
    }

    /// Expects this session first.
    pub(super) fn starting_at(&mut self, first_session: u64) {
        self.order.session = first_session;
    }

    /// Checks the rows that follow those before. The error names session, step and column.
    pub(super) fn check(&mut self, chunk: &Chunk<V>, rows: Range<usize>) -> Result<(), String> {
        rows.clone().try_for_each(|row| {
            self.order.check(chunk, row)?;
            if V::HAS_TRANSACTIONS { self.order.check_transaction(chunk, row) } else { Ok(()) }
        })?;
        self.rules.check(chunk, rows).map_err(|BadRow { row, message }| {
            let (session, step) = (chunk.session(row), chunk.step(row));
            format!(
                "session {session} step {step}: {message}; the trace set does not fit its specification, generate it \
                 again"
            )
        })
    }
}

impl<V: Vocabulary> RowCheck<V> {
    /// Checks that the last session is whole.
    pub(super) fn check_end(&self) -> Result<(), String> {
        self.order.check_closed(self.order.session)
    }
}

/// Checks the envelopes of a trace's rows. A replay depends on the order of sessions, and an
/// operation must not wait for a later one.
struct Order {
    session: u64,
    step: u16,
    /// The due time of the last session that had one.
    due_us: u64,
    /// The step that began the transaction that is open.
    open: Option<u16>,
    expected: Expected,
}

impl Order {
    /// Refuses a session that leaves its transaction open.
    fn check_closed(&self, session: u64) -> Result<(), String> {
        match self.open {
            None => Ok(()),
            Some(begin) => Err(format!(
                "session {session} step {begin} begins a transaction that no commit or abort of the session ends; a \
                 transaction must not leave its session"
            )),
        }
    }

    /// Refuses transactions that are nested, or not closed, and operations that are not of the
    /// transaction that is open. The order of rows is checked before.
    fn check_transaction<V: Vocabulary>(&mut self, chunk: &Chunk<V>, row: usize) -> Result<(), String> {
        let (session, step, txn) = (chunk.session(row), chunk.step(row), chunk.txn(row));
        if step == 0 {
            self.check_closed(session.saturating_sub(1))?;
        }
        let control = chunk.operation(row).control();
        let expected = if control == Some(Control::Begin) { Some(step) } else { self.open };
        let wrong = |what: String| Err(format!("session {session} step {step} {what}; the trace set is damaged"));
        match (control, self.open) {
            (Some(Control::Begin), Some(begin)) => {
                return wrong(format!("begins a transaction inside of the one that began at step {begin}"));
            }
            (Some(Control::Commit | Control::Abort), None) => {
                return wrong("ends a transaction, and none has begun".to_string());
            }
            _ => {}
        }
        if txn != expected {
            let named = |txn: Option<u16>| txn.map_or("empty".to_string(), |step| step.to_string());
            return wrong(format!("has txn {}, expected {}", named(txn), named(expected)));
        }
        self.open = if matches!(control, Some(Control::Commit | Control::Abort)) { None } else { expected };
        Ok(())
    }

    fn check<V: Vocabulary>(&mut self, chunk: &Chunk<V>, row: usize) -> Result<(), String> {
        let (session, step) = (chunk.session(row), chunk.step(row));
        let follows =
            (session, step) == (self.session, self.step) || (self.step > 0 && (session, step) == (self.session + 1, 0));
        if !follows {
            return Err(format!("session {session} step {step} is out of order; the trace set is damaged"));
        }
        // An operation may depend on earlier steps of its own session.
        let reach = session + u64::from(step > 0);
        if let Some(after) = chunk.after(row).filter(|after| *after >= reach) {
            return Err(format!(
                "session {session} step {step} depends on itself or on a later session (after is {after}); the trace \
                 set is damaged"
            ));
        }
        self.check_due(session, step, chunk.due_us(row))?;
        let actor = chunk.actor(row);
        if actor >= self.expected.actors {
            return Err(format!(
                "session {session} step {step}: {ACTOR} {actor} does not exist (the data set has {} of them); the \
                 trace set is damaged",
                self.expected.actors
            ));
        }
        (self.session, self.step) = (session, step.wrapping_add(1));
        Ok(())
    }

    /// Refuses due times that no pacer could keep, or that the specification does not ask for.
    fn check_due(&mut self, session: u64, step: u16, due_us: Option<u64>) -> Result<(), String> {
        let damaged = "the trace set is damaged";
        let unfit = "the trace set does not fit its specification, generate it again";
        match (step, self.expected.due_times, due_us) {
            (0, DueTimes::None, None) => Ok(()),
            (0, DueTimes::None, Some(due_us)) => Err(format!(
                "session {session} step 0 has a due time (due_us is {due_us}), and the specification has no arrivals; {unfit}"
            )),
            (0, DueTimes::All, None) => Err(format!(
                "session {session} step 0 has no due time (due_us), and the specification has arrivals; {unfit}"
            )),
            (0, DueTimes::All, Some(due_us)) if due_us > DUE_US_MAX => Err(format!(
                "session {session} step 0 is due at {due_us} µs (due_us), and at most 2^40 µs are possible; {damaged}"
            )),
            (0, DueTimes::All, Some(due_us)) if due_us < self.due_us => Err(format!(
                "session {session} step 0 is due at {due_us} µs (due_us), before the session in front of it ({} µs); {damaged}",
                self.due_us
            )),
            (0, DueTimes::All, Some(due_us)) => {
                self.due_us = due_us;
                Ok(())
            }
            (_, _, None) => Ok(()),
            (_, _, Some(due_us)) => Err(format!(
                "session {session} step {step} has a due time (due_us is {due_us}), and only the first step of a \
                 session has one; {damaged}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::social::{Action, Operation, Social};
    use crate::trace::TraceRow;

    const OPERATION: Operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };

    fn refusal_of(rows: &[TraceRow<Operation>], due_times: DueTimes) -> Option<String> {
        let chunk: Chunk<Social> = rows.iter().copied().collect();
        RowCheck::new(Expected { actors: 1, due_times }, Box::new(NoRules), 5).check(&chunk, 0..chunk.len()).err()
    }

    fn refusal(rows: &[TraceRow<Operation>]) -> Option<String> {
        refusal_of(rows, DueTimes::None)
    }

    fn check(rows: &[(u64, u16, Option<u64>)], expect: Option<&str>) {
        let row = |(session, step, after): &(u64, u16, Option<u64>)| TraceRow {
            after: *after,
            ..TraceRow::plain(*session, *step, OPERATION, 0)
        };
        let refused = refusal(&rows.iter().map(row).collect::<Vec<_>>());
        match (&refused, expect) {
            (None, None) => {}
            (Some(message), Some(words)) => assert!(message.contains(words), "{message}"),
            _ => panic!("{rows:?}: {refused:?}"),
        }
    }

    /// A session that waited for a later one would wait for ever.
    #[test]
    fn traces_out_of_order_are_refused() {
        check(&[(5, 0, None), (5, 1, Some(3)), (5, 2, Some(5)), (6, 0, Some(5)), (7, 0, None)], None);
        check(&[(6, 0, None)], Some("session 6 step 0 is out of order"));
        check(&[(5, 0, None), (7, 0, None)], Some("session 7 step 0"));
        check(&[(5, 0, None), (5, 0, None)], Some("session 5 step 0"));
        check(&[(5, 1, None)], Some("session 5 step 1"));
        check(&[(5, 0, Some(5))], Some("session 5 step 0 depends on itself"));
        check(
            &[(5, 0, None), (5, 1, Some(6))],
            Some("session 5 step 1 depends on itself or on a later session (after is 6)"),
        );
    }

    #[test]
    fn due_times_are_those_of_an_open_loop() {
        use DueTimes::{All, None as Closed};
        let check = |due_times, rows: &[(u64, u16, Option<u64>)], expect: Option<&str>| {
            let row = |(session, step, due_us): &(u64, u16, Option<u64>)| TraceRow {
                due_us: *due_us,
                ..TraceRow::plain(*session, *step, OPERATION, 0)
            };
            let refused = refusal_of(&rows.iter().map(row).collect::<Vec<_>>(), due_times);
            match (&refused, expect) {
                (None, None) => {}
                (Some(message), Some(words)) => assert!(message.contains(words), "{message}"),
                _ => panic!("{rows:?}: {refused:?}"),
            }
        };
        let last = 1 << 40;
        check(All, &[(5, 0, Some(0)), (5, 1, None), (6, 0, Some(7)), (7, 0, Some(7)), (8, 0, Some(last))], None);
        check(
            All,
            &[(5, 0, Some(last + 1))],
            Some("session 5 step 0 is due at 1099511627777 µs (due_us), and at most 2^40"),
        );
        check(
            All,
            &[(5, 0, Some(9)), (5, 1, None), (6, 0, Some(8))],
            Some("session 6 step 0 is due at 8 µs (due_us), before the session in front of it (9 µs)"),
        );
        check(All, &[(5, 0, Some(1)), (6, 0, None)], Some("session 6 step 0 has no due time (due_us)"));
        check(All, &[(5, 0, Some(1)), (5, 1, Some(1))], Some("session 5 step 1 has a due time (due_us is 1)"));
        check(Closed, &[(5, 0, None), (5, 1, Some(1))], Some("session 5 step 1 has a due time"));
        check(Closed, &[(5, 0, None), (6, 0, Some(7))], Some("session 6 step 0 has a due time (due_us is 7)"));
    }

    #[test]
    fn transactions_are_whole_and_not_nested() {
        use crate::vocabulary::kv::{Kv, Operation, Verb, WriteId};
        let check = |rows: &[(u64, u16, Verb, Option<u16>)], expect: &str| {
            let row = |(session, step, verb, txn): &(u64, u16, Verb, Option<u16>)| {
                let operation = Operation {
                    verb: *verb,
                    key: 0,
                    fields: 0,
                    length: 0,
                    id: WriteId::new(0, *session, *step),
                    amount: 0,
                };
                TraceRow { txn: *txn, ..TraceRow::plain(*session, *step, operation, 0) }
            };
            let chunk: Chunk<Kv> = rows.iter().map(row).collect();
            let expected = Expected { actors: 1, due_times: DueTimes::None };
            let mut check = RowCheck::new(expected, Box::new(NoRules), 5);
            let refused = check.check(&chunk, 0..chunk.len()).and_then(|()| check.check_end()).err();
            match &refused {
                None => assert_eq!(expect, "", "{rows:?}"),
                Some(message) => assert!(!expect.is_empty() && message.contains(expect), "{rows:?}: {message}"),
            }
        };
        use Verb::{Abort, Begin, Commit, Read};
        let begin = (5, 0, Begin, Some(0));
        check(&[begin, (5, 1, Read, Some(0)), (5, 2, Commit, Some(0)), (6, 0, Read, None)], "");
        check(&[begin, (5, 1, Abort, Some(0)), (5, 2, Begin, Some(2)), (5, 3, Commit, Some(2))], "");
        check(
            &[begin, (5, 1, Begin, Some(1))],
            "session 5 step 1 begins a transaction inside of the one that began at step 0",
        );
        check(&[begin, (6, 0, Read, None)], "session 5 step 0 begins a transaction that no commit or abort");
        check(&[begin, (5, 1, Read, Some(0))], "session 5 step 0 begins a transaction that no commit or abort");
        check(&[(5, 0, Commit, None)], "session 5 step 0 ends a transaction, and none has begun");
        check(&[begin, (5, 1, Read, None)], "session 5 step 1 has txn empty, expected 0");
        check(&[(5, 0, Read, Some(0))], "session 5 step 0 has txn 0, expected empty");
        check(&[(5, 0, Begin, None)], "session 5 step 0 has txn empty, expected 0");
    }

    #[test]
    fn actors_that_do_not_exist_are_refused() {
        let refused = refusal(&[TraceRow::plain(5, 0, OPERATION, 1)]);
        assert!(refused.as_ref().is_some_and(|why| why.contains("actor 1 does not exist")), "{refused:?}");
    }
}
