//! A session that can be handed out: where its operations are, and when it is due.

use std::rc::Rc;

use schemas::trace::Chunk;
use schemas::vocabulary::Vocabulary;

/// A session: a stretch of a chunk, which holds whole sessions.
#[derive(Debug, Clone, Default)]
pub struct Session<V: Vocabulary> {
    /// The fragment, as an index into the dispatcher's fragments.
    pub fragment: usize,
    pub(super) chunk: Rc<Chunk<V>>,
    pub(super) first: usize,
    pub(super) end: usize,
    /// When it is due, by the experiment's clock (open loop only).
    pub(super) due_ns: Option<i64>,
    /// Whether it waited aside. A closed loop never resets it, and does not read it.
    pub(super) was_aside: bool,
}

impl<V: Vocabulary> Session<V> {
    /// How many operations it has; never 0.
    pub fn steps(&self) -> usize {
        self.end - self.first
    }

    /// The operation in this place of the session.
    #[inline(always)]
    pub fn operation(&self, place: usize) -> V::Operation {
        self.chunk.operation(self.first + place)
    }

    /// What its operations have besides their envelopes.
    #[inline(always)]
    pub fn columns(&self) -> &V::Columns {
        self.chunk.columns()
    }

    /// The session's number in its fragment.
    #[inline]
    pub fn number(&self) -> u64 {
        self.chunk.session(self.first)
    }

    /// How long its thread waits before the operation in this place; see
    /// [`schemas::trace::TraceRow::think_us`].
    #[inline]
    pub fn think_us(&self, place: usize) -> u32 {
        self.chunk.think_us(self.first + place)
    }

    /// The session that the operation in this place depends on.
    #[inline]
    pub fn after(&self, place: usize) -> Option<u64> {
        self.chunk.after(self.first + place)
    }

    /// Whether the operation in this place belongs to a transaction.
    #[inline]
    pub fn is_in_transaction(&self, place: usize) -> bool {
        self.chunk.txn(self.first + place).is_some()
    }

    /// The place of the operation that ends the transaction that begins in this place.
    pub fn end_of_transaction(&self, begin: usize) -> usize {
        let txn = self.chunk.txn(self.first + begin);
        let belongs = |place: &usize| *place < self.steps() && self.chunk.txn(self.first + place) == txn;
        (begin..).take_while(belongs).last().unwrap_or(begin)
    }

    /// When it is due, by the experiment's clock; none in a closed loop.
    #[inline]
    pub fn due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    /// Whether it had to wait for its actor (open loop only).
    pub fn was_aside(&self) -> bool {
        self.was_aside
    }

    #[inline]
    pub(super) fn actor(&self) -> u64 {
        self.chunk.actor(self.first)
    }

    /// The sessions that its operations depend on.
    pub(super) fn depends_on(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.steps()).filter_map(|place| self.after(place))
    }
}
