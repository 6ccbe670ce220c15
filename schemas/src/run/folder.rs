//! The run folder: its paths, and which experiments have begun.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::document::{RunDocument, RunState};
use crate::files::{self, FileError};

/// The document of a comparison, whose folder is not that of a run.
pub(crate) const COMPARISON: &str = "comparison.json";

/// The paths of a run folder.
///
/// ```text
/// run.json                                      RunDocument
/// lock                                          held by the coordinator that works on it; its process id
/// rating.json                                   verdict::RatingDocument
/// live.jsonl                                    LiveLine, one a line, for viewers of a running experiment
/// FinalResult.csv, Results.csv                  the same in the column order of BG's files
/// experiments/0007-T64/plan.json                plan::Plan, without secrets
///                      replay.json              ReplayReport
///                      verdict.json             verdict::Verdict
///                      trial.json               TrialNote
///                      log/fragment-0.arrows    oplog
///                      audit/fragment-0.arrows  oplog, of the closing read
///                      audit/checks.parquet     conditions, of the closing read
///                      summaries/HOST_PORT.json summary of logs that stayed with a replayer
///                      fragments/fragment-0.json summary of a fragment that was analyzed by itself
/// experiments/0007-T16-R4400/                   the same, for 4,400 sessions/s of a rating by arrival rate
/// operations/experiment=7/fragment=0/part-0.parquet       sealed::OPERATIONS
/// unpredictable/experiment=7/fragment=0/part-0.parquet    sealed::UNPREDICTABLE
/// closing_reads/experiment=7/fragment=0/part-0.parquet    sealed::closing_reads_schema
/// ```
#[derive(Debug, Clone)]
pub struct RunFolder {
    root: PathBuf,
}

impl RunFolder {
    /// The run in a folder, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> RunFolder {
        RunFolder { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `run.json`.
    pub fn document(&self) -> PathBuf {
        self.root.join("run.json")
    }

    /// `lock`: held by the coordinator that works on the run.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Whether a coordinator works on the run now. A file system without locks does not say.
    pub fn is_locked(&self) -> bool {
        File::open(self.lock()).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// `live.jsonl`.
    pub fn live(&self) -> PathBuf {
        self.root.join("live.jsonl")
    }

    /// `rating.json`.
    pub fn rating(&self) -> PathBuf {
        self.root.join("rating.json")
    }

    /// `FinalResult.csv`: one line per experiment, in the column order of BG's file of that name.
    pub fn bg_final_result(&self) -> PathBuf {
        self.root.join("FinalResult.csv")
    }

    /// `Results.csv`: one line for each replayer of each experiment, in the column order of BG's
    /// file.
    pub fn bg_results(&self) -> PathBuf {
        self.root.join("Results.csv")
    }

    /// The folder of an experiment with T threads.
    pub fn experiment(&self, experiment: u32, threads: u32) -> ExperimentFolder {
        self.named(&format!("{experiment:04}-T{threads}"))
    }

    /// The folder of an experiment for which a search asks for an arrival rate, in sessions a second.
    pub fn experiment_at_rate(&self, experiment: u32, threads: u32, rate_per_s: u32) -> ExperimentFolder {
        self.named(&format!("{experiment:04}-T{threads}-R{rate_per_s}"))
    }

    /// The folder that an experiment with T threads has, with or without an arrival rate in its name. If
    /// it has none yet, the folder without.
    pub fn existing_experiment(&self, experiment: u32, threads: u32) -> ExperimentFolder {
        let without = self.experiment(experiment, threads);
        let with_rate = format!("{experiment:04}-T{threads}-R");
        let entries = std::fs::read_dir(self.root.join("experiments")).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        match names.find(|name| name.starts_with(&with_rate)) {
            Some(name) if !without.root().exists() => self.named(&name),
            _ => without,
        }
    }

    fn named(&self, name: &str) -> ExperimentFolder {
        ExperimentFolder { root: self.root.join("experiments").join(name) }
    }

    /// The sealed rows of a fragment of an experiment.
    pub fn sealed_operations(&self, experiment: u32, fragment: u32) -> PathBuf {
        self.root.join(format!("operations/experiment={experiment}/fragment={fragment}/part-0.parquet"))
    }

    /// The unpredictable reads of a fragment of an experiment.
    pub fn unpredictable(&self, experiment: u32, fragment: u32) -> PathBuf {
        self.root.join(format!("unpredictable/experiment={experiment}/fragment={fragment}/part-0.parquet"))
    }

    /// The sealed rows of the closing read of a fragment of an experiment.
    pub fn closing_reads(&self, experiment: u32, fragment: u32) -> PathBuf {
        self.root.join(format!("closing_reads/experiment={experiment}/fragment={fragment}/part-0.parquet"))
    }

    /// Which sealed tables were verified on this machine. Hidden, because it is not part of the results.
    pub fn verified(&self) -> PathBuf {
        self.root.join(".verified.json")
    }

    /// Reads `run.json`; the error says how to create a run folder.
    pub fn read_document(&self) -> Result<RunDocument, RunError> {
        let path = self.document();
        if !path.exists() && self.root.join(COMPARISON).exists() {
            return Err(RunError::IsComparison { folder: self.root.clone() });
        }
        let value: serde_json::Value = files::read_json(&path).map_err(RunError::NoRun)?;
        let found = value["format_version"].as_u64().unwrap_or(0);
        if found != crate::RUN_FORMAT_VERSION as u64 {
            return Err(RunError::Version { path, found });
        }
        serde_json::from_value(value).map_err(|e| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, e);
            RunError::NoRun(FileError { path, source })
        })
    }

    /// The experiments of the run that have begun, by number.
    pub fn experiments(&self) -> Result<Vec<(u32, ExperimentFolder)>, RunError> {
        let folder = self.root.join("experiments");
        let mut found = Vec::new();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => match self.read_document() {
                Ok(document) if document.state == RunState::Complete => {
                    return Err(RunError::NoExperiments { folder });
                }
                _ => return Ok(found),
            },
            Err(e) => return Err(files::at(&folder)(e).into()),
        };
        for entry in entries {
            let entry = entry.map_err(files::at(&folder))?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|n| n.split_once("-T")).and_then(|(n, _)| n.parse().ok());
            if let Some(number) = number {
                let experiment = ExperimentFolder { root: entry.path() };
                if experiment.has_begun()? {
                    found.push((number, experiment));
                }
            }
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found)
    }
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no `run.json`, or it is damaged.
    #[error("{0}; is this a run folder? Create one with `encore rate` or `encore replay run`")]
    NoRun(#[source] FileError),
    /// The folder is a comparison, which holds several runs.
    #[error(
        "{}: this folder is a comparison; give one of the run folders in it, or query its cells with \
         `encore analyze sql`",
        folder.display()
    )]
    IsComparison {
        /// The comparison's folder.
        folder: PathBuf,
    },
    /// The run is complete, but its experiments are missing.
    #[error(
        "{}: missing, although run.json says that the run is complete; copy the whole run folder again",
        folder.display()
    )]
    NoExperiments {
        /// `experiments/`.
        folder: PathBuf,
    },
    /// Written by another version.
    #[error(
        "{}: run format version {found}, this Encore reads version {}; use the version of Encore that wrote it",
        path.display(),
        crate::RUN_FORMAT_VERSION
    )]
    Version {
        /// `run.json`.
        path: PathBuf,
        /// The version it names.
        found: u64,
    },
    /// Another file of the run.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The paths of one experiment.
#[derive(Debug, Clone)]
pub struct ExperimentFolder {
    root: PathBuf,
}

impl ExperimentFolder {
    /// The experiment in this folder.
    pub fn new(root: impl Into<PathBuf>) -> ExperimentFolder {
        ExperimentFolder { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the folder contains a file of the experiment. A coordinator that was killed while it
    /// wrote the plan leaves the folder with at most a temporary file, whose name begins with a dot.
    fn has_begun(&self) -> Result<bool, FileError> {
        for entry in std::fs::read_dir(&self.root).map_err(files::at(&self.root))? {
            let name = entry.map_err(files::at(&self.root))?.file_name();
            if !name.to_string_lossy().starts_with('.') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `plan.json`.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// `replay.json`.
    pub fn report(&self) -> PathBuf {
        self.root.join("replay.json")
    }

    /// `verdict.json`.
    pub fn verdict(&self) -> PathBuf {
        self.root.join("verdict.json")
    }

    /// `trial.json`.
    pub fn trial(&self) -> PathBuf {
        self.root.join("trial.json")
    }

    /// `summary.json`: the summary of logs that stayed with a replayer.
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// `fleet.json`: the merged report of all replayers. A replayer keeps it beside logs that
    /// stay with it.
    pub fn fleet_report(&self) -> PathBuf {
        self.root.join("fleet.json")
    }

    /// The folder of the summaries that were fetched instead of logs.
    pub fn summaries(&self) -> PathBuf {
        self.root.join("summaries")
    }

    /// The folder of the summaries of fragments that were analyzed by themselves.
    pub fn fragments(&self) -> PathBuf {
        self.root.join("fragments")
    }

    /// The summary of a fragment that was analyzed by itself.
    pub fn fragment(&self, fragment: u32) -> PathBuf {
        self.fragments().join(format!("fragment-{fragment}.json"))
    }

    /// The raw log of a fragment.
    pub fn log(&self, fragment: u32) -> PathBuf {
        self.root.join(format!("log/fragment-{fragment}.arrows"))
    }

    /// What the closing read saw in a fragment. The file has this name once it is complete.
    pub fn audit(&self, fragment: u32) -> PathBuf {
        self.root.join(format!("audit/fragment-{fragment}.arrows"))
    }

    /// What was found of the conditions of the data after the experiment. The file has this name once it is
    /// complete.
    pub fn checks(&self) -> PathBuf {
        self.root.join("audit/checks.parquet")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders of a rating by rate had the same T, and did not say which rate each was for.
    #[test]
    fn the_folder_of_an_experiment_may_name_its_rate() {
        let root = tempfile::tempdir().expect("a folder");
        let run = RunFolder::new(root.path());
        let name = |folder: ExperimentFolder| folder.root().file_name().and_then(|n| n.to_str()).map(String::from);
        assert_eq!(name(run.existing_experiment(7, 16)).as_deref(), Some("0007-T16"));
        for folder in [run.experiment_at_rate(7, 16, 4400), run.experiment(8, 16)] {
            std::fs::create_dir_all(folder.root()).expect("a folder");
        }
        assert_eq!(name(run.existing_experiment(7, 16)).as_deref(), Some("0007-T16-R4400"));
        assert_eq!(name(run.existing_experiment(8, 16)).as_deref(), Some("0008-T16"));
        assert_eq!(name(run.existing_experiment(7, 1)).as_deref(), Some("0007-T1"));
    }

    #[test]
    fn an_experiment_without_a_plan_has_not_begun() {
        let root = tempfile::tempdir().expect("a folder");
        let run = RunFolder::new(root.path());
        for (number, file) in [(1, "plan.json"), (2, ".tmpA1b2C3"), (3, "verdict.json")] {
            let folder = run.experiment(number, 4);
            std::fs::create_dir_all(folder.root()).expect("a folder");
            std::fs::write(folder.root().join(file), "{}").expect("a file");
        }
        std::fs::create_dir(run.experiment(4, 4).root()).expect("a folder");
        let at_rate = run.experiment_at_rate(5, 4, 900);
        std::fs::create_dir(at_rate.root()).expect("a folder");
        std::fs::write(at_rate.plan(), "{}").expect("a file");
        let found: Vec<u32> = run.experiments().expect("experiments").into_iter().map(|(number, _)| number).collect();
        assert_eq!(found, [1, 3, 5]);
    }
}
