//! The data set of a trace set: `dataset/fragment=N/records.parquet`, with the numbers of the
//! fragment's records (column `record`) in the order of their keys. The keys of a fragment are next
//! to each other among all keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::table::columns::{column, unsigned};
use crate::table::{ParquetBatches, TableError};

/// The name of the table.
pub const RECORDS: &str = "records";

/// The schema of the table.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("record", DataType::Int64, false)]))
}

/// The path of a fragment's table below the trace set's folder, with '/'.
pub fn relative_path(fragment: u32) -> String {
    format!("dataset/fragment={fragment}/{RECORDS}.parquet")
}

/// Some records as a batch.
pub fn batch(records: Vec<i64>) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(records))])
        .unwrap_or_else(|e| unreachable!("the batch has the column of its schema: {e}"))
}

/// The records of a fragment in the order of their keys, some thousands at a time.
pub fn records(
    folder: &Path,
    fragment: u32,
) -> Result<impl Iterator<Item = Result<Vec<u64>, TableError>> + use<>, TableError> {
    let path: PathBuf = folder.join(relative_path(fragment));
    Ok(ParquetBatches::open(&path, schema(), 8192)?.map(move |batch| {
        let batch = batch?;
        let records = unsigned(column::<Int64Array>(&batch, "record", &path)?, "record", &path)?;
        Ok(records.iter().map(|record| *record as u64).collect())
    }))
}
