//! What the store does for `sql`: the tables of a trace set as tables of the keyspace, one for each access path of its
//! statements, as [`schemas::vocabulary::sql::physical::wide`] maps them.
//!
//! A change of several tables is a logged batch: all of them have it in the end, and a read may see some before. There
//! are no transactions. Without `conditions=lwt` an insert overwrites a row with its key, an update adds a row that is
//! missing, and each of them counts as one row.

mod actions;
mod load;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::digest::StateDigest;
use schemas::vocabulary::sql::physical::wide::{Wide, WideMapping};
use schemas::vocabulary::sql::{Rows, Sql};
use schemas::words::plural;
use schemas::workload::sql::rows::rows_in_files;
use schemas::workload::sql::{SqlStatistics, SqlWorkload};
use scylla::client::session::Session;

use super::level::Level;
use super::rows::{self, Whole};
use super::{Cassandra, LAYOUT, schema};
use crate::source::Source;
use crate::stores::custom::custom_parameters;
use crate::stores::physical::{self, Described, PHYSICAL, physical_file};
use crate::stores::relational::sql::ROW;
use crate::stores::{HeldState, LoadProgress, Serves, Store, StoreError};
pub use actions::SqlConnection;
use actions::{Ready, Shared, own_level};

/// The statements of a trace set and what they are here.
struct Mapped {
    mapping: WideMapping,
    described: Described,
    /// What the marker says of the design.
    sum: String,
    /// The file of the design.
    text: String,
}

impl Mapped {
    /// The tables that hold all columns, the first one of each table of the schema.
    fn wholes(&self) -> impl Iterator<Item = &Wide> {
        let all = &self.mapping.wide;
        (0..self.mapping.tables.0.len()).filter_map(|table| all.iter().find(|wide| wide.table == table))
    }
}

/// A quoted name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Cassandra {
    /// What comes before the names of tables.
    fn prefix(&self) -> String {
        format!("{}.", quoted(&self.place.keyspace))
    }

    /// Maps the statements of a trace set. Refuses those of its sessions that cannot be mapped, and of its load too, if
    /// that is to be checked.
    fn mapped(&self, source: &Source, checks_load: bool) -> Result<Mapped, StoreError> {
        let refused = |why: String| StoreError::usage(&self.url, why);
        let described = Described::of(source, checks_load).map_err(refused)?;
        let file = physical_file(&self.url)?;
        let mapping = WideMapping::of(&described.work(), file.as_deref(), &self.prefix());
        let (design, mapping) = mapping.map_err(|why| refused(described.blamed(&self.url, &why)))?;
        described.check(&self.url, &mapping.refused(&described.work()))?;
        self.own_levels(source, &mapping)?;
        let text = design.text();
        let sum = blake3::hash(text.as_bytes()).to_hex()[..16].to_string();
        Ok(Mapped { mapping, described, sum, text })
    }

    /// The consistency levels that custom parameters ask for, each with what asks for it. Refuses custom parameters that are
    /// no levels.
    fn own_levels(&self, source: &Source, mapping: &WideMapping) -> Result<Vec<(String, Level)>, StoreError> {
        let mut levels = Vec::new();
        for one in custom_parameters(source) {
            let Some(Ok(plan)) = mapping.plans.get(one.statement as usize) else { continue };
            let of = format!("statement {} of {}", one.statement, source.folder.display());
            let custom = one.parameters.iter().map(String::as_str);
            let level = own_level(custom, plan).map_err(|why| {
                let uses = plural(one.uses, "operation");
                let message =
                    format!("{of} {why} ({uses}); correct the custom parameters, and import the trace set again");
                StoreError::usage(&self.url, message)
            })?;
            levels.extend(level.map(|level| (format!("a custom parameter of {of}"), level)));
        }
        Ok(levels)
    }

    /// All rows of a table.
    fn whole(&self, mapped: &Mapped, wide: &Wide) -> Whole {
        let table = &mapped.mapping.tables.0[wide.table];
        let partition = table.names(wide.partition.iter().copied());
        let partition = partition.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        Whole { table: format!("{}{}", self.prefix(), quoted(&wide.name)), partition }
    }

    async fn digest_of(&self, mapped: &Mapped, session: &Session) -> Result<StateDigest, StoreError> {
        let mut digest = StateDigest::default();
        let mut read = Rows::default();
        for wide in mapped.wholes() {
            let table = &mapped.mapping.tables.0[wide.table];
            let columns: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
            read.begin(false, false);
            rows::each(self, session, &self.whole(mapped, wide), &columns.join(", "), |cells| {
                for (cell, column) in cells.iter().zip(&table.columns) {
                    values::add(&mut read, *cell, column.kind).map_err(|why| StoreError::store(&self.url, why))?;
                }
                digest.add(ROW, &[], &[table.name.to_lowercase().as_bytes(), read.row()]);
                read.end_row();
                Ok(())
            })
            .await?;
        }
        Ok(digest)
    }
}

impl Serves<Sql> for Cassandra {
    type Connection = SqlConnection;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(self, &self.mapped(source, true)?, source, progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        let design = self.design();
        let mut plain = held.clone();
        // It depends on the trace set too, and is compared when threads connect.
        plain.design.remove(PHYSICAL);
        plain.check(&self.url, LAYOUT, &design.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    fn design_settings(&self, source: &Source) -> BTreeMap<String, String> {
        physical::settings(source, self.mapped(source, false).ok().map(|mapped| mapped.text))
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let mapped = self.mapped(source, false)?;
        let session = self.session().await?;
        let mut found = 0;
        for wide in mapped.wholes() {
            found += rows::count(self, &session, &self.whole(&mapped, wide)).await?;
        }
        let statistics = source.manifest.statistics_of::<SqlWorkload>().unwrap_or_else(|_| SqlStatistics::default());
        match statistics.loaded_rows.map(|rows| rows + rows_in_files(&source.manifest.files)) {
            Some(expected) if expected != found => {
                Err(StoreError::miscounted(&self.url, "rows of all tables", found as i64, expected as i64, source))
            }
            _ => Ok(()),
        }
    }

    async fn check_statements(&self, source: &Source) -> Result<(), StoreError> {
        let mapped = self.mapped(source, false)?;
        let levels = self.own_levels(source, &mapped.mapping)?;
        schema::check_own_levels(self, &self.session().await?, &levels).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mapped = self.mapped(source, false)?;
        self.digest_of(&mapped, &self.session().await?).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<SqlConnection>, StoreError> {
        let mapped = self.mapped(source, false)?;
        let held = self.held().await?;
        if held.is_some_and(|held| held.design.get(PHYSICAL) != Some(&mapped.sum)) {
            let message = "was loaded with another physical schema; load it again with `encore replay load`, or change \
                           physical= in the URL";
            return Err(StoreError::usage(&self.url, message));
        }
        let session = self.session().await?;
        schema::check_levels(self, &session).await?;
        let ready = actions::prepare(self, &session, &mapped).await?;
        let coordinators = self.coordinators(&session).await?;
        let shared = Arc::new(Shared::new(self, session, mapped, source));
        let connection = |thread: u32| {
            let all = coordinators.len().max(1);
            let coordinator = coordinators.get(thread as usize % all).cloned();
            let ready: Vec<Ready> = ready.iter().map(|one| one.at(coordinator.as_ref())).collect();
            SqlConnection::new(shared.clone(), ready, coordinator)
        };
        Ok(threads.map(connection).collect())
    }
}
