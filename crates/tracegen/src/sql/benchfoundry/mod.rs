//! Imports the input files of BenchFoundry (benchfoundry-2016, section 4.1).
//!
//! | file | what is in it |
//! |---|---|
//! | `NAME_schema` | the logical schema: `number:CREATE TABLE …;` |
//! | `NAME_operation` | the statements: `number:SQL;`, with `?` for parameters |
//! | `NAME_param` | sets of parameters: `number:value; value; …` |
//! | `NAME_cparam` | sets of custom parameters, in the same form |
//! | `NAME_load`, `NAME_warm`, `NAME_run` | processes that fill the tables, warm up, and are measured |
//!
//! A process is `BOP;start in ms;number`, transactions, and `EOP`. A transaction is `BOT;delay in ms`,
//! operations `statement;parameters;custom parameters`, and `EOT`. The number of a set may be missing or -1. Empty lines,
//! and lines that begin with `#`, say nothing.

mod convert;
mod lists;
mod processes;

use std::path::{Path, PathBuf};

use schemas::files::{FileError, at};
use schemas::manifest::Manifest;

use crate::core::error::GenerateError;

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The name of the trace set.
    pub name: String,
    /// Among how many fragments processes are divided.
    pub fragments: u32,
    /// Whether processes start at their times. None: if there is any start time but 0.
    pub open_loop: Option<bool>,
    /// Whether a replay logs the rows that statements return.
    pub log_results: bool,
}

/// Files that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is wrong.
    #[error("{}:{line}: {message}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file is missing, or there is one too many.
    #[error("{}: {message}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The trace set cannot be written.
    #[error(transparent)]
    Write(#[from] GenerateError),
}

/// A text file and where it is.
struct Text {
    file: PathBuf,
    text: String,
}

impl Text {
    fn read(file: PathBuf) -> Result<Text, FileError> {
        let text = std::fs::read_to_string(&file).map_err(at(&file))?;
        Ok(Text { file, text })
    }

    /// The lines that say something, with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines()).map(|(number, line)| (number, line.trim()));
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    }

    /// The error of a line.
    fn wrong(&self, line: usize, message: impl Into<String>) -> ImportError {
        ImportError::Line { file: self.file.clone(), line, message: message.into() }
    }
}

/// The files of a folder.
struct Files {
    schema: Text,
    operations: Text,
    parameters: Option<Text>,
    custom: Option<Text>,
    load: Option<Text>,
    warm: Option<Text>,
    run: Text,
}

impl Files {
    fn read(folder: &Path) -> Result<Files, ImportError> {
        let wrong = |message: String| ImportError::Folder { folder: folder.to_path_buf(), message };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(at(folder))? {
            let name = entry.map_err(at(folder))?.file_name().to_string_lossy().into_owned();
            names.extend(name.strip_suffix("_operation").map(str::to_string));
        }
        names.sort();
        let name = match &names[..] {
            [name] => name,
            [] => {
                return Err(wrong("has no file NAME_operation; give a folder with BenchFoundry's input files".into()));
            }
            [a, b, ..] => return Err(wrong(format!("has files of {a} and of {b}; move one of them elsewhere"))),
        };
        let optional = |kind: &str| -> Result<Option<Text>, ImportError> {
            let path = folder.join(format!("{name}_{kind}"));
            if path.exists() { Ok(Some(Text::read(path)?)) } else { Ok(None) }
        };
        let needed = |kind: &str| -> Result<Text, ImportError> {
            optional(kind)?.ok_or_else(|| wrong(format!("has no file {name}_{kind}, which every import needs")))
        };
        Ok(Files {
            schema: needed("schema")?,
            operations: needed("operation")?,
            parameters: optional("param")?,
            custom: optional("cparam")?,
            load: optional("load")?,
            warm: optional("warm")?,
            run: needed("run")?,
        })
    }
}

/// Imports the files of a folder as the trace set `place`. Nothing is written if they are wrong.
pub fn import(folder: &Path, place: &Path, options: &ImportOptions) -> Result<Manifest, ImportError> {
    let files = Files::read(folder)?;
    convert::convert(&files, place, options)
}

#[cfg(test)]
mod tests;
