//! Writes the operation log: rows to batches, batches to a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBufferBuilder, DictionaryArray, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Int16Type, Schema};
use arrow::ipc::writer::StreamWriter;

use super::{LOG, LogHeader, LogRow, log_fields, observed_item, outcome_column};
use crate::trace::TableError;

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
