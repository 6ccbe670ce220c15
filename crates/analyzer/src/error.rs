//! What can go wrong in an analysis.

use std::path::PathBuf;

use schemas::files::FileError;
use schemas::manifest::TraceSetError;
use schemas::run::RunError;
use schemas::trace::TableError;

use crate::initial::DataSetError;

/// An analysis that cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// The run folder cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the run cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A log or a trace table cannot be read, or does not make sense.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The trace set cannot be used.
    #[error(transparent)]
    TraceSet(#[from] TraceSetError),
    /// The data set does not make sense.
    #[error(transparent)]
    DataSet(#[from] DataSetError),
    /// The run has no experiment of this number.
    #[error("{}: there is no experiment {experiment}; {known}", run.display())]
    NoExperiment {
        /// The run folder.
        run: PathBuf,
        /// The number.
        experiment: u32,
        /// Which there are.
        known: String,
    },
    /// The trace set is not the one that was replayed.
    #[error("{}: this trace set has id {found}, but experiment {experiment} replayed {expected}; put that one back, or analyze where it is", folder.display())]
    OtherTrace {
        /// The trace set's folder.
        folder: PathBuf,
        /// The experiment.
        experiment: u32,
        /// The id of the trace set in the folder.
        found: String,
        /// The id in the plan.
        expected: String,
    },
    /// Logs that were left with their replayers were summarized for something else.
    #[error("{}: the logs of experiment {experiment} that were left with their replayers were summarized for response times of {beta_ms} ms and the measured part of that time; fetch the logs with `coord collect` to ask for another", folder.display())]
    SummarizedForAnother {
        /// The experiment's folder.
        folder: PathBuf,
        /// The experiment.
        experiment: u32,
        /// The response time.
        beta_ms: f64,
    },
    /// The user's statement is not one that may be run, or is wrong.
    #[error("{0}")]
    Statement(String),
    /// DuckDB does not take it for a size of memory.
    #[error("--memory-limit {limit}: {message}; write a number and a unit, such as 4GiB")]
    MemoryLimit {
        /// As it was given.
        limit: String,
        /// What DuckDB says.
        message: String,
    },
    /// A result cannot be written.
    #[error("cannot write: {0}")]
    Write(#[source] TableError),
    /// A run without an experiment cannot be compared.
    #[error("{}: this run has no experiment to compare", run.display())]
    NothingToCompare {
        /// The run folder.
        run: PathBuf,
    },
    /// A chart of a report cannot be drawn.
    #[error(transparent)]
    Chart(#[from] crate::chart::ChartError),
    /// DuckDB failed.
    #[error("DuckDB: {0}")]
    Engine(#[from] duckdb::Error),
}

impl AnalyzeError {
    /// The exit code of a program that ends with this error: 2 for wrong input,
    /// 3 when the tool itself could not do its work.
    pub fn exit_code(&self) -> u8 {
        match self {
            AnalyzeError::Write(_) | AnalyzeError::Engine(_) | AnalyzeError::Chart(_) => 3,
            _ => 2,
        }
    }
}
