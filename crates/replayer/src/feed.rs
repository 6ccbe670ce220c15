//! Reads a fragment's operations ahead of the replay, on a thread of its own.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use schemas::plan::FragmentPlan;
#[cfg(test)]
use schemas::trace::TraceRow;
use schemas::trace::{Chunk, OperationsReader, TableError};

/// Rows read at a time.
const CHUNK_ROWS: usize = 8192;

/// Fragments that are read ahead in chunks of this size; more of them share the memory.
const LARGE_CHUNKS: usize = 32;
const CHUNK_ROWS_MIN: usize = 256;

/// Chunks read ahead.
const CHUNKS_AHEAD: usize = 4;

/// The operations of one fragment, chunk by chunk.
pub struct Feed {
    folder: PathBuf,
    /// Chunks, and `None` at the end of the trace.
    chunks: Receiver<Next>,
    /// What [`Feed::fill`] has taken from it.
    first: Cell<Option<Next>>,
    has_ended: Cell<bool>,
    // Kept so that the thread's life is bound to the feed's; it ends by itself
    // when the receiver is gone.
    _reader: JoinHandle<()>,
}

/// What the reader sends.
type Next = Result<Option<Chunk>, TableError>;

impl Feed {
    /// Starts to read what a plan needs of the given files, beside so many other fragments.
    /// The data set has so many members.
    pub fn start(files: Vec<PathBuf>, plan: &FragmentPlan, members: u64, fragments: usize) -> Feed {
        let folder = files.first().and_then(|file| file.parent()).unwrap_or(Path::new("")).to_path_buf();
        let rows = (CHUNK_ROWS * LARGE_CHUNKS / fragments.max(1)).clamp(CHUNK_ROWS_MIN, CHUNK_ROWS);
        let reader = OperationsReader::new(files, rows).starting_at(plan.begins_at()).only_what_is_done();
        let order = Order { session: plan.begins_at(), step: 0, members };
        let (of, plan) = (folder.clone(), plan.clone());
        Feed::reading(folder, move |sender| read_ahead(reader, order, &plan, &of, sender))
    }

    fn reading(folder: PathBuf, read: impl FnOnce(&SyncSender<Next>) + Send + 'static) -> Feed {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let reader = std::thread::spawn(move || read(&sender));
        Feed { folder, chunks, first: Cell::new(None), has_ended: Cell::new(false), _reader: reader }
    }

    /// A feed of these operations and no more, in chunks of so many sessions.
    #[cfg(test)]
    pub fn of(rows: &[TraceRow], chunk_sessions: usize) -> Feed {
        let sessions: Vec<&[TraceRow]> = rows.chunk_by(|a, b| a.session == b.session).collect();
        let chunks = sessions.chunks(chunk_sessions).map(|sessions| sessions.concat().into_iter().collect());
        let chunks: Vec<Chunk> = chunks.collect();
        Feed::reading(PathBuf::new(), move |sender| {
            for chunk in chunks.into_iter().map(Some).chain([None]) {
                // The receiver may be gone when the experiment has ended already.
                let _ = sender.send(Ok(chunk));
            }
        })
    }

    /// Waits until there is a first chunk, so that nobody has to later.
    pub fn fill(&mut self) {
        self.first = Cell::new(Some(self.wait()));
    }

    /// What the reader sends next. One that ends without a word has panicked.
    fn wait(&self) -> Next {
        self.chunks.recv().unwrap_or_else(|_| Err(self.died()))
    }

    fn died(&self) -> TableError {
        TableError::new(&self.folder, "reading the trace set has failed; standard error says where")
    }

    /// The next chunk, `None` at the end of the trace. The flag is true when it
    /// had to be waited for.
    pub fn next(&self) -> Result<(Option<Chunk>, bool), TableError> {
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

/// Sends whole sessions only: the last one of a chunk is held back until its
/// end has been seen.
fn read_ahead(
    mut reader: OperationsReader,
    mut order: Order,
    plan: &FragmentPlan,
    folder: &Path,
    sender: &SyncSender<Next>,
) {
    let mut chunk = Chunk::default();
    loop {
        let held = chunk.len();
        match reader.append_chunk(&mut chunk) {
            Err(error) => {
                // The receiver may be gone when the experiment has ended already.
                let _ = sender.send(Err(error));
                return;
            }
            Ok(false) => {
                if !chunk.is_empty() {
                    let _ = sender.send(Ok(Some(chunk)));
                }
                let _ = sender.send(Ok(None));
                return;
            }
            Ok(true) => {
                if let Err(message) = (held..chunk.len()).try_for_each(|row| order.check(&chunk, row)) {
                    let _ = sender.send(Err(TableError::new(folder, message)));
                    return;
                }
                if held < chunk.len() && chunk.session(held) < plan.first_session {
                    chunk = chunk.rows().filter(|row| !plan.is_before(row.session)).collect();
                }
                let whole = chunk.start_of_last_session();
                if whole > 0 {
                    let rest = chunk.split_off(whole);
                    if sender.send(Ok(Some(std::mem::replace(&mut chunk, rest)))).is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// What the next row of a trace may be: replaying depends on the order of
/// sessions, and an operation must not wait for a later one.
struct Order {
    session: u64,
    step: u16,
    /// Socialites have lower numbers.
    members: u64,
}

impl Order {
    fn check(&mut self, chunk: &Chunk, row: usize) -> Result<(), String> {
        let (session, step) = (chunk.session(row), chunk.step(row));
        let follows =
            (session, step) == (self.session, self.step) || (self.step > 0 && (session, step) == (self.session + 1, 0));
        if !follows {
            return Err(format!("session {session} step {step} is out of order; the trace set is damaged"));
        }
        // Of its own session an operation may need the earlier steps.
        let reach = session + u64::from(step > 0);
        if chunk.after(row).is_some_and(|after| after >= reach) {
            return Err(format!(
                "session {session} step {step} waits for itself or a later one; the trace set is damaged"
            ));
        }
        let socialite = chunk.socialite(row);
        if socialite >= self.members {
            return Err(format!(
                "session {session} step {step} is of member {socialite}, and the data set has {}; the trace set is damaged",
                self.members
            ));
        }
        (self.session, self.step) = (session, step + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::social::{Action, Operation};

    fn check(rows: &[(u64, u16, Option<u64>)], expect: Option<&str>) {
        let mut order = Order { session: 5, step: 0, members: 1 };
        let operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };
        let row = |(session, step, after): &(u64, u16, Option<u64>)| TraceRow {
            session: *session,
            step: *step,
            kind: 0,
            noops: 0,
            think_us: 0,
            due_us: None,
            after: *after,
            operation,
        };
        let chunk: Chunk = rows.iter().map(row).collect();
        let result = (0..chunk.len()).try_for_each(|row| order.check(&chunk, row));
        match (result, expect) {
            (Ok(()), None) => {}
            (Err(message), Some(words)) => assert!(message.contains(words), "{message}"),
            (result, _) => panic!("{rows:?}: {result:?}"),
        }
    }

    /// A reader that dies is no end of the trace.
    #[test]
    fn a_reader_that_panics_is_an_error() {
        let feed = Feed::reading(PathBuf::from("a.trace"), |_| std::panic::resume_unwind(Box::new("not shown")));
        let error = feed.next().unwrap_err().to_string();
        assert!(error.contains("a.trace") && error.contains("has failed"), "{error}");
        let feed = Feed::of(&[], 1);
        assert_eq!(feed.next().unwrap().0, None);
        assert_eq!(feed.next().unwrap(), (None, false), "it stays at its end");
    }

    /// A session that waited for a later one would wait for ever.
    #[test]
    fn traces_out_of_order_are_refused() {
        check(&[(5, 0, None), (5, 1, Some(3)), (5, 2, Some(5)), (6, 0, Some(5)), (7, 0, None)], None);
        check(&[(6, 0, None)], Some("session 6 step 0 is out of order"));
        check(&[(5, 0, None), (7, 0, None)], Some("session 7 step 0"));
        check(&[(5, 0, None), (5, 0, None)], Some("session 5 step 0"));
        check(&[(5, 1, None)], Some("session 5 step 1"));
        check(&[(5, 0, Some(5))], Some("session 5 step 0 waits for itself"));
        check(&[(5, 0, None), (5, 1, Some(6))], Some("session 5 step 1 waits for itself or a later one"));
    }
}
