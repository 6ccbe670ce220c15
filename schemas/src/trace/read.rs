//! Reads the operations of a fragment, file after file.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::{Chunk, OPERATIONS, TableError, TraceRow, column};
use crate::damage::guarded;

/// The batches of a Parquet file, read with the schema of its format: that which the
/// writer has embedded is not looked at.
pub struct ParquetBatches {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
}

impl ParquetBatches {
    /// Opens a file of a format with this schema.
    pub fn open(path: &Path, schema: SchemaRef, batch_rows: usize) -> Result<ParquetBatches, TableError> {
        ParquetBatches::open_parts(path, schema, |builder| builder.with_batch_size(batch_rows))
    }

    fn open_parts(
        path: &Path,
        schema: SchemaRef,
        parts: impl FnOnce(Builder) -> Builder,
    ) -> Result<ParquetBatches, TableError> {
        let file = File::open(path).map_err(|e| TableError::new(path, e))?;
        let reader = guarded(|| {
            let options = ArrowReaderOptions::new().with_schema(schema);
            Builder::try_new_with_options(file, options).and_then(|builder| parts(builder).build())
        });
        let reader = reader.map_err(|e| TableError::new(path, format!("is damaged or of another format: {e}")))?;
        Ok(ParquetBatches { path: path.to_path_buf(), reader })
    }
}

type Builder = ParquetRecordBatchReaderBuilder<File>;

impl Iterator for ParquetBatches {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| self.reader.next().transpose());
        batch.map_err(|e| TableError::new(&self.path, format!("is damaged: {e}"))).transpose()
    }
}

/// The columns that say how a session was drawn, and what is not used yet.
const ABOUT_DRAWING: [&str; 3] = ["txn", "kind", "noops"];

/// Opens a file of operations without the row groups that end before a session, so
/// that going on in the middle of a long trace does not read what came before.
fn open_from(path: &Path, reader: &OperationsReader) -> Result<ParquetBatches, TableError> {
    ParquetBatches::open_parts(path, OPERATIONS.clone(), |builder| {
        let groups = builder.metadata().row_groups().iter().enumerate();
        let needed = groups.filter(|(_, group)| last_session(group).is_none_or(|last| last >= reader.first));
        let needed = needed.map(|(i, _)| i).collect();
        let columns = builder.parquet_schema().columns().iter().map(|column| column.name());
        let columns = columns.filter(|name| !(reader.only_what_is_done && ABOUT_DRAWING.contains(name)));
        let columns = ProjectionMask::columns(builder.parquet_schema(), columns);
        builder.with_projection(columns).with_row_groups(needed).with_batch_size(reader.batch_rows)
    })
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
    open: Option<ParquetBatches>,
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
                self.open = Some(open_from(&path, self)?);
            }
            let Some(batches) = self.open.as_mut() else { continue };
            match batches.next().transpose()? {
                None => self.open = None,
                Some(batch) => {
                    let path = &batches.path;
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
