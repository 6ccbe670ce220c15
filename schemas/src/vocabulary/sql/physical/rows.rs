//! Rows of the data set in the order and the kinds of a table's columns.

use super::tables::Table;
use super::value::{Datum, convert};

/// A row: a value for each column of the table. `places` has the column of each cell, if the table has it.
pub fn row_of(table: &Table, places: &[Option<usize>], cells: Vec<impl Into<Datum>>) -> Result<Vec<Datum>, String> {
    let mut row: Vec<Datum> = table.columns.iter().map(|column| column.default.datum()).collect();
    for (cell, place) in cells.into_iter().zip(places) {
        let Some(place) = place else { continue };
        row[*place] = convert(cell.into(), table.columns[*place].kind)?;
    }
    Ok(row)
}
