//! Operations of the vocabulary, column by column.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};

use super::{Action, Operation};
use crate::table::TableError;
use crate::table::columns::{Numbers, Optional, column, optional, unsigned};
use crate::vocabulary::{self, Place};

/// Some operations. The socialite is the actor of the envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    action: Vec<Action>,
    target: Numbers,
    // The value plus 1; 0 for none.
    comment: Numbers,
}

impl vocabulary::Columns<Operation> for Columns {
    fn fields() -> Vec<Field> {
        vec![Field::new("target", DataType::Int64, false), Field::new("comment", DataType::Int64, true)]
    }

    fn arrays(operations: &[Operation]) -> Vec<ArrayRef> {
        let target = operations.iter().map(|operation| operation.target as i64);
        vec![Arc::new(Int64Array::from_iter_values(target)), optional(operations.iter().map(|one| one.comment))]
    }

    #[inline]
    fn get(&self, row: usize, place: Place) -> Operation {
        Operation {
            action: self.action[row],
            socialite: place.actor,
            target: self.target.get(row),
            comment: self.comment.find(row),
        }
    }

    fn push(&mut self, rows: usize, operation: &Operation) {
        self.action.push(operation.action);
        self.target.push(rows, operation.target);
        self.comment.push_optional(rows, operation.comment);
    }

    fn append(
        &mut self,
        rows: usize,
        codes: impl Iterator<Item = u8>,
        batch: &RecordBatch,
        path: &Path,
    ) -> Result<(), TableError> {
        let integers = |name| column::<Int64Array>(batch, name, path);
        let target = unsigned(integers("target")?, "target", path)?;
        let comment = Optional::of(integers("comment")?, "comment", path)?;
        self.action.extend(codes.map(|code| Action::ALL[code as usize]));
        self.target.extend(rows, target.iter().map(|number| *number as u64));
        if let Some(comment) = comment {
            self.comment.extend(rows, (0..batch.num_rows()).map(|row| comment.following(row)));
        }
        Ok(())
    }

    fn split_off(&mut self, row: usize, room: usize) -> Columns {
        let mut action = Vec::with_capacity(room);
        action.extend_from_slice(&self.action[row..]);
        self.action.truncate(row);
        Columns { action, target: self.target.split_off(row, room), comment: self.comment.split_off(row, room) }
    }
}
