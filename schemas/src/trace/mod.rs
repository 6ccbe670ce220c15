//! The operations of a trace set: `operations/fragment=N/part-NNNNN.parquet`.

mod chunk;
mod read;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};

use crate::social::{Action, Operation};

pub use chunk::Chunk;
pub use read::{OperationsReader, ParquetBatches};
pub use write::OperationsBuilder;

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
