//! What the store does for `sql`: the tables of a trace set as collections, one for each access path of its
//! statements, as [`schemas::vocabulary::sql::physical`] maps them.
//!
//! A statement that writes to several collections outside of a transaction is a transaction of its own. Rows keep
//! neither NOT NULL, CHECK nor foreign keys; keys and UNIQUE are kept.

mod actions;
mod documents;
mod expression;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::doc;
use mongodb::error::Error;
use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::run::add_settings;
use schemas::vocabulary::sql::physical::Mapping;
use schemas::vocabulary::sql::{Rows, Sql, Statement};
use schemas::workload::sql::rows::rows_in_files;
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::collections::FAMILY_OF_TABLES;
use super::visit::visit;
use super::{MongoDb, Reads, closing, load};
use crate::source::Source;
use crate::stores::physical::{self, Described, PHYSICAL, physical_file};
use crate::stores::relational::sql::ROW;
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, LoadProgress, Serves, Store, StoreError, custom};
use actions::Shared;
pub use actions::SqlActions;
use documents::DataSet;

/// The version of the documents. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// Refuses a store that was loaded with other documents than these.
pub fn check(url: &StoreUrl, held: &HeldState) -> Result<(), StoreError> {
    match held.layout == LAYOUT {
        true => Ok(()),
        false => Err(StoreError::usage(url, "was loaded by another version of Encore; load it again")),
    }
}

/// The statements of a trace set and what they are here.
struct Mapped {
    mapping: Mapping,
    statements: Vec<Statement>,
    /// What the marker says of the design.
    design: BTreeMap<String, String>,
    /// The file of the design.
    text: String,
}

impl MongoDb {
    /// Maps the statements of a trace set. Refuses those of its sessions that cannot be mapped, and of its load too, if
    /// that is to be checked.
    fn mapped(&self, source: &Source, checks_load: bool) -> Result<Mapped, StoreError> {
        let described = Described::of(source, checks_load).map_err(|why| self.misused(why))?;
        let file = physical_file(&self.url)?;
        let mapping = Mapping::of(&described.work(), file.as_deref());
        let (design, mapping) = mapping.map_err(|why| self.misused(described.blamed(&self.url, &why)))?;
        described.check(&self.url, &mapping.refused(&described.work()))?;
        let text = design.text();
        let sum = blake3::hash(text.as_bytes()).to_hex()[..16].to_string();
        let (family, sql) = FAMILY_OF_TABLES;
        let design = BTreeMap::from([(family.to_string(), sql.to_string()), (PHYSICAL.to_string(), sum)]);
        Ok(Mapped { mapping, statements: described.statements, design, text })
    }

    /// The shared part of connections, after a check that the store was loaded with this design.
    async fn shared(&self, source: &Source, database: &Database) -> Result<Arc<Shared>, StoreError> {
        let mapped = self.mapped(source, false)?;
        let held = self.held().await?;
        if held.is_some_and(|held| held.design != mapped.design) {
            let message = "was loaded with another physical schema; load it again with `encore replay load`, or change \
                           physical= in the URL";
            return Err(self.misused(message));
        }
        if mapped.mapping.plans.iter().flatten().any(|plan| plan.writes() > 1) {
            let remedy = "a design with one collection for each table (`encore trace physical`)";
            self.check_replica_set(database, remedy).await?;
        }
        let ordered = mapped.statements.iter().map(|statement| statement.ordered).collect();
        Ok(Arc::new(Shared::new(database, mapped.mapping, ordered, source.sql().log_results, self.timeout)))
    }
}

impl Serves<Sql> for MongoDb {
    type Connection = SqlActions;

    fn transactions(&self) -> Option<Isolation> {
        Some(self.isolation)
    }

    async fn check_transactions(&self) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        closing(&client, self.check_replica_set(&client.database(&self.database), "--transactions off")).await
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let mapped = self.mapped(source, true)?;
        let client = self.keeper().await?;
        closing(&client, load::load(self, &DataSet(mapped), &client, source, progress)).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        check(&self.url, held)
    }

    fn design_settings(&self, source: &Source) -> BTreeMap<String, String> {
        let mut settings = physical::settings(source, self.mapped(source, false).ok().map(|mapped| mapped.text));
        add_settings(&mut settings, custom::ignored(source).into_iter().collect());
        settings
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let mapped = self.mapped(source, false)?;
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        let counted = async {
            let mut found = 0;
            for (name, _) in wholes(&mapped.mapping) {
                found += database.collection::<mongodb::bson::Document>(name).count_documents(doc! {}).await?;
            }
            Ok(found)
        };
        let counted = counted.await;
        let found = closing(&client, async { counted }).await.map_err(|error: Error| self.driver_failed(error))?;
        let statistics = source.manifest.statistics_of::<SqlWorkload>().unwrap_or_else(|_| SqlStatistics::default());
        match statistics.loaded_rows.map(|rows| rows + rows_in_files(&source.manifest.files)) {
            Some(expected) if expected != found => {
                Err(StoreError::miscounted(&self.url, "rows of all tables", found as i64, expected as i64, source))
            }
            _ => Ok(()),
        }
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mapped = self.mapped(source, false)?;
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        let read = async {
            let mut digest = StateDigest::default();
            let mut rows = Rows::default();
            for (name, table) in wholes(&mapped.mapping) {
                let table = &mapped.mapping.tables.0[table];
                rows.begin(false, false);
                visit(&database, name, |document| {
                    for column in &table.columns {
                        values::add(&mut rows, document.get(&column.name)?, column.kind).map_err(Error::custom)?;
                    }
                    digest.add(ROW, &[], &[table.name.to_lowercase().as_bytes(), rows.row()]);
                    rows.end_row();
                    Ok(())
                })
                .await?;
            }
            Ok(digest)
        };
        closing(&client, read).await.map_err(|error: Error| self.driver_failed(error))
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<SqlActions>, StoreError> {
        let database = self.connected(&threads, Reads::AsAsked).await?;
        let shared = self.shared(source, &database).await?;
        Ok(threads.map(|_| SqlActions::new(shared.clone())).collect())
    }
}

/// The collections that hold all columns of their tables, with the tables: the first one of each.
fn wholes(mapping: &Mapping) -> impl Iterator<Item = (&str, usize)> {
    (0..mapping.tables.0.len()).filter_map(|table| {
        let whole = mapping.collections.iter().find(|collection| collection.table == table)?;
        Some((&whole.name[..], table))
    })
}
