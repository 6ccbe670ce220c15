//! One operating-system thread that runs its share of the T threads as tasks.

mod emulate;
pub mod gate;
mod shared;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemas::latency::ResponseTimes;
use schemas::trace::TableError;

use crate::clock::{Clock, thread_cpu_ns};
use crate::dispatch::Dispatcher;
use crate::experiment::Snapshot;
use crate::feed::Feed;
use crate::log::LogSender;
use crate::stores::Connection;
use emulate::{Thread, emulate};
use gate::{Opening, Pass};
use shared::Shared;

/// How often a worker looks at the clock for its own sake.
const TICK: Duration = Duration::from_millis(10);

/// How often it publishes progress and hands over what it has logged.
const PUBLISH_NS: i64 = 500_000_000;

/// What a worker is given.
pub struct WorkerPlan {
    /// Hands out the sessions of the worker's fragments; the warm-up alone where
    /// there is one.
    pub dispatcher: Dispatcher,
    /// The operations of each of them.
    pub feeds: Vec<Feed>,
    /// The number of each one's log.
    pub logs: Vec<usize>,
    /// To the logs.
    pub sender: LogSender,
    /// Whether operations are logged; not when the cost of the log is measured.
    pub is_logged: bool,
    /// The experiment's time.
    pub clock: Clock,
    /// To the measured part, where a warm-up comes before it.
    pub pass: Option<Pass>,
    /// How long the measured part takes; none when it ends with its sessions.
    pub duration_ns: Option<i64>,
    /// Set from outside to end early.
    pub stop: Arc<AtomicBool>,
    /// Where progress is published.
    pub snapshot: Arc<Mutex<Snapshot>>,
}

/// What a worker has to say in the end: of the measured part, but where it says
/// otherwise.
#[derive(Debug)]
pub struct WorkerReport {
    /// Counts and response times.
    pub snapshot: Snapshot,
    /// Each fragment's next session that has not been run.
    pub positions: Vec<u64>,
    /// Sessions that ended.
    pub sessions: u64,
    /// A fragment ran out of trace, in the warm-up or later.
    pub ran_out: bool,
    /// Writes that did not succeed, those of the warm-up too: the state is not
    /// what the positions say.
    pub writes_not_ok: u64,
    /// CPU time over wall time.
    pub cpu_share: f64,
    /// How late the 10 ms tick came.
    pub lag: ResponseTimes,
    /// Time lost waiting for the log.
    pub log_stall_ns: u64,
    /// Time lost waiting for the trace.
    pub trace_stall_ns: u64,
    /// The warm-up.
    pub warmup: WarmupReport,
}

/// How a worker's warm-up went.
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmupReport {
    /// Its operations, whatever their outcome.
    pub operations: u64,
    /// When it was over: the beginning of the measured part, where there was one.
    pub ended_ns: i64,
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
    let mut threads: Vec<Thread<C>> = Thread::of(connections, first_thread);
    let (shared, pass) = Shared::new(plan, threads.len());
    shared.clock.sleep_until(0).await;
    let ticker = tokio::task::spawn_local(tick(shared.clone()));
    let mut cpu_before_ns = thread_cpu_ns();
    let mut opening = Opening::At(0);
    let mut warmup = WarmupReport::default();
    if let Some(pass) = pass {
        threads = replay(&shared, threads).await;
        opening = pass.through(shared.can_go_on(), &shared.clock).await;
        cpu_before_ns = thread_cpu_ns();
        warmup = shared.end_warmup(opening);
    }
    if opening != Opening::Never {
        replay(&shared, threads).await;
    }
    shared.ended.set(true);
    joined(ticker).await;
    let cpu_ns = thread_cpu_ns() - cpu_before_ns;
    // What is left to write holds nobody up any more.
    let report = shared.report(cpu_ns, warmup);
    shared.hand_over();
    match shared.error.take() {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

/// Lets all threads run until there is nothing left for them to do.
async fn replay<C: Connection>(shared: &Rc<Shared>, threads: Vec<Thread<C>>) -> Vec<Thread<C>> {
    let others = threads.len() > 1;
    let tasks: Vec<_> =
        threads.into_iter().map(|thread| tokio::task::spawn_local(emulate(shared.clone(), thread, others))).collect();
    let mut threads = Vec::with_capacity(tasks.len());
    for task in tasks {
        threads.push(joined(task).await);
    }
    threads
}

/// A task's result; its panic goes on here.
async fn joined<X>(task: tokio::task::JoinHandle<X>) -> X {
    match task.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Measures how late the worker takes up work, publishes from time to time, and
/// tells sleeping threads when the experiment is to end early.
async fn tick(shared: Rc<Shared>) {
    let mut published_ns = shared.clock.now_ns();
    while !shared.ended.get() {
        let asked_ns = shared.clock.now_ns();
        tokio::time::sleep(TICK).await;
        let now_ns = shared.clock.now_ns();
        // The timer itself may be up to one of its milliseconds late.
        let late_ns = now_ns - asked_ns - TICK.as_nanos() as i64 - 1_000_000;
        shared.record_lag(late_ns.max(0));
        if now_ns - published_ns >= PUBLISH_NS {
            published_ns = now_ns;
            shared.hand_over();
        }
        shared.look_for_stop();
    }
}
