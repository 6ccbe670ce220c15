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
    /// Each replayer's own, where several took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayers: Vec<ReplayerFigures>,
}

/// What one of several replayers saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayerFigures {
    /// As in [`crate::run::ReplayerReport`].
    pub name: String,
    /// Its share of T.
    pub threads: u32,
    /// Its successful operations a second.
    pub throughput_per_s: f64,
    /// Of its operations, those within β, in percent.
    pub within_beta_percent: f64,
    /// Of its reads, the unpredictable ones, in percent.
    pub unpredictable_percent: f64,
    /// Which clauses of the SLA it missed by itself.
    pub missed: Vec<String>,
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

/// The figures of an experiment's measured part, over all its fragments: of the operations
/// that started in it. What was in flight when the planned time was over counts for
/// everything but the rates, since leaving it out would hide the slowest answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// From the beginning of the measured part to the end of its last operation.
    pub elapsed_ns: u64,
    /// What the rates are measured over: the planned time, or all of `elapsed_ns`
    /// where none was planned or the experiment ended before it was over.
    pub counted_ns: u64,
    /// Operations of the warm-up.
    pub warmup_operations: u64,
    /// Operations that started after the planned time, to end sessions that were under way;
    /// no other figure counts them.
    #[serde(default)]
    pub drained_operations: u64,
    /// Sessions with at least one row in the log.
    pub sessions: u64,
    /// BG's no-operations: sessions that were drawn and of which nothing could be done.
    pub noops: u64,
    /// Operations over all actions.
    pub overall: ActionFigures,
    /// Operations by action.
    pub by_action: BTreeMap<Action, ActionFigures>,
    /// Successful operations that ended within `counted_ns`, a second.
    pub throughput_per_s: f64,
    /// Sessions whose first operation ended within `counted_ns`, a second; as in
    /// BG, no-operations count as sessions.
    pub sessions_per_s: f64,
    /// Share of the operations (failed ones count, skipped ones do not) that
    /// succeeded within β.
    pub within_beta_percent: f64,
    /// What operations that failed or are of unknown fate took of the time that counts, all
    /// threads together. Few of them are much when each lasts until a time limit.
    #[serde(default)]
    pub error_ns: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Those of them that returned what no correct store could have.
    pub unpredictable_reads: u64,
    /// The share of unpredictable reads among `reads`, in percent; 0 without reads.
    pub unpredictable_percent: f64,
    /// What is missing from the log of a killed replayer, one sentence a fragment.
    pub missing: Vec<String>,
    /// The measured part in slices of equal length.
    pub timeline: Timeline,
    /// How often reads see all completed updates, by the time since the last one.
    pub freshness: Vec<Freshness>,
}

/// The measured part of an experiment in slices of equal length.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// The length of a slice, in seconds.
    pub slice_s: f64,
    /// The slices in order, the first from the beginning of the measured part.
    /// The last one may not be full.
    pub slices: Vec<Slice>,
}

/// What ended within one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, are of unknown fate or were skipped.
    pub errors: u64,
    /// Reads that returned what no correct store could have.
    pub unpredictable: u64,
    /// Response times of the successful ones: the median, ...
    pub p50_ns: u64,
    /// ... the 95th percentile, ...
    pub p95_ns: u64,
    /// ... the 99th percentile, ...
    pub p99_ns: u64,
    /// ... and the longest.
    pub max_ns: u64,
}

/// BG's freshness confidence: of the data items read so long after the last
/// completed update of the item, how many showed all updates completed before
/// the read. An item is a member's friend or pending count, or a whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// The time from the end of the last completed update of the item to the
    /// start of the read: from here, ...
    pub from_us: u64,
    /// ... to less than this.
    pub to_us: u64,
    /// Items read.
    pub reads: u64,
    /// Those that showed all updates completed before the read.
    pub fresh: u64,
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

/// `rating.json`: the ratings and the experiments they rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The SLA.
    pub sla: Sla,
    /// How it was searched.
    pub parameters: RatingParameters,
    /// Highest throughput that keeps the SLA, in actions a second; none when
    /// only the other rating was asked for.
    pub soar: Option<Rating>,
    /// Highest number of threads that keeps the SLA; none when only the other
    /// rating was asked for.
    pub socialites: Option<Rating>,
    /// Every experiment, in the order in which it ran.
    pub experiments: Vec<RatedExperiment>,
}

/// How ratings are searched (bg-rating: rating parameters).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingParameters {
    /// δ: how long the experiments of a search run, in seconds; of several the
    /// two largest have to agree.
    pub search_s: Vec<f64>,
    /// The δ that the ratings rest on, in seconds.
    pub settled_search_s: f64,
    /// When a final experiment differs from those of the search by more than
    /// this, in percent, the search is repeated with a longer δ.
    pub delta_check_percent: Option<f64>,
    /// The first T.
    pub first_threads: u32,
    /// The highest T.
    pub max_threads: u32,
    /// What happens to the store between two experiments.
    pub between: Between,
    /// Sessions of warm-up in each experiment.
    pub warmup_sessions: u64,
    /// One session of a socialite at a time.
    pub unique_socialites: bool,
}

/// What happens to the store between two experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// It is brought back to the data set, and the trace begins anew.
    #[default]
    Load,
    /// It stays as it is, and the trace is taken up where the last experiment stopped.
    Continue,
}

/// One of the two ratings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Actions a second, or threads; 0 when no experiment kept the SLA, or when nothing
    /// could be measured.
    pub value: f64,
    /// The threads at which it was reached; 0 when none.
    pub threads: u32,
    /// Where the true value lies.
    pub interval: Option<Interval>,
    /// The search stopped at its upper limit of threads: the store may do better.
    pub at_least: bool,
    /// The final experiment that confirmed it, if one did.
    pub confirmed_by: Option<u32>,
    /// Every experiment of the search was void: nothing is known of the store, and
    /// `rests_on_void` says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasured: bool,
    /// The numbers of the experiments that it rests on: every one with its T, those
    /// that bound it, and the final ones.
    pub rests_on: Vec<u32>,
    /// What void experiments leave open, when there are any: which experiments, why, and
    /// what they were to verify.
    pub rests_on_void: Option<String>,
    /// What else a reader of the number has to know.
    pub notes: Vec<String>,
}

/// Where a rating's true value lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, in the rating's unit.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What the interval rests on, in words.
    pub basis: String,
}

/// An experiment as the rating saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatedExperiment {
    /// Its number.
    pub experiment: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// Its threads.
    pub threads: u32,
    /// Its planned duration, without warm-up.
    pub duration_s: f64,
    /// Whether it was to confirm a rating (else it belongs to the search).
    pub is_final: bool,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why not a pass.
    pub reasons: Vec<String>,
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Sessions a second, no-operations included.
    pub sessions_per_s: f64,
    /// Share of the operations that succeeded within β.
    pub within_beta_percent: f64,
    /// Share of the reads that were unpredictable.
    pub unpredictable_percent: f64,
}
