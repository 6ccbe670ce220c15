//! The operations of a trace set: `operations/fragment=N/part-NNNNN.parquet`.

mod chunk;
mod read;
mod write;

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, StringArray};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};

use crate::vocabulary::{Columns, Vocabulary};

pub use chunk::Chunk;
pub use read::{OperationsReader, SessionNumbers};
pub use write::OperationsBuilder;

/// One operation of a trace with its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow<O> {
    /// The session, counted from 0 in its fragment.
    pub session: u64,
    /// The operation's place in its session, from 0.
    pub step: u16,
    /// The kind of the session, as an index into the names given to [`OperationsBuilder::new`],
    /// or into [`OperationsReader::kinds`].
    pub kind: u8,
    /// BG's no-operations before the session: kinds of sessions that were drawn and of which
    /// nothing could be done, for this actor or for others drawn before. Set in the first
    /// operation of a session, 0 in the others.
    pub noops: u32,
    /// How long the thread waits before the operation; no other thread waits with it. In the
    /// first operation of a session it is the inter-arrival time: the thread waits after the
    /// session, before it takes another.
    pub think_us: u32,
    /// When the session is due, from the experiment's start (open loop only).
    pub due_us: Option<u64>,
    /// The session (of the same fragment) whose write must be done before. If it is the
    /// operation's own session, an earlier step of it must have succeeded.
    pub after: Option<u64>,
    /// On whose behalf the session runs; actors count from 0 over the whole data set.
    pub actor: u64,
    /// The operation without its envelope.
    pub operation: O,
}

impl<O> TraceRow<O> {
    /// A row without waits, due time and dependency, of the first kind of sessions.
    pub fn plain(session: u64, step: u16, operation: O, actor: u64) -> TraceRow<O> {
        TraceRow { session, step, kind: 0, noops: 0, think_us: 0, due_us: None, after: None, actor, operation }
    }
}

/// The Arrow type of columns that hold one of a few names.
pub fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

/// The column with the name of an operation.
pub const OPERATION: &str = "operation";

/// The column with the actor.
pub const ACTOR: &str = "actor";

/// The columns of the operations table of a vocabulary.
pub fn operations_schema<V: Vocabulary>() -> SchemaRef {
    let mut fields = vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new(OPERATION, name_type(), false),
        Field::new(ACTOR, DataType::Int64, false),
    ];
    fields.extend(V::Columns::fields());
    fields.extend([
        Field::new("after", DataType::Int64, true),
        Field::new("think_us", DataType::Int32, false),
        Field::new("due_us", DataType::Int64, true),
        Field::new("txn", DataType::Int32, true),
        Field::new("kind", name_type(), false),
        Field::new("noops", DataType::Int32, false),
    ]);
    Arc::new(Schema::new(fields))
}

/// Codes of operations as an array of names; its dictionary has all names, in the order of the codes.
pub fn operation_column<V: Vocabulary>(codes: Vec<i8>) -> ArrayRef {
    let names = StringArray::from_iter_values(V::KINDS.iter().map(|kind| kind.name));
    Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), Arc::new(names)))
}
