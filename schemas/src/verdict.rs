//! `verdict.json` and `rating.json`: what came out, computed from the raw log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sla::Sla;
use crate::social::Action;

/// `verdict.json`: an experiment's figures, and whether it kept the SLA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The experiment's number.
    pub experiment: u32,
    /// Its threads.
    pub threads: u32,
    /// The SLA it is measured against.
    pub sla: Sla,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why it is not a pass: the clauses missed or what made it void.
    pub reasons: Vec<String>,
    /// The figures.
    pub figures: Figures,
}

/// The ruling on an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The SLA was kept.
    Pass,
    /// The SLA was missed.
    Fail,
    /// The experiment says nothing about the store.
    Void,
}

impl Ruling {
    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Ruling::Pass => "pass",
            Ruling::Fail => "fail",
            Ruling::Void => "void",
        }
    }
}

/// The figures of an experiment, over all its fragments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From the start to the end of the last operation.
    pub elapsed_ns: u64,
    /// Sessions with at least one row in the log.
    pub sessions: u64,
    /// Operations over all actions.
    pub overall: ActionFigures,
    /// Operations by action.
    pub by_action: BTreeMap<Action, ActionFigures>,
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Sessions a second.
    pub sessions_per_s: f64,
    /// Share of the operations (failed ones count, skipped ones do not) that
    /// succeeded within β.
    pub within_beta_percent: f64,
    /// Reads that were answered.
    pub reads: u64,
    /// Those of them that returned what no correct store could have.
    pub unpredictable_reads: u64,
    /// The share of unpredictable reads among `reads`, in percent; 0 without reads.
    pub unpredictable_percent: f64,
    /// What is missing from the log of a killed replayer, one sentence a fragment.
    pub missing: Vec<String>,
}

/// Counts and response times of one action, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ActionFigures {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Writes of unknown fate.
    pub unknown: u64,
    /// Operations not issued.
    pub skipped: u64,
    /// Operations that succeeded within β.
    pub within_beta: u64,
    /// Reads that returned what no correct store could have.
    pub unpredictable: u64,
    /// Response times of successful operations: the mean, ...
    pub mean_ns: f64,
    /// ... the median, ...
    pub p50_ns: u64,
    /// ... the 95th percentile, ...
    pub p95_ns: u64,
    /// ... the 99th percentile, ...
    pub p99_ns: u64,
    /// ... and the longest.
    pub max_ns: u64,
}

/// `rating.json`: the two ratings and the experiments they rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The SLA.
    pub sla: Sla,
    /// Highest throughput that keeps the SLA, in actions a second.
    pub soar: Rating,
    /// Highest number of threads that keeps the SLA.
    pub socialites: Rating,
    /// Every experiment, in the order in which it ran.
    pub experiments: Vec<RatedExperiment>,
}

/// One of the two ratings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Actions a second, or threads; 0 when no experiment kept the SLA.
    pub value: f64,
    /// The threads at which it was reached; 0 when none.
    pub threads: u32,
    /// The search stopped at its upper limit of threads: the store may do better.
    pub at_least: bool,
    /// The final experiment that confirmed it, if one did.
    pub confirmed_by: Option<u32>,
    /// What a reader of the number has to know.
    pub notes: Vec<String>,
}

/// An experiment as the rating saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatedExperiment {
    /// Its number.
    pub experiment: u32,
    /// Its threads.
    pub threads: u32,
    /// Its planned duration.
    pub duration_s: f64,
    /// Whether it was to confirm a rating (else it belongs to the search).
    pub is_final: bool,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why not a pass.
    pub reasons: Vec<String>,
    /// Successful operations a second.
    pub throughput_per_s: f64,
}
