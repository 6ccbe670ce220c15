//! The statements and the schema of a trace set for a database. They are made once for the connections of a
//! worker: operations share their text.

use std::sync::Arc;

use schemas::vocabulary::sql::text::{Definition, Dialect, definitions, is_upsert_of_a_row, translate, without_locks};
use schemas::vocabulary::sql::{Statement, Type, read_statements};
use schemas::workload::sql::checks::{Check, read_checks};
use schemas::workload::sql::dataset::read_schema;
use sqlx::SqlStr;

use super::super::state::sql;
use crate::source::Source;

/// A statement for a database.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its text.
    pub text: SqlStr,
    /// The types of its parameters.
    pub parameters: Arc<[Type]>,
    /// Whether the order of its rows counts.
    pub is_ordered: bool,
    /// Whether it changes one row at most. MariaDB and MySQL count an updated row twice.
    pub is_upsert_of_a_row: bool,
}

/// A condition of the data, for a database.
#[derive(Debug)]
pub struct Conditional {
    /// The condition.
    pub check: Check,
    /// Its query. The error says why it cannot be translated.
    pub query: Result<SqlStr, String>,
}

/// Those of a trace set.
#[derive(Debug)]
pub struct Statements {
    prepared: Vec<Prepared>,
    conditions: Vec<Conditional>,
    definitions: Vec<Definition>,
    locks: bool,
}

impl Statements {
    /// The statements in a database's dialect. Without `keeps_locks`, queries lock no rows. The error names the statement that
    /// cannot be translated. `casts` are what the database has said of their parameters
    /// ([`Engine::casts`](super::super::engine::Engine::casts)); empty before it is asked.
    pub fn of(
        source: &Source,
        to: Dialect,
        keeps_locks: bool,
        casts: &[Vec<Option<String>>],
    ) -> Result<Statements, String> {
        let from = source.sql().dialect;
        let folder = source.folder.display();
        let schema = read_schema(&source.folder).map_err(|e| e.to_string())?;
        let (definitions, keys) =
            definitions(&schema, from, to).map_err(|why| format!("the schema of {folder}: {why}"))?;
        let all = read_statements(&source.folder).map_err(|e| e.to_string())?;
        let mut locks = false;
        let prepared = all.iter().enumerate().map(|(number, statement)| {
            let unlocked = without_locks(&statement.text, from)?;
            locks |= unlocked.is_some();
            let text = unlocked.filter(|_| !keeps_locks).unwrap_or_else(|| statement.text.clone());
            let statement = &Statement { text, ..statement.clone() };
            let casts = casts.get(number).map_or(&[][..], Vec::as_slice);
            let translated = translate(statement, from, to, &keys, casts);
            let text = translated.map_err(|why| format!("statement {number} of {folder} {why}: {}", statement.text))?;
            let parameters = statement.parameters.clone().into();
            let is_upsert_of_a_row = is_upsert_of_a_row(&statement.text, from);
            Ok(Prepared { text: sql(text), parameters, is_ordered: statement.ordered, is_upsert_of_a_row })
        });
        let checks = read_checks(&source.folder, &source.manifest.files, from).map_err(|e| e.to_string())?;
        let conditions = checks.into_iter().map(|check| {
            let query = translate(&check.statement(), from, to, &keys, &[]).map(sql);
            Conditional { query: query.map_err(|why| format!("its query {why}")), check }
        });
        let conditions = conditions.collect();
        let prepared = prepared.collect::<Result<_, String>>()?;
        Ok(Statements { prepared, conditions, definitions, locks })
    }

    /// The statement with this number.
    pub fn get(&self, number: u32) -> Option<&Prepared> {
        self.prepared.get(number as usize)
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> &[Prepared] {
        &self.prepared
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.prepared.len()
    }

    /// Whether a query locks the rows that it reads, as it is written.
    pub fn locks(&self) -> bool {
        self.locks
    }

    /// The conditions of the data.
    pub fn conditions(&self) -> &[Conditional] {
        &self.conditions
    }

    /// The schema.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().filter_map(|one| one.table.as_deref())
    }
}
