//! The calls on the logs that an experiment has left in the replayer's work folder.

use schemas::rpc::{FetchRequest, FileChunk, LogsReply, LogsRequest, SummarizeRequest};
use schemas::run::{ExperimentFolder, ReplayReport, RunFolder};
use schemas::sla::Sla;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::service::state::Service;
use crate::service::status::{file_status, internal};
use crate::service::{logs, objects, paths, summarize};

/// Has the analyzer summarize logs that stay on this host, and publishes them if that is asked for.
pub async fn summarize(service: &Service, request: SummarizeRequest) -> Result<(), Status> {
    let SummarizeRequest { run, experiment, report_json, sla, publish_to } = request;
    let folder = own_experiment(service, &run, experiment)?;
    let publish_to = objects::to_publish(service, &publish_to)?;
    let report: ReplayReport =
        serde_json::from_str(&report_json).map_err(|e| Status::invalid_argument(format!("report: {e}")))?;
    let sla: Sla = sla.parse().map_err(|e| Status::invalid_argument(format!("SLA: {e}")))?;
    let summarized = tokio::task::spawn_blocking(move || {
        summarize::summarize(&folder, &report, &sla)?;
        publish_to.map_or(Ok(()), |url| objects::publish(folder.root(), &url))
    });
    summarized.await.map_err(internal)?
}

/// The files of an experiment.
pub async fn list(service: &Service, request: LogsRequest) -> Result<LogsReply, Status> {
    let LogsRequest { run, experiment } = request;
    let folder = own_experiment(service, &run, experiment)?;
    let listed = tokio::task::spawn_blocking(move || logs::list(folder.root()));
    let files = listed.await.map_err(internal)?;
    Ok(LogsReply { files: files.map_err(|e| file_status(&e))? })
}

/// The bytes of one of these files.
pub fn fetch(service: &Service, request: FetchRequest) -> Result<ReceiverStream<Result<FileChunk, Status>>, Status> {
    let FetchRequest { run, experiment, path, offset } = request;
    let folder = own_experiment(service, &run, experiment)?;
    if !paths::is_below(&path) {
        return Err(Status::not_found(format!("no file {path:?}")));
    }
    let file = folder.root().join(&path);
    let mut opened = std::fs::File::open(&file).map_err(|e| Status::not_found(format!("{}: {e}", file.display())))?;
    let (sender, replies) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || logs::send(&mut opened, &file, path, offset, &sender));
    Ok(ReceiverStream::new(replies))
}

/// The folder of an experiment below the replayer's work folder.
fn own_experiment(service: &Service, run: &str, experiment: u32) -> Result<ExperimentFolder, Status> {
    let none = || Status::not_found(format!("this replayer has no experiment {experiment} of run {run:?}"));
    if !paths::is_name(run) {
        return Err(none());
    }
    let run = RunFolder::new(service.settings.work.join("runs").join(run));
    let found = run.experiments().map_err(internal)?;
    found.into_iter().find(|(number, _)| *number == experiment).map(|(_, folder)| folder).ok_or_else(none)
}
