//! What a comparison determines for each cell.

use serde::{Deserialize, Serialize};

/// The ratings to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// SoAR and Socialites.
    #[default]
    Both,
    /// SoAR alone.
    Soar,
    /// Socialites alone.
    Socialites,
    /// The highest arrival rate.
    Rate,
}

/// A figure of an experiment. All figures are measured; this one has the first table and the
/// chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share of unpredictable reads among those that were answered.
    Unpredictable,
    /// The share of operations that succeeded within β.
    WithinBeta,
    /// Successful operations a second.
    Throughput,
    /// The 95th percentile of the response times of successful operations.
    ResponseTime,
    /// The 95th percentile of Γ of the values that were written.
    Gamma,
    /// Committed sessions of the kind that the benchmark is known by, a minute (tpmC).
    PerMinute,
    /// How far the sum of all money is off, a transaction (`economy`).
    AnomalyScore,
}

/// What a comparison determines for each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// These ratings, by a search.
    Rate(Wanted),
    /// The figures of one experiment, this one first.
    Measure(Measure),
}
