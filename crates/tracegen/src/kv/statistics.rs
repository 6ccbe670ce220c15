//! Statistics of the records and the draws, counted by fragment and merged.

use schemas::manifest::Shares;
use schemas::workload::kv::KvStatistics;

use super::space::Space;

/// What is counted of a fragment.
#[derive(Debug, Clone, Copy, Default)]
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
}

/// The statistics of the manifest.
pub(crate) fn statistics(fragments: u32, space: &Space, tallies: &[Tally]) -> KvStatistics {
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let share = |part: u64| part as f64 / sum(|tally| tally.draws).max(1) as f64;
    let shares = |expected: f64, achieved: f64| Shares { distribution: expected, expected, achieved };
    let [hottest, top] = space.expected;
    KvStatistics {
        inserted_records: sum(|tally| tally.inserted),
        deleted_records: sum(|tally| tally.deleted),
        hottest: shares(hottest, share(sum(|tally| tally.to_hottest))),
        top_hundredth: shares(top, share(sum(|tally| tally.to_top))),
        drawn_records: sum(|tally| tally.drawn),
        first_records: (0..fragments).map(|fragment| space.first_record(fragment)).collect(),
    }
}
