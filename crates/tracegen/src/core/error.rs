//! Why a trace set could not be generated.

use std::path::{Path, PathBuf};

use schemas::files::FileError;
use schemas::spec::SpecError;
use schemas::table::TableError;

/// A trace set that could not be generated. No part of it remains, and the folder is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No trace set can be what the specification asks for. The text names its keys.
    #[error("{0}")]
    Infeasible(String),
    /// A fragment cannot have the share of all draws that its weight asks for.
    #[error(
        "fragment_weights: fragment {fragment} should have {:.4}% of all draws, but has {:.4}%, because one {what} \
         cannot be split; use weights that differ less, fewer fragments or more {what}s",
        asked * 100.0, found * 100.0
    )]
    UnequalShare {
        /// The fragment.
        fragment: u32,
        /// Its share by its weight, 0 to 1.
        asked: f64,
        /// Its share with the members or records that were assigned to it.
        found: f64,
        /// What cannot be split.
        what: &'static str,
    },
    /// No actor who may act can do anything of the mix.
    #[error(
        "mix: fragment {fragment} of {fragments} ended after {made} of {asked} sessions ({noops} no-operations in a \
         row): {}; {}{}",
        why[0], fewer(*enough_for), why[1]
    )]
    OnlyNoops {
        /// The fragment.
        fragment: u32,
        /// How many fragments there are.
        fragments: u32,
        /// How many sessions could be made.
        made: u64,
        /// How many sessions it should have.
        asked: u64,
        /// No-operations after the last session.
        noops: u32,
        /// How many sessions a trace over all fragments may have, so that this fragment needs no
        /// more sessions than it could make.
        enough_for: u64,
        /// Why nothing can be done, and what helps.
        why: [&'static str; 2],
    },
    /// The trace set would not fit on this machine.
    #[error("the trace set needs at least {needed} {kind}, but {whose} only {there} ({what}); reduce these numbers")]
    NoRoom {
        /// `on disk` or `of memory`.
        kind: &'static str,
        /// How much is needed.
        needed: String,
        /// How much is available.
        there: String,
        /// The disk or memory that it is about.
        whose: String,
        /// The settings that decide the size.
        what: String,
    },
    /// The target folder holds something that must not be replaced.
    #[error("{}: already exists and is {found}; remove it, or choose another folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What it is.
        found: String,
    },
    /// A file or folder cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The caller asked to stop.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

impl GenerateError {
    /// The same error, with the path of the final file in place of that of the temporary one.
    pub(crate) fn named(mut self, temporary: &Path, wanted: &Path) -> GenerateError {
        let path = match &mut self {
            GenerateError::File(error) => &mut error.path,
            GenerateError::Table(error) => &mut error.path,
            _ => return self,
        };
        if let Ok(below) = path.strip_prefix(temporary) {
            *path = wanted.join(below);
        }
        self
    }
}

/// The advice to make a shorter trace, if any session could be made.
fn fewer(sessions: u64) -> String {
    match sessions {
        0 => String::new(),
        most => format!("generate at most {most} sessions in total, or "),
    }
}
