//! The stores that a physical schema can be recommended for, as a list.

use super::wide::{self, WideMapping};
use super::{Mapping, Work};
use crate::words::plural;

/// A kind of store with a physical schema.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Its name.
    pub store: &'static str,
    /// The schema for a trace set of a name: that of a file, or the recommended one.
    pub outline: fn(&Work<'_>, file: Option<&str>, name: &str) -> Result<Outline, String>,
}

/// A physical schema for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The file.
    pub text: String,
    /// How large it is, in words.
    pub size: String,
    /// The statements that cannot be mapped.
    pub refused: Vec<String>,
}

/// Every kind.
pub const MODELS: [Model; 2] =
    [Model { store: "mongodb", outline: documents }, Model { store: "cassandra", outline: wide_rows }];

fn documents(work: &Work<'_>, file: Option<&str>, name: &str) -> Result<Outline, String> {
    let (design, mapping) = Mapping::of(work, file)?;
    let writes = mapping.plans.iter().flatten().map(|plan| plan.writes()).max().unwrap_or(0);
    let (tables, collections) = (mapping.tables.0.len(), mapping.collections.len());
    let size = sizes(tables, collections, "collection");
    let text = format!(
        "# The collections of MongoDB for the trace set {name}: {size}.\n\
         # A query reads one collection. A change goes to all that hold a column of it, at most {writes} here.\n\
         # The first collection of a table has all its columns, and the primary key as _id. Each path is an index.\n\
         # Use it after an edit: mongodb://HOST/DATABASE?physical=FILE\n\n{}",
        design.text()
    );
    Ok(Outline { text, size, refused: mapping.refused(work) })
}

fn wide_rows(work: &Work<'_>, file: Option<&str>, name: &str) -> Result<Outline, String> {
    let (design, mapping) = WideMapping::of(work, file, "")?;
    let writes = mapping.plans.iter().flatten().map(wide::Plan::writes).max().unwrap_or(0);
    let size = sizes(mapping.tables.0.len(), mapping.wide.len(), "table of Cassandra");
    let text = format!(
        "# The tables of Cassandra for the trace set {name}: {size}.\n\
         # A query reads one partition. A change goes to all tables that hold a column of it, at most {writes} here.\n\
         # The first one of a table has all its columns. A partition is found by = of all its columns; its rows are in\n\
         # the order of the clustering columns, \"COLUMN desc\" descends.\n\
         # Use it after an edit: cassandra://HOST/KEYSPACE?physical=FILE\n\n{}",
        design.text()
    );
    Ok(Outline { text, size, refused: mapping.refused(work) })
}

fn sizes(tables: usize, own: usize, name: &str) -> String {
    let own = match name.split_once(' ') {
        Some((first, rest)) => format!("{} {rest}", plural(own as u64, first)),
        None => plural(own as u64, name),
    };
    format!("{}, {own}", plural(tables as u64, "table"))
}
