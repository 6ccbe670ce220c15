//! The operations of a trace set: `operations/fragment=N/part-NNNNN.parquet`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::social::{Action, Operation};

/// A table that cannot be read: the file, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, with the row where one is to blame.
    pub message: String,
    /// What the operating system said of it, where it is to blame.
    pub io: Option<std::io::ErrorKind>,
}

impl TableError {
    /// An error about a file.
    pub fn new(path: &Path, message: impl ToString) -> TableError {
        TableError { path: path.to_path_buf(), message: message.to_string(), io: None }
    }

    /// A file that cannot be written.
    pub fn writing(path: &Path, error: impl std::error::Error + 'static) -> TableError {
        let causes = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |cause| cause.source());
        let io = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last().map(std::io::Error::kind);
        TableError { io, ..TableError::new(path, error) }
    }
}

/// One operation of a trace: the envelope and what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow {
    /// The session, counted from 0 in its fragment.
    pub session: u64,
    /// The operation's place in its session, from 0.
    pub step: u16,
    /// The kind of the session, by its place in the names given to
    /// [`OperationsBuilder::new`], or in [`OperationsReader::kinds`].
    pub kind: u8,
    /// No-operations in the sense of BG that come before the session: kinds of
    /// sessions that were drawn and of which nothing could be done, for this
    /// socialite or for others that were drawn before her. Only in the first
    /// operation of a session, 0 in the others.
    pub noops: u32,
    /// What the thread waits before the operation, without holding up anybody
    /// else; for the first operation of a session that is the inter-arrival
    /// time, which the thread waits after the session, before it takes another.
    pub think_us: u32,
    /// When the session starts, from the experiment's start (open loop only).
    pub due_us: Option<u64>,
    /// The session (of the same fragment) whose write must be done before. When
    /// it is the operation's own session, an earlier step of it must have succeeded.
    pub after: Option<u64>,
    /// What is done.
    pub operation: Operation,
}

/// The Arrow type of columns with one of few names.
pub fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

/// The columns of the operations table.
pub static OPERATIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("action", name_type(), false),
        Field::new("socialite", DataType::Int64, false),
        Field::new("target", DataType::Int64, false),
        Field::new("comment", DataType::Int64, true),
        Field::new("after", DataType::Int64, true),
        Field::new("think_us", DataType::Int32, false),
        Field::new("due_us", DataType::Int64, true),
        Field::new("txn", DataType::Int32, true),
        Field::new("kind", name_type(), false),
        Field::new("noops", DataType::Int32, false),
    ]))
});

/// The dictionary of the `action` column: every name, in the order of the codes.
pub fn action_names() -> ArrayRef {
    Arc::new(StringArray::from_iter_values(Action::ALL.iter().map(|a| a.name())))
}

/// Action codes as an array of names.
pub fn action_column(codes: Vec<i8>) -> ArrayRef {
    Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), action_names()))
}

/// Builds record batches of the operations table.
pub struct OperationsBuilder {
    kinds: ArrayRef,
    rows: Columns,
}

#[derive(Default)]
struct Columns {
    session: Vec<i64>,
    step: Vec<i16>,
    action: Vec<i8>,
    socialite: Vec<i64>,
    target: Vec<i64>,
    comment: Vec<Option<i64>>,
    after: Vec<Option<i64>>,
    think_us: Vec<i32>,
    due_us: Vec<Option<i64>>,
    kind: Vec<i8>,
    noops: Vec<i32>,
}

impl OperationsBuilder {
    /// A builder for sessions of these kinds, in the order of [`crate::spec::Spec::kinds`].
    pub fn new<'a>(kinds: impl IntoIterator<Item = &'a str>) -> OperationsBuilder {
        OperationsBuilder { kinds: Arc::new(StringArray::from_iter_values(kinds)), rows: Columns::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &TraceRow) {
        self.rows.session.push(row.session as i64);
        self.rows.step.push(row.step as i16);
        self.rows.action.push(row.operation.action as i8);
        self.rows.socialite.push(row.operation.socialite as i64);
        self.rows.target.push(row.operation.target as i64);
        self.rows.comment.push(row.operation.comment.map(|c| c as i64));
        self.rows.after.push(row.after.map(|a| a as i64));
        self.rows.think_us.push(row.think_us as i32);
        self.rows.due_us.push(row.due_us.map(|d| d as i64));
        self.rows.kind.push(row.kind as i8);
        self.rows.noops.push(row.noops as i32);
    }

    /// How many rows have been added since the last batch.
    pub fn len(&self) -> usize {
        self.rows.session.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.session.is_empty()
    }

    /// The rows as a batch; the builder is empty afterwards.
    pub fn finish(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        let count = rows.session.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(rows.session)),
            Arc::new(Int16Array::from(rows.step)),
            action_column(rows.action),
            Arc::new(Int64Array::from(rows.socialite)),
            Arc::new(Int64Array::from(rows.target)),
            Arc::new(Int64Array::from(rows.comment)),
            Arc::new(Int64Array::from(rows.after)),
            Arc::new(Int32Array::from(rows.think_us)),
            Arc::new(Int64Array::from(rows.due_us)),
            arrow::array::new_null_array(&DataType::Int32, count),
            Arc::new(DictionaryArray::<Int8Type>::new(rows.kind.into(), self.kinds.clone())),
            Arc::new(Int32Array::from(rows.noops)),
        ];
        RecordBatch::try_new(OPERATIONS.clone(), columns)
            .unwrap_or_else(|e| unreachable!("the builder fills every column alike: {e}"))
    }
}

/// The columns of a batch, checked and downcast once.
pub(crate) fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    path: &Path,
) -> Result<&'a A, TableError> {
    let array = batch.column_by_name(name).ok_or_else(|| TableError::new(path, format!("column {name} is missing")))?;
    array.as_any().downcast_ref::<A>().ok_or_else(|| {
        TableError::new(path, format!("column {name} has type {}, which is not the format's", array.data_type()))
    })
}

/// The values of a column of numbers from 0 on.
fn unsigned<'a>(array: &'a Int64Array, name: &str, path: &Path) -> Result<&'a [i64], TableError> {
    // One pass without a branch for all of them; only a damaged file needs a second look.
    if array.values().iter().fold(0, |all, value| all | value) < 0
        && let Some(row) = (0..array.len()).find(|&row| array.is_valid(row) && array.value(row) < 0)
    {
        let value = array.value(row);
        return Err(TableError::new(path, format!("row {row}: {name} is {value}, below 0")));
    }
    Ok(array.values())
}

/// A column of numbers from 0 on, some or all of which may be missing.
struct Optional<'a> {
    /// Empty when all are missing.
    values: &'a [i64],
    nulls: Option<&'a NullBuffer>,
}

impl<'a> Optional<'a> {
    fn of(array: &'a Int64Array, name: &str, path: &Path) -> Result<Optional<'a>, TableError> {
        let values = if array.null_count() == array.len() { &[] } else { unsigned(array, name, path)? };
        Ok(Optional { values, nulls: array.nulls() })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<u64> {
        let value = *self.values.get(row)?;
        self.nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(value as u64)
    }
}

/// Appends the rows of a batch of the operations table to `rows`. `kinds` has the
/// names met so far; new ones are added.
pub fn decode(
    batch: &RecordBatch,
    path: &Path,
    kinds: &mut Vec<String>,
    rows: &mut Vec<TraceRow>,
) -> Result<(), TableError> {
    let integers = |name| column::<Int64Array>(batch, name, path);
    let session = unsigned(integers("session")?, "session", path)?;
    let step = column::<Int16Array>(batch, "step", path)?.values();
    let action = column::<DictionaryArray<Int8Type>>(batch, "action", path)?;
    let socialite = unsigned(integers("socialite")?, "socialite", path)?;
    let target = unsigned(integers("target")?, "target", path)?;
    let comment = Optional::of(integers("comment")?, "comment", path)?;
    let after = Optional::of(integers("after")?, "after", path)?;
    let think_us = column::<Int32Array>(batch, "think_us", path)?.values();
    let due_us = Optional::of(integers("due_us")?, "due_us", path)?;
    let kind = column::<DictionaryArray<Int8Type>>(batch, "kind", path)?;
    let noops = column::<Int32Array>(batch, "noops", path)?.values();
    let names = names_of(action, "action", path)?;
    let actions: Vec<Option<Action>> = names.iter().map(|n| n.and_then(Action::from_name)).collect();
    let action = action.keys().values();
    let of_key = |key: i8| actions.get(key as usize).copied().flatten();
    if let Some(row) = action.iter().position(|key| of_key(*key).is_none()) {
        let name = names.value((action[row] as usize).min(names.len().saturating_sub(1)));
        return Err(TableError::new(path, format!("row {row}: action {name:?} is not one of this format")));
    }
    let places = places_of(names_of(kind, "kind", path)?, kinds, path)?;
    let kind = kind.keys().values();
    // Of one length, as the loop can see: then it tests none of them for each row.
    let count = batch.num_rows();
    let (session, step, socialite, target) = (&session[..count], &step[..count], &socialite[..count], &target[..count]);
    let (think_us, noops, action, kind) = (&think_us[..count], &noops[..count], &action[..count], &kind[..count]);
    rows.extend((0..count).map(|row| TraceRow {
        session: session[row] as u64,
        step: step[row] as u16,
        kind: places.get(kind[row] as usize).copied().unwrap_or_default(),
        noops: noops[row].max(0) as u32,
        think_us: think_us[row] as u32,
        due_us: due_us.get(row),
        after: after.get(row),
        operation: Operation {
            // Every key has been looked at above.
            action: of_key(action[row]).unwrap_or(Action::ViewProfile),
            socialite: socialite[row] as u64,
            target: target[row] as u64,
            comment: comment.get(row),
        },
    }));
    Ok(())
}

fn names_of<'a>(array: &'a DictionaryArray<Int8Type>, name: &str, path: &Path) -> Result<&'a StringArray, TableError> {
    let names = array.values().as_any().downcast_ref::<StringArray>();
    names.ok_or_else(|| TableError::new(path, format!("column {name} does not hold names")))
}

/// Where each name of a batch stands in `kinds`; new ones are added.
fn places_of(names: &StringArray, kinds: &mut Vec<String>, path: &Path) -> Result<Vec<u8>, TableError> {
    let place = |name: Option<&str>| {
        let name = name.unwrap_or_default();
        let place = kinds.iter().position(|known| known == name).unwrap_or_else(|| {
            kinds.push(name.to_string());
            kinds.len() - 1
        });
        // The column's keys are signed.
        i8::try_from(place)
            .map(|place| place as u8)
            .map_err(|_| TableError::new(path, "has more than 128 kinds of sessions"))
    };
    names.iter().map(place).collect()
}

/// Opens a Parquet file of any of the formats.
pub fn open_parquet(path: &Path, batch_rows: usize) -> Result<ParquetRecordBatchReader, TableError> {
    let file = File::open(path).map_err(|e| TableError::new(path, e))?;
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|b| b.with_batch_size(batch_rows).build())
        .map_err(|e| TableError::new(path, e))
}

/// Opens a file of operations without the row groups that end before a session, so
/// that going on in the middle of a long trace does not read what came before.
fn open_from(path: &Path, batch_rows: usize, first: u64) -> Result<ParquetRecordBatchReader, TableError> {
    let file = File::open(path).map_err(|e| TableError::new(path, e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| TableError::new(path, e))?;
    let groups = builder.metadata().row_groups().iter().enumerate();
    let needed = groups.filter(|(_, group)| last_session(group).is_none_or(|last| last >= first)).map(|(i, _)| i);
    let needed = needed.collect();
    builder.with_row_groups(needed).with_batch_size(batch_rows).build().map_err(|e| TableError::new(path, e))
}

/// The last session of a row group, where its statistics tell.
fn last_session(group: &RowGroupMetaData) -> Option<u64> {
    let column = group.columns().iter().find(|column| column.column_path().string() == "session")?;
    match column.statistics()? {
        Statistics::Int64(sessions) => sessions.max_opt().and_then(|last| u64::try_from(*last).ok()),
        _ => None,
    }
}

/// The operations of one fragment in trace order, chunk by chunk.
pub struct OperationsReader {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, ParquetRecordBatchReader)>,
    batch_rows: usize,
    first: u64,
    kinds: Vec<String>,
}

impl OperationsReader {
    /// Reads the given files one after the other, `batch_rows` rows at a time.
    pub fn new(files: Vec<PathBuf>, batch_rows: usize) -> OperationsReader {
        OperationsReader { files: files.into_iter(), open: None, batch_rows, first: 0, kinds: Vec::new() }
    }

    /// Leaves out the sessions before `first`.
    pub fn starting_at(mut self, first: u64) -> OperationsReader {
        self.first = first;
        self
    }

    /// The names of the kinds of sessions met so far: [`TraceRow::kind`] is a place in them.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Puts the next rows into `rows` (cleared first); false at the end.
    pub fn next_chunk(&mut self, rows: &mut Vec<TraceRow>) -> Result<bool, TableError> {
        rows.clear();
        self.append_chunk(rows)
    }

    /// Adds the next rows to `rows`; false at the end.
    pub fn append_chunk(&mut self, rows: &mut Vec<TraceRow>) -> Result<bool, TableError> {
        let held = rows.len();
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else { return Ok(false) };
                let reader = open_from(&path, self.batch_rows, self.first)?;
                self.open = Some((path, reader));
            }
            let Some((path, reader)) = self.open.as_mut() else { continue };
            match reader.next() {
                None => self.open = None,
                Some(Err(e)) => return Err(TableError::new(path, e)),
                Some(Ok(batch)) => {
                    decode(&batch, path, &mut self.kinds, rows)?;
                    if self.first > 0 {
                        let early = rows[held..].partition_point(|row| row.session < self.first);
                        rows.drain(held..held + early);
                    }
                    if rows.len() > held {
                        // From here on all sessions are late enough.
                        self.first = 0;
                        return Ok(true);
                    }
                }
            }
        }
    }
}
