//! When a session is due, whatever the vocabulary of the trace set.

use std::path::PathBuf;

use arrow::array::Int64Array;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderOptions;

use super::read::{last_session, since};
use crate::table::columns::{Optional, column};
use crate::table::{ParquetBatches, TableError};

/// Rows read at a time: one session is wanted.
const BATCH_ROWS: usize = 1024;

/// When the first session from `first` on is due, in µs. `files` are those of its fragment, in order.
/// None if there is no such session, or it has no due time.
pub(crate) fn due_from(files: Vec<PathBuf>, first: u64) -> Result<Option<u64>, TableError> {
    for path in files {
        // The schema that the writer embedded names all columns, and only two are wanted.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let batches = ParquetBatches::open_parts(&path, options, |builder| {
            let groups = builder.metadata().row_groups().iter().enumerate();
            let needed = groups.filter(|(_, group)| last_session(group).is_none_or(|last| last >= first));
            let needed = needed.map(|(i, _)| i).collect();
            let columns = ProjectionMask::columns(builder.parquet_schema(), ["session", "due_us"]);
            builder.with_projection(columns).with_row_groups(needed).with_batch_size(BATCH_ROWS)
        })?;
        for batch in batches {
            let batch = since(&batch?, &path, first)?;
            if batch.num_rows() > 0 {
                let due_us = Optional::of(column::<Int64Array>(&batch, "due_us", &path)?, "due_us", &path)?;
                return Ok(due_us.and_then(|due_us| due_us.following(0).checked_sub(1)));
            }
        }
    }
    Ok(None)
}
