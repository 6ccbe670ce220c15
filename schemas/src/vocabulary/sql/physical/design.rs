//! The collections of a design, as a TOML file that people edit.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::tables::Tables;

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
    /// Reads a file. The error says what is wrong in it.
    pub fn parse(text: &str) -> Result<Design, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let quoted = |name: &String| toml::Value::String(name.clone()).to_string();
        let list = |names: &[String]| format!("[{}]", names.iter().map(quoted).collect::<Vec<_>>().join(", "));
        let mut text = String::new();
        for Collection { name, table, paths, columns } in &self.collections {
            let paths = paths.iter().map(|path| list(path)).collect::<Vec<_>>().join(", ");
            // Writing to a text cannot fail.
            let _ = writeln!(text, "\n[[collections]]\nname = {}\ntable = {}", quoted(name), quoted(table));
            let _ = writeln!(text, "paths = [{paths}]\ncolumns = {}", list(columns));
        }
        text.trim_start().to_string()
    }

    /// The collections by the places of their tables and columns. The error names the collection that is wrong.
    pub fn resolve(&self, tables: &Tables) -> Result<Vec<Placed>, String> {
        let mut all: Vec<Placed> = Vec::new();
        for collection in &self.collections {
            let wrong = |why: String| format!("collection {:?} {why}", collection.name);
            let place = tables.find(&collection.table);
            let place = place.ok_or_else(|| wrong(format!("is of {:?}, which is no table", collection.table)))?;
            let table = &tables.0[place];
            let column = |name: &String| {
                let found = table.column(name);
                found.ok_or_else(|| wrong(format!("has {name:?}, which is no column of table {}", table.name)))
            };
            let columns = collection.columns.iter().map(column).collect::<Result<BTreeSet<usize>, String>>()?;
            let path = |path: &Vec<String>| path.iter().map(column).collect::<Result<Vec<usize>, String>>();
            let paths = collection.paths.iter().map(path).collect::<Result<Vec<_>, _>>()?;
            let needed = table.key.iter().chain(paths.iter().flatten());
            if let Some(missing) = needed.copied().find(|column| !columns.contains(column)) {
                let name = &table.columns[missing].name;
                return Err(wrong(format!("lacks column {name}, which its key or a path has; add it to columns")));
            }
            let is_name = |name: &str| !name.is_empty() && !name.contains('$') && !name.starts_with("system.");
            if !is_name(&collection.name) || collection.name.starts_with("encore_") {
                return Err(wrong("has a name that a collection cannot have; rename it".into()));
            }
            if all.iter().any(|other| other.name == collection.name) {
                return Err(wrong("is there twice; rename one".into()));
            }
            let is_first = !all.iter().any(|other| other.table == place);
            if is_first && columns.len() < table.columns.len() {
                return Err(wrong(format!(
                    "is the first one of table {}, and does not have all its columns; add them",
                    table.name
                )));
            }
            all.push(Placed { name: collection.name.clone(), table: place, paths, columns });
        }
        for (place, table) in tables.0.iter().enumerate() {
            if !all.iter().any(|collection| collection.table == place) {
                return Err(format!("table {} has no collection; add one with all its columns", table.name));
            }
        }
        Ok(all)
    }
}
