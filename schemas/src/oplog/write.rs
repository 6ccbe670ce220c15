//! Writes the operation log: rows to batches, batches to a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, RunArray, StringArray, UInt16Array,
    UInt32Array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{Int32Type, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

use super::{LOG, LogHeader, LogRow, Outcome, log_fields, values};
use crate::table::TableError;

/// Rows of the log that will be a batch. Pushing allocates nothing until the capacity is
/// exceeded.
pub struct LogBuffer {
    session: Vec<u32>,
    thread: Vec<u16>,
    start_ns: Vec<u32>,
    duration_ns: Vec<u32>,
    offsets: Vec<i32>,
    observed: Vec<u8>,
    /// The last row's values of the columns below.
    steady: Steady,
    columns: SteadyColumns,
    errors: Vec<(usize, String)>,
    error_bytes: usize,
}

/// The values that are mostly the same from one row to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steady {
    session_high: i32,
    thread_high: u16,
    start_ns_high: i32,
    duration_ns_high: i32,
    step: i16,
    try_number: i16,
    attempts: i16,
    outcome: Outcome,
    due_ns: Option<i64>,
    waited_ns: i64,
    pool_wait_ns: i64,
}

impl Steady {
    #[inline]
    fn of(row: &LogRow, duration_ns: i64) -> Steady {
        Steady {
            session_high: (row.session >> 32) as i32,
            thread_high: (row.thread >> 16) as u16,
            start_ns_high: (row.start_ns >> 32) as i32,
            duration_ns_high: (duration_ns >> 32) as i32,
            step: row.step as i16,
            try_number: row.try_number as i16,
            attempts: row.attempts as i16,
            outcome: row.outcome,
            due_ns: row.due_ns,
            waited_ns: row.waited_ns,
            pool_wait_ns: row.pool_wait_ns,
        }
    }

    /// Compares without a branch for each number.
    #[inline]
    fn equals(&self, other: &Steady) -> bool {
        let numbers = (self.session_high ^ other.session_high)
            | (self.thread_high ^ other.thread_high) as i32
            | (self.start_ns_high ^ other.start_ns_high)
            | (self.duration_ns_high ^ other.duration_ns_high)
            | (self.step ^ other.step) as i32
            | (self.try_number ^ other.try_number) as i32
            | (self.attempts ^ other.attempts) as i32
            | (self.outcome as i8 ^ other.outcome as i8) as i32;
        let waits = (self.waited_ns ^ other.waited_ns) | (self.pool_wait_ns ^ other.pool_wait_ns);
        numbers as i64 | waits == 0 && self.due_ns == other.due_ns
    }
}

/// The runs of each field of [`Steady`].
#[derive(Default)]
struct SteadyColumns {
    session_high: Runs<i32>,
    thread_high: Runs<u16>,
    start_ns_high: Runs<i32>,
    duration_ns_high: Runs<i32>,
    step: Runs<i16>,
    try_number: Runs<i16>,
    attempts: Runs<i16>,
    outcome: Runs<Outcome>,
    due_ns: Runs<Option<i64>>,
    waited_ns: Runs<i64>,
    pool_wait_ns: Runs<i64>,
}

impl SteadyColumns {
    /// From row `row` on, the columns have these values.
    #[cold]
    fn change(&mut self, row: usize, to: &Steady) {
        self.session_high.change(row, to.session_high);
        self.thread_high.change(row, to.thread_high);
        self.start_ns_high.change(row, to.start_ns_high);
        self.duration_ns_high.change(row, to.duration_ns_high);
        self.step.change(row, to.step);
        self.try_number.change(row, to.try_number);
        self.attempts.change(row, to.attempts);
        self.outcome.change(row, to.outcome);
        self.due_ns.change(row, to.due_ns);
        self.waited_ns.change(row, to.waited_ns);
        self.pool_wait_ns.change(row, to.pool_wait_ns);
    }
}

/// A column as runs of equal values: where each begins, and its value.
struct Runs<T> {
    starts: Vec<i32>,
    values: Vec<T>,
}

impl<T> Default for Runs<T> {
    fn default() -> Runs<T> {
        Runs { starts: Vec::new(), values: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Runs<T> {
    fn change(&mut self, row: usize, to: T) {
        if self.values.last() != Some(&to) {
            self.starts.push(row as i32);
            self.values.push(to);
        }
    }

    /// The runs as a column of `rows` rows.
    fn into_array<A: Array>(mut self, rows: usize, array: impl FnOnce(Vec<T>) -> A) -> ArrayRef {
        // A run ends where the next one begins.
        let mut ends = self.starts.split_off(1.min(self.starts.len()));
        if !self.values.is_empty() {
            ends.push(rows as i32);
        }
        run_array(ends, &array(self.values))
    }
}

fn run_array(ends: Vec<i32>, values: &dyn Array) -> ArrayRef {
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(ends), values);
    Arc::new(runs.unwrap_or_else(|e| unreachable!("runs end in rising order: {e}")))
}

impl LogBuffer {
    /// A buffer for `rows` rows with about `values_per_row` observed values each.
    pub fn with_capacity(rows: usize, values_per_row: usize) -> LogBuffer {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let nothing = LogRow {
            session: 0,
            step: 0,
            try_number: 0,
            thread: 0,
            due_ns: None,
            start_ns: 0,
            end_ns: 0,
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts: 0,
            outcome: Outcome::Ok,
        };
        LogBuffer {
            session: Vec::with_capacity(rows),
            thread: Vec::with_capacity(rows),
            start_ns: Vec::with_capacity(rows),
            duration_ns: Vec::with_capacity(rows),
            offsets,
            observed: Vec::with_capacity(2 * rows * values_per_row),
            steady: Steady::of(&nothing, 0),
            columns: SteadyColumns::default(),
            errors: Vec::new(),
            error_bytes: 0,
        }
    }

    /// Adds a row with what it observed and, unless it is ok, its error.
    #[inline(always)]
    pub fn push(&mut self, row: LogRow, observed: &[i64], error: Option<&str>) {
        let rows = self.session.len();
        if let Some(error) = error {
            self.errors.push((rows, error.to_string()));
            self.error_bytes += error.len();
        }
        let duration_ns = row.end_ns - row.start_ns;
        let steady = Steady::of(&row, duration_ns);
        if rows == 0 || !steady.equals(&self.steady) {
            self.columns.change(rows, &steady);
            self.steady = steady;
        }
        self.session.push(row.session as u32);
        self.thread.push(row.thread as u16);
        self.start_ns.push(row.start_ns as u32);
        self.duration_ns.push(duration_ns as u32);
        values::encode(observed, &mut self.observed);
        self.offsets.push(self.observed.len() as i32);
    }

    /// Rows since the last batch.
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// Bytes of variable length in the rows since the last batch: values observed and errors.
    pub fn variable_bytes(&self) -> usize {
        self.observed.len() + self.error_bytes
    }

    /// The rows as a batch of the schema [`LOG`].
    pub fn into_batch(self) -> RecordBatch {
        let rows = self.session.len();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let observed = BinaryArray::new(offsets, Buffer::from_vec(self.observed), None);
        let steady = self.columns;
        let outcomes =
            |outcomes: Vec<Outcome>| StringArray::from_iter_values(outcomes.into_iter().map(|outcome| outcome.name()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(self.session)),
            Arc::new(UInt16Array::from(self.thread)),
            Arc::new(UInt32Array::from(self.start_ns)),
            Arc::new(UInt32Array::from(self.duration_ns)),
            Arc::new(observed),
            steady.session_high.into_array(rows, Int32Array::from),
            steady.thread_high.into_array(rows, UInt16Array::from),
            steady.start_ns_high.into_array(rows, Int32Array::from),
            steady.duration_ns_high.into_array(rows, Int32Array::from),
            steady.step.into_array(rows, Int16Array::from),
            steady.try_number.into_array(rows, Int16Array::from),
            steady.due_ns.into_array(rows, Int64Array::from),
            steady.waited_ns.into_array(rows, Int64Array::from),
            steady.pool_wait_ns.into_array(rows, Int64Array::from),
            steady.attempts.into_array(rows, Int16Array::from),
            steady.outcome.into_array(rows, outcomes),
            error_column(rows, &self.errors),
        ];
        RecordBatch::try_new(LOG.clone(), columns).unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
    }
}

/// The `error` column: null except in the rows with an error, which come in order.
fn error_column(rows: usize, errors: &[(usize, String)]) -> ArrayRef {
    let (mut runs, mut next) = (Runs::default(), 0);
    for (row, error) in errors {
        if next < *row {
            runs.change(next, None);
        }
        runs.change(*row, Some(error.as_str()));
        next = row + 1;
    }
    if next < rows {
        runs.change(next, None);
    }
    runs.into_array(rows, StringArray::from)
}

/// How a log's batches are compressed; a reader detects this itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogCompression {
    /// Not at all: the least work.
    #[default]
    None,
    /// With LZ4.
    Lz4,
    /// With zstd: the smallest.
    Zstd,
}

/// Appends batches to a log file. The operating system has a batch when [`LogWriter::write`]
/// returns.
pub struct LogWriter {
    path: PathBuf,
    stream: StreamWriter<BufWriter<File>>,
}

/// Alignment of the parts of a batch. Most parts have one number, and with Arrow's usual 64 bytes
/// half of a small batch would be padding.
const ALIGNMENT_BYTES: usize = 8;

/// The file of a log that has not begun. It is empty, so no reader takes it for a log.
pub struct ReservedLog {
    path: PathBuf,
    file: File,
}

impl ReservedLog {
    /// Creates the file, which must not exist. This takes a while on a busy disk.
    pub fn create(path: &Path) -> Result<ReservedLog, TableError> {
        let file = File::create_new(path).map_err(|e| TableError::refused(path, e))?;
        Ok(ReservedLog { path: path.to_path_buf(), file })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: the log will never begin.
    pub fn remove(self) -> Result<(), TableError> {
        std::fs::remove_file(&self.path).map_err(|e| TableError::refused(&self.path, e))
    }
}

impl LogWriter {
    /// Creates the file, which must not exist, and begins the log.
    pub fn create(path: &Path, header: &LogHeader, compression: LogCompression) -> Result<LogWriter, TableError> {
        LogWriter::begin(ReservedLog::create(path)?, header, compression)
    }

    /// Begins the log.
    pub fn begin(log: ReservedLog, header: &LogHeader, compression: LogCompression) -> Result<LogWriter, TableError> {
        let ReservedLog { path, file } = log;
        let path = path.as_path();
        let text = serde_json::to_string(header).map_err(|e| TableError::refused(path, e))?;
        let schema = Schema::new_with_metadata(log_fields(), HashMap::from([("encore".to_string(), text)]));
        let compression = match compression {
            LogCompression::None => None,
            LogCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
            LogCompression::Zstd => Some(CompressionType::ZSTD),
        };
        // The buffer collects the small pieces of a message. The body, one large piece, bypasses
        // it.
        let mut stream = IpcWriteOptions::try_new(ALIGNMENT_BYTES, false, arrow::ipc::MetadataVersion::V5)
            .and_then(|options| options.try_with_compression(compression))
            .and_then(|options| StreamWriter::try_new_with_options(BufWriter::new(file), &schema, options))
            .map_err(|e| TableError::refused(path, e))?;
        stream.flush().map_err(|e| TableError::refused(path, e))?;
        Ok(LogWriter { path: path.to_path_buf(), stream })
    }

    /// Writes one batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        // The stream's schema carries the header, the batch's does not; columns are the same.
        self.stream.write(batch).and_then(|()| self.stream.flush()).map_err(|e| TableError::refused(&self.path, e))
    }

    /// Writes the closing mark, which tells a reader that nothing is missing.
    pub fn close(mut self) -> Result<(), TableError> {
        self.stream.finish().map_err(|e| TableError::refused(&self.path, e))?;
        self.stream.flush().map_err(|e| TableError::refused(&self.path, e))
    }
}
