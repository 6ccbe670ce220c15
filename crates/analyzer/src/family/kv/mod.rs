//! The `kv` family: records, whose fields are registers, and the existence of each record.

pub mod items;
mod names;
mod scans;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::kv::WriteId;
use schemas::workload::Workload;
use schemas::workload::kv::KvWorkload;

use super::{Family, ItemWords, WritePlace};
use crate::error::DataSetError;
use items::KvItems;

/// The family.
pub struct Kv;

impl Family for Kv {
    const NAME: &'static str = KvWorkload::FAMILY;
    type Vocabulary = schemas::vocabulary::kv::Kv;
    type Items = KvItems;

    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<KvItems, DataSetError> {
        KvItems::read(folder, manifest, fragment)
    }

    fn views() -> String {
        include_str!("views.sql").to_string()
    }

    fn registers() -> Option<&'static str> {
        Some(include_str!("registers.sql"))
    }

    fn words(item: &str) -> Option<ItemWords> {
        names::words(item)
    }

    /// For how long the value had been overwritten when the read began. What was there although it must not
    /// be, or was not although it must, has no age.
    fn wrongness() -> &'static str {
        include_str!("wrongness.sql").trim_end()
    }

    fn writer(value: i64) -> Option<WritePlace> {
        let (fragment, session, step) = WriteId::from_number(value)?.place();
        Some(WritePlace { fragment: fragment as i64, session: session as i64, step: step as i64 })
    }

    fn item_in_history(owner: u64, element: u32) -> String {
        format!("record {owner} field {element}")
    }

    fn popularity(manifest: &Manifest) -> Option<String> {
        let shares = manifest.statistics_of::<KvWorkload>().ok()?.top_hundredth;
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        Some(format!(
            "the most popular hundredth of the records gets {} of the draws in this trace set (access distribution: \
             {}).",
            percent(shares.achieved),
            percent(shares.distribution)
        ))
    }
}
