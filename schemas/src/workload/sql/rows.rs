//! Rows of the data set as typed Parquet files: one file for each fragment and SQL table, whose columns have
//! the names of the table's columns. Columns that a file leaves out get their default.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arrow::array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderOptions;

use crate::files::FileEntry;
use crate::table::{ParquetBatches, TableError};
use crate::vocabulary::sql::canonical;
use crate::vocabulary::sql::physical::Datum;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL, of any type.
    Null,
    /// A whole number, or 1 and 0 for true and false.
    Integer(i64),
    /// A floating point number.
    Float(f64),
    /// A text. Decimal numbers, dates and times are texts that the column's type gives their meaning.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<Cell> for Datum {
    fn from(cell: Cell) -> Datum {
        match cell {
            Cell::Null => Datum::Null,
            Cell::Integer(number) => Datum::Integer(number),
            Cell::Float(number) => Datum::Float(number),
            Cell::Text(text) => Datum::Text(text),
            Cell::Bytes(bytes) => Datum::Bytes(bytes),
        }
    }
}

/// A file of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFile {
    /// The table, as the schema names it.
    pub table: String,
    /// The file.
    pub path: PathBuf,
}

/// Some rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, at least one.
    pub rows: Vec<Vec<Cell>>,
}

/// The table whose rows of a fragment a file of a trace set holds; None if the file is another one.
fn table_of(path: &str) -> Option<(u32, &str)> {
    let (fragment, file) = path.strip_prefix("dataset/fragment=")?.split_once('/')?;
    Some((fragment.parse().ok()?, file.strip_suffix(".parquet")?))
}

/// The files of a fragment, in the order of these tables.
pub fn row_files(folder: &Path, files: &[FileEntry], fragment: u32, tables: &[&str]) -> Vec<RowFile> {
    let of_table = |table: &&str| {
        // Databases fold the letters of names in different ways.
        let is_its = |file: &&FileEntry| {
            table_of(&file.path).is_some_and(|(of, name)| of == fragment && name.eq_ignore_ascii_case(table))
        };
        let found = files.iter().find(is_its)?;
        Some(RowFile { table: table.to_string(), path: folder.join(&found.path) })
    };
    tables.iter().filter_map(of_table).collect()
}

/// How many rows the files of all tables and fragments have.
pub fn rows_in_files(files: &[FileEntry]) -> u64 {
    files.iter().filter(|file| table_of(&file.path).is_some()).map(|file| file.rows).sum()
}

/// The rows of a file. A batch has at most `cells` values.
pub fn read_rows(
    path: &Path,
    cells: usize,
) -> Result<impl Iterator<Item = Result<Rows, TableError>> + Send + use<>, TableError> {
    // The types are those of the file format, whichever program wrote it.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let batches = ParquetBatches::open_parts(path, options, |builder| {
        let columns = builder.schema().fields().len().max(1);
        builder.with_batch_size((cells / columns).clamp(1, 4_096))
    })?;
    let path = path.to_path_buf();
    Ok(batches
        .filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0))
        .map(move |batch| rows(&batch?, &path)))
}

fn rows(batch: &RecordBatch, path: &Path) -> Result<Rows, TableError> {
    let mut rows: Vec<Vec<Cell>> = (0..batch.num_rows()).map(|_| Vec::with_capacity(batch.num_columns())).collect();
    let mut columns = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let wrong = |message: String| TableError::new(path, format!("column {}: {message}", field.name()));
        fill(array, &mut rows).map_err(wrong)?;
        columns.push(field.name().clone());
    }
    Ok(Rows { columns, rows })
}

/// Adds a value of the column to each row.
fn fill(array: &dyn Array, rows: &mut [Vec<Cell>]) -> Result<(), String> {
    let unknown = || {
        format!(
            "the type {} is none that Encore loads; use integers, floats, booleans, texts, bytes, decimals, dates or \
             timestamps without a time zone",
            array.data_type()
        )
    };
    let wide = match array.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            DataType::Int64
        }
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        same => same.clone(),
    };
    let array = cast(array, &wide).map_err(|e| e.to_string())?;
    let any = array.as_any();
    macro_rules! each {
        ($kind:ty, $cell:expr) => {{
            let array = any.downcast_ref::<$kind>().ok_or_else(unknown)?;
            for (row, cells) in rows.iter_mut().enumerate() {
                cells.push(if array.is_valid(row) { $cell(array.value(row)) } else { Cell::Null });
            }
        }};
    }
    match array.data_type() {
        DataType::Int64 => each!(Int64Array, Cell::Integer),
        DataType::Boolean => each!(BooleanArray, |is_true| Cell::Integer(i64::from(is_true))),
        DataType::Float64 => each!(Float64Array, Cell::Float),
        DataType::Utf8 => each!(StringArray, |text: &str| Cell::Text(text.to_string())),
        DataType::LargeUtf8 => each!(LargeStringArray, |text: &str| Cell::Text(text.to_string())),
        DataType::Binary => each!(BinaryArray, |bytes: &[u8]| Cell::Bytes(bytes.to_vec())),
        DataType::LargeBinary => each!(LargeBinaryArray, |bytes: &[u8]| Cell::Bytes(bytes.to_vec())),
        DataType::Decimal128(_, scale) if *scale >= 0 => {
            let scale = *scale as usize;
            each!(Decimal128Array, |number| Cell::Text(decimal(number, scale)));
        }
        DataType::Date32 => each!(Date32Array, |days| Cell::Text(date(days))),
        DataType::Timestamp(..) => each!(TimestampMicrosecondArray, |time| Cell::Text(timestamp(time))),
        _ => return Err(unknown()),
    }
    Ok(())
}

/// The digits of a decimal number with so many of them after its point.
pub fn decimal(number: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if number < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn date(days: i32) -> String {
    let mut text = String::new();
    let (year, month, day) = canonical::date_of(days.into());
    canonical::date(year, month, day, &mut text);
    text
}

/// A time in microseconds since 1970 as `YYYY-MM-DD HH:MM:SS`, with a fraction if there is one.
pub fn timestamp(microseconds: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    let mut text = date(microseconds.div_euclid(DAY) as i32);
    // Writing to a text cannot fail.
    let _ = write!(text, " ");
    canonical::time(microseconds.rem_euclid(DAY) as u64, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int16Array};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn written(columns: Vec<(&str, ArrayRef)>) -> tempfile::NamedTempFile {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = ArrowWriter::try_new(file.as_file_mut(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    #[test]
    fn every_type_becomes_a_value() {
        let money = Decimal128Array::from(vec![Some(-5), Some(123_400)]).with_precision_and_scale(12, 2).unwrap();
        let file = written(vec![
            ("a", Arc::new(Int16Array::from(vec![Some(7), None])) as ArrayRef),
            ("b", Arc::new(money)),
            ("c", Arc::new(TimestampMicrosecondArray::from(vec![0, 86_400_000_000 * 366 + 1_500_000]))),
            ("d", Arc::new(Date32Array::from(vec![0, 59]))),
            ("e", Arc::new(BooleanArray::from(vec![true, false]))),
            ("f", Arc::new(StringArray::from(vec!["x", "y"]))),
        ]);
        let all: Vec<Rows> = read_rows(file.path(), 100).unwrap().collect::<Result<_, _>>().unwrap();
        let text = |text: &str| Cell::Text(text.into());
        let [Rows { columns, rows }] = &all[..] else { panic!("{all:?}") };
        assert_eq!(columns.concat(), "abcdef");
        assert_eq!(
            rows[0],
            [
                Cell::Integer(7),
                text("-0.05"),
                text("1970-01-01 00:00:00"),
                text("1970-01-01"),
                Cell::Integer(1),
                text("x")
            ]
        );
        assert_eq!(rows[1][..4], [Cell::Null, text("1234.00"), text("1971-01-02 00:00:01.5"), text("1970-03-01")]);
        // A batch has no more values than asked for.
        assert_eq!(read_rows(file.path(), 6).unwrap().count(), 2);
    }

    #[test]
    fn a_file_is_of_a_table_of_a_fragment() {
        let entry = |path: &str| FileEntry { path: path.into(), bytes: 0, rows: 3, blake3: String::new() };
        let files = ["dataset/fragment=0/B.parquet", "dataset/fragment=0/a.parquet", "dataset/fragment=1/a.parquet"];
        let files: Vec<FileEntry> = files.into_iter().chain(["dataset/preload.parquet"]).map(entry).collect();
        let found = row_files(Path::new("t"), &files, 0, &["a", "b", "c"]);
        assert_eq!(found.iter().map(|file| &file.table[..]).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(rows_in_files(&files), 9);
    }
}
