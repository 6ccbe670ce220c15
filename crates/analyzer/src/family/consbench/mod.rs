//! The `consbench` family: the records of `kv`, as its tests write and read them.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::workload::Workload;
use schemas::workload::consbench::ConsbenchWorkload;

use super::kv::items::KvItems;
use super::{Family, ItemWords, WritePlace, kv};
use crate::error::DataSetError;

/// The family.
pub struct Consbench;

impl Family for Consbench {
    const NAME: &'static str = ConsbenchWorkload::FAMILY;
    type Vocabulary = schemas::vocabulary::kv::Kv;
    type Items = KvItems;

    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<KvItems, DataSetError> {
        KvItems::read(folder, manifest, fragment)
    }

    fn views() -> String {
        kv::Kv::views()
    }

    fn registers() -> Option<&'static str> {
        kv::Kv::registers()
    }

    fn words(item: &str) -> Option<ItemWords> {
        kv::Kv::words(item)
    }

    fn wrongness() -> &'static str {
        kv::Kv::wrongness()
    }

    fn writer(value: i64) -> Option<WritePlace> {
        kv::Kv::writer(value)
    }

    fn item_in_history(owner: u64, element: u32) -> String {
        kv::Kv::item_in_history(owner, element)
    }

    /// Tests write one record after the other: none is popular.
    fn popularity(_manifest: &Manifest) -> Option<String> {
        None
    }
}
