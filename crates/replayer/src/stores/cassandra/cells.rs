//! Values of statements and of answers, without copies.

use scylla::cluster::metadata::ColumnType;
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};

/// A value of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    /// A text.
    Text(&'a str),
    /// A number of 64 bits.
    Long(i64),
    /// A number of 32 bits.
    Int(i32),
}

impl SerializeValue for Cell<'_> {
    fn serialize<'b>(
        &self,
        kind: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match self {
            Cell::Text(text) => text.serialize(kind, writer),
            Cell::Long(number) => number.serialize(kind, writer),
            Cell::Int(number) => number.serialize(kind, writer),
        }
    }
}

/// Calls `take` with the values of each row; None is a column without a value.
pub fn each_row<'r>(
    rows: &'r QueryRowsResult,
    mut take: impl FnMut(&mut dyn Iterator<Item = Result<Option<&'r [u8]>, String>>) -> Result<(), String>,
) -> Result<(), String> {
    for row in rows.rows::<ColumnIterator>().map_err(|error| error.to_string())? {
        let row = row.map_err(|error| error.to_string())?;
        let mut cells = row.map(|column| match column {
            Ok(column) => Ok(column.slice.map(|slice| slice.as_slice())),
            Err(error) => Err(error.to_string()),
        });
        take(&mut cells)?;
    }
    Ok(())
}
