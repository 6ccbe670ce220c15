//! Reads the operations of a fragment, file after file.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use arrow::array::{Int64Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::rules::RowCheck;
use super::{Chunk, Expected, Rules, TraceRow, operations_schema};
use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};
use crate::vocabulary::Vocabulary;

/// The columns that only say how a session was drawn.
const ABOUT_DRAWING: [&str; 2] = ["kind", "noops"];

/// The columns that many trace sets do not use: closed loops have no due times, and sessions without
/// transactions no transactions. A column without any value is not decoded.
const MAY_BE_EMPTY: [&str; 3] = ["after", "due_us", "txn"];

/// Opens a file of operations without the row groups that end before the first wanted session. To
/// continue in the middle of a long trace, the reader need not read what came before.
fn open_from<V: Vocabulary>(path: &Path, reader: &OperationsReader<V>) -> Result<ParquetBatches, TableError> {
    let options = ArrowReaderOptions::new().with_schema(operations_schema::<V>());
    ParquetBatches::open_parts(path, options, |builder| {
        let groups = builder.metadata().row_groups().iter().enumerate();
        let needed = groups.filter(|(_, group)| last_session(group).is_none_or(|last| last >= reader.first));
        let (needed, groups): (Vec<usize>, Vec<&RowGroupMetaData>) = needed.unzip();
        let columns = builder.parquet_schema().columns().iter().map(|column| column.name());
        let columns = columns.filter(|name| !(reader.only_what_is_done && ABOUT_DRAWING.contains(name)));
        let columns = columns.filter(|name| !(MAY_BE_EMPTY.contains(name) && is_empty(&groups, name)));
        let columns = ProjectionMask::columns(builder.parquet_schema(), columns);
        builder.with_projection(columns).with_row_groups(needed).with_batch_size(reader.batch_rows)
    })
}

/// Whether no row of some row groups has a value in a column, as their statistics say.
fn is_empty(groups: &[&RowGroupMetaData], name: &str) -> bool {
    let has_none = |group: &&RowGroupMetaData| {
        let column = group.columns().iter().find(|column| column.column_path().string() == name);
        let nulls = column.and_then(|column| column.statistics()?.null_count_opt());
        nulls.is_some_and(|nulls| i64::try_from(nulls) == Ok(group.num_rows()))
    };
    groups.iter().all(has_none)
}

/// The last session of a row group, if its statistics have it.
pub(super) fn last_session(group: &RowGroupMetaData) -> Option<u64> {
    let column = group.columns().iter().find(|column| column.column_path().string() == "session")?;
    match column.statistics()? {
        Statistics::Int64(sessions) => sessions.max_opt().and_then(|last| u64::try_from(*last).ok()),
        _ => None,
    }
}

/// The operations of one fragment in trace order, chunk by chunk.
pub struct OperationsReader<V: Vocabulary> {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<ParquetBatches>,
    /// The file that was opened last.
    last: Option<PathBuf>,
    batch_rows: usize,
    first: u64,
    only_what_is_done: bool,
    fragment: u32,
    kinds: Vec<String>,
    check: Option<RowCheck<V>>,
    vocabulary: PhantomData<V>,
}

impl<V: Vocabulary> OperationsReader<V> {
    /// Reads the given files of a fragment one after the other, `batch_rows` rows at a time. Rows are
    /// not checked against a specification; [`Manifest::reader`](crate::manifest::Manifest::reader)
    /// makes a reader that does so.
    pub fn new(fragment: u32, files: Vec<PathBuf>, batch_rows: usize) -> OperationsReader<V> {
        OperationsReader {
            files: files.into_iter(),
            open: None,
            last: None,
            batch_rows,
            first: 0,
            only_what_is_done: false,
            fragment,
            kinds: Vec::new(),
            check: None,
            vocabulary: PhantomData,
        }
    }

    /// Skips the sessions before `first`.
    pub fn starting_at(mut self, first: u64) -> OperationsReader<V> {
        self.first = first;
        if let Some(check) = &mut self.check {
            check.starting_at(first);
        }
        self
    }

    /// Refuses rows out of order, those whose envelopes are not as expected, and those that break the
    /// rules of the family. Errors name file, session, step and column.
    pub fn checked(mut self, expected: Expected, rules: Box<dyn Rules<V>>) -> OperationsReader<V> {
        self.check = Some(RowCheck::new(expected, rules, self.first));
        self
    }

    /// Skips the columns of session kinds and no-operations, which no replay needs. All rows then
    /// have kind 0 and no no-operations.
    pub fn only_what_is_done(mut self) -> OperationsReader<V> {
        self.only_what_is_done = true;
        self
    }

    /// The names of the kinds of sessions read so far; [`TraceRow::kind`] is an index into them.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Puts the next rows into `rows` (cleared first); false at the end.
    pub fn next_rows(&mut self, rows: &mut Vec<TraceRow<V::Operation>>) -> Result<bool, TableError> {
        rows.clear();
        let mut chunk = Chunk::default();
        let is_some = self.append_chunk(&mut chunk)?;
        rows.extend(chunk.rows());
        Ok(is_some)
    }

    /// Adds the next rows to `chunk`; false at the end.
    pub fn append_chunk(&mut self, chunk: &mut Chunk<V>) -> Result<bool, TableError> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else {
                    let Some(check) = &self.check else { return Ok(false) };
                    let path = self.last.clone().unwrap_or_default();
                    return check.check_end().map(|()| false).map_err(|message| TableError::new(&path, message));
                };
                self.open = Some(open_from(&path, self)?);
                self.last = Some(path);
            }
            let Some(batches) = self.open.as_mut() else { continue };
            match batches.next().transpose()? {
                None => self.open = None,
                Some(batch) => {
                    let path = batches.path();
                    let batch = since(&batch, path, self.first)?;
                    if batch.num_rows() > 0 {
                        let held = chunk.len();
                        chunk.append(&batch, path, self.fragment, &mut self.kinds)?;
                        if let Some(check) = &mut self.check {
                            let fits = check.check(chunk, held..chunk.len());
                            fits.map_err(|message| TableError::new(path, message))?;
                        }
                        // All later sessions are wanted.
                        self.first = 0;
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// The session of each operation of a fragment, whatever the vocabulary.
pub struct SessionNumbers {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<ParquetBatches>,
    batch_rows: usize,
}

impl SessionNumbers {
    /// Reads the given files one after the other, `batch_rows` rows at a time.
    pub fn new(files: Vec<PathBuf>, batch_rows: usize) -> SessionNumbers {
        SessionNumbers { files: files.into_iter(), open: None, batch_rows }
    }

    fn open(&self, path: &Path) -> Result<ParquetBatches, TableError> {
        // The schema that the writer embedded names all columns, and only one is wanted.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        ParquetBatches::open_parts(path, options, |builder| {
            let columns = ProjectionMask::columns(builder.parquet_schema(), ["session"]);
            builder.with_projection(columns).with_batch_size(self.batch_rows)
        })
    }

    /// Puts the next sessions into `sessions` (cleared first); false at the end.
    pub fn next(&mut self, sessions: &mut Vec<i64>) -> Result<bool, TableError> {
        sessions.clear();
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else { return Ok(false) };
                self.open = Some(self.open(&path)?);
            }
            let Some(batches) = self.open.as_mut() else { continue };
            match batches.next().transpose()? {
                None => self.open = None,
                Some(batch) => {
                    sessions.extend_from_slice(column::<Int64Array>(&batch, "session", batches.path())?.values());
                    return Ok(true);
                }
            }
        }
    }
}

/// The rows of a batch from a session on.
pub(super) fn since(batch: &RecordBatch, path: &Path, first: u64) -> Result<RecordBatch, TableError> {
    let sessions = column::<Int64Array>(batch, "session", path)?.values();
    // A negative session of a damaged file is kept, so that its check reports it.
    let early = sessions.partition_point(|session| (0..first as i64).contains(session));
    Ok(batch.slice(early, batch.num_rows() - early))
}
