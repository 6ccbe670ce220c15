//! One operating-system thread that runs its share of the T threads as tasks.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use schemas::latency::ResponseTimes;
use schemas::oplog::{LogBuffer, LogRow, Outcome};
use schemas::trace::{TableError, TraceRow};

use crate::clock::{Clock, thread_cpu_ns};
use crate::dispatch::{Dependency, Dispatcher, Next, Session};
use crate::experiment::Snapshot;
use crate::feed::Feed;
use crate::log::{BATCH_ROWS, BATCH_VALUES, LogSender};
use crate::stores::{Answer, Connection, OperationError};

/// How often a worker looks at the clock for its own sake.
const TICK: Duration = Duration::from_millis(10);

/// How often it publishes progress and hands over what it has logged.
const PUBLISH_NS: i64 = 500_000_000;

/// A task that never has to wait for the store gives way to the others after
/// this time slice. Giving way after each session would cost more than a
/// session does against a store that answers at once.
const SLICE_NS: i64 = 20_000;

/// The time slice of a task that has no others beside it but the ticker.
const SLICE_ALONE_NS: i64 = 1_000_000;

/// What a worker is given.
pub struct WorkerPlan {
    /// Hands out the sessions of the worker's fragments.
    pub dispatcher: Dispatcher,
    /// The operations of each of them.
    pub feeds: Vec<Feed>,
    /// The number of each one's log.
    pub logs: Vec<usize>,
    /// To the logs.
    pub sender: LogSender,
    /// The experiment's time.
    pub clock: Clock,
    /// When no more sessions are taken from the trace.
    pub deadline_ns: Option<i64>,
    /// Set from outside to end early.
    pub stop: Arc<AtomicBool>,
    /// Where progress is published.
    pub snapshot: Arc<Mutex<Snapshot>>,
}

/// What a worker has to say in the end.
#[derive(Debug)]
pub struct WorkerReport {
    /// Counts and response times.
    pub snapshot: Snapshot,
    /// Each fragment's next session that has not been run.
    pub positions: Vec<u64>,
    /// Sessions that ended.
    pub sessions: u64,
    /// A fragment ran out of trace.
    pub ran_out: bool,
    /// Writes that did not succeed: the state is not what the positions say.
    pub writes_not_ok: u64,
    /// CPU time over wall time.
    pub cpu_share: f64,
    /// How late the 10 ms tick came.
    pub lag: ResponseTimes,
    /// Time lost waiting for the log.
    pub log_stall_ns: u64,
    /// Time lost waiting for the trace.
    pub trace_stall_ns: u64,
}

/// What the tasks of a worker share. They run on one thread, so cells will do.
struct Shared {
    dispatcher: RefCell<Dispatcher>,
    feeds: Vec<Feed>,
    logs: Vec<usize>,
    buffers: RefCell<Vec<LogBuffer>>,
    sender: LogSender,
    clock: Clock,
    deadline_ns: i64,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<Snapshot>>,
    snapshot: RefCell<Snapshot>,
    waiting: RefCell<Vec<Waker>>,
    error: RefCell<Option<TableError>>,
    sessions: Cell<u64>,
    writes_not_ok: Cell<u64>,
    log_stall_ns: Cell<u64>,
    trace_stall_ns: Cell<u64>,
    lag: RefCell<ResponseTimes>,
    running: Cell<usize>,
}

/// Runs one task for each connection until the experiment ends.
///
/// `first_thread` is the number of the first of them. Must run inside a
/// `LocalSet` of a current-thread runtime.
pub async fn run<C: Connection>(
    plan: WorkerPlan,
    first_thread: u32,
    connections: Vec<C>,
) -> Result<WorkerReport, TableError> {
    let threads = connections.len();
    let shared = Rc::new(Shared {
        buffers: RefCell::new(plan.logs.iter().map(|_| new_buffer()).collect()),
        dispatcher: RefCell::new(plan.dispatcher),
        feeds: plan.feeds,
        logs: plan.logs,
        sender: plan.sender,
        clock: plan.clock,
        deadline_ns: plan.deadline_ns.unwrap_or(i64::MAX),
        stop: plan.stop,
        published: plan.snapshot,
        snapshot: RefCell::default(),
        waiting: RefCell::default(),
        error: RefCell::default(),
        sessions: Cell::new(0),
        writes_not_ok: Cell::new(0),
        log_stall_ns: Cell::new(0),
        trace_stall_ns: Cell::new(0),
        lag: RefCell::default(),
        running: Cell::new(threads),
    });
    shared.clock.sleep_until(0).await;
    let cpu_before = thread_cpu_ns();
    let ticker = tokio::task::spawn_local(tick(shared.clone()));
    let tasks: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(i, connection)| {
            let thread = first_thread + i as u32;
            tokio::task::spawn_local(emulate(shared.clone(), connection, thread, threads > 1))
        })
        .collect();
    for task in tasks.into_iter().chain([ticker]) {
        if let Err(error) = task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    shared.hand_over();
    let wall_ns = shared.clock.now_ns().max(1);
    let report = WorkerReport {
        snapshot: shared.snapshot.borrow().clone(),
        positions: shared.dispatcher.borrow().positions().collect(),
        sessions: shared.sessions.get(),
        ran_out: shared.dispatcher.borrow().ran_out(),
        writes_not_ok: shared.writes_not_ok.get(),
        cpu_share: (thread_cpu_ns() - cpu_before) as f64 / wall_ns as f64,
        lag: shared.lag.borrow().clone(),
        log_stall_ns: shared.log_stall_ns.get(),
        trace_stall_ns: shared.trace_stall_ns.get(),
    };
    match shared.error.take() {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

fn new_buffer() -> LogBuffer {
    LogBuffer::with_capacity(BATCH_ROWS, 4)
}

/// One emulated stream of sessions.
async fn emulate<C: Connection>(shared: Rc<Shared>, mut connection: C, thread: u32, others: bool) {
    let mut answer = Answer::default();
    let mut now_ns = shared.clock.now_ns();
    let mut yielded_ns = now_ns;
    let slice_ns = if others { SLICE_NS } else { SLICE_ALONE_NS };
    while let Some(session) = shared.next_session(now_ns).await {
        let mut ok = true;
        for row in session.rows() {
            let (outcome, end_ns) = perform(&shared, &mut connection, &session, row, thread, &mut answer).await;
            now_ns = end_ns;
            ok &= outcome == Outcome::Ok || row.operation.action.is_read();
        }
        shared.finish(&session, ok);
        if now_ns - yielded_ns > slice_ns {
            tokio::task::yield_now().await;
            now_ns = shared.clock.now_ns();
            yielded_ns = now_ns;
        }
    }
    shared.running.set(shared.running.get() - 1);
}

/// One operation: wait as the trace says, call the store, log. Gives its end.
async fn perform<C: Connection>(
    shared: &Shared,
    connection: &mut C,
    session: &Session,
    row: &TraceRow,
    thread: u32,
    answer: &mut Answer,
) -> (Outcome, i64) {
    let clock = &shared.clock;
    if row.think_us > 0 {
        clock.sleep_until(clock.now_ns() + row.think_us as i64 * 1_000).await;
    }
    let mut waited_ns = 0;
    let mut dependency = Dependency::Done;
    if let Some(after) = row.after {
        dependency = shared.dispatcher.borrow().dependency(session.fragment, after);
        if dependency == Dependency::Pending {
            let began_ns = clock.now_ns();
            dependency = shared.wait_for(session.fragment, after).await;
            waited_ns = clock.now_ns() - began_ns;
        }
    }
    answer.clear();
    let start_ns = clock.now_ns();
    let (outcome, error, end_ns) = if dependency == Dependency::NotOk {
        answer.attempts = 0;
        (Outcome::Skipped, Some("a write that it depends on did not succeed".to_string()), start_ns)
    } else {
        let result = connection.execute(&row.operation, answer).await;
        let end_ns = clock.now_ns();
        match result {
            Ok(()) => (Outcome::Ok, None, end_ns),
            Err(OperationError::Failed(error)) => (Outcome::Failed, Some(error), end_ns),
            Err(OperationError::Unknown(error)) => (Outcome::Unknown, Some(error), end_ns),
        }
    };
    if outcome != Outcome::Ok {
        answer.values.clear();
    }
    let logged = LogRow {
        session: row.session,
        step: row.step,
        thread,
        due_ns: row.due_us.map(|due| due as i64 * 1_000),
        start_ns,
        end_ns,
        waited_ns,
        pool_wait_ns: answer.pool_wait_ns,
        attempts: answer.attempts,
        outcome,
    };
    shared.log(session.fragment, logged, &answer.values, error.as_deref());
    if outcome != Outcome::Ok && row.operation.action.is_write() {
        shared.writes_not_ok.set(shared.writes_not_ok.get() + 1);
    }
    (outcome, end_ns)
}

impl Shared {
    /// The next session for a task; none when it is to end.
    async fn next_session(&self, now_ns: i64) -> Option<Session> {
        let mut now_ns = now_ns;
        loop {
            if now_ns >= self.deadline_ns || self.stop.load(Ordering::Relaxed) {
                self.dispatcher.borrow_mut().close();
            }
            let next = self.dispatcher.borrow_mut().hand_out();
            match next {
                Next::Session(session) => return Some(session),
                Next::Finished => return None,
                Next::NeedsChunk(fragment) => self.supply(fragment),
                Next::Blocked => {
                    self.wait_once().await;
                    now_ns = self.clock.now_ns();
                }
            }
        }
    }

    fn supply(&self, fragment: usize) {
        let began_ns = self.clock.now_ns();
        match self.feeds[fragment].next() {
            Ok((chunk, waited)) => {
                if waited {
                    let stall = self.clock.now_ns() - began_ns;
                    self.trace_stall_ns.set(self.trace_stall_ns.get() + stall as u64);
                }
                self.dispatcher.borrow_mut().supply(fragment, chunk);
            }
            Err(error) => {
                *self.error.borrow_mut() = Some(error);
                let mut dispatcher = self.dispatcher.borrow_mut();
                dispatcher.supply(fragment, None);
                dispatcher.close();
            }
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

    async fn wait_for(&self, fragment: usize, after: u64) -> Dependency {
        loop {
            self.wait_once().await;
            let dependency = self.dispatcher.borrow().dependency(fragment, after);
            if dependency != Dependency::Pending {
                return dependency;
            }
        }
    }

    #[inline]
    fn finish(&self, session: &Session, ok: bool) {
        self.dispatcher.borrow_mut().finish(session, ok);
        self.sessions.set(self.sessions.get() + 1);
        // Hardly anybody ever waits, so whoever does looks again by herself.
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.is_empty() {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    #[inline]
    fn log(&self, fragment: usize, row: LogRow, observed: &[i64], error: Option<&str>) {
        let mut buffers = self.buffers.borrow_mut();
        let buffer = &mut buffers[fragment];
        buffer.push(row, observed, error);
        if buffer.len() >= BATCH_ROWS || buffer.observed_len() >= BATCH_VALUES {
            self.send(fragment, buffer);
        }
        self.snapshot.borrow_mut().count(&row);
    }

    fn send(&self, fragment: usize, buffer: &mut LogBuffer) {
        let full = std::mem::replace(buffer, new_buffer());
        let stalled_ns = self.sender.send(self.logs[fragment], full);
        self.log_stall_ns.set(self.log_stall_ns.get() + stalled_ns);
        if self.sender.has_failed() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Sends all that has been logged so far on its way to the disk.
    fn hand_over(&self) {
        for (fragment, buffer) in self.buffers.borrow_mut().iter_mut().enumerate() {
            if !buffer.is_empty() {
                self.send(fragment, buffer);
            }
        }
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        *published = self.snapshot.borrow().clone();
        published.elapsed_ns = self.clock.now_ns();
    }
}

/// Measures how late the worker takes up work, and publishes from time to time.
async fn tick(shared: Rc<Shared>) {
    let mut published_ns = shared.clock.now_ns();
    while shared.running.get() > 0 {
        let asked_ns = shared.clock.now_ns();
        tokio::time::sleep(TICK).await;
        let now_ns = shared.clock.now_ns();
        // The timer itself may be up to one of its milliseconds late.
        let late_ns = now_ns - asked_ns - TICK.as_nanos() as i64 - 1_000_000;
        shared.lag.borrow_mut().record(late_ns.max(0));
        if now_ns - published_ns >= PUBLISH_NS {
            published_ns = now_ns;
            shared.hand_over();
        }
    }
}
