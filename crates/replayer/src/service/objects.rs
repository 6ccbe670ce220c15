//! Object storage that a replayer shares with its coordinators: the files of a trace set are taken from there, and logs
//! are published there. The replayer works on its own disk, and nothing appears in part.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use schemas::manifest::Manifest;
use storage::{Place, Remote, StorageError, Url};
use tonic::Status;

use super::logs;
use super::shelf::{Shelf, ShelfError};
use super::state::Service;
use super::status::{file_status, internal, shelf_status};

/// The folders of an experiment that are published: operations, and what was read after them.
const PUBLISHED: [&str; 2] = ["log/", "audit/"];

/// The status of what went wrong with object storage.
fn storage_status(error: &StorageError) -> Status {
    match error {
        StorageError::File(error) => file_status(error),
        error if error.is_of_user() => Status::invalid_argument(error.to_string()),
        error => internal(error),
    }
}

/// The place that a text names, if it is in object storage that this replayer shares.
pub fn shared(service: &Service, place: &str) -> Option<Url> {
    match Place::parse(place) {
        Ok(Place::Remote(url)) if service.settings.shares.hold_url(&url) => Some(url),
        _ => None,
    }
}

/// The place where logs are to be published. A replayer that does not share it refuses, before anything runs.
pub fn to_publish(service: &Service, place: &str) -> Result<Option<Url>, Status> {
    if place.is_empty() {
        return Ok(None);
    }
    shared(service, place).map(Some).ok_or_else(|| {
        Status::invalid_argument(format!(
            "logs are to be published to {place}, and this replayer does not share it; start the replayer with --share \
             and a URL that {place} is below, or leave out --leave-logs"
        ))
    })
}

/// Publishes the logs of an experiment. What was published before is replaced.
pub fn publish(folder: &Path, to: &Url) -> Result<(), Status> {
    let files = logs::list(folder).map_err(|error| file_status(&error))?;
    let names = files.iter().map(|file| file.path.as_str());
    let names: Vec<&str> = names.filter(|name| PUBLISHED.iter().any(|folder| name.starts_with(folder))).collect();
    let published = Remote::open(to).and_then(|remote| remote.publish(folder, &names, &[]));
    published.map_err(|error| storage_status(&error))
}

/// Files of a trace set that are on their way to the shelf.
pub struct Fetching {
    trace_id: String,
    end: Mutex<Option<Result<(), Status>>>,
}

/// Takes the files that the shelf lacks from a trace set in object storage, on a thread of its own. A coordinator that
/// asks again learns whether that goes on, or how it failed.
pub fn fetch(service: &Service, manifest: &Arc<Manifest>, from: Url) -> Result<(), Status> {
    let mut state = service.state();
    if let Some(fetching) = state.fetching.clone().filter(|fetching| fetching.trace_id == manifest.trace_id) {
        match fetching.end() {
            None => return Ok(()),
            Some(Err(status)) => {
                // The next one tries again.
                state.fetching = None;
                return Err(status);
            }
            // What came has been removed since.
            Some(Ok(())) => {}
        }
    }
    let fetching = Arc::new(Fetching { trace_id: manifest.trace_id.clone(), end: Mutex::default() });
    state.fetching = Some(fetching.clone());
    drop(state);
    let (shelf, manifest) = (service.shelf.clone(), manifest.clone());
    let begun = std::thread::Builder::new().spawn(move || {
        let end = fetch_files(&shelf, &manifest, &from);
        *fetching.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    });
    begun.map(drop).map_err(internal)
}

impl Fetching {
    fn end(&self) -> Option<Result<(), Status>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn fetch_files(shelf: &Shelf, manifest: &Manifest, from: &Url) -> Result<(), Status> {
    let remote = Remote::open(from).map_err(|error| storage_status(&error))?;
    for (entry, _) in shelf.lacked(manifest) {
        let arrived = shelf.arriving(&entry);
        remote.get(&entry.path, &arrived).map_err(|error| storage_status(&error))?;
        shelf.take(&entry, &arrived).map_err(|error| match error {
            // Sending it again would not help: it is damaged where it lies.
            ShelfError::Damaged { .. } => Status::invalid_argument(format!("{from}: {error}; generate it again")),
            error => shelf_status(&error),
        })?;
    }
    Ok(())
}
