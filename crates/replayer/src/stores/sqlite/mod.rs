//! `sqlite:PATH` the embedded default: one connection a thread, write-ahead
//! log, every commit on disk unless the URL says otherwise.
//!
//! | parameter | values |
//! |---|---|
//! | `journal` | `wal` (default), `delete` |
//! | `synchronous` | `full` (default), `normal`, `off` |
//! | `isolation` | `serializable`: SQLite has no other level |
//! | `locking` | `written` (default): a transaction has the write lock from its beginning if a statement of its trace set locks; `none`; `read`: always |
//! | `busy_ms` | how long a statement waits for a lock before it is retried (10,000) |
//!
//! Tables and statements are those of [`relational`](super::relational), whose
//! parameters choose the physical design.

mod canonical;
mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemas::isolation::Isolation;
use schemas::vocabulary::sql::text;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Error, Row};

use super::relational::contents::Contents;
use super::relational::database::{Found, find};
use super::relational::engine::{Client as _, Engine, STATEMENTS_MAX};
use super::relational::{Dialect, Relational};
use super::url::StoreUrl;
use super::{Fate, HeldState, LoadProgress, StoreError, promise};

/// The store in one file.
pub type Sqlite = Relational<SqliteFile>;

/// The file, and how it is opened.
pub struct SqliteFile {
    path: PathBuf,
    journal: SqliteJournalMode,
    synchronous: SqliteSynchronous,
    isolation: Isolation,
    busy: Duration,
}

impl SqliteFile {
    /// How every client opens it.
    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .journal_mode(self.journal)
            .synchronous(self.synchronous)
            .busy_timeout(self.busy)
            .foreign_keys(false)
            .statement_cache_capacity(STATEMENTS_MAX)
            // Each connection belongs to one thread: no mutex inside SQLite.
            .serialized(false)
    }
}

/// What the marker of the file at `path` says.
async fn held_in(store: &Sqlite, path: &Path) -> Result<Option<HeldState>, StoreError> {
    let empty = std::fs::metadata(path).map_or(true, |m| m.len() == 0);
    if empty {
        return Ok(None);
    }
    // A file that Encore has not made must not be changed, not even its journal mode.
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(store.engine().busy);
    let mut client = options.connect().await.map_err(|e| store.failed(e))?;
    let found = find::<SqliteFile>(&mut client).await.map_err(|e| store.misused(format!("{}: {e}", path.display())))?;
    client.disconnect().await.map_err(|e| store.failed(e))?;
    match found {
        Found::Held(held) => Ok(Some(held)),
        Found::Empty | Found::Unfinished => Ok(None),
        Found::Foreign(table) => Err(store.foreign(&table)),
    }
}

const BUSY: i64 = 5;
const LOCKED: i64 = 6;
const IO_ERROR: i64 = 10;
const CORRUPT: i64 = 11;

impl Engine for SqliteFile {
    type Client = SqliteConnection;

    const NAME: &'static str = "SQLite";

    const DIALECT: Dialect = Dialect {
        sql: text::Dialect::Sqlite,
        integer: "INTEGER",
        text: "TEXT",
        bytes: "BLOB",
        key: "VARCHAR(255)",
        value: |_| "TEXT",
        // The table is the tree of its key; otherwise each row would be stored twice.
        narrow_table: "WITHOUT ROWID",
        parameter: |n| format!("?{n}"),
        // With the write lock from the beginning a transaction never deadlocks.
        begin: "BEGIN IMMEDIATE",
        begin_lazily: "BEGIN",
        // SQLite has one lock for the whole file.
        for_update: "",
        tables: "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' \
                 ORDER BY name",
        drops: "",
        // SQLite stores longer values than a column declares.
        widths: None,
    };

    const PARAMETERS: &'static [&'static str] = &["journal", "synchronous", "isolation", "busy_ms"];

    fn open(url: &StoreUrl) -> Result<SqliteFile, StoreError> {
        let path = url.place().strip_prefix("//").unwrap_or(url.place());
        if path.is_empty() {
            return Err(StoreError::usage(url, "has no path; write sqlite:PATH"));
        }
        if path.starts_with(':') || path.starts_with("file:") {
            return Err(StoreError::usage(
                url,
                "is not a file path (each thread would get its own database); write sqlite:PATH",
            ));
        }
        let synchronous =
            [("full", SqliteSynchronous::Full), ("normal", SqliteSynchronous::Normal), ("off", SqliteSynchronous::Off)];
        Ok(SqliteFile {
            path: PathBuf::from(path),
            journal: url
                .choice("journal", &[("wal", SqliteJournalMode::Wal), ("delete", SqliteJournalMode::Delete)])?,
            isolation: url.choice("isolation", &[("serializable", Isolation::Serializable)])?,
            synchronous: url.choice("synchronous", &synchronous)?,
            // SQLite counts these milliseconds in 31 bits.
            busy: Duration::from_millis(url.number("busy_ms", 10_000u32).and_then(|ms| match ms {
                0..=0x7fff_ffff => Ok(ms.into()),
                _ => Err(StoreError::usage(url, format!("parameter busy_ms: {ms} is more than {}", i32::MAX))),
            })?),
        })
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    async fn connect(&self) -> Result<SqliteConnection, Error> {
        self.options().connect().await
    }

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// SQLite bounds its own waits (`busy_ms`).
    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn fate(error: &Error) -> Fate {
        let code = error.as_database_error().and_then(|e| e.code()).and_then(|code| code.parse::<i64>().ok());
        match (error, code.map(|code| code & 0xff)) {
            // The low byte is the primary code. A locked store has done nothing.
            (_, Some(BUSY | LOCKED)) => Fate::RolledBack,
            // The disk itself has failed: the commit may have reached it.
            (_, Some(IO_ERROR | CORRUPT)) => Fate::Lost,
            // SQLite rolls back any other statement that ends in an error.
            (Error::Database(_), _) => Fate::Refused,
            // Anything else is an error on the way to or from SQLite.
            _ => Fate::Lost,
        }
    }

    fn advice(&self, _error: &Error) -> Option<String> {
        None
    }

    async fn held(store: &Sqlite) -> Result<Option<HeldState>, StoreError> {
        held_in(store, &store.engine().path).await
    }

    async fn load(store: &Sqlite, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(store, contents, progress).await
    }

    async fn settings(client: &mut SqliteConnection) -> Result<BTreeMap<String, String>, Error> {
        let mut settings = BTreeMap::new();
        for (name, sql) in [
            ("version", "SELECT sqlite_version()"),
            ("journal_mode", "PRAGMA journal_mode"),
            ("synchronous", "PRAGMA synchronous"),
            ("page_size", "PRAGMA page_size"),
            ("cache_size", "PRAGMA cache_size"),
            ("read_uncommitted", "PRAGMA read_uncommitted"),
        ] {
            let row = sqlx::query(sql).fetch_one(&mut *client).await?;
            let value = match row.try_get::<String, _>(0) {
                Ok(text) => text,
                Err(_) => row.try_get::<i64, _>(0)?.to_string(),
            };
            settings.insert(name.to_string(), value);
        }
        let synchronous = match settings.get("synchronous").map(String::as_str) {
            Some("0") => "off",
            Some("1") => "normal",
            Some("2") => "full",
            _ => "extra",
        };
        let is_wal = settings.get("journal_mode").is_some_and(|mode| mode == "wal");
        let durability = match synchronous {
            "off" => promise::NONE,
            "normal" if is_wal => promise::AT_CHECKPOINTS,
            _ => promise::EVERY_COMMIT,
        };
        settings.insert("synchronous".into(), synchronous.into());
        settings.insert("durability".into(), durability.into());
        settings.insert("isolation".into(), promise::SERIALIZABLE.into());
        Ok(settings)
    }
}
#[cfg(test)]
mod tests {
    use sqlx::AssertSqlSafe;

    use super::super::relational::kv;
    use super::super::relational::social::design::{Design, Indexes};
    use super::super::relational::social::statements::Statements;
    use super::super::relational::social::tables;
    use super::*;

    /// How SQLite would execute every statement of a design, one line for each step.
    async fn plans(design: &Design) -> Vec<String> {
        let mut client = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        for table in tables::tables(design) {
            sqlx::raw_sql(AssertSqlSafe(table.creation(&SqliteFile::DIALECT))).execute(&mut client).await.unwrap();
        }
        for index in tables::indexes(design) {
            sqlx::raw_sql(AssertSqlSafe(index.creation())).execute(&mut client).await.unwrap();
        }
        let mut plans = Vec::new();
        for statement in Statements::new(design, &SqliteFile::DIALECT).each() {
            let sql = statement.sql();
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str()));
            for row in sqlx::query(explain).fetch_all(&mut client).await.unwrap() {
                plans.push(format!("{} <- {}", row.get::<String, _>("detail"), sql.as_str()));
            }
        }
        plans
    }

    #[tokio::test]
    async fn records_are_found_by_their_keys() {
        let mut client = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        let creation =
            format!("CREATE TABLE usertable (YCSB_KEY {} PRIMARY KEY, FIELD0 TEXT)", SqliteFile::DIALECT.key);
        sqlx::raw_sql(AssertSqlSafe(creation)).execute(&mut client).await.unwrap();
        let statements = kv::statements::Statements::new(1, &SqliteFile::DIALECT);
        for sql in [statements.read(1), statements.scan(1), statements.update(1), statements.delete()] {
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str()));
            let plan = sqlx::query(explain).fetch_all(&mut client).await.unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
            assert!(plan.len() == 1 && plan[0].starts_with("SEARCH "), "{}: {plan:?}", sql.as_str());
        }
    }

    /// If a whole table were read for one member, any rating would measure this mistake. Only
    /// `indexes=off` asks for such scans.
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
