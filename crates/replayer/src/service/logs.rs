//! Sends logs to a coordinator: which files there are, and their bytes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use schemas::files::{self, FileError};
use schemas::rpc::{CHUNK_BYTES, FileChunk, LogFile};
use tokio::sync::mpsc::Sender;
use tonic::Status;

use super::paths;
use super::status::file_status;

/// Every file of an experiment, with its checksum.
pub fn list(folder: &Path) -> Result<Vec<LogFile>, FileError> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        for entry in std::fs::read_dir(&path).map_err(files::at(&path))? {
            let entry = entry.map_err(files::at(&path))?;
            let (name, below) = (entry.file_name(), below.join(entry.file_name()));
            if entry.path().is_dir() {
                folders.push(below);
            } else if let (Some(text), true) = (below.to_str(), name.to_str().is_some_and(paths::is_name)) {
                let bytes = entry.metadata().map_err(files::at(&entry.path()))?.len();
                let blake3 = files::blake3_of(&entry.path())?;
                found.push(LogFile { path: text.to_string(), bytes, blake3 });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Sends a file from `offset` on, until it ends or the coordinator is gone. The first chunk names
/// the file and has no bytes.
pub fn send(opened: &mut File, file: &Path, path: String, offset: u64, sender: &Sender<Result<FileChunk, Status>>) {
    let send =
        |path: String, offset: u64, data: Vec<u8>| sender.blocking_send(Ok(FileChunk { path, offset, data })).is_ok();
    let sent = opened.seek(SeekFrom::Start(offset)).and_then(|_| {
        if !send(path, offset, Vec::new()) {
            return Ok(());
        }
        loop {
            let mut data = Vec::with_capacity(CHUNK_BYTES);
            Read::by_ref(opened).take(CHUNK_BYTES as u64).read_to_end(&mut data)?;
            if data.is_empty() || !send(String::new(), 0, data) {
                return Ok(());
            }
        }
    });
    if let Err(source) = sent {
        let _ = sender.blocking_send(Err(file_status(&FileError { path: file.to_path_buf(), source })));
    }
}
