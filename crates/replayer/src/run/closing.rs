//! The closing read: reads every item of an experiment's fragments after the last operation has
//! ended, checks the conditions of the data, and writes what it saw beside the logs.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use schemas::files;
use schemas::oplog::{LogBuffer, LogHeader, LogRow, LogWriter, Outcome};
use schemas::plan::FragmentPlan;
use schemas::run::{ExperimentFolder, FragmentPosition};
use schemas::table::TableError;
use schemas::trace::{OperationsReader, TraceRow};
use schemas::vocabulary::{Operation, Vocabulary};
use schemas::workload::{Closing, ItemChunks};

use super::conditions::check_conditions;
use super::worker::local_runtime;
use crate::clock::{Clock, unix_ns};
use crate::experiment::{Experiment, ExperimentError};
use crate::log::{BATCH_BYTES, BATCH_ROWS};
use crate::stores::{Answer, Connection, OperationError, Serves, StoreError};

/// How many items all workers read at the same time. One after the other would take a round trip for
/// each item; more would only queue in most stores.
const IN_FLIGHT: u32 = 16;

/// So many failed reads in a row mean that the store is gone. To wait for each of millions of time
/// limits would take days.
const FAILED_IN_A_ROW_MAX: u32 = 100;

/// How often progress is reported.
const POLL: Duration = Duration::from_millis(100);

/// Rows of the trace that are read at a time.
const TRACE_ROWS: usize = 8192;

/// Reads every item of the experiment's fragments and checks the conditions of the data, if its plan says so.
/// `positions` are those after the experiment. `progress` is called several times a second with the items read
/// and those of the data set, then with the conditions. Returns false if it did not come to its end, because
/// `stop` was set or the plan has no closing read.
pub fn closing_read<V: Vocabulary, S: Serves<V>>(
    store: &S,
    experiment: &Experiment,
    positions: &[FragmentPosition],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<bool, ExperimentError> {
    let (closing, checks) = (experiment.closing(), experiment.checks_conditions());
    if stop.load(Ordering::Relaxed) || (closing.is_none() && !checks) {
        return Ok(false);
    }
    let folder = experiment.folder.join("audit");
    std::fs::create_dir_all(&folder).map_err(files::at(&folder))?;
    let is_read = match closing {
        Some(closing) => read_items(store, experiment, closing, positions, stop, progress)?,
        None => true,
    };
    Ok(is_read && (!checks || check_conditions::<V, S>(store, experiment, stop, progress)?))
}

/// Reads every item. Returns false if it did not come to its end.
fn read_items<V: Vocabulary, S: Serves<V>>(
    store: &S,
    experiment: &Experiment,
    closing: Closing,
    positions: &[FragmentPosition],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<bool, ExperimentError> {
    let Some(clock) = experiment.clock() else { return Ok(false) };
    let shares = experiment.shares();
    let in_flight = store.connections_max().unwrap_or(IN_FLIGHT).min(IN_FLIGHT);
    let threads_each = (in_flight / shares.len() as u32).max(1);
    let (done, total) = (AtomicU64::new(0), items_at_first(experiment));
    let is_complete = std::thread::scope(|scope| {
        let handles = (0..).zip(&shares).map(|(worker, share)| {
            let threads = worker * threads_each..(worker + 1) * threads_each;
            let reader = Reader { experiment, closing, clock, positions, threads, stop, done: &done };
            std::thread::Builder::new().spawn_scoped(scope, move || reader.read_all::<V, S>(store, share))
        });
        let handles = handles.collect::<Result<Vec<_>, _>>().map_err(ExperimentError::Worker)?;
        while handles.iter().any(|handle| !handle.is_finished()) {
            std::thread::sleep(POLL);
            progress(done.load(Ordering::Relaxed), total);
        }
        let ends = handles.into_iter().map(|handle| match handle.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let ends = ends.collect::<Result<Vec<bool>, ExperimentError>>()?;
        Ok::<bool, ExperimentError>(ends.into_iter().all(|is_complete| is_complete))
    })?;
    progress(done.load(Ordering::Relaxed), total);
    Ok(is_complete)
}

/// How many items the data set has in the fragments of the experiment.
fn items_at_first(experiment: &Experiment) -> u64 {
    let is_own = |path: &str| {
        let mut fragments = experiment.plan.fragments.iter();
        fragments.any(|own| path.starts_with(&format!("dataset/fragment={}/", own.fragment)))
    };
    experiment.source.manifest.files.iter().filter(|file| is_own(&file.path)).map(|file| file.rows).sum()
}

/// One worker's part of a closing read.
struct Reader<'a> {
    experiment: &'a Experiment,
    closing: Closing,
    clock: Clock,
    positions: &'a [FragmentPosition],
    threads: Range<u32>,
    stop: &'a AtomicBool,
    done: &'a AtomicU64,
}

impl Reader<'_> {
    /// Reads the fragments of a worker, one after the other. False if a stop ended it.
    fn read_all<V: Vocabulary, S: Serves<V>>(&self, store: &S, share: &[usize]) -> Result<bool, ExperimentError> {
        let runtime = local_runtime().map_err(ExperimentError::Worker)?;
        runtime.block_on(async {
            let mut connections = store.connect_to_latest(&self.experiment.source, self.threads.clone()).await?;
            for index in share {
                let plan = &self.experiment.plan.fragments[*index];
                if !self.read_fragment::<V, S>(store, plan, &mut connections).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Reads a fragment. Its file gets its name when it is complete.
    async fn read_fragment<V: Vocabulary, S: Serves<V>>(
        &self,
        store: &S,
        plan: &FragmentPlan,
        connections: &mut [S::Connection],
    ) -> Result<bool, ExperimentError> {
        let path = ExperimentFolder::new(&self.experiment.folder).audit(plan.fragment);
        let part = part_of(&path);
        match std::fs::remove_file(&part) {
            // An earlier attempt was cut off.
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(files::at(&part)(e).into()),
        }
        let reading = RefCell::new(Reading {
            items: Items::<V>::of(self, plan)?,
            log: LogWriter::create(&part, &self.header(plan), self.experiment.log_compression)?,
            buffer: LogBuffer::with_capacity(0, 0),
            failed_in_a_row: 0,
        });
        let readers = (self.threads.clone()).zip(connections).map(|(thread, connection)| {
            // The vocabulary is that of the experiment, so it reads whole items.
            self.read_items::<V, S>(store, thread, connection, &reading)
        });
        let ends = join_all(readers).await.into_iter().collect::<Result<Vec<()>, ExperimentError>>();
        let is_complete = !self.stop.load(Ordering::Relaxed);
        if let (Ok(_), true) = (&ends, is_complete) {
            reading.into_inner().close()?;
            std::fs::rename(&part, &path).map_err(files::at(&path))?;
        } else {
            std::fs::remove_file(&part).map_err(files::at(&part))?;
        }
        ends.map(|_| is_complete)
    }

    /// Reads one item after the other on one connection, until none is left.
    async fn read_items<V: Vocabulary, S: Serves<V>>(
        &self,
        store: &S,
        thread: u32,
        connection: &mut S::Connection,
        reading: &RefCell<Reading<V>>,
    ) -> Result<(), ExperimentError> {
        let mut answer = Answer::default();
        let (columns, mut memory) = (V::Columns::default(), V::Memory::default());
        while !self.stop.load(Ordering::Relaxed) {
            let next = reading.borrow_mut().items.next()?;
            let Some((item, read)) = next.and_then(|item| Some((item, V::read_whole(item, self.closing.parts)?)))
            else {
                return Ok(());
            };
            answer.clear();
            let start_ns = self.clock.now_ns();
            let result = match V::request(&read, &columns, &mut memory) {
                Ok(request) => connection.execute(request, &mut answer).await,
                Err(missing) => Err(OperationError::Failed(missing.to_string())),
            };
            let end_ns = self.clock.now_ns();
            let error = result.err().map(OperationError::into_message);
            let outcome = if error.is_none() { Outcome::Ok } else { Outcome::Failed };
            let row = LogRow {
                session: item,
                step: 0,
                try_number: 0,
                thread,
                due_ns: None,
                start_ns,
                end_ns,
                waited_ns: 0,
                pool_wait_ns: answer.pool_wait_ns,
                attempts: answer.attempts,
                outcome,
            };
            let observed = if error.is_none() { &answer.values[..] } else { &[] };
            let failed_in_a_row = reading.borrow_mut().log(row, observed, error.as_deref())?;
            self.done.fetch_add(1, Ordering::Relaxed);
            if let (FAILED_IN_A_ROW_MAX.., Some(error)) = (failed_in_a_row, error) {
                let message =
                    format!("the closing read gave up after {failed_in_a_row} failed reads in a row: {error}");
                return Err(StoreError::store(store.url(), message).into());
            }
        }
        Ok(())
    }

    fn header(&self, plan: &FragmentPlan) -> LogHeader {
        LogHeader {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: self.experiment.plan.experiment,
            fragment: plan.fragment,
            workload_id: self.experiment.source.manifest.workload_id.clone(),
            first_session: 0,
            threads: self.threads.len() as u32,
            unwritten_rows_max: 0,
            aside_sessions_max: 0,
            started_unix_ns: unix_ns() - self.clock.now_ns(),
        }
    }
}

/// The name of a file that is being written.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// A fragment that is being read: the items that are left, and the file.
struct Reading<V: Vocabulary> {
    items: Items<V>,
    log: LogWriter,
    buffer: LogBuffer,
    failed_in_a_row: u32,
}

impl<V: Vocabulary> Reading<V> {
    /// Writes down what a read saw. Returns how many reads in a row have failed.
    fn log(&mut self, row: LogRow, observed: &[i64], error: Option<&str>) -> Result<u32, TableError> {
        self.buffer.push(row, observed, error);
        if self.buffer.len() >= BATCH_ROWS || self.buffer.variable_bytes() >= BATCH_BYTES {
            self.flush()?;
        }
        self.failed_in_a_row = if error.is_some() { self.failed_in_a_row + 1 } else { 0 };
        Ok(self.failed_in_a_row)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let full = std::mem::replace(&mut self.buffer, LogBuffer::with_capacity(0, 0));
        self.log.write(&full.into_batch())
    }

    fn close(mut self) -> Result<(), TableError> {
        if !self.buffer.is_empty() {
            self.flush()?;
        }
        self.log.close()
    }
}

/// The items of a fragment: those of the data set, then those that sessions have added.
struct Items<V: Vocabulary> {
    initial: ItemChunks,
    sessions: Option<OperationsReader<V>>,
    /// Which sessions have run.
    position: FragmentPosition,
    rows: Vec<TraceRow<V::Operation>>,
    ready: std::vec::IntoIter<u64>,
}

impl<V: Vocabulary> Items<V> {
    fn of(reader: &Reader<'_>, plan: &FragmentPlan) -> Result<Items<V>, TableError> {
        let (source, fragment) = (&reader.experiment.source, plan.fragment);
        let position = reader.positions.iter().find(|position| position.fragment == fragment);
        let position = position.cloned().unwrap_or_else(|| FragmentPosition::at(fragment, plan.first_session));
        let sessions = reader.closing.grows.then(|| {
            let files = source.manifest.operation_files(&source.folder, fragment);
            OperationsReader::new(fragment, files, TRACE_ROWS).only_what_is_done()
        });
        let initial = (reader.closing.items)(&source.folder, fragment)?;
        Ok(Items { initial, sessions, position, rows: Vec::new(), ready: Vec::new().into_iter() })
    }

    fn next(&mut self) -> Result<Option<u64>, TableError> {
        loop {
            if let Some(item) = self.ready.next() {
                return Ok(Some(item));
            }
            if let Some(chunk) = self.initial.next() {
                self.ready = chunk?.into_iter();
            } else if let Some(sessions) = &mut self.sessions {
                let is_over = !sessions.next_rows(&mut self.rows)?
                    || self.rows.last().is_some_and(|row| row.session >= self.position.next_session);
                let ran = self.rows.iter().filter(|row| self.position.has_run(row.session));
                self.ready = ran.filter_map(|row| row.operation.adds()).collect::<Vec<u64>>().into_iter();
                if is_over {
                    self.sessions = None;
                }
            } else {
                return Ok(None);
            }
        }
    }
}
