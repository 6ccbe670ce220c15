//! Operations of the vocabulary, column by column.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};

use super::{Operation, Verb, WriteId};
use crate::table::TableError;
use crate::table::columns::{Numbers, Rare, column, unsigned};
use crate::vocabulary::{self, Place};

/// Some operations. The id of a write is its place, so it is in no column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    verb: Vec<Verb>,
    key: Numbers,
    fields: Numbers,
    length: Rare<u32>,
    delta: Rare<i64>,
}

impl vocabulary::Columns<Operation> for Columns {
    fn fields() -> Vec<Field> {
        vec![
            Field::new("key", DataType::Int64, false),
            Field::new("fields", DataType::Int64, false),
            Field::new("length", DataType::Int32, false),
            Field::new("delta", DataType::Int64, false),
        ]
    }

    fn arrays(operations: &[Operation]) -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from_iter_values(operations.iter().map(|one| one.key as i64))),
            Arc::new(Int64Array::from_iter_values(operations.iter().map(|one| one.fields as i64))),
            Arc::new(Int32Array::from_iter_values(operations.iter().map(|one| one.length as i32))),
            Arc::new(Int64Array::from_iter_values(operations.iter().map(|one| one.amount))),
        ]
    }

    #[inline]
    fn get(&self, row: usize, place: Place) -> Operation {
        Operation {
            verb: self.verb[row],
            key: self.key.get(row),
            fields: self.fields.get(row),
            length: self.length.get(row),
            id: WriteId::new(place.fragment, place.session, place.step),
            amount: self.delta.get(row),
        }
    }

    fn push(&mut self, rows: usize, operation: &Operation) {
        self.verb.push(operation.verb);
        self.key.push(rows, operation.key);
        self.fields.push(rows, operation.fields);
        self.length.push(rows, operation.length);
        self.delta.push(rows, operation.amount);
    }

    fn append(
        &mut self,
        rows: usize,
        codes: impl Iterator<Item = u8>,
        batch: &RecordBatch,
        path: &Path,
    ) -> Result<(), TableError> {
        let key = unsigned(column::<Int64Array>(batch, "key", path)?, "key", path)?;
        let fields = unsigned(column::<Int64Array>(batch, "fields", path)?, "fields", path)?;
        let length = unsigned(column::<Int32Array>(batch, "length", path)?, "length", path)?;
        let delta = column::<Int64Array>(batch, "delta", path)?;
        self.verb.extend(codes.map(|code| Verb::ALL[code as usize]));
        self.key.extend(rows, key.iter().map(|number| *number as u64));
        self.fields.extend(rows, fields.iter().map(|number| *number as u64));
        self.length.extend(rows, length.iter().map(|length| *length as u32));
        self.delta.extend(rows, delta.values().iter().copied());
        Ok(())
    }

    fn split_off(&mut self, row: usize, room: usize) -> Columns {
        let mut verb = Vec::with_capacity(room);
        verb.extend_from_slice(&self.verb[row..]);
        self.verb.truncate(row);
        Columns {
            verb,
            key: self.key.split_off(row, room),
            fields: self.fields.split_off(row, room),
            length: self.length.split_off(row, room),
            delta: self.delta.split_off(row, room),
        }
    }
}
