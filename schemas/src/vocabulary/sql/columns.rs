//! Operations of the vocabulary, column by column. Their parameters are in one arena.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field};

use super::{Operation, Parameter, Place, Value, Verb, decode};
use crate::table::TableError;
use crate::table::columns::{Rare, column};
use crate::vocabulary;

const IS_KEPT: u8 = 1;
const USES_RESULTS: u8 = 2;

/// Some operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    verb: Vec<Verb>,
    statement: Rare<u32>,
    flags: Rare<u8>,
    /// Where the parameters of an operation end, its custom ones included.
    end: Vec<u32>,
    /// The bytes of its custom parameters.
    custom: Rare<u32>,
    arena: Vec<u8>,
}

impl Columns {
    /// The parameters of an operation of these columns, and its custom parameters.
    pub fn bytes(&self, operation: &Operation) -> (&[u8], &[u8]) {
        bytes_of(operation, &self.arena)
    }

    fn start(&self, row: usize) -> u32 {
        row.checked_sub(1).map_or(0, |before| self.end[before])
    }

    fn add(
        &mut self,
        row: usize,
        operation: &Operation,
        parameters: &[u8],
        custom: &[u8],
    ) -> Result<(), super::TooLong> {
        self.arena.extend_from_slice(parameters);
        self.arena.extend_from_slice(custom);
        self.verb.push(operation.verb);
        self.statement.push(row, operation.statement);
        let (kept, results) = (operation.is_kept as u8 * IS_KEPT, operation.uses_results as u8 * USES_RESULTS);
        self.flags.push(row, kept | results);
        // What was added to the arena is part of it.
        self.custom.push(row, custom.len() as u32);
        self.end.push(super::position(&self.arena)?);
        Ok(())
    }
}

/// What an operation has of variable length, in these bytes; nothing if they are not its own.
fn bytes_of<'a>(operation: &Operation, bytes: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let (start, middle) = (operation.start as usize, operation.start as usize + operation.parameters as usize);
    let parameters = bytes.get(start..middle).unwrap_or_default();
    let custom = bytes.get(middle..middle + operation.custom as usize).unwrap_or_default();
    (parameters, custom)
}

impl vocabulary::Columns<Operation> for Columns {
    fn fields() -> Vec<Field> {
        vec![Field::new("statement", DataType::Int32, true), Field::new("kept", DataType::Boolean, false)]
    }

    fn arrays(operations: &[Operation]) -> Vec<ArrayRef> {
        let statement = |one: &Operation| one.verb.control().is_none().then_some(one.statement as i32);
        vec![
            Arc::new(Int32Array::from_iter(operations.iter().map(statement))),
            Arc::new(BooleanArray::from(operations.iter().map(|one| one.is_kept).collect::<Vec<_>>())),
        ]
    }

    fn variable_fields() -> Vec<Field> {
        vec![Field::new("parameters", DataType::Binary, true), Field::new("custom", DataType::Binary, true)]
    }

    fn variable_arrays(operations: &[Operation], bytes: &[u8]) -> Vec<ArrayRef> {
        let (mut parameters, mut custom) = (BinaryBuilder::new(), BinaryBuilder::new());
        for operation in operations {
            let (own, custom_ones) = bytes_of(operation, bytes);
            parameters.append_option((!own.is_empty()).then_some(own));
            custom.append_option((!custom_ones.is_empty()).then_some(custom_ones));
        }
        vec![Arc::new(parameters.finish()), Arc::new(custom.finish())]
    }

    #[inline]
    fn get(&self, row: usize, place: Place) -> Operation {
        let (start, custom, flags) = (self.start(row), self.custom.get(row), self.flags.get(row));
        Operation {
            verb: self.verb[row],
            is_kept: flags & IS_KEPT != 0,
            uses_results: flags & USES_RESULTS != 0,
            step: place.step,
            statement: self.statement.get(row),
            start,
            parameters: self.end[row] - start - custom,
            custom,
        }
    }

    fn push(&mut self, rows: usize, operation: &Operation) {
        // Nothing is added to the arena, so it does not become too long.
        let _ = self.add(rows, operation, &[], &[]);
    }

    fn push_from(&mut self, rows: usize, operation: &Operation, other: &Columns) {
        let (parameters, custom) = other.bytes(operation);
        // These columns hold a part of the other ones.
        let _ = self.add(rows, operation, parameters, custom);
    }

    fn append(
        &mut self,
        rows: usize,
        codes: impl Iterator<Item = u8>,
        batch: &RecordBatch,
        path: &Path,
    ) -> Result<(), TableError> {
        let statement = column::<Int32Array>(batch, "statement", path)?;
        let kept = column::<BooleanArray>(batch, "kept", path)?;
        let parameters = column::<BinaryArray>(batch, "parameters", path)?;
        let custom = column::<BinaryArray>(batch, "custom", path)?;
        let wrong = |row: usize, message: String| TableError::new(path, format!("row {row}: {message}"));
        for (row, code) in codes.enumerate() {
            let verb = Verb::ALL[code as usize];
            let own = if parameters.is_valid(row) { parameters.value(row) } else { &[] };
            let custom = if custom.is_valid(row) { custom.value(row) } else { &[] };
            let number = match statement.is_valid(row) {
                true => u32::try_from(statement.value(row)).ok(),
                false => verb.control().map(|_| 0),
            };
            let number = number.ok_or_else(|| wrong(row, "statement has no number".into()))?;
            let uses_results = check(own).map_err(|why| wrong(row, format!("parameters: {why}")))?;
            check_custom(custom).map_err(|why| wrong(row, format!("custom: {why}")))?;
            let operation =
                Operation { is_kept: kept.value(row), uses_results, statement: number, ..Operation::plain(verb) };
            self.add(rows + row, &operation, own, custom).map_err(|e| wrong(row, e.to_string()))?;
        }
        Ok(())
    }

    fn split_off(&mut self, row: usize, room: usize) -> Columns {
        let start = self.start(row);
        let mut verb = Vec::with_capacity(room);
        verb.extend_from_slice(&self.verb[row..]);
        let mut end = Vec::with_capacity(room);
        end.extend(self.end[row..].iter().map(|end| end - start));
        let arena = self.arena.split_off(start as usize);
        self.verb.truncate(row);
        self.end.truncate(row);
        Columns {
            verb,
            statement: self.statement.split_off(row, room),
            flags: self.flags.split_off(row, room),
            end,
            custom: self.custom.split_off(row, room),
            arena,
        }
    }
}

/// Refuses bytes that are no parameters. Returns whether one is a result.
fn check(bytes: &[u8]) -> Result<bool, &'static str> {
    decode(bytes).try_fold(false, |any, parameter| Ok(any | matches!(parameter?, Parameter::Result(_))))
}

/// Refuses bytes that are no custom parameters.
fn check_custom(bytes: &[u8]) -> Result<(), &'static str> {
    decode(bytes).try_for_each(|parameter| match parameter? {
        Parameter::Value(Value::Text(_)) => Ok(()),
        _ => Err("a custom parameter is not a text"),
    })
}
