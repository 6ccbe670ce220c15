//! Writes the operation log: rows to batches, batches to a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Int16Type, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

use super::{LOG, LogHeader, LogRow, Outcome, log_fields, observed_item, outcome_column};
use crate::trace::TableError;

/// Rows of the log on their way to a batch. Pushing allocates nothing until
/// the capacity is exceeded.
pub struct LogBuffer {
    session: Vec<i64>,
    step: Mostly<i16>,
    thread: Vec<i32>,
    due_ns: Mostly<Option<i64>>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    waited_ns: Mostly<i64>,
    pool_wait_ns: Mostly<i64>,
    attempts: Mostly<i16>,
    outcome: Mostly<i8>,
    errors: Vec<(usize, String)>,
    offsets: Vec<i32>,
    observed: Vec<i64>,
}

/// A column in which one value is usual: nothing is kept until the first other
/// one comes, so that a row writes half of its columns only.
struct Mostly<T> {
    usual: T,
    values: Vec<T>,
}

impl<T: Copy + PartialEq> Mostly<T> {
    fn new(usual: T) -> Mostly<T> {
        Mostly { usual, values: Vec::new() }
    }

    /// Adds the value of a row that `rows` others are before.
    #[inline]
    fn push(&mut self, rows: usize, value: T) {
        if value != self.usual || !self.values.is_empty() {
            self.push_kept(rows, value);
        }
    }

    fn push_kept(&mut self, rows: usize, value: T) {
        self.values.resize(rows, self.usual);
        self.values.push(value);
    }

    fn into_values(mut self, rows: usize) -> Vec<T> {
        self.values.resize(rows, self.usual);
        self.values
    }
}

impl LogBuffer {
    /// Room for `rows` rows that observe about `values_per_row` values each.
    pub fn with_capacity(rows: usize, values_per_row: usize) -> LogBuffer {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        LogBuffer {
            session: Vec::with_capacity(rows),
            step: Mostly::new(0),
            thread: Vec::with_capacity(rows),
            due_ns: Mostly::new(None),
            start_ns: Vec::with_capacity(rows),
            end_ns: Vec::with_capacity(rows),
            waited_ns: Mostly::new(0),
            pool_wait_ns: Mostly::new(0),
            attempts: Mostly::new(1),
            outcome: Mostly::new(Outcome::Ok as i8),
            errors: Vec::new(),
            offsets,
            observed: Vec::with_capacity(rows * values_per_row),
        }
    }

    /// Adds a row with what it observed and, unless it is ok, why not.
    #[inline]
    pub fn push(&mut self, row: LogRow, observed: &[i64], error: Option<&str>) {
        let rows = self.session.len();
        if let Some(error) = error {
            self.errors.push((rows, error.to_string()));
        }
        self.session.push(row.session as i64);
        self.step.push(rows, row.step as i16);
        self.thread.push(row.thread as i32);
        self.due_ns.push(rows, row.due_ns);
        self.start_ns.push(row.start_ns);
        self.end_ns.push(row.end_ns);
        self.waited_ns.push(rows, row.waited_ns);
        self.pool_wait_ns.push(rows, row.pool_wait_ns);
        self.attempts.push(rows, row.attempts as i16);
        self.outcome.push(rows, row.outcome as i8);
        self.observed.extend_from_slice(observed);
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

    /// Values observed by the rows since the last batch.
    pub fn observed_len(&self) -> usize {
        self.observed.len()
    }

    /// The rows as a batch of the schema [`LOG`].
    pub fn into_batch(self) -> RecordBatch {
        let rows = self.session.len();
        let due: ArrayRef = match self.due_ns.values.is_empty() {
            true => arrow::array::new_null_array(&DataType::Int64, rows),
            false => Arc::new(Int64Array::from(self.due_ns.into_values(rows))),
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let observed = Arc::new(Int64Array::from(self.observed));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.session)),
            Arc::new(Int16Array::from(self.step.into_values(rows))),
            Arc::new(Int32Array::from(self.thread)),
            due,
            Arc::new(Int64Array::from(self.start_ns)),
            Arc::new(Int64Array::from(self.end_ns)),
            Arc::new(Int64Array::from(self.waited_ns.into_values(rows))),
            Arc::new(Int64Array::from(self.pool_wait_ns.into_values(rows))),
            Arc::new(Int16Array::from(self.attempts.into_values(rows))),
            outcome_column(self.outcome.into_values(rows)),
            error_column(rows, &self.errors),
            Arc::new(ListArray::new(observed_item(), offsets, observed, None)),
        ];
        RecordBatch::try_new(LOG.clone(), columns).unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
    }
}

fn error_column(rows: usize, errors: &[(usize, String)]) -> ArrayRef {
    if errors.is_empty() {
        let none = Int16Array::new_null(rows);
        return Arc::new(DictionaryArray::<Int16Type>::new(none, Arc::new(StringArray::from(Vec::<&str>::new()))));
    }
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

/// How a log's batches are written; a reader finds out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogCompression {
    /// As they are: the least work.
    #[default]
    None,
    /// With LZ4.
    Lz4,
    /// With zstd: the smallest.
    Zstd,
}

/// Appends batches to a log file. Each batch is with the operating system when
/// [`LogWriter::write`] returns.
pub struct LogWriter {
    path: PathBuf,
    stream: StreamWriter<BufWriter<File>>,
}

impl LogWriter {
    /// Creates the file, which must not exist.
    pub fn create(path: &Path, header: &LogHeader, compression: LogCompression) -> Result<LogWriter, TableError> {
        let file = File::create_new(path).map_err(|e| TableError::writing(path, e))?;
        let text = serde_json::to_string(header).map_err(|e| TableError::writing(path, e))?;
        let schema = Schema::new_with_metadata(log_fields(), HashMap::from([("encore".to_string(), text)]));
        // For the small pieces of a message; its body, one large piece, passes by.
        let compression = match compression {
            LogCompression::None => None,
            LogCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
            LogCompression::Zstd => Some(CompressionType::ZSTD),
        };
        let mut stream = IpcWriteOptions::default()
            .try_with_compression(compression)
            .and_then(|options| StreamWriter::try_new_with_options(BufWriter::new(file), &schema, options))
            .map_err(|e| TableError::writing(path, e))?;
        stream.flush().map_err(|e| TableError::writing(path, e))?;
        Ok(LogWriter { path: path.to_path_buf(), stream })
    }

    /// Writes one batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        // The stream's schema carries the header, the batch's does not; columns are the same.
        self.stream.write(batch).and_then(|()| self.stream.flush()).map_err(|e| TableError::writing(&self.path, e))
    }

    /// Writes the closing mark, by which a reader knows that nothing is missing.
    pub fn close(mut self) -> Result<(), TableError> {
        self.stream.finish().map_err(|e| TableError::writing(&self.path, e))?;
        self.stream.flush().map_err(|e| TableError::writing(&self.path, e))
    }
}
