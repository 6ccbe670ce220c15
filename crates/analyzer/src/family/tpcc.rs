//! The `tpcc` family: the statements of TPC-C. What they read and change is judged by the conditions of the trace set, not
//! statement by statement.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::workload::Workload;
use schemas::workload::tpcc::TpccWorkload;

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

    fn popularity(manifest: &Manifest) -> Option<String> {
        Sql::popularity(manifest)
    }
}
