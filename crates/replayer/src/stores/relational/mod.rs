//! What all relational stores have in common. Each family has a room:
//!
//! ```text
//!  social/, kv/, sql/ ──▶ Contents        (tables, rows and indexes of the data set, for the loaders)
//!               ├─▶ Statements ──▶ Actions (one thread's operations; perform.rs tries them)
//!               └─▶ row counts, digest
//! ```
//!
//! A database adds an [`Engine`]: its [`Dialect`], how it connects, loads in bulk and resets, its
//! settings, and what its errors mean for a write's fate.

pub mod contents;
pub(crate) mod database;
pub mod engine;
pub mod kv;
pub mod perform;
pub mod social;
pub mod sql;
pub(crate) mod state;
mod transaction;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use schemas::vocabulary::sql::text;

use super::url::StoreUrl;
use super::{HeldState, Store, StoreError, patience};
use engine::{Client, Engine};
use perform::Performer;
use social::design::Design;

/// What differs in the SQL of the relational stores.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The dialect in which the statements of a trace set are written.
    pub sql: text::Dialect,
    /// The type of ids and counts, 64 bits.
    pub integer: &'static str,
    /// The type of texts.
    pub text: &'static str,
    /// The type of images.
    pub bytes: &'static str,
    /// The type of keys that are texts, ordered by their bytes.
    pub key: &'static str,
    /// The type of texts of at most this many bytes.
    pub value: fn(u32) -> &'static str,
    /// What follows the definition of a table that has hardly more columns than its key.
    pub narrow_table: &'static str,
    /// The parameter of a statement that is bound n-th, from 1.
    pub parameter: fn(usize) -> String,
    /// The statement that begins a transaction that writes.
    pub begin: &'static str,
    /// The statement that begins a transaction that may only read, or write later.
    pub begin_lazily: &'static str,
    /// What follows a read that locks the rows that it finds until the transaction ends. Empty if the
    /// database has no locks of rows; then `begin` locks.
    pub for_update: &'static str,
    /// A query for the names of all tables and views of the database. A table of Encore's has its
    /// bare name; one in another schema has the schema's name in front.
    pub tables: &'static str,
    /// A query for the statements that drop all tables and views, the marker's last. Empty if each load makes a
    /// new database.
    pub drops: &'static str,
    /// A query for the name and the greatest number of characters of each column of the table
    /// `usertable` that has a limit; a condition on `character_maximum_length` follows. None if the
    /// database enforces no such limits.
    pub widths: Option<&'static str>,
}

/// The parameter that caps the connections of all threads.
const CONNECTIONS: &str = "connections";

/// The parameter that says which reads of a transaction lock.
const LOCKING: &str = "locking";

/// The parameters that no driver must see, besides those of the database and of the design.
pub(super) const OWN: [&str; 2] = [CONNECTIONS, LOCKING];

/// A relational store.
pub struct Relational<E> {
    url: StoreUrl,
    design: Design,
    engine: Arc<E>,
    connections_max: Option<u32>,
    /// Whether reads of a transaction lock, as the URL says; none if it says nothing.
    locking: Option<bool>,
}

impl<E: Engine> Relational<E> {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Relational<E>, StoreError> {
        let mut known = E::PARAMETERS.to_vec();
        known.extend(Design::PARAMETERS);
        known.extend(OWN);
        url.allow(&known)?;
        Ok(Relational {
            design: Design::of(&url)?,
            engine: Arc::new(E::open(&url)?),
            connections_max: url.count(CONNECTIONS)?,
            locking: url.choice(LOCKING, &[("written", None), ("none", Some(false)), ("read", Some(true))])?,
            url,
        })
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Whether reads of a transaction lock, where the store decides that.
    fn has_locking_reads(&self) -> bool {
        self.locking.unwrap_or_default()
    }

    /// The database's own part.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// A connection that is not one of an experiment's threads.
    pub async fn client(&self) -> Result<E::Client, StoreError> {
        self.in_time(self.engine.connect()).await
    }

    /// A connection for each of these threads, and another one to the replica if there is one.
    async fn performers<A>(
        &self,
        threads: Range<u32>,
        attempts: impl Fn() -> A,
    ) -> Result<Vec<Performer<E, A>>, StoreError> {
        let Some(replica) = self.engine.replica() else {
            return self.performers_on(&self.engine, threads, attempts).await;
        };
        E::await_replica(self).await?;
        let connections = self.performers_on(&self.engine, threads.clone(), &attempts).await?;
        let readers = self.performers_on(replica, threads, &attempts).await?;
        Ok(connections.into_iter().zip(readers).map(|(connection, reader)| connection.reading_from(reader)).collect())
    }

    /// A connection to a server for each of these threads.
    async fn performers_on<A>(
        &self,
        engine: &Arc<E>,
        threads: Range<u32>,
        attempts: impl Fn() -> A,
    ) -> Result<Vec<Performer<E, A>>, StoreError> {
        let mut connections = Vec::with_capacity(threads.len());
        for thread in threads.clone() {
            let client = self.in_time(engine.connect()).await.map_err(|error| StoreError {
                message: format!("connection {} of {}: {}", thread - threads.start + 1, threads.len(), error.message),
                ..error
            })?;
            connections.push(Performer::new(engine.clone(), client, attempts()));
        }
        Ok(connections)
    }

    /// Waits for work of the driver that is not an operation, within a time limit.
    pub async fn in_time<X>(&self, work: impl Future<Output = Result<X, sqlx::Error>>) -> Result<X, StoreError> {
        let done = match self.engine.timeout().map(patience) {
            None => work.await,
            Some(most) => match tokio::time::timeout(most, work).await {
                Ok(done) => done,
                Err(_) => {
                    let (waited_ms, name) = (most.as_millis(), E::NAME);
                    return Err(self.failed(format!("timed out after {waited_ms} ms; is this a {name} server?")));
                }
            },
        };
        done.map_err(|error| self.driver_failed(error))
    }

    /// An error that the user can fix.
    pub fn misused(&self, message: impl ToString) -> StoreError {
        StoreError::usage(&self.url, message)
    }

    /// An error of the store.
    pub fn failed(&self, error: impl ToString) -> StoreError {
        StoreError::store(&self.url, error)
    }

    /// An error of the driver, with what a user should do about it.
    pub fn driver_failed(&self, error: sqlx::Error) -> StoreError {
        match self.engine.advice(&error) {
            Some(advice) => self.failed(format!("{}; {advice}", words(&error))),
            None => self.failed(words(&error)),
        }
    }
}

/// The message of a driver's error. The driver's own text names lines in the source of the server or
/// of the driver.
fn words(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => match error.code() {
            Some(code) => format!("{} ({code})", error.message()),
            None => error.message().to_string(),
        },
        // A server answers this request with one of two letters; another protocol begins otherwise.
        sqlx::Error::Protocol(text) if text.contains(SSL_REQUEST) => {
            "the server does not speak PostgreSQL's protocol".to_string()
        }
        sqlx::Error::ColumnDecode { index, source } if source.is::<sqlx::error::UnexpectedNullError>() => {
            format!("column {index} of a row is NULL")
        }
        other => without_its_place(&other.to_string()).to_string(),
    }
}

/// What PostgreSQL's driver calls the first message of a connection.
pub(super) const SSL_REQUEST: &str = "SSLRequest";

/// The text without the line of the driver's source at its end, such as ` (sqlx_postgres::tls:95)`.
fn without_its_place(text: &str) -> &str {
    let place = text.rsplit_once(" (").filter(|(_, place)| place.starts_with("sqlx_") && place.ends_with(')'));
    place.map_or(text, |(message, _)| message)
}

impl<E: Engine> Store for Relational<E> {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn file(&self) -> Option<&Path> {
        self.engine.file()
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        E::held(self).await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        self.write_state(state).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut client = self.client().await?;
        let mut settings = self.in_time(E::settings(&mut client)).await?;
        self.in_time(client.disconnect()).await?;
        E::add_replica_settings(self, &mut settings).await?;
        Ok(settings)
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_said_without_the_words_of_the_driver() {
        let source = Box::new(sqlx::error::UnexpectedNullError);
        assert_eq!(words(&sqlx::Error::ColumnDecode { index: "3".into(), source }), "column 3 of a row is NULL");
    }

    #[test]
    fn messages_do_not_name_lines_of_source() {
        let check = |text: &str, expect: &str| assert_eq!(words(&sqlx::Error::Protocol(text.into())), expect);
        let no_postgres = "unexpected response from SSLRequest: 0x64 (sqlx_postgres::connection::tls:95)";
        check(no_postgres, "the server does not speak PostgreSQL's protocol");
        check("bad byte (sqlx_mysql::io:7)", "encountered unexpected or invalid data: bad byte");
        check("bad byte (0x64)", "encountered unexpected or invalid data: bad byte (0x64)");
    }
}
