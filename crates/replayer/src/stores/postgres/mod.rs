//! `postgres://USER:PASSWORD@HOST:PORT/DATABASE` PostgreSQL, 13 or later: one
//! connection a thread, prepared statements.
//!
//! | parameter | values |
//! |---|---|
//! | `synchronous_commit` | `on`, `off`, `local`, `remote_write`, `remote_apply`; default: the server's setting |
//! | `isolation` | `read-committed` (default), `repeatable-read`, `serializable` |
//! | `locking` | `written` (default): statements of SQL lock as they are written, records are not locked; `none`; `read`: reads of records in a transaction are `SELECT … FOR UPDATE` |
//! | `reset` | `template` (default): a loaded database is copied; `reload`: every load inserts all rows |
//! | `timeout_ms` | how long an operation may take before it times out (10,000) |
//! | `connections` | the most connections of all threads together; default: one a thread |
//! | `replica` | `HOST:PORT` of a streaming replica; reads outside of transactions go there |
//! | `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `application_name`, `options` | as in libpq |
//!
//! Tables and statements are those of [`relational`], whose
//! parameters choose the physical design.

mod canonical;
mod casts;
mod copy;
mod load;
mod replica;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use schemas::isolation::Isolation;
use schemas::vocabulary::sql::{Type, text};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Error, Row, SqlStr};

use super::relational::contents::Contents;
use super::relational::engine::{Engine, STATEMENTS_MAX};
use super::relational::social::design::Design;
use super::relational::{self, Dialect, Relational, SSL_REQUEST};
use super::url::{Address, StoreUrl};
use super::{Fate, HeldState, LoadProgress, StoreError, promise};

/// The store in a database of a PostgreSQL server.
pub type Postgres = Relational<PostgresServer>;

/// The server, and how a store is reset.
pub struct PostgresServer {
    options: PgConnectOptions,
    /// The database that the URL names.
    database: String,
    isolation: Isolation,
    reset: Reset,
    timeout: Duration,
    /// The server for reads outside of transactions, with its address.
    replica: Option<(Address, Arc<PostgresServer>)>,
}

/// How a store is reset to its data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// A loaded copy beside it is copied again.
    Copy,
    /// All rows are inserted again.
    Reload,
}

/// Parameters that the driver understands.
const DRIVER: [&str; 6] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "application_name", "options"];

/// How long an operation may take unless the URL says otherwise.
pub const TIMEOUT_MS: u64 = 10_000;

impl Engine for PostgresServer {
    type Client = PgConnection;

    const NAME: &'static str = "PostgreSQL";

    const DIALECT: Dialect = Dialect {
        sql: text::Dialect::Postgres,
        integer: "BIGINT",
        text: "TEXT",
        bytes: "BYTEA",
        key: "VARCHAR(255) COLLATE \"C\"",
        value: |_| "TEXT",
        narrow_table: "",
        parameter: |n| format!("${n}"),
        begin: "BEGIN",
        begin_lazily: "BEGIN",
        for_update: " FOR UPDATE",
        // A load drops the database. So this counts tables in all schemas, even tables that the
        // user may not read. Tables that extensions have made do not count.
        tables: "SELECT CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname || '.' END || c.relname \
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' \
                     AND n.nspname NOT LIKE 'pg\\_%' AND NOT EXISTS (SELECT FROM pg_depend d \
                     WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') ORDER BY 1",
        drops: "SELECT format('DROP TABLE IF EXISTS %I CASCADE', tablename) FROM pg_tables \
                WHERE schemaname = current_schema() ORDER BY tablename = 'encore_state', 1",
        widths: Some(
            "SELECT column_name::text, character_maximum_length::bigint FROM information_schema.columns \
             WHERE table_schema = current_schema() AND lower(table_name) = 'usertable'",
        ),
    };

    const PARAMETERS: &'static [&'static str] = &[
        "synchronous_commit",
        "isolation",
        "reset",
        "timeout_ms",
        replica::PARAMETER,
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "application_name",
        "options",
    ];

    fn open(url: &StoreUrl) -> Result<PostgresServer, StoreError> {
        let own = PostgresServer::PARAMETERS.iter().copied().filter(|name| !DRIVER.contains(name));
        let own: Vec<&str> = own.chain(Design::PARAMETERS).chain(relational::OWN).collect();
        let mut options = PgConnectOptions::from_str(&url.without(&own)).map_err(|e| StoreError::usage(url, e))?;
        let database = options.get_database().unwrap_or_default().to_string();
        if database.is_empty() {
            return Err(StoreError::usage(url, "names no database; write postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
        }
        url.not_of_the_server(&database, &["postgres", "template0", "template1"])?;
        let commit = ["on", "off", "local", "remote_write", "remote_apply"].map(|word| (word, Some(word)));
        if let Some(word) = url.choice("synchronous_commit", &[[("", None)].as_slice(), &commit].concat())? {
            options = options.options([("synchronous_commit", word)]);
        }
        let isolation = url.choice(
            "isolation",
            &[
                ("read-committed", Isolation::ReadCommitted),
                ("repeatable-read", Isolation::RepeatableRead),
                ("serializable", Isolation::Serializable),
            ],
        )?;
        type Replica = Option<(Address, Arc<PostgresServer>)>;
        let server = |options: PgConnectOptions, isolation: Isolation, replica: Replica| -> Result<_, StoreError> {
            let options = options
                .options([("default_transaction_isolation", isolation.name())])
                .statement_cache_capacity(STATEMENTS_MAX);
            Ok(PostgresServer {
                options,
                database: database.clone(),
                isolation,
                reset: url.choice("reset", &[("template", Reset::Copy), ("reload", Reset::Reload)])?,
                timeout: Duration::from_millis(url.count("timeout_ms")?.map_or(TIMEOUT_MS, u64::from)),
                replica,
            })
        };
        let replica = match url.address(replica::PARAMETER)? {
            // A replica is not serializable.
            Some(address) => {
                let isolation =
                    if isolation == Isolation::Serializable { Isolation::RepeatableRead } else { isolation };
                let options = options.clone().host(&address.host).port(address.port);
                let replica = server(options, isolation, None)?;
                Some((address, Arc::new(replica)))
            }
            None => None,
        };
        server(options, isolation, replica)
    }

    async fn connect(&self) -> Result<PgConnection, Error> {
        self.options.connect().await
    }

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn replica(&self) -> Option<&Arc<PostgresServer>> {
        self.replica.as_ref().map(|(_, server)| server)
    }

    async fn await_replica(store: &Postgres) -> Result<(), StoreError> {
        replica::await_caught_up(store).await
    }

    async fn add_replica_settings(store: &Postgres, settings: &mut BTreeMap<String, String>) -> Result<(), StoreError> {
        replica::add_settings(store, settings).await
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn fate(error: &Error) -> Fate {
        let code = error.as_database_error().and_then(|e| e.code());
        match code.as_deref() {
            // Serialization failure, deadlock, a lock that was not had in time (`lock_timeout`).
            Some("40001" | "40P01" | "55P03") => Fate::RolledBack,
            // The server closes the connection of a transaction that has waited too long for its client.
            Some("25P03" | "25P04") => Fate::Lost,
            // The server shuts down or crashed: a commit may have been under way.
            Some(code) if code.starts_with("57P") || code.starts_with("08") => Fate::Lost,
            // The disk or the server itself has failed.
            Some(code) if code.starts_with("58") || code.starts_with("XX") => Fate::Lost,
            // PostgreSQL rolls back any other statement that ends in an error.
            Some(_) => Fate::Refused,
            None => Fate::Lost,
        }
    }

    fn advice(&self, error: &Error) -> Option<String> {
        advice(error, &self.database)
    }

    async fn held(store: &Postgres) -> Result<Option<HeldState>, StoreError> {
        load::held(store).await
    }

    async fn load(store: &Postgres, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(store, contents, progress).await
    }

    async fn casts(client: &mut PgConnection, statement: SqlStr, types: &[Type]) -> Result<Vec<Option<String>>, Error> {
        casts::casts(client, statement, types).await
    }

    async fn settings(client: &mut PgConnection) -> Result<BTreeMap<String, String>, Error> {
        let names = [
            "server_version",
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "wal_sync_method",
            "wal_level",
            "commit_delay",
            "synchronous_standby_names",
            "default_transaction_isolation",
            "shared_buffers",
            "max_connections",
        ];
        let rows = sqlx::query("SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1)")
            .bind(names.map(String::from).to_vec())
            .fetch_all(client)
            .await?;
        let mut settings = BTreeMap::new();
        for row in rows {
            settings.insert(row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?);
        }
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
        let durability = match () {
            _ if is("fsync", "off") => promise::NONE,
            _ if is("synchronous_commit", "off") => promise::WITHIN_A_SECOND,
            _ => promise::EVERY_COMMIT,
        };
        if let Some(version) = settings.remove("server_version") {
            settings.insert("version".into(), format!("PostgreSQL {version}"));
        }
        let isolation = settings.get("default_transaction_isolation").cloned().unwrap_or_default();
        settings.insert("durability".into(), durability.into());
        settings.insert("isolation".into(), isolation);
        Ok(settings)
    }
}

/// What to do about an error of connecting to a database, or of loading it.
fn advice(error: &Error, database: &str) -> Option<String> {
    let code = error.as_database_error().and_then(|e| e.code());
    let advice = match code.as_deref() {
        Some("28P01" | "28000") => {
            "check the user and the password of the URL, and the server's pg_hba.conf".to_string()
        }
        Some("3D000") => format!("create the database {database:?} with `encore replay load`"),
        Some("53300") => "raise max_connections of the server, or set connections=N in the URL".into(),
        Some("42501") => {
            "grant the user CREATEDB for resets by a template database, or add reset=reload to the URL".into()
        }
        None if error.to_string().contains(SSL_REQUEST) => "is this a PostgreSQL server?".into(),
        None if matches!(error, Error::Io(_)) => "is the server running, and is the address right?".into(),
        _ => return None,
    };
    Some(advice)
}
