//! The rows of a CSV or Parquet file as texts, in the order of the columns that are known.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use schemas::files::at;
use schemas::table::ParquetBatches;

use super::ImportError;

/// Rows of a Parquet file that are in memory.
const BATCH_ROWS: usize = 4_096;

/// A row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// A line of a CSV file, from 1.
    Line(u64),
    /// A row of a Parquet file, from 0.
    Row(u64),
}

impl Place {
    /// The place of another row of the same file, by its number there.
    pub(super) fn with_number(&self, number: u64) -> Place {
        let at = match self.at {
            At::Line(_) => At::Line(number),
            At::Row(_) => At::Row(number),
        };
        Place { path: self.path.clone(), at }
    }

    /// The number of the row in its file.
    pub(super) fn number(&self) -> u64 {
        match self.at {
            At::Line(number) | At::Row(number) => number,
        }
    }

    /// The row without its file.
    pub(super) fn short(&self) -> String {
        match self.at {
            At::Line(line) => format!("line {line}"),
            At::Row(row) => format!("row {row}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::Line(line) => write!(f, "{}:{line}", self.path.display()),
            At::Row(row) => write!(f, "{}: row {row}", self.path.display()),
        }
    }
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) is_needed: bool,
}

/// A column that every table of the kind has.
pub(super) const fn needed(name: &'static str) -> Column {
    Column { name, is_needed: true }
}

/// A column that may be missing.
pub(super) const fn optional(name: &'static str) -> Column {
    Column { name, is_needed: false }
}

enum Source {
    /// The reader takes the line feed after a carriage return for the beginning of the next record, so its lines are
    /// `behind` by one.
    Csv {
        reader: Box<csv::Reader<BufReader<File>>>,
        record: csv::StringRecord,
        behind: u64,
    },
    Parquet {
        batches: ParquetBatches,
        columns: Vec<StringArray>,
        row: usize,
        rows: usize,
        before: u64,
    },
}

/// The rows of a file, one after the other.
pub(super) struct Rows {
    path: PathBuf,
    source: Source,
    /// Where each known column is in the file.
    places: Vec<Option<usize>>,
}

impl Rows {
    /// The path of `NAME.csv` or `NAME.parquet` in a folder; None if there is neither.
    pub(super) fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>, ImportError> {
        let [csv, parquet] = ["csv", "parquet"].map(|kind| folder.join(format!("{name}.{kind}")));
        match (csv.exists(), parquet.exists()) {
            (true, true) => {
                let message = format!("has {name}.csv and {name}.parquet; remove one of them");
                Err(ImportError::whole(folder, message))
            }
            (true, false) => Ok(Some(csv)),
            (false, true) => Ok(Some(parquet)),
            (false, false) => Ok(None),
        }
    }

    /// Opens a file. Columns that are not known are refused, since a misspelt one would be ignored.
    pub(super) fn open(path: &Path, known: &[Column]) -> Result<Rows, ImportError> {
        let is_csv = path.extension().is_some_and(|kind| kind == "csv");
        let (source, names) = if is_csv { open_csv(path)? } else { open_parquet(path)? };
        for (at, name) in names.iter().enumerate() {
            if !known.iter().any(|column| column.name == name) {
                let all = known.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
                return Err(ImportError::whole(path, format!("column {name:?} is none of {all}; rename or remove it")));
            }
            if names[..at].contains(name) {
                return Err(ImportError::whole(path, format!("has two columns {name:?}; remove one")));
            }
        }
        let place = |column: &Column| match names.iter().position(|name| name == column.name) {
            None if column.is_needed => {
                Err(ImportError::whole(path, format!("has no column {:?}; add it", column.name)))
            }
            place => Ok(place),
        };
        let places = known.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Rows { path: path.to_path_buf(), source, places })
    }

    /// Goes to the next row. Returns false after the last one.
    pub(super) fn next_row(&mut self) -> Result<bool, ImportError> {
        match &mut self.source {
            Source::Csv { reader, record, behind } => {
                reader.read_record(record).map_err(|error| damaged(&self.path, &error, *behind))
            }
            Source::Parquet { batches, columns, row, rows, before } => loop {
                *row = row.wrapping_add(1);
                if *row < *rows {
                    return Ok(true);
                }
                let Some(batch) = batches.next().transpose()? else { return Ok(false) };
                *before += *rows as u64;
                (*columns, *rows) = (texts(&batch, &self.path)?, batch.num_rows());
                // The next turn goes to the first row.
                *row = usize::MAX;
            },
        }
    }

    /// The text of a known column in this row; None if it is empty, NULL, or not in the file.
    pub(super) fn get(&self, column: usize) -> Option<&str> {
        let place = self.places[column]?;
        match &self.source {
            Source::Csv { record, .. } => record.get(place).filter(|text| !text.is_empty()),
            Source::Parquet { columns, row, .. } => {
                let column = &columns[place];
                column.is_valid(*row).then(|| column.value(*row)).filter(|text| !text.is_empty())
            }
        }
    }

    /// The text of a column that must have one.
    pub(super) fn needed(&self, column: usize, name: &str) -> Result<&str, ImportError> {
        self.get(column).ok_or_else(|| self.wrong(format!("has no {name}; every row needs one")))
    }

    /// A whole number of at most `most`.
    pub(super) fn number(&self, column: usize, name: &str, most: u64) -> Result<Option<u64>, ImportError> {
        let Some(text) = self.get(column) else { return Ok(None) };
        // Pandas writes whole numbers as 5.0 where a column has empty fields.
        let digits = text.strip_suffix(".0").unwrap_or(text).trim();
        match digits.parse() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(self.wrong(format!("{name} is {text:?}; write a whole number from 0 to {most}"))),
        }
    }

    /// Where this row is.
    pub(super) fn place(&self) -> Place {
        let at = match &self.source {
            Source::Csv { record, behind, .. } => At::Line(record.position().map_or(0, csv::Position::line) + behind),
            Source::Parquet { row, before, .. } => At::Row(before + *row as u64),
        };
        Place { path: self.path.clone(), at }
    }

    /// The error of this row.
    pub(super) fn wrong(&self, message: impl Into<String>) -> ImportError {
        ImportError::Row { place: self.place(), message: message.into() }
    }
}

fn open_csv(path: &Path) -> Result<(Source, Vec<String>), ImportError> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(at(path))?);
    let beginning = file.fill_buf().map_err(at(path))?;
    let first_line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let behind = u64::from(first_line.ends_with(b"\r"));
    let mut reader = Box::new(csv::Reader::from_reader(file));
    let names = reader.headers().map_err(|error| damaged(path, &error, 0))?;
    let names = names.iter().map(|name| name.trim_start_matches('\u{feff}').to_string()).collect();
    Ok((Source::Csv { reader, record: csv::StringRecord::new(), behind }, names))
}

fn open_parquet(path: &Path) -> Result<(Source, Vec<String>), ImportError> {
    let batches = ParquetBatches::open_any(path, BATCH_ROWS)?;
    let names = batches.schema().fields().iter().map(|field| field.name().clone()).collect();
    Ok((Source::Parquet { batches, columns: Vec::new(), row: usize::MAX, rows: 0, before: 0 }, names))
}

/// The columns of a batch as texts.
fn texts(batch: &RecordBatch, path: &Path) -> Result<Vec<StringArray>, ImportError> {
    let fields = batch.schema();
    let columns = batch.columns().iter().zip(fields.fields());
    let text = |(column, field): (&arrow::array::ArrayRef, &arrow::datatypes::FieldRef)| {
        let wrong = |why: String| ImportError::whole(path, format!("column {} {why}", field.name()));
        let is_plain = match column.data_type() {
            DataType::Dictionary(_, value) => is_plain(value),
            other => is_plain(other),
        };
        if !is_plain {
            return Err(wrong(format!("has the type {}; write numbers or texts", column.data_type())));
        }
        // A file may have any plain type; this writes the text of each.
        let unreadable = |error| wrong(format!("cannot be read: {error}"));
        let options = FormatOptions::default();
        let formatter = ArrayFormatter::try_new(column, &options).map_err(unreadable)?;
        let text = |row| column.is_valid(row).then(|| formatter.value(row).to_string());
        Ok((0..column.len()).map(text).collect())
    };
    columns.map(text).collect()
}

/// Whether the values of a type have texts that an import reads.
fn is_plain(kind: &DataType) -> bool {
    kind.is_integer()
        || kind.is_floating()
        || matches!(
            kind,
            DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
        )
}

/// The error of a CSV file that its reader does not accept.
fn damaged(path: &Path, error: &csv::Error, behind: u64) -> ImportError {
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("has {len} fields, and the first line has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8; save the file as UTF-8".to_string(),
        _ => error.to_string(),
    };
    match error.position() {
        Some(position) => {
            let place = Place { path: path.to_path_buf(), at: At::Line(position.line() + behind) };
            ImportError::Row { place, message }
        }
        None => ImportError::whole(path, message),
    }
}
