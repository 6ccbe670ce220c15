//! Experiments with made-up figures.

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::verdict::Ruling;

use crate::run::trial::Trial;
use crate::terminal::testing::{report, verdict};

/// An experiment with this throughput and ruling.
pub fn trial(experiment: u32, threads: u32, throughput_per_s: f64, ruling: Ruling, purpose: Purpose) -> Trial {
    Trial {
        purpose,
        limit: Limit::DurationS(10.0),
        rate_per_s: None,
        started_unix_s: 0,
        took_s: 12.5,
        report: Some(report()),
        lost: None,
        verdict: verdict(experiment, threads, throughput_per_s, ruling),
    }
}
