//! Why a log cannot be imported.

use std::path::{Path, PathBuf};

use schemas::files::FileError;

use crate::core::error::GenerateError;

/// A log that cannot be imported. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read, or a temporary one not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line of a log is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, why, and what to do.
        message: String,
    },
    /// A flag is wrong, or a log lacks what the flag needs.
    #[error("{flag}: {message}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What is wrong, why, and what to do.
        message: String,
    },
    /// The trace set cannot be written.
    #[error(transparent)]
    Write(GenerateError),
    /// The logs together are wrong.
    #[error("{0}")]
    Logs(String),
}

impl ImportError {
    /// An error of a line.
    pub(super) fn line(path: &Path, line: u64, message: impl Into<String>) -> ImportError {
        ImportError::Line { path: path.to_path_buf(), line, message: message.into() }
    }

    /// An error of a flag.
    pub(super) fn flag(flag: &'static str, message: impl Into<String>) -> ImportError {
        ImportError::Flag { flag, message: message.into() }
    }
}
