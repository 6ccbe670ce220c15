//! Writes the operations table: rows to record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int8Type;

use super::{TraceRow, operation_column, operations_schema};
use crate::vocabulary::{Columns, Operation, Vocabulary};

/// Builds record batches of the operations table.
pub struct OperationsBuilder<V: Vocabulary> {
    kinds: ArrayRef,
    rows: Envelopes,
    operations: Vec<V::Operation>,
    /// What the operations have of variable length.
    variable: Vec<u8>,
}

#[derive(Default)]
struct Envelopes {
    session: Vec<i64>,
    step: Vec<i16>,
    actor: Vec<i64>,
    after: Vec<Option<i64>>,
    think_us: Vec<i32>,
    due_us: Vec<Option<i64>>,
    txn: Vec<Option<i32>>,
    kind: Vec<i8>,
    noops: Vec<i32>,
}

impl<V: Vocabulary> OperationsBuilder<V> {
    /// A builder for sessions of these kinds, in the order of [`crate::spec::Spec::kinds`].
    pub fn new<'a>(kinds: impl IntoIterator<Item = &'a str>) -> OperationsBuilder<V> {
        let kinds = Arc::new(StringArray::from_iter_values(kinds));
        OperationsBuilder { kinds, rows: Envelopes::default(), operations: Vec::new(), variable: Vec::new() }
    }

    /// The bytes to which a vocabulary adds what the next operation has of variable length.
    pub fn variable(&mut self) -> &mut Vec<u8> {
        &mut self.variable
    }

    /// Adds a row.
    pub fn push(&mut self, row: &TraceRow<V::Operation>) {
        self.rows.session.push(row.session as i64);
        self.rows.step.push(row.step as i16);
        self.rows.actor.push(row.actor as i64);
        self.rows.after.push(row.after.map(|a| a as i64));
        self.rows.think_us.push(row.think_us as i32);
        self.rows.due_us.push(row.due_us.map(|d| d as i64));
        self.rows.txn.push(row.txn.map(i32::from));
        self.rows.kind.push(row.kind as i8);
        self.rows.noops.push(row.noops as i32);
        self.operations.push(row.operation);
    }

    /// How many rows have been added since the last batch.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The rows as a batch; the builder is empty afterwards.
    pub fn finish(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        let operations = std::mem::take(&mut self.operations);
        let variable = std::mem::take(&mut self.variable);
        let codes = operations.iter().map(|operation| operation.code() as i8).collect();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(rows.session)),
            Arc::new(Int16Array::from(rows.step)),
            operation_column::<V>(codes),
            Arc::new(Int64Array::from(rows.actor)),
        ];
        columns.extend(V::Columns::arrays(&operations));
        columns.extend(V::Columns::variable_arrays(&operations, &variable));
        columns.extend([
            Arc::new(Int64Array::from(rows.after)) as ArrayRef,
            Arc::new(Int32Array::from(rows.think_us)),
            Arc::new(Int64Array::from(rows.due_us)),
            Arc::new(Int32Array::from(rows.txn)),
            Arc::new(DictionaryArray::<Int8Type>::new(rows.kind.into(), self.kinds.clone())),
            Arc::new(Int32Array::from(rows.noops)),
        ]);
        RecordBatch::try_new(operations_schema::<V>(), columns)
            .unwrap_or_else(|e| unreachable!("the builder fills every column alike: {e}"))
    }
}
