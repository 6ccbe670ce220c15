//! What a log recorded of the statements of a fragment, as a table beside its operations.

use std::path::Path;

use schemas::manifest::FileEntry;
use schemas::workload::sql::recorded::{Recorded, recorded_batch, recorded_path, recorded_schema};

use crate::core::error::GenerateError;
use crate::core::output::TableFile;

/// Rows that are written at once.
const ROWS: usize = 65_536;

/// The table of a fragment. Without rows there is none.
pub(super) struct RecordedFile {
    fragment: u32,
    rows: Vec<Recorded>,
    file: Option<TableFile>,
}

impl RecordedFile {
    pub(super) fn new(fragment: u32) -> RecordedFile {
        RecordedFile { fragment, rows: Vec::new(), file: None }
    }

    pub(super) fn push(&mut self, folder: &Path, rows: impl Iterator<Item = Recorded>) -> Result<(), GenerateError> {
        self.rows.extend(rows);
        if self.rows.len() >= ROWS { self.flush(folder) } else { Ok(()) }
    }

    fn flush(&mut self, folder: &Path) -> Result<(), GenerateError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => TableFile::create(folder, recorded_path(self.fragment), recorded_schema())?,
        };
        file.write(&recorded_batch(&self.rows))?;
        self.rows.clear();
        self.file = Some(file);
        Ok(())
    }

    pub(super) fn finish(mut self, folder: &Path) -> Result<Option<FileEntry>, GenerateError> {
        if !self.rows.is_empty() {
            self.flush(folder)?;
        }
        self.file.map(TableFile::finish).transpose()
    }
}
