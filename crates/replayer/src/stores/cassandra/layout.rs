//! How rows are divided into partitions.
//!
//! Without scans each record is a partition by itself, as Cassandra's users have it. Cassandra keeps partitions in
//! the order of hashes, so a scan over them would have to read the whole table. With scans each fragment is a
//! partition, whose rows are in the order of their keys. Fragments are consecutive in the order of keys, and a
//! scan stays in its fragment, so a scan is one query of one partition.

use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::{Keys, KvWorkload};

use crate::source::Source;
use crate::stores::StoreError;
use crate::stores::fields::has_scans;
use crate::stores::url::StoreUrl;

/// The layout of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// A partition for each record.
    ByRecord,
    /// A partition for each fragment.
    ByFragment(Fragments),
}

/// Where each fragment but the first begins, in the order of keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Fragments {
    keys: Keys,
    starts: Vec<KeyPlace>,
}

impl Layout {
    /// That for a trace set.
    pub fn of(source: &Source, url: &StoreUrl) -> Result<Layout, StoreError> {
        if !has_scans(source) {
            return Ok(Layout::ByRecord);
        }
        let statistics = source.manifest.statistics_of::<KvWorkload>().map_err(|error| {
            StoreError::usage(url, format!("{}: statistics of the manifest: {error}", source.folder.display()))
        })?;
        let keys = Keys::new(&source.records().data);
        let starts = statistics.first_records.iter().skip(1).map(|record| keys.place(keys.number(*record))).collect();
        Ok(Layout::ByFragment(Fragments { keys, starts }))
    }

    /// Whether the partition is a fragment.
    pub fn is_by_fragment(&self) -> bool {
        matches!(self, Layout::ByFragment(_))
    }

    /// The fragment of a record, if that is its partition.
    pub fn fragment(&self, record: u64) -> Option<i32> {
        match self {
            Layout::ByRecord => None,
            Layout::ByFragment(fragments) => Some(fragments.of(record)),
        }
    }
}

impl Fragments {
    fn of(&self, record: u64) -> i32 {
        let place = self.keys.place(self.keys.number(record));
        // There are at most 2^15 fragments.
        self.starts.partition_point(|start| *start <= place) as i32
    }
}

#[cfg(test)]
mod tests {
    use schemas::workload::kv::KeyOrder;

    use super::*;

    #[test]
    fn a_record_is_in_the_fragment_whose_keys_are_around_its_own() {
        let text = "name = 't'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 90\n[mix]\nread = 1\n";
        let spec = schemas::spec::SpecOf::<KvWorkload>::parse(text, "t.toml").unwrap();
        let data = schemas::workload::kv::Data { key_order: KeyOrder::Ordered, key_digits: 3, ..spec.own.data };
        let keys = Keys::new(&data);
        let starts = [30, 60].map(|record| keys.place(keys.number(record))).to_vec();
        let layout = Layout::ByFragment(Fragments { keys, starts });
        for (record, fragment) in [(0, 0), (29, 0), (30, 1), (59, 1), (60, 2), (200, 2)] {
            assert_eq!(layout.fragment(record), Some(fragment), "{record}");
        }
        assert_eq!(Layout::ByRecord.fragment(4), None);
    }
}
