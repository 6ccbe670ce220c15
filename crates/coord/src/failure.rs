//! Why the coordinator ends early, and the exit code that says so.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

/// The reason of an early end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Wrong usage or input.
    #[error("{0}")]
    Usage(String),
    /// The tool or a store failed.
    #[error("{0}")]
    Tool(String),
    /// The store is not in the state that the experiment starts from. The experiment is void, but
    /// the run can continue.
    #[error("{0}")]
    State(String),
    /// A replayer is gone, or cannot do its part. The experiment is void, but the run can
    /// continue when the replayer is back.
    #[error("{0}")]
    Lost(String),
    /// Ctrl-C, or a request to terminate.
    #[error("interrupted{}", .run.as_ref().map(|r| format!("; results so far: {}", r.display())).unwrap_or_default())]
    Interrupted {
        /// The run folder, once there is one.
        run: Option<PathBuf>,
    },
}

impl Failure {
    /// Wrong usage or input.
    pub fn usage(message: impl Display) -> Failure {
        Failure::Usage(message.to_string())
    }

    /// The tool or a store failed.
    pub fn tool(message: impl Display) -> Failure {
        Failure::Tool(message.to_string())
    }

    /// The exit code: 2 for what the user can correct, 130 after Ctrl-C as in shells, 3 for the
    /// rest.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Tool(_) | Failure::State(_) | Failure::Lost(_) => ExitCode::from(3),
            Failure::Interrupted { .. } => ExitCode::from(schemas::program::INTERRUPTED),
        }
    }
}

impl From<schemas::files::FileError> for Failure {
    fn from(error: schemas::files::FileError) -> Failure {
        Failure::tool(error)
    }
}

impl From<storage::StorageError> for Failure {
    fn from(error: storage::StorageError) -> Failure {
        if error.is_of_user() { Failure::usage(error) } else { Failure::tool(error) }
    }
}

impl From<schemas::run::RunError> for Failure {
    fn from(error: schemas::run::RunError) -> Failure {
        match error {
            schemas::run::RunError::File(error) => error.into(),
            error => Failure::usage(error),
        }
    }
}

impl From<schemas::spec::SpecError> for Failure {
    fn from(error: schemas::spec::SpecError) -> Failure {
        Failure::usage(error)
    }
}

impl From<schemas::manifest::TraceSetError> for Failure {
    fn from(error: schemas::manifest::TraceSetError) -> Failure {
        Failure::usage(error)
    }
}
