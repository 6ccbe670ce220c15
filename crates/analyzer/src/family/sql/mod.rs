//! The `sql` family: statements of any application. What they may return is not known, so there are no items, and no
//! read is unpredictable. The number of rows and their hash can be compared between runs.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::sql::Operation;
use schemas::workload::Workload;
use schemas::workload::sql::SqlWorkload;

use super::{Family, ItemWords};
use crate::error::DataSetError;
use crate::validate::{Findings, Interval, Items, Touched, UnknownId};

/// The family.
pub struct Sql;

impl Family for Sql {
    const NAME: &'static str = SqlWorkload::FAMILY;
    type Vocabulary = schemas::vocabulary::sql::Sql;
    type Items = NoItems;

    fn items(_folder: &Path, _manifest: &Manifest, _fragment: u32) -> Result<NoItems, DataSetError> {
        Ok(NoItems)
    }

    fn views() -> String {
        include_str!("views.sql").to_string()
    }

    fn words(_item: &str) -> Option<ItemWords> {
        None
    }

    fn popularity(_manifest: &Manifest) -> Option<String> {
        None
    }
}

/// There are no items.
pub struct NoItems;

impl Items<Operation> for NoItems {
    fn register(&mut self, _operation: &Operation, _at: Interval, _horizon: i64) -> Result<(), UnknownId> {
        Ok(())
    }

    fn check(
        &mut self,
        _operation: &Operation,
        _observed: &[i64],
        _read: Interval,
        _horizon: i64,
        _findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        Ok(())
    }

    /// Which rows a statement has seen is not known, so the history of transactions says nothing.
    fn history(&self, operation: &Operation, _observed: &[i64], each: &mut dyn FnMut(Option<Touched>)) {
        if operation.verb.reads() {
            each(None);
        }
    }
}
