//! What the tasks of a worker share: the dispatcher, the logs, the tasks that wait, and the
//! figures. The tasks run on one thread, so cells are enough.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use schemas::latency::ResponseTimes;
use schemas::oplog::{LogBuffer, LogRow};
use schemas::table::TableError;
use schemas::vocabulary::Vocabulary;

use super::gate::{Opening, Pass};
use super::pacer::{Asker, Pacer};
use super::throttle::Throttle;
use super::{Loop, TICK_NS, Used, WarmupReport, WorkerPlan, WorkerReport};
use crate::clock::Clock;
use crate::dispatch::{Dependency, Dispatcher, Next, Session};
use crate::experiment::{Part, Snapshot};
use crate::feed::Feed;
use crate::log::{BATCH_BYTES, BATCH_ROWS, LogSender};

/// What ends a thread's wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Any end of this part of the experiment: the thread has no session.
    Over,
    /// Only a stop from outside: the thread is in the middle of a session.
    Stopped,
}

/// How late a worker handles what has happened.
#[derive(Debug, Clone, Default)]
pub struct Lag {
    /// The distribution, whose 99th percentile is compared with response times.
    pub times: ResponseTimes,
    /// The exact sum, since a histogram of few values has a coarse mean.
    pub sum_ns: i64,
    /// How many measurements.
    pub count: u64,
    /// The longest.
    pub max_ns: i64,
}

impl Lag {
    fn record(&mut self, late_ns: i64) {
        self.times.record(late_ns);
        self.sum_ns += late_ns;
        self.count += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Lag) {
        self.times.merge(&other.times);
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean, in nanoseconds; 0 without measurements.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }
}

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
    logs: Vec<usize>,
    buffers: RefCell<Vec<LogBuffer>>,
    sender: LogSender,
    is_logged: bool,
    duration_ns: Option<i64>,
    /// When no more sessions are taken from the trace.
    pub(super) deadline_ns: Cell<i64>,
    /// When the present part of the experiment began.
    pub(super) part_began_ns: Cell<i64>,
    pub(super) stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
    /// The tasks of all threads, to wake them when they must give up their operations.
    pub(super) tasks: RefCell<Vec<Option<Waker>>>,
    published: Arc<Mutex<Snapshot>>,
    snapshot: RefCell<Snapshot>,
    /// Tasks that wait until some session has finished.
    waiting: RefCell<Vec<Waker>>,
    /// Tasks that wait for a time, by the thread's place.
    resting: RefCell<Vec<Option<Waker>>>,
    /// How many of them there are.
    resting_count: Cell<usize>,
    /// Who waits for the next due time. None in a closed loop.
    pub(super) pacer: Option<Pacer>,
    /// Set when an open loop ends because a session had to queue.
    pub(super) overloaded: Arc<AtomicBool>,
    /// How far threads are held back. None in an open loop, or without limits.
    pub(super) throttle: Option<Throttle>,
    sessions: Cell<u64>,
    session_ns: Cell<i64>,
    idle_ns: Cell<i64>,
    log_stall_ns: Cell<u64>,
    trace_stall_ns: Cell<u64>,
}

/// A buffer with room for as many rows as the last one had. So a slow store with a thousand
/// fragments needs little memory, and a fast one has enough room from the second batch on.
fn buffer_like(rows: usize) -> LogBuffer {
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
        let shared = Shared {
            pacer,
            throttle,
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
            snapshot: RefCell::new(Snapshot { part, ..Snapshot::default() }),
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

    /// Waits until the thread should ask for a session again: none was free at `now_ns`. Returns
    /// the time afterwards.
    pub async fn idle(&self, now_ns: i64) -> i64 {
        self.wait_once().await;
        let woken_ns = self.clock.now_ns();
        self.idle_ns.set(self.idle_ns.get() + self.in_time(now_ns, woken_ns));
        woken_ns
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
    fn in_time(&self, from_ns: i64, to_ns: i64) -> i64 {
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
        self.snapshot.borrow().outcomes.iter().sum()
    }

    /// Whether inter-arrival times pass between the sessions of a thread. In an open loop due times
    /// take their place.
    #[inline]
    pub fn has_inter_arrival_times(&self) -> bool {
        self.pacer.is_none()
    }

    /// Whether the operations in flight are to be given up.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// Registers the calling task, so that it can be woken to give up.
    pub async fn register(&self, place: usize) {
        poll_fn(|context| {
            self.tasks.borrow_mut()[place] = Some(context.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// Waits until `at_ns`, or less if `until` ends the wait early. Returns the time afterwards.
    /// `place` is the thread's place.
    pub async fn rest(&self, place: usize, at_ns: i64, until: Until) -> i64 {
        let at_ns = match until {
            Until::Over => at_ns.min(self.deadline_ns.get()),
            Until::Stopped => at_ns,
        };
        let mut asked = false;
        poll_fn(|context| {
            let now_ns = self.clock.now_ns();
            let is_cut =
                self.stop.load(Ordering::Relaxed) || (until == Until::Over && self.dispatcher.borrow().is_over());
            if now_ns >= at_ns || is_cut {
                if asked {
                    self.resting_count.set(self.resting_count.get() - 1);
                    self.resting.borrow_mut()[place] = None;
                }
                return Poll::Ready(now_ns);
            }
            if !asked {
                asked = true;
                self.resting_count.set(self.resting_count.get() + 1);
                self.clock.wake_at(at_ns, context.waker().clone());
            }
            // A call that wakes all tasks takes the waker. The wait may go on, so it leaves a new one.
            self.resting.borrow_mut()[place].get_or_insert_with(|| context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn wake_resting(&self) {
        self.resting.borrow_mut().iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Ends the waits of all threads when the experiment is to end early. While all of them
    /// sleep, only the ticker notices a stop.
    pub fn look_for_stop(&self) {
        if self.stop.load(Ordering::Relaxed) || self.overloaded.load(Ordering::Relaxed) {
            self.dispatcher.borrow_mut().close();
            self.wake_resting();
            self.wake_waiting();
            if let Some(pacer) = &self.pacer {
                self.call_all(pacer);
            }
        }
        if self.is_abandoned() {
            self.tasks.borrow().iter().flatten().for_each(Waker::wake_by_ref);
        }
    }

    fn wake_waiting(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.is_empty() {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Waits until some session has finished.
    async fn wait_once(&self) {
        let mut asked = false;
        poll_fn(|context| {
            if asked {
                return Poll::Ready(());
            }
            asked = true;
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Whether a session of a fragment is done.
    pub fn dependency(&self, fragment: usize, after: u64) -> Dependency {
        self.dispatcher.borrow().dependency(fragment, after)
    }

    /// Waits until that session is done.
    pub async fn wait_for(&self, fragment: usize, after: u64) -> Dependency {
        loop {
            self.wait_once().await;
            let dependency = self.dependency(fragment, after);
            if dependency != Dependency::Pending {
                return dependency;
            }
        }
    }

    /// A session that was taken up at `taken_ns` has ended.
    #[inline]
    pub fn finish(&self, session: &Session<V>, writes_ok: bool, taken_ns: i64, now_ns: i64) {
        self.dispatcher.borrow_mut().finish(session, writes_ok);
        self.sessions.set(self.sessions.get() + 1);
        self.session_ns.set(self.session_ns.get() + self.in_time(taken_ns, now_ns));
        // Threads hardly ever wait for a session, so all of them are woken and check again.
        self.wake_waiting();
    }

    /// Logs and counts an operation. True if a full buffer was handed to the writer, so that the
    /// call took longer than usual.
    ///
    /// Inlined into its caller: a call would pass the row through memory, which took 5% of a
    /// replay against `null:`.
    #[inline(always)]
    pub fn log(&self, fragment: usize, row: LogRow, observed: &[i64], error: Option<&str>) -> bool {
        let mut snapshot = self.snapshot.borrow_mut();
        if self.is_drained(row.start_ns) {
            snapshot.drained += 1;
        } else {
            snapshot.count(&row, self.deadline_ns.get());
        }
        drop(snapshot);
        if !self.is_logged {
            return false;
        }
        let mut buffers = self.buffers.borrow_mut();
        let buffer = &mut buffers[fragment];
        buffer.push(row, observed, error);
        let is_full = buffer.len() >= BATCH_ROWS || buffer.variable_bytes() >= BATCH_BYTES;
        if is_full {
            self.send(fragment, buffer);
        }
        is_full
    }

    fn send(&self, fragment: usize, buffer: &mut LogBuffer) {
        let full = std::mem::replace(buffer, buffer_like(buffer.len()));
        let stalled_ns = self.sender.send(self.logs[fragment], full);
        self.log_stall_ns.set(self.log_stall_ns.get() + stalled_ns);
        if self.sender.has_failed() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Sends everything that has been logged so far to the writer, and publishes the figures so far.
    pub fn hand_over(&self) {
        for (fragment, buffer) in self.buffers.borrow_mut().iter_mut().enumerate() {
            if !buffer.is_empty() {
                self.send(fragment, buffer);
            }
        }
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        *published = self.snapshot.borrow().clone();
        published.elapsed_ns = self.clock.now_ns() - self.part_began_ns.get();
    }

    /// Records how late the ticker was.
    pub fn record_lag(&self, late_ns: i64) {
        self.lag.borrow_mut().record(late_ns);
        let mut snapshot = self.snapshot.borrow_mut();
        snapshot.lag_ns_max = snapshot.lag_ns_max.max(late_ns);
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
        let before = self.snapshot.replace(Snapshot::default());
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
        WarmupReport { operations: before.outcomes.iter().sum(), ended_ns: began_ns }
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
