//! The calls before an experiment: its plan is checked, and its store loaded.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemas::files;
use schemas::plan::Plan;
use schemas::rpc::{LoadProgress, PrepareReply, PrepareRequest};
use schemas::run::RunFolder;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::trace_set;
use crate::any_store::{self, AnyStore};
use crate::experiment::{Experiment, ExperimentError, StoreDuty};
use crate::service::objects;
use crate::service::paths::{self, Shares};
use crate::service::state::{Service, State};
use crate::service::status::{experiment_status, guarded, shelf_status};
use crate::stores::{Blame, StoreError};

/// How often the replayer reports the progress of a load.
const PROGRESS: Duration = Duration::from_millis(500);

/// Checks a plan with its trace set, and opens its store.
pub fn prepare(service: &Service, request: PrepareRequest) -> Result<PrepareReply, Status> {
    let mut plan: Plan =
        serde_json::from_str(&request.plan_json).map_err(|e| Status::invalid_argument(format!("plan: {e}")))?;
    if service.state().is_running() {
        return Err(Status::aborted("an experiment is running"));
    }
    plan.trace = trace_set::folder_of(service, &plan)?;
    let shared = PathBuf::from(request.experiment_folder);
    let logs_are_shared = service.settings.shares.hold(&shared);
    if !logs_are_shared {
        objects::to_publish(service, &request.publish_to)?;
    }
    let folder = if logs_are_shared { shared } else { own_folder(service, &request.run, &plan)? };
    let url = plan.store.clone();
    let mut experiment = Experiment::prepare(plan, folder).map_err(|e| experiment_status(&e))?;
    if request.unlogged {
        experiment = experiment.without_log();
    }
    if logs_are_shared {
        let is_whole = is_all_of_it(&experiment);
        experiment = experiment.in_shared_folder(is_whole);
    }
    let mut state = service.state();
    open_store(service, &mut state, url)?;
    let store_is_own = state.store.as_ref().is_some_and(|(_, store)| store.in_process());
    state.prepared = Some(Arc::new(experiment));
    (state.job, state.report) = (None, None);
    service.stop.store(false, Ordering::Relaxed);
    service.abandon.store(false, Ordering::Relaxed);
    service.overloaded.store(false, Ordering::Relaxed);
    Ok(PrepareReply { logs_are_shared, store_is_own })
}

/// The experiment's folder in the replayer's own work folder.
fn own_folder(service: &Service, run: &str, plan: &Plan) -> Result<PathBuf, Status> {
    if !paths::is_name(run) {
        return Err(Status::invalid_argument(format!("{run:?} is not the name of a run")));
    }
    service.shelf.claim().map_err(|e| shelf_status(&e))?;
    let run = RunFolder::new(service.settings.work.join("runs").join(run));
    Ok(run.experiment(plan.experiment, plan.threads).root().to_path_buf())
}

/// Whether the coordinator's plan in the experiment's folder has only this replayer's fragments.
/// If so, the replayer writes the report there, even when the coordinator is gone.
fn is_all_of_it(experiment: &Experiment) -> bool {
    let whole = files::read_json::<Plan>(&experiment.folder.join("plan.json"));
    whole.is_ok_and(|whole| whole.fragments.len() == experiment.plan().fragments.len())
}

/// Opens the store of a URL, unless it is open already.
fn open_store(service: &Service, state: &mut State, url: String) -> Result<(), Status> {
    if state.store.as_ref().is_none_or(|(open, _)| *open != url) {
        let store = any_store::open(&url).map_err(|e| experiment_status(&ExperimentError::Store(e)))?;
        check_store(service, store.as_ref())?;
        state.store = Some((url, Arc::from(store)));
    }
    Ok(())
}

/// Refuses a store whose file the coordinator may not name.
fn check_store(service: &Service, store: &dyn AnyStore) -> Result<(), Status> {
    let settings = &service.settings;
    let Some(file) = store.file().filter(|_| settings.confines_stores) else { return Ok(()) };
    let place = std::path::absolute(file).map_err(|e| Status::internal(format!("{}: {e}", file.display())))?;
    let in_work = Shares::new(std::slice::from_ref(&settings.work)).is_ok_and(|work| work.hold(&place));
    if in_work || settings.shares.hold(&place) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{} is outside this replayer's --work folder {} and its --share folders; start the replayer with --share \
         and the file's folder",
        place.display(),
        settings.work.display()
    )))
}

/// Brings the store to the state that the plan starts from, on a thread of its own. The stream ends
/// when that is done.
pub fn load(service: &Service, duty: StoreDuty) -> Result<ReceiverStream<Result<LoadProgress, Status>>, Status> {
    let (store, experiment) = service.prepared()?;
    let (sender, replies) = mpsc::channel(16);
    // Loading blocks: it gets a thread of its own.
    service.work_on(move || {
        let result = guarded(|| load_or_check(store.as_ref(), &experiment, duty, &sender));
        let total = experiment.source().rows_total();
        let last = result.map(|conditions| LoadProgress { rows: total, rows_total: total, conditions });
        // The coordinator may be gone, and does not wait for the answer then.
        let _ = sender.blocking_send(last);
    })?;
    Ok(ReceiverStream::new(replies))
}

/// Returns how many conditions of the data were checked and hold.
fn load_or_check(
    store: &dyn AnyStore,
    experiment: &Experiment,
    duty: StoreDuty,
    sender: &mpsc::Sender<Result<LoadProgress, Status>>,
) -> Result<u64, ExperimentError> {
    let last_sent = Mutex::new(Instant::now());
    let progress = |rows, rows_total| {
        let mut last_sent = last_sent.lock().unwrap_or_else(PoisonError::into_inner);
        if last_sent.elapsed() >= PROGRESS {
            *last_sent = Instant::now();
            // A progress message that does not arrive does no harm.
            let _ = sender.try_send(Ok(LoadProgress { rows, rows_total, conditions: 0 }));
        }
    };
    if experiment.continues() || duty == StoreDuty::Follows {
        // Here the store is only checked. No load can bring it into the state that
        // the plan starts from, or another replayer has loaded it.
        store.check(experiment)?;
        return Ok(0);
    }
    match store.is_adopted()? {
        // Another tool has loaded it, so no later experiment can start here either.
        true => store.check(experiment).map(|()| 0).map_err(|error| match error.blame {
            Blame::State => StoreError { blame: Blame::Usage, ..error }.into(),
            Blame::Usage | Blame::Store => error.into(),
        }),
        false => Ok(store.load(experiment.source(), &progress)?),
    }
}
