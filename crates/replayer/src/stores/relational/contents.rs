//! What a family keeps in a relational database, for the loaders of all databases.

use std::borrow::Cow;
use std::sync::Arc;

use schemas::run::FragmentPosition;
use schemas::table::TableError;
use schemas::vocabulary::sql::Type;
use sqlx::{Error, SqlStr};

use super::Dialect;
use super::engine::Client;
use crate::source::Source;
use crate::stores::HeldState;

/// The table of the marker.
pub const MARKER: &str = "encore_state";

/// The name of the table of a marker that is being written beside kept records. A crash may leave it; it says
/// nothing.
pub const MARKING: &str = "encore_marking";

/// The tables of a family and the rows of a trace set's data set.
pub trait Contents: Sync {
    /// The trace set.
    fn source(&self) -> &Source;

    /// The marker of a freshly loaded store.
    fn loaded(&self) -> HeldState;

    /// The tables.
    fn tables(&self, dialect: &Dialect) -> Vec<Table>;

    /// The statements that create secondary indexes, best executed after the rows are inserted.
    fn indexes(&self) -> Vec<String>;

    /// All rows of a fragment, table by table, made on demand.
    fn rows(&self, fragment: u32) -> Result<Batches<'_>, TableError>;

    /// The statements that fill the tables after the rows, some thousands at a time. Most families have rows alone.
    fn work(&self) -> Result<Works<'_>, TableError> {
        Ok(Box::new(std::iter::empty()))
    }

    /// The marker of a store whose load has begun, where Encore does not know all of its tables by their names.
    fn begun(&self) -> Option<HeldState> {
        None
    }

    /// Whether values may have other types than their columns, which the database converts: a text for a
    /// decimal number, 64 bits for 32.
    fn are_converted(&self) -> bool {
        false
    }

    /// Whether the trace set says which rows its sessions have touched ([`Contents::touched`]).
    fn is_restorable(&self) -> bool {
        true
    }

    /// What the sessions before each fragment's position have touched, whatever their outcome.
    /// MariaDB and MySQL restore that when a store is reset.
    fn touched(&self, dialect: &Dialect, positions: &[FragmentPosition]) -> Result<Vec<Touched>, TableError>;

    /// Statements, in MySQL's dialect, that restore the touched rows of database `to` from database
    /// `from`. The names are quoted already. The temporary tables of [`Contents::touched`] say what is
    /// touched.
    fn restoration(&self, to: &str, from: &str) -> Vec<String>;
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The statement that creates it.
    pub creation: String,
}

/// A temporary table that lists what a replay has touched.
#[derive(Debug, Clone)]
pub struct Touched {
    /// Its name.
    pub table: &'static str,
    /// The columns, all of one type and part of the key.
    pub columns: &'static [&'static str],
    /// Their type.
    pub kind: &'static str,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

/// A value of a row.
pub use schemas::workload::sql::rows::Cell as Value;

/// Some rows of one table, their values in the order of its columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The table's name, as statements write it. Names of columns in parentheses may follow, if the values are
    /// only theirs.
    pub table: Cow<'static, str>,
    /// The rows, at least one.
    pub rows: Vec<Vec<Value>>,
    /// How many rows of the data set they come from; 0 if another batch has counted those rows.
    pub rows_of_data_set: u64,
}

/// Batches as they are read.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<Batch, TableError>> + Send + 'a>;

/// A statement of a data set, with its parameters.
pub struct Work {
    /// Its text.
    pub text: SqlStr,
    /// The types of its parameters.
    pub kinds: Arc<[Type]>,
    /// Its parameters, encoded.
    pub parameters: Vec<u8>,
}

/// Statements as they are read.
pub type Works<'a> = Box<dyn Iterator<Item = Result<Vec<Work>, TableError>> + Send + 'a>;

/// Executes the statements that fill the tables.
pub async fn do_work<C: Client>(
    client: &mut C,
    contents: &dyn Contents,
    each: &mut (dyn FnMut(u64) + Send),
) -> Result<(), Error> {
    let unreadable = |error: TableError| Error::Encode(Box::new(error));
    for some in contents.work().map_err(unreadable)? {
        let some = some.map_err(unreadable)?;
        let count = some.len() as u64;
        for Work { text, kinds, parameters } in some {
            client.statement(text, &kinds, &parameters, &mut |_| Ok(())).await?;
        }
        each(count);
    }
    Ok(())
}
