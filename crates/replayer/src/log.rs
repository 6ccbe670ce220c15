//! Writes the operation logs, on a thread of its own.

#[cfg(test)]
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use schemas::oplog::{LogBuffer, LogCompression, LogHeader, LogWriter, ReservedLog};
use schemas::table::TableError;

/// The most rows that a batch holds.
pub const BATCH_ROWS: usize = schemas::oplog::BATCH_ROWS_MAX;

/// The most bytes of observed values and errors that a batch holds, not counting its last row.
/// Long lists must not make a batch huge.
pub const BATCH_BYTES: usize = 64 * BATCH_ROWS;

/// How many batches may wait for the disk before the workers wait too.
const BATCHES_AHEAD: usize = 2;

/// The most rows that a killed replayer loses: the batch that is being filled, the batches that
/// wait, and the one that is being written.
pub const UNWRITTEN_ROWS_MAX: u64 = ((BATCHES_AHEAD + 2) * BATCH_ROWS) as u64;

/// The logs of an experiment, one for each fragment.
pub struct OperationLogs {
    sender: SyncSender<(usize, LogBuffer)>,
    failure: Arc<Failure>,
    writer: JoinHandle<Result<(), TableError>>,
}

/// Tells the workers to stop, because writing a log has failed.
#[derive(Default)]
struct Failure {
    happened: AtomicBool,
    error: Mutex<Option<TableError>>,
}

/// Sends a worker's batches to the logs.
#[derive(Clone)]
pub struct LogSender {
    sender: SyncSender<(usize, LogBuffer)>,
    failure: Arc<Failure>,
}

impl OperationLogs {
    /// Creates the files, which must not exist, and starts the writer.
    #[cfg(test)]
    pub fn create(files: Vec<(PathBuf, LogHeader)>, compression: LogCompression) -> Result<OperationLogs, TableError> {
        let reserve = |(path, header): (PathBuf, LogHeader)| Ok((ReservedLog::create(&path)?, header));
        OperationLogs::begin(files.into_iter().map(reserve).collect::<Result<_, TableError>>()?, compression)
    }

    /// Begins the logs, and starts the writer.
    pub fn begin(
        files: Vec<(ReservedLog, LogHeader)>,
        compression: LogCompression,
    ) -> Result<OperationLogs, TableError> {
        let mut logs = Vec::with_capacity(files.len());
        let first = files.first().map(|(file, _)| file.path().to_path_buf()).unwrap_or_default();
        for (file, header) in files {
            logs.push(LogWriter::begin(file, &header, compression)?);
        }
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let failure = Arc::new(Failure::default());
        let shared = failure.clone();
        let writer = std::thread::Builder::new()
            .spawn(move || write_all(logs, &batches, &shared))
            .map_err(|e| TableError::refused(&first, e))?;
        Ok(OperationLogs { sender, failure, writer })
    }

    /// A sender for a worker.
    pub fn sender(&self) -> LogSender {
        LogSender { sender: self.sender.clone(), failure: self.failure.clone() }
    }

    /// Waits until everything that was sent is written, and closes the files. The caller must
    /// drop every [`LogSender`] first.
    pub fn close(self) -> Result<(), TableError> {
        drop(self.sender);
        match self.writer.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl LogSender {
    /// Hands over a batch for the `log`-th file. Returns how long the caller waited for the disk,
    /// in nanoseconds.
    pub fn send(&self, log: usize, batch: LogBuffer) -> u64 {
        match self.sender.try_send((log, batch)) {
            Ok(()) => 0,
            Err(TrySendError::Full(batch)) => {
                let began = Instant::now();
                // The writer takes batches until all senders are gone, even after a failure.
                let _ = self.sender.send(batch);
                began.elapsed().as_nanos() as u64
            }
            Err(TrySendError::Disconnected(_)) => 0,
        }
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.failure.happened.load(Ordering::Relaxed)
    }
}

fn write_all(
    mut logs: Vec<LogWriter>,
    batches: &Receiver<(usize, LogBuffer)>,
    failure: &Failure,
) -> Result<(), TableError> {
    while let Ok((log, batch)) = batches.recv() {
        if failure.happened.load(Ordering::Relaxed) {
            continue;
        }
        if let Err(error) = logs[log].write(&batch.into_batch()) {
            *failure.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            failure.happened.store(true, Ordering::Relaxed);
        }
    }
    if let Some(error) = failure.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    logs.into_iter().try_for_each(LogWriter::close)
}
