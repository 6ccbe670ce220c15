//! `mysql://USER:PASSWORD@HOST:PORT/DATABASE` MariaDB or MySQL: one connection
//! a thread, prepared statements, tables in InnoDB.
//!
//! | parameter | values |
//! |---|---|
//! | `isolation` | `repeatable-read` (default), `read-committed`, `serializable`, `read-uncommitted` |
//! | `locking` | `written` (default): statements of SQL lock as they are written, records are not locked; `none`; `read`: reads of records in a transaction are `SELECT … FOR UPDATE` |
//! | `reset` | `copy` (default): touched rows come from a loaded copy; `reload`: every load inserts all rows |
//! | `timeout_ms` | how long an operation may take before it times out (10,000) |
//! | `connections` | the most connections of all threads together; default: one a thread |
//! | `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key`, `socket` | as in MySQL's own client |
//!
//! Tables and statements are those of [`relational`], whose
//! parameters choose the physical design.

mod canonical;
mod load;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use schemas::isolation::Isolation;
use schemas::vocabulary::sql::text;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{ConnectOptions, Error, Row};

use super::postgres::TIMEOUT_MS;
use super::relational::contents::Contents;
use super::relational::engine::{Client, Engine, STATEMENTS_MAX};
use super::relational::social::design::Design;
use super::relational::state::sql;
use super::relational::{self, Dialect, Relational};
use super::url::StoreUrl;
use super::{Fate, HeldState, LoadProgress, StoreError, promise};

/// The store in a database of a MariaDB or MySQL server.
pub type MySql = Relational<MySqlServer>;

/// The server, and how a store is reset.
pub struct MySqlServer {
    options: MySqlConnectOptions,
    /// The database that the URL names.
    database: String,
    isolation: Isolation,
    reset: Reset,
    timeout: Duration,
}

/// How a store is reset to its data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    /// Rows that differ from a loaded copy are restored.
    Copy,
    /// All rows are inserted again.
    Reload,
}

impl MySqlServer {
    /// A connection to a database of the server.
    async fn connect_to(&self, database: &str) -> Result<MySqlConnection, Error> {
        let mut client = self.options.clone().database(database).connect().await?;
        let isolation = self.isolation.name();
        client.run(sql(format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"))).await?;
        Ok(client)
    }
}

/// The number of an error of the server.
fn number_of(error: &Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// Error numbers (MariaDB's manual, "MariaDB Error Code Reference").
mod code {
    pub const ACCESS_DENIED_TO_DATABASE: u16 = 1044;
    pub const ACCESS_DENIED: u16 = 1045;
    pub const UNKNOWN_DATABASE: u16 = 1049;
    pub const TOO_MANY_CONNECTIONS: u16 = 1040;
    pub const RECORD_CHANGED: u16 = 1020;
    pub const SHUTDOWN: u16 = 1053;
    pub const ERROR_DURING_COMMIT: u16 = 1180;
    pub const LOCK_WAIT_TIMEOUT: u16 = 1205;
    pub const DEADLOCK: u16 = 1213;
    pub const INTERRUPTED: u16 = 1317;
    pub const CONNECTION_KILLED: u16 = 1927;
}

impl Engine for MySqlServer {
    type Client = MySqlConnection;

    const NAME: &'static str = "MariaDB or MySQL";

    const DIALECT: Dialect = Dialect {
        sql: text::Dialect::Mysql,
        integer: "BIGINT",
        text: "MEDIUMTEXT",
        bytes: "MEDIUMBLOB",
        key: "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        value: |bytes| match bytes {
            ..=0xffff => "TEXT",
            0x1_0000..=0xff_ffff => "MEDIUMTEXT",
            _ => "LONGTEXT",
        },
        narrow_table: "",
        parameter: |_| "?".to_string(),
        begin: "START TRANSACTION",
        begin_lazily: "START TRANSACTION",
        for_update: " FOR UPDATE",
        tables: "SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY 1",
        drops: "SELECT concat('DROP ', if(table_type = 'VIEW', 'VIEW', 'TABLE'), ' IF EXISTS `', \
                replace(table_name, '`', '``'), '`') FROM information_schema.tables WHERE table_schema = database() \
                ORDER BY table_name = 'encore_state', table_name",
        widths: Some(
            "SELECT column_name, CAST(character_maximum_length AS SIGNED) FROM information_schema.columns \
             WHERE table_schema = database() AND lower(table_name) = 'usertable'",
        ),
    };

    const PARAMETERS: &'static [&'static str] =
        &["isolation", "reset", "timeout_ms", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

    fn open(url: &StoreUrl) -> Result<MySqlServer, StoreError> {
        let own: Vec<&str> =
            ["isolation", "reset", "timeout_ms"].into_iter().chain(relational::OWN).chain(Design::PARAMETERS).collect();
        let options = MySqlConnectOptions::from_str(&url.without(&own)).map_err(|e| StoreError::usage(url, e))?;
        let options = options.statement_cache_capacity(STATEMENTS_MAX);
        let database = options.get_database().unwrap_or_default().to_string();
        if database.is_empty() {
            return Err(StoreError::usage(url, "names no database; write mysql://USER:PASSWORD@HOST:PORT/DATABASE"));
        }
        url.not_of_the_server(&database, &["mysql", "information_schema", "performance_schema", "sys"])?;
        let isolation = url.choice(
            "isolation",
            &[
                ("repeatable-read", Isolation::RepeatableRead),
                ("read-committed", Isolation::ReadCommitted),
                ("serializable", Isolation::Serializable),
                ("read-uncommitted", Isolation::ReadUncommitted),
            ],
        )?;
        Ok(MySqlServer {
            options,
            database,
            isolation,
            reset: url.choice("reset", &[("copy", Reset::Copy), ("reload", Reset::Reload)])?,
            timeout: Duration::from_millis(url.count("timeout_ms")?.map_or(TIMEOUT_MS, u64::from)),
        })
    }

    async fn connect(&self) -> Result<MySqlConnection, Error> {
        self.connect_to(&self.database).await
    }

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn fate(error: &Error) -> Fate {
        match (error, number_of(error)) {
            (_, Some(code::DEADLOCK | code::LOCK_WAIT_TIMEOUT | code::RECORD_CHANGED)) => Fate::RolledBack,
            // The server or this connection is going away; a commit may have been under way.
            (_, Some(code::SHUTDOWN | code::ERROR_DURING_COMMIT | code::INTERRUPTED | code::CONNECTION_KILLED)) => {
                Fate::Lost
            }
            // The server rolls back any other statement that ends in an error.
            (Error::Database(_), _) => Fate::Refused,
            _ => Fate::Lost,
        }
    }

    fn advice(&self, error: &Error) -> Option<String> {
        let advice = match number_of(error) {
            Some(code::ACCESS_DENIED) => "check the user and the password of the URL".to_string(),
            Some(code::ACCESS_DENIED_TO_DATABASE) => format!(
                "grant the user all privileges on {0:?} and on {0}_encore_loaded, or add reset=reload to the URL",
                self.database
            ),
            Some(code::UNKNOWN_DATABASE) => {
                format!("create the database {:?} with `encore replay load`", self.database)
            }
            Some(code::TOO_MANY_CONNECTIONS) => {
                "raise max_connections of the server, or set connections=N in the URL".into()
            }
            None if matches!(error, Error::Io(_)) => "is the server running, and is the address right?".into(),
            _ => return None,
        };
        Some(advice)
    }

    async fn held(store: &MySql) -> Result<Option<HeldState>, StoreError> {
        load::held(store).await
    }

    async fn load(store: &MySql, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(store, contents, progress).await
    }

    async fn settings(client: &mut MySqlConnection) -> Result<BTreeMap<String, String>, Error> {
        let rows = sqlx::query(
            "SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'sync_binlog', \
             'log_bin', 'innodb_doublewrite', 'innodb_flush_method', 'tx_isolation', 'transaction_isolation', \
             'innodb_snapshot_isolation', 'innodb_buffer_pool_size', 'max_connections')",
        )
        .fetch_all(client)
        .await?;
        let mut settings = BTreeMap::new();
        for row in rows {
            settings.insert(row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?);
        }
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
        let durability = match () {
            _ if is("innodb_flush_method", "nosync") => promise::NONE,
            _ if is("innodb_flush_log_at_trx_commit", "1") => promise::EVERY_COMMIT,
            _ => promise::WITHIN_A_SECOND,
        };
        // MariaDB before 11.1 has the older name.
        let isolation = settings.get("transaction_isolation").or(settings.get("tx_isolation"));
        let isolation = isolation.map(|level| level.replace('-', " ").to_lowercase()).unwrap_or_default();
        if let Some(version) = settings.get_mut("version") {
            let server = if version.contains("MariaDB") { "" } else { "MySQL " };
            *version = format!("{server}{version}");
        }
        settings.insert("durability".into(), durability.into());
        settings.insert("isolation".into(), isolation);
        Ok(settings)
    }
}
