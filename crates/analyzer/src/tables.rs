//! Tables for terminals.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// A table with only a line under the names of the columns.
pub(crate) const PLAIN: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// A table of numbers, except for one column of words.
pub(crate) fn new_table(columns: &[&str], words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(PLAIN).set_header(columns);
    for index in 0..columns.len() {
        let Some(column) = table.column_mut(index) else { continue };
        // Two spaces between columns: three would make tables wider than a terminal.
        column.set_padding((0, 1));
        if index != words {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
