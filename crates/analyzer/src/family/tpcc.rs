//! The `tpcc` family: the statements of TPC-C. What they read and change is judged by the conditions of the trace set, not
//! statement by statement.

use std::ops::Range;
use std::path::Path;

use schemas::manifest::Manifest;
use schemas::table::TableError;
use schemas::verdict::DrawRule;
use schemas::workload::Workload;
use schemas::workload::tpcc::{TpccWorkload, draws_of, draws_path};

use super::sql::{NoItems, Sql};
use super::{Family, ItemWords};
use crate::error::DataSetError;

/// The family.
pub struct Tpcc;

impl Family for Tpcc {
    const NAME: &'static str = TpccWorkload::FAMILY;
    type Vocabulary = schemas::vocabulary::sql::Sql;
    type Items = NoItems;

    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<NoItems, DataSetError> {
        Sql::items(folder, manifest, fragment)
    }

    fn views() -> String {
        Sql::views()
    }

    fn words(item: &str) -> Option<ItemWords> {
        Sql::words(item)
    }

    fn draw_rules(
        folder: &Path,
        manifest: &Manifest,
        fragment: u32,
        sessions: Range<u64>,
    ) -> Result<Vec<DrawRule>, TableError> {
        let path = draws_path(fragment);
        // A trace set of an earlier version has no such table.
        if !manifest.files.iter().any(|file| file.path == path) {
            return Ok(Vec::new());
        }
        let has_remote = manifest.spec.workload::<TpccWorkload>().is_ok_and(|own| own.data.warehouses > 1);
        Ok(draws_of(&folder.join(path), sessions)?.rules(has_remote))
    }

    fn popularity(manifest: &Manifest) -> Option<String> {
        Sql::popularity(manifest)
    }
}
