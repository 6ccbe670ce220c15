//! The tables of a design, as a TOML file that people edit.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::super::file::{self, Wrong, list, quoted};
use super::super::tables::{Table, Tables};

/// The header of a table in the file.
pub(super) const ENTRIES: &str = "tables";

/// The most characters of a table's name, by the server.
const NAME_MAX: usize = 48;

/// The name of another table of the store, which holds the records of key-value workloads.
const RECORDS: &str = "usertable";

/// What follows a clustering column that descends.
const DESCENDS: &str = " desc";

/// The tables of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideDesign {
    /// They are listed by the table of the schema. The first one of a table holds all its columns.
    pub tables: Vec<WideTable>,
}

/// A table of the store: a row for each row of a table of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideTable {
    /// Its name.
    pub name: String,
    /// The table of the schema.
    pub table: String,
    /// The columns that decide the partition.
    pub partition: Vec<String>,
    /// The columns that order the rows of a partition, with ` desc` if they descend.
    pub clustering: Vec<String>,
    /// The columns that it has.
    pub columns: Vec<String>,
}

/// A table of the store by the places of its table and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wide {
    /// Its name.
    pub name: String,
    /// The table of the schema.
    pub table: usize,
    /// The columns that decide the partition.
    pub partition: Vec<usize>,
    /// The columns that order the rows of a partition, and whether they descend.
    pub clustering: Vec<(usize, bool)>,
    /// The columns that it has.
    pub columns: BTreeSet<usize>,
}

impl Wide {
    /// The columns that decide a row.
    pub fn key(&self) -> impl Iterator<Item = usize> + '_ {
        self.partition.iter().copied().chain(self.clustering.iter().map(|(column, _)| *column))
    }
}

impl WideDesign {
    /// Reads a file. The error says what is wrong in it, and in which line.
    pub fn parse(text: &str) -> Result<WideDesign, String> {
        file::parse(text)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for WideTable { name, table, partition, clustering, columns } in &self.tables {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\n[[{ENTRIES}]]\nname = {}\ntable = {}", quoted(name), quoted(table));
            let _ = writeln!(text, "partition = {}\nclustering = {}", list(partition), list(clustering));
            let _ = writeln!(text, "columns = {}", list(columns));
        }
        text.trim_start().to_string()
    }

    /// The tables by the places of their tables and columns. The error names the one that is wrong.
    pub fn resolve(&self, tables: &Tables) -> Result<Vec<Wide>, Wrong> {
        let mut all: Vec<Wide> = Vec::new();
        for (entry, one) in self.tables.iter().enumerate() {
            let wide = one.resolve(tables, &all);
            let why = |(key, why)| Wrong { at: Some((entry, key)), why: format!("table {:?} {why}", one.name) };
            all.push(wide.map_err(why)?);
        }
        for (place, table) in tables.0.iter().enumerate() {
            if !all.iter().any(|wide| wide.table == place) {
                let why = format!("no entry is of table {} of the schema; add one with all its columns", table.name);
                return Err(Wrong::whole(why));
            }
        }
        Ok(all)
    }
}

/// A clustering column as it is written.
pub(super) fn clustered(table: &Table, column: usize, descends: bool) -> String {
    format!("{}{}", table.columns[column].name, if descends { DESCENDS } else { "" })
}

/// A name that a table can have, from another one.
pub(super) fn name_of(text: &str) -> String {
    let plain = text.chars().map(|one| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '_' });
    plain.take(NAME_MAX).collect()
}

impl WideTable {
    /// The same by places, beside those before it. The error has the key that is wrong.
    fn resolve(&self, tables: &Tables, before: &[Wide]) -> Result<Wide, (&'static str, String)> {
        let place = tables.named(&self.table)?;
        let table = &tables.0[place];
        let column = |key, name: &str| table.named(key, name);
        let columns = self.columns.iter().map(|name| column("columns", name)).collect::<Result<BTreeSet<_>, _>>()?;
        let partition = self.partition.iter().map(|name| column("partition", name)).collect::<Result<Vec<_>, _>>()?;
        let clustering = self.clustering.iter().map(|name| match name.strip_suffix(DESCENDS) {
            Some(plain) => Ok((column("clustering", plain)?, true)),
            None => Ok((column("clustering", name)?, false)),
        });
        let clustering = clustering.collect::<Result<Vec<_>, _>>()?;
        let wide = Wide { name: self.name.clone(), table: place, partition, clustering, columns };
        wide.check(table, before)?;
        Ok(wide)
    }
}

impl Wide {
    fn check(&self, table: &Table, before: &[Wide]) -> Result<(), (&'static str, String)> {
        let name = |column: usize| &table.columns[column].name;
        let is_name = self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || self.name.is_empty() || self.name.len() > NAME_MAX {
            let why = format!("has a name that Cassandra refuses; use letters, digits and _, at most {NAME_MAX}");
            return Err(("name", why));
        }
        if self.name.starts_with("encore_") || self.name == RECORDS {
            return Err(("name", "has a name that Encore uses itself; rename it".into()));
        }
        if before.iter().any(|other| other.name == self.name) {
            return Err(("name", "is there twice; rename one".into()));
        }
        if self.partition.is_empty() {
            return Err(("partition", "has no column that decides the partition; add one".into()));
        }
        let mut seen = BTreeSet::new();
        for column in self.key() {
            if !seen.insert(column) {
                return Err(("clustering", format!("has {} twice in its key; remove one", name(column))));
            }
            if !self.columns.contains(&column) {
                return Err((
                    "columns",
                    format!("lacks column {}, which is of its key; add it to columns", name(column)),
                ));
            }
        }
        if table.key.is_empty() {
            return Err(("table", format!("cannot be: table {}", no_key(table))));
        }
        if let Some(missing) = table.key.iter().find(|column| !seen.contains(column)) {
            let why = format!(
                "does not have {} of the primary key in partition or clustering, so that rows would overwrite each other; \
                 add it to clustering",
                name(*missing)
            );
            return Err(("clustering", why));
        }
        let is_first = !before.iter().any(|other| other.table == self.table);
        if is_first && self.columns.len() < table.columns.len() {
            let lacks =
                table.names((0..table.columns.len()).filter(|column| !self.columns.contains(column))).join(", ");
            let why = format!("is the first one of table {} and must have all its columns; add {lacks}", table.name);
            return Err(("columns", why));
        }
        let nullable = self.key().find(|column| is_first && !table.columns[*column].is_required);
        if let Some(column) = nullable {
            let why = format!(
                "is the first one of table {}, and {} of its key may be NULL, which a key cannot be; take it out of the key",
                table.name,
                name(column)
            );
            return Err(("clustering", why));
        }
        Ok(())
    }
}

/// Why a table without a primary key has no place.
pub(super) fn no_key(table: &Table) -> String {
    format!(
        "{} has no primary key; Cassandra has one row for each key, so give the table a primary key, or choose another store",
        table.name
    )
}
