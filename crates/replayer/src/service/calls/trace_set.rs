//! The calls that bring a trace set to the replayer, and where the trace set of a plan is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::plan::Plan;
use schemas::rpc::{FileChunk, LackedFile, OfferReply, OfferRequest};
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};

use crate::service::objects;
use crate::service::shelf::Receiving;
use crate::service::state::Service;
use crate::service::status::{internal, shelf_status};
use crate::source::Source;

/// Notes which trace set comes next, and answers which of its files the replayer lacks.
pub fn offer(service: &Service, offered: OfferRequest) -> Result<OfferReply, Status> {
    let OfferRequest { manifest_json, folder } = offered;
    let manifest = service.shelf.manifest(&manifest_json).map_err(|e| shelf_status(&e))?;
    let manifest = Arc::new(manifest);
    let is_shared = is_shared(service, Path::new(&folder), &manifest.trace_id);
    let lacked = if is_shared { Vec::new() } else { service.shelf.lacked(&manifest) };
    if !lacked.is_empty() {
        service.shelf.claim().map_err(|e| shelf_status(&e))?;
    }
    service.state().offered = Some(manifest.clone());
    let from = objects::shared(service, &folder).filter(|_| !lacked.is_empty());
    let is_fetching = from.is_some();
    if let Some(from) = from {
        objects::fetch(service, &manifest, from)?;
    }
    let lacked = lacked.into_iter().map(|(entry, offset)| LackedFile { path: entry.path, offset });
    Ok(OfferReply { lacked: lacked.collect(), is_fetching })
}

/// Receives one file of the trace set that was offered last. Each chunk renews the lease that the
/// call's metadata names.
pub async fn send(service: &Service, metadata: &MetadataMap, mut chunks: Streaming<FileChunk>) -> Result<(), Status> {
    let mut receiving: Option<Receiving> = None;
    while let Some(chunk) = chunks.message().await? {
        service.renew(metadata)?;
        let file = match &mut receiving {
            Some(file) => file,
            None => receiving.insert(receive(service, &chunk).await?),
        };
        file.write(&chunk.data).map_err(|e| shelf_status(&e))?;
    }
    let receiving = receiving.ok_or_else(|| Status::invalid_argument("no file was sent"))?;
    receiving.finish().map_err(|e| shelf_status(&e))
}

/// Begins to receive the file that the first chunk names.
async fn receive(service: &Service, first: &FileChunk) -> Result<Receiving, Status> {
    let offered = service.state().offered.clone();
    let offered = offered.ok_or_else(|| Status::aborted("no trace set was offered"))?;
    let entry = offered.files.iter().find(|entry| entry.path == first.path).cloned();
    let entry = entry.ok_or_else(|| Status::not_found("the trace set offered has no such file"))?;
    let (shelf, offset) = (service.shelf.clone(), first.offset);
    // The part of the file that is there already is read, which may take a while.
    let opened = tokio::task::spawn_blocking(move || shelf.receive(&entry, offset)).await;
    opened.map_err(internal)?.map_err(|e| shelf_status(&e))
}

/// The trace set of a plan: in the coordinator's folder if that is shared, else as it was sent.
pub fn folder_of(service: &Service, plan: &Plan) -> Result<PathBuf, Status> {
    if is_shared(service, &plan.trace, &plan.trace_id) {
        return Ok(plan.trace.clone());
    }
    let offered = service.state().offered.clone().filter(|manifest| manifest.trace_id == plan.trace_id);
    let manifest = offered
        .ok_or_else(|| Status::aborted("the coordinator has not offered the plan's trace set; call Offer first"))?;
    service.shelf.assemble(&manifest).map_err(|e| shelf_status(&e))
}

/// Whether a trace set is in a folder that both sides see.
fn is_shared(service: &Service, folder: &Path, trace_id: &str) -> bool {
    service.settings.shares.hold(folder) && Source::open(folder).is_ok_and(|s| s.manifest.trace_id == trace_id)
}
