//! Open loop: which task waits for the next due time, which are idle, and how the due times were kept.
//! What the tasks do is in `turns`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use schemas::latency::ResponseTimes;
use schemas::pace::Overload;
use schemas::run::PacingCounts;

use super::margin::Margin;

/// No task has the turn.
pub(super) const NO_PLACE: usize = usize::MAX;

/// A task without a session.
pub(super) struct Idle {
    /// Its place among the worker's tasks.
    pub(super) place: usize,
    /// When its thread ended its last operation.
    pub(super) freed_ns: i64,
}

/// A task that asks for a session.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    /// Its place among the worker's tasks.
    pub place: usize,
    /// When its thread ended its last operation.
    pub freed_ns: i64,
}

/// Who waits for the next due time, and how the due times were kept.
pub struct Pacer {
    pub(super) overload: Overload,
    /// The task that waits for the next due time, or will ask for it next.
    pub(super) turn: Cell<usize>,
    /// The idle tasks. Their threads are in the order in which they became free.
    pub(super) idle: RefCell<VecDeque<Idle>>,
    /// Whether a task is idle, by its place.
    pub(super) is_idle: Vec<Cell<bool>>,
    pub(super) margin: Cell<Margin>,
    /// Time of waiting that kept the processor busy.
    pub(super) spun_ns: Cell<i64>,
    pub(super) is_measured: Cell<bool>,
    pub(super) kept: RefCell<Kept>,
}

/// How a worker kept the due times of the measured part.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// How many sessions were due, queued, skipped and not started.
    pub counts: PacingCounts,
    /// How late sessions started that a thread was waiting for.
    pub late: ResponseTimes,
    /// How long sessions queued.
    pub queued: ResponseTimes,
    /// How many more did not queue.
    pub(super) unqueued: u64,
}

impl Kept {
    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Kept) {
        self.counts.due += other.counts.due;
        self.counts.queued += other.counts.queued;
        self.counts.skipped += other.counts.skipped;
        self.counts.unstarted += other.counts.unstarted;
        self.late.merge(&other.late);
        self.queued.merge(&other.queued);
    }
}

impl Pacer {
    /// For so many threads; `is_measured` if there is no warm-up.
    pub fn new(overload: Overload, threads: usize, is_measured: bool) -> Pacer {
        Pacer {
            overload,
            turn: Cell::new(NO_PLACE),
            idle: RefCell::new(VecDeque::with_capacity(threads)),
            is_idle: vec![Cell::new(false); threads],
            margin: Cell::default(),
            spun_ns: Cell::new(0),
            is_measured: Cell::new(is_measured),
            kept: RefCell::default(),
        }
    }

    /// From here on the figures are those of the measured part.
    pub fn begin_measured(&self) {
        self.is_measured.set(true);
        self.spun_ns.set(0);
        self.turn.set(NO_PLACE);
    }

    /// Processor time of waiting.
    pub fn spun_ns(&self) -> i64 {
        self.spun_ns.get()
    }

    /// When the thread that has been idle for longest ended its last operation.
    pub(super) fn longest_idle_freed_ns(&self) -> Option<i64> {
        self.idle.borrow().front().map(|idle| idle.freed_ns)
    }

    /// The task whose thread has been idle for longest gets a thread that became free at
    /// `freed_ns` in its place. Returns the task's place; None if no task is idle.
    pub(super) fn exchange(&self, freed_ns: i64) -> Option<usize> {
        let mut idle = self.idle.borrow_mut();
        let place = idle.pop_front()?.place;
        idle.push_back(Idle { place, freed_ns });
        Some(place)
    }

    /// Takes the task whose thread has been idle for longest.
    pub(super) fn call(&self) -> Option<usize> {
        let called = self.idle.borrow_mut().pop_front()?;
        self.is_idle[called.place].set(false);
        Some(called.place)
    }
}
