//! The operation log: one row for every operation that a replayer ran or
//! skipped, an Arrow IPC stream for each fragment.
//!
//! It says no more than (session, step) about the operation: the trace knows
//! the rest. It is written batch by batch while the experiment runs, so that a
//! killed replayer loses its last few batches at the most; [`LogReader`] reads
//! what is there and says what is missing.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, BooleanBufferBuilder, DictionaryArray, Int8Array, Int16Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Int8Type, Int16Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::Message;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};

use crate::trace::{TableError, column, name_type};

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum Outcome {
    /// The store answered as it should.
    Ok = 0,
    /// It did not happen.
    Failed = 1,
    /// A write that may have happened at any time after its start, or never.
    Unknown = 2,
    /// Not issued, because an operation that it depends on did not succeed.
    Skipped = 3,
}

impl Outcome {
    /// Every outcome, in the order of their codes.
    pub const ALL: [Outcome; 4] = [Outcome::Ok, Outcome::Failed, Outcome::Unknown, Outcome::Skipped];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
            Outcome::Skipped => "skipped",
        }
    }
}

/// What a log belongs to; kept as JSON in the schema's metadata, key `encore`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The experiment's number in its run.
    pub experiment: u32,
    /// The fragment.
    pub fragment: u32,
    /// The workload that was replayed.
    pub workload_id: String,
    /// The fragment's first session in this experiment.
    pub first_session: u64,
    /// Threads that worked on the fragment: no more sessions were ever in flight.
    pub threads: u32,
    /// The most rows of the fragment that were ever on their way to the file, so
    /// the most that a killed replayer loses beside what was in flight.
    pub unwritten_rows_max: u64,
    /// Wall-clock time of time 0, in nanoseconds since 1970, for information.
    pub started_unix_ns: i64,
}

/// The columns of the operation log.
pub static LOG: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(Schema::new(log_fields())));

fn log_fields() -> Vec<Field> {
    let errors = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
    vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("thread", DataType::Int32, false),
        Field::new("due_ns", DataType::Int64, true),
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("waited_ns", DataType::Int64, false),
        Field::new("pool_wait_ns", DataType::Int64, false),
        Field::new("attempts", DataType::Int16, false),
        Field::new("outcome", name_type(), false),
        Field::new("error", errors, true),
        Field::new("observed", DataType::List(observed_item()), false),
    ]
}

/// The item field of the `observed` list.
pub fn observed_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Int64, false))
}

/// The `outcome` column from codes.
pub fn outcome_column(codes: Vec<i8>) -> ArrayRef {
    static NAMES: LazyLock<ArrayRef> =
        LazyLock::new(|| Arc::new(StringArray::from_iter_values(Outcome::ALL.iter().map(|o| o.name()))));
    // One shared array of names: the stream writer then sends it only once.
    Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), NAMES.clone()))
}

/// One row of the log, but for the values observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRow {
    /// The session, counted from 0 in its fragment.
    pub session: u64,
    /// The operation's place in its session.
    pub step: u16,
    /// The thread that ran it.
    pub thread: u32,
    /// When it should have started (open loop).
    pub due_ns: Option<i64>,
    /// When the store was called, from the experiment's start.
    pub start_ns: i64,
    /// When its answer had been decoded.
    pub end_ns: i64,
    /// How long the operation waited for the one it depends on, before `start_ns`.
    pub waited_ns: i64,
    /// How long it waited for a connection, between `start_ns` and `end_ns`.
    pub pool_wait_ns: i64,
    /// How often it was tried; 0 when skipped.
    pub attempts: u16,
    /// How it ended.
    pub outcome: Outcome,
}

/// Rows of the log on their way to a batch. Pushing allocates nothing until
/// the capacity is exceeded.
pub struct LogBuffer {
    session: Vec<i64>,
    step: Vec<i16>,
    thread: Vec<i32>,
    due_ns: Vec<i64>,
    due_valid: BooleanBufferBuilder,
    has_due: bool,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    waited_ns: Vec<i64>,
    pool_wait_ns: Vec<i64>,
    attempts: Vec<i16>,
    outcome: Vec<i8>,
    errors: Vec<(usize, String)>,
    offsets: Vec<i32>,
    observed: Vec<i64>,
}

impl LogBuffer {
    /// Room for `rows` rows that observe about `values_per_row` values each.
    pub fn with_capacity(rows: usize, values_per_row: usize) -> LogBuffer {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        LogBuffer {
            session: Vec::with_capacity(rows),
            step: Vec::with_capacity(rows),
            thread: Vec::with_capacity(rows),
            due_ns: Vec::with_capacity(rows),
            due_valid: BooleanBufferBuilder::new(0),
            has_due: false,
            start_ns: Vec::with_capacity(rows),
            end_ns: Vec::with_capacity(rows),
            waited_ns: Vec::with_capacity(rows),
            pool_wait_ns: Vec::with_capacity(rows),
            attempts: Vec::with_capacity(rows),
            outcome: Vec::with_capacity(rows),
            errors: Vec::new(),
            offsets,
            observed: Vec::with_capacity(rows * values_per_row),
        }
    }

    /// Adds a row with what it observed and, unless it is ok, why not.
    #[inline]
    pub fn push(&mut self, row: LogRow, observed: &[i64], error: Option<&str>) {
        if row.due_ns.is_some() != self.has_due || self.has_due {
            self.push_due(row.due_ns);
        }
        if let Some(error) = error {
            self.errors.push((self.session.len(), error.to_string()));
        }
        self.session.push(row.session as i64);
        self.step.push(row.step as i16);
        self.thread.push(row.thread as i32);
        self.start_ns.push(row.start_ns);
        self.end_ns.push(row.end_ns);
        self.waited_ns.push(row.waited_ns);
        self.pool_wait_ns.push(row.pool_wait_ns);
        self.attempts.push(row.attempts as i16);
        self.outcome.push(row.outcome as i8);
        self.observed.extend_from_slice(observed);
        self.offsets.push(self.observed.len() as i32);
    }

    /// Due times exist in the open loop only: nothing is kept for them until
    /// the first one comes.
    fn push_due(&mut self, due_ns: Option<i64>) {
        let rows = self.session.len();
        self.due_ns.resize(rows, 0);
        self.due_valid.append_n(rows - self.due_valid.len(), false);
        self.has_due = true;
        self.due_ns.push(due_ns.unwrap_or(0));
        self.due_valid.append(due_ns.is_some());
    }

    /// Rows since the last batch.
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// Values observed by the rows since the last batch.
    pub fn observed_len(&self) -> usize {
        self.observed.len()
    }

    /// The rows as a batch of the schema [`LOG`].
    pub fn into_batch(mut self) -> RecordBatch {
        let rows = self.session.len();
        let due: ArrayRef = if self.has_due {
            let nulls = NullBuffer::new(self.due_valid.finish());
            Arc::new(Int64Array::new(self.due_ns.into(), Some(nulls)))
        } else {
            arrow::array::new_null_array(&DataType::Int64, rows)
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let observed = Arc::new(Int64Array::from(self.observed));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.session)),
            Arc::new(Int16Array::from(self.step)),
            Arc::new(Int32Array::from(self.thread)),
            due,
            Arc::new(Int64Array::from(self.start_ns)),
            Arc::new(Int64Array::from(self.end_ns)),
            Arc::new(Int64Array::from(self.waited_ns)),
            Arc::new(Int64Array::from(self.pool_wait_ns)),
            Arc::new(Int16Array::from(self.attempts)),
            outcome_column(self.outcome),
            error_column(rows, &self.errors),
            Arc::new(ListArray::new(observed_item(), offsets, observed, None)),
        ];
        RecordBatch::try_new(LOG.clone(), columns).unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
    }
}

fn error_column(rows: usize, errors: &[(usize, String)]) -> ArrayRef {
    let mut names: Vec<&str> = Vec::new();
    let mut codes: HashMap<&str, i16> = HashMap::new();
    let mut keys: Vec<Option<i16>> = vec![None; rows];
    for (row, error) in errors {
        let code = *codes.entry(error).or_insert_with(|| {
            // Past the key type's range, further texts share the last entry.
            if names.len() == i16::MAX as usize {
                return i16::MAX - 1;
            }
            names.push(error);
            names.len() as i16 - 1
        });
        keys[*row] = Some(code);
    }
    Arc::new(DictionaryArray::<Int16Type>::new(Int16Array::from(keys), Arc::new(StringArray::from(names))))
}

/// Appends batches to a log file. Each batch is with the operating system when
/// [`LogWriter::write`] returns.
pub struct LogWriter {
    path: PathBuf,
    stream: StreamWriter<BufWriter<File>>,
}

impl LogWriter {
    /// Creates the file, which must not exist.
    pub fn create(path: &Path, header: &LogHeader) -> Result<LogWriter, TableError> {
        let file = File::create_new(path).map_err(|e| TableError::new(path, e))?;
        let text = serde_json::to_string(header).map_err(|e| TableError::new(path, e))?;
        let schema = Schema::new_with_metadata(log_fields(), HashMap::from([("encore".to_string(), text)]));
        let mut stream = StreamWriter::try_new(BufWriter::with_capacity(1 << 20, file), &schema)
            .map_err(|e| TableError::new(path, e))?;
        stream.flush().map_err(|e| TableError::new(path, e))?;
        Ok(LogWriter { path: path.to_path_buf(), stream })
    }

    /// Writes one batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        // The stream's schema carries the header, the batch's does not; columns are the same.
        self.stream.write(batch).and_then(|()| self.stream.flush()).map_err(|e| TableError::new(&self.path, e))
    }

    /// Writes the closing mark, by which a reader knows that nothing is missing.
    pub fn close(mut self) -> Result<(), TableError> {
        self.stream.finish().map_err(|e| TableError::new(&self.path, e))?;
        self.stream.flush().map_err(|e| TableError::new(&self.path, e))
    }
}

/// How a log file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// With its closing mark: complete.
    Closed,
    /// Without: the replayer was killed. Whole batches are readable.
    Torn {
        /// Bytes at the end that are not a whole batch.
        trailing_bytes: u64,
    },
}

/// Reads a log file batch by batch, up to the last whole batch.
pub struct LogReader {
    path: PathBuf,
    header: LogHeader,
    end: LogEnd,
    stream: StreamReader<BufReader<io::Take<File>>>,
}

impl LogReader {
    /// Opens a log and walks its frames to find where the last whole batch ends.
    ///
    /// A file that is no log, or has a damaged frame before its end, is an error.
    pub fn open(path: &Path) -> Result<LogReader, TableError> {
        let wrong = |e: &dyn std::fmt::Display| TableError::new(path, e);
        let mut file = File::open(path).map_err(|e| wrong(&e))?;
        let (whole_bytes, end) = walk_frames(&mut file, path)?;
        file.seek(SeekFrom::Start(0)).map_err(|e| wrong(&e))?;
        if whole_bytes == 0 {
            return Err(wrong(
                &"holds not even a whole schema: the replayer died as it started; there is nothing to analyze",
            ));
        }
        let bytes = BufReader::with_capacity(1 << 20, file.take(whole_bytes));
        let stream = guarded(|| StreamReader::try_new(bytes, None))
            .map_err(|e| wrong(&format!("is not an operation log: {e}")))?;
        let schema = stream.schema();
        let text =
            schema.metadata().get("encore").ok_or_else(|| wrong(&"is an Arrow stream, but not an operation log"))?;
        let header: serde_json::Value = serde_json::from_str(text).map_err(|e| wrong(&e))?;
        let found = header["format_version"].as_u64().unwrap_or(0);
        if found != crate::RUN_FORMAT_VERSION as u64 {
            return Err(wrong(&format!(
                "log format version {found}, this Encore reads version {}",
                crate::RUN_FORMAT_VERSION
            )));
        }
        let header = serde_json::from_value(header).map_err(|e| wrong(&e))?;
        if schema.fields() != LOG.fields() {
            return Err(wrong(&"columns differ from the log format's"));
        }
        Ok(LogReader { path: path.to_path_buf(), header, end, stream })
    }

    /// What the log belongs to.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Whether the log is complete.
    pub fn end(&self) -> LogEnd {
        self.end
    }
}

impl Iterator for LogReader {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| self.stream.next().transpose());
        batch.map_err(|e| TableError::new(&self.path, format!("is damaged: {e}"))).transpose()
    }
}

/// Arrow's reader trusts the numbers in a message's header and panics when they
/// contradict each other. Most such files end in [`check_layout`]; for the rest a
/// panic is an error like any other.
fn guarded<X>(read: impl FnOnce() -> Result<X, ArrowError>) -> Result<X, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("a message contradicts itself".to_string()),
    }
}

/// Bytes of a value in each of the columns before `observed`.
const WIDTHS: [i64; 11] = [8, 2, 4, 8, 8, 8, 8, 8, 2, 1, 2];

/// Checks that the parts of a batch lie within its body and are as long as its
/// rows need.
fn check_layout(message: &Message<'_>) -> Result<(), String> {
    let body_bytes = message.bodyLength();
    let (batch, is_dictionary) = match (message.header_as_record_batch(), message.header_as_dictionary_batch()) {
        (Some(batch), _) => (batch, false),
        (_, Some(dictionary)) => (dictionary.data().ok_or("a dictionary without values")?, true),
        _ => return Ok(()),
    };
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err("a batch without columns".into());
    };
    if batch.compression().is_some() {
        return Err("a compressed batch, which this format does not have".into());
    }
    let rows = batch.length();
    let mut needs = Vec::new();
    if is_dictionary {
        needs.push((0, rows, 4 * (rows + 1)));
    } else {
        needs.extend(WIDTHS.iter().enumerate().map(|(i, width)| (i, rows, width.saturating_mul(rows))));
        needs.push((11, rows, 4 * (rows + 1)));
        let values = nodes.iter().nth(12).map_or(-1, |node| node.length());
        needs.push((12, values, values.saturating_mul(8)));
    }
    let expected_buffers = if is_dictionary { 3 } else { 2 * needs.len() };
    if !(0..=i32::MAX as i64).contains(&rows) || nodes.len() != needs.len() || buffers.len() != expected_buffers {
        return Err("a batch whose columns are not the format's".into());
    }
    for buffer in buffers.iter() {
        let end = buffer.offset().checked_add(buffer.length());
        if buffer.offset() < 0 || buffer.length() < 0 || end.is_none_or(|end| end > body_bytes) {
            return Err("a column that lies outside of its batch".into());
        }
    }
    for (column, length, bytes) in needs {
        let (node, valid, data) = (nodes.get(column), buffers.get(2 * column), buffers.get(2 * column + 1));
        let no_bits = node.null_count() > 0 && valid.length() < (length + 7) / 8;
        let is_short = length > 0 && data.length() < bytes;
        if node.length() != length || length < 0 || !(0..=length).contains(&node.null_count()) || no_bits || is_short {
            return Err(format!("column {column} is shorter than its {length} rows"));
        }
    }
    Ok(())
}

/// Walks the messages of an IPC stream; the bytes up to the last whole message
/// and how the stream ends.
fn walk_frames(file: &mut File, path: &Path) -> Result<(u64, LogEnd), TableError> {
    let wrong = |at: u64, e: &dyn std::fmt::Display| {
        TableError::new(path, format!("byte {at}: {e}; the file is damaged or is not an operation log"))
    };
    let size = file.metadata().map_err(|e| wrong(0, &e))?.len();
    let mut at = 0;
    let mut metadata = Vec::new();
    loop {
        let torn = LogEnd::Torn { trailing_bytes: size - at };
        if size - at < 8 {
            return Ok((at, torn));
        }
        let mut prefix = [0; 8];
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut prefix)).map_err(|e| wrong(at, &e))?;
        let [a, b, c, d, e, f, g, h] = prefix;
        if u32::from_le_bytes([a, b, c, d]) != u32::MAX {
            return Err(wrong(at, &"no Arrow message starts here"));
        }
        let metadata_bytes = u32::from_le_bytes([e, f, g, h]) as u64;
        if metadata_bytes == 0 {
            let after = size - at - 8;
            return if after == 0 {
                Ok((size, LogEnd::Closed))
            } else {
                Err(wrong(at + 8, &format!("{after} bytes follow the closing mark")))
            };
        }
        if metadata_bytes > size - at - 8 {
            return Ok((at, torn));
        }
        metadata.resize(metadata_bytes as usize, 0);
        file.read_exact(&mut metadata).map_err(|e| wrong(at, &e))?;
        let message = arrow::ipc::root_as_message(&metadata).map_err(|e| wrong(at, &e))?;
        let body_bytes = u64::try_from(message.bodyLength()).map_err(|e| wrong(at, &e))?;
        check_layout(&message).map_err(|e| wrong(at, &e))?;
        let Some(next) = at.checked_add(8 + metadata_bytes).and_then(|n| n.checked_add(body_bytes)) else {
            return Err(wrong(at, &"a message longer than any file"));
        };
        if next > size {
            return Ok((at, torn));
        }
        at = next;
    }
}

/// The columns of one batch of a log, as slices.
pub struct LogColumns<'a> {
    /// `session`.
    pub session: &'a [i64],
    /// `step`.
    pub step: &'a [i16],
    /// `thread`.
    pub thread: &'a [i32],
    /// `due_ns`, which has nulls.
    pub due_ns: &'a Int64Array,
    /// `start_ns`.
    pub start_ns: &'a [i64],
    /// `end_ns`.
    pub end_ns: &'a [i64],
    /// `waited_ns`.
    pub waited_ns: &'a [i64],
    /// `pool_wait_ns`.
    pub pool_wait_ns: &'a [i64],
    /// `attempts`.
    pub attempts: &'a [i16],
    outcome: &'a Int8Array,
    outcomes: Vec<Outcome>,
    error: &'a DictionaryArray<Int16Type>,
    errors: &'a StringArray,
    offsets: &'a [i32],
    values: &'a [i64],
}

impl<'a> LogColumns<'a> {
    /// The columns of a batch that came from the log at `path`.
    pub fn of(batch: &'a RecordBatch, path: &Path) -> Result<LogColumns<'a>, TableError> {
        let outcome = column::<DictionaryArray<Int8Type>>(batch, "outcome", path)?;
        let names = outcome.values().as_any().downcast_ref::<StringArray>();
        let outcomes: Option<Vec<Outcome>> = names
            .and_then(|names| names.iter().map(|n| Outcome::ALL.into_iter().find(|o| Some(o.name()) == n)).collect());
        let error = column::<DictionaryArray<Int16Type>>(batch, "error", path)?;
        let observed = column::<ListArray>(batch, "observed", path)?;
        let values = observed.values().as_any().downcast_ref::<Int64Array>();
        let wrong = || TableError::new(path, "column outcome, error or observed does not hold what the format says");
        Ok(LogColumns {
            session: column::<Int64Array>(batch, "session", path)?.values(),
            step: column::<Int16Array>(batch, "step", path)?.values(),
            thread: column::<Int32Array>(batch, "thread", path)?.values(),
            due_ns: column::<Int64Array>(batch, "due_ns", path)?,
            start_ns: column::<Int64Array>(batch, "start_ns", path)?.values(),
            end_ns: column::<Int64Array>(batch, "end_ns", path)?.values(),
            waited_ns: column::<Int64Array>(batch, "waited_ns", path)?.values(),
            pool_wait_ns: column::<Int64Array>(batch, "pool_wait_ns", path)?.values(),
            attempts: column::<Int16Array>(batch, "attempts", path)?.values(),
            outcome: outcome.keys(),
            outcomes: outcomes.ok_or_else(wrong)?,
            error,
            errors: error.values().as_any().downcast_ref::<StringArray>().ok_or_else(wrong)?,
            offsets: observed.value_offsets(),
            values: values.ok_or_else(wrong)?.values(),
        })
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// A row without what it observed.
    pub fn row(&self, row: usize) -> LogRow {
        LogRow {
            session: self.session[row] as u64,
            step: self.step[row] as u16,
            thread: self.thread[row] as u32,
            due_ns: self.due_ns.is_valid(row).then(|| self.due_ns.value(row)),
            start_ns: self.start_ns[row],
            end_ns: self.end_ns[row],
            waited_ns: self.waited_ns[row],
            pool_wait_ns: self.pool_wait_ns[row],
            attempts: self.attempts[row] as u16,
            outcome: self.outcomes[self.outcome.value(row) as usize],
        }
    }

    /// What a row observed.
    pub fn observed(&self, row: usize) -> &'a [i64] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Why a row is not ok.
    pub fn error(&self, row: usize) -> Option<&'a str> {
        self.error.key(row).map(|key| self.errors.value(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> LogHeader {
        LogHeader {
            format_version: crate::RUN_FORMAT_VERSION,
            experiment: 1,
            fragment: 0,
            workload_id: "w".into(),
            first_session: 0,
            threads: 1,
            unwritten_rows_max: 10,
            started_unix_ns: 0,
        }
    }

    fn row(session: u64, outcome: Outcome) -> LogRow {
        LogRow {
            session,
            step: 0,
            thread: 3,
            due_ns: (session % 2 == 1).then_some(7),
            start_ns: 10,
            end_ns: 20,
            waited_ns: 1,
            pool_wait_ns: 2,
            attempts: 1,
            outcome,
        }
    }

    /// Three batches of ten rows; gives the file and its size after each.
    fn write(dir: &Path, close: bool) -> (PathBuf, Vec<u64>) {
        let path = dir.join("log.arrows");
        let mut writer = LogWriter::create(&path, &header()).unwrap();
        let mut sizes = vec![];
        for batch in 0..3 {
            let mut buffer = LogBuffer::with_capacity(10, 2);
            for i in 0..10 {
                let outcome = Outcome::ALL[i as usize % 4];
                let error = format!("error {batch}");
                buffer.push(
                    row(batch * 10 + i, outcome),
                    &[i as i64; 3][..i as usize % 4],
                    (i % 4 > 0).then_some(&error),
                );
            }
            writer.write(&buffer.into_batch()).unwrap();
            sizes.push(std::fs::metadata(&path).unwrap().len());
        }
        if close {
            writer.close().unwrap();
        }
        (path, sizes)
    }

    fn read(path: &Path) -> Result<(usize, LogEnd), TableError> {
        let reader = LogReader::open(path)?;
        let end = reader.end();
        let mut rows = 0;
        for batch in reader {
            let batch = batch?;
            let columns = LogColumns::of(&batch, path)?;
            for i in 0..columns.len() {
                let session = columns.session[i] as u64;
                assert_eq!(columns.row(i), row(session, Outcome::ALL[session as usize % 10 % 4]));
                assert_eq!(columns.observed(i).len(), session as usize % 10 % 4);
                let error = format!("error {}", session / 10);
                assert_eq!(columns.error(i), (!(session % 10).is_multiple_of(4)).then_some(error.as_str()));
            }
            rows += columns.len();
        }
        Ok((rows, end))
    }

    #[test]
    fn a_closed_log_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = write(dir.path(), true);
        assert_eq!(read(&path).unwrap(), (30, LogEnd::Closed));
    }

    /// A killed replayer leaves a file cut anywhere: every whole batch is read.
    #[test]
    fn a_log_cut_anywhere_keeps_its_whole_batches() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sizes) = write(dir.path(), true);
        let bytes = std::fs::read(&path).unwrap();
        for cut in (0..bytes.len()).step_by(7) {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let expect = sizes.iter().filter(|s| **s <= cut as u64).count() * 10;
            match read(&path) {
                Ok((rows, LogEnd::Torn { .. })) => assert_eq!(rows, expect, "cut at {cut}"),
                Ok((_, LogEnd::Closed)) => panic!("cut at {cut} taken for closed"),
                Err(e) => {
                    assert!(expect == 0 && e.to_string().contains("not even a whole schema"), "cut at {cut}: {e}")
                }
            }
        }
    }

    #[test]
    fn garbage_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sizes) = write(dir.path(), true);
        let bytes = std::fs::read(&path).unwrap();
        let check = |content: Vec<u8>, expect: &str| {
            std::fs::write(&path, content).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("log.arrows") && error.contains(expect), "{error}");
        };
        check(b"this is no log, but it is long enough".to_vec(), "byte 0");
        check([bytes.as_slice(), b"x"].concat(), "follow the closing mark");
        let mut middle = bytes.clone();
        middle[sizes[0] as usize] = 1;
        check(middle, &format!("byte {}", sizes[0]));
    }

    proptest::proptest! {
        /// Whatever the bytes of a file, reading it ends in rows or an error.
        #[test]
        fn damaged_logs_never_panic(
            changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0u8..=255), 1..6),
            cut in proptest::option::of(proptest::prelude::any::<proptest::sample::Index>()),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (path, _) = write(dir.path(), true);
            let mut bytes = std::fs::read(&path).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            std::fs::write(&path, bytes).unwrap();
            let Ok(reader) = LogReader::open(&path) else { return Ok(()) };
            for batch in reader {
                let Ok(batch) = batch else { break };
                let Ok(columns) = LogColumns::of(&batch, &path) else { break };
                for row in 0..columns.len() {
                    (columns.row(row), columns.observed(row), columns.error(row));
                }
            }
        }
    }
}
