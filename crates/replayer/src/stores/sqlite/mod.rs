//! `sqlite:PATH` the embedded default: one connection a thread, write-ahead
//! log, every commit on disk unless the URL says otherwise.
//!
//! | parameter | values |
//! |---|---|
//! | `journal` | `wal` (default), `delete` |
//! | `synchronous` | `full` (default), `normal`, `off` |
//! | `busy_ms` | how long a statement waits for a lock before it is tried again |
//!
//! Tables and statements are those of [`relational`](super::relational), whose
//! parameters choose the physical design.

mod actions;
mod digest;
mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemas::digest::StateDigest;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Row};

use super::relational::design::Design;
use super::relational::statements::Statements;
use super::relational::{Dialect, audit};
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Store, StoreError};
use crate::source::Source;
use actions::SqliteActions;

/// SQLite's words.
const DIALECT: Dialect = Dialect {
    integer: "INTEGER",
    text: "TEXT",
    bytes: "BLOB",
    // The table is the tree of its key; otherwise each row would be stored twice.
    narrow_table: "WITHOUT ROWID",
    parameter: |n| format!("?{n}"),
};

/// The store in one file.
pub struct Sqlite {
    url: StoreUrl,
    design: Design,
    path: PathBuf,
    journal: SqliteJournalMode,
    synchronous: SqliteSynchronous,
    busy: Duration,
}

impl Sqlite {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Sqlite, StoreError> {
        let mut known = vec!["journal", "synchronous", "busy_ms"];
        known.extend(Design::PARAMETERS);
        url.allow(&known)?;
        let path = url.place().strip_prefix("//").unwrap_or(url.place());
        if path.is_empty() {
            return Err(StoreError::usage(&url, "has no path; write sqlite:PATH"));
        }
        if path.starts_with(':') || path.starts_with("file:") {
            return Err(StoreError::usage(
                &url,
                "is not a path, and every thread would have its own; write sqlite:PATH",
            ));
        }
        Ok(Sqlite {
            path: PathBuf::from(path),
            design: Design::of(&url)?,
            journal: url
                .choice("journal", &[("wal", SqliteJournalMode::Wal), ("delete", SqliteJournalMode::Delete)])?,
            synchronous: url.choice(
                "synchronous",
                &[
                    ("full", SqliteSynchronous::Full),
                    ("normal", SqliteSynchronous::Normal),
                    ("off", SqliteSynchronous::Off),
                ],
            )?,
            busy: Duration::from_millis(url.number("busy_ms", 10_000)?),
            url,
        })
    }

    /// How every client opens the store.
    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .journal_mode(self.journal)
            .synchronous(self.synchronous)
            .busy_timeout(self.busy)
            .foreign_keys(false)
            // Each connection belongs to one thread: no mutex inside SQLite.
            .serialized(false)
    }

    async fn client(&self) -> Result<SqliteConnection, StoreError> {
        self.options().connect().await.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: impl ToString) -> StoreError {
        StoreError::store(&self.url, error)
    }

    /// What the file at `path` says that it holds.
    async fn held_in(&self, path: &Path) -> Result<Option<HeldState>, StoreError> {
        let empty = std::fs::metadata(path).map_or(true, |m| m.len() == 0);
        if empty {
            return Ok(None);
        }
        // A file that no tool of Encore's has made must not be touched, not
        // even by a change of its journal mode.
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(self.busy);
        let mut client = options.connect().await.map_err(|e| self.failed(e))?;
        let tables = sqlx::query("SELECT count(*) FROM sqlite_master WHERE name = 'encore_state'");
        let found: i64 = tables
            .fetch_one(&mut client)
            .await
            .and_then(|row| row.try_get(0))
            .map_err(|e| StoreError::usage(&self.url, format!("{}: {e}", path.display())))?;
        if found == 0 {
            return Err(StoreError::usage(
                &self.url,
                format!("{} is a database, but not one that Encore has loaded; name another file", path.display()),
            ));
        }
        let row = sqlx::query("SELECT state FROM encore_state").fetch_one(&mut client).await;
        let text: String = row.and_then(|row| row.try_get(0)).map_err(|e| self.failed(e))?;
        client.close().await.map_err(|e| self.failed(e))?;
        serde_json::from_str(&text).map(Some).map_err(|e| self.failed(format!("encore_state: {e}")))
    }

    async fn count(&self, client: &mut SqliteConnection, sql: String) -> Result<u64, StoreError> {
        let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(client).await;
        row.and_then(|row| row.try_get::<i64, _>(0)).map(|n| n as u64).map_err(|e| self.failed(e))
    }
}

impl Store for Sqlite {
    type Connection = SqliteActions;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(self, source, progress).await
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        let held = self.held_in(&self.path).await?;
        if let Some(held) = &held {
            self.design.check(&self.url, held)?;
        }
        Ok(held)
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let text = serde_json::to_string(state).map_err(|e| self.failed(e))?;
        let mut client = self.client().await?;
        sqlx::query("UPDATE encore_state SET state = ?")
            .bind(text)
            .execute(&mut client)
            .await
            .map_err(|e| self.failed(e))?;
        client.close().await.map_err(|e| self.failed(e))
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        for tally in audit::tallies(&self.design) {
            let found = self.count(&mut client, tally.sql).await?;
            let expected = tally.rows_each * source.rows(tally.of);
            if found != expected {
                let message = format!(
                    "{} has {found} rows, a freshly loaded one has {expected}; load it again with `replayer load`",
                    tally.what
                );
                return Err(StoreError::usage(&self.url, message));
            }
        }
        client.close().await.map_err(|e| self.failed(e))
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut client = self.client().await?;
        let mut settings = self.design.settings();
        for (name, sql) in [
            ("version", "SELECT sqlite_version()"),
            ("journal_mode", "PRAGMA journal_mode"),
            ("synchronous", "PRAGMA synchronous"),
            ("page_size", "PRAGMA page_size"),
            ("cache_size", "PRAGMA cache_size"),
            ("read_uncommitted", "PRAGMA read_uncommitted"),
        ] {
            let row = sqlx::query(sql).fetch_one(&mut client).await.map_err(|e| self.failed(e))?;
            let value = match row.try_get::<String, _>(0) {
                Ok(text) => text,
                Err(_) => row.try_get::<i64, _>(0).map_err(|e| self.failed(e))?.to_string(),
            };
            settings.insert(name.to_string(), value);
        }
        let synchronous = match settings.get("synchronous").map(String::as_str) {
            Some("0") => "off",
            Some("1") => "normal",
            Some("2") => "full",
            _ => "extra",
        };
        settings.insert("synchronous".into(), synchronous.into());
        settings.insert("isolation".into(), "serializable".into());
        client.close().await.map_err(|e| self.failed(e))?;
        Ok(settings)
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mut client = self.client().await?;
        digest::digest(self, source, &mut client).await
    }

    async fn connect(&self, source: &Source, _thread: u32) -> Result<SqliteActions, StoreError> {
        let statements = Statements::new(&self.design, &DIALECT);
        Ok(SqliteActions::new(self.client().await?, statements, source))
    }
}

#[cfg(test)]
mod tests {
    use super::super::relational::design::Indexes;
    use super::super::relational::tables;
    use super::*;

    /// How SQLite would execute every statement of a design, a line each step.
    async fn plans(design: &Design) -> Vec<String> {
        let mut client = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        for table in tables::tables(design) {
            sqlx::raw_sql(AssertSqlSafe(table.creation(&DIALECT))).execute(&mut client).await.unwrap();
        }
        for index in tables::indexes(design) {
            sqlx::raw_sql(AssertSqlSafe(index.creation())).execute(&mut client).await.unwrap();
        }
        let mut plans = Vec::new();
        for statement in Statements::new(design, &DIALECT).each() {
            let sql = statement.sql();
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str()));
            for row in sqlx::query(explain).fetch_all(&mut client).await.unwrap() {
                plans.push(format!("{} <- {}", row.get::<String, _>("detail"), sql.as_str()));
            }
        }
        plans
    }

    /// A table that is read from end to end for one member would make any rating
    /// one of this mistake. Without indexes that is what is asked for.
    #[tokio::test]
    async fn only_without_indexes_are_tables_scanned() {
        for design in Design::all() {
            let mut of_tables = plans(&design).await;
            of_tables.retain(|plan| plan.starts_with("SCAN ") && !plan.contains("VALUES CLAUSE"));
            match design.indexes {
                Indexes::On => assert!(of_tables.is_empty(), "{design}: {of_tables:#?}"),
                Indexes::Off => assert!(of_tables.len() >= 2, "{design}: {of_tables:#?}"),
            }
        }
    }
}
