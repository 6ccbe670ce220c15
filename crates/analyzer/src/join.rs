//! Joins a log with its trace: a row of the log has (session, step), and the trace has the
//! operation.

use std::collections::VecDeque;

use schemas::oplog::{LogRow, Outcome, TryEnd};
use schemas::plan::FragmentPlan;
use schemas::table::TableError;
use schemas::trace::{OperationsReader, TraceRow};
use schemas::vocabulary::{Operation, Vocabulary};

/// Where a row's observed values and error are: the batch of the log, and the row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The batch, from 0.
    pub batch: u32,
    /// The row in the batch, from 0.
    pub row: u32,
}

/// What a row knows of the try of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfTry {
    /// How it ended.
    pub end: TryEnd,
    /// When it began: the start of its first operation.
    pub begin_ns: i64,
    /// When it was over: the end of its last operation.
    pub end_ns: i64,
    /// Whether the row is its first one.
    pub is_first: bool,
    /// Whether the row is its last one.
    pub is_last: bool,
    /// Whether its writes may have happened although the log does not say so: the replayer was killed,
    /// and a later try may have been under way.
    pub may_go_on: bool,
}

impl OfTry {
    /// Whether its reads are checked. In a try that was not committed, a read may see what the try itself
    /// wrote before, and no other read ever does.
    pub fn is_checked(&self) -> bool {
        matches!(self.end, TryEnd::Committed | TryEnd::Unknown | TryEnd::BestEffort)
    }
}

/// A row of the log joined with its trace row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<O> {
    /// From the log.
    pub log: LogRow,
    /// From the trace: the operation.
    pub operation: O,
    /// From the trace: on whose behalf the session runs.
    pub actor: u64,
    /// From the trace: the session that the operation depends on.
    pub after: Option<u64>,
    /// From the trace: the step that began the transaction that it belongs to.
    pub txn: Option<u16>,
    /// From the trace: the kind of the session, as an index into the names of kinds.
    pub kind: u8,
    /// From the trace: no-operations before the session; 0 except in its first operation.
    pub noops: u32,
    /// Whether the session belongs to the warm-up.
    pub warmup: bool,
    /// Whether the operation started after the planned time, to end a session under way.
    pub drained: bool,
    /// Where the rest of the log row is.
    pub place: Place,
    /// What the row knows of the try of its transaction; None if it is in no transaction.
    pub of_try: Option<OfTry>,
}

impl<O: Operation> Row<O> {
    /// The outcome that the operation counts with in all figures; None if it begins or ends a
    /// transaction.
    #[inline]
    pub fn counts_as(&self) -> Option<Outcome> {
        let Some(of_try) = self.of_try else { return Some(self.log.outcome) };
        match self.operation.control() {
            Some(_) => None,
            None => Some(of_try.end.counts_as(self.log.outcome, self.operation.writes())),
        }
    }

    /// From when on the state may be that a read saw: a transaction may read from a snapshot.
    #[inline]
    pub fn snapshot_ns(&self) -> i64 {
        match self.of_try {
            Some(OfTry { end, begin_ns, .. }) if end != TryEnd::BestEffort => begin_ns,
            _ => self.log.start_ns,
        }
    }

    /// When what a write wrote was visible to others at the latest: when its transaction was over.
    #[inline]
    pub fn visible_ns(&self) -> i64 {
        match self.of_try {
            Some(OfTry { end, end_ns, .. }) if end != TryEnd::BestEffort => end_ns,
            _ => self.log.end_ns,
        }
    }
}

/// The response time: from the due time if there is one, so that a stalled store cannot hide its
/// queue. Otherwise from when the operation's thread took it up.
pub(crate) fn response_ns(log: &LogRow) -> i64 {
    log.end_ns - log.due_ns.unwrap_or(log.start_ns)
}

/// The service time: from the start of the operation, however late that was.
pub(crate) fn service_ns(log: &LogRow) -> i64 {
    log.end_ns - log.start_ns
}

/// Why a row of the log has no row of the trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("session {session} step {step} is logged twice")]
    Duplicate { session: u64, step: u16 },
    #[error("session {session} is before session {first}, the plan's first for this fragment")]
    Early { session: u64, first: u64 },
    #[error(
        "session {session} step {step} is not in the trace set; the log belongs to another trace set, or is damaged"
    )]
    NotInTrace { session: u64, step: u16 },
    #[error("session {session} step {step} is logged as try {number}, and the try before it is not")]
    OtherTry { session: u64, step: u16, number: u16 },
    #[error(transparent)]
    Trace(#[from] TableError),
}

/// The rows of the trace from the first unmatched one on.
///
/// The log is written in roughly the order of the sessions. So this ring is about as long as the
/// sessions in flight and the rows of a batch.
pub(crate) struct TraceRing<V: Vocabulary> {
    reader: OperationsReader<V>,
    plan: FragmentPlan,
    ring: VecDeque<(TraceRow<V::Operation>, bool)>,
    chunk: Vec<TraceRow<V::Operation>>,
    ended: bool,
}

impl<V: Vocabulary> TraceRing<V> {
    pub(crate) fn new(reader: OperationsReader<V>, plan: &FragmentPlan) -> TraceRing<V> {
        let reader = reader.starting_at(plan.begins_at());
        TraceRing { reader, plan: plan.clone(), ring: VecDeque::new(), chunk: Vec::new(), ended: false }
    }

    /// The trace row of a session's step; a second call for it is an error.
    pub(crate) fn take(&mut self, session: u64, step: u16) -> Result<TraceRow<V::Operation>, JoinError> {
        if self.plan.is_before(session) {
            return Err(JoinError::Early { session, first: self.plan.first_session });
        }
        self.read_to(session, step)?;
        let at = self.position(session, step).ok_or_else(|| {
            // Matched rows leave the ring: a row before its front was already matched.
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

    /// The names of the kinds of sessions read so far.
    pub(crate) fn kinds(&self) -> &[String] {
        self.reader.kinds()
    }

    /// Reads until the ring has a row beyond the wanted one, so that the ring is never empty
    /// before the end of the trace.
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
        // Most sessions have one operation, so the position follows from the session's number.
        let guess = usize::try_from(session.checked_sub(front.session)?).ok()?;
        if let Some((row, _)) = self.ring.get(guess)
            && (row.session, row.step) == (session, step)
        {
            return Some(guess);
        }
        self.ring.binary_search_by_key(&(session, step), |(row, _)| (row.session, row.step)).ok()
    }

    /// Calls `each` with every unmatched row up to a session.
    pub(crate) fn unmatched(
        &mut self,
        last_session: u64,
        mut each: impl FnMut(&TraceRow<V::Operation>),
    ) -> Result<(), TableError> {
        self.read_to(last_session, u16::MAX)?;
        let rows = self.ring.iter().take_while(|(row, _)| row.session <= last_session);
        rows.filter(|(_, matched)| !matched).for_each(|(row, _)| each(row));
        Ok(())
    }
}
