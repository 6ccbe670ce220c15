//! Runs an experiment: check the state, connect, run the workers, close the
//! logs, write down the state.

mod report;
mod state;

use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::files;
use schemas::oplog::{LogHeader, ReservedLog};
use schemas::plan::{FragmentPlan, Limit};
use schemas::run::{FragmentPosition, ReplayReport};
use schemas::trace::TableError;

use crate::clock::{Clock, unix_ns};
use crate::dispatch::{Dispatcher, Stretch, aside_max};
use crate::experiment::{Control, Experiment, ExperimentError, Papers, Part, Snapshot, StoreDuty};
use crate::feed::Feed;
use crate::log::{LogSender, OperationLogs, UNWRITTEN_ROWS_MAX};
use crate::source::Source;
use crate::stores::pool::{Pool, Route};
use crate::stores::{Blame, HeldState, Store, StoreError, block_on};
use crate::worker::gate::{self, Keeper, Opening, Pass};
use crate::worker::{self, WorkerPlan, WorkerReport};
use report::summarize;
use state::{advanced, set_running};
pub(crate) use state::{attune, check_state, positions};

/// Runs an experiment on a store.
pub fn run<S: Store>(
    store: &S,
    experiment: &Experiment,
    control: &Control,
    progress: &mut dyn FnMut(Snapshot),
) -> Result<ReplayReport, ExperimentError> {
    let plan = &experiment.plan;
    let url = store.url();
    if control.duty != StoreDuty::Follows {
        block_on(url, check_state(store, experiment))?;
    }
    if control.duty == StoreDuty::Alone {
        block_on(url, attune(store))?;
    }
    let log_folder = experiment.folder.join("log");
    std::fs::create_dir_all(&log_folder).map_err(files::at(&log_folder))?;
    if experiment.papers == Papers::PlanAndReport {
        files::write_json(&experiment.folder.join("plan.json"), &plan.redacted())?;
    }
    let settings = block_on(url, store.settings())?;
    let counted_before = store.counters();
    let shares = experiment.shares();
    let workers = run_workers(store, experiment, &shares, control, progress)?;

    let mut report = summarize(experiment, &shares, workers, control);
    report.store_settings = settings;
    report.store_counters = store.counters();
    for (name, before) in counted_before {
        if let Some(count) = report.store_counters.get_mut(&name) {
            *count -= before;
        }
    }
    if control.duty == StoreDuty::Follows && store.is_suspect() {
        // Whoever leads settles for all, and hears of nothing but writes.
        report.writes_not_ok += 1;
    }
    // Whatever becomes of the store now, this is how the experiment went.
    if experiment.papers != Papers::Nothing {
        files::write_json(&experiment.folder.join("replay.json"), &report)?;
    }
    if control.duty == StoreDuty::Alone {
        settle(store, plan.experiment, &report.positions, report.writes_not_ok)?;
    }
    Ok(report)
}

/// How often the store is told where it stands, and how long to wait in between:
/// a server that is being restarted is back within seconds.
const SETTLE_ATTEMPTS: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// Tells the store where it stands after an experiment.
pub fn settle<S: Store>(
    store: &S,
    experiment: u32,
    positions: &[FragmentPosition],
    writes_not_ok: u64,
) -> Result<(), StoreError> {
    let diverged = match writes_not_ok {
        0 => None,
        n => Some(format!("{n} writes of experiment {experiment} did not succeed")),
    };
    block_on(store.url(), settle_patiently(store, positions, diverged))
}

async fn settle_patiently<S: Store>(
    store: &S,
    positions: &[FragmentPosition],
    diverged: Option<String>,
) -> Result<(), StoreError> {
    let mut attempt = 1;
    loop {
        let told = async {
            let Some(held) = store.held().await? else { return Ok(()) };
            let positions = advanced(&held.positions, positions);
            store.set_held(&HeldState { positions, diverged: diverged.clone(), ..held }).await
        };
        match told.await {
            Err(error) if error.blame == Blame::Store && attempt < SETTLE_ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
            told => return told,
        }
    }
}

/// What a worker needs to begin, once all are connected.
struct Start {
    clock: Clock,
    sender: LogSender,
}

/// Connects all workers, then lets them start at the same time. Connecting
/// takes its time and is not part of the experiment.
fn run_workers<S: Store>(
    store: &S,
    experiment: &Experiment,
    shares: &[Vec<usize>],
    control: &Control,
    progress: &mut dyn FnMut(Snapshot),
) -> Result<Vec<WorkerReport>, ExperimentError> {
    let threads = experiment.threads(shares);
    let warms_up = experiment.has_warmup() || control.others_warm_up;
    let part = if warms_up { Part::WarmUp } else { Part::Measured };
    let snapshot = || Arc::new(Mutex::new(Snapshot { part, ..Snapshot::default() }));
    let snapshots: Vec<Arc<Mutex<Snapshot>>> = shares.iter().map(|_| snapshot()).collect();
    let (mut keeper, mut passes) = match warms_up {
        true => Some(gate::gate(shares.len())).unzip(),
        false => (None, None),
    };
    let reports = std::thread::scope(|scope| {
        let (ready_sender, ready) = channel();
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        let mut first_thread = 0;
        for (index, share) in shares.iter().enumerate() {
            let (start_sender, start) = channel::<Start>();
            starts.push(start_sender);
            let worker = Worker {
                share,
                first_thread,
                threads: threads[index],
                pass: passes.as_mut().and_then(Vec::pop),
                snapshot: snapshots[index].clone(),
                stop: control.stop.clone(),
                abandon: control.abandon.clone(),
            };
            first_thread += threads[index];
            let ready = ready_sender.clone();
            handles.push(scope.spawn(move || worker.run(store, experiment, ready, &start)));
        }
        drop(ready_sender);
        // A worker that could not connect sends no word but ends with its error;
        // the others end when their `Start` does not come.
        let all_ready = ready.iter().count() == shares.len();
        // Files are created before the start is agreed: on a busy disk that may take longer
        // than there is until then.
        let reserved = if all_ready { reserve_logs(experiment)? } else { Vec::new() };
        // From the start on the store changes. Saying so takes it a moment, which nobody
        // has who is to start with others: it is said before.
        let before = match all_ready && control.duty != StoreDuty::Follows {
            true => block_on(store.url(), set_running(store))?,
            false => None,
        };
        let start_unix_ns = match (&control.start, all_ready) {
            (_, false) => None,
            (Some(wait), true) => wait(),
            (None, true) => Some(unix_ns()),
        };
        let take_back = || match &before {
            // Whoever leads others cannot know whether one of them has heard of the start.
            _ if control.duty != StoreDuty::Alone => Ok(()),
            Some(held) => block_on(store.url(), store.set_held(held)),
            None => Ok(()),
        };
        let begun = match start_unix_ns {
            Some(at) => {
                // One that hears of its start too late, because it stood still, has missed the
                // beginning: its time runs from there all the same, and it is that late.
                let clock = Clock::starting_in(at - unix_ns());
                let files = reserved.into_iter().zip(log_headers(experiment, shares, &threads, at)).collect();
                let logs = match OperationLogs::begin(files, experiment.log_compression) {
                    Ok(logs) => logs,
                    Err(error) => {
                        // Why there is no log matters more than what the store says of itself.
                        let _ = take_back();
                        return Err(error.into());
                    }
                };
                for start in &starts {
                    // A worker that is gone has left its error in its handle.
                    let _ = start.send(Start { clock, sender: logs.sender() });
                }
                Some((logs, clock))
            }
            None => {
                reserved.into_iter().try_for_each(ReservedLog::remove)?;
                take_back()?;
                None
            }
        };
        let (logs, clock) = begun.unzip();
        drop(starts);
        while handles.iter().any(|h| !h.is_finished()) {
            keeper = watch_gate(keeper, clock.as_ref(), control);
            progress(merged(&snapshots));
        }
        let mut reports = Vec::new();
        for handle in handles {
            match handle.join() {
                Ok(report) => reports.push(report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // A log that could not be written is why the workers ended: it comes first.
        logs.map_or(Ok(()), OperationLogs::close)?;
        reports.into_iter().collect::<Result<Vec<_>, ExperimentError>>()
    })?;
    progress(merged(&snapshots));
    Ok(reports.into_iter().flatten().collect())
}

/// Passes some time, and opens the gate once all workers have come to it.
fn watch_gate(keeper: Option<Keeper>, clock: Option<&Clock>, control: &Control) -> Option<Keeper> {
    let (Some(keeper), Some(clock)) = (keeper, clock) else {
        std::thread::sleep(POLL);
        return None;
    };
    let Some(go_on) = keeper.all_came(POLL) else { return Some(keeper) };
    let start_unix_ns = match &control.start {
        _ if !go_on => None,
        Some(wait) => wait(),
        None => Some(unix_ns()),
    };
    keeper.open(match start_unix_ns {
        Some(at) => Opening::At(clock.now_ns() + (at - unix_ns())),
        None => Opening::Never,
    });
    None
}

/// How often progress is looked at.
const POLL: Duration = Duration::from_millis(100);

/// One worker's part in an experiment.
struct Worker<'a> {
    share: &'a [usize],
    first_thread: u32,
    threads: u32,
    pass: Option<Pass>,
    snapshot: Arc<Mutex<Snapshot>>,
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
}

impl Worker<'_> {
    /// Connects, says so, waits for the start, runs. None when the start never came.
    fn run<S: Store>(
        self,
        store: &S,
        experiment: &Experiment,
        ready: Sender<()>,
        start: &Receiver<Start>,
    ) -> Result<Option<WorkerReport>, ExperimentError> {
        let (plan, source) = (&experiment.plan, &experiment.source);
        let feeds = self.share.iter().map(|index| {
            let fragment = &plan.fragments[*index];
            let files = source.manifest.operation_files(&source.folder, fragment.fragment);
            Feed::start(files, fragment, source.data().members, plan.fragments.len())
        });
        let mut feeds: Vec<Feed> = feeds.collect();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExperimentError::Worker)?;
        let connections = runtime.block_on(async {
            let threads = self.first_thread..self.first_thread + self.threads;
            connect(store, source, threads, plan.threads).await
        })?;
        let stretches: Vec<Stretch> = self.share.iter().map(|index| experiment.stretches[*index].clone()).collect();
        let unique_among = plan.unique_socialites.then_some(source.data().members);
        let mut dispatcher = Dispatcher::new(&stretches, self.threads as usize, unique_among);
        if self.pass.is_some() {
            dispatcher = dispatcher.warming_up(&stretches);
        }
        // Opening the trace is not part of the experiment either.
        feeds.iter_mut().for_each(Feed::fill);
        // Whoever counts is there until all senders are gone.
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
            snapshot: self.snapshot,
        };
        let local = tokio::task::LocalSet::new();
        let report = local.block_on(&runtime, worker::run(worker_plan, self.first_thread, connections))?;
        Ok(Some(report))
    }
}

/// A way to the store for each thread of a worker: a connection of its own, or
/// one of the worker's share of `connections=`.
async fn connect<S: Store>(
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
        let message = format!("connections={most} are fewer than there are workers; give each worker at least one");
        return Err(StoreError::usage(store.url(), message));
    }
    let pool = Rc::new(Pool::new(store.connect(source, threads.start..threads.start + share).await?));
    Ok(threads.map(|_| Route::Pooled(pool.clone())).collect())
}

fn merged(snapshots: &[Arc<Mutex<Snapshot>>]) -> Snapshot {
    let each = snapshots.iter().map(|snapshot| snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let merge = |mut all: Snapshot, one: Snapshot| {
        all.merge(&one);
        all
    };
    each.reduce(merge).unwrap_or_default()
}

/// The files of the logs, empty; none of them when one cannot be created.
fn reserve_logs(experiment: &Experiment) -> Result<Vec<ReservedLog>, TableError> {
    let mut reserved = Vec::new();
    let fragments = if experiment.is_logged { &experiment.plan.fragments[..] } else { &[] };
    for fragment in fragments {
        match ReservedLog::create(&experiment.log_path(fragment.fragment)) {
            Ok(log) => reserved.push(log),
            Err(error) => {
                // Why there is no log matters more than that an empty one cannot be removed.
                let _ = reserved.into_iter().try_for_each(ReservedLog::remove);
                return Err(error);
            }
        }
    }
    Ok(reserved)
}

/// What each log says at its head.
fn log_headers(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    threads: &[u32],
    started_unix_ns: i64,
) -> Vec<LogHeader> {
    let plan = &experiment.plan;
    let threads_of = |index: usize| {
        shares.iter().position(|share| share.contains(&index)).map_or(plan.threads, |worker| threads[worker])
    };
    let header = |(index, fragment): (usize, &FragmentPlan)| LogHeader {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: plan.experiment,
        fragment: fragment.fragment,
        workload_id: experiment.source.manifest.workload_id.clone(),
        first_session: fragment.begins_at(),
        threads: threads_of(index),
        unwritten_rows_max: UNWRITTEN_ROWS_MAX,
        aside_sessions_max: if plan.unique_socialites { aside_max(threads_of(index) as usize) as u64 } else { 0 },
        started_unix_ns,
    };
    plan.fragments.iter().enumerate().map(header).collect()
}
