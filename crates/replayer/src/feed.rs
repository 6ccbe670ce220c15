//! Reads a fragment's operations ahead of the replay, on a thread of its own.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use schemas::plan::FragmentPlan;
use schemas::table::TableError;
#[cfg(test)]
use schemas::trace::TraceRow;
use schemas::trace::{ACTOR, Chunk, OperationsReader};
use schemas::vocabulary::Vocabulary;

/// Rows read at a time.
const CHUNK_ROWS: usize = 8192;

/// Up to this many fragments are read ahead in chunks of that size; more fragments share the memory.
const LARGE_CHUNKS: usize = 32;
const CHUNK_ROWS_MIN: usize = 256;

/// Chunks read ahead.
const CHUNKS_AHEAD: usize = 4;

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
    /// Starts to read what a plan needs from the files. `actors` is the number of
    /// actors, `fragments` the number of fragments that are read at the same time.
    pub fn start(files: Vec<PathBuf>, plan: &FragmentPlan, actors: u64, fragments: usize) -> std::io::Result<Feed<V>> {
        let folder = files.first().and_then(|file| file.parent()).unwrap_or(Path::new("")).to_path_buf();
        let rows = (CHUNK_ROWS * LARGE_CHUNKS / fragments.max(1)).clamp(CHUNK_ROWS_MIN, CHUNK_ROWS);
        let reader =
            OperationsReader::new(plan.fragment, files, rows).starting_at(plan.begins_at()).only_what_is_done();
        let order = Order { session: plan.begins_at(), step: 0, actors };
        let (of, plan) = (folder.clone(), plan.clone());
        Feed::reading(folder, move |sender| read_ahead(reader, order, &plan, &of, sender))
    }

    fn reading(folder: PathBuf, read: impl FnOnce(&SyncSender<Next<V>>) + Send + 'static) -> std::io::Result<Feed<V>> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let reader = std::thread::Builder::new().spawn(move || read(&sender))?;
        Ok(Feed { folder, chunks, first: Cell::new(None), has_ended: Cell::new(false), _reader: reader })
    }

    /// A feed of only these operations, in chunks of `chunk_sessions` sessions.
    #[cfg(test)]
    pub fn of(rows: &[TraceRow<V::Operation>], chunk_sessions: usize) -> Feed<V> {
        let sessions: Vec<&[TraceRow<V::Operation>]> = rows.chunk_by(|a, b| a.session == b.session).collect();
        let chunks = sessions.chunks(chunk_sessions).map(|sessions| sessions.concat().into_iter().collect());
        let chunks: Vec<Chunk<V>> = chunks.collect();
        let reading = Feed::reading(PathBuf::new(), move |sender| {
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
        TableError::new(&self.folder, "internal error while reading the trace set; see standard error")
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
fn read_ahead<V: Vocabulary>(
    mut reader: OperationsReader<V>,
    mut order: Order,
    plan: &FragmentPlan,
    folder: &Path,
    sender: &SyncSender<Next<V>>,
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

/// Checks the order of a trace's rows. A replay depends on the order of sessions, and an
/// operation must not wait for a later one.
struct Order {
    session: u64,
    step: u16,
    /// The number of actors; their ids are lower.
    actors: u64,
}

impl Order {
    fn check<V: Vocabulary>(&mut self, chunk: &Chunk<V>, row: usize) -> Result<(), String> {
        let (session, step) = (chunk.session(row), chunk.step(row));
        let follows =
            (session, step) == (self.session, self.step) || (self.step > 0 && (session, step) == (self.session + 1, 0));
        if !follows {
            return Err(format!("session {session} step {step} is out of order; the trace set is damaged"));
        }
        // An operation may depend on earlier steps of its own session.
        let reach = session + u64::from(step > 0);
        if chunk.after(row).is_some_and(|after| after >= reach) {
            return Err(format!(
                "session {session} step {step} depends on itself or on a later session; the trace set is damaged"
            ));
        }
        if chunk.due_us(row).is_some() {
            return Err(format!(
                "session {session} has a due time (due_us), and this version replays closed-loop traces only; use a \
                 trace set without due times"
            ));
        }
        let actor = chunk.actor(row);
        if actor >= self.actors {
            return Err(format!(
                "session {session} step {step}: {ACTOR} {actor} does not exist (the data set has {} of them); the \
                 trace set is damaged",
                self.actors
            ));
        }
        (self.session, self.step) = (session, step + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::social::{Action, Operation, Social};

    fn check(rows: &[(u64, u16, Option<u64>)], expect: Option<&str>) {
        let mut order = Order { session: 5, step: 0, actors: 1 };
        let operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };
        let row = |(session, step, after): &(u64, u16, Option<u64>)| TraceRow {
            after: *after,
            ..TraceRow::plain(*session, *step, operation, 0)
        };
        let chunk: Chunk<Social> = rows.iter().map(row).collect();
        let result = (0..chunk.len()).try_for_each(|row| order.check(&chunk, row));
        match (result, expect) {
            (Ok(()), None) => {}
            (Err(message), Some(words)) => assert!(message.contains(words), "{message}"),
            (result, _) => panic!("{rows:?}: {result:?}"),
        }
    }

    /// A reader that panics must not look like the end of the trace.
    #[test]
    fn a_reader_that_panics_is_an_error() {
        let feed =
            Feed::<Social>::reading(PathBuf::from("a.trace"), |_| std::panic::resume_unwind(Box::new("not shown")));
        let feed = feed.unwrap();
        let error = feed.next().unwrap_err().to_string();
        assert!(error.contains("a.trace") && error.contains("internal error"), "{error}");
        let feed = Feed::<Social>::of(&[], 1);
        assert_eq!(feed.next().unwrap().0, None);
        assert_eq!(feed.next().unwrap(), (None, false), "it stays at its end");
    }

    #[test]
    fn due_times_are_refused_as_long_as_nothing_honours_them() {
        let operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };
        let chunk: Chunk<Social> =
            [TraceRow { due_us: Some(7), ..TraceRow::plain(0, 0, operation, 0) }].into_iter().collect();
        let refused = Order { session: 0, step: 0, actors: 1 }.check(&chunk, 0).unwrap_err();
        assert!(refused.contains("session 0 has a due time"), "{refused}");
    }

    /// A session that waited for a later one would wait for ever.
    #[test]
    fn traces_out_of_order_are_refused() {
        check(&[(5, 0, None), (5, 1, Some(3)), (5, 2, Some(5)), (6, 0, Some(5)), (7, 0, None)], None);
        check(&[(6, 0, None)], Some("session 6 step 0 is out of order"));
        check(&[(5, 0, None), (7, 0, None)], Some("session 7 step 0"));
        check(&[(5, 0, None), (5, 0, None)], Some("session 5 step 0"));
        check(&[(5, 1, None)], Some("session 5 step 1"));
        check(&[(5, 0, Some(5))], Some("session 5 step 0 depends on itself"));
        check(&[(5, 0, None), (5, 1, Some(6))], Some("session 5 step 1 depends on itself or on a later session"));
    }
}
