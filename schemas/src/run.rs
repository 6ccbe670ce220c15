//! The run folder: its paths, `run.json`, and the report of a replayer at the end of an
//! experiment (`replay.json`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};
pub use crate::pacing::{Pacing, PacingCounts};
use crate::plan::Limit;
pub use crate::position::FragmentPosition;
use crate::sla::Sla;
use crate::spec::Spec;

/// The document of a comparison, whose folder is not that of a run.
pub(crate) const COMPARISON: &str = "comparison.json";

/// The paths of a run folder.
///
/// ```text
/// run.json                                      RunDocument
/// lock                                          held by the coordinator that works on it
/// rating.json                                   verdict::RatingDocument
/// FinalResult.csv, Results.csv                  the same in the column order of BG's files
/// experiments/0007-T64/plan.json                plan::Plan, without secrets
///                      replay.json              ReplayReport
///                      verdict.json             verdict::Verdict
///                      trial.json               TrialNote
///                      log/fragment-0.arrows    oplog
///                      audit/fragment-0.arrows  oplog, of the closing read
///                      summaries/HOST_PORT.json summary of logs that stayed with a replayer
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

    /// The raw log of a fragment.
    pub fn log(&self, fragment: u32) -> PathBuf {
        self.root.join(format!("log/fragment-{fragment}.arrows"))
    }

    /// What the closing read saw in a fragment. The file has this name once it is complete.
    pub fn audit(&self, fragment: u32) -> PathBuf {
        self.root.join(format!("audit/fragment-{fragment}.arrows"))
    }
}

/// `run.json`: what was rated, with which trace set and store, on which machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The version of Encore.
    pub encore_version: String,
    /// The run's name.
    pub name: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Whether it is running, complete, interrupted or failed.
    pub state: RunState,
    /// The SLA; null if none was given.
    pub sla: Option<Sla>,
    /// The trace set's folder.
    pub trace: PathBuf,
    /// Its id.
    pub trace_id: String,
    /// The id of its workload.
    pub workload_id: String,
    /// Its specification.
    pub spec: Spec,
    /// The store's URL without secrets.
    pub store: String,
    /// The settings in effect, as the store itself reports them: version, durability, isolation.
    pub store_settings: BTreeMap<String, String>,
    /// The machine of the replayer.
    pub host: Host,
    /// The command line, without secrets.
    pub command: Vec<String>,
}

/// The name of the setting by which a store says, in a sentence without a period, what a user must
/// know to judge its reads.
pub const NOTE: &str = "note";

/// The note in the settings that a store has reported; None if there is none.
pub fn note(store_settings: &BTreeMap<String, String>) -> Option<&str> {
    store_settings.get(NOTE).map(String::as_str)
}

impl RunDocument {
    /// What a user must know to judge the reads: what is not checked, and what the store says of
    /// itself. Sentences without a period.
    pub fn notes(&self) -> Vec<String> {
        self.spec.unchecked().into_iter().chain(note(&self.store_settings).map(String::from)).collect()
    }

    /// The SLA that its experiments are measured against: the one given, else that of the
    /// specification, else the default.
    pub fn sla(&self) -> Sla {
        self.sla.or(self.spec.sla).unwrap_or_default()
    }

    /// The name of the run in the work folders of replayers on other machines.
    pub fn fleet_name(&self) -> String {
        format!("{}-{}", self.name, self.started_unix_s)
    }
}

/// Whether a run is running, complete, interrupted or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is running, or its process was killed and could not change the state.
    Running,
    /// It ended as planned.
    Complete,
    /// It was interrupted (Ctrl-C). The folder has the results up to then.
    Interrupted,
    /// It ended with this error.
    Failed(String),
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Operating system and architecture.
    pub system: String,
    /// Processors that the process may use.
    pub cpus: u32,
}

impl Host {
    /// This machine.
    pub fn current() -> Host {
        let name = std::fs::read_to_string("/etc/hostname").map(|n| n.trim().to_string()).unwrap_or_default();
        Host {
            name,
            system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        }
    }
}

/// `replay.json`: a replayer's report of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// Why it ended.
    pub end: EndReason,
    /// When the warm-up ended and the measured part began, from the start; 0 without warm-up.
    pub warmup_ns: u64,
    /// Operations of the warm-up, whatever their outcome. The counts below are of the measured
    /// part alone.
    pub warmup_operations: u64,
    /// From the beginning of the measured part to the end of its last operation.
    pub elapsed_ns: u64,
    /// The time that rates are measured over: the planned time, or all of `elapsed_ns` if no time
    /// was planned or the experiment ended early.
    pub counted_ns: u64,
    /// Operations that succeeded and ended within `counted_ns`.
    pub ok_counted: u64,
    /// Operations that started after the planned time: later steps of sessions that were under
    /// way. They are in none of the counts below and in no figure.
    pub drained_operations: u64,
    /// Sessions that ended, over all fragments.
    pub sessions: u64,
    /// The position of each fragment: which sessions have been run.
    pub positions: Vec<FragmentPosition>,
    /// Operations by outcome.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Writes of unknown fate.
    pub unknown: u64,
    /// Operations not issued.
    pub skipped: u64,
    /// CPU time over wall time of the busiest worker thread, 0 to 1.
    pub worker_cpu_share: f64,
    /// The scheduling delay: how late a worker notices that an event has happened. The worker
    /// measures it with a kernel timer, which it waits for as it waits for answers. This is the
    /// mean.
    pub dispatch_lag_ns_mean: f64,
    /// The 99th percentile of the scheduling delay.
    pub dispatch_lag_ns_p99: u64,
    /// The longest scheduling delay.
    pub dispatch_lag_ns_max: u64,
    /// Share of the measured part, 0 to 1, in which the most delayed worker thread was ready to
    /// run and waited for a processor. The kernel counts it; null where it does not.
    pub run_delay_share: Option<f64>,
    /// Time that threads were idle because every session that could come next belongs to a busy
    /// actor, summed over all threads.
    pub idle_ns: u64,
    /// Mean number of sessions under way in the measured part.
    pub sessions_in_flight: f64,
    /// Time that workers were blocked because the log could not be written fast enough.
    pub log_stall_ns: u64,
    /// Time that workers were blocked because the trace could not be read fast enough.
    pub trace_stall_ns: u64,
    /// The settings that the store itself reported when the experiment began.
    pub store_settings: BTreeMap<String, String>,
    /// The store's own counters for the experiment, warm-up included, such as cache hits and
    /// misses. Empty if the store counts nothing.
    #[serde(default)]
    pub store_counters: BTreeMap<String, u64>,
    /// Writes that did not succeed, warm-up included; one more if a cache could not be notified
    /// of some writes.
    #[serde(default)]
    pub writes_not_ok: u64,
    /// The [closing read](crate::plan::Plan::closing_read) that saw the state from which the
    /// experiment started, by its name. None if it started from a load, or there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<String>,
    /// How sessions kept their due times. None in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// What each replayer did; only a coordinator fills this in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayers: Vec<ReplayerReport>,
    /// Which replayers failed, and how. Any entry makes the experiment void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

impl ReplayReport {
    /// Successful operations a second: the one definition that all tools print.
    pub fn throughput_per_s(&self) -> f64 {
        if self.counted_ns == 0 { 0.0 } else { self.ok_counted as f64 * 1e9 / self.counted_ns as f64 }
    }
}

/// The report of a replay that ended at once, without operations and without errors.
impl Default for ReplayReport {
    fn default() -> ReplayReport {
        ReplayReport {
            format_version: crate::RUN_FORMAT_VERSION,
            end: EndReason::Limit,
            warmup_ns: 0,
            warmup_operations: 0,
            elapsed_ns: 0,
            counted_ns: 0,
            ok_counted: 0,
            drained_operations: 0,
            sessions: 0,
            positions: Vec::new(),
            ok: 0,
            failed: 0,
            unknown: 0,
            skipped: 0,
            worker_cpu_share: 0.0,
            dispatch_lag_ns_mean: 0.0,
            dispatch_lag_ns_p99: 0,
            dispatch_lag_ns_max: 0,
            run_delay_share: None,
            idle_ns: 0,
            sessions_in_flight: 0.0,
            log_stall_ns: 0,
            trace_stall_ns: 0,
            store_settings: BTreeMap::new(),
            store_counters: BTreeMap::new(),
            writes_not_ok: 0,
            began_with: None,
            pacing: None,
            replayers: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// One replayer's part in an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayerReport {
    /// Where the coordinator reached it, `HOST:PORT`.
    pub name: String,
    /// Its machine.
    pub host: Host,
    /// The fragments that it replayed.
    pub fragments: Vec<u32>,
    /// Its share of T.
    pub threads: u32,
    /// Its operations that succeeded.
    pub ok: u64,
    /// Its operations that did not succeed.
    pub errors: u64,
    /// CPU time over wall time of its busiest worker thread, 0 to 1.
    pub worker_cpu_share: f64,
    /// [`ReplayReport::dispatch_lag_ns_mean`].
    pub dispatch_lag_ns_mean: f64,
    /// [`ReplayReport::dispatch_lag_ns_p99`].
    pub dispatch_lag_ns_p99: u64,
    /// [`ReplayReport::run_delay_share`].
    pub run_delay_share: Option<f64>,
    /// [`ReplayReport::idle_ns`].
    pub idle_ns: u64,
    /// Whether a session had to queue on it, and the experiment ended on all replayers for that
    /// reason ([`EndReason::Overloaded`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overloaded: bool,
    /// Its clock before the experiment, and after it.
    pub clock: [ClockReading; 2],
}

/// How a replayer's clock differs from the coordinator's. No validation depends on it, as each
/// fragment belongs to one replayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockReading {
    /// The replayer's clock minus the coordinator's.
    pub offset_ns: i64,
    /// From the request to the answer. The error of the offset is at most half of this.
    pub round_trip_ns: i64,
}

/// Why an experiment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its time was over, or its sessions were done.
    Limit,
    /// The trace ran out before its time.
    TraceExhausted {
        /// How many sessions (over all fragments) would have been enough.
        sessions_needed: u64,
    },
    /// It was interrupted.
    Interrupted,
    /// A session had to queue, and the plan ends the experiment then
    /// ([`Overload::Stop`](crate::pace::Overload::Stop)).
    Overloaded,
}

/// What an experiment is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A single experiment, outside of a rating.
    Single,
    /// An experiment of a search.
    Search,
    /// A final experiment, which confirms the rating named here.
    Final(String),
}

/// `trial.json`: what a rating needs to resume and no other file of an experiment's folder holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialNote {
    /// What it was for.
    pub purpose: Purpose,
    /// When the experiment was planned to end.
    pub limit: Limit,
    /// The arrival rate that a search asked for, in sessions a second; null in a search over threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u32>,
    /// When it started, in seconds since 1970; the store was loaded by then.
    pub started_unix_s: u64,
    /// From its start until its verdict, in seconds: warm-up, measured part and validation.
    pub took_s: f64,
    /// Which replayer was lost before the experiment began, and how; null if none was.
    pub lost: Option<String>,
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
