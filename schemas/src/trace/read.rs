//! Reads the operations of a fragment, file after file.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Int64Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::{Chunk, TableError, TraceRow, column};

/// Opens a Parquet file of any of the formats.
pub fn open_parquet(path: &Path, batch_rows: usize) -> Result<ParquetRecordBatchReader, TableError> {
    let file = File::open(path).map_err(|e| TableError::new(path, e))?;
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|b| b.with_batch_size(batch_rows).build())
        .map_err(|e| TableError::new(path, e))
}

/// The columns that say how a session was drawn, and what is not used yet.
const ABOUT_DRAWING: [&str; 3] = ["txn", "kind", "noops"];

/// Opens a file of operations without the row groups that end before a session, so
/// that going on in the middle of a long trace does not read what came before.
fn open_from(path: &Path, reader: &OperationsReader) -> Result<ParquetRecordBatchReader, TableError> {
    let file = File::open(path).map_err(|e| TableError::new(path, e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| TableError::new(path, e))?;
    let groups = builder.metadata().row_groups().iter().enumerate();
    let needed = groups.filter(|(_, group)| last_session(group).is_none_or(|last| last >= reader.first));
    let needed = needed.map(|(i, _)| i).collect();
    let columns = builder.parquet_schema().columns().iter().map(|column| column.name());
    let columns = columns.filter(|name| !(reader.only_what_is_done && ABOUT_DRAWING.contains(name)));
    let columns = ProjectionMask::columns(builder.parquet_schema(), columns);
    let builder = builder.with_projection(columns).with_row_groups(needed).with_batch_size(reader.batch_rows);
    builder.build().map_err(|e| TableError::new(path, e))
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
    only_what_is_done: bool,
    kinds: Vec<String>,
}

impl OperationsReader {
    /// Reads the given files one after the other, `batch_rows` rows at a time.
    pub fn new(files: Vec<PathBuf>, batch_rows: usize) -> OperationsReader {
        OperationsReader {
            files: files.into_iter(),
            open: None,
            batch_rows,
            first: 0,
            only_what_is_done: false,
            kinds: Vec::new(),
        }
    }

    /// Leaves out the sessions before `first`.
    pub fn starting_at(mut self, first: u64) -> OperationsReader {
        self.first = first;
        self
    }

    /// Does not read the kinds of sessions and the no-operations, which no replay needs:
    /// all are of kind 0, without no-operations.
    pub fn only_what_is_done(mut self) -> OperationsReader {
        self.only_what_is_done = true;
        self
    }

    /// The names of the kinds of sessions met so far: [`TraceRow::kind`] is a place in them.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Puts the next rows into `rows` (cleared first); false at the end.
    pub fn next_rows(&mut self, rows: &mut Vec<TraceRow>) -> Result<bool, TableError> {
        rows.clear();
        let mut chunk = Chunk::default();
        let is_some = self.append_chunk(&mut chunk)?;
        rows.extend(chunk.rows());
        Ok(is_some)
    }

    /// Adds the next rows to `chunk`; false at the end.
    pub fn append_chunk(&mut self, chunk: &mut Chunk) -> Result<bool, TableError> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.files.next() else { return Ok(false) };
                let reader = open_from(&path, self)?;
                self.open = Some((path, reader));
            }
            let Some((path, reader)) = self.open.as_mut() else { continue };
            match reader.next() {
                None => self.open = None,
                Some(Err(e)) => return Err(TableError::new(path, e)),
                Some(Ok(batch)) => {
                    let batch = since(&batch, path, self.first)?;
                    if batch.num_rows() > 0 {
                        chunk.append(&batch, path, &mut self.kinds)?;
                        // From here on all sessions are late enough.
                        self.first = 0;
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// The rows of a batch from a session on.
fn since(batch: &RecordBatch, path: &Path, first: u64) -> Result<RecordBatch, TableError> {
    let sessions = column::<Int64Array>(batch, "session", path)?.values();
    // Of a damaged file a negative one is left for its error.
    let early = sessions.partition_point(|session| (0..first as i64).contains(session));
    Ok(batch.slice(early, batch.num_rows() - early))
}
