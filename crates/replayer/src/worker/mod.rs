//! One operating-system thread that runs its share of the T threads as tasks.

mod emulate;
pub mod gate;
mod lag;
mod logging;
mod margin;
mod pacer;
mod shared;
#[cfg(test)]
mod tests;
mod throttle;
mod transact;
mod turns;
mod waits;

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use schemas::pace::Overload;
use schemas::plan::Transactions;
use schemas::run::FragmentPosition;
use schemas::table::TableError;
use schemas::vocabulary::Vocabulary;

use crate::clock::{Alarms, Clock, set_alarms, thread_cpu_ns, thread_run_delay_ns};
use crate::dispatch::Dispatcher;
use crate::experiment::Snapshot;
use crate::feed::Feed;
use crate::log::LogSender;
use crate::stores::Connection;
use emulate::{IdleThreads, Thread, emulate};
use gate::{Opening, Pass};
pub use lag::Lag;
pub use pacer::Kept;
use shared::Shared;
pub use throttle::Throttle;
use waits::Until;

/// How often a worker measures how late it is, on average.
const TICK_NS: i64 = 5_000_000;

/// The pauses between the ticks of a worker: between half of [`TICK_NS`] and one and a half.
/// Ticks in a fixed rhythm would never meet answers that come together in the same rhythm.
struct Ticks(u64);

impl Ticks {
    /// A linear congruential generator is enough: the pauses only have to be far from any rhythm.
    fn next_ns(&mut self) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        TICK_NS / 2 + ((self.0 >> 33) % TICK_NS as u64) as i64
    }
}

/// How often a worker publishes progress and hands over the rows that it has logged.
const PUBLISH_NS: i64 = 500_000_000;

/// The longest time that a worker goes without checking for a stop.
const LOOK_NS: i64 = 50_000_000;

/// What starts the sessions of a worker.
#[derive(Debug, Clone, PartialEq)]
pub enum Loop {
    /// A thread starts its next session when the last one has ended, within these limits if there are
    /// any.
    Closed(Option<Throttle>),
    /// Sessions start when they are due. The dispatcher knows when that is.
    Open(Overload),
}

/// What a worker is given.
pub struct WorkerPlan<V: Vocabulary> {
    /// Hands out the sessions of the worker's fragments; only the warm-up if there is one.
    pub dispatcher: Dispatcher<V>,
    /// The numbers of these fragments.
    pub fragments: Vec<u32>,
    /// The operations of each of them.
    pub feeds: Vec<Feed<V>>,
    /// The number of each one's log.
    pub logs: Vec<usize>,
    /// Sends rows to the logs.
    pub sender: LogSender,
    /// Whether operations are logged; not when the cost of the log is measured.
    pub is_logged: bool,
    /// The experiment's time.
    pub clock: Clock,
    /// Leads through the gate to the measured part, if a warm-up comes before it.
    pub pass: Option<Pass>,
    /// How long the measured part takes; none when it ends with its sessions.
    pub duration_ns: Option<i64>,
    /// Set from outside to end early.
    pub stop: Arc<AtomicBool>,
    /// Set from outside to give up the operations in flight, too.
    pub abandon: Arc<AtomicBool>,
    /// What starts the sessions.
    pub loop_kind: Loop,
    /// Whether the store is asked for transactions, and how often each is tried.
    pub transactions: Transactions,
    /// Set by the worker whose session had to queue, if the experiment ends then.
    pub overloaded: Arc<AtomicBool>,
    /// Where progress is published.
    pub snapshot: Arc<Mutex<Snapshot>>,
}

/// The report of a worker. It covers the measured part, unless a field says otherwise.
#[derive(Debug)]
pub struct WorkerReport {
    /// Counts and response times.
    pub snapshot: Snapshot,
    /// Where each fragment stands.
    pub positions: Vec<FragmentPosition>,
    /// Sessions that ended.
    pub sessions: u64,
    /// A fragment ran out of trace, in the warm-up or later.
    pub ran_out: bool,
    /// Writes that did not succeed, including those of the warm-up. If there are any, the store's
    /// state is not what the positions say.
    pub writes_not_ok: u64,
    /// CPU time over wall time.
    pub cpu_share: f64,
    /// Time of waiting for a processor over wall time; none if the kernel does not count it.
    pub run_delay_share: Option<f64>,
    /// How late the worker handled what had happened.
    pub lag: Lag,
    /// Time that threads had no session to take, because of busy actors.
    pub idle_ns: u64,
    /// Time that sessions were under way, within the planned time.
    pub session_ns: u64,
    /// Time lost waiting for the log.
    pub log_stall_ns: u64,
    /// Time lost waiting for the trace.
    pub trace_stall_ns: u64,
    /// The warm-up.
    pub warmup: WarmupReport,
    /// Whether the experiment ended because a session had to queue.
    pub was_overloaded: bool,
    /// How due times were kept; none in a closed loop.
    pub kept: Option<Kept>,
}

/// How a worker's warm-up went.
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmupReport {
    /// Its operations, whatever their outcome.
    pub operations: u64,
    /// When it was over: the beginning of the measured part, if there was one.
    pub ended_ns: i64,
}

/// CPU time of a worker's thread, and the time it waited for a processor.
#[derive(Debug, Clone, Copy)]
struct Used {
    cpu_ns: i64,
    run_delay_ns: Option<i64>,
}

impl Used {
    fn now() -> Used {
        Used { cpu_ns: thread_cpu_ns(), run_delay_ns: thread_run_delay_ns() }
    }

    fn since(self, before: Used) -> Used {
        let run_delay_ns = self.run_delay_ns.zip(before.run_delay_ns).map(|(now, before)| now - before);
        Used { cpu_ns: self.cpu_ns - before.cpu_ns, run_delay_ns }
    }
}

/// Runs one task for each connection until the experiment ends.
///
/// `first_thread` is the number of the first of them. Must run inside a
/// `LocalRuntime` or a `LocalSet`.
pub async fn run<V: Vocabulary, C: Connection<V>>(
    plan: WorkerPlan<V>,
    first_thread: u32,
    connections: Vec<C>,
) -> Result<WorkerReport, TableError> {
    let mut threads: Vec<Thread<V, C>> = Thread::of(connections, first_thread);
    let (shared, pass) = Shared::new(plan, threads.len());
    let alarms = Rc::new(Alarms::new().map_err(|e| TableError::refused(Path::new("timerfd"), e))?);
    set_alarms(Some(alarms.clone()));
    let ticker = tokio::task::spawn_local(tick(shared.clone(), alarms));
    // A stop ends this wait too, however far off the start is.
    shared.rest(0, 0, Until::Over).await;
    let mut used_before = Used::now();
    let mut opening = Opening::At(0);
    let mut warmup = WarmupReport::default();
    if let Some(pass) = pass {
        threads = replay(&shared, threads).await;
        opening = pass.through(shared.can_go_on()).await;
        if let Opening::At(at_ns) = opening {
            shared.rest(0, at_ns, Until::Stopped).await;
        }
        used_before = Used::now();
        warmup = shared.end_warmup(opening);
    }
    if opening != Opening::Never {
        replay(&shared, threads).await;
    }
    shared.ended.set(true);
    joined(ticker).await;
    set_alarms(None);
    // Writing the rest delays no operation any more.
    let mut report = shared.report(Used::now().since(used_before), warmup);
    shared.hand_over();
    report.kept = shared.kept();
    match shared.error.take() {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

/// Lets all threads run until there is nothing left for them to do.
async fn replay<V: Vocabulary, C: Connection<V>>(
    shared: &Rc<Shared<V>>,
    threads: Vec<Thread<V, C>>,
) -> Vec<Thread<V, C>> {
    let idle = Rc::new(IdleThreads::of(threads.len()));
    let task = |thread| tokio::task::spawn_local(emulate(shared.clone(), idle.clone(), thread));
    let tasks: Vec<_> = threads.into_iter().map(task).collect();
    let mut threads = Vec::with_capacity(tasks.len());
    for task in tasks {
        threads.push(joined(task).await);
    }
    threads
}

/// A task's result. If the task panicked, the panic resumes here.
async fn joined<X>(task: tokio::task::JoinHandle<X>) -> X {
    match task.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Drives the worker's alarms, measures how late the worker handles what has happened, publishes
/// from time to time, and wakes sleeping threads when the experiment is to end early.
async fn tick<V: Vocabulary>(shared: Rc<Shared<V>>, alarms: Rc<Alarms>) {
    let mut published_ns = shared.clock.now_ns();
    let mut ticks = Ticks(1);
    // Counted from the start, which may have passed.
    let mut due_ns = ticks.next_ns();
    shared.ticks_at(due_ns);
    while !shared.ended.get() {
        // The worker checks for a stop even before the start, which may be far off.
        let look_ns = due_ns.min(shared.clock.now_ns() + LOOK_NS);
        if let Err(error) = alarms.drive(shared.clock.monotonic_ns(look_ns)).await {
            shared.fail(TableError::refused(Path::new("timerfd"), error));
            return;
        }
        let now_ns = shared.clock.now_ns();
        shared.notice_stall(now_ns);
        // A missed tick would have found the worker as late as it was then, so each of them counts.
        while due_ns <= now_ns {
            shared.record_lag(now_ns - due_ns);
            due_ns += ticks.next_ns();
        }
        shared.ticks_at(due_ns);
        if now_ns - published_ns >= PUBLISH_NS {
            published_ns = now_ns;
            shared.hand_over();
        }
        shared.look_for_stop();
    }
}
