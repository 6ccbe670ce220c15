//! The `economy` family: the records of `kv`, and the sum of their balances, which every transaction
//! keeps.

mod items;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::workload::Workload;
use schemas::workload::economy::EconomyWorkload;

use super::{Family, ItemWords, WritePlace, kv};
use crate::error::DataSetError;
use items::EconomyItems;

/// The family.
pub struct Economy;

impl Family for Economy {
    const NAME: &'static str = EconomyWorkload::FAMILY;
    type Vocabulary = schemas::vocabulary::kv::Kv;
    type Items = EconomyItems;

    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<EconomyItems, DataSetError> {
        EconomyItems::read(folder, manifest, fragment)
    }

    fn views() -> String {
        format!("{}\n{}", kv::Kv::views(), include_str!("views.sql"))
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

    fn popularity(manifest: &Manifest) -> Option<String> {
        kv::Kv::popularity(manifest)
    }
}
