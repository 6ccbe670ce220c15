//! Imports tables that any tool can write: CSV or Parquet files with the columns of statements and operations.
//!
//! | file | a row is | columns |
//! |---|---|---|
//! | `statements` | a statement | `statement`, `text`, `parameters` (optional) |
//! | `operations` | a step of a process, in order | `process`, `statement`; optional: `parameters`, `client`, `kind`, `due_us`, `think_us`, `custom`, `warmup` |
//! | `preload` (optional) | a statement that fills the tables | `statement`, `parameters` (optional) |
//!
//! `schema.sql` defines the tables, and `checks.toml` may have the conditions that their rows keep. The operations are read twice: first for the kinds of processes and the types of
//! parameters that no one has declared, then to write them. Memory holds one process at a time.

mod adjacent;
mod arguments;
mod convert;
mod lists;
mod processes;
mod rows;
mod steps;

use std::path::{Path, PathBuf};

use schemas::files::FileError;
use schemas::manifest::Manifest;
use schemas::table::TableError;
use schemas::vocabulary::sql::text::Dialect;

use crate::core::error::GenerateError;

pub use rows::Place;

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The name of the trace set.
    pub name: String,
    /// The SQL of statements and schema.
    pub dialect: Dialect,
    /// Among how many fragments clients are divided.
    pub fragments: u32,
    /// Whether due times are ignored.
    pub closed_loop: bool,
    /// Whether a replay logs the rows that statements return.
    pub log_results: bool,
}

/// Tables that cannot be imported. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A row is wrong.
    #[error("{place}: {message}")]
    Row {
        /// The file and the row.
        place: Place,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file is missing, lacks a column, or is wrong as a whole.
    #[error("{}: {message}", path.display())]
    Whole {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file cannot be read, or a temporary one not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A Parquet file cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The trace set cannot be written.
    #[error(transparent)]
    Write(#[from] GenerateError),
}

impl ImportError {
    fn whole(path: &Path, message: impl Into<String>) -> ImportError {
        ImportError::Whole { path: path.to_path_buf(), message: message.into() }
    }
}

/// Imports the tables of a folder as the trace set `place`. Nothing is written if they are wrong.
pub fn import(folder: &Path, place: &Path, options: &ImportOptions) -> Result<Manifest, ImportError> {
    convert::convert(folder, place, options)
}

#[cfg(test)]
mod tests;
