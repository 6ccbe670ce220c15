//! What every row of a trace set must be, so that a replay can follow it. Trace sets come from
//! elsewhere, and the sums in a manifest only say that a file is the one that its writer meant.

use std::ops::Range;

use super::{ACTOR, Chunk};
use crate::vocabulary::Vocabulary;

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

/// Checks the rows of a fragment in their order.
pub(super) struct RowCheck<V> {
    order: Order,
    rules: Box<dyn Rules<V>>,
}

impl<V: Vocabulary> RowCheck<V> {
    /// For a data set with so many actors, from a session on.
    pub(super) fn new(actors: u64, rules: Box<dyn Rules<V>>, first_session: u64) -> RowCheck<V> {
        RowCheck { order: Order { session: first_session, step: 0, actors }, rules }
    }

    /// Expects this session first.
    pub(super) fn starting_at(&mut self, first_session: u64) {
        self.order.session = first_session;
    }

    /// Checks the rows that follow those before. The error names session, step and column.
    pub(super) fn check(&mut self, chunk: &Chunk<V>, rows: Range<usize>) -> Result<(), String> {
        rows.clone().try_for_each(|row| self.order.check(chunk, row))?;
        self.rules.check(chunk, rows).map_err(|BadRow { row, message }| {
            let (session, step) = (chunk.session(row), chunk.step(row));
            format!(
                "session {session} step {step}: {message}; the trace set does not fit its specification, generate it \
                 again"
            )
        })
    }
}

/// Checks the envelopes of a trace's rows. A replay depends on the order of sessions, and an
/// operation must not wait for a later one.
struct Order {
    session: u64,
    step: u16,
    /// The number of actors; their ids are lower.
    actors: u64,
}

impl Order {
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
        if chunk.due_us(row).is_some() {
            return Err(format!(
                "session {session} has a due time (due_us), and this version replays closed-loop traces only; use a \
                 trace set without due times"
            ));
        }
        let actor = chunk.actor(row);
        if actor >= self.actors {
            return Err(format!(
                "session {session} step {step}: {ACTOR} {actor} does not exist (the data set has {} of them); the \
                 trace set is damaged",
                self.actors
            ));
        }
        (self.session, self.step) = (session, step.wrapping_add(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::social::{Action, Operation, Social};
    use crate::trace::TraceRow;

    const OPERATION: Operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };

    fn refusal(rows: &[TraceRow<Operation>]) -> Option<String> {
        let chunk: Chunk<Social> = rows.iter().copied().collect();
        RowCheck::new(1, Box::new(NoRules), 5).check(&chunk, 0..chunk.len()).err()
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
    fn due_times_are_refused_as_long_as_nothing_honours_them() {
        let refused = refusal(&[TraceRow { due_us: Some(7), ..TraceRow::plain(5, 0, OPERATION, 0) }]);
        assert!(refused.as_ref().is_some_and(|why| why.contains("session 5 has a due time")), "{refused:?}");
    }

    #[test]
    fn actors_that_do_not_exist_are_refused() {
        let refused = refusal(&[TraceRow::plain(5, 0, OPERATION, 1)]);
        assert!(refused.as_ref().is_some_and(|why| why.contains("actor 1 does not exist")), "{refused:?}");
    }
}
