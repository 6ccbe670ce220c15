//! The closing read of a fragment: its file, and its sealed table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int16Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use schemas::oplog::{LogColumns, LogEnd, LogReader, LogRow, observed_item, outcome_column};
use schemas::run::ExperimentFolder;
use schemas::sealed::{closing_reads_schema, violation_fields, violation_item};
use schemas::table::TableError;
use schemas::trace::operation_column;
use schemas::vocabulary::{Columns, Operation, Vocabulary};

use crate::seal::{ClosedTable, Table};
use crate::validate::Violation;

/// What an experiment has to do with closing reads, for all its fragments.
#[derive(Clone, Default)]
pub(crate) struct ClosingPlan {
    /// The parts of an item.
    pub(crate) parts: u64,
    /// The folder of the experiment, if a closing read followed it.
    pub(crate) after: Option<ExperimentFolder>,
    /// The number and the folder of the experiment whose closing read saw the state that this one
    /// started from.
    pub(crate) before: Option<(u32, ExperimentFolder)>,
}

/// What identifies the file of a closing read.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) experiment: u32,
    pub(crate) fragment: u32,
    pub(crate) workload_id: &'a str,
}

/// The file of a closing read. What is wrong with it is a sentence: an experiment counts without its
/// closing read.
pub(crate) struct ClosingFile {
    path: PathBuf,
    reader: LogReader,
}

impl ClosingFile {
    /// Opens a file, which must be of the expected closing read.
    pub(crate) fn open(path: &Path, expected: Expected<'_>) -> Result<ClosingFile, String> {
        if !path.exists() {
            return Err(format!(
                "no file {}; the closing read was not completed, or its file is still on its replayer's machine",
                path.display()
            ));
        }
        let reader = LogReader::open(path).map_err(|e| e.to_string())?;
        let header = reader.header();
        let found = (header.experiment, header.fragment, header.workload_id.as_str());
        if found == (expected.experiment, expected.fragment, expected.workload_id) {
            return Ok(ClosingFile { path: path.to_path_buf(), reader });
        }
        let (experiment, fragment) = (header.experiment, header.fragment);
        Err(format!(
            "{}: is of experiment {experiment}, fragment {fragment} and workload {}; the file may be in the wrong \
             folder",
            path.display(),
            header.workload_id
        ))
    }

    /// The next rows. None at the end; then [`ClosingFile::end`] says whether some are missing.
    pub(crate) fn next(&mut self) -> Option<Result<LogColumns, String>> {
        let batch = self.reader.next()?;
        let columns = batch.and_then(|batch| LogColumns::of(&batch, &self.path)).map_err(|e| e.to_string());
        Some(columns.and_then(|columns| {
            let is_item = |row: &LogRow| row.session <= i64::MAX as u64 && row.start_ns <= row.end_ns;
            match (0..columns.len()).map(|row| columns.row(row)).find(|row| !is_item(row)) {
                None => Ok(columns),
                Some(row) => Err(format!("{}: item {} is damaged", self.path.display(), row.session as i64)),
            }
        }))
    }

    /// Whether the file is complete.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.reader.end() {
            LogEnd::Closed => Ok(()),
            LogEnd::Torn { .. } => Err(format!("{}: the file is incomplete", self.path.display())),
        }
    }
}

/// Rows that are written at a time.
const BATCH_ROWS: usize = 16 * 1024;

/// A row of the table.
struct Sealing<O> {
    row: LogRow,
    operation: O,
    error: Option<String>,
    observed: Vec<i64>,
    violations: Vec<Violation>,
}

/// Writes the table `closing_reads` of a fragment.
pub(crate) struct ClosingSealer<V: Vocabulary> {
    table: Table,
    rows: Vec<Sealing<V::Operation>>,
}

impl<V: Vocabulary> ClosingSealer<V> {
    pub(crate) fn create(path: PathBuf) -> Result<ClosingSealer<V>, TableError> {
        Ok(ClosingSealer { table: Table::create::<V>(path, closing_reads_schema::<V>())?, rows: Vec::new() })
    }

    pub(crate) fn push(
        &mut self,
        row: LogRow,
        operation: V::Operation,
        error: Option<&str>,
        observed: &[i64],
        violations: &[Violation],
    ) -> Result<(), TableError> {
        let (error, observed, violations) = (error.map(String::from), observed.to_vec(), violations.to_vec());
        self.rows.push(Sealing { row, operation, error, observed, violations });
        if self.rows.len() >= BATCH_ROWS { self.write() } else { Ok(()) }
    }

    pub(crate) fn close(mut self) -> Result<ClosedTable, TableError> {
        if !self.rows.is_empty() {
            self.write()?;
        }
        self.table.close()
    }

    fn write(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        let operations: Vec<V::Operation> = rows.iter().map(|one| one.operation).collect();
        let mut columns = vec![operation_column::<V>(operations.iter().map(|one| one.code() as i8).collect())];
        columns.extend(V::Columns::arrays(&operations));
        let numbers = |of: fn(&LogRow) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|one| of(&one.row))))
        };
        let observed = Int64Array::from_iter_values(rows.iter().flat_map(|one| one.observed.iter().copied()));
        let lengths = OffsetBuffer::from_lengths(rows.iter().map(|one| one.observed.len()));
        columns.extend([
            numbers(|row| row.start_ns),
            numbers(|row| row.end_ns),
            Arc::new(Int16Array::from_iter_values(rows.iter().map(|one| one.row.attempts as i16))),
            outcome_column(rows.iter().map(|one| one.row.outcome as i8).collect()),
            Arc::new(StringArray::from_iter(rows.iter().map(|one| one.error.as_deref()))),
            Arc::new(ListArray::new(observed_item(), lengths, Arc::new(observed), None)),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|one| Some(!one.violations.is_empty())))),
            violations_column(&rows),
        ]);
        let batch = RecordBatch::try_new(closing_reads_schema::<V>(), columns)
            .unwrap_or_else(|e| unreachable!("every row fills every column: {e}"));
        self.table.write(&batch)
    }
}

fn violations_column<O>(rows: &[Sealing<O>]) -> ArrayRef {
    let all = || rows.iter().flat_map(|one| &one.violations);
    let numbers = |of: fn(&Violation) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(all().map(of))) };
    // Arrow needs to know how many texts there are.
    let items: Vec<&str> = all().map(|violation| violation.item).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(items)),
        numbers(|violation| violation.owner as i64),
        Arc::new(Int64Array::from(all().map(|violation| violation.element).collect::<Vec<_>>())),
        numbers(|violation| violation.observed),
        numbers(|violation| violation.low),
        numbers(|violation| violation.high),
    ];
    let lengths = OffsetBuffer::from_lengths(rows.iter().map(|one| one.violations.len()));
    Arc::new(ListArray::new(
        violation_item(),
        lengths,
        Arc::new(StructArray::new(violation_fields(), columns, None)),
        None,
    ))
}
