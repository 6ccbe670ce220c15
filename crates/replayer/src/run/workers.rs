//! All workers of an experiment: connects them, starts them at one instant, watches them, and
//! collects their reports.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use schemas::oplog::ReservedLog;
use schemas::vocabulary::Vocabulary;

use super::logs::{log_headers, reserve_logs};
use super::state::set_running;
use super::worker::{Start, Worker};
use crate::clock::{Clock, unix_ns};
use crate::experiment::{Control, Experiment, ExperimentError, Part, Snapshot, StoreDuty};
use crate::log::OperationLogs;
use crate::stores::{HeldState, Serves, Store, StoreError, block_on};
use crate::worker::WorkerReport;
use crate::worker::gate::{self, Keeper, Opening};

/// How often the main thread reports progress and checks the gate.
const POLL: Duration = Duration::from_millis(100);

/// The thread of a worker. Its report is none if it got no start.
type Handle<'scope> = ScopedJoinHandle<'scope, Result<Option<WorkerReport>, ExperimentError>>;

/// Connects all workers, then lets them start at the same time. Connecting takes time, and is not
/// part of the experiment.
pub fn run_workers<V: Vocabulary, S: Serves<V>>(
    store: &S,
    experiment: &Experiment,
    shares: &[Vec<usize>],
    control: &Control,
    progress: &mut dyn FnMut(Snapshot),
) -> Result<Vec<WorkerReport>, ExperimentError> {
    let threads = experiment.threads(shares);
    let (workers, keeper) = workers(experiment, shares, &threads, control);
    let snapshots: Vec<Arc<Mutex<Snapshot>>> = workers.iter().map(|worker| worker.snapshot.clone()).collect();
    let reports = std::thread::scope(|scope| {
        let Connected { handles, starts, all_ready, refused } = connect_all(scope, store, experiment, workers);
        let begun = match all_ready {
            true => begin_together(store, experiment, shares, &threads, control, starts)?,
            false => {
                drop(starts);
                None
            }
        };
        let (logs, clock) = begun.unzip();
        watch(&handles, keeper, clock.as_ref(), control, &mut || progress(merged(&snapshots)));
        collect(handles, logs, refused)
    })?;
    progress(merged(&snapshots));
    Ok(reports.into_iter().flatten().collect())
}

/// A worker for each share, and the keeper of the gate that they pass after a warm-up.
fn workers<'a>(
    experiment: &Experiment,
    shares: &'a [Vec<usize>],
    threads: &[u32],
    control: &Control,
) -> (Vec<Worker<'a>>, Option<Keeper>) {
    let warms_up = experiment.has_warmup() || control.others_warm_up;
    let part = if warms_up { Part::WarmUp } else { Part::Measured };
    let (keeper, mut passes) = match warms_up {
        true => Some(gate::gate(shares.len())).unzip(),
        false => (None, None),
    };
    let steps: Vec<Vec<u32>> =
        experiment.plan.threads_over_time.iter().map(|step| experiment.threads_of(shares, step.threads)).collect();
    let mut workers = Vec::with_capacity(shares.len());
    let mut first_thread = 0;
    for (place, (share, threads)) in shares.iter().zip(threads.iter().copied()).enumerate() {
        workers.push(Worker {
            share,
            first_thread,
            threads,
            threads_at_steps: steps.iter().map(|threads| threads[place] as usize).collect(),
            pass: passes.as_mut().and_then(Vec::pop),
            snapshot: Arc::new(Mutex::new(Snapshot { part, ..Snapshot::default() })),
            stop: control.stop.clone(),
            abandon: control.abandon.clone(),
            overloaded: control.overloaded.clone(),
        });
        first_thread += threads;
    }
    (workers, keeper)
}

/// The workers after they have tried to connect. They end when they get no [`Start`].
struct Connected<'scope> {
    handles: Vec<Handle<'scope>>,
    /// Sends a worker its start.
    starts: Vec<Sender<Start>>,
    /// Whether every worker is connected.
    all_ready: bool,
    /// Why the operating system refused a thread, if it did.
    refused: Option<ExperimentError>,
}

/// Runs each worker on a thread of its own, and waits until all are connected or have failed.
fn connect_all<'scope, V: Vocabulary, S: Serves<V>>(
    scope: &'scope Scope<'scope, '_>,
    store: &'scope S,
    experiment: &'scope Experiment,
    workers: Vec<Worker<'scope>>,
) -> Connected<'scope> {
    let all = workers.len();
    let (ready_sender, ready) = channel();
    let mut starts = Vec::new();
    let mut handles = Vec::new();
    let mut refused = None;
    for worker in workers {
        let (start_sender, start) = channel::<Start>();
        starts.push(start_sender);
        let ready = ready_sender.clone();
        let work = move || worker.run(store, experiment, ready, &start);
        match std::thread::Builder::new().spawn_scoped(scope, work) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                refused = Some(ExperimentError::Worker(error));
                break;
            }
        }
    }
    drop(ready_sender);
    // A worker that cannot connect sends nothing and ends with its error. The others end when
    // they get no `Start`.
    let all_ready = ready.iter().count() == all;
    Connected { handles, starts, all_ready, refused }
}

/// Agrees on the start, and sends it to the workers with what they need to begin. Returns the logs
/// and the clock that they share; none if there will be no start.
fn begin_together<S: Store>(
    store: &S,
    experiment: &Experiment,
    shares: &[Vec<usize>],
    threads: &[u32],
    control: &Control,
    starts: Vec<Sender<Start>>,
) -> Result<Option<(OperationLogs, Clock)>, ExperimentError> {
    // The log files are created before the start is agreed. On a busy disk, creating them may
    // take longer than the time that is left until the start.
    let reserved = reserve_logs(experiment)?;
    // From the start on the store changes, and its marker must say so. Writing the marker
    // takes a moment, which would delay a start together with other replayers. So it is
    // written before.
    let before = match control.duty != StoreDuty::Follows {
        true => block_on(store.url(), set_running(store, &experiment.plan))?,
        false => None,
    };
    let Some(start_unix_ns) = agreed_start(control) else {
        reserved.into_iter().try_for_each(ReservedLog::remove)?;
        restore_marker(store, control, before.as_ref())?;
        return Ok(None);
    };
    // A replayer that stood still may receive its start after that time. Its clock
    // runs from the agreed start all the same, so the replayer counts as late.
    let clock = Clock::starting_in(start_unix_ns - unix_ns());
    experiment.set_clock(clock);
    let files = reserved.into_iter().zip(log_headers(experiment, shares, threads, start_unix_ns)).collect();
    let logs = OperationLogs::begin(files, experiment.log_compression).inspect_err(|_| {
        // The error of the log matters more than a failure to restore the marker.
        let _ = restore_marker(store, control, before.as_ref());
    })?;
    for start in &starts {
        // A worker that is gone has left its error in its handle.
        let _ = start.send(Start { clock, sender: logs.sender() });
    }
    Ok(Some((logs, clock)))
}

/// Waits until the start of the next part is known, in nanoseconds since 1970. None if the part will
/// not start.
fn agreed_start(control: &Control) -> Option<i64> {
    match &control.start {
        Some(wait) => wait(),
        None => Some(unix_ns()),
    }
}

/// Writes back what the store's marker said before, because the experiment does not start.
fn restore_marker<S: Store>(store: &S, control: &Control, before: Option<&HeldState>) -> Result<(), StoreError> {
    match before {
        // A replayer that leads others cannot know whether another has received the start.
        _ if control.duty != StoreDuty::Alone => Ok(()),
        Some(held) => block_on(store.url(), store.set_held(held)),
        None => Ok(()),
    }
}

/// Reports progress several times a second until all workers have ended, and opens the gate.
fn watch(
    handles: &[Handle<'_>],
    mut keeper: Option<Keeper>,
    clock: Option<&Clock>,
    control: &Control,
    report_progress: &mut dyn FnMut(),
) {
    while handles.iter().any(|handle| !handle.is_finished()) {
        keeper = watch_gate(keeper, clock, control);
        report_progress();
    }
}

/// Waits for at most [`POLL`], and opens the gate once all workers have reached it.
fn watch_gate(keeper: Option<Keeper>, clock: Option<&Clock>, control: &Control) -> Option<Keeper> {
    let (Some(keeper), Some(clock)) = (keeper, clock) else {
        std::thread::sleep(POLL);
        return None;
    };
    let Some(go_on) = keeper.all_came(POLL) else { return Some(keeper) };
    let start_unix_ns = if go_on { agreed_start(control) } else { None };
    keeper.open(match start_unix_ns {
        Some(at) => Opening::At(clock.now_ns() + (at - unix_ns())),
        None => Opening::Never,
    });
    None
}

/// Closes the logs, and takes the report of each worker.
fn collect(
    handles: Vec<Handle<'_>>,
    logs: Option<OperationLogs>,
    refused: Option<ExperimentError>,
) -> Result<Vec<Option<WorkerReport>>, ExperimentError> {
    let mut reports = Vec::new();
    for handle in handles {
        match handle.join() {
            Ok(report) => reports.push(report),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    // If a log could not be written, this is why the workers ended. So its error comes first.
    logs.map_or(Ok(()), OperationLogs::close)?;
    if let Some(error) = refused {
        return Err(error);
    }
    reports.into_iter().collect()
}

/// What all workers have counted so far.
fn merged(snapshots: &[Arc<Mutex<Snapshot>>]) -> Snapshot {
    let each = snapshots.iter().map(|snapshot| snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let merge = |mut all: Snapshot, one: Snapshot| {
        all.merge(&one);
        all
    };
    each.reduce(merge).unwrap_or_default()
}
