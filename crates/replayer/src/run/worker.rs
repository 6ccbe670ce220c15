//! One worker of an experiment: connects, waits for the start, and replays its fragments.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use schemas::plan::{Limit, Transactions};
use schemas::vocabulary::Vocabulary;
use tokio::runtime::{LocalOptions, LocalRuntime};

use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Stretch};
use crate::experiment::{Experiment, ExperimentError, Snapshot};
use crate::feed::Feed;
use crate::log::LogSender;
use crate::source::Source;
use crate::stores::pool::{Pool, Route};
use crate::stores::{Serves, StoreError};
use crate::worker::gate::Pass;
use crate::worker::{self, Loop, Throttle, WorkerPlan, WorkerReport};

/// What a worker needs to begin, once all are connected.
pub struct Start {
    pub clock: Clock,
    pub sender: LogSender,
}

/// How many tasks run at most before answers and alarms are looked for. The default, 61, delays both by
/// as many slices of time.
const EVENT_INTERVAL: u32 = 8;

/// One worker's part in an experiment.
pub struct Worker<'a> {
    pub share: &'a [usize],
    pub first_thread: u32,
    pub threads: u32,
    /// How many of its threads work at each step of the plan's threads over time.
    pub threads_at_steps: Vec<usize>,
    pub pass: Option<Pass>,
    pub snapshot: Arc<Mutex<Snapshot>>,
    pub stop: Arc<AtomicBool>,
    pub abandon: Arc<AtomicBool>,
    /// Set by the worker whose session had to queue, if the experiment ends then.
    pub overloaded: Arc<AtomicBool>,
}

impl Worker<'_> {
    /// Connects, reports that it is ready, waits for the start, and runs. None if no start came.
    pub fn run<V: Vocabulary, S: Serves<V>>(
        self,
        store: &S,
        experiment: &Experiment,
        ready: Sender<()>,
        start: &Receiver<Start>,
    ) -> Result<Option<WorkerReport>, ExperimentError> {
        let (plan, source) = (&experiment.plan, &experiment.source);
        let feeds = self.share.iter().map(|index| {
            let fragment = &plan.fragments[*index];
            Feed::start(source, fragment, plan.fragments.len())
        });
        let mut feeds: Vec<Feed<V>> = feeds.collect::<Result<_, _>>().map_err(ExperimentError::Worker)?;
        let runtime = local_runtime().map_err(ExperimentError::Worker)?;
        let connections = runtime.block_on(async {
            let threads = self.first_thread..self.first_thread + self.threads;
            connect(store, source, threads, plan.threads).await
        })?;
        let stretches: Vec<Stretch> = self.share.iter().map(|index| experiment.stretches[*index].clone()).collect();
        let unique_among = plan.unique_actors.then_some(source.actors());
        let mut dispatcher = Dispatcher::new(&stretches, self.threads as usize, unique_among);
        let loop_kind = match plan.open_loop {
            Some(open) => {
                dispatcher = dispatcher.open_loop(experiment.rhythms(open.due, self.share));
                Loop::Open(open.overload)
            }
            None => Loop::Closed(Throttle::of(plan, &self.threads_at_steps)),
        };
        if self.pass.is_some() {
            dispatcher = dispatcher.warming_up(&stretches);
        }
        // Opening the trace is not part of the experiment either.
        feeds.iter_mut().for_each(Feed::fill);
        // The receiver counts until all senders are gone, so it is still there.
        let _ = ready.send(());
        drop(ready);
        let Ok(Start { clock, sender }) = start.recv() else { return Ok(None) };
        let duration_ns = match plan.limit {
            Limit::DurationS(seconds) => Some((seconds * 1e9) as i64),
            _ => None,
        };
        let worker_plan = WorkerPlan {
            dispatcher,
            fragments: self.share.iter().map(|index| plan.fragments[*index].fragment).collect(),
            feeds,
            logs: self.share.to_vec(),
            sender,
            is_logged: experiment.is_logged,
            clock,
            pass: self.pass,
            duration_ns,
            stop: self.stop,
            abandon: self.abandon,
            loop_kind,
            transactions: Transactions {
                used: plan.transactions.used && store.transactions().is_some(),
                ..plan.transactions
            },
            overloaded: self.overloaded,
            snapshot: self.snapshot,
        };
        Ok(Some(runtime.block_on(worker::run(worker_plan, self.first_thread, connections))?))
    }
}

/// A runtime of one thread. Its own tasks and those of a driver wait in one queue: in a `LocalSet` a
/// driver's task would wake the threads' tasks by a system call, for each operation.
pub(super) fn local_runtime() -> io::Result<LocalRuntime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.event_interval(EVENT_INTERVAL).enable_all().build_local(LocalOptions::default())
}

/// The route to the store for each thread of a worker: a connection of its own, or the pool of
/// the worker's share of `connections=`.
async fn connect<V: Vocabulary, S: Serves<V>>(
    store: &S,
    source: &Source,
    threads: Range<u32>,
    threads_of_all: u32,
) -> Result<Vec<Route<S::Connection>>, StoreError> {
    let Some(most) = store.connections_max().filter(|most| *most < threads_of_all) else {
        let connections = store.connect(source, threads).await?;
        return Ok(connections.into_iter().map(Route::Own).collect());
    };
    let up_to = |thread: u32| (most as u64 * thread as u64 / threads_of_all as u64) as u32;
    let share = up_to(threads.end) - up_to(threads.start);
    if share == 0 {
        let message = format!("connections={most} is less than the number of workers; use at least one per worker");
        return Err(StoreError::usage(store.url(), message));
    }
    let pool = Rc::new(Pool::new(store.connect(source, threads.start..threads.start + share).await?));
    Ok(threads.map(|_| Route::through(pool.clone())).collect())
}
