//! `verdict.json` and `rating.json`: the results, computed from the raw log.

mod conditions;
mod consistency;
mod figures;
mod rules;
mod sessions;
mod sum;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};
use crate::sla::Sla;

pub use conditions::{BrokenCondition, ConditionFigures, all_hold};
pub use consistency::{Broken, Checked, ConsistencyFigures, GammaPercentile, Guarantees, K, Register, Spread, Step};
pub use figures::{
    ClosingFigures, Figures, Freshness, OperationFigures, ServiceTimes, Slice, SliceServiceTimes, Timeline,
    TransactionFigures,
};
pub use rules::{DrawRule, merge_rules};
pub use sessions::{Headline, SessionFigures};
pub use sum::SumFigures;

/// `verdict.json`: an experiment's figures, and whether it met the SLA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The experiment's number.
    pub experiment: u32,
    /// Its threads.
    pub threads: u32,
    /// Open loop: the mean arrival rate that was asked for, in sessions a second. Null in a closed
    /// loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// The SLA it is measured against.
    pub sla: Sla,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why it is not a pass: the SLA clauses that it missed, or what made it void.
    pub reasons: Vec<String>,
    /// The figures.
    pub figures: Figures,
    /// Each replayer's own figures, if several took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayers: Vec<ReplayerFigures>,
    /// The checksums of the sealed tables. Empty if none were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<SealedFragment>,
}

/// The checksums of a fragment's sealed tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedFragment {
    /// The fragment.
    pub fragment: u32,
    /// Of the table `operations`.
    pub operations: Checksum,
    /// Of the table `unpredictable`.
    pub unpredictable: Checksum,
    /// Of the table `closing_reads`; null if the fragment had no closing read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing_reads: Option<Checksum>,
}

/// What identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Its length.
    pub bytes: u64,
    /// Its BLAKE3 sum, as lower-case hex.
    pub blake3: String,
}

impl Checksum {
    /// The checksum of a file as it is now.
    pub fn of(path: &Path) -> Result<Checksum, FileError> {
        let bytes = std::fs::metadata(path).map_err(files::at(path))?.len();
        Ok(Checksum { bytes, blake3: files::blake3_of(path)? })
    }
}

/// The figures of one of several replayers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayerFigures {
    /// Its name, as in [`crate::run::ReplayerReport`].
    pub name: String,
    /// Its share of T.
    pub threads: u32,
    /// Its successful operations a second.
    pub throughput_per_s: f64,
    /// Of its operations, those within β, in percent.
    pub within_beta_percent: f64,
    /// Of its reads, the unpredictable ones, in percent.
    pub unpredictable_percent: f64,
    /// The SLA clauses that it missed by itself.
    pub missed: Vec<String>,
}

/// The verdict on an experiment, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The experiment met the SLA.
    Pass,
    /// The experiment missed the SLA.
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

/// `rating.json`: the ratings and the experiments they rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The SLA.
    pub sla: Sla,
    /// The parameters of the search.
    pub parameters: RatingParameters,
    /// Highest throughput that meets the SLA, in operations a second; null if only the other rating
    /// was requested.
    pub soar: Option<Rating>,
    /// Highest number of threads that meets the SLA; null if only the other rating was requested.
    pub socialites: Option<Rating>,
    /// Highest arrival rate that meets the SLA, in sessions a second; null in a rating by threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rating>,
    /// Every experiment, in the order in which it ran.
    pub experiments: Vec<RatedExperiment>,
}

impl RatingDocument {
    /// 3 when nothing could be measured, or a rating is unconfirmed because its final experiments were
    /// void; 1 when no load met the SLA, or the final experiments missed it, or one that confirmed a rating left data that
    /// violate a condition; else 0.
    pub fn exit_code(&self) -> u8 {
        let ratings = || [&self.soar, &self.socialites, &self.rate].into_iter().flatten();
        match () {
            () if ratings().any(|rating| rating.unmeasured) => 3,
            () if ratings().any(|rating| rating.value <= 0.0) => 1,
            () if ratings().all(|rating| rating.confirmed_by.is_some()) => {
                let is_confirming =
                    |one: &&RatedExperiment| ratings().any(|rating| rating.confirmed_by == Some(one.experiment));
                u8::from(self.experiments.iter().filter(is_confirming).any(|one| one.breaks_conditions))
            }
            () if self.experiments.iter().any(|trial| trial.is_final && trial.ruling == Ruling::Fail) => 1,
            () => 3,
        }
    }
}

/// How ratings are searched (bg-rating: rating parameters).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatingParameters {
    /// δ: how long the experiments of a search run, in seconds. If there are several, the two
    /// largest have to agree.
    pub search_s: Vec<f64>,
    /// The δ that the ratings rest on, in seconds.
    pub settled_search_s: f64,
    /// If a final experiment differs from those of the search by more than this, in percent, the
    /// search is repeated with a longer δ. Null: no such repetition.
    pub delta_check_percent: Option<f64>,
    /// The T that the search starts with; in a rating by arrival rate the T of every experiment.
    pub first_threads: u32,
    /// The highest T of the search; in a rating by arrival rate the T of every experiment.
    pub max_threads: u32,
    /// The arrival rates of the search; null in a rating by threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RateLimits>,
    /// What happens to the store between two experiments.
    pub between: Between,
    /// Sessions of warm-up in each experiment.
    pub warmup_sessions: u64,
    /// Whether an actor acts in at most one session at a time.
    pub unique_actors: bool,
}

/// The arrival rates that a search may try, in sessions a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// The rate that the search starts with.
    pub first_per_s: u32,
    /// The highest rate.
    pub max_per_s: u32,
}

/// What happens to the store between two experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// It is reset to the data set, and the trace starts from its beginning.
    #[default]
    Load,
    /// It stays as it is, and the trace continues where the last experiment stopped.
    Continue,
}

/// One of the ratings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Operations a second, threads, or sessions a second; 0 when no experiment met the SLA, or when
    /// nothing could be measured.
    pub value: f64,
    /// The threads at which it was reached; 0 when none.
    pub threads: u32,
    /// The interval in which the true value lies. Null if the value is 0 or has no upper bound.
    pub interval: Option<Interval>,
    /// The search stopped at the upper limit of its load: the true value may be higher.
    pub at_least: bool,
    /// The final experiment that confirmed it; null if none did.
    pub confirmed_by: Option<u32>,
    /// Every experiment of the search was void: nothing is known about the store. `rests_on_void`
    /// says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasured: bool,
    /// The numbers of the experiments that it rests on: all with its load, those that bound it, and
    /// the final ones.
    pub rests_on: Vec<u32>,
    /// What void experiments leave unverified: which experiments, why, and what they should have
    /// verified. Null if there is nothing.
    pub rests_on_void: Option<String>,
    /// Further notes that a reader of the number needs.
    pub notes: Vec<String>,
}

/// The interval in which a rating's true value lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, in the rating's unit.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What the interval rests on, in words.
    pub basis: String,
}

/// An experiment of a rating.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatedExperiment {
    /// Its number.
    pub experiment: u32,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// Its threads.
    pub threads: u32,
    /// Open loop: its mean arrival rate, in sessions a second. Null in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Its planned duration, without warm-up.
    pub duration_s: f64,
    /// Whether it is a final experiment, which confirms a rating. Otherwise it belongs to the
    /// search.
    pub is_final: bool,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why it is not a pass.
    pub reasons: Vec<String>,
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Sessions a second, no-operations included.
    pub sessions_per_s: f64,
    /// Share of the operations that succeeded within β, in percent.
    pub within_beta_percent: f64,
    /// Share of the reads that were unpredictable, in percent.
    pub unpredictable_percent: f64,
    /// Whether it left data that violate a condition, or that could not be checked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub breaks_conditions: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
