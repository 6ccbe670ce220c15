//! `mongodb://USER:PASSWORD@HOST:PORT/DATABASE` MongoDB, 4.4 or later: BG's data as documents
//! (bg-2013, Figure 1.b), records as in YCSB's binding, or the rows of tables; one connection a thread.
//!
//! The parameters:
//!
//! - `comments`: `embedded` (default): in their resource's document; `collection`: documents of their
//!   own (bg-2013, Figure 5). `social` only.
//! - `transactions`: `off` (default): an acceptance or a thaw is two updates, one for each member;
//!   `on`: one transaction. `social` only.
//! - `isolation`: `snapshot`: MongoDB's transactions have no other level. `kv` only. With `readConcernLevel=local` or
//!   `majority` they read with that, and promise no more than it: one snapshot of several shards needs `snapshot`.
//! - `causal`: `off` (default); `on`: each thread's operations outside of transactions are a causally
//!   consistent session of the driver. `kv` only.
//! - `physical`: a file with the collections and access paths for the tables of a trace set (`encore trace physical`);
//!   default: those that its statements need. `sql` only.
//! - `reset`: `copy` (default): what actions have changed is restored from a loaded copy; `reload`:
//!   every load inserts all documents.
//! - `timeout_ms`: how long an operation may take before it times out (10,000).
//! - `connections`: the most connections of all threads together; default: one a thread.
//! - `w`, `journal`, `readConcernLevel`, `readPreference`, …: as in every connection string of
//!   MongoDB's, see [`DRIVER`].
//!
//! Write concern, read concern and read preference apply to the operations of an experiment. All
//! other work on the store waits for a majority and reads the primary. The driver retries nothing
//! unless the URL says `retryWrites=true` or `retryReads=true`: an experiment measures what
//! operations cost in the store, and how the store ends them.

mod batch;
mod collections;
mod fate;
mod kv;
mod load;
mod marker;
mod members;
mod retry;
mod settings;
mod social;
mod sql;
mod transaction;
mod visit;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{ClientOptions, ConnectionString, ReadConcern, ReadConcernLevel, ReadPreference, WriteConcern};
use mongodb::{Client, Database};
use schemas::isolation::Isolation;

use super::url::StoreUrl;
use super::{HeldState, Store, StoreError, patience};
use social::documents::Comments;

/// Parameters that the driver understands.
pub const DRIVER: [&str; 20] = [
    "w",
    "journal",
    "wTimeoutMS",
    "readConcernLevel",
    "readPreference",
    "readPreferenceTags",
    "maxStalenessSeconds",
    "replicaSet",
    "directConnection",
    "retryWrites",
    "retryReads",
    "appName",
    "authSource",
    "authMechanism",
    "authMechanismProperties",
    "tls",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsAllowInvalidCertificates",
    "tlsInsecure",
];

/// Parameters that are Encore's.
const OWN: [&str; 8] =
    ["comments", "transactions", "isolation", "causal", "physical", "reset", "timeout_ms", "connections"];

/// How long an operation may take unless the URL says otherwise.
const TIMEOUT_MS: u32 = 10_000;

/// How many connections a worker makes at the same time.
const CONNECTING_MAX: u32 = 16;

/// How a store is reset to its data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    /// What differs from a loaded copy is restored.
    Copy,
    /// All documents are inserted again.
    Reload,
}

/// Which state the reads of a connection see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// What the URL's read preference and read concern give.
    AsAsked,
    /// All acknowledged writes.
    Latest,
}

/// The store in a database of a MongoDB server, replica set or cluster.
pub struct MongoDb {
    url: StoreUrl,
    connection: ConnectionString,
    /// The database that the URL names.
    database: String,
    comments: Comments,
    /// Whether a write to two members is a transaction.
    transactions: bool,
    /// What transactions of several operations promise.
    isolation: Isolation,
    /// Whether each thread has a causally consistent session.
    causal: bool,
    reset: Reset,
    timeout: Duration,
    connections_max: Option<u32>,
}

/// What transactions promise that read with this concern. All levels read one snapshot on a replica set, but
/// only `snapshot` promises it, also on several shards, and only of what a majority has.
fn promised(url: &StoreUrl, concern: Option<&ReadConcern>) -> Result<Isolation, StoreError> {
    let asked = url.choice("isolation", &[("snapshot", Isolation::Snapshot)])?;
    let promised = match concern.map(|concern| &concern.level) {
        Some(ReadConcernLevel::Local) => Isolation::ReadUncommitted,
        Some(ReadConcernLevel::Majority) => Isolation::ReadCommitted,
        _ => Isolation::Snapshot,
    };
    if promised < asked && url.text("isolation").is_some() {
        let message = "isolation=snapshot and this readConcernLevel exclude each other; remove one";
        return Err(StoreError::usage(url, message));
    }
    Ok(promised)
}

impl MongoDb {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<MongoDb, StoreError> {
        url.allow(&[OWN.as_slice(), &DRIVER].concat())?;
        let misused = |message: String| StoreError::usage(&url, message);
        // The driver would take what follows such a character for a host, and print it.
        let credentials = url.place().trim_start_matches('/').rsplit_once('@').map_or("", |(before, _)| before);
        if credentials.split_once(':').unwrap_or((credentials, "")).1.contains([':', '/', '?', '#', '[', ']', '@']) {
            return Err(misused("the password contains one of : / ? # [ ] @; write it percent-encoded".into()));
        }
        if url.text("w") == Some("0") {
            let message = "w=0 is not supported: writes would not be acknowledged; use w=1 or more";
            return Err(misused(message.into()));
        }
        let text = url.without(&OWN);
        if !has_whole_escapes(&text) {
            // The driver panics at some of them.
            let message = "contains a % that two hexadecimal digits do not follow; write %25 for a percent sign";
            return Err(misused(message.into()));
        }
        let connection = ConnectionString::parse(text).map_err(|e| misused(fate::words(&e)))?;
        let Some(database) = connection.default_database.clone() else {
            return Err(misused("names no database; write mongodb://USER:PASSWORD@HOST:PORT/DATABASE".into()));
        };
        url.not_of_the_server(&database, &["admin", "local", "config"])?;
        let isolation = promised(&url, connection.read_concern.as_ref())?;
        Ok(MongoDb {
            database,
            connection,
            comments: Comments::of(&url)?,
            transactions: url.choice("transactions", &[("off", false), ("on", true)])?,
            isolation,
            causal: url.choice("causal", &[("off", false), ("on", true)])?,
            reset: url.choice("reset", &[("copy", Reset::Copy), ("reload", Reset::Reload)])?,
            timeout: Duration::from_millis(url.count("timeout_ms")?.unwrap_or(TIMEOUT_MS).into()),
            connections_max: url.count("connections")?,
            url,
        })
    }

    /// The driver's options. It must find a server within `most`; for `mongodb+srv` it asks the
    /// name service for the hosts.
    async fn options(&self, most: Duration) -> Result<ClientOptions, StoreError> {
        let mut options = ClientOptions::parse(self.connection.clone()).await.map_err(|error| match *error.kind {
            ErrorKind::DnsResolve { .. } => self.driver_failed(error),
            _ => self.misused(fate::words(&error)),
        })?;
        // The driver gets a little less than the whole time. So it can still say that there was
        // no server, and thus that nothing was sent.
        options.server_selection_timeout = Some(most * 9 / 10);
        // An operation ends within its time limit, connected or not.
        options.connect_timeout = Some(patience(self.timeout));
        options.retry_writes = Some(options.retry_writes.unwrap_or(false));
        options.retry_reads = Some(options.retry_reads.unwrap_or(false));
        Ok(options)
    }

    /// A client for everything except the operations of an experiment.
    async fn keeper(&self) -> Result<Client, StoreError> {
        let mut options = self.options(patience(self.timeout)).await?;
        options.write_concern = Some(WriteConcern::majority());
        options.read_concern = Some(ReadConcern::local());
        options.selection_criteria = Some(ReadPreference::Primary.into());
        (options.retry_writes, options.retry_reads) = (None, None);
        Client::with_options(options).map_err(|error| self.driver_failed(error))
    }

    /// Waits for work of the driver that is not an operation, within a time limit.
    async fn in_time<X>(&self, work: impl IntoFuture<Output = Result<X, Error>>) -> Result<X, StoreError> {
        let most = patience(self.timeout);
        match tokio::time::timeout(most, work.into_future()).await {
            Ok(done) => done.map_err(|error| self.driver_failed(error)),
            Err(_) => Err(self.failed(format!("timed out after {} ms", most.as_millis()))),
        }
    }

    /// How reads choose a member of a replica set.
    fn read_preference(&self) -> ReadPreference {
        self.connection.read_preference.clone().unwrap_or(ReadPreference::Primary)
    }

    /// Waits until every member that may answer reads has all that the primary has.
    async fn await_members(&self) -> Result<(), StoreError> {
        if self.read_preference() == ReadPreference::Primary {
            return Ok(());
        }
        let client = self.keeper().await?;
        closing(&client, members::await_all(self, &client)).await
    }

    /// The database for the operations of a worker: one client, whose pool has a connection for each
    /// thread. One monitor watches each server for all of them.
    async fn connected(&self, threads: &Range<u32>, reads: Reads) -> Result<Database, StoreError> {
        let mut options = self.options(self.timeout).await?;
        match reads {
            Reads::AsAsked => self.await_members().await?,
            Reads::Latest => {
                options.read_concern = Some(ReadConcern::local());
                options.selection_criteria = Some(ReadPreference::Primary.into());
            }
        }
        let count = (threads.len() as u32).max(1);
        options.max_pool_size = Some(count);
        options.min_pool_size = Some(count);
        options.max_connecting = Some(count.min(CONNECTING_MAX));
        let client = Client::with_options(options).map_err(|error| self.driver_failed(error))?;
        let database = client.database(&self.database);
        self.in_time(async {
            let until = Instant::now() + patience(self.timeout) * 9 / 10;
            loop {
                // This client looks for a server no longer than an operation may take.
                let mut ping = database.run_command(doc! { "ping": 1 });
                if let Some(criteria) = database.selection_criteria().cloned() {
                    ping = ping.selection_criteria(criteria);
                }
                match ping.await {
                    Err(error) if fate::is_without_server(&error) && Instant::now() < until => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    done => return done,
                }
            }
        })
        .await?;
        // Each connection may take the full time.
        if tokio::time::timeout(patience(self.timeout) * count, client.warm_connection_pool()).await.is_err() {
            return Err(self.failed(format!("{count} connections could not be made in time")));
        }
        Ok(database)
    }

    /// Refuses transactions if the server has none. `remedy` is how to do without them.
    async fn check_replica_set(&self, database: &Database, remedy: &str) -> Result<(), StoreError> {
        let hello = self.in_time(database.run_command(doc! { "hello": 1 })).await?;
        match settings::is_single_server(&hello) {
            false => Ok(()),
            true => Err(self.misused(format!(
                "is a single server, but transactions require a replica set (one member is enough); start it with \
                 --replSet and initiate the set, or use {remedy}"
            ))),
        }
    }

    /// An error that the user can fix.
    fn misused(&self, message: impl ToString) -> StoreError {
        StoreError::usage(&self.url, message)
    }

    /// An error of the store.
    fn failed(&self, message: impl ToString) -> StoreError {
        StoreError::store(&self.url, message)
    }

    /// An error of the driver, with what a user should do about it.
    fn driver_failed(&self, error: Error) -> StoreError {
        match fate::advice(&error, &self.database) {
            Some(advice) => self.failed(format!("{}; {advice}", fate::words(&error).trim_end_matches('.'))),
            None => self.failed(fate::words(&error)),
        }
    }
}

/// Does some work with a client that is not needed afterwards, then closes its connections and monitors.
async fn closing<X>(client: &Client, work: impl Future<Output = X>) -> X {
    let done = work.await;
    client.clone().shutdown().immediate(true).await;
    done
}

impl Store for MongoDb {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        let client = self.keeper().await?;
        let held = closing(&client, marker::held(self, &client)).await?;
        match &held {
            // Whatever its version, the records are those of another tool.
            Some(held) if held.adopted => {}
            Some(held) if collections::has_records(held) => kv::check(&self.url, held)?,
            Some(held) if collections::has_tables(held) => sql::check(&self.url, held)?,
            Some(held) => self.comments.check(&self.url, held)?,
            None => {}
        }
        Ok(held)
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, self.in_time(marker::write_state(&database, state))).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let client = self.keeper().await?;
        closing(&client, settings::settings(self, &client)).await
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }
}

/// Whether two hexadecimal digits follow each `%`.
fn has_whole_escapes(url: &str) -> bool {
    let is_hex = |rest: &str| rest.as_bytes().iter().take(2).filter(|byte| byte.is_ascii_hexdigit()).count() == 2;
    url.split('%').skip(1).all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Blame;

    fn open(url: &str) -> Result<MongoDb, StoreError> {
        MongoDb::open(StoreUrl::parse(url)?)
    }

    #[test]
    fn a_percent_sign_needs_two_digits() {
        assert!(has_whole_escapes("mongodb://a%20b:c%C3@h/d") && has_whole_escapes("mongodb://h/d"));
        for broken in ["mongodb://a%\u{e9}b@h/d", "mongodb://a%2", "mongodb://a%zz@h/d", "%%41"] {
            assert!(!has_whole_escapes(broken), "{broken}");
        }
    }

    /// It promised snapshots, whatever the transactions read with.
    #[test]
    fn transactions_promise_what_their_read_concern_does() {
        for (concern, expect) in [
            ("", Isolation::Snapshot),
            ("?readConcernLevel=snapshot", Isolation::Snapshot),
            ("?readConcernLevel=majority", Isolation::ReadCommitted),
            ("?readConcernLevel=local", Isolation::ReadUncommitted),
        ] {
            let store = open(&format!("mongodb://h/d{concern}")).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(store.isolation, expect, "{concern}");
        }
        let both = open("mongodb://h/d?isolation=snapshot&readConcernLevel=local").err().expect("an error");
        assert!(both.to_string().contains("exclude each other"), "{both}");
    }

    #[test]
    fn wrong_urls_are_refused_by_name() {
        let check = |url: &str, expect: &str| {
            let error = open(url).err().expect(url);
            assert_eq!(error.blame, Blame::Usage, "{error}");
            let text = error.to_string();
            assert!(text.contains(expect) && !text.contains("hush") && !text.contains("h%75sh"), "{text}");
        };
        check("mongodb://h", "names no database; write mongodb://USER:PASSWORD@HOST:PORT/DATABASE");
        check("mongodb://h/", "names no database");
        check("mongodb://u:hush@h:1/?w=1", "names no database");
        check("mongodb+srv://u:hush@h", "names no database");
        check("mongodb://h/d?w=0", "w=0 is not supported");
        check("mongodb://h/d?ttl=1", "unknown parameter ttl; mongodb: supports comments, transactions,");
        check("mongodb://h/d?comments=table", "\"table\" is not one of embedded, collection");
        check("mongodb://h/d?transactions=true", "\"true\" is not one of off, on");
        check("mongodb://h/d?causal=yes", "\"yes\" is not one of off, on");
        check("mongodb://h/d?reset=template", "\"template\" is not one of copy, reload");
        check("mongodb://h/d?timeout_ms=0", "0 is too few");
        check("mongodb://h/d?connections=x", "\"x\" is not a number");
        check("mongodb://u:hush@h/d?journal=maybe", "journal");
        check("mongodb://u:hush@h:port/d", "invalid");
        check("mongodb://u:hu?sh@h/d", "percent-encoded");
        check("mongodb://u:hush@hush@h/d", "percent-encoded");
        check("mongodb://u:h%75sh%@h/d", "write %25 for a percent sign");
    }

    #[tokio::test]
    async fn a_url_gives_the_drivers_options() {
        let store = open(
            "mongodb://u:p%40ss@h1:1,h2/d?comments=collection&transactions=on&reset=reload&timeout_ms=500&connections=3\
             &w=2&journal=true&readConcernLevel=majority&readPreference=nearest&replicaSet=rs0",
        )
        .unwrap();
        assert_eq!((store.database.as_str(), store.comments), ("d", Comments::Collection));
        assert_eq!((store.transactions, store.reset, store.connections_max), (true, Reset::Reload, Some(3)));
        let options = store.options(store.timeout).await.unwrap();
        assert_eq!(options.hosts.len(), 2);
        assert_eq!(options.repl_set_name.as_deref(), Some("rs0"));
        let credential = options.credential.unwrap();
        assert_eq!(credential.username.as_deref(), Some("u"));
        assert_eq!((options.retry_writes, options.retry_reads), (Some(false), Some(false)));
        assert!(options.server_selection_timeout < Some(store.timeout));
        assert_eq!(options.write_concern.unwrap().journal, Some(true));
        let repeating = open("mongodb://h/d?retryWrites=true").unwrap().options(Duration::from_secs(1)).await.unwrap();
        assert_eq!((repeating.retry_writes, repeating.retry_reads), (Some(true), Some(false)));
    }

    /// No server listens there. The error says so in one line, without the password.
    #[tokio::test]
    async fn a_server_that_is_not_there_is_said_so_without_the_password() {
        let store = open("mongodb://user:hush@127.0.0.1:1/d?timeout_ms=300").unwrap();
        let error = store.held().await.unwrap_err();
        assert_eq!(error.blame, Blame::Store);
        let text = error.to_string();
        let expect = ": cannot connect: connection refused; is the server running, and is the address right?";
        assert!(text.ends_with(expect) && !text.contains("hush"), "{text}");
    }
}
