//! A key-value trace set: its operations, as the replayer and the analyzer read them, and its
//! records.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use schemas::manifest::Manifest;
use schemas::spec::Spec;
use schemas::trace::OperationsBuilder;
use schemas::vocabulary::kv::{Kv, TraceRow, Verb};
use schemas::workload::kv::dataset;
use tempfile::TempDir;

use crate::{parquet, read_rows, with_file};

/// The fields of a record, and the greatest length of a scan.
const FIELDS: u32 = 4;
const SCAN_LENGTH_MAX: u32 = 30;

/// A small trace set in which every operation occurs.
struct Good {
    /// Removed with the last use of the trace set.
    _parent: TempDir,
    folder: PathBuf,
    manifest: Manifest,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let parent = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
    let folder = parent.path().join("kv.trace");
    let spec = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = 400\nfragments = 2\n[data]\nrecords = 60\nfields = {FIELDS}\n\
         [access]\nread_all_fields = false\nscan_length_max = {SCAN_LENGTH_MAX}\ndependency_window = 8\n\
         [mix]\nread = 4\nupdate = 2\ninsert = 2\nscan = 2\ndelete = 1\nread_modify_write = 2\n"
    );
    let spec = Spec::parse(&spec, "kv").unwrap_or_else(|e| panic!("{e}"));
    let generated = tracegen::generate(&spec, &folder, &tracegen::GenerateOptions::default());
    generated.unwrap_or_else(|e| panic!("{e}"));
    let manifest = Manifest::read(&folder).unwrap_or_else(|e| panic!("{e}"));
    Good { _parent: parent, folder, manifest }
});

/// The path of the operations below the trace set's folder.
fn operations_path() -> String {
    let files = GOOD.manifest.operation_files(Path::new(""), 0);
    files.into_iter().map(|file| file.display().to_string()).next().unwrap_or_default()
}

fn good_file(path: &str) -> Vec<u8> {
    let path = GOOD.folder.join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A file as it is generated, and a small one whose pages are not compressed, so that a change of a
/// byte is a change of a value.
pub fn operations() -> Vec<Vec<u8>> {
    let kinds = GOOD.manifest.spec.kinds();
    let mut builder = OperationsBuilder::<Kv>::new(kinds.into_iter().map(|(name, _)| name));
    let reader = GOOD.manifest.reader::<Kv>(&GOOD.folder, 0, 64);
    let mut rows = Vec::new();
    let read = reader.and_then(|mut reader| reader.next_rows(&mut rows));
    assert!(read.is_ok_and(|is_some| is_some), "the good trace set is refused");
    rows.iter().for_each(|row| builder.push(row));
    vec![parquet(&builder.finish()), good_file(&operations_path())]
}

/// Rows that are not refused fit the specification, on which the stores and the models rely.
pub fn decode_operations(bytes: &[u8]) {
    with_file(&operations_path(), bytes, |folder, _| {
        read_rows::<Kv>(&GOOD.manifest, folder, |row: &TraceRow| {
            let operation = row.operation;
            assert!(operation.fields >> FIELDS == 0, "{row:?}");
            assert!((operation.fields == 0) == (operation.verb == Verb::Delete), "{row:?}");
            let is_scan = operation.verb == Verb::Scan;
            assert!(operation.length <= SCAN_LENGTH_MAX && (operation.length > 0) == is_scan, "{row:?}");
            assert_eq!(operation.id.place(), (0, row.session, row.step), "{row:?}");
        });
    });
}

/// The table of records, small and with Arrow's schema in the file, and as it is generated.
pub fn records() -> Vec<Vec<u8>> {
    let small = parquet(&dataset::batch((0..60).map(|record| record * 3).collect()));
    vec![small, good_file(&dataset::relative_path(0))]
}

/// Reads the table of records.
pub fn decode_records(bytes: &[u8]) {
    with_file(&dataset::relative_path(0), bytes, |folder, _| {
        let Ok(records) = dataset::records(folder, 0) else { return };
        for chunk in records {
            let Ok(chunk) = chunk else { return };
            assert!(chunk.iter().all(|record| *record <= i64::MAX as u64), "{chunk:?}");
        }
    });
}
