//! The data set of a trace set: the schema as SQL, and the statements that fill its tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, BinaryArray, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::files::{FileError, at};
use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};
use crate::vocabulary::sql::{Parameter, decode};

/// The path of the schema below the trace set's folder.
pub const SCHEMA: &str = "schema.sql";

/// The path of the table of statements that fill the tables.
pub const PRELOAD: &str = "dataset/preload.parquet";

/// The columns of the preload.
pub fn preload_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("statement", DataType::Int32, false),
        Field::new("parameters", DataType::Binary, true),
    ]))
}

/// A statement of the preload: its number and its encoded parameters.
pub type Preloaded = (u32, Vec<u8>);

/// Some statements of the preload as a batch.
pub fn preload_batch(rows: &[Preloaded]) -> RecordBatch {
    let statements = Int32Array::from_iter_values(rows.iter().map(|(statement, _)| *statement as i32));
    let parameters = rows.iter().map(|(_, bytes)| (!bytes.is_empty()).then_some(&bytes[..]));
    RecordBatch::try_new(preload_schema(), vec![Arc::new(statements), Arc::new(BinaryArray::from_iter(parameters))])
        .unwrap_or_else(|e| unreachable!("the batch has the columns of its schema: {e}"))
}

/// The schema of the trace set in a folder.
pub fn read_schema(folder: &Path) -> Result<String, FileError> {
    let path = folder.join(SCHEMA);
    std::fs::read_to_string(&path).map_err(|error| at(&path)(error))
}

/// The statements that fill the tables, some thousands at a time.
pub fn preload(
    folder: &Path,
    statements: usize,
) -> Result<impl Iterator<Item = Result<Vec<Preloaded>, TableError>> + Send + use<>, TableError> {
    let path: PathBuf = folder.join(PRELOAD);
    let mut before = 0;
    // A trace set whose rows are in tables has no such statements.
    let batches = path.exists().then(|| ParquetBatches::open(&path, preload_schema(), 4096)).transpose()?;
    Ok(batches.into_iter().flatten().map(move |batch| {
        let batch = batch?;
        let numbers = column::<Int32Array>(&batch, "statement", &path)?;
        let parameters = column::<BinaryArray>(&batch, "parameters", &path)?;
        let row = |row: usize| {
            let wrong = |message: String| TableError::new(&path, format!("row {}: {message}", before + row));
            let number = u32::try_from(numbers.value(row)).ok().filter(|number| (*number as usize) < statements);
            let number = number.ok_or_else(|| wrong(format!("statement {} does not exist", numbers.value(row))))?;
            let bytes = if parameters.is_valid(row) { parameters.value(row) } else { &[] };
            for parameter in decode(bytes) {
                if let Parameter::Result(_) = parameter.map_err(|why| wrong(why.to_string()))? {
                    return Err(wrong("a parameter is a result, and a preload has none".into()));
                }
            }
            Ok((number, bytes.to_vec()))
        };
        let rows = (0..batch.num_rows()).map(row).collect();
        before += batch.num_rows();
        rows
    }))
}

/// The statements that fill the tables, each once.
pub fn preloaded(folder: &Path, statements: usize) -> Result<BTreeSet<u32>, TableError> {
    let mut numbers = BTreeSet::new();
    for some in preload(folder, statements)? {
        numbers.extend(some?.into_iter().map(|(number, _)| number));
    }
    Ok(numbers)
}
