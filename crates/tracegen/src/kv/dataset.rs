//! Writes the records of one fragment: what is in the store before the first session.

use std::path::Path;

use schemas::manifest::FileEntry;
use schemas::workload::kv::dataset::{batch, relative_path, schema};

use super::space::Space;
use crate::core::error::GenerateError;
use crate::core::output::TableFile;

/// How many rows are written at a time.
const BATCH_ROWS: usize = 32_768;

/// Writes the table of a fragment, in the order of keys.
pub(crate) fn write(space: &Space, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
    let mut file = TableFile::create(folder, relative_path(fragment), schema())?;
    for records in space.records(fragment).chunks(BATCH_ROWS) {
        file.write(&batch(records.iter().map(|index| (space.first + *index as u64) as i64).collect()))?;
    }
    Ok(vec![file.finish()?])
}
