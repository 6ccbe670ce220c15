//! The `social` family: counts and lists of members and resources.
//!
//! `schemas::social` says what each action changes and observes. Nothing here says it again: the
//! items are registered and checked by it, and the SQL views are written from it.

pub mod initial;
pub mod items;
mod names;
#[cfg(test)]
mod tests;
mod views;

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::workload::Workload;
use schemas::workload::social::SocialWorkload;

use super::{Family, ItemWords};
use crate::error::DataSetError;
use initial::Initial;
use items::SocialItems;

/// The family.
pub struct Social;

impl Family for Social {
    const NAME: &'static str = SocialWorkload::FAMILY;
    type Vocabulary = schemas::social::Social;
    type Items = SocialItems;

    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<SocialItems, DataSetError> {
        let workload: SocialWorkload = manifest.spec.workload()?;
        Ok(SocialItems::new(Initial::read(folder, fragment, workload.data.top_k)?))
    }

    fn views() -> String {
        views::views()
    }

    fn words(item: &str) -> Option<ItemWords> {
        names::words(item)
    }

    fn popularity(manifest: &Manifest) -> Option<String> {
        let shares = manifest.statistics_of::<SocialWorkload>().ok()?.targets.top_fifth;
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        Some(format!(
            "the most popular fifth of the members gets {} of the targets in this trace set (access distribution: {}).",
            percent(shares.achieved),
            percent(shares.distribution)
        ))
    }
}
