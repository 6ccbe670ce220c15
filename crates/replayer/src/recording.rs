//! The run folder of a replayer that works without a coordinator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use schemas::files::{self, FileError};
use schemas::pace::Pace;
use schemas::pace_request::{PaceError, PaceRequest};
use schemas::plan::{Limit, Plan, Transactions, redact};
use schemas::run::{
    EndReason, ExperimentFolder, FragmentPosition, Host, ReplayReport, RunDocument, RunError, RunFolder, RunState,
};

use crate::any_store::closing_read_name;
use crate::source::Source;

/// Why a run folder cannot take the experiment.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The folder holds something else.
    #[error("-o {}: {message}", folder.display())]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// What it holds and what to do.
        message: String,
    },
    /// Its `run.json` cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The flags for the load exclude each other, or do not fit the trace set.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// It cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RecordingError {
    /// Whether the user's input is to blame.
    pub fn is_usage(&self) -> bool {
        match self {
            RecordingError::File(_) => false,
            // What a file of the trace holds is at fault, and not the system.
            RecordingError::Pace(PaceError::Table(error)) => error.io.is_none(),
            _ => true,
        }
    }
}

/// The experiment to run.
pub struct Request<'a> {
    /// The trace set.
    pub source: &'a Source,
    /// The store, with its secrets.
    pub store_url: &'a str,
    /// T.
    pub threads: u32,
    /// Operating-system threads.
    pub workers: u32,
    /// When to end.
    pub limit: Limit,
    /// Where each fragment starts. A fragment that is not listed starts at its beginning.
    pub positions: &'a [FragmentPosition],
    /// Sessions of warm-up over all fragments.
    pub warmup_sessions: u64,
    /// How fast sessions start.
    pub pace: PaceRequest,
    /// How transactions are run.
    pub transactions: Transactions,
    /// Whether an actor has at most one session at a time.
    pub unique_actors: bool,
    /// Whether a closing read follows.
    pub closing_read: bool,
}

/// An experiment that is being recorded in a run folder.
pub struct Recording {
    run: RunFolder,
    folder: ExperimentFolder,
    document: RunDocument,
    plan: Plan,
}

impl Recording {
    /// A new run, or the next experiment of an existing one of the same workload
    /// and store. Writes nothing yet.
    pub fn new(folder: &Path, request: &Request<'_>) -> Result<Recording, RecordingError> {
        let run = RunFolder::new(folder);
        let manifest = &request.source.manifest;
        let store = redact(request.store_url);
        let taken = |message: String| RecordingError::Taken { folder: folder.to_path_buf(), message };
        let document = if run.document().exists() {
            let document = run.read_document()?;
            if document.workload_id != manifest.workload_id || document.store != store {
                return Err(taken(format!(
                    "already contains a run of workload {} on {}; choose another folder",
                    document.workload_id, document.store
                )));
            }
            RunDocument { state: RunState::Running, ..document }
        } else {
            let in_use = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
            if in_use {
                return Err(taken("exists but is not a run folder; choose another".into()));
            }
            RunDocument {
                format_version: schemas::RUN_FORMAT_VERSION,
                encore_version: env!("CARGO_PKG_VERSION").into(),
                name: folder.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned()),
                started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
                state: RunState::Running,
                sla: None,
                trace: absolute(&request.source.folder),
                trace_id: manifest.trace_id.clone(),
                workload_id: manifest.workload_id.clone(),
                spec: manifest.spec.clone(),
                store,
                store_settings: BTreeMap::new(),
                host: Host::current(),
                command: schemas::program::as_typed(std::env::args_os()).iter().map(|word| redact(word)).collect(),
            }
        };
        let experiment = run.experiments()?.last().map_or(0, |(number, _)| *number) + 1;
        let fragments = schemas::plan::fragments(manifest, request.positions, request.warmup_sessions);
        let (folder, threads) = (&request.source.folder, request.threads);
        let pace = request.pace.resolve(folder, manifest, &fragments, threads, request.limit)?;
        let Pace { open_loop, target_per_s, threads_over_time } = pace;
        let plan = Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment,
            trace: absolute(&request.source.folder),
            trace_id: manifest.trace_id.clone(),
            store: request.store_url.to_string(),
            threads: request.threads,
            workers: request.workers,
            limit: request.limit,
            fragments,
            unique_actors: request.unique_actors,
            closing_read: request.closing_read.then(|| closing_read_name(experiment)),
            open_loop,
            target_per_s,
            threads_over_time,
            transactions: request.transactions,
        };
        Ok(Recording { folder: run.experiment(experiment, request.threads), run, document, plan })
    }

    /// Writes `run.json`, which says that the run is going on.
    pub fn begin(&self) -> Result<(), RecordingError> {
        Ok(files::write_json(&self.run.document(), &self.document)?)
    }

    /// The plan of the experiment.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where its logs go.
    pub fn experiment_folder(&self) -> PathBuf {
        self.folder.root().to_path_buf()
    }

    /// Writes down that the experiment ended.
    pub fn finish(&mut self, report: &ReplayReport) -> Result<(), RecordingError> {
        self.document.store_settings = report.store_settings.clone();
        self.document.state = match report.end {
            EndReason::Interrupted => RunState::Interrupted,
            _ => RunState::Complete,
        };
        Ok(files::write_json(&self.run.document(), &self.document)?)
    }

    /// Writes down that it failed.
    pub fn fail(&mut self, error: &str) -> Result<(), RecordingError> {
        self.document.state = RunState::Failed(error.to_string());
        Ok(files::write_json(&self.run.document(), &self.document)?)
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
