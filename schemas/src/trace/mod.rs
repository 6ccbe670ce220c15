//! The operations of a trace set: `operations/fragment=N/part-NNNNN.parquet`.

mod chunk;
mod due;
mod read;
mod rules;
mod write;

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, StringArray};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};

use crate::vocabulary::{Columns, Vocabulary};

pub use crate::vocabulary::TraceRow;
pub use chunk::Chunk;
pub(crate) use due::due_from;
pub use read::{OperationsReader, SessionNumbers};
pub use rules::{BadRow, DueTimes, Expected, NoRules, Rules};
pub use write::OperationsBuilder;

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
    fields.extend(V::Columns::variable_fields());
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
