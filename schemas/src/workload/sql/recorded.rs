//! What a log recorded of the statements of a trace set that was imported from it: `recorded/fragment=N.parquet`. A
//! replay can be held against it.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int16Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// The folder below the trace set's.
pub const RECORDED: &str = "recorded";

/// The path of a fragment's table below the trace set's folder.
pub fn recorded_path(fragment: u32) -> String {
    format!("{RECORDED}/fragment={fragment}.parquet")
}

/// The columns.
pub fn recorded_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("took_us", DataType::Int64, true),
        Field::new("failed", DataType::Boolean, false),
    ]))
}

/// What was recorded of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The session in its fragment.
    pub session: u64,
    /// The step.
    pub step: u16,
    /// How long it took, in microseconds, if the log says it.
    pub took_us: Option<u64>,
    /// Whether it failed.
    pub failed: bool,
}

/// Some rows of the table.
pub fn recorded_batch(rows: &[Recorded]) -> RecordBatch {
    let took = rows.iter().map(|row| row.took_us.and_then(|us| i64::try_from(us).ok()));
    RecordBatch::try_new(
        recorded_schema(),
        vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.session as i64))),
            Arc::new(Int16Array::from_iter_values(rows.iter().map(|row| row.step as i16))),
            Arc::new(Int64Array::from_iter(took)),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.failed)))),
        ],
    )
    .unwrap_or_else(|e| unreachable!("the batch has the columns of its schema: {e}"))
}
