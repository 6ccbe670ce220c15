//! File transfers: trace sets to a replayer, logs from it. What arrived before a connection was
//! lost is not sent again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schemas::files::{self, at};
use schemas::manifest::{FileEntry, Manifest};
use schemas::rpc::{CHUNK_BYTES, FetchRequest, FileChunk, LackedFile, LogFile, LogsRequest, OfferRequest};
use storage::Url;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::link::{self, Client, PAUSE, Patience, answer, patiently};
use crate::failure::Failure;

/// Sends the parts of a trace set that a replayer does not have. Calls `sent` with the bytes sent
/// so far, and the bytes in all. A replayer that shares the URL takes them from there.
pub async fn send(
    name: &str,
    client: &Client,
    patience: Patience,
    (folder, url): (&Path, Option<&Url>),
    manifest: &Manifest,
    sent: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), Failure> {
    let manifest_json = serde_json::to_string(manifest).unwrap_or_else(|e| unreachable!("plain data: {e}"));
    let offered = url.map(ToString::to_string);
    let folder_text = offered.as_deref().or(folder.to_str()).ok_or_else(|| {
        Failure::usage(format!("{}: the name of a trace set's folder must be UTF-8", folder.display()))
    })?;
    let offer = OfferRequest { manifest_json, folder: folder_text.to_string() };
    let (mut total, mut last, mut with_file) = (None, (usize::MAX, u64::MAX), patience);
    // Whether the replayer accepted the last file.
    let mut was_taken = false;
    loop {
        let reply = patiently(patience, || {
            let (mut client, offer) = (client.clone(), offer.clone());
            async move { answer(client.offer(offer)).await }
        });
        let reply = reply.await.map_err(|status| link::failure(name, &status))?.into_inner();
        let lacked = reply.lacked;
        let left = left(&lacked, &manifest.files)
            .map_err(|file| Failure::tool(format!("{name} asks for {file:?}, which the trace set does not have")))?;
        let total = *total.get_or_insert(left);
        // A file whose last byte had arrived before a connection was lost has no bytes left, but is
        // still to be checked. So it counts as a file too.
        let has_come_on = lacked.len() < last.0 || left < last.1;
        if has_come_on {
            // The last attempt made progress, even if it was cut.
            last = (lacked.len(), left);
            with_file.heard();
        }
        sent(total.saturating_sub(left), total);
        let Some(file) = lacked.first() else { return Ok(()) };
        if reply.is_fetching {
            was_taken = false;
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        if was_taken && !has_come_on {
            return Err(Failure::tool(format!("{name} accepted {}, but still asks for the same bytes", file.path)));
        }
        let path = folder.join(&file.path);
        match client.clone().send(chunks(&path, &file.path, file.offset)?).await {
            Ok(_) => (with_file, was_taken) = (patience, true),
            Err(status) if with_file.tries_again(&status).await => was_taken = false,
            Err(status) => return Err(link::failure(name, &status)),
        }
    }
}

/// How many bytes a replayer still needs. The error is the name of a file that the trace set does
/// not have, or has less of: a replayer may ask only for files of the trace set.
fn left(lacked: &[LackedFile], files: &[FileEntry]) -> Result<u64, String> {
    let bytes: BTreeMap<&str, u64> = files.iter().map(|entry| (entry.path.as_str(), entry.bytes)).collect();
    let left = lacked.iter().map(|file| {
        let left = bytes.get(file.path.as_str()).and_then(|bytes| bytes.checked_sub(file.offset));
        left.ok_or_else(|| file.path.clone())
    });
    left.sum()
}

/// A file of a trace set from an offset on, as a stream that reads it as it is sent.
fn chunks(path: &Path, name: &str, offset: u64) -> Result<ReceiverStream<FileChunk>, Failure> {
    let mut file = File::open(path).map_err(at(path))?;
    file.seek(SeekFrom::Start(offset)).map_err(at(path))?;
    let (sender, chunks) = mpsc::channel(4);
    let mut name = Some(name.to_string());
    tokio::task::spawn_blocking(move || {
        loop {
            let mut data = Vec::with_capacity(CHUNK_BYTES);
            // If the file cannot be read, the stream ends early, and the replayer reports that.
            let read = Read::by_ref(&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut data);
            let is_first = name.is_some();
            if read.is_err() || (data.is_empty() && !is_first) {
                return;
            }
            let chunk = FileChunk { path: name.take().unwrap_or_default(), offset, data };
            if sender.blocking_send(chunk).is_err() {
                return;
            }
        }
    });
    Ok(ReceiverStream::new(chunks))
}

/// Where an experiment's logs are, on a replayer.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The name of the run there.
    pub run: String,
    /// The experiment.
    pub experiment: u32,
}

/// Fetches files of an experiment, each to its `target` here, if it has one. Returns how many.
/// Files that are here already with the same sum are not fetched.
pub async fn fetch(
    name: &str,
    client: &Client,
    patience: Patience,
    logged: &Logged,
    target: &(dyn Fn(&str) -> Option<PathBuf> + Sync),
) -> Result<usize, Failure> {
    let request = LogsRequest { run: logged.run.clone(), experiment: logged.experiment };
    // The sums of long logs take time; the keep-alive notices a replayer that is gone.
    let listed = patiently(patience, || {
        let (mut client, request) = (client.clone(), request.clone());
        async move { client.logs(request).await }
    });
    let listed = match listed.await {
        Ok(listed) => listed,
        // The replayer had no part in the experiment.
        Err(status) if status.code() == Code::NotFound => return Ok(0),
        Err(status) => return Err(link::failure(name, &status)),
    };
    let mut fetched = 0;
    for file in listed.into_inner().files {
        let Some(path) = target(&file.path) else { continue };
        if path.exists() && files::blake3_of(&path)? == file.blake3 {
            continue;
        }
        let mut with_file = patience;
        while let Err(trouble) = fetch_file(client.clone(), logged, &file, &path, &mut with_file).await {
            match trouble {
                Trouble::Here(failure) => return Err(failure),
                Trouble::There(status) if with_file.tries_again(&status).await => {}
                Trouble::There(status) => return Err(link::failure(name, &status)),
            }
        }
        fetched += 1;
    }
    Ok(fetched)
}

/// Whether a replayer's file is the log of a fragment, or of the closing read. Its plan and report are
/// not fetched: they cover one replayer, not the experiment.
pub fn is_log(path: &str) -> bool {
    let name = path.strip_prefix("log/").or_else(|| path.strip_prefix("audit/"));
    let fragment = name.and_then(|name| name.strip_prefix("fragment-")?.strip_suffix(".arrows"));
    path == "audit/checks.parquet" || fragment.is_some_and(|fragment| fragment.parse::<u32>().is_ok())
}

/// Why a file could not be fetched.
enum Trouble {
    Here(Failure),
    There(Status),
}

impl From<files::FileError> for Trouble {
    fn from(error: files::FileError) -> Trouble {
        Trouble::Here(Failure::tool(error))
    }
}

async fn fetch_file(
    mut client: Client,
    logged: &Logged,
    wanted: &LogFile,
    path: &Path,
    patience: &mut Patience,
) -> Result<(), Trouble> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let there = std::fs::metadata(&part).map_or(0, |metadata| metadata.len());
    let offset = if there <= wanted.bytes { there } else { 0 };
    let mut file = File::options().write(true).create(true).truncate(offset == 0).open(&part).map_err(at(&part))?;
    file.seek(SeekFrom::Start(offset)).map_err(at(&part))?;
    let request =
        FetchRequest { run: logged.run.clone(), experiment: logged.experiment, path: wanted.path.clone(), offset };
    let mut chunks = client.fetch(request).await.map_err(Trouble::There)?.into_inner();
    let mut left = wanted.bytes - offset;
    while let Some(chunk) = chunks.message().await.map_err(Trouble::There)? {
        left = left
            .checked_sub(chunk.data.len() as u64)
            .ok_or_else(|| Trouble::There(Status::data_loss(format!("{} is longer than announced", wanted.path))))?;
        file.write_all(&chunk.data).map_err(at(&part))?;
        patience.heard();
    }
    drop(file);
    if files::blake3_of(&part)? != wanted.blake3 {
        std::fs::remove_file(&part).map_err(at(&part))?;
        return Err(Trouble::There(Status::data_loss(format!("{} arrived damaged", wanted.path))));
    }
    std::fs::rename(&part, path).map_err(at(path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replayer gets only files of the trace set, whatever it asks for.
    #[test]
    fn nothing_but_the_trace_set_is_sent() {
        let files = [FileEntry { path: "members.parquet".into(), bytes: 100, rows: 1, blake3: "0".repeat(64) }];
        let asks = |path: &str, offset| left(&[LackedFile { path: path.into(), offset }], &files);
        assert_eq!(asks("members.parquet", 40), Ok(60));
        assert_eq!(asks("members.parquet", 101), Err("members.parquet".to_string()));
        for path in ["/etc/passwd", "../members.parquet", "manifest.json", ""] {
            assert_eq!(asks(path, 0), Err(path.to_string()));
        }
    }

    #[test]
    fn nothing_but_logs_is_fetched() {
        assert!(is_log("log/fragment-0.arrows") && is_log("audit/fragment-12.arrows"));
        assert!(is_log("audit/checks.parquet"));
        for path in [
            "audit/fragment-0.arrows.part",
            "fragment-0.arrows",
            "plan.json",
            "replay.json",
            "log/fragment-.arrows",
            "log/fragment-../../x.arrows",
            "log/other",
        ] {
            assert!(!is_log(path), "{path}");
        }
    }
}
