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

/// A worker that handles nothing for this much longer than planned stands still. Rounds of many tasks
/// are shorter.
const STALL_NS: i64 = 5_000_000;

/// A task without a session.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// The task with the turn while it waits: for a due time, or to be polled after its call. Its thread
    /// is idle as well.
    pub(super) waiting: Cell<Option<Idle>>,
    /// The other idle tasks, in the order in which their threads became free.
    pub(super) idle: RefCell<VecDeque<Idle>>,
    /// Whether a task is idle, by its place.
    pub(super) is_idle: Vec<Cell<bool>>,
    pub(super) margin: Cell<Margin>,
    /// Time of waiting that kept the processor busy.
    pub(super) spun_ns: Cell<i64>,
    pub(super) is_measured: Cell<bool>,
    /// When the ticker measures next how late the worker is.
    tick_ns: Cell<i64>,
    /// When the worker was last known to run.
    seen_ns: Cell<i64>,
    /// How long the worker stood still since the last session that found an idle thread, and when it
    /// went on.
    stalled: Cell<(i64, i64)>,
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
        self.counts.stalled += other.counts.stalled;
        self.counts.stalled_ns_max = self.counts.stalled_ns_max.max(other.counts.stalled_ns_max);
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
            waiting: Cell::new(None),
            idle: RefCell::new(VecDeque::with_capacity(threads)),
            is_idle: vec![Cell::new(false); threads],
            margin: Cell::default(),
            spun_ns: Cell::new(0),
            is_measured: Cell::new(is_measured),
            tick_ns: Cell::new(i64::MAX),
            seen_ns: Cell::new(0),
            stalled: Cell::new((0, i64::MIN)),
            kept: RefCell::default(),
        }
    }

    /// From here on the figures are those of the measured part.
    pub fn begin_measured(&self) {
        self.is_measured.set(true);
        self.spun_ns.set(0);
        self.turn.set(NO_PLACE);
        self.waiting.set(None);
        self.stalled.set((0, i64::MIN));
    }

    /// The ticker measures at this time how late the worker is.
    pub fn ticks_at(&self, tick_ns: i64) {
        self.tick_ns.set(tick_ns);
    }

    /// If the worker was to do something long before `now_ns`, it stood still until then. The first
    /// task that runs afterwards notices it, which is not always the ticker.
    pub fn notice_stall(&self, now_ns: i64) {
        let seen_ns = self.seen_ns.replace(now_ns);
        if now_ns.saturating_sub(self.tick_ns.get()) > STALL_NS {
            self.stalled.set((self.stalled.get().0 + now_ns - seen_ns, now_ns));
            self.tick_ns.set(now_ns);
        }
    }

    /// A session that was due at this time found an idle thread. What queues later does not queue
    /// because of an earlier stall.
    pub(super) fn forget_stall(&self, due_ns: i64) {
        if due_ns >= self.stalled.get().1 {
            self.stalled.set((0, i64::MIN));
        }
    }

    /// A session that queues for no longer than this would have found an idle thread if the worker had
    /// not stood still.
    pub(super) fn stalled_ns(&self) -> i64 {
        self.stalled.get().0
    }

    /// Processor time of waiting.
    pub fn spun_ns(&self) -> i64 {
        self.spun_ns.get()
    }

    /// When the thread that has been idle for longest ended its last operation.
    pub(super) fn longest_idle_freed_ns(&self) -> Option<i64> {
        let longest = self.idle.borrow().front().map(|idle| idle.freed_ns);
        longest.into_iter().chain(self.waiting.get().map(|waiting| waiting.freed_ns)).min()
    }

    /// Adds an idle task.
    pub(super) fn add_idle(&self, added: Idle) {
        let mut idle = self.idle.borrow_mut();
        // Most become idle in the order in which their threads became free.
        let behind = idle.iter().rev().take_while(|other| other.freed_ns > added.freed_ns).count();
        let at = idle.len() - behind;
        idle.insert(at, added);
    }

    /// The task at `place` no longer waits.
    pub(super) fn resumed(&self, place: usize) {
        if self.waiting.get().is_some_and(|waiting| waiting.place == place) {
            self.waiting.set(None);
        }
    }

    /// The task whose thread has been idle for longest gets a thread that became free at
    /// `freed_ns` in its place. Returns the task's place; None if no task is idle.
    pub(super) fn exchange(&self, freed_ns: i64) -> Option<usize> {
        let longest_ns = self.longest_idle_freed_ns()?;
        if let Some(waiting) = self.waiting.get().filter(|waiting| waiting.freed_ns == longest_ns) {
            self.waiting.set(Some(Idle { freed_ns, ..waiting }));
            return Some(waiting.place);
        }
        let Idle { place, .. } = self.idle.borrow_mut().pop_front()?;
        self.add_idle(Idle { place, freed_ns });
        Some(place)
    }

    /// Takes the task whose thread has been idle for longest.
    pub(super) fn call(&self) -> Option<Idle> {
        let called = self.idle.borrow_mut().pop_front()?;
        self.is_idle[called.place].set(false);
        Some(called)
    }

    /// Gives the turn to the task whose thread has been idle for longest. Returns its place.
    pub(super) fn pass_on(&self) -> Option<usize> {
        let called = self.call();
        self.waiting.set(called);
        let place = called.map(|called| called.place);
        self.turn.set(place.unwrap_or(NO_PLACE));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(place: usize, freed_ns: i64) -> Idle {
        Idle { place, freed_ns }
    }

    /// A thread that became free later came before one whose task had to yield first. Then the wrong
    /// thread was the one that had been idle for longest, and a session counted as queued.
    #[test]
    fn idle_threads_are_in_the_order_in_which_they_became_free() {
        let pacer = Pacer::new(Overload::Queue, 4, true);
        [idle(0, 10), idle(1, 30)].into_iter().for_each(|added| pacer.add_idle(added));
        assert_eq!(pacer.exchange(40), Some(0));
        pacer.add_idle(idle(2, 35));
        assert_eq!(*pacer.idle.borrow(), [idle(1, 30), idle(2, 35), idle(0, 40)]);
        assert_eq!((pacer.exchange(50), pacer.longest_idle_freed_ns()), (Some(1), Some(35)));
    }

    /// The thread of the task that waits for the next due time is idle too.
    #[test]
    fn the_thread_of_the_task_with_the_turn_can_be_exchanged() {
        let pacer = Pacer::new(Overload::Queue, 3, true);
        [idle(0, 10), idle(1, 30)].into_iter().for_each(|added| pacer.add_idle(added));
        assert_eq!((pacer.pass_on(), pacer.turn.get()), (Some(0), 0));
        assert_eq!((pacer.longest_idle_freed_ns(), pacer.exchange(40)), (Some(10), Some(0)));
        assert_eq!((pacer.longest_idle_freed_ns(), pacer.exchange(50)), (Some(30), Some(1)));
        pacer.resumed(0);
        assert_eq!((pacer.exchange(60), pacer.pass_on(), pacer.pass_on()), (Some(1), Some(1), None));
        assert_eq!((pacer.turn.get(), pacer.exchange(70)), (NO_PLACE, None));
    }

    #[test]
    fn a_stall_explains_what_queues_no_longer_than_it_lasted() {
        let pacer = Pacer::new(Overload::Queue, 1, true);
        pacer.notice_stall(i64::MAX);
        assert_eq!(pacer.stalled_ns(), 0, "the ticker has not begun");
        pacer.ticks_at(1_000);
        pacer.notice_stall(1_000 + STALL_NS);
        assert_eq!(pacer.stalled_ns(), 0, "within the usual");
        pacer.notice_stall(50_001_000);
        assert_eq!(pacer.stalled_ns(), 45_000_000, "since it was last seen");
        // A session from before the end of the stall may find an idle thread, and the next queue.
        pacer.forget_stall(50_000_999);
        assert_eq!(pacer.stalled_ns(), 45_000_000);
        pacer.forget_stall(50_001_000);
        assert_eq!(pacer.stalled_ns(), 0);
    }
}
