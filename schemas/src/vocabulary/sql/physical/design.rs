//! The collections of a design, as a TOML file that people edit.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::file::{self, Wrong, list, quoted};
use super::tables::Tables;

/// The header of a collection in the file.
pub(super) const ENTRIES: &str = "collections";

/// The collections of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// They are listed by table. The first one of a table holds all its columns.
    pub collections: Vec<Collection>,
}

/// A collection: a document for each row of its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// The table.
    pub table: String,
    /// The sets of columns that it finds documents by. Each has an index, except the primary key, which is the id.
    pub paths: Vec<Vec<String>>,
    /// The columns that its documents have.
    pub columns: Vec<String>,
}

/// A collection by the places of its table and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The table.
    pub table: usize,
    /// Its access paths.
    pub paths: Vec<Vec<usize>>,
    /// The columns that it holds.
    pub columns: BTreeSet<usize>,
}

impl Design {
    /// Reads a file. The error says what is wrong in it, and in which line.
    pub fn parse(text: &str) -> Result<Design, String> {
        file::parse(text)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Collection { name, table, paths, columns } in &self.collections {
            let paths = paths.iter().map(|path| list(path)).collect::<Vec<_>>().join(", ");
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\n[[{ENTRIES}]]\nname = {}\ntable = {}", quoted(name), quoted(table));
            let _ = writeln!(text, "paths = [{paths}]\ncolumns = {}", list(columns));
        }
        text.trim_start().to_string()
    }

    /// The collections by the places of their tables and columns. The error names the collection that is wrong.
    pub fn resolve(&self, tables: &Tables) -> Result<Vec<Placed>, Wrong> {
        let mut all: Vec<Placed> = Vec::new();
        for (entry, collection) in self.collections.iter().enumerate() {
            let placed = collection.resolve(tables, &all);
            all.push(placed.map_err(|(key, why)| Wrong {
                at: Some((entry, key)),
                why: format!("collection {:?} {why}", collection.name),
            })?);
        }
        for (place, table) in tables.0.iter().enumerate() {
            if !all.iter().any(|collection| collection.table == place) {
                let why = format!("table {} has no collection; add one with all its columns", table.name);
                return Err(Wrong::whole(why));
            }
        }
        Ok(all)
    }
}

impl Collection {
    /// The same by places, beside those before it. The error has the key that is wrong.
    fn resolve(&self, tables: &Tables, before: &[Placed]) -> Result<Placed, (&'static str, String)> {
        let place = tables.named(&self.table)?;
        let table = &tables.0[place];
        let column = |key, name: &String| table.named(key, name);
        let columns =
            self.columns.iter().map(|name| column("columns", name)).collect::<Result<BTreeSet<usize>, _>>()?;
        let path =
            |path: &Vec<String>| path.iter().map(|name| column("paths", name)).collect::<Result<Vec<usize>, _>>();
        let paths = self.paths.iter().map(path).collect::<Result<Vec<_>, _>>()?;
        let needed = table.key.iter().chain(paths.iter().flatten());
        if let Some(missing) = needed.copied().find(|column| !columns.contains(column)) {
            let name = &table.columns[missing].name;
            return Err(("columns", format!("lacks column {name}, which its key or a path has; add it to columns")));
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains('$') && !name.starts_with("system.");
        if !is_name(&self.name) || self.name.starts_with("encore_") {
            return Err(("name", "has a name that a collection cannot have; rename it".into()));
        }
        if before.iter().any(|other| other.name == self.name) {
            return Err(("name", "is there twice; rename one".into()));
        }
        let is_first = !before.iter().any(|other| other.table == place);
        if is_first && columns.len() < table.columns.len() {
            let lacks = (0..table.columns.len()).filter(|column| !columns.contains(column));
            let lacks = table.names(lacks).join(", ");
            let why = format!("is the first one of table {} and must have all its columns; add {lacks}", table.name);
            return Err(("columns", why));
        }
        Ok(Placed { name: self.name.clone(), table: place, paths, columns })
    }
}
