//! Reads the operation log, whole or torn.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arrow::array::{
    Array, BinaryArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch, RunArray, StringArray, UInt16Array,
    UInt32Array,
};
use arrow::datatypes::{ArrowPrimitiveType, Int32Type};
use arrow::ipc::reader::StreamReader;

use super::frames::{LogEnd, walk_frames};
use super::{LOG, LogHeader, LogRow, Outcome, values};
use crate::damage::guarded;
use crate::table::TableError;
use crate::table::columns::column;

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
    /// A file that is not a log, or that has a damaged frame before its end, is an error.
    pub fn open(path: &Path) -> Result<LogReader, TableError> {
        let wrong = |e: &dyn std::fmt::Display| TableError::new(path, e);
        let mut file = File::open(path).map_err(|e| wrong(&e))?;
        let (whole_bytes, end) = walk_frames(&mut file, path)?;
        file.seek(SeekFrom::Start(0)).map_err(|e| wrong(&e))?;
        if whole_bytes == 0 {
            return Err(wrong(&"no complete schema: the replayer ended while it started; there is nothing to analyze"));
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
                "log format version {found}, this Encore reads version {}; use the version of Encore that wrote it",
                crate::RUN_FORMAT_VERSION
            )));
        }
        let header = serde_json::from_value(header).map_err(|e| wrong(&e))?;
        if schema.fields() != LOG.fields() {
            return Err(wrong(&"columns differ from those of the log format"));
        }
        Ok(LogReader { path: path.to_path_buf(), header, end, stream })
    }

    /// The header of the log.
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
        // [`super::frames`] finds most damage first; this is for the rest.
        let batch = guarded(|| self.stream.next().transpose());
        batch.map_err(|e| TableError::reading(&self.path, "is damaged", &e)).transpose()
    }
}

/// What the rows of a batch observed.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    offsets: Vec<u32>,
    values: Vec<i64>,
}

impl Observed {
    fn of(column: &BinaryArray) -> Option<Observed> {
        let mut observed = Observed { offsets: Vec::with_capacity(column.len() + 1), values: Vec::new() };
        observed.offsets.push(0);
        for row in 0..column.len() {
            values::decode(column.value(row), &mut observed.values)?;
            observed.offsets.push(u32::try_from(observed.values.len()).ok()?);
        }
        Some(observed)
    }

    /// What a row observed.
    pub fn of_row(&self, row: usize) -> &[i64] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// A column that mostly has one value in all rows of a batch.
#[derive(Debug, Clone)]
enum Steady<T> {
    Same(T),
    Each(Vec<T>),
}

impl<T: Copy> Steady<T> {
    fn get(&self, row: usize) -> T {
        match self {
            Steady::Same(value) => *value,
            Steady::Each(values) => values[row],
        }
    }
}

/// The columns of one batch of a log.
pub struct LogColumns {
    /// The session of each row.
    pub session: Vec<i64>,
    /// When its thread took it up.
    pub start_ns: Vec<i64>,
    /// When its answer was decoded.
    pub end_ns: Vec<i64>,
    /// What each row observed.
    pub observed: Observed,
    /// The errors of the rows that are not ok, sorted by row.
    pub errors: Vec<(u32, String)>,
    thread: Vec<u32>,
    step: Steady<i16>,
    try_number: Steady<i16>,
    due_ns: Steady<Option<i64>>,
    waited_ns: Steady<i64>,
    pool_wait_ns: Steady<i64>,
    attempts: Steady<i16>,
    outcome: Steady<Outcome>,
}

impl LogColumns {
    /// The columns of a batch that came from the log at `path`.
    pub fn of(batch: &RecordBatch, path: &Path) -> Result<LogColumns, TableError> {
        let rows = batch.num_rows();
        let from = Batch { batch, path };
        let session = from.halves(column::<UInt32Array>(batch, "session_low", path)?.values(), "session_high")?;
        let start_ns = from.halves(column::<UInt32Array>(batch, "start_ns_low", path)?.values(), "start_ns_high")?;
        let duration_ns = column::<UInt32Array>(batch, "duration_ns_low", path)?.values();
        let duration_ns = from.halves(duration_ns, "duration_ns_high")?;
        let end_ns = start_ns.iter().zip(&duration_ns).map(|(start, duration)| start.wrapping_add(*duration)).collect();
        let thread_high = from.numbers::<arrow::datatypes::UInt16Type>("thread_high")?;
        let thread = column::<UInt16Array>(batch, "thread_low", path)?.values();
        let thread = thread.iter().enumerate();
        let thread = thread.map(|(row, low)| (thread_high.get(row) as u32) << 16 | *low as u32).collect();
        let observed = Observed::of(column::<BinaryArray>(batch, "observed", path)?);
        let observed =
            observed.ok_or_else(|| TableError::new(path, "column observed cannot be decoded; the log is damaged"))?;
        Ok(LogColumns {
            session,
            start_ns,
            end_ns,
            observed,
            errors: from.errors()?,
            thread,
            step: from.numbers::<arrow::datatypes::Int16Type>("step")?,
            try_number: from.numbers::<arrow::datatypes::Int16Type>("try")?,
            due_ns: from
                .runs("due_ns", rows, |values: &Int64Array, at| Some(values.is_valid(at).then(|| values.value(at))))?,
            waited_ns: from.numbers::<arrow::datatypes::Int64Type>("waited_ns")?,
            pool_wait_ns: from.numbers::<arrow::datatypes::Int64Type>("pool_wait_ns")?,
            attempts: from.numbers::<arrow::datatypes::Int16Type>("attempts")?,
            outcome: from.runs("outcome", rows, |names: &StringArray, at| {
                Outcome::ALL.into_iter().find(|outcome| outcome.name() == names.value(at))
            })?,
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
            step: self.step.get(row) as u16,
            try_number: self.try_number.get(row) as u16,
            thread: self.thread[row],
            due_ns: self.due_ns.get(row),
            start_ns: self.start_ns[row],
            end_ns: self.end_ns[row],
            waited_ns: self.waited_ns.get(row),
            pool_wait_ns: self.pool_wait_ns.get(row),
            attempts: self.attempts.get(row) as u16,
            outcome: self.outcome.get(row),
        }
    }

    /// What a row observed.
    pub fn observed(&self, row: usize) -> &[i64] {
        self.observed.of_row(row)
    }

    /// Why a row is not ok.
    pub fn error(&self, row: usize) -> Option<&str> {
        let at = self.errors.binary_search_by_key(&(row as u32), |(row, _)| *row).ok()?;
        Some(&self.errors[at].1)
    }
}

/// A batch and the path of its log.
struct Batch<'a> {
    batch: &'a RecordBatch,
    path: &'a Path,
}

impl<'a> Batch<'a> {
    /// The ends and the values of a run-end encoded column.
    fn run_array<A: Array + 'static>(&self, name: &str) -> Result<(&'a [i32], &'a A), TableError> {
        let runs = column::<RunArray<Int32Type>>(self.batch, name, self.path)?;
        let ends = runs.run_ends().values();
        let values = runs.values().as_any().downcast_ref::<A>();
        let is_whole = ends.last().copied().unwrap_or(0) as usize == self.batch.num_rows()
            && ends.first().is_none_or(|first| *first > 0)
            && ends.is_sorted_by(|a, b| a < b);
        match values.filter(|values| is_whole && values.len() == ends.len()) {
            Some(values) => Ok((ends, values)),
            None => Err(self.wrong(name)),
        }
    }

    fn wrong(&self, name: &str) -> TableError {
        TableError::new(
            self.path,
            format!("column {name} has values that the format does not allow; the log is damaged"),
        )
    }

    /// A run-end encoded column. `get` reads one of `values`; None if it is not valid in the
    /// format.
    fn runs<A: Array + 'static, T: Copy>(
        &self,
        name: &str,
        rows: usize,
        get: impl Fn(&A, usize) -> Option<T>,
    ) -> Result<Steady<T>, TableError> {
        let (ends, values) = self.run_array::<A>(name)?;
        let get = |at| get(values, at).ok_or_else(|| self.wrong(name));
        if let [_] = ends {
            return Ok(Steady::Same(get(0)?));
        }
        let mut each = Vec::with_capacity(rows);
        for (at, end) in ends.iter().enumerate() {
            each.resize(*end as usize, get(at)?);
        }
        Ok(Steady::Each(each))
    }

    fn numbers<P: ArrowPrimitiveType>(&self, name: &str) -> Result<Steady<P::Native>, TableError> {
        self.runs(name, self.batch.num_rows(), |values: &PrimitiveArray<P>, at| {
            values.is_valid(at).then(|| values.value(at))
        })
    }

    /// Numbers of 64 bits from their lower halves and the column of the upper ones.
    fn halves(&self, low: &[u32], high: &str) -> Result<Vec<i64>, TableError> {
        let (ends, values) = self.run_array::<Int32Array>(high)?;
        let mut whole = Vec::with_capacity(low.len());
        for (end, value) in ends.iter().zip(values.values()) {
            let high = (*value as i64) << 32;
            whole.extend(low[whole.len()..*end as usize].iter().map(|low| high | *low as i64));
        }
        Ok(whole)
    }

    fn errors(&self) -> Result<Vec<(u32, String)>, TableError> {
        let (ends, texts) = self.run_array::<StringArray>("error")?;
        let (mut errors, mut row) = (Vec::new(), 0);
        for (at, end) in ends.iter().enumerate() {
            if texts.is_valid(at) {
                errors.extend((row..*end as u32).map(|row| (row, texts.value(at).to_string())));
            }
            row = *end as u32;
        }
        Ok(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reader knows the type of every column of the format.
    #[test]
    fn an_empty_batch_has_no_rows() {
        let batch = super::super::LogBuffer::with_capacity(0, 0).into_batch();
        let columns = LogColumns::of(&batch, Path::new("log.arrows"));
        assert!(columns.is_ok_and(|columns| columns.is_empty()));
    }

    #[test]
    fn numbers_come_back_from_their_halves() {
        let mut buffer = super::super::LogBuffer::with_capacity(8, 1);
        let row = |session, thread, start_ns, duration_ns| LogRow {
            session,
            step: (session % 3) as u16,
            try_number: (session % 2) as u16,
            thread,
            due_ns: None,
            start_ns,
            end_ns: start_ns + duration_ns,
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts: 1,
            outcome: Outcome::Ok,
        };
        let rows = [
            row(0, 0, -5, 3),
            row(u32::MAX as u64, 65_535, i64::from(u32::MAX), 1),
            row(1 << 32, 65_536, 1 << 32, 1 << 40),
            row((1 << 62) + 5, u32::MAX, 1 << 50, -1),
        ];
        rows.iter().for_each(|row| buffer.push(*row, &[], None));
        let batch = buffer.into_batch();
        let columns = LogColumns::of(&batch, Path::new("log.arrows")).unwrap();
        let found: Vec<LogRow> = (0..4).map(|at| columns.row(at)).collect();
        assert_eq!(found, rows);
    }
}
