//! What was drawn for each session: `draws/fragment=N.parquet`, a row a session in the order of the sessions. It says which
//! draws a run has used that replayed a part of the trace set.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt8Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::Draws;
use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};

/// Rows that are read at a time.
const BATCH_ROWS: usize = 65_536;

/// The path of a fragment's table below the trace set's folder.
pub fn draws_path(fragment: u32) -> String {
    format!("draws/fragment={fragment}.parquet")
}

/// The columns: those of [`Draws`], counts of one session.
pub fn draws_schema() -> SchemaRef {
    let fields = Draws::default().counts().map(|(name, _)| Field::new(name, DataType::UInt8, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Some rows of the table. A session has no more than 15 of anything.
pub fn draws_batch(sessions: &[Draws]) -> RecordBatch {
    let columns = Draws::default().counts().into_iter().enumerate().map(|(place, _)| -> ArrayRef {
        Arc::new(UInt8Array::from_iter_values(sessions.iter().map(|draws| draws.counts()[place].1 as u8)))
    });
    RecordBatch::try_new(draws_schema(), columns.collect())
        .unwrap_or_else(|e| unreachable!("the batch has the columns of its schema: {e}"))
}

/// The draws of some sessions of a fragment together. Sessions beyond the end of the table count nothing.
pub fn draws_of(path: &Path, sessions: Range<u64>) -> Result<Draws, TableError> {
    let mut sum = Draws::default();
    let mut at = 0;
    for batch in ParquetBatches::open(path, draws_schema(), BATCH_ROWS)? {
        let batch = batch?;
        let rows = batch.num_rows() as u64;
        let part = sessions.start.clamp(at, at + rows) - at..sessions.end.clamp(at, at + rows) - at;
        for (name, count) in sum.counts_mut() {
            let values: &UInt8Array = column(&batch, name, path)?;
            *count += (part.start as usize..part.end as usize).map(|row| u64::from(values.value(row))).sum::<u64>();
        }
        at += rows;
        if at >= sessions.end {
            break;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowWriter;

    use super::*;

    #[test]
    fn the_draws_of_some_sessions_are_their_sum() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("draws.parquet");
        let order = |order_lines| Draws { new_orders: 1, order_lines, ..Draws::default() };
        let sessions: Vec<Draws> = (0..BATCH_ROWS as u64 + 10).map(|session| order(session % 11 + 5)).collect();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), draws_schema(), None).unwrap();
        writer.write(&draws_batch(&sessions)).unwrap();
        writer.close().unwrap();
        let check = |range: Range<u64>| {
            let mut expect = Draws::default();
            let within = range.start.min(sessions.len() as u64) as usize..range.end.min(sessions.len() as u64) as usize;
            sessions[within].iter().for_each(|own| expect.merge(own));
            assert_eq!(draws_of(&path, range.clone()).unwrap(), expect, "{range:?}");
        };
        let end = sessions.len() as u64;
        [0..end, 0..0, 3..17, end - 12..end, end - 3..end + 5, end..end + 1].into_iter().for_each(check);
    }
}
