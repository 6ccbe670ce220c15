//! Writes the sealed tables of a fragment as Parquet. They have temporary names until the whole
//! experiment has been analyzed.

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
use schemas::oplog::{Outcome, TryEnd, observed_item, outcome_column};
use schemas::sealed::{UNPREDICTABLE, operations_schema};
use schemas::table::TableError;
use schemas::trace::{ACTOR, OPERATION, name_type, operation_column};
use schemas::verdict::{Checksum, SealedFragment};
use schemas::vocabulary::{Columns, Operation, Vocabulary};
use tempfile::NamedTempFile;

use crate::join::{Row, response_ns};
use crate::validate::Violation;

const ROW_GROUP_ROWS: usize = 256 * 1024;
const BATCH_ROWS: usize = 16 * 1024;
/// Keeps a batch with long lists from becoming huge.
const BATCH_VALUES: usize = 32 * BATCH_ROWS;

/// The prefix of temporary names.
const PREFIX: &str = ".sealing-";

/// A Parquet file that is being written, under a temporary name.
pub(crate) struct Table {
    path: PathBuf,
    writer: ArrowWriter<NamedTempFile>,
}

impl Table {
    pub(crate) fn create<V: Vocabulary>(path: PathBuf, schema: SchemaRef) -> Result<Table, TableError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        files::sweep(folder, PREFIX);
        let file = std::fs::create_dir_all(folder)
            .and_then(|()| tempfile::Builder::new().prefix(PREFIX).suffix(".tmp").tempfile_in(folder))
            .map_err(|e| TableError::refused(&path, e))?;
        // A file system without locks does no harm, as long as one analysis of the run is made at a time.
        let _ = file.as_file().try_lock();
        let writer =
            ArrowWriter::try_new(file, schema, Some(properties::<V>())).map_err(|e| TableError::refused(&path, e))?;
        Ok(Table { path, writer })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(batch).map_err(|e| TableError::refused(&self.path, e))
    }

    /// Writes the rest; the file keeps its temporary name.
    pub(crate) fn close(self) -> Result<ClosedTable, TableError> {
        let Table { path, writer } = self;
        let file = writer.into_inner().map_err(|e| TableError::refused(&path, e))?;
        let checksum = Checksum::of(file.path()).map_err(|e| TableError::refused(&path, e.source))?;
        Ok(ClosedTable { path, file, checksum })
    }
}

/// A complete Parquet file that still has its temporary name; it is removed when dropped.
pub(crate) struct ClosedTable {
    path: PathBuf,
    file: NamedTempFile,
    checksum: Checksum,
}

impl ClosedTable {
    fn place(self) -> Result<Checksum, TableError> {
        let ClosedTable { path, file, checksum } = self;
        let wrong = |e: &dyn std::fmt::Display| TableError::new(&path, e);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o644);
            file.as_file().set_permissions(mode).map_err(|e| wrong(&e))?;
        }
        file.persist(&path).map_err(|e| wrong(&e))?;
        Ok(checksum)
    }
}

/// The sealed tables of a fragment, complete but under temporary names.
pub(crate) struct Sealed {
    fragment: u32,
    operations: ClosedTable,
    unpredictable: ClosedTable,
    /// The table `closing_reads`, if the fragment had a closing read.
    pub(crate) closing_reads: Option<ClosedTable>,
}

impl Sealed {
    /// Renames the files to their final names, which replaces earlier ones. Returns their checksums.
    pub(crate) fn place(self) -> Result<SealedFragment, TableError> {
        let Sealed { fragment, operations, unpredictable, closing_reads } = self;
        let closing_reads = closing_reads.map(ClosedTable::place).transpose()?;
        let (operations, unpredictable) = (operations.place()?, unpredictable.place()?);
        Ok(SealedFragment { fragment, operations, unpredictable, closing_reads })
    }
}

/// The numbers of a row that every vocabulary has, all written as bit-packed differences.
const NUMBERS: [&str; 16] = [
    "session",
    "step",
    "txn",
    "try",
    ACTOR,
    "thread",
    "start_ns",
    "end_ns",
    "response_ns",
    "waited_ns",
    "pool_wait_ns",
    "attempts",
    "due_ns",
    "after",
    "snapshot_ns",
    "visible_ns",
];

/// Dictionaries save space only in columns of few names. Bit-packed differences are about as
/// small as numbers get, so compressing them costs more time than it saves space.
fn properties<V: Vocabulary>() -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_write_batch_size(8 * 1024)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for name in ["kind", OPERATION, "outcome", "error", "item", "counts_as", "try_end"] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    let observed = ["observed", "list", "item"].map(String::from).to_vec();
    let own = V::Columns::fields();
    let own = own.iter().filter(|field| field.data_type() == &DataType::Int64 && !field.is_nullable());
    let own = own.map(|field| ColumnPath::from(field.name().as_str()));
    for path in NUMBERS.map(ColumnPath::from).into_iter().chain(own).chain([ColumnPath::new(observed)]) {
        properties = properties
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(path, Compression::UNCOMPRESSED);
    }
    // The rows are nearly sorted by these columns alone, so only their statistics let a query
    // skip row groups.
    for name in ["session", "start_ns", "end_ns"] {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Chunk);
    }
    properties.build()
}

struct OperationColumns<V: Vocabulary> {
    session: Vec<i64>,
    step: Vec<i16>,
    txn: Vec<Option<i16>>,
    try_number: Vec<i16>,
    kind: Vec<i8>,
    operations: Vec<V::Operation>,
    actor: Vec<i64>,
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
    /// The errors of the few rows that have one, as (row, text).
    errors: Vec<(usize, String)>,
    offsets: Vec<i32>,
    observed: Vec<i64>,
    unpredictable: Vec<bool>,
    warmup: Vec<bool>,
    drained: Vec<bool>,
    /// Of the rows of transactions; empty if the vocabulary has none.
    of_tries: Vec<Option<SealedTry>>,
}

/// What the columns of transactions say of a row that is in one.
#[derive(Clone, Copy)]
struct SealedTry {
    /// What it counts as; None for begin, commit and abort.
    counts_as: Option<Outcome>,
    /// From when on the state may be that it read.
    snapshot_ns: i64,
    /// When what it wrote was visible.
    visible_ns: i64,
    /// How its try ended.
    end: TryEnd,
}

/// The columns of transactions, null in the rows that are in none.
fn try_columns(rows: &[Option<SealedTry>], count: usize) -> [ArrayRef; 4] {
    if rows.iter().all(Option::is_none) {
        let names = || new_null_array(&name_type(), count);
        let numbers = || new_null_array(&DataType::Int64, count);
        return [names(), numbers(), numbers(), names()];
    }
    let counts_as = rows.iter().map(|row| row.map(|of_try| of_try.counts_as.map_or(NOTHING, Outcome::name)));
    let ends = rows.iter().map(|row| row.map(|of_try| of_try.end.name()));
    [
        Arc::new(counts_as.collect::<DictionaryArray<Int8Type>>()),
        Arc::new(rows.iter().map(|row| row.map(|of_try| of_try.snapshot_ns)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.map(|of_try| of_try.visible_ns)).collect::<Int64Array>()),
        Arc::new(ends.collect::<DictionaryArray<Int8Type>>()),
    ]
}

/// What begin, commit and abort count as.
const NOTHING: &str = "nothing";

/// A column of numbers that may be null, filled by a plain loop.
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

impl<V: Vocabulary> OperationColumns<V> {
    /// Columns with room for a batch, so that filling them moves nothing.
    fn with_room(observed: usize) -> OperationColumns<V> {
        let numbers = || Vec::with_capacity(BATCH_ROWS);
        let optional = || Optional { values: Vec::with_capacity(BATCH_ROWS), valid: Vec::with_capacity(BATCH_ROWS) };
        OperationColumns {
            session: numbers(),
            step: Vec::with_capacity(BATCH_ROWS),
            txn: Vec::new(),
            try_number: Vec::new(),
            kind: Vec::with_capacity(BATCH_ROWS),
            operations: Vec::with_capacity(BATCH_ROWS),
            actor: numbers(),
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
            of_tries: Vec::new(),
        }
    }

    fn push(&mut self, row: &Row<V::Operation>, observed: &[i64], error: Option<&str>, unpredictable: bool) {
        self.session.push(row.log.session as i64);
        self.step.push(row.log.step as i16);
        if V::HAS_TRANSACTIONS {
            self.txn.push(row.txn.map(|step| step as i16));
            self.try_number.push(row.log.try_number as i16);
            self.of_tries.push(row.of_try.map(|of_try| SealedTry {
                counts_as: row.counts_as(),
                snapshot_ns: row.snapshot_ns(),
                visible_ns: row.visible_ns(),
                end: of_try.end,
            }));
        }
        self.kind.push(row.kind as i8);
        self.operations.push(row.operation);
        self.actor.push(row.actor as i64);
        self.after.push(row.after.map(|a| a as i64));
        self.thread.push(row.log.thread as i32);
        self.due_ns.push(row.log.due_ns);
        self.start_ns.push(row.log.start_ns);
        self.end_ns.push(row.log.end_ns);
        self.response_ns.push(response_ns(&row.log));
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
        // A vocabulary without transactions does not fill these.
        let txn: ArrayRef = match rows.txn.is_empty() {
            true => new_null_array(&DataType::Int16, row_count),
            false => Arc::new(Int16Array::from(rows.txn)),
        };
        let try_number = if rows.try_number.is_empty() { vec![0; row_count] } else { rows.try_number };
        let of_tries = try_columns(&rows.of_tries, row_count);
        let codes = rows.operations.iter().map(|operation| operation.code() as i8).collect();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(rows.session)),
            Arc::new(Int16Array::from(rows.step)),
            txn,
            Arc::new(Int16Array::from(try_number)),
            Arc::new(DictionaryArray::<Int8Type>::new(
                rows.kind.into(),
                Arc::new(StringArray::from_iter_values(kinds)),
            )),
            operation_column::<V>(codes),
            Arc::new(Int64Array::from(rows.actor)),
        ];
        columns.extend(V::Columns::arrays(&rows.operations));
        columns.extend([
            rows.after.finish(),
            Arc::new(Int32Array::from(rows.thread)) as ArrayRef,
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
        ]);
        columns.extend(of_tries);
        RecordBatch::try_new(operations_schema::<V>(), columns)
            .unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
    }
}

/// Writes the two sealed tables of a fragment.
pub(crate) struct Sealer<V: Vocabulary> {
    fragment: u32,
    operations: Table,
    unpredictable: Table,
    rows: OperationColumns<V>,
    violations: Vec<(Row<V::Operation>, Violation)>,
}

impl<V: Vocabulary> Sealer<V> {
    pub(crate) fn create(fragment: u32, operations: PathBuf, unpredictable: PathBuf) -> Result<Sealer<V>, TableError> {
        Ok(Sealer {
            fragment,
            operations: Table::create::<V>(operations, operations_schema::<V>())?,
            unpredictable: Table::create::<V>(unpredictable, UNPREDICTABLE.clone())?,
            rows: OperationColumns::with_room(0),
            violations: Vec::new(),
        })
    }

    pub(crate) fn push(
        &mut self,
        row: &Row<V::Operation>,
        observed: &[i64],
        error: Option<&str>,
        violations: &[Violation],
    ) {
        self.rows.push(row, observed, error, !violations.is_empty());
        self.violations.extend(violations.iter().map(|v| (*row, *v)));
    }

    /// Whether the rows must be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.session.len() >= BATCH_ROWS
            || self.rows.observed.len() >= BATCH_VALUES
            || self.violations.len() >= BATCH_ROWS
    }

    /// Writes the rows pushed so far. [`Row::kind`] is an index into `kinds`.
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
        let numbers = |of: fn(&Row<V::Operation>, &Violation) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(row, violation)| of(row, violation))))
        };
        let columns: Vec<ArrayRef> = vec![
            numbers(|row, _| row.log.session as i64),
            Arc::new(Int16Array::from_iter_values(found.iter().map(|(row, _)| row.log.step as i16))),
            operation_column::<V>(found.iter().map(|(row, _)| row.operation.code() as i8).collect()),
            numbers(|row, _| row.log.start_ns),
            numbers(|row, _| row.log.end_ns),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(_, v)| v.item))),
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

    /// Closes both tables; all rows must be written before.
    pub(crate) fn close(self) -> Result<Sealed, TableError> {
        debug_assert!(self.rows.session.is_empty() && self.violations.is_empty());
        let (operations, unpredictable) = (self.operations.close()?, self.unpredictable.close()?);
        Ok(Sealed { fragment: self.fragment, operations, unpredictable, closing_reads: None })
    }
}
