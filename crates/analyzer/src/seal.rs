//! Writes the sealed tables of a fragment as Parquet, under temporary names until
//! the whole experiment has been analyzed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Int8Type, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use schemas::files;
use schemas::oplog::{observed_item, outcome_column};
use schemas::sealed::{OPERATIONS, UNPREDICTABLE};
use schemas::trace::{TableError, action_column};
use tempfile::NamedTempFile;

use crate::figures::response_ns;
use crate::join::Row;
use crate::validate::Violation;

const ROW_GROUP_ROWS: usize = 256 * 1024;
const BATCH_ROWS: usize = 16 * 1024;
/// Long lists must not make a batch huge.
const BATCH_VALUES: usize = 32 * BATCH_ROWS;

/// The beginning of temporary names.
const PREFIX: &str = ".sealing-";

/// A Parquet file on its way, under a temporary name.
struct Table {
    path: PathBuf,
    writer: ArrowWriter<NamedTempFile>,
}

impl Table {
    fn create(path: PathBuf, schema: SchemaRef) -> Result<Table, TableError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        files::sweep(folder, PREFIX);
        let file = std::fs::create_dir_all(folder)
            .and_then(|()| tempfile::Builder::new().prefix(PREFIX).suffix(".tmp").tempfile_in(folder))
            .map_err(|e| TableError::new(&path, e))?;
        // A file system without locks does no harm, as long as one analysis of the run is made at a time.
        let _ = file.as_file().try_lock();
        let writer = ArrowWriter::try_new(file, schema, Some(properties())).map_err(|e| TableError::new(&path, e))?;
        Ok(Table { path, writer })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(batch).map_err(|e| TableError::new(&self.path, e))
    }

    /// Writes the rest; the file keeps its temporary name.
    fn close(self) -> Result<ClosedTable, TableError> {
        let Table { path, writer } = self;
        let file = writer.into_inner().map_err(|e| TableError::new(&path, e))?;
        Ok(ClosedTable { path, file })
    }
}

/// A complete Parquet file that has not got its name yet; gone when dropped.
struct ClosedTable {
    path: PathBuf,
    file: NamedTempFile,
}

impl ClosedTable {
    fn place(self) -> Result<(), TableError> {
        let ClosedTable { path, file } = self;
        let wrong = |e: &dyn std::fmt::Display| TableError::new(&path, e);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o644);
            file.as_file().set_permissions(mode).map_err(|e| wrong(&e))?;
        }
        file.persist(&path).map_err(|e| wrong(&e))?;
        Ok(())
    }
}

/// The sealed tables of a fragment, complete but without their names.
pub(crate) struct Sealed {
    operations: ClosedTable,
    unpredictable: ClosedTable,
}

impl Sealed {
    /// Gives both files their names, in place of earlier ones.
    pub(crate) fn place(self) -> Result<(), TableError> {
        self.operations.place()?;
        self.unpredictable.place()
    }
}

/// The numbers of a row, all written as bit-packed differences.
const NUMBERS: [&str; 13] = [
    "session",
    "step",
    "socialite",
    "target",
    "thread",
    "start_ns",
    "end_ns",
    "response_ns",
    "waited_ns",
    "pool_wait_ns",
    "attempts",
    "due_ns",
    "after",
];

/// Dictionaries pay for the few names alone. Bit-packed differences are about as
/// small as numbers get, so that compressing them costs more time than it saves space.
fn properties() -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_write_batch_size(8 * 1024)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for name in ["kind", "action", "outcome", "error", "item"] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    let observed = ["observed", "list", "item"].map(String::from).to_vec();
    for path in NUMBERS.map(ColumnPath::from).into_iter().chain([ColumnPath::new(observed)]) {
        properties = properties
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(path, Compression::UNCOMPRESSED);
    }
    // By these alone the rows lie so that a query can leave out row groups.
    for name in ["session", "start_ns", "end_ns"] {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Chunk);
    }
    properties.build()
}

struct OperationColumns {
    session: Vec<i64>,
    step: Vec<i16>,
    kind: Vec<i8>,
    action: Vec<i8>,
    socialite: Vec<i64>,
    target: Vec<i64>,
    comment: Optional,
    after: Optional,
    thread: Vec<i32>,
    due_ns: Optional,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    response_ns: Vec<i64>,
    waited_ns: Vec<i64>,
    pool_wait_ns: Vec<i64>,
    attempts: Vec<i16>,
    outcome: Vec<i8>,
    /// The few rows that have an error, with the row.
    errors: Vec<(usize, String)>,
    offsets: Vec<i32>,
    observed: Vec<i64>,
    unpredictable: Vec<bool>,
    warmup: Vec<bool>,
    drained: Vec<bool>,
}

/// A column of numbers that may be null, with a plain loop to fill it.
struct Optional {
    values: Vec<i64>,
    valid: Vec<bool>,
}

impl Optional {
    fn push(&mut self, value: Option<i64>) {
        self.values.push(value.unwrap_or(0));
        self.valid.push(value.is_some());
    }

    fn finish(self) -> ArrayRef {
        if !self.valid.contains(&true) {
            return new_null_array(&DataType::Int64, self.values.len());
        }
        Arc::new(Int64Array::new(self.values.into(), Some(NullBuffer::from(self.valid))))
    }
}

fn error_column(rows: usize, errors: &[(usize, String)]) -> ArrayRef {
    if errors.is_empty() {
        return new_null_array(&DataType::Utf8, rows);
    }
    let mut texts: Vec<Option<&str>> = vec![None; rows];
    for (row, error) in errors {
        texts[*row] = Some(error);
    }
    Arc::new(StringArray::from(texts))
}

impl OperationColumns {
    /// Room for a batch, so that filling it moves nothing.
    fn with_room(observed: usize) -> OperationColumns {
        let numbers = || Vec::with_capacity(BATCH_ROWS);
        let optional = || Optional { values: Vec::with_capacity(BATCH_ROWS), valid: Vec::with_capacity(BATCH_ROWS) };
        OperationColumns {
            session: numbers(),
            step: Vec::with_capacity(BATCH_ROWS),
            kind: Vec::with_capacity(BATCH_ROWS),
            action: Vec::with_capacity(BATCH_ROWS),
            socialite: numbers(),
            target: numbers(),
            comment: optional(),
            after: optional(),
            thread: Vec::with_capacity(BATCH_ROWS),
            due_ns: optional(),
            start_ns: numbers(),
            end_ns: numbers(),
            response_ns: numbers(),
            waited_ns: numbers(),
            pool_wait_ns: numbers(),
            attempts: Vec::with_capacity(BATCH_ROWS),
            outcome: Vec::with_capacity(BATCH_ROWS),
            errors: Vec::new(),
            offsets: Vec::with_capacity(BATCH_ROWS),
            observed: Vec::with_capacity(observed + observed / 8),
            unpredictable: Vec::with_capacity(BATCH_ROWS),
            warmup: Vec::with_capacity(BATCH_ROWS),
            drained: Vec::with_capacity(BATCH_ROWS),
        }
    }

    fn push(&mut self, row: &Row, observed: &[i64], error: Option<&str>, unpredictable: bool) {
        self.session.push(row.log.session as i64);
        self.step.push(row.log.step as i16);
        self.kind.push(row.kind as i8);
        self.action.push(row.operation.action as i8);
        self.socialite.push(row.operation.socialite as i64);
        self.target.push(row.operation.target as i64);
        self.comment.push(row.operation.comment.map(|c| c as i64));
        self.after.push(row.after.map(|a| a as i64));
        self.thread.push(row.log.thread as i32);
        self.due_ns.push(row.log.due_ns);
        self.start_ns.push(row.log.start_ns);
        self.end_ns.push(row.log.end_ns);
        self.response_ns.push(response_ns(row));
        self.waited_ns.push(row.log.waited_ns);
        self.pool_wait_ns.push(row.log.pool_wait_ns);
        self.attempts.push(row.log.attempts as i16);
        self.outcome.push(row.log.outcome as i8);
        if let Some(error) = error {
            self.errors.push((self.session.len() - 1, error.to_string()));
        }
        self.observed.extend_from_slice(observed);
        self.offsets.push(self.observed.len() as i32);
        self.unpredictable.push(unpredictable);
        self.warmup.push(row.warmup);
        self.drained.push(row.drained);
    }

    fn take_batch(&mut self, kinds: &[String]) -> RecordBatch {
        let rows = std::mem::replace(self, OperationColumns::with_room(self.observed.len()));
        let row_count = rows.session.len();
        let lengths = std::iter::once(0).chain(rows.offsets).collect::<Vec<i32>>();
        let observed = Arc::new(Int64Array::from(rows.observed));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(rows.session)),
            Arc::new(Int16Array::from(rows.step)),
            Arc::new(DictionaryArray::<Int8Type>::new(
                rows.kind.into(),
                Arc::new(StringArray::from_iter_values(kinds)),
            )),
            action_column(rows.action),
            Arc::new(Int64Array::from(rows.socialite)),
            Arc::new(Int64Array::from(rows.target)),
            rows.comment.finish(),
            rows.after.finish(),
            Arc::new(Int32Array::from(rows.thread)),
            rows.due_ns.finish(),
            Arc::new(Int64Array::from(rows.start_ns)),
            Arc::new(Int64Array::from(rows.end_ns)),
            Arc::new(Int64Array::from(rows.response_ns)),
            Arc::new(Int64Array::from(rows.waited_ns)),
            Arc::new(Int64Array::from(rows.pool_wait_ns)),
            Arc::new(Int16Array::from(rows.attempts)),
            outcome_column(rows.outcome),
            error_column(row_count, &rows.errors),
            Arc::new(ListArray::new(observed_item(), OffsetBuffer::new(lengths.into()), observed, None)),
            Arc::new(BooleanArray::from(rows.unpredictable)),
            Arc::new(BooleanArray::from(rows.warmup)),
            Arc::new(BooleanArray::from(rows.drained)),
        ];
        RecordBatch::try_new(OPERATIONS.clone(), columns)
            .unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
    }
}

/// Writes the two sealed tables of a fragment.
pub(crate) struct Sealer {
    operations: Table,
    unpredictable: Table,
    rows: OperationColumns,
    violations: Vec<(Row, Violation)>,
}

impl Sealer {
    pub(crate) fn create(operations: PathBuf, unpredictable: PathBuf) -> Result<Sealer, TableError> {
        Ok(Sealer {
            operations: Table::create(operations, OPERATIONS.clone())?,
            unpredictable: Table::create(unpredictable, UNPREDICTABLE.clone())?,
            rows: OperationColumns::with_room(0),
            violations: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, row: &Row, observed: &[i64], error: Option<&str>, violations: &[Violation]) {
        self.rows.push(row, observed, error, !violations.is_empty());
        self.violations.extend(violations.iter().map(|v| (*row, *v)));
    }

    /// Whether it is time to write.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.session.len() >= BATCH_ROWS
            || self.rows.observed.len() >= BATCH_VALUES
            || self.violations.len() >= BATCH_ROWS
    }

    /// Writes what has been pushed; `kinds` are the names that [`Row::kind`] is a place in.
    pub(crate) fn write(&mut self, kinds: &[String]) -> Result<(), TableError> {
        if !self.rows.session.is_empty() {
            self.operations.write(&self.rows.take_batch(kinds))?;
        }
        if !self.violations.is_empty() {
            self.write_violations()?;
        }
        Ok(())
    }

    fn write_violations(&mut self) -> Result<(), TableError> {
        let found = std::mem::take(&mut self.violations);
        let numbers = |of: fn(&Row, &Violation) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(row, violation)| of(row, violation))))
        };
        let columns: Vec<ArrayRef> = vec![
            numbers(|row, _| row.log.session as i64),
            Arc::new(Int16Array::from_iter_values(found.iter().map(|(row, _)| row.log.step as i16))),
            action_column(found.iter().map(|(row, _)| row.operation.action as i8).collect()),
            numbers(|row, _| row.log.start_ns),
            numbers(|row, _| row.log.end_ns),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(_, v)| v.item.name()))),
            numbers(|_, v| v.owner as i64),
            Arc::new(Int64Array::from_iter(found.iter().map(|(_, v)| v.element))),
            numbers(|_, v| v.observed),
            numbers(|_, v| v.low),
            numbers(|_, v| v.high),
            Arc::new(BooleanArray::from_iter(found.iter().map(|(row, _)| Some(row.warmup)))),
            Arc::new(BooleanArray::from_iter(found.iter().map(|(row, _)| Some(row.drained)))),
        ];
        let batch = RecordBatch::try_new(UNPREDICTABLE.clone(), columns)
            .unwrap_or_else(|e| unreachable!("every violation fills every column: {e}"));
        self.unpredictable.write(&batch)
    }

    /// Ends both tables; all has to be written before.
    pub(crate) fn close(self) -> Result<Sealed, TableError> {
        debug_assert!(self.rows.session.is_empty() && self.violations.is_empty());
        Ok(Sealed { operations: self.operations.close()?, unpredictable: self.unpredictable.close()? })
    }
}
