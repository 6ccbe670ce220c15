//! Runs an experiment: check the state, connect, run the workers, close the
//! logs, write down the state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::files;
use schemas::latency::ResponseTimes;
use schemas::oplog::LogHeader;
use schemas::plan::{Limit, Plan};
use schemas::run::{EndReason, FragmentPosition, ReplayReport};

use crate::clock::{Clock, unix_ns};
use crate::dispatch::{Dispatcher, Stretch, aside_max};
use crate::experiment::{Control, Experiment, ExperimentError, Snapshot};
use crate::feed::Feed;
use crate::log::{LogSender, OperationLogs, UNWRITTEN_ROWS_MAX};
use crate::stores::{HeldState, Store, StoreError, block_on, check_workload};
use crate::worker::{self, WorkerPlan, WorkerReport};

/// Runs an experiment on a store.
pub fn run<S: Store>(
    store: &S,
    experiment: &Experiment,
    control: &Control,
    progress: &mut dyn FnMut(Snapshot),
) -> Result<ReplayReport, ExperimentError> {
    let plan = &experiment.plan;
    let url = store.url();
    block_on(url, check_state(store, experiment))?;
    let log_folder = experiment.folder.join("log");
    std::fs::create_dir_all(&log_folder).map_err(files::at(&log_folder))?;
    files::write_json(&experiment.folder.join("plan.json"), &plan.redacted())?;
    let shares = experiment.shares();
    let workers = run_workers(store, experiment, &shares, control, progress)?;

    let (mut report, writes_not_ok) = summarize(experiment, &shares, workers, control);
    let diverged = match writes_not_ok {
        0 => None,
        n => Some(format!("{n} writes of experiment {} did not succeed", plan.experiment)),
    };
    report.store_settings = block_on(url, async {
        if let Some(held) = store.held().await? {
            let positions = advanced(&held.positions, &report.positions);
            store.set_held(&HeldState { positions, diverged, ..held }).await?;
        }
        store.settings().await
    })?;
    files::write_json(&experiment.folder.join("replay.json"), &report)?;
    Ok(report)
}

/// The positions of all fragments after some of them have moved on.
fn advanced(before: &[FragmentPosition], moved: &[FragmentPosition]) -> Vec<FragmentPosition> {
    let others = before.iter().filter(|old| moved.iter().all(|new| new.fragment != old.fragment));
    let mut all: Vec<FragmentPosition> = others.chain(moved).copied().collect();
    all.sort_by_key(|position| position.fragment);
    all
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
    let snapshots: Vec<Arc<Mutex<Snapshot>>> = shares.iter().map(|_| Arc::default()).collect();
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
                snapshot: snapshots[index].clone(),
                stop: control.stop.clone(),
            };
            first_thread += threads[index];
            let ready = ready_sender.clone();
            handles.push(scope.spawn(move || worker.run(store, experiment, ready, &start)));
        }
        drop(ready_sender);
        // A worker that could not connect sends no word but ends with its error;
        // the others end when their `Start` does not come.
        let all_ready = ready.iter().count() == shares.len();
        let logs = match all_ready {
            true => {
                // From here on the store changes. Saying so takes it a moment, which is
                // not part of the experiment.
                let running = "an experiment is running, or was killed";
                block_on(store.url(), set_diverged(store, running))?;
                let delay_ns = control.start_unix_ns.map_or(0, |at| (at - unix_ns()).max(0));
                let clock = Clock::starting_in(delay_ns);
                let logs = OperationLogs::create(log_files(experiment, shares, &threads, unix_ns() + delay_ns))?;
                for start in &starts {
                    // A worker that is gone has left its error in its handle.
                    let _ = start.send(Start { clock, sender: logs.sender() });
                }
                Some(logs)
            }
            false => None,
        };
        drop(starts);
        while handles.iter().any(|h| !h.is_finished()) {
            std::thread::sleep(POLL);
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

/// How often progress is looked at.
const POLL: Duration = Duration::from_millis(100);

/// One worker's part in an experiment.
struct Worker<'a> {
    share: &'a [usize],
    first_thread: u32,
    threads: u32,
    snapshot: Arc<Mutex<Snapshot>>,
    stop: Arc<AtomicBool>,
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
            Feed::start(files, fragment.first_session)
        });
        let mut feeds: Vec<Feed> = feeds.collect();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExperimentError::Worker)?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::with_capacity(self.threads as usize);
            for thread in self.first_thread..self.first_thread + self.threads {
                connections.push(store.connect(source, thread).await?);
            }
            Ok::<_, StoreError>(connections)
        })?;
        let stretches: Vec<Stretch> = self.share.iter().map(|index| experiment.stretches[*index]).collect();
        let dispatcher = Dispatcher::new(&stretches, self.threads as usize, plan.unique_socialites);
        // Opening the trace is not part of the experiment either.
        feeds.iter_mut().for_each(Feed::fill);
        // Whoever counts is there until all senders are gone.
        let _ = ready.send(());
        drop(ready);
        let Ok(Start { clock, sender }) = start.recv() else { return Ok(None) };
        let deadline_ns = match plan.limit {
            Limit::DurationS(seconds) => Some((seconds * 1e9) as i64),
            _ => None,
        };
        let worker_plan = WorkerPlan {
            dispatcher,
            feeds,
            logs: self.share.to_vec(),
            sender,
            clock,
            deadline_ns,
            stop: self.stop,
            snapshot: self.snapshot,
        };
        let local = tokio::task::LocalSet::new();
        let report = local.block_on(&runtime, worker::run(worker_plan, self.first_thread, connections))?;
        Ok(Some(report))
    }
}

fn merged(snapshots: &[Arc<Mutex<Snapshot>>]) -> Snapshot {
    let mut all = Snapshot::default();
    for snapshot in snapshots {
        all.merge(&snapshot.lock().unwrap_or_else(PoisonError::into_inner));
    }
    all
}

/// The store must hold the state that the plan starts from.
pub(crate) async fn check_state<S: Store>(store: &S, experiment: &Experiment) -> Result<(), StoreError> {
    let (url, source, plan) = (store.url(), &experiment.source, &experiment.plan);
    if !store.keeps_state() {
        return Ok(());
    }
    let held = store.held().await?;
    check_workload(url, held.as_ref(), source)?;
    let Some(held) = held else { return Ok(()) };
    let again = "load it again with `replayer load`";
    if let Some(why) = &held.diverged {
        return Err(StoreError::usage(url, format!("is not in a state to start from: {why}; {again}")));
    }
    let position = |fragment| held.positions.iter().find(|p| p.fragment == fragment).map_or(0, |p| p.next_session);
    for fragment in &plan.fragments {
        let (at, wanted) = (position(fragment.fragment), fragment.first_session);
        if at != wanted {
            let message = format!(
                "has fragment {} at session {at}, the experiment starts at {wanted}; {again}",
                fragment.fragment
            );
            return Err(StoreError::usage(url, message));
        }
    }
    if source.fragments().all(|f| position(f) == 0) {
        store.check_loaded(source).await?;
    }
    Ok(())
}

async fn set_diverged<S: Store>(store: &S, why: &str) -> Result<(), StoreError> {
    match store.held().await? {
        Some(held) => store.set_held(&HeldState { diverged: Some(why.to_string()), ..held }).await,
        None => Ok(()),
    }
}

fn log_files(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    threads: &[u32],
    started_unix_ns: i64,
) -> Vec<(PathBuf, LogHeader)> {
    let plan = &experiment.plan;
    let threads_of = |index: usize| {
        shares.iter().position(|share| share.contains(&index)).map_or(plan.threads, |worker| threads[worker])
    };
    plan.fragments
        .iter()
        .enumerate()
        .map(|(index, f)| {
            let header = LogHeader {
                format_version: schemas::RUN_FORMAT_VERSION,
                experiment: plan.experiment,
                fragment: f.fragment,
                workload_id: experiment.source.manifest.workload_id.clone(),
                first_session: f.first_session,
                threads: threads_of(index),
                unwritten_rows_max: UNWRITTEN_ROWS_MAX,
                aside_sessions_max: if plan.unique_socialites {
                    aside_max(threads_of(index) as usize) as u64
                } else {
                    0
                },
                started_unix_ns,
            };
            (experiment.log_path(f.fragment), header)
        })
        .collect()
}

/// The report, and how many writes did not succeed.
fn summarize(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    workers: Vec<WorkerReport>,
    control: &Control,
) -> (ReplayReport, u64) {
    let plan = &experiment.plan;
    let mut all = Snapshot::default();
    let mut lag = ResponseTimes::default();
    let mut positions: BTreeMap<u32, u64> = plan.fragments.iter().map(|f| (f.fragment, f.first_session)).collect();
    for (share, worker) in shares.iter().zip(&workers) {
        all.merge(&worker.snapshot);
        lag.merge(&worker.lag);
        for (index, position) in share.iter().zip(&worker.positions) {
            positions.insert(plan.fragments[*index].fragment, *position);
        }
    }
    let sessions: u64 = workers.iter().map(|w| w.sessions).sum();
    let elapsed_ns = all.elapsed_ns.max(0) as u64;
    let end = if workers.iter().any(|w| w.ran_out) {
        EndReason::TraceExhausted { sessions_needed: sessions_needed(plan, sessions, elapsed_ns) }
    } else if control.stop.load(Ordering::Relaxed) {
        EndReason::Interrupted
    } else {
        EndReason::Limit
    };
    let [ok, failed, unknown, skipped] = all.outcomes;
    let report = ReplayReport {
        format_version: schemas::RUN_FORMAT_VERSION,
        end,
        warmup_ns: 0,
        warmup_operations: 0,
        elapsed_ns,
        sessions,
        positions: positions
            .into_iter()
            .map(|(fragment, next_session)| FragmentPosition { fragment, next_session })
            .collect(),
        ok,
        failed,
        unknown,
        skipped,
        worker_cpu_share: workers.iter().map(|w| w.cpu_share).fold(0.0, f64::max),
        dispatch_lag_ns_p99: lag.percentile_ns(99.0),
        log_stall_ns: workers.iter().map(|w| w.log_stall_ns).max().unwrap_or(0),
        trace_stall_ns: workers.iter().map(|w| w.trace_stall_ns).max().unwrap_or(0),
        store_settings: BTreeMap::new(),
    };
    (report, workers.iter().map(|w| w.writes_not_ok).sum())
}

/// How many sessions the trace should have had, with a fifth to spare.
fn sessions_needed(plan: &Plan, sessions: u64, elapsed_ns: u64) -> u64 {
    let before: u64 = plan.fragments.iter().map(|f| f.first_session).sum();
    match plan.limit {
        Limit::DurationS(seconds) => {
            let rate = sessions as f64 / (elapsed_ns.max(1) as f64 / 1e9);
            before + (rate * seconds * 1.2).ceil() as u64
        }
        Limit::Sessions(wanted) => before + wanted,
        Limit::WholeTrace => before + sessions,
    }
}
