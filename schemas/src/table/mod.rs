//! Tables in Parquet files, whatever they hold.

pub(crate) mod columns;

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::damage::guarded;

/// A table that cannot be read: the file, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, with the row if one row is wrong.
    pub message: String,
    /// The kind of the operating system's error, if that was the cause; None if it is what the file
    /// holds.
    pub io: Option<std::io::ErrorKind>,
}

impl TableError {
    /// An error about a file.
    pub fn new(path: &Path, message: impl ToString) -> TableError {
        TableError { path: path.to_path_buf(), message: message.to_string(), io: None }
    }

    /// A file that a library cannot read. Either the system refuses it (such as too many open
    /// files), or the file is damaged, as `damaged` says.
    pub(crate) fn reading(path: &Path, damaged: &str, error: &str) -> TableError {
        // Arrow passes on the system's error only as a text.
        let number = error.rsplit_once("(os error ").and_then(|(_, number)| number.strip_suffix(')')?.parse().ok());
        let Some(number) = number else { return TableError::new(path, format!("{damaged}: {error}")) };
        let refused = std::io::Error::from_raw_os_error(number);
        TableError { io: Some(refused.kind()), ..TableError::new(path, refused) }
    }

    /// A file that the system refuses to open, read or write, from a library's error.
    pub fn refused(path: &Path, error: impl std::error::Error + 'static) -> TableError {
        let causes = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |cause| cause.source());
        match causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last() {
            Some(cause) => TableError { io: Some(cause.kind()), ..TableError::new(path, cause) },
            None => TableError::new(path, error),
        }
    }
}

/// The batches of a Parquet file, read with the schema of its format. The reader ignores the
/// schema that the writer embedded.
pub struct ParquetBatches {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
}

impl ParquetBatches {
    /// Opens a file of a format with this schema.
    pub fn open(path: &Path, schema: SchemaRef, batch_rows: usize) -> Result<ParquetBatches, TableError> {
        let options = ArrowReaderOptions::new().with_schema(schema);
        ParquetBatches::open_parts(path, options, |builder| builder.with_batch_size(batch_rows))
    }

    /// Opens a file of another tool, with the columns that it has.
    pub fn open_any(path: &Path, batch_rows: usize) -> Result<ParquetBatches, TableError> {
        ParquetBatches::open_parts(path, ArrowReaderOptions::new(), |builder| builder.with_batch_size(batch_rows))
    }

    /// Opens the parts of a file that are wanted.
    pub(crate) fn open_parts(
        path: &Path,
        options: ArrowReaderOptions,
        parts: impl FnOnce(Builder) -> Builder,
    ) -> Result<ParquetBatches, TableError> {
        let file = File::open(path).map_err(|e| TableError::refused(path, e))?;
        let reader =
            guarded(|| Builder::try_new_with_options(file, options).and_then(|builder| parts(builder).build()));
        let reader = reader.map_err(|e| TableError::reading(path, "is damaged or of another format", &e))?;
        Ok(ParquetBatches { path: path.to_path_buf(), reader })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

pub(crate) type Builder = ParquetRecordBatchReaderBuilder<File>;

impl Iterator for ParquetBatches {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| self.reader.next().transpose());
        batch.map_err(|e| TableError::reading(&self.path, "is damaged", &e)).transpose()
    }
}
