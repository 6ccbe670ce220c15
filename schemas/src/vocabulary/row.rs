//! A row of a trace, whatever the vocabulary.

/// One operation of a trace with its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow<O> {
    /// The session, counted from 0 in its fragment.
    pub session: u64,
    /// The operation's place in its session, from 0.
    pub step: u16,
    /// The kind of the session, as an index into the names given to
    /// [`OperationsBuilder::new`](crate::trace::OperationsBuilder::new),
    /// or into [`OperationsReader::kinds`](crate::trace::OperationsReader::kinds).
    pub kind: u8,
    /// BG's no-operations before the session: kinds of sessions that were drawn and of which
    /// nothing could be done, for this actor or for others drawn before. Set in the first
    /// operation of a session, 0 in the others.
    pub noops: u32,
    /// How long the thread waits before the operation; no other thread waits with it. In the
    /// first operation of a session it is the inter-arrival time: the thread waits after the
    /// session, before it takes another.
    pub think_us: u32,
    /// When the session is due, from the start of the load, in microseconds. Set in the first operation
    /// of each session of an open loop.
    pub due_us: Option<u64>,
    /// The session (of the same fragment) whose write must be done before. If it is the
    /// operation's own session, an earlier step of it must have succeeded.
    pub after: Option<u64>,
    /// The transaction: the step of the operation that began it. Set from that operation to the one
    /// that commits or aborts it, both included.
    pub txn: Option<u16>,
    /// On whose behalf the session runs; actors count from 0 over the whole data set.
    pub actor: u64,
    /// The operation without its envelope.
    pub operation: O,
}

impl<O> TraceRow<O> {
    /// A row without waits, due time and dependency, of the first kind of sessions.
    pub fn plain(session: u64, step: u16, operation: O, actor: u64) -> TraceRow<O> {
        TraceRow {
            session,
            step,
            kind: 0,
            noops: 0,
            think_us: 0,
            due_us: None,
            after: None,
            txn: None,
            actor,
            operation,
        }
    }
}
