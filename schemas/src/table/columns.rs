//! Columns in memory, and how they are read from a file.

use std::fmt::Display;
use std::ops::BitOr;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, Int64Array, PrimitiveArray, RecordBatch, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use super::TableError;

/// A column of values that are mostly 0. It ends with the last part of the trace that has another
/// value, so it is often empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rare<T>(Vec<T>);

impl<T: Copy + Default + PartialEq> Rare<T> {
    #[inline]
    pub fn get(&self, row: usize) -> T {
        self.0.get(row).copied().unwrap_or_default()
    }

    /// Adds values after the `rows` rows that are there.
    pub fn extend(&mut self, rows: usize, values: impl Iterator<Item = T> + Clone) {
        // Without an early exit, so that the compiler can process many values at once.
        let is_usual = values.clone().fold(true, |all, value| all & (value == T::default()));
        if !is_usual {
            self.0.resize(rows, T::default());
            self.0.extend(values);
        }
    }

    /// Adds a value after the `rows` rows that are there.
    pub fn push(&mut self, rows: usize, value: T) {
        self.extend(rows, std::iter::once(value));
    }

    /// Moves the values from a row on to a new column, with room for more.
    pub fn split_off(&mut self, row: usize, room: usize) -> Rare<T> {
        let Some(last) = self.0.get(row..) else { return Rare(Vec::new()) };
        let mut rest = Vec::with_capacity(room);
        rest.extend_from_slice(last);
        self.0.truncate(row);
        Rare(rest)
    }
}

/// A column of numbers in two halves; the upper half is mostly 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    low: Rare<u32>,
    high: Rare<u32>,
}

impl Numbers {
    #[inline]
    pub fn get(&self, row: usize) -> u64 {
        self.low.get(row) as u64 | (self.high.get(row) as u64) << 32
    }

    /// The value of a column in which 0 stands for none.
    #[inline]
    pub fn find(&self, row: usize) -> Option<u64> {
        self.get(row).checked_sub(1)
    }

    pub fn extend(&mut self, rows: usize, values: impl Iterator<Item = u64> + Clone) {
        self.low.extend(rows, values.clone().map(|value| value as u32));
        self.high.extend(rows, values.map(|value| (value >> 32) as u32));
    }

    pub fn push(&mut self, rows: usize, value: u64) {
        self.extend(rows, std::iter::once(value));
    }

    /// Adds a value to a column in which 0 stands for none.
    pub fn push_optional(&mut self, rows: usize, value: Option<u64>) {
        self.push(rows, value.map_or(0, |value| value + 1));
    }

    pub fn split_off(&mut self, row: usize, room: usize) -> Numbers {
        Numbers { low: self.low.split_off(row, room), high: self.high.split_off(row, room) }
    }
}

/// A column of a batch, checked and downcast.
pub(crate) fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
    path: &Path,
) -> Result<&'a A, TableError> {
    let array = batch.column_by_name(name).ok_or_else(|| TableError::new(path, format!("column {name} is missing")))?;
    array.as_any().downcast_ref::<A>().ok_or_else(|| {
        TableError::new(path, format!("column {name} has type {}, which differs from the format", array.data_type()))
    })
}

/// The values of a column of numbers that are not negative.
pub(crate) fn unsigned<'a, T: ArrowPrimitiveType>(
    array: &'a PrimitiveArray<T>,
    name: &str,
    path: &Path,
) -> Result<&'a [T::Native], TableError>
where
    T::Native: BitOr<Output = T::Native> + PartialOrd + Display,
{
    let zero = T::Native::default();
    // One pass without a branch; only a damaged file needs the second search.
    if array.values().iter().fold(zero, |all, value| all | *value) < zero
        && let Some(row) = (0..array.len()).find(|&row| array.is_valid(row) && array.value(row) < zero)
    {
        let value = array.value(row);
        return Err(TableError::new(path, format!("row {row}: {name} is {value}, must not be negative")));
    }
    Ok(array.values())
}

/// A column of numbers that are not negative, some of which are missing.
pub(crate) struct Optional<'a>(&'a Int64Array);

impl<'a> Optional<'a> {
    /// None if all are missing.
    pub fn of(array: &'a Int64Array, name: &str, path: &Path) -> Result<Option<Optional<'a>>, TableError> {
        if array.null_count() == array.len() {
            return Ok(None);
        }
        unsigned(array, name, path)?;
        Ok(Some(Optional(array)))
    }

    /// The value plus 1; 0 if it is missing.
    #[inline]
    pub fn following(&self, row: usize) -> u64 {
        if self.0.is_valid(row) { self.0.value(row) as u64 + 1 } else { 0 }
    }
}

/// A column of numbers, some of which are missing. Filled by plain loops, since most columns have
/// no missing number or nothing else.
pub(crate) fn optional(values: impl Iterator<Item = Option<u64>> + Clone) -> ArrayRef {
    let valid: Vec<bool> = values.clone().map(|value| value.is_some()).collect();
    if !valid.contains(&true) {
        return new_null_array(&DataType::Int64, valid.len());
    }
    let numbers: Vec<i64> = values.map(|value| value.unwrap_or_default() as i64).collect();
    Arc::new(Int64Array::new(numbers.into(), Some(NullBuffer::from(valid))))
}
