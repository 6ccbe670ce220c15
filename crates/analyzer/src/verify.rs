//! Verifies that sealed tables are as the analysis wrote them, by the checksums in `verdict.json`.
//!
//! A hidden file in the run folder lists the tables that were written or verified on this machine:
//! each one's place on the disk, length and time of change. A table is read for its checksum only
//! if one of these differs. A copy of the run folder has other places on the disk, so its tables
//! are verified once.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use schemas::files::{self, FileError};
use schemas::run::RunFolder;
use schemas::table::TableError;
use schemas::verdict::{Checksum, SealedFragment, Verdict};
use serde::{Deserialize, Serialize};

use crate::error::AnalyzeError;

/// A file as it was when it was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
    blake3: String,
}

impl Seen {
    fn of(file: &Metadata, checksum: &Checksum) -> Seen {
        Seen {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            changed_s: file.ctime(),
            changed_ns: file.ctime_nsec(),
            blake3: checksum.blake3.clone(),
        }
    }
}

/// Records that the sealed tables of this verdict are as they were written: they were written just
/// now, and their checksums computed from what is on the disk.
pub(crate) fn written(run: &RunFolder, verdict: &Verdict) -> Result<(), AnalyzeError> {
    let mut seen = known(run);
    seen.extend(tables(run, verdict)?.into_iter().map(|table| (table.name, table.now)));
    remember(run, &seen);
    Ok(())
}

/// Verifies the sealed tables of these verdicts. An error names the first table that is not as it
/// was written.
pub(crate) fn verify(run: &RunFolder, verdicts: &[Verdict]) -> Result<(), AnalyzeError> {
    let known = known(run);
    let mut seen = BTreeMap::new();
    for verdict in verdicts {
        for table in tables(run, verdict)? {
            if known.get(&table.name) != Some(&table.now) {
                compare(&table.path, table.checksum)?;
                seen.insert(table.name, table.now);
            }
        }
    }
    if !seen.is_empty() {
        remember(run, &known.into_iter().chain(seen).collect());
    }
    Ok(())
}

/// A sealed table as it is now.
struct Table<'a> {
    path: PathBuf,
    /// Its path within the run folder.
    name: String,
    checksum: &'a Checksum,
    now: Seen,
}

fn tables<'a>(run: &RunFolder, verdict: &'a Verdict) -> Result<Vec<Table<'a>>, AnalyzeError> {
    let of = |sealed: &'a SealedFragment| {
        let operations = run.sealed_operations(verdict.experiment, sealed.fragment);
        let unpredictable = run.unpredictable(verdict.experiment, sealed.fragment);
        let closing_reads = sealed.closing_reads.iter().map(|checksum| {
            let path = run.closing_reads(verdict.experiment, sealed.fragment);
            (path, checksum)
        });
        [(operations, &sealed.operations), (unpredictable, &sealed.unpredictable)].into_iter().chain(closing_reads)
    };
    let tables = verdict.sealed.iter().flat_map(of).map(|(path, checksum)| {
        let now = Seen::of(&std::fs::metadata(&path).map_err(files::at(&path))?, checksum);
        let name = path.strip_prefix(run.root()).unwrap_or(&path).display().to_string();
        Ok(Table { path, name, checksum, now })
    });
    tables.collect()
}

/// What was seen before. Without the file, or with a damaged one, every table is read.
fn known(run: &RunFolder) -> BTreeMap<String, Seen> {
    files::read_json(&run.verified()).unwrap_or_default()
}

fn compare(path: &Path, expected: &Checksum) -> Result<(), AnalyzeError> {
    let found = Checksum::of(path).map_err(AnalyzeError::File)?;
    if found == *expected {
        return Ok(());
    }
    let what = if found.bytes == expected.bytes {
        "its content changed after the analysis wrote it".to_string()
    } else {
        format!("it has {} bytes, and the analysis wrote {}", found.bytes, expected.bytes)
    };
    let message = format!("{what}; delete this file, and the next analysis makes it again from the log");
    Err(AnalyzeError::Table(TableError::new(path, message)))
}

/// In a folder that cannot be written, the tables are verified each time.
fn remember(run: &RunFolder, seen: &BTreeMap<String, Seen>) {
    let _: Result<(), FileError> = files::write_json(&run.verified(), seen);
}
