//! Answers as a table, CSV or JSON.

use std::fmt::Write;

use comfy_table::CellAlignment;
use duckdb::types::Value;

use super::{Answer, Database};
use crate::error::AnalyzeError;
use crate::tables::PLAIN;

/// The output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A text table.
    Table,
    /// Comma-separated values with a header line (RFC 4180).
    Csv,
    /// A JSON array with one object per row.
    Json,
}

/// An answer as text, with a line break at the end.
pub fn print(database: &Database, answer: &Answer, format: Format) -> Result<String, AnalyzeError> {
    Ok(match format {
        Format::Table => table(database, answer)?,
        Format::Csv => csv(database, answer)?,
        Format::Json => {
            let mut out = json(database, answer)?.to_string();
            out.push('\n');
            out
        }
    })
}

fn table(database: &Database, answer: &Answer) -> Result<String, AnalyzeError> {
    let mut table = comfy_table::Table::new();
    table.load_style(PLAIN).set_header(&answer.columns);
    for row in &answer.rows {
        table.add_row(row.iter().map(|value| text(database, value)).collect::<Result<Vec<_>, _>>()?);
    }
    for index in 0..answer.columns.len() {
        let mut values = answer.rows.iter().map(|row| &row[index]).filter(|value| **value != Value::Null).peekable();
        if values.peek().is_some()
            && values.all(is_number)
            && let Some(column) = table.column_mut(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let rows = answer.rows.len();
    Ok(format!("{}\n{rows} {}\n", table.trim_fmt(), if rows == 1 { "row" } else { "rows" }))
}

fn csv(database: &Database, answer: &Answer) -> Result<String, AnalyzeError> {
    let mut out = String::new();
    let names: Vec<String> = answer.columns.iter().map(|name| csv_field(name)).collect();
    out.push_str(&names.join(","));
    out.push('\n');
    for row in &answer.rows {
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if *value != Value::Null {
                out.push_str(&csv_field(&text(database, value)?));
            }
        }
        out.push('\n');
    }
    Ok(out)
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

fn is_number(value: &Value) -> bool {
    matches!(
        value,
        Value::TinyInt(_)
            | Value::SmallInt(_)
            | Value::Int(_)
            | Value::BigInt(_)
            | Value::HugeInt(_)
            | Value::UTinyInt(_)
            | Value::USmallInt(_)
            | Value::UInt(_)
            | Value::UBigInt(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::Decimal(_)
    )
}

fn text(database: &Database, value: &Value) -> Result<String, AnalyzeError> {
    Ok(match value {
        Value::Null => "NULL".to_string(),
        Value::Text(text) | Value::Enum(text) => text.clone(),
        Value::List(items) | Value::Array(items) => {
            let mut out = "[".to_string();
            for (index, item) in items.iter().enumerate() {
                let separator = if index > 0 { ", " } else { "" };
                let _ = write!(out, "{separator}{}", text(database, item)?);
            }
            out + "]"
        }
        Value::Struct(_) | Value::Map(_) | Value::Union(_) => to_json(database, value)?.to_string(),
        // The common types are converted here: DuckDB would need one statement per value.
        Value::Boolean(b) => b.to_string(),
        Value::TinyInt(n) => n.to_string(),
        Value::SmallInt(n) => n.to_string(),
        Value::Int(n) => n.to_string(),
        Value::BigInt(n) => n.to_string(),
        Value::HugeInt(n) => n.to_string(),
        Value::UTinyInt(n) => n.to_string(),
        Value::USmallInt(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::UBigInt(n) => n.to_string(),
        Value::Float(n) => format!("{n:?}"),
        Value::Double(n) => format!("{n:?}"),
        rare => database.text_of(rare)?,
    })
}

fn json(database: &Database, answer: &Answer) -> Result<serde_json::Value, AnalyzeError> {
    let mut rows = Vec::with_capacity(answer.rows.len());
    for row in &answer.rows {
        let mut object = serde_json::Map::new();
        for (name, value) in answer.columns.iter().zip(row) {
            object.insert(name.clone(), to_json(database, value)?);
        }
        rows.push(serde_json::Value::Object(object));
    }
    Ok(rows.into())
}

/// Numbers that JSON readers may round become strings, like every other type that JSON does not
/// have.
fn to_json(database: &Database, value: &Value) -> Result<serde_json::Value, AnalyzeError> {
    Ok(match value {
        Value::Null => serde_json::Value::Null,
        Value::Boolean(b) => (*b).into(),
        Value::TinyInt(n) => (*n).into(),
        Value::SmallInt(n) => (*n).into(),
        Value::Int(n) => (*n).into(),
        Value::BigInt(n) => (*n).into(),
        Value::UTinyInt(n) => (*n).into(),
        Value::USmallInt(n) => (*n).into(),
        Value::UInt(n) => (*n).into(),
        Value::UBigInt(n) => (*n).into(),
        Value::HugeInt(n) => i64::try_from(*n).map_or_else(|_| n.to_string().into(), Into::into),
        Value::Float(n) => (*n).into(),
        Value::Double(n) => (*n).into(),
        Value::Decimal(_) => {
            let text = database.text_of(value)?;
            text.parse::<f64>().map_or_else(|_| text.clone().into(), Into::into)
        }
        Value::List(items) | Value::Array(items) => {
            items.iter().map(|item| to_json(database, item)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Value::Struct(fields) => {
            let mut object = serde_json::Map::new();
            for (name, value) in fields.iter() {
                object.insert(name.clone(), to_json(database, value)?);
            }
            object.into()
        }
        Value::Map(entries) => {
            let mut object = serde_json::Map::new();
            for (key, value) in entries.iter() {
                object.insert(text(database, key)?, to_json(database, value)?);
            }
            object.into()
        }
        Value::Union(value) => to_json(database, value)?,
        other => text(database, other)?.into(),
    })
}
