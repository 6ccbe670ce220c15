//! BG's freshness confidence: how often a read showed all completed updates of an
//! item, by the time since the last of them.

use schemas::verdict::Freshness;
use serde::{Deserialize, Serialize};

use crate::validate::ItemRead;

/// One bucket for less than a microsecond, and one for each power of two microseconds.
const BUCKETS: usize = 55;

/// Items read by age; it merges with those of other fragments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WrittenFreshness", try_from = "WrittenFreshness")]
pub(crate) struct FreshnessSummary {
    reads: [u64; BUCKETS],
    fresh: [u64; BUCKETS],
}

/// The form in a document: items read and fresh items, bucket by bucket.
#[derive(Serialize, Deserialize)]
struct WrittenFreshness {
    reads: Vec<u64>,
    fresh: Vec<u64>,
}

impl From<FreshnessSummary> for WrittenFreshness {
    fn from(summary: FreshnessSummary) -> WrittenFreshness {
        WrittenFreshness { reads: summary.reads.to_vec(), fresh: summary.fresh.to_vec() }
    }
}

impl TryFrom<WrittenFreshness> for FreshnessSummary {
    type Error = String;

    fn try_from(written: WrittenFreshness) -> Result<FreshnessSummary, String> {
        let buckets = |found: Vec<u64>| {
            <[u64; BUCKETS]>::try_from(found).map_err(|found| format!("{} buckets instead of {BUCKETS}", found.len()))
        };
        Ok(FreshnessSummary { reads: buckets(written.reads)?, fresh: buckets(written.fresh)? })
    }
}

impl Default for FreshnessSummary {
    fn default() -> Self {
        FreshnessSummary { reads: [0; BUCKETS], fresh: [0; BUCKETS] }
    }
}

impl FreshnessSummary {
    pub(crate) fn add(&mut self, item: &ItemRead) {
        let age_us = item.age_ns.max(0) as u64 / 1000;
        // An age has at most 63 bits in nanoseconds, and so 54 in microseconds.
        let bucket = (u64::BITS - age_us.leading_zeros()) as usize;
        self.reads[bucket] += 1;
        self.fresh[bucket] += u64::from(item.is_fresh);
    }

    pub(crate) fn merge(&mut self, other: &FreshnessSummary) {
        self.reads.iter_mut().zip(other.reads).for_each(|(mine, theirs)| *mine += theirs);
        self.fresh.iter_mut().zip(other.fresh).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The buckets with at least one item, youngest first.
    pub(crate) fn figures(&self) -> Vec<Freshness> {
        let found = (0..BUCKETS).filter(|bucket| self.reads[*bucket] > 0);
        found
            .map(|bucket| Freshness {
                from_us: if bucket == 0 { 0 } else { 1 << (bucket - 1) },
                to_us: 1 << bucket,
                reads: self.reads[bucket],
                fresh: self.fresh[bucket],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_fall_into_powers_of_two() {
        let mut summary = FreshnessSummary::default();
        for (age_ns, is_fresh) in
            [(1, true), (999, false), (1000, true), (2000, true), (3999, false), (4000, true), (i64::MAX, true)]
        {
            summary.add(&ItemRead { age_ns, is_fresh });
        }
        let mut twice = summary.clone();
        twice.merge(&summary);
        let found: Vec<_> = twice.figures().iter().map(|f| (f.from_us, f.to_us, f.reads, f.fresh)).collect();
        let last = (1 << 53, 1 << 54, 2, 2);
        assert_eq!(found, [(0, 1, 4, 2), (1, 2, 2, 2), (2, 4, 4, 2), (4, 8, 2, 2), last]);
    }
}
