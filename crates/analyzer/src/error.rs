//! What can go wrong in an analysis.

use std::path::PathBuf;

use schemas::files::FileError;
use schemas::manifest::TraceSetError;
use schemas::run::RunError;
use schemas::spec::SpecError;
use schemas::table::TableError;

use crate::validate::UnknownId;

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
    /// The workload is of a family that the analyzer does not know.
    #[error(transparent)]
    Spec(#[from] SpecError),
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
        /// The experiments that exist.
        known: String,
    },
    /// Two runs whose results cannot be compared.
    #[error(
        "{first} and {second}: --results compares what statements returned in two runs of one trace set of the family          sql; give two such runs"
    )]
    NoResults {
        /// A run.
        first: String,
        /// The other one.
        second: String,
    },
    /// The trace set is not the one that was replayed.
    #[error(
        "{}: this trace set has id {found}, but experiment {experiment} replayed {expected}; restore the replayed \
         trace set, or run the analysis on the machine that has it",
        folder.display()
    )]
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
    /// Logs that stayed with their replayers were summarized for another response time or
    /// measured part.
    #[error(
        "{}: the logs of experiment {experiment} are on their replayers' machines, and their summaries are for a \
         response time of {beta_ms} ms and for the measured part that was known then; fetch the logs with \
         `encore collect`, then analyze again",
        folder.display()
    )]
    SummarizedForAnother {
        /// The experiment's folder.
        folder: PathBuf,
        /// The experiment.
        experiment: u32,
        /// The response time that they were summarized for.
        beta_ms: f64,
    },
    /// The experiment has no fragment of this number.
    #[error("experiment {experiment} has no fragment {fragment}; it has {known}")]
    NoFragment {
        /// The experiment.
        experiment: u32,
        /// The number.
        fragment: u32,
        /// The fragments that it has.
        known: String,
    },
    /// Fragments have not been analyzed.
    #[error(
        "{}: experiment {experiment}: {} not analyzed ({missing}); analyze each with `encore analyze fragment {} \
         --experiment {experiment} --fragment {first}`",
        run.display(), schemas::words::plural(*count, "fragment"), run.display()
    )]
    NotAnalyzed {
        /// The run folder.
        run: PathBuf,
        /// The experiment.
        experiment: u32,
        /// The first of these fragments.
        first: u32,
        /// How many there are.
        count: u64,
        /// All of them.
        missing: String,
    },
    /// What was made of a fragment does not fit the experiment.
    #[error("{}: {what}; run `encore analyze fragment` for this fragment again", path.display())]
    OtherFragment {
        /// The summary or sealed table.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
    /// The user's statement is not allowed, or is wrong.
    #[error("{0}")]
    Statement(String),
    /// DuckDB does not accept this as a size of memory.
    #[error("--memory-limit {limit}: {message}; write a number and a unit, such as 4GiB")]
    MemoryLimit {
        /// The value given.
        limit: String,
        /// The message of DuckDB.
        message: String,
    },
    /// DuckDB needs more memory than the user allows.
    #[error("--memory-limit {limit}: too small for this query; use more")]
    LowMemory {
        /// The value given.
        limit: String,
    },
    /// A result cannot be written.
    #[error("cannot write {0}")]
    Write(#[source] TableError),
    /// One run is nothing to compare.
    #[error("{}: a comparison needs two runs or more; add another run, or --recorded", run.display())]
    OneRun {
        /// The run folder.
        run: PathBuf,
    },
    /// There is no log to compare with.
    #[error("{why}")]
    NoRecord {
        /// Which run, why, and what to do.
        why: String,
    },
    /// A run without an experiment cannot be compared.
    #[error("{}: this run has no experiment to compare", run.display())]
    NothingToCompare {
        /// The run folder.
        run: PathBuf,
    },
    /// Object storage cannot be used.
    #[error(transparent)]
    Storage(#[from] storage::StorageError),
    /// An error about files of a run in object storage, in words that name its URL.
    #[error("{message}")]
    Elsewhere {
        /// What is wrong.
        message: String,
        /// The exit code of the original error.
        code: u8,
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
        let refused = match self {
            AnalyzeError::Write(_) | AnalyzeError::Engine(_) | AnalyzeError::Chart(_) => return 3,
            AnalyzeError::Storage(error) => return if error.is_of_user() { 2 } else { 3 },
            AnalyzeError::Elsewhere { code, .. } => return *code,
            AnalyzeError::File(error) => Some(error.source.kind()),
            AnalyzeError::Table(error) => error.io,
            _ => None,
        };
        match refused {
            Some(kind) if !schemas::files::is_about_the_name(kind) => 3,
            _ => 2,
        }
    }
}

/// Why a data set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The trace set is of another family.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A row has an id that its own table, or the table it refers to, cannot have.
    #[error("{table}: row {row}: {source}")]
    Row {
        /// The table or its file.
        table: String,
        /// The row, from 0.
        row: usize,
        /// What is wrong.
        source: UnknownId,
    },
}
