//! Reads a fragment's operations ahead of the replay, on a thread of its own.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use schemas::plan::FragmentPlan;
use schemas::table::TableError;
#[cfg(test)]
use schemas::trace::TraceRow;
use schemas::trace::{Chunk, OperationsReader};
use schemas::vocabulary::Vocabulary;

use crate::source::Source;

/// Rows read at a time.
const CHUNK_ROWS: usize = 8192;

/// Up to this many fragments are read ahead in chunks of that size; more fragments share the memory.
const LARGE_CHUNKS: usize = 32;
const CHUNK_ROWS_MIN: usize = 256;

/// Chunks read ahead of a fragment. Fewer fragments share the memory too: one alone is read 50 ms
/// ahead of a replayer at its capacity, so that it does not wait when its reader has to wait for a
/// processor.
const CHUNKS_AHEAD_MIN: usize = 4;
const CHUNKS_AHEAD_MAX: usize = 32;

/// The operations of one fragment, chunk by chunk.
pub struct Feed<V: Vocabulary> {
    folder: PathBuf,
    /// Chunks, and `None` at the end of the trace.
    chunks: Receiver<Next<V>>,
    /// The first chunk, if [`Feed::fill`] has received it already.
    first: Cell<Option<Next<V>>>,
    has_ended: Cell<bool>,
    // Kept as long as the feed. The thread ends by itself when the receiver is gone.
    _reader: JoinHandle<()>,
}

/// What the reader sends.
type Next<V> = Result<Option<Chunk<V>>, TableError>;

impl<V: Vocabulary> Feed<V> {
    /// Starts to read what a plan needs of a trace set. `fragments` is the number of fragments that
    /// are read at the same time. Rows that do not fit the specification end the feed with an error.
    pub fn start(source: &Source, plan: &FragmentPlan, fragments: usize) -> std::io::Result<Feed<V>> {
        let rows = (CHUNK_ROWS * LARGE_CHUNKS / fragments.max(1)).clamp(CHUNK_ROWS_MIN, CHUNK_ROWS);
        let reader = source.manifest.reader(&source.folder, plan.fragment, rows);
        let reader = reader.map(|reader| reader.starting_at(plan.begins_at()).only_what_is_done());
        let plan = plan.clone();
        let ahead = (CHUNKS_AHEAD_MIN * LARGE_CHUNKS / fragments.max(1)).clamp(CHUNKS_AHEAD_MIN, CHUNKS_AHEAD_MAX);
        Feed::reading(source.folder.clone(), ahead, move |sender| {
            if let Err(error) = reader.and_then(|reader| read_ahead(reader, &plan, sender)) {
                // The receiver may be gone when the experiment has ended already.
                let _ = sender.send(Err(error));
            }
        })
    }

    fn reading(
        folder: PathBuf,
        ahead: usize,
        read: impl FnOnce(&SyncSender<Next<V>>) + Send + 'static,
    ) -> std::io::Result<Feed<V>> {
        let (sender, chunks) = sync_channel(ahead);
        let reader = std::thread::Builder::new().spawn(move || read(&sender))?;
        Ok(Feed { folder, chunks, first: Cell::new(None), has_ended: Cell::new(false), _reader: reader })
    }

    /// A feed of only these operations, in chunks of `chunk_sessions` sessions.
    #[cfg(test)]
    pub fn of(rows: &[TraceRow<V::Operation>], chunk_sessions: usize) -> Feed<V> {
        let sessions: Vec<&[TraceRow<V::Operation>]> = rows.chunk_by(|a, b| a.session == b.session).collect();
        let chunks = sessions.chunks(chunk_sessions).map(|sessions| sessions.concat().into_iter().collect());
        let chunks: Vec<Chunk<V>> = chunks.collect();
        let reading = Feed::reading(PathBuf::new(), CHUNKS_AHEAD_MIN, move |sender| {
            for chunk in chunks.into_iter().map(Some).chain([None]) {
                // The receiver may be gone when the experiment has ended already.
                let _ = sender.send(Ok(chunk));
            }
        });
        reading.unwrap()
    }

    /// Waits for the first chunk, so that the replay need not wait for it later.
    pub fn fill(&mut self) {
        self.first = Cell::new(Some(self.wait()));
    }

    /// What the reader sends next. A reader that ends without sending has panicked.
    fn wait(&self) -> Next<V> {
        self.chunks.recv().unwrap_or_else(|_| Err(self.died()))
    }

    fn died(&self) -> TableError {
        let message = "internal error while reading the trace set; see standard error";
        // Not the fault of the trace set.
        TableError { io: Some(std::io::ErrorKind::Other), ..TableError::new(&self.folder, message) }
    }

    /// The next chunk, `None` at the end of the trace. The flag is true if the caller had to wait for it.
    pub fn next(&self) -> Result<(Option<Chunk<V>>, bool), TableError> {
        if self.has_ended.get() {
            return Ok((None, false));
        }
        let (next, waited) = match self.first.take().map_or_else(|| self.chunks.try_recv(), Ok) {
            Ok(next) => (next, false),
            Err(TryRecvError::Disconnected) => (Err(self.died()), false),
            Err(TryRecvError::Empty) => (self.wait(), true),
        };
        let chunk = next?;
        self.has_ended.set(chunk.is_none());
        Ok((chunk, waited))
    }
}

/// Sends whole sessions only: holds back the last session of a chunk until its end has been read.
/// Ends early when the receiver is gone.
fn read_ahead<V: Vocabulary>(
    mut reader: OperationsReader<V>,
    plan: &FragmentPlan,
    sender: &SyncSender<Next<V>>,
) -> Result<(), TableError> {
    let mut chunk = Chunk::default();
    loop {
        let held = chunk.len();
        if !reader.append_chunk(&mut chunk)? {
            if !chunk.is_empty() {
                let _ = sender.send(Ok(Some(chunk)));
            }
            let _ = sender.send(Ok(None));
            return Ok(());
        }
        if held < chunk.len() && chunk.session(held) < plan.first_session {
            chunk = chunk.only(|session| !plan.is_before(session));
        }
        let whole = chunk.start_of_last_session();
        if whole > 0 {
            let rest = chunk.split_off(whole);
            if sender.send(Ok(Some(std::mem::replace(&mut chunk, rest)))).is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::social::Social;

    /// A reader that panics must not look like the end of the trace.
    #[test]
    fn a_reader_that_panics_is_an_error() {
        let feed =
            Feed::<Social>::reading(PathBuf::from("a.trace"), 1, |_| std::panic::resume_unwind(Box::new("not shown")));
        let feed = feed.unwrap();
        let error = feed.next().unwrap_err().to_string();
        assert!(error.contains("a.trace") && error.contains("internal error"), "{error}");
        let feed = Feed::<Social>::of(&[], 1);
        assert_eq!(feed.next().unwrap().0, None);
        assert_eq!(feed.next().unwrap(), (None, false), "it stays at its end");
    }
}
