//! What a check of the conditions of a trace set's data has found: `audit/checks.parquet`, one row a condition.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;

use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};

/// How many violating rows of a condition are kept.
pub const ROWS_KEPT: usize = 10;

/// The longest text of a violating row, in characters.
pub const ROW_CHARS_MAX: usize = 1000;

/// A condition that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// The condition in one line.
    pub title: String,
    /// What was found.
    pub found: Found,
    /// How long the query took.
    pub took_ns: u64,
}

/// What the check of a condition has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The condition holds.
    Holds,
    /// So many rows violate it.
    Violated {
        /// Their number.
        rows: u64,
        /// The first of them ([`ROWS_KEPT`]) as texts, such as `w_id = 1, sum = 9`.
        first: Vec<String>,
    },
    /// The query failed, so nothing is known.
    Failed(String),
    /// The condition holds for a freshly loaded store only, and sessions have run.
    LoadOnly,
}

impl Found {
    /// The name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Found::Holds => "holds",
            Found::Violated { .. } => "violated",
            Found::Failed(_) => "failed",
            Found::LoadOnly => "load only",
        }
    }

    /// Whether the condition is violated, or could not be checked.
    pub const fn is_bad(&self) -> bool {
        matches!(self, Found::Violated { .. } | Found::Failed(_))
    }
}

impl Condition {
    /// What is wrong with it, in one line; None if nothing is.
    pub fn in_words(&self) -> Option<String> {
        match &self.found {
            Found::Holds | Found::LoadOnly => None,
            Found::Violated { rows, .. } => Some(violated(&self.name, &self.title, *rows)),
            Found::Failed(why) => Some(unchecked(&self.name, why)),
        }
    }

    /// The same with the rows, one a line, indented.
    pub fn with_rows(&self) -> Option<String> {
        let rows = match &self.found {
            Found::Violated { rows, first } => violating_rows(first, *rows),
            _ => String::new(),
        };
        Some(self.in_words()? + &rows)
    }
}

/// The first violating rows of so many, each on a new line, indented.
pub fn violating_rows(first: &[String], all: u64) -> String {
    let mut out: String = first.iter().map(|row| format!("\n    {row}")).collect();
    let more = all.saturating_sub(first.len() as u64);
    if more > 0 {
        out += &format!("\n    and {} more", crate::words::thousands(more));
    }
    out
}

/// A condition that is violated, in one line.
pub fn violated(name: &str, title: &str, rows: u64) -> String {
    format!("condition {name} is violated by {}: {title}", crate::words::plural(rows, "row"))
}

/// A condition that could not be checked, in one line.
pub fn unchecked(name: &str, why: &str) -> String {
    format!("condition {name} could not be checked: {why}")
}

/// The columns of the table.
pub fn schema() -> SchemaRef {
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    Arc::new(Schema::new(vec![
        Field::new("experiment", DataType::Int32, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("title", DataType::Utf8, false),
        Field::new("outcome", DataType::Utf8, false),
        Field::new("violations", DataType::Int64, true),
        Field::new("first_rows", DataType::List(item), false),
        Field::new("error", DataType::Utf8, true),
        Field::new("took_ns", DataType::Int64, false),
    ]))
}

fn batch(experiment: u32, all: &[Condition]) -> RecordBatch {
    let texts =
        |text: fn(&Condition) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(all.iter().map(text))) };
    let violations = all.iter().map(|one| match &one.found {
        Found::Holds => Some(0),
        Found::Violated { rows, .. } => Some(*rows as i64),
        Found::Failed(_) | Found::LoadOnly => None,
    });
    let errors = all.iter().map(|one| match &one.found {
        Found::Failed(why) => Some(why.as_str()),
        _ => None,
    });
    let mut rows = ListBuilder::new(StringBuilder::new());
    for one in all {
        if let Found::Violated { first, .. } = &one.found {
            first.iter().for_each(|row| rows.values().append_value(row));
        }
        rows.append(true);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![experiment as i32; all.len()])),
        texts(|one| &one.name),
        texts(|one| &one.title),
        texts(|one| one.found.name()),
        Arc::new(Int64Array::from_iter(violations)),
        Arc::new(rows.finish()),
        Arc::new(StringArray::from_iter(errors)),
        Arc::new(Int64Array::from_iter_values(all.iter().map(|one| one.took_ns as i64))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap_or_else(|e| unreachable!("every row fills every column: {e}"))
}

/// Writes the table of an experiment. The file gets its name when it is complete.
pub fn write(path: &Path, experiment: u32, all: &[Condition]) -> Result<(), TableError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let refused = |e: std::io::Error| TableError::refused(path, e);
    let file = File::create(part).map_err(refused)?;
    let written = ArrowWriter::try_new(file, schema(), None).and_then(|mut writer| {
        writer.write(&batch(experiment, all))?;
        writer.close()
    });
    written.map_err(|e| TableError::refused(path, e))?;
    std::fs::rename(part, path).map_err(refused)
}

/// Reads the table of an experiment.
pub fn read(path: &Path) -> Result<Vec<Condition>, TableError> {
    let mut all = Vec::new();
    for batch in ParquetBatches::open(path, schema(), 1024)? {
        let batch = batch?;
        let texts = |name: &str| column::<StringArray>(&batch, name, path);
        let (names, titles, outcomes, errors) = (texts("name")?, texts("title")?, texts("outcome")?, texts("error")?);
        let numbers = |name: &str| column::<Int64Array>(&batch, name, path);
        let (violations, took_ns) = (numbers("violations")?, numbers("took_ns")?);
        let rows = column::<ListArray>(&batch, "first_rows", path)?;
        for row in 0..batch.num_rows() {
            let found = match outcomes.value(row) {
                "holds" => Found::Holds,
                "violated" => {
                    let first = rows.value(row);
                    let first = first.as_any().downcast_ref::<StringArray>();
                    let first = first.into_iter().flatten().flatten().map(String::from).collect();
                    Found::Violated { rows: violations.value(row).max(0) as u64, first }
                }
                "failed" => Found::Failed(errors.value(row).to_string()),
                "load only" => Found::LoadOnly,
                other => return Err(TableError::new(path, format!("row {row}: {other:?} is no outcome of a check"))),
            };
            let (name, title) = (names.value(row).to_string(), titles.value(row).to_string());
            all.push(Condition { name, title, found, took_ns: took_ns.value(row).max(0) as u64 });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, found: Found) -> Condition {
        Condition { name: name.into(), title: "Parts add up".into(), found, took_ns: 7 }
    }

    #[test]
    fn what_was_found_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checks.parquet");
        let all = vec![
            condition("1", Found::Holds),
            condition("2", Found::Violated { rows: 12, first: vec!["a = 1".into(), "a = NULL".into()] }),
            condition("3", Found::Failed("no such table: t".into())),
            condition("4", Found::LoadOnly),
        ];
        write(&path, 3, &all).unwrap();
        assert_eq!(read(&path).unwrap(), all);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::write(&path, b"PAR1").unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn a_violated_condition_is_said_with_its_rows() {
        let two = condition("2", Found::Violated { rows: 3, first: vec!["a = 1".into(), "a = 2".into()] });
        let expect = "condition 2 is violated by 3 rows: Parts add up\n    a = 1\n    a = 2\n    and 1 more";
        assert_eq!(two.with_rows().unwrap(), expect);
        let failed = condition("3", Found::Failed("no such table".into())).with_rows();
        assert_eq!(failed.unwrap(), "condition 3 could not be checked: no such table");
        assert_eq!(condition("1", Found::Holds).with_rows(), None);
    }
}
