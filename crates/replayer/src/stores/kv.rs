//! The data set of the `kv` family, for the stores that serve it.

use schemas::workload::kv::dataset::{RECORDS, records};
use schemas::workload::kv::{Data, Keys, Values};

use super::StoreError;
use super::url::StoreUrl;
use crate::source::Source;

/// Why a store refuses to insert a record.
pub const ALREADY_THERE: &str = "the record exists already";

/// Why a store refuses to update or delete a record.
pub const MISSING: &str = "the record does not exist";

/// The records of a trace set: what is in the store before the first session, and the functions
/// that make keys and values.
#[derive(Debug, Clone)]
pub struct KvData {
    /// The parameters of the data set.
    pub data: Data,
    /// The keys of records.
    pub keys: Keys,
    /// The values of fields.
    pub values: Values,
}

impl KvData {
    /// That of a trace set.
    pub fn of(source: &Source) -> KvData {
        let data = source.records().data;
        let (keys, values) = (Keys::new(&data), Values::new(&source.manifest.spec, &data));
        KvData { data, keys, values }
    }

    /// How many records are loaded.
    pub fn count(source: &Source) -> u64 {
        source.rows_of(RECORDS)
    }

    /// Whether sessions of a trace set change how many records there are.
    pub fn changes_count(source: &Source) -> bool {
        source.manifest.spec.kinds().iter().any(|(name, _)| ["insert", "delete"].contains(name))
    }

    /// Whether sessions of a trace set write values.
    pub fn has_values_written(source: &Source) -> bool {
        let kinds = source.manifest.spec.kinds();
        kinds.iter().any(|(name, _)| !["read", "scan", "delete"].contains(name))
    }

    /// The records of a fragment in the order of their keys, some thousands at a time.
    pub fn records(
        source: &Source,
        fragment: u32,
        url: &StoreUrl,
    ) -> Result<impl Iterator<Item = Result<Vec<u64>, StoreError>> + use<>, StoreError> {
        let wrong = |url: &StoreUrl, e: schemas::table::TableError| StoreError::usage(url, e);
        let url = url.clone();
        let chunks = records(&source.folder, fragment).map_err(|e| wrong(&url, e))?;
        Ok(chunks.map(move |chunk| chunk.map_err(|e| wrong(&url, e))))
    }

    /// Refuses the digest of a store on which a replay may leave one of several states.
    pub fn has_one_state(source: &Source, url: &StoreUrl) -> Result<(), StoreError> {
        let workload = source.records();
        if workload.leaves_one_state(&source.manifest.spec) {
            return Ok(());
        }
        if workload.transactions.is_some() {
            let message = "has no single final state to compare: a store may roll transactions of this trace set back; \
                           generate one without [transactions]";
            return Err(StoreError::usage(url, message));
        }
        let message = "has no single final state to compare: writes of a record do not wait for each other in this \
                       trace set; generate one with access.ordered_writes = true";
        Err(StoreError::usage(url, message))
    }

    /// Puts the initial value of a field of a record in place of what `text` holds.
    pub fn initial(&self, record: u64, field: u32, text: &mut String) {
        text.clear();
        self.values.initial(record, field, text);
    }
}
