//! What a trace set says of its records and of the draws.

use serde::{Deserialize, Serialize};

use super::keys::{KeyRange, Keys};
use crate::workload::Shares;

/// Statistics of a data set and a trace, over all fragments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct KvStatistics {
    /// Records that sessions insert.
    pub inserted_records: u64,
    /// Records of the data set and inserted ones that sessions delete.
    pub deleted_records: u64,
    /// Share of the draws that go to the record that is the most popular by the distribution (among
    /// the latest records: to the latest). `distribution` is what holds before the first session, and
    /// `expected` what holds among the records that exist at each draw.
    pub hottest: Shares,
    /// Share of the draws that go to the most popular hundredth of the records.
    pub top_hundredth: Shares,
    /// How many different records are drawn.
    pub drawn_records: u64,
    /// The first record of each fragment in the order of keys.
    pub first_records: Vec<u64>,
}

impl KvStatistics {
    /// The keys of a fragment.
    pub fn range(&self, keys: &Keys, fragment: u32) -> KeyRange {
        let place = |fragment: usize| self.first_records.get(fragment).map(|record| keys.place(keys.number(*record)));
        let fragment = fragment as usize;
        // The outer fragments go on to both ends.
        KeyRange { from: if fragment == 0 { None } else { place(fragment) }, to: place(fragment + 1) }
    }
}
