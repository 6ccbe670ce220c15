//! The sealed tables of a run, which teams pass on to each other and DuckDB reads.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use analyzer::sql::Database;
use schemas::run::RunFolder;
use schemas::verdict::Verdict;
use tempfile::TempDir;

/// A run of the stored trace set, analyzed.
struct Sealed {
    folder: TempDir,
    verdict: Verdict,
    operations: Vec<u8>,
}

static SEALED: LazyLock<Sealed> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
    let run = folder.path().join("whole");
    let words = ["replayer", "run", "--store", "memory:", "-T", "2", "--trace"].map(OsString::from);
    let paths = [super::golden_folder().into(), "-o".into(), run.clone().into()];
    assert_eq!(replayer::cli::main(words.into_iter().chain(paths)), ExitCode::SUCCESS);
    let run = RunFolder::new(&run);
    let mut verdict = analyzer::analyze(&run, 1, None).unwrap_or_else(|e| panic!("{e}"));
    // Its checksums would refuse every changed table before DuckDB reads it.
    verdict.sealed.clear();
    let path = run.sealed_operations(1, 0);
    let operations = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Sealed { folder, verdict, operations }
});

/// A sealed table without damage.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![SEALED.operations.clone()]
}

/// Reads a run whose only sealed table is `bytes`; each thread has a run of its own.
pub fn decode(bytes: &[u8]) {
    let sealed = &*SEALED;
    let root: PathBuf = sealed.folder.path().join(format!("{:?}", std::thread::current().id()));
    let run = RunFolder::new(&root);
    let table = run.sealed_operations(1, 0);
    let parent = table.parent().unwrap_or(&root);
    let document = RunFolder::new(sealed.folder.path().join("whole")).document();
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&table, bytes))
        .and_then(|()| std::fs::copy(document, run.document()).map(drop))
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let Ok(database) = Database::open(&run, std::slice::from_ref(&sealed.verdict), Some("256MiB")) else { return };
    for statement in
        ["SUMMARIZE operations", "SELECT operation, count(*), sum(len(observed)) FROM operations GROUP BY 1"]
    {
        let _ = database.query(statement);
    }
}
