//! The join of a log with its trace: each row of the log says (session, step),
//! the trace says what was done there.

use std::collections::VecDeque;

use schemas::oplog::LogRow;
use schemas::plan::FragmentPlan;
use schemas::social::Operation;
use schemas::trace::{OperationsReader, TableError, TraceRow};

/// Where a row's observed values and error are: the batch of the log, and the row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The batch, from 0.
    pub batch: u32,
    /// The row in the batch, from 0.
    pub row: u32,
}

/// A row of the log joined with its trace row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// From the log.
    pub log: LogRow,
    /// From the trace: what was done.
    pub operation: Operation,
    /// From the trace: the session that had to be done before.
    pub after: Option<u64>,
    /// From the trace: the kind of the session, a place in its names.
    pub kind: u8,
    /// From the trace: no-operations before the session; 0 but in its first operation.
    pub noops: u32,
    /// Whether the session belongs to the warm-up.
    pub warmup: bool,
    /// Whether it started after the planned time, to end a session that was under way.
    pub drained: bool,
    /// Where the rest of the log row is.
    pub place: Place,
}

/// Why a row of the log has no row of the trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("session {session} step {step} is logged twice")]
    Duplicate { session: u64, step: u16 },
    #[error("session {session} is before session {first}, the plan's first for this fragment")]
    Early { session: u64, first: u64 },
    #[error("session {session} step {step} is not in the trace set; the log belongs to another one, or is damaged")]
    NotInTrace { session: u64, step: u16 },
    #[error(transparent)]
    Trace(#[from] TableError),
}

/// The rows of the trace from the first one on that has not been matched.
///
/// The log is written in roughly the order of the sessions, so this ring is
/// about as long as the sessions that are in flight and the rows of a batch.
pub(crate) struct TraceRing {
    reader: OperationsReader,
    plan: FragmentPlan,
    ring: VecDeque<(TraceRow, bool)>,
    chunk: Vec<TraceRow>,
    ended: bool,
}

impl TraceRing {
    pub(crate) fn new(reader: OperationsReader, plan: &FragmentPlan) -> TraceRing {
        let reader = reader.starting_at(plan.begins_at());
        TraceRing { reader, plan: plan.clone(), ring: VecDeque::new(), chunk: Vec::new(), ended: false }
    }

    /// The trace row of a session's step, once.
    pub(crate) fn take(&mut self, session: u64, step: u16) -> Result<TraceRow, JoinError> {
        if self.plan.is_before(session) {
            return Err(JoinError::Early { session, first: self.plan.first_session });
        }
        self.read_to(session, step)?;
        let at = self.position(session, step).ok_or_else(|| {
            // Matched rows leave the ring: what is before its front was there once.
            match self.ring.front() {
                Some((front, _)) if (session, step) > (front.session, front.step) => {
                    JoinError::NotInTrace { session, step }
                }
                _ if self.ended && self.ring.is_empty() => JoinError::NotInTrace { session, step },
                _ => JoinError::Duplicate { session, step },
            }
        })?;
        let (row, matched) = &mut self.ring[at];
        if *matched {
            return Err(JoinError::Duplicate { session, step });
        }
        *matched = true;
        let row = *row;
        while self.ring.front().is_some_and(|(_, matched)| *matched) {
            self.ring.pop_front();
        }
        Ok(row)
    }

    /// The names of the kinds of the sessions handed out so far.
    pub(crate) fn kinds(&self) -> &[String] {
        self.reader.kinds()
    }

    /// Reads on until a row beyond the wanted one is there, so that the ring is
    /// never empty before the end of the trace.
    fn read_to(&mut self, session: u64, step: u16) -> Result<(), TableError> {
        while !self.ended && self.ring.back().is_none_or(|(last, _)| (last.session, last.step) <= (session, step)) {
            self.ended = !self.reader.next_rows(&mut self.chunk)?;
            let wanted = self.chunk.drain(..).filter(|row| !self.plan.is_before(row.session));
            self.ring.extend(wanted.map(|row| (row, false)));
        }
        Ok(())
    }

    fn position(&self, session: u64, step: u16) -> Option<usize> {
        let (front, _) = self.ring.front()?;
        // Most sessions have one operation: then the place follows from the number.
        let guess = usize::try_from(session.checked_sub(front.session)?).ok()?;
        if let Some((row, _)) = self.ring.get(guess)
            && (row.session, row.step) == (session, step)
        {
            return Some(guess);
        }
        self.ring.binary_search_by_key(&(session, step), |(row, _)| (row.session, row.step)).ok()
    }

    /// Calls `each` with every row up to a session that was never matched.
    pub(crate) fn unmatched(&mut self, last_session: u64, mut each: impl FnMut(&TraceRow)) -> Result<(), TableError> {
        self.read_to(last_session, u16::MAX)?;
        let rows = self.ring.iter().take_while(|(row, _)| row.session <= last_session);
        rows.filter(|(_, matched)| !matched).for_each(|(row, _)| each(row));
        Ok(())
    }
}
