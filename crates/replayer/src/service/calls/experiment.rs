//! The calls that run an experiment, watch it, stop it, and take its result.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use schemas::rpc::{self, Progress, ReportReply, RunRequest, SettleRequest, StopRequest};
use schemas::run::FragmentPosition;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::experiment::{Control, StoreDuty};
use crate::service::job::{Job, Seen, job};
use crate::service::state::Service;
use crate::service::status::{guarded, internal};

/// What a replayer that takes this part asks the store and reports to it.
pub fn duty(part: i32) -> StoreDuty {
    match rpc::Part::try_from(part) {
        Ok(rpc::Part::Leads) => StoreDuty::Leads,
        Ok(rpc::Part::Follows) => StoreDuty::Follows,
        Ok(rpc::Part::Alone) | Err(_) => StoreDuty::Alone,
    }
}

/// Runs the experiment that is prepared, or watches it if it runs already. The stream ends when the
/// experiment has ended.
pub fn run(service: &Service, request: RunRequest) -> Result<ReceiverStream<Result<Progress, Status>>, Status> {
    let RunRequest { experiment: number, part, warm_up } = request;
    let job = service.state().job.clone();
    let job = match job {
        Some(job) if job.experiment == number => job,
        _ => begin(service, number, duty(part), warm_up)?,
    };
    let (sender, replies) = mpsc::channel(4);
    tokio::spawn(watch(job.watch(), sender));
    Ok(ReceiverStream::new(replies))
}

/// Runs the prepared experiment on a thread of its own.
fn begin(service: &Service, number: u32, duty: StoreDuty, others_warm_up: bool) -> Result<Arc<Job>, Status> {
    let (store, experiment) = service.prepared()?;
    if experiment.plan().experiment != number {
        let prepared = experiment.plan().experiment;
        return Err(Status::aborted(format!("experiment {prepared} is prepared, not {number}")));
    }
    let warms_up = experiment.has_warmup() || others_warm_up;
    let (stop, abandon, overloaded) = (service.stop.clone(), service.abandon.clone(), service.overloaded.clone());
    let (job, runner) = job(number, warms_up, stop.clone(), overloaded.clone());
    let job = Arc::new(job);
    {
        let mut state = service.state();
        if state.is_running() {
            return Err(Status::aborted("an experiment is running"));
        }
        (state.prepared, state.job) = (None, Some(job.clone()));
        state.experiment = Some(experiment.clone());
    }
    let control = Control { stop, abandon, overloaded, start: Some(runner.signal()), others_warm_up, duty };
    let state = service.state.clone();
    service
        .work_on(move || {
            let result = guarded(|| store.run(&experiment, &control, &mut |snapshot| runner.progress(&snapshot)));
            let end = result.map(|report| {
                state.lock().unwrap_or_else(PoisonError::into_inner).report = Some(report);
            });
            runner.end(end);
        })
        .inspect_err(|_| service.state().job = None)?;
    Ok(job)
}

/// Sends the progress of an experiment, and its error if it fails, until it ends.
async fn watch(mut seen: watch::Receiver<Seen>, sender: mpsc::Sender<Result<Progress, Status>>) {
    loop {
        let now = seen.borrow_and_update().clone();
        // A coordinator that is gone may come back, and call again.
        if sender.send(Ok(now.progress)).await.is_err() {
            return;
        }
        match now.end {
            Some(Ok(())) => return,
            Some(Err(status)) => {
                let _ = sender.send(Err(status)).await;
                return;
            }
            None if seen.changed().await.is_err() => return,
            None => {}
        }
    }
}

/// Ends the running experiment early, and gives up the operations in flight if the request says so.
pub fn stop(service: &Service, request: StopRequest) {
    let StopRequest { abandon, overloaded } = request;
    match overloaded {
        true => service.overloaded.store(true, Ordering::Relaxed),
        false => service.stop_running(),
    }
    service.abandon.fetch_or(abandon, Ordering::Relaxed);
}

/// The report of the experiment that ended last.
pub fn report(service: &Service) -> Result<ReportReply, Status> {
    let state = service.state();
    let report = state.report.as_ref().ok_or_else(|| Status::aborted("no experiment has ended"))?;
    let report_json = serde_json::to_string(report).map_err(internal)?;
    Ok(ReportReply { report_json })
}

/// Records in the store where it stands after the experiment that ended last.
pub async fn settle(service: &Service, request: SettleRequest) -> Result<(), Status> {
    let SettleRequest { positions_json, writes_not_ok } = request;
    let positions: Vec<FragmentPosition> =
        serde_json::from_str(&positions_json).map_err(|e| Status::invalid_argument(format!("positions: {e}")))?;
    let (store, job) = {
        let state = service.state();
        let store = state.store.as_ref().map(|(_, store)| store.clone());
        store.zip(state.job.clone()).ok_or_else(|| Status::aborted("no experiment has ended"))?
    };
    let settled =
        tokio::task::spawn_blocking(move || guarded(|| Ok(store.settle(job.experiment, &positions, writes_not_ok)?)));
    settled.await.map_err(internal)?
}
