//! The `sql` family: the tables and statements of a trace set, in the dialect of the database.
//!
//! Each statement is one prepared statement that the connection keeps, and one round trip. The parameters of a
//! URL that choose a physical design are those of the `social` family; they change nothing here.
//! Custom parameters of operations change nothing either, and the run says so. Before an experiment the database prepares each statement, so that
//! what it does not know is refused then.

mod actions;
mod adoption;
mod conditions;
mod rows;
mod statements;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::conditions::Condition;
use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::vocabulary::Vocabulary;
use schemas::vocabulary::sql::{Rows, Sql, text};
use schemas::workload::sql::rows::rows_in_files;
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::engine::{Canonical, Client, Engine};
use super::perform::Performer;
use super::state::sql;
use super::{LOCKING, Relational, words};
use crate::source::Source;
use crate::stores::{HeldState, LoadProgress, Moment, Serves, Store, StoreError, custom};
use actions::Actions;
use rows::DataSet;
use statements::Statements;

/// The version of what the marker says. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// What the marker says of the design: the family, and the names of its tables and views, one a line.
const FAMILY: &str = "family";
const TABLES: &str = "tables";

/// The tag of a row in the digest of a state.
pub(in crate::stores) const ROW: u8 = 6;

/// What the marker of a store says that has these statements.
fn design_of(statements: &Statements) -> BTreeMap<String, String> {
    let names = statements.definitions().iter().flat_map(|one| [&one.table, &one.view]).flatten();
    let names = names.cloned().collect::<Vec<_>>().join("\n");
    BTreeMap::from([(FAMILY.to_string(), Sql::NAME.to_string()), (TABLES.to_string(), names)])
}

/// The names of the tables and views that a marker lists; None if it is not of this family.
pub(super) fn loaded_names(held: &HeldState) -> Option<impl Iterator<Item = &str>> {
    let is_own = held.design.get(FAMILY).is_some_and(|family| family == Sql::NAME);
    is_own.then(|| held.design.get(TABLES).map_or("", String::as_str).lines())
}

/// A thread's connection.
pub type SqlConnection<E> = Performer<E, Actions>;

impl<E: Engine> Relational<E> {
    fn statements(&self, source: &Source) -> Result<Statements, StoreError> {
        self.statements_with(source, &[])
    }

    fn statements_with(&self, source: &Source, casts: &[Vec<Option<String>>]) -> Result<Statements, StoreError> {
        // Where there are no locks of rows, a transaction locks from its beginning instead.
        let keeps_locks = self.locking != Some(false) && !E::DIALECT.for_update.is_empty();
        Statements::of(source, E::DIALECT.sql, keeps_locks, casts).map_err(|message| self.misused(message))
    }

    /// The statements with the types of parameters that the database says.
    async fn typed_statements(&self, source: &Source) -> Result<Statements, StoreError> {
        let plain = self.statements(source)?;
        let mut client = self.client().await?;
        let mut casts = Vec::with_capacity(plain.len());
        for one in plain.all() {
            casts.push(self.in_time(E::casts(&mut client, one.text.clone(), &one.parameters)).await?);
        }
        self.in_time(client.disconnect()).await?;
        self.statements_with(source, &casts)
    }
}

impl<E: Engine> Serves<Sql> for Relational<E> {
    type Connection = SqlConnection<E>;

    fn transactions(&self) -> Option<Isolation> {
        Some(self.engine().isolation())
    }

    fn design_settings(&self, source: &Source) -> BTreeMap<String, String> {
        let locking = match self.locking {
            None => "as written",
            Some(true) => "read",
            Some(false) => "none",
        };
        let locking = (LOCKING.to_string(), locking.to_string());
        custom::ignored(source).into_iter().chain([locking]).collect()
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let statements = self.statements(source)?;
        if statements.definitions().is_empty() {
            return Err(self.misused(format!(
                "{} has no tables to load; copy the database that its statements need, and run on it with --keep-data",
                source.folder.display()
            )));
        }
        E::load(self, &DataSet::new(source, statements, E::DIALECT.sql), progress).await
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        adoption::adopt(self, source).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        match loaded_names(held) {
            Some(_) if held.layout == LAYOUT => Ok(()),
            _ => Err(self.misused("was loaded by another version of Encore; load it again with `encore replay load`")),
        }
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        if self.held().await?.is_some_and(|held| held.adopted) {
            return Ok(());
        }
        let statements = self.statements(source)?;
        let mut client = self.client().await?;
        let mut found = 0;
        for table in statements.tables() {
            let name = text::quoted(table, E::DIALECT.sql);
            found += self.count(&mut client, &format!("SELECT count(*) FROM {name}")).await?;
        }
        self.in_time(client.disconnect()).await?;
        // The statistics of each family of this vocabulary have those of its statements.
        let statistics = source.manifest.statistics_of::<SqlWorkload>();
        let by_statements = statistics.unwrap_or_else(|_| SqlStatistics::default()).loaded_rows;
        match by_statements.map(|rows| rows + rows_in_files(&source.manifest.files)) {
            Some(expected) if expected != found => {
                Err(StoreError::miscounted(self.url(), "rows of all tables", found as i64, expected as i64, source))
            }
            _ => Ok(()),
        }
    }

    async fn check_statements(&self, source: &Source) -> Result<(), StoreError> {
        // A statement of a log may have failed there already, and does so again.
        if self.held().await?.is_some_and(|held| held.adopted) {
            return Ok(());
        }
        let statements = self.typed_statements(source).await?;
        let mut client = self.client().await?;
        for (number, one) in statements.all().iter().enumerate() {
            let prepare = async { Ok(client.prepare(one.text.clone(), &one.parameters).await) };
            match self.in_time(prepare).await? {
                Ok(()) => {}
                Err(error @ sqlx::Error::Database(_)) => {
                    return Err(self.misused(format!(
                        "cannot prepare statement {number} of {}: {}: {}; correct the statement or the schema, and make the \
                         trace set again",
                        source.folder.display(),
                        words(&error),
                        one.text.as_str()
                    )));
                }
                Err(other) => return Err(self.driver_failed(other)),
            }
        }
        self.in_time(client.disconnect()).await
    }

    async fn check_conditions(
        &self,
        source: &Source,
        moment: Moment,
        go_on: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<Vec<Condition>>, StoreError> {
        conditions::check(self, &self.statements(source)?, moment, go_on).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let statements = self.statements(source)?;
        let mut client = self.client().await?;
        let mut digest = StateDigest::default();
        let mut rows = Rows::default();
        let tables = match statements.definitions().is_empty() {
            // The trace set runs on a database that is there already.
            true => self.in_time(adoption::tables::<E>(&mut client)).await?,
            false => statements.tables().map(String::from).collect(),
        };
        for table in &tables {
            let name = text::quoted(table, E::DIALECT.sql);
            rows.begin(false, false);
            let mut take = |row: &<E::Client as Client>::Row| {
                row.add_to(&mut rows)?;
                digest.add(ROW, &[], &[table.to_lowercase().as_bytes(), rows.row()]);
                rows.end_row();
                Ok(())
            };
            let all = client.visit(sql(format!("SELECT * FROM {name}")), &mut take).await;
            all.map_err(|error| self.driver_failed(error))?;
        }
        self.in_time(client.disconnect()).await?;
        Ok(digest)
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<SqlConnection<E>>, StoreError> {
        let statements = Arc::new(self.typed_statements(source).await?);
        let locks = self.locking.unwrap_or(statements.locks());
        let log_results = source.sql().log_results;
        self.performers(threads, || Actions::new(statements.clone(), log_results, locks)).await
    }
}
