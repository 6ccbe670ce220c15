//! The tables of a schema, as far as documents need to know them.

use sqlparser::ast::{ColumnOption, CreateTable, DataType, Statement as Parsed, TableConstraint};
use sqlparser::parser::Parser;

use super::super::text::Dialect;
use super::super::text::types::{Holds, holds};
use super::logical::{constant, last_name};
use super::term::Constant;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, and truth values as 1 and 0.
    Integer,
    /// Decimal numbers.
    Decimal,
    /// Floating point numbers of 32 bits.
    Float32,
    /// Floating point numbers of 64 bits.
    Float,
    /// Texts.
    Text,
    /// Bytes.
    Bytes,
    /// Dates with times, as canonical texts, whose order is that of time.
    Timestamp,
    /// Dates, as texts.
    Date,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// What an insert that leaves it out gives it.
    pub default: Constant,
    /// Whether the database counts it up, so that inserts must not leave it out here.
    pub counts_up: bool,
    /// Whether it is never NULL.
    pub is_required: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The columns of its primary key; none if it has no key.
    pub key: Vec<usize>,
    /// Other sets of columns that no two rows have the same values of.
    pub unique: Vec<Vec<usize>>,
}

impl Table {
    /// A column by its name, whatever the letters' case.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The column that the key of a physical schema names. The error has the key and what is wrong with it.
    pub(super) fn named(&self, key: &'static str, name: &str) -> Result<usize, (&'static str, String)> {
        self.column(name).ok_or_else(|| {
            let known = self.names(0..self.columns.len()).join(", ");
            (key, format!("has {name:?}, which is no column of table {}; its columns are {known}", self.name))
        })
    }

    /// The names of columns.
    pub fn names(&self, columns: impl IntoIterator<Item = usize>) -> Vec<String> {
        columns.into_iter().map(|column| self.columns[column].name.clone()).collect()
    }
}

/// The tables of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables(pub Vec<Table>);

impl Tables {
    /// Reads a schema. The error names the table that cannot be documents.
    pub fn read(schema: &str, dialect: Dialect) -> Result<Tables, String> {
        let parsed = Parser::parse_sql(&*dialect.grammar(), schema)
            .map_err(|e| format!("the schema is not SQL that Encore knows: {e}"))?;
        let mut tables = Vec::new();
        for statement in parsed {
            match statement {
                Parsed::CreateTable(table) => tables.push(read_table(&table)?),
                // Each access path has its own collection, and a query of a view is refused.
                Parsed::CreateIndex(_) | Parsed::CreateView(_) => {}
                other => return Err(format!("the schema has a statement that is no table: {other}")),
            }
        }
        Ok(Tables(tables))
    }

    /// A table by its name, whatever the letters' case.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// The table that a physical schema names. The error has the key and what is wrong with it.
    pub(super) fn named(&self, name: &str) -> Result<usize, (&'static str, String)> {
        self.find(name).ok_or_else(|| {
            let known = self.0.iter().map(|table| &table.name[..]).collect::<Vec<_>>().join(", ");
            ("table", format!("is of {name:?}, which is no table of the schema; its tables are {known}"))
        })
    }
}

fn read_table(created: &CreateTable) -> Result<Table, String> {
    let name = last_name(&created.name);
    if name.starts_with("system.") || name.starts_with("encore_") || name.contains('$') || name.is_empty() {
        return Err(format!("table {name:?} has a name that a collection cannot have; rename it"));
    }
    let mut table = Table { name, columns: Vec::new(), key: Vec::new(), unique: Vec::new() };
    for (at, column) in created.columns.iter().enumerate() {
        let own = column.name.value.clone();
        if own.is_empty() || own.starts_with('$') || own.contains('.') || own == "_id" {
            return Err(format!("table {}: {own:?} is no name for a field of documents; rename it", table.name));
        }
        let kind = kind(&column.data_type).ok_or_else(|| {
            format!("table {}, column {own}: documents have no type for {}", table.name, column.data_type)
        })?;
        let mut read = Column { name: own, kind, default: Constant::Null, counts_up: false, is_required: false };
        read.counts_up = matches!(holds(&column.data_type), Holds::Serial(_));
        for option in &column.options {
            match &option.option {
                ColumnOption::PrimaryKey(_) => table.key = vec![at],
                ColumnOption::NotNull => read.is_required = true,
                ColumnOption::Unique(_) => table.unique.push(vec![at]),
                ColumnOption::Default(value) => {
                    read.default = constant(value).ok_or_else(|| {
                        format!("table {}, column {}: the default {value} is no constant", table.name, read.name)
                    })?;
                }
                ColumnOption::Generated { .. } | ColumnOption::Identity(_) => read.counts_up = true,
                ColumnOption::DialectSpecific(tokens) => {
                    let text = tokens.iter().map(ToString::to_string).collect::<String>().to_ascii_lowercase();
                    read.counts_up |= text == "auto_increment" || text == "autoincrement";
                }
                _ => {}
            }
        }
        table.columns.push(read);
    }
    for constraint in &created.constraints {
        let columns = |names: Vec<String>| {
            let all = names.iter().map(|name| table.column(name.trim_matches(['`', '"'])));
            all.collect::<Option<Vec<usize>>>().ok_or_else(|| format!("table {}: {constraint} is unknown", table.name))
        };
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                table.key = columns(key.columns.iter().map(ToString::to_string).collect())?;
            }
            TableConstraint::Unique(unique) => {
                let columns = columns(unique.columns.iter().map(ToString::to_string).collect())?;
                table.unique.push(columns);
            }
            _ => {}
        }
    }
    let key = table.key.clone();
    for column in &key {
        table.columns[*column].is_required = true;
    }
    table.unique.retain(|columns| *columns != key);
    Ok(table)
}

fn kind(declared: &DataType) -> Option<Kind> {
    Some(match holds(declared) {
        Holds::Integer(64, true) => Kind::Decimal,
        Holds::Integer(..) | Holds::Serial(_) | Holds::Boolean => Kind::Integer,
        Holds::Decimal(_) => Kind::Decimal,
        Holds::Float => Kind::Float32,
        Holds::Double => Kind::Float,
        Holds::Characters(..) | Holds::Text | Holds::Uuid => Kind::Text,
        Holds::Bytes => Kind::Bytes,
        Holds::Timestamp(_) => Kind::Timestamp,
        Holds::Same if matches!(declared, DataType::Date) => Kind::Date,
        Holds::Json | Holds::Same => return None,
    })
}
