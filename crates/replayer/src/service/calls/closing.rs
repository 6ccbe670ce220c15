//! The call that reads every item after an experiment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemas::rpc::{CloseReadProgress, CloseReadRequest};
use schemas::run::FragmentPosition;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::any_store::AnyStore;
use crate::experiment::Experiment;
use crate::service::state::Service;
use crate::service::status::guarded;

/// How often the replayer reports the progress of a closing read.
const PROGRESS: Duration = Duration::from_millis(500);

/// The experiment that ended last, its store, and where its fragments stand.
type Ended = (Arc<dyn AnyStore>, Arc<Experiment>, Vec<FragmentPosition>);

/// Reads every item of the experiment that ended last, on a thread of its own. The stream ends when
/// that is done. A call that is repeated, because its stream was cut, reads again.
pub fn close_read(
    service: &Service,
    request: CloseReadRequest,
) -> Result<ReceiverStream<Result<CloseReadProgress, Status>>, Status> {
    let (store, experiment, positions) = ended(service, request.experiment)?;
    let (sender, replies) = mpsc::channel(16);
    let stop = service.stop.clone();
    service.work_on(move || {
        let mut last_sent = Instant::now();
        let mut progress = |items, items_total| {
            if last_sent.elapsed() >= PROGRESS {
                last_sent = Instant::now();
                // A progress message that does not arrive does no harm.
                let _ = sender.try_send(Ok(CloseReadProgress { items, items_total }));
            }
        };
        if let Err(status) = guarded(|| store.closing_read(&experiment, &positions, &stop, &mut progress)) {
            // The coordinator may be gone, and does not wait for the answer then.
            let _ = sender.blocking_send(Err(status));
        }
    })?;
    Ok(ReceiverStream::new(replies))
}

fn ended(service: &Service, number: u32) -> Result<Ended, Status> {
    let state = service.state();
    let none = || Status::aborted(format!("experiment {number} has not ended here"));
    let (_, store) = state.store.as_ref().ok_or_else(none)?;
    let experiment = state.experiment.as_ref().filter(|experiment| experiment.plan().experiment == number);
    let (experiment, report) = experiment.zip(state.report.as_ref()).ok_or_else(none)?;
    Ok((store.clone(), experiment.clone(), report.positions.clone()))
}
