//! Reads a fragment's operations ahead of the replay, on a thread of its own.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use schemas::trace::{OperationsReader, TableError};

use crate::dispatch::Chunk;

/// Rows read at a time.
const CHUNK_ROWS: usize = 8192;

/// Chunks read ahead.
const CHUNKS_AHEAD: usize = 4;

/// The operations of one fragment, chunk by chunk.
pub struct Feed {
    chunks: Receiver<Result<Chunk, TableError>>,
    // Kept so that the thread's life is bound to the feed's; it ends by itself
    // when the receiver is gone.
    _reader: JoinHandle<()>,
}

impl Feed {
    /// Starts to read the given files from a session on.
    pub fn start(files: Vec<PathBuf>, first_session: u64) -> Feed {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let reader = std::thread::spawn(move || read_ahead(files, first_session, &sender));
        Feed { chunks, _reader: reader }
    }

    /// The next chunk, `None` at the end of the trace. The flag is true when it
    /// had to be waited for.
    pub fn next(&self) -> Result<(Option<Chunk>, bool), TableError> {
        match self.chunks.try_recv() {
            Ok(chunk) => Ok((Some(chunk?), false)),
            Err(TryRecvError::Disconnected) => Ok((None, false)),
            Err(TryRecvError::Empty) => match self.chunks.recv() {
                Ok(chunk) => Ok((Some(chunk?), true)),
                Err(_) => Ok((None, true)),
            },
        }
    }
}

/// Sends whole sessions only: the last one of a chunk is held back until its
/// end has been seen.
fn read_ahead(files: Vec<PathBuf>, first_session: u64, sender: &SyncSender<Result<Chunk, TableError>>) {
    let mut reader = OperationsReader::new(files, CHUNK_ROWS).starting_at(first_session);
    let mut held: Chunk = Vec::new();
    let mut rows = Vec::new();
    loop {
        match reader.next_chunk(&mut rows) {
            Err(error) => {
                // The receiver may be gone when the experiment has ended already.
                let _ = sender.send(Err(error));
                return;
            }
            Ok(false) => {
                if !held.is_empty() {
                    let _ = sender.send(Ok(held));
                }
                return;
            }
            Ok(true) => {
                let mut chunk = std::mem::take(&mut held);
                chunk.append(&mut rows);
                let Some(last) = chunk.last().map(|row| row.session) else { continue };
                let whole = chunk.partition_point(|row| row.session < last);
                held = chunk.split_off(whole);
                if !chunk.is_empty() && sender.send(Ok(chunk)).is_err() {
                    return;
                }
            }
        }
    }
}
