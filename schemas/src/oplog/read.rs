//! Reads the operation log, whole or torn.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arrow::array::{
    Array, DictionaryArray, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow::datatypes::{Int8Type, Int16Type};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;

use super::frames::{LogEnd, walk_frames};
use super::{LOG, LogHeader, LogRow, Outcome};
use crate::trace::{TableError, column};

/// Reads a log file batch by batch, up to the last whole batch.
pub struct LogReader {
    path: PathBuf,
    header: LogHeader,
    end: LogEnd,
    stream: StreamReader<BufReader<io::Take<File>>>,
}

impl LogReader {
    /// Opens a log and walks its frames to find where the last whole batch ends.
    ///
    /// A file that is no log, or has a damaged frame before its end, is an error.
    pub fn open(path: &Path) -> Result<LogReader, TableError> {
        let wrong = |e: &dyn std::fmt::Display| TableError::new(path, e);
        let mut file = File::open(path).map_err(|e| wrong(&e))?;
        let (whole_bytes, end) = walk_frames(&mut file, path)?;
        file.seek(SeekFrom::Start(0)).map_err(|e| wrong(&e))?;
        if whole_bytes == 0 {
            return Err(wrong(
                &"holds not even a whole schema: the replayer died as it started; there is nothing to analyze",
            ));
        }
        let bytes = BufReader::with_capacity(1 << 20, file.take(whole_bytes));
        let stream = guarded(|| StreamReader::try_new(bytes, None))
            .map_err(|e| wrong(&format!("is not an operation log: {e}")))?;
        let schema = stream.schema();
        let text =
            schema.metadata().get("encore").ok_or_else(|| wrong(&"is an Arrow stream, but not an operation log"))?;
        let header: serde_json::Value = serde_json::from_str(text).map_err(|e| wrong(&e))?;
        let found = header["format_version"].as_u64().unwrap_or(0);
        if found != crate::RUN_FORMAT_VERSION as u64 {
            return Err(wrong(&format!(
                "log format version {found}, this Encore reads version {}",
                crate::RUN_FORMAT_VERSION
            )));
        }
        let header = serde_json::from_value(header).map_err(|e| wrong(&e))?;
        if schema.fields() != LOG.fields() {
            return Err(wrong(&"columns differ from the log format's"));
        }
        Ok(LogReader { path: path.to_path_buf(), header, end, stream })
    }

    /// What the log belongs to.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Whether the log is complete.
    pub fn end(&self) -> LogEnd {
        self.end
    }
}

impl Iterator for LogReader {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| self.stream.next().transpose());
        batch.map_err(|e| TableError::new(&self.path, format!("is damaged: {e}"))).transpose()
    }
}

/// Arrow's reader trusts the numbers in a message's header and panics when they
/// contradict each other. Most such files end in [`super::frames`]; for the rest a
/// panic is an error like any other.
fn guarded<X>(read: impl FnOnce() -> Result<X, ArrowError>) -> Result<X, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("a message contradicts itself".to_string()),
    }
}

/// The columns of one batch of a log, as slices.
pub struct LogColumns<'a> {
    /// `session`.
    pub session: &'a [i64],
    /// `step`.
    pub step: &'a [i16],
    /// `thread`.
    pub thread: &'a [i32],
    /// `due_ns`, which has nulls.
    pub due_ns: &'a Int64Array,
    /// `start_ns`.
    pub start_ns: &'a [i64],
    /// `end_ns`.
    pub end_ns: &'a [i64],
    /// `waited_ns`.
    pub waited_ns: &'a [i64],
    /// `pool_wait_ns`.
    pub pool_wait_ns: &'a [i64],
    /// `attempts`.
    pub attempts: &'a [i16],
    outcome: &'a Int8Array,
    outcomes: Vec<Outcome>,
    error: &'a DictionaryArray<Int16Type>,
    errors: &'a StringArray,
    offsets: &'a [i32],
    values: &'a [i64],
}

impl<'a> LogColumns<'a> {
    /// The columns of a batch that came from the log at `path`.
    pub fn of(batch: &'a RecordBatch, path: &Path) -> Result<LogColumns<'a>, TableError> {
        let outcome = column::<DictionaryArray<Int8Type>>(batch, "outcome", path)?;
        let names = outcome.values().as_any().downcast_ref::<StringArray>();
        let outcomes: Option<Vec<Outcome>> = names
            .and_then(|names| names.iter().map(|n| Outcome::ALL.into_iter().find(|o| Some(o.name()) == n)).collect());
        let error = column::<DictionaryArray<Int16Type>>(batch, "error", path)?;
        let observed = column::<ListArray>(batch, "observed", path)?;
        let values = observed.values().as_any().downcast_ref::<Int64Array>();
        let wrong = || TableError::new(path, "column outcome, error or observed does not hold what the format says");
        Ok(LogColumns {
            session: column::<Int64Array>(batch, "session", path)?.values(),
            step: column::<Int16Array>(batch, "step", path)?.values(),
            thread: column::<Int32Array>(batch, "thread", path)?.values(),
            due_ns: column::<Int64Array>(batch, "due_ns", path)?,
            start_ns: column::<Int64Array>(batch, "start_ns", path)?.values(),
            end_ns: column::<Int64Array>(batch, "end_ns", path)?.values(),
            waited_ns: column::<Int64Array>(batch, "waited_ns", path)?.values(),
            pool_wait_ns: column::<Int64Array>(batch, "pool_wait_ns", path)?.values(),
            attempts: column::<Int16Array>(batch, "attempts", path)?.values(),
            outcome: outcome.keys(),
            outcomes: outcomes.ok_or_else(wrong)?,
            error,
            errors: error.values().as_any().downcast_ref::<StringArray>().ok_or_else(wrong)?,
            offsets: observed.value_offsets(),
            values: values.ok_or_else(wrong)?.values(),
        })
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// A row without what it observed.
    pub fn row(&self, row: usize) -> LogRow {
        LogRow {
            session: self.session[row] as u64,
            step: self.step[row] as u16,
            thread: self.thread[row] as u32,
            due_ns: self.due_ns.is_valid(row).then(|| self.due_ns.value(row)),
            start_ns: self.start_ns[row],
            end_ns: self.end_ns[row],
            waited_ns: self.waited_ns[row],
            pool_wait_ns: self.pool_wait_ns[row],
            attempts: self.attempts[row] as u16,
            outcome: self.outcomes[self.outcome.value(row) as usize],
        }
    }

    /// What a row observed.
    pub fn observed(&self, row: usize) -> &'a [i64] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Why a row is not ok.
    pub fn error(&self, row: usize) -> Option<&'a str> {
        self.error.key(row).map(|key| self.errors.value(key))
    }
}
