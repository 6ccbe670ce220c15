//! Writes the operations table: rows to record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int8Type};

use super::{OPERATIONS, TraceRow, action_column};

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
