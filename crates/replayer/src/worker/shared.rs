//! What the tasks of a worker share: the dispatcher, the logs, the tasks that wait, and the
//! figures. The tasks run on one thread, so cells are enough.
//!
//! What the tasks wait for is in `waits`, whose turn it is in an open loop in `turns`, and how
//! operations are logged and counted in `logging`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use schemas::oplog::LogBuffer;
use schemas::plan::Transactions;
use schemas::table::TableError;
use schemas::vocabulary::Vocabulary;

use super::gate::{Opening, Pass};
use super::lag::Lag;
use super::pacer::{Asker, Pacer};
use super::throttle::Throttle;
use super::{Loop, TICK_NS, Used, WarmupReport, WorkerPlan, WorkerReport};
use crate::clock::Clock;
use crate::dispatch::{Dependency, Dispatcher, Ended, Next, Session};
use crate::experiment::{Part, Snapshot};
use crate::feed::Feed;
use crate::log::{BATCH_ROWS, LogSender};

/// What the tasks of a worker share.
pub struct Shared<V: Vocabulary> {
    /// The experiment's time.
    pub clock: Clock,
    /// Writes that did not succeed.
    pub writes_not_ok: Cell<u64>,
    /// How late the ticker was.
    pub lag: RefCell<Lag>,
    /// An error of the trace or of the timer.
    pub error: RefCell<Option<TableError>>,
    /// Set at the end, for the ticker.
    pub ended: Cell<bool>,
    pub(super) dispatcher: RefCell<Dispatcher<V>>,
    fragments: Vec<u32>,
    feeds: Vec<Feed<V>>,
    pub(super) logs: Vec<usize>,
    pub(super) buffers: RefCell<Vec<LogBuffer>>,
    pub(super) sender: LogSender,
    pub(super) is_logged: bool,
    duration_ns: Option<i64>,
    /// When no more sessions are taken from the trace.
    pub(super) deadline_ns: Cell<i64>,
    /// When the present part of the experiment began.
    pub(super) part_began_ns: Cell<i64>,
    pub(super) stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
    /// The tasks of all threads, to wake them when they must give up their operations.
    pub(super) tasks: RefCell<Vec<Option<Waker>>>,
    pub(super) published: Arc<Mutex<Snapshot>>,
    pub(super) snapshot: RefCell<Snapshot>,
    /// Tasks that wait until some session has finished.
    pub(super) waiting: RefCell<Vec<Waker>>,
    /// Tasks that wait for a time, by the thread's place.
    pub(super) resting: RefCell<Vec<Option<Waker>>>,
    /// How many of them there are.
    pub(super) resting_count: Cell<usize>,
    /// Who waits for the next due time. None in a closed loop.
    pub(super) pacer: Option<Pacer>,
    /// Set when an open loop ends because a session had to queue.
    pub(super) overloaded: Arc<AtomicBool>,
    /// How far threads are held back. None in an open loop, or without limits.
    pub(super) throttle: Option<Throttle>,
    /// Whether the store is asked for transactions, and how often each is tried.
    pub(super) transactions: Transactions,
    sessions: Cell<u64>,
    session_ns: Cell<i64>,
    pub(super) idle_ns: Cell<i64>,
    pub(super) log_stall_ns: Cell<u64>,
    trace_stall_ns: Cell<u64>,
}

/// A buffer with room for as many rows as the last one had. So a slow store with a thousand
/// fragments needs little memory, and a fast one has enough room from the second batch on.
pub(super) fn buffer_like(rows: usize) -> LogBuffer {
    LogBuffer::with_capacity(rows.clamp(256, BATCH_ROWS), 4)
}

impl<V: Vocabulary> Shared<V> {
    /// State for `threads` threads, at the beginning of the first part of the plan.
    pub fn new(plan: WorkerPlan<V>, threads: usize) -> (Rc<Shared<V>>, Option<Pass>) {
        let (part, deadline_ns) = match plan.pass {
            Some(_) => (Part::WarmUp, i64::MAX),
            None => (Part::Measured, plan.duration_ns.unwrap_or(i64::MAX)),
        };
        let (pacer, throttle) = match plan.loop_kind {
            Loop::Closed(throttle) => (None, throttle),
            Loop::Open(overload) => (Some(Pacer::new(overload, threads, part == Part::Measured)), None),
        };
        let snapshot = RefCell::new(Snapshot::of(part, pacer.is_some()));
        let shared = Shared {
            pacer,
            throttle,
            transactions: plan.transactions,
            overloaded: plan.overloaded,
            buffers: RefCell::new(plan.logs.iter().map(|_| buffer_like(0)).collect()),
            dispatcher: RefCell::new(plan.dispatcher),
            fragments: plan.fragments,
            feeds: plan.feeds,
            logs: plan.logs,
            sender: plan.sender,
            is_logged: plan.is_logged,
            clock: plan.clock,
            duration_ns: plan.duration_ns,
            deadline_ns: Cell::new(deadline_ns),
            part_began_ns: Cell::new(0),
            stop: plan.stop,
            abandon: plan.abandon,
            tasks: RefCell::new(vec![None; threads]),
            published: plan.snapshot,
            snapshot,
            waiting: RefCell::default(),
            resting: RefCell::new(vec![None; threads]),
            resting_count: Cell::new(0),
            error: RefCell::default(),
            ended: Cell::new(false),
            sessions: Cell::new(0),
            session_ns: Cell::new(0),
            idle_ns: Cell::new(0),
            writes_not_ok: Cell::new(0),
            log_stall_ns: Cell::new(0),
            trace_stall_ns: Cell::new(0),
            lag: RefCell::default(),
        };
        (Rc::new(shared), plan.pass)
    }

    /// What a thread that asks for work at `now_ns` gets.
    #[inline(always)]
    pub fn next(&self, session: &mut Session<V>, asker: Asker, now_ns: i64) -> Next {
        if now_ns >= self.deadline_ns.get() || self.stop.load(Ordering::Relaxed) {
            self.dispatcher.borrow_mut().close();
        }
        if let Some(pacer) = &self.pacer {
            return self.next_due(pacer, session, asker, now_ns);
        }
        let next = self.dispatcher.borrow_mut().hand_out(session);
        if self.resting_count.get() > 0 && self.dispatcher.borrow().is_over() {
            self.wake_resting();
        }
        next
    }

    /// Gives the dispatcher the next chunk of a fragment. Returns the time afterwards.
    #[cold]
    pub fn supply(&self, fragment: usize) -> i64 {
        let began_ns = self.clock.now_ns();
        let next = self.feeds[fragment].next();
        let now_ns = self.clock.now_ns();
        match next {
            Ok((chunk, waited)) => {
                if waited {
                    self.trace_stall_ns.set(self.trace_stall_ns.get() + (now_ns - began_ns) as u64);
                }
                self.dispatcher.borrow_mut().supply(fragment, chunk);
            }
            Err(error) => {
                self.fail(error);
                self.dispatcher.borrow_mut().supply(fragment, None);
            }
        }
        now_ns
    }

    /// Ends the experiment with an error.
    pub fn fail(&self, error: TableError) {
        *self.error.borrow_mut() = Some(error);
        // The other workers stop too: what they do no longer counts.
        self.stop.store(true, Ordering::Relaxed);
        self.dispatcher.borrow_mut().close();
    }

    /// How much of a stretch of time lies before the end of this part.
    #[inline]
    pub(super) fn in_time(&self, from_ns: i64, to_ns: i64) -> i64 {
        (to_ns.min(self.deadline_ns.get()) - from_ns).max(0)
    }

    /// Whether an operation starts too late to count: its session was under way when the
    /// planned time was over.
    #[inline]
    pub fn is_drained(&self, start_ns: i64) -> bool {
        start_ns >= self.deadline_ns.get()
    }

    /// Whether this part is the warm-up.
    pub fn is_warmup(&self) -> bool {
        self.snapshot.borrow().part == Part::WarmUp
    }

    /// How much of the measured part has passed; 0 in the warm-up.
    pub fn measured_ns(&self, now_ns: i64) -> i64 {
        if self.is_warmup() { 0 } else { (now_ns - self.part_began_ns.get()).max(0) }
    }

    /// How many operations have ended in this part.
    pub fn operations(&self) -> u64 {
        self.snapshot.borrow().operations()
    }

    /// Whether inter-arrival times pass between the sessions of a thread. In an open loop due times
    /// take their place.
    #[inline]
    pub fn has_inter_arrival_times(&self) -> bool {
        self.pacer.is_none()
    }

    /// Whether sessions start when they are due.
    #[inline]
    pub fn is_open_loop(&self) -> bool {
        self.pacer.is_some()
    }

    /// Whether the operations in flight are to be given up.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// Whether a session of a fragment is done.
    pub fn dependency(&self, fragment: usize, after: u64) -> Dependency {
        self.dispatcher.borrow().dependency(fragment, after)
    }

    /// A session that was taken up at `taken_ns` has ended.
    #[inline]
    pub fn finish(&self, session: &Session<V>, writes: Ended, taken_ns: i64, now_ns: i64) {
        self.dispatcher.borrow_mut().finish(session, writes);
        self.sessions.set(self.sessions.get() + 1);
        self.session_ns.set(self.session_ns.get() + self.in_time(taken_ns, now_ns));
        // Threads hardly ever wait for a session, so all of them are woken and check again.
        self.wake_waiting();
    }

    /// Whether the measured part can follow the warm-up.
    pub fn can_go_on(&self) -> bool {
        let dispatcher = self.dispatcher.borrow();
        !self.stop.load(Ordering::Relaxed) && !dispatcher.is_closed() && !dispatcher.ran_out()
    }

    /// Ends the warm-up. From here on the figures are those of the measured part, which begins at
    /// the gate's opening if it opens.
    pub fn end_warmup(&self, opening: Opening) -> WarmupReport {
        let began_ns = match opening {
            Opening::At(at_ns) => {
                self.dispatcher.borrow_mut().begin_measured(at_ns);
                if let Some(pacer) = &self.pacer {
                    pacer.begin_measured();
                }
                at_ns
            }
            Opening::Never => self.clock.now_ns(),
        };
        self.part_began_ns.set(began_ns);
        self.deadline_ns.set(self.duration_ns.map_or(i64::MAX, |duration_ns| began_ns + duration_ns));
        let before = self.snapshot.replace(Snapshot::of(Part::Measured, self.pacer.is_some()));
        self.sessions.set(0);
        self.session_ns.set(0);
        self.idle_ns.set(0);
        self.log_stall_ns.set(0);
        self.trace_stall_ns.set(0);
        *self.lag.borrow_mut() = Lag::default();
        // Time in which the worker stood still while the gate opened counts as lag, as it would later.
        let now_ns = self.clock.now_ns();
        let missed = (1..).map(|tick| began_ns + tick * TICK_NS).take_while(|due_ns| *due_ns <= now_ns);
        missed.for_each(|due_ns| self.record_lag(now_ns - due_ns));
        self.hand_over();
        WarmupReport { operations: before.operations(), ended_ns: began_ns }
    }

    /// The report of the measured part, in which the worker used this processor time.
    pub fn report(&self, used: Used, warmup: WarmupReport) -> WorkerReport {
        let mut snapshot = self.snapshot.borrow().clone();
        // Until here, this is the time when the last operation ended.
        snapshot.elapsed_ns = (snapshot.elapsed_ns - self.part_began_ns.get()).max(0);
        let wall_ns = (self.clock.now_ns() - self.part_began_ns.get()).max(1) as f64;
        // Waiting for a due time keeps a processor busy, but does not limit the worker.
        let spun_ns = self.pacer.as_ref().map_or(0, Pacer::spun_ns);
        let cpu_ns = (used.cpu_ns - spun_ns).max(0);
        let dispatcher = self.dispatcher.borrow();
        WorkerReport {
            snapshot,
            positions: dispatcher.positions(&self.fragments),
            sessions: self.sessions.get(),
            ran_out: dispatcher.ran_out(),
            writes_not_ok: self.writes_not_ok.get(),
            cpu_share: cpu_ns as f64 / wall_ns,
            run_delay_share: used.run_delay_ns.map(|delay_ns| delay_ns as f64 / wall_ns),
            lag: self.lag.borrow().clone(),
            idle_ns: self.idle_ns.get() as u64,
            session_ns: self.session_ns.get() as u64,
            log_stall_ns: self.log_stall_ns.get(),
            trace_stall_ns: self.trace_stall_ns.get(),
            warmup,
            was_overloaded: self.overloaded.load(Ordering::Relaxed),
            kept: None,
        }
    }
}
