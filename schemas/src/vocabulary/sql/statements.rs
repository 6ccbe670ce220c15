//! The statements of a trace set: `statements.parquet`.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{BooleanArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Type, Verb};
use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};

/// The path of the table below the trace set's folder.
pub const STATEMENTS: &str = "statements.parquet";

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// A short name for people; empty if it has none.
    pub name: String,
    /// The text, with `?` for each parameter, in the dialect of the trace set.
    pub text: String,
    /// The types of its parameters.
    pub parameters: Vec<Type>,
    /// Whether it observes data.
    pub reads: bool,
    /// Whether it changes data.
    pub writes: bool,
    /// Whether the order of its rows counts.
    pub ordered: bool,
}

impl Statement {
    /// Its verb. A statement that was read or imported has one.
    pub fn verb(&self) -> Option<Verb> {
        Verb::of(self.reads, self.writes)
    }

    /// What the manifest says of it: its verb and the types of its parameters, such as `query(integer,text)`.
    pub fn signature(&self) -> String {
        let verb = self.verb().map_or("none", Verb::name);
        format!("{verb}({})", types_text(&self.parameters))
    }

    /// The verb and the types of a [signature](Statement::signature).
    pub fn read_signature(text: &str) -> Option<(Verb, Vec<Type>)> {
        let (verb, types) = text.strip_suffix(')')?.split_once('(')?;
        let verb = Verb::ALL.into_iter().find(|known| known.name() == verb && known.control().is_none())?;
        Some((verb, read_types(types).ok()?))
    }
}

fn types_text(types: &[Type]) -> String {
    types.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
}

fn read_types(text: &str) -> Result<Vec<Type>, String> {
    text.split(',').filter(|name| !name.is_empty()).map(str::parse).collect()
}

/// The columns of the table. The number of a statement is its row.
pub fn statements_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("statement", DataType::Int32, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, false),
        Field::new("parameters", DataType::Utf8, false),
        Field::new("reads", DataType::Boolean, false),
        Field::new("writes", DataType::Boolean, false),
        Field::new("ordered", DataType::Boolean, false),
    ]))
}

/// The table.
pub fn statements_batch(statements: &[Statement]) -> RecordBatch {
    let texts = |text: fn(&Statement) -> String| Arc::new(StringArray::from_iter_values(statements.iter().map(text)));
    let flags = |flag: fn(&Statement) -> bool| BooleanArray::from(statements.iter().map(flag).collect::<Vec<_>>());
    RecordBatch::try_new(
        statements_schema(),
        vec![
            Arc::new(Int32Array::from_iter_values(0..statements.len() as i32)),
            texts(|one| one.name.clone()),
            texts(|one| one.text.clone()),
            texts(|one| types_text(&one.parameters)),
            Arc::new(flags(|one| one.reads)),
            Arc::new(flags(|one| one.writes)),
            Arc::new(flags(|one| one.ordered)),
        ],
    )
    .unwrap_or_else(|e| unreachable!("the batch has the columns of its schema: {e}"))
}

/// The statements of the trace set in a folder.
pub fn read_statements(folder: &Path) -> Result<Vec<Statement>, TableError> {
    let path = folder.join(STATEMENTS);
    let mut statements = Vec::new();
    for batch in ParquetBatches::open(&path, statements_schema(), 1024)? {
        let batch = batch?;
        let number = column::<Int32Array>(&batch, "statement", &path)?;
        let texts = |name: &str| column::<StringArray>(&batch, name, &path);
        let flags = |name: &str| column::<BooleanArray>(&batch, name, &path);
        let (name, text, types) = (texts("name")?, texts("text")?, texts("parameters")?);
        let (reads, writes, ordered) = (flags("reads")?, flags("writes")?, flags("ordered")?);
        for row in 0..batch.num_rows() {
            let wrong = |message: String| TableError::new(&path, format!("statement {}: {message}", statements.len()));
            if usize::try_from(number.value(row)) != Ok(statements.len()) {
                return Err(wrong(format!("has number {}; the statements are not in order", number.value(row))));
            }
            let statement = Statement {
                name: name.value(row).to_string(),
                text: text.value(row).to_string(),
                parameters: read_types(types.value(row)).map_err(wrong)?,
                reads: reads.value(row),
                writes: writes.value(row),
                ordered: ordered.value(row),
            };
            if statement.verb().is_none() {
                return Err(wrong("neither reads nor writes".into()));
            }
            statements.push(statement);
        }
    }
    Ok(statements)
}
