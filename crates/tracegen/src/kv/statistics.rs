//! Statistics of the records and the draws, counted by fragment and merged.

use schemas::manifest::Shares;
use schemas::workload::kv::KvStatistics;
use serde::{Deserialize, Serialize};

use super::space::Space;

/// What is counted of a fragment.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Records that were inserted.
    pub(crate) inserted: u64,
    /// Records that were deleted.
    pub(crate) deleted: u64,
    /// How often a record was drawn.
    pub(crate) draws: u64,
    /// How often it was the one that is the most popular by the distribution.
    pub(crate) to_hottest: u64,
    /// How often it was of the hundredth that is the most popular by the distribution.
    pub(crate) to_top: u64,
    /// How many different records were drawn.
    pub(crate) drawn: u64,
    /// The probabilities that a draw before the first session gives the most popular record, and one of
    /// the most popular hundredth.
    pub(crate) alone: [f64; 2],
    /// The sums of these probabilities over all draws, each among the records that existed then.
    pub(crate) expected: [f64; 2],
}

/// Adds up the probabilities of draws.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expectation {
    sum: [f64; 2],
    /// Those of the latest draws, which are not in the sum yet.
    latest: [f64; 2],
    draws: u64,
}

impl Expectation {
    /// A draw with these probabilities. Equal ones are multiplied, so that they do not gather errors.
    pub(crate) fn add(&mut self, probabilities: [f64; 2]) {
        if probabilities != self.latest {
            *self = Expectation { sum: self.sum(), latest: probabilities, draws: 0 };
        }
        self.draws += 1;
    }

    /// The sums over all draws.
    pub(crate) fn sum(&self) -> [f64; 2] {
        [0, 1].map(|which| self.sum[which] + self.latest[which] * self.draws as f64)
    }
}

/// The statistics of the manifest.
pub(crate) fn statistics(fragments: u32, space: &Space, tallies: &[Tally]) -> KvStatistics {
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let draws = sum(|tally| tally.draws).max(1) as f64;
    let shares = |which: usize, achieved: u64| Shares {
        distribution: space.weights.iter().zip(tallies).map(|(weight, tally)| weight * tally.alone[which]).sum(),
        expected: tallies.iter().map(|tally| tally.expected[which]).sum::<f64>() / draws,
        achieved: achieved as f64 / draws,
    };
    KvStatistics {
        inserted_records: sum(|tally| tally.inserted),
        deleted_records: sum(|tally| tally.deleted),
        hottest: shares(0, sum(|tally| tally.to_hottest)),
        top_hundredth: shares(1, sum(|tally| tally.to_top)),
        drawn_records: sum(|tally| tally.drawn),
        first_records: (0..fragments).map(|fragment| space.first_record(fragment)).collect(),
    }
}
