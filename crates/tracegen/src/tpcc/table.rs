//! Rows of a table as a Parquet file, row by row.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Int32Array, RecordBatch, StringBuilder, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use schemas::manifest::FileEntry;

use crate::core::error::GenerateError;
use crate::core::output::TableFile;

/// Rows that are written at once.
const BATCH_ROWS: usize = 16_384;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A whole number.
    Number,
    /// A decimal number with so many digits, and so many of them after the point.
    Decimal(u8, i8),
    /// A text.
    Text,
    /// A date and a time.
    Time,
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    Null,
    Number(u64),
    /// In units of the last digit after the point.
    Decimal(i64),
    Text(&'a str),
    /// In microseconds since 1970.
    Time(i64),
}

/// A table: its name and its columns. A name that ends in `?` is that of a column that may be NULL.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Type)],
}

impl Definition {
    fn schema(&self) -> SchemaRef {
        let field = |(name, kind): &(&str, Type)| {
            let kind = match kind {
                Type::Number => DataType::Int32,
                Type::Decimal(digits, scale) => DataType::Decimal128(*digits, *scale),
                Type::Text => DataType::Utf8,
                Type::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
            };
            Field::new(name.trim_end_matches('?'), kind, name.ends_with('?'))
        };
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

enum Column {
    Number(Vec<Option<i32>>),
    Decimal(Vec<Option<i128>>, u8, i8),
    Text(StringBuilder),
    Time(Vec<Option<i64>>),
}

/// A table that is being written.
pub(super) struct Table {
    schema: SchemaRef,
    file: TableFile,
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// The table's file of a fragment.
    pub(super) fn create(folder: &Path, fragment: u32, definition: &Definition) -> Result<Table, GenerateError> {
        let schema = definition.schema();
        let relative = format!("dataset/fragment={fragment}/{}.parquet", definition.name);
        let column = |(_, kind): &(&str, Type)| match kind {
            Type::Number => Column::Number(Vec::new()),
            Type::Decimal(digits, scale) => Column::Decimal(Vec::new(), *digits, *scale),
            Type::Text => Column::Text(StringBuilder::new()),
            Type::Time => Column::Time(Vec::new()),
        };
        Ok(Table {
            file: TableFile::create(folder, relative, schema.clone())?,
            columns: definition.columns.iter().map(column).collect(),
            schema,
            rows: 0,
        })
    }

    /// Adds a row: a value for each column, of its type.
    pub(super) fn push<const N: usize>(&mut self, row: [Cell<'_>; N]) -> Result<(), GenerateError> {
        debug_assert_eq!(self.columns.len(), N);
        for (column, cell) in self.columns.iter_mut().zip(row) {
            match (column, cell) {
                (Column::Number(numbers), Cell::Number(number)) => numbers.push(Some(number as i32)),
                (Column::Decimal(numbers, ..), Cell::Decimal(number)) => numbers.push(Some(number.into())),
                (Column::Text(texts), Cell::Text(text)) => texts.append_value(text),
                (Column::Time(times), Cell::Time(time)) => times.push(Some(time)),
                (Column::Number(numbers), _) => numbers.push(None),
                (Column::Decimal(numbers, ..), _) => numbers.push(None),
                (Column::Text(texts), _) => texts.append_null(),
                (Column::Time(times), _) => times.push(None),
            }
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), GenerateError> {
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(|column| -> ArrayRef {
            match column {
                Column::Number(numbers) => Arc::new(Int32Array::from(std::mem::take(numbers))),
                Column::Decimal(numbers, digits, scale) => {
                    let array = Decimal128Array::from(std::mem::take(numbers));
                    let typed = array.with_precision_and_scale(*digits, *scale);
                    Arc::new(typed.unwrap_or_else(|e| unreachable!("a definition has digits that fit: {e}")))
                }
                Column::Text(texts) => Arc::new(texts.finish()),
                Column::Time(times) => Arc::new(TimestampMicrosecondArray::from(std::mem::take(times))),
            }
        });
        let batch = RecordBatch::try_new(self.schema.clone(), arrays.collect())
            .unwrap_or_else(|e| unreachable!("each row has a value for each column: {e}"));
        self.file.write(&batch)
    }

    /// Closes the file.
    pub(super) fn finish(mut self) -> Result<FileEntry, GenerateError> {
        self.flush()?;
        self.file.finish()
    }
}
