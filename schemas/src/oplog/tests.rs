//! Tests that write, cut, damage and read logs.

use std::path::{Path, PathBuf};

use super::*;
use crate::table::TableError;

const COMPRESSIONS: [LogCompression; 3] = [LogCompression::None, LogCompression::Lz4, LogCompression::Zstd];

/// A log may claim that a few bytes were terabytes before they were compressed. The reader must
/// not allocate that.
#[test]
fn a_log_that_claims_too_much_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = write(dir.path(), true, LogCompression::Zstd);
    let bytes = std::fs::read(&path).unwrap();
    // The column of sessions: ten rows of four bytes.
    let claim = 40i64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == claim).expect("a compressed column");
    let mut larger = bytes.clone();
    larger[at..at + 8].copy_from_slice(&(1i64 << 45).to_le_bytes());
    std::fs::write(&path, larger).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("log.arrows") && error.contains("claims 35184372088832 bytes"), "{error}");
}

fn header() -> LogHeader {
    LogHeader {
        format_version: crate::RUN_FORMAT_VERSION,
        experiment: 1,
        fragment: 0,
        workload_id: "w".into(),
        first_session: 0,
        threads: 1,
        unwritten_rows_max: 10,
        aside_sessions_max: 0,
        started_unix_ns: 0,
    }
}

/// A few kilobytes of a compressed log may hold millions of equal rows.
#[test]
fn a_batch_of_too_many_rows_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.arrows");
    let mut writer = LogWriter::create(&path, &header(), LogCompression::Zstd).unwrap();
    let mut buffer = LogBuffer::with_capacity(0, 0);
    (0..=BATCH_ROWS_MAX as u64).for_each(|_| buffer.push(row(0, Outcome::Ok), &[], None));
    writer.write(&buffer.into_batch()).unwrap();
    writer.close().unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("a batch of 32769 rows, more than the 32768 of the format"), "{error}");
}

/// The size of the log: a usual row takes 18 bytes plus what it observed.
#[test]
fn a_usual_row_is_narrow() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.arrows");
    let mut writer = LogWriter::create(&path, &header(), LogCompression::None).unwrap();
    let mut buffer = LogBuffer::with_capacity(BATCH_ROWS_MAX, 1);
    for session in 0..BATCH_ROWS_MAX as u64 {
        let start_ns = session as i64 * 700_000;
        let usual = LogRow { session, due_ns: None, start_ns, end_ns: start_ns + 300, ..row(session, Outcome::Ok) };
        buffer.push(usual, &[20], None);
    }
    writer.write(&buffer.into_batch()).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    let a_row = bytes as f64 / BATCH_ROWS_MAX as f64;
    assert!(a_row < 20.5, "{a_row} bytes a row");
}

/// A log of an older version of Encore is refused; the error names its version.
#[test]
fn a_log_of_another_version_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.arrows");
    let (older, own) = (crate::RUN_FORMAT_VERSION - 1, crate::RUN_FORMAT_VERSION);
    let older_header = LogHeader { format_version: older, ..header() };
    LogWriter::create(&path, &older_header, LogCompression::None).unwrap().close().unwrap();
    let error = read(&path).unwrap_err().to_string();
    let expect = format!("log.arrows: log format version {older}, this Encore reads version {own}");
    assert!(error.contains(&expect), "{error}");
}

fn row(session: u64, outcome: Outcome) -> LogRow {
    LogRow {
        session,
        step: 0,
        try_number: 0,
        thread: 3,
        due_ns: (session % 2 == 1).then_some(7),
        start_ns: 10,
        end_ns: 20,
        waited_ns: 1,
        pool_wait_ns: 2,
        attempts: 1,
        outcome,
    }
}

/// Writes three batches of ten rows. Returns the file and its size after each.
fn write(dir: &Path, close: bool, compression: LogCompression) -> (PathBuf, Vec<u64>) {
    let path = dir.join("log.arrows");
    let mut writer = LogWriter::create(&path, &header(), compression).unwrap();
    let mut sizes = vec![];
    for batch in 0..3 {
        let mut buffer = LogBuffer::with_capacity(10, 2);
        for i in 0..10 {
            let outcome = Outcome::ALL[i as usize % 4];
            let error = format!("error {batch}");
            buffer.push(row(batch * 10 + i, outcome), &[i as i64; 3][..i as usize % 4], (i % 4 > 0).then_some(&error));
        }
        writer.write(&buffer.into_batch()).unwrap();
        sizes.push(std::fs::metadata(&path).unwrap().len());
    }
    if close {
        writer.close().unwrap();
    }
    (path, sizes)
}

fn read(path: &Path) -> Result<(usize, LogEnd), TableError> {
    let reader = LogReader::open(path)?;
    let end = reader.end();
    let mut rows = 0;
    for batch in reader {
        let batch = batch?;
        let columns = LogColumns::of(&batch, path)?;
        for i in 0..columns.len() {
            let session = columns.session[i] as u64;
            assert_eq!(columns.row(i), row(session, Outcome::ALL[session as usize % 10 % 4]));
            assert_eq!(columns.observed(i).len(), session as usize % 10 % 4);
            let error = format!("error {}", session / 10);
            assert_eq!(columns.error(i), (!(session % 10).is_multiple_of(4)).then_some(error.as_str()));
        }
        rows += columns.len();
    }
    Ok((rows, end))
}

#[test]
fn a_closed_log_reads_back() {
    for compression in COMPRESSIONS {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = write(dir.path(), true, compression);
        assert_eq!(read(&path).unwrap(), (30, LogEnd::Closed), "{compression:?}");
    }
}

/// A killed replayer leaves a file cut anywhere. The reader reads every whole batch.
#[test]
fn a_log_cut_anywhere_keeps_its_whole_batches() {
    COMPRESSIONS.into_iter().for_each(check_cuts);
}

fn check_cuts(compression: LogCompression) {
    let dir = tempfile::tempdir().unwrap();
    let (path, sizes) = write(dir.path(), true, compression);
    let bytes = std::fs::read(&path).unwrap();
    for cut in (0..bytes.len()).step_by(7) {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let expect = sizes.iter().filter(|s| **s <= cut as u64).count() * 10;
        match read(&path) {
            Ok((rows, LogEnd::Torn { .. })) => assert_eq!(rows, expect, "cut at {cut}"),
            Ok((_, LogEnd::Closed)) => panic!("cut at {cut} taken for closed"),
            Err(e) => {
                assert!(expect == 0 && e.to_string().contains("no complete schema"), "cut at {cut}: {e}")
            }
        }
    }
}

#[test]
fn garbage_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, sizes) = write(dir.path(), true, LogCompression::None);
    let bytes = std::fs::read(&path).unwrap();
    let check = |content: Vec<u8>, expect: &str| {
        std::fs::write(&path, content).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("log.arrows") && error.contains(expect), "{error}");
    };
    check(b"this is no log, but it is long enough".to_vec(), "byte 0");
    check([bytes.as_slice(), b"x"].concat(), "follow the closing mark");
    let mut middle = bytes.clone();
    middle[sizes[0] as usize] = 1;
    check(middle, &format!("byte {}", sizes[0]));
}

proptest::proptest! {
    /// Reading a file of any bytes ends in rows or in an error.
    #[test]
    fn damaged_logs_never_panic(
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0u8..=255), 1..6),
        cut in proptest::option::of(proptest::prelude::any::<proptest::sample::Index>()),
        compression in proptest::sample::select(&COMPRESSIONS[..]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = write(dir.path(), true, compression);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        let Ok(reader) = LogReader::open(&path) else { return Ok(()) };
        for batch in reader {
            let Ok(batch) = batch else { break };
            let Ok(columns) = LogColumns::of(&batch, &path) else { break };
            for row in 0..columns.len() {
                let _ = (columns.row(row), columns.observed(row), columns.error(row));
            }
        }
    }
}
