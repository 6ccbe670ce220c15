//! What an experiment of a run was for (`trial.json`).

use serde::{Deserialize, Serialize};

use crate::plan::Limit;

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
