//! `mongodb://USER:PASSWORD@HOST:PORT/DATABASE` MongoDB, 4.4 or later: BG's
//! data as documents (bg-2013, Figure 1.b), one connection a thread.
//!
//! | parameter | values |
//! |---|---|
//! | `comments` | `embedded` (default): in their resource's document; `collection`: documents of their own (bg-2013, Figure 5) |
//! | `transactions` | `off` (default): what an acceptance or a thaw does to two members is two updates; `on`: one transaction |
//! | `reset` | `copy` (default): what actions have changed is taken back from a loaded copy; `reload`: every load inserts all documents |
//! | `timeout_ms` | how long an operation may take before it is given up (10,000) |
//! | `connections` | cap for all threads together; without it each has its own |
//! | `w`, `journal`, `readConcernLevel`, `readPreference`, … | as in every connection string of MongoDB's, see [`DRIVER`] |
//!
//! Write concern, read concern and read preference are those of the operations
//! of an experiment. Whatever else is done to the store waits for a majority and
//! reads the primary. The driver repeats nothing of its own accord unless the URL
//! says `retryWrites=true` or `retryReads=true`: what an experiment's operations
//! cost, and how they end, is the store's affair.

mod actions;
mod audit;
mod documents;
mod fate;
mod load;
mod reads;
mod settings;
mod transactions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{ClientOptions, ConnectionString, ReadConcern, ReadPreference, WriteConcern};
use mongodb::{Client, Database};
use schemas::digest::StateDigest;

use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Store, StoreError, patience};
use crate::source::Source;
use actions::{Actions, Shared};
use documents::Comments;

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
const OWN: [&str; 5] = ["comments", "transactions", "reset", "timeout_ms", "connections"];

/// How long an operation may take unless the URL says otherwise.
const TIMEOUT_MS: u32 = 10_000;

/// How many connections a worker makes at the same time.
const CONNECTING_MAX: u32 = 16;

/// How a store is brought back to its data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reset {
    /// What differs from a loaded copy is taken back.
    Copy,
    /// All documents are inserted again.
    Reload,
}

/// The store in a database of a MongoDB server, replica set or cluster.
pub struct MongoDb {
    url: StoreUrl,
    connection: ConnectionString,
    /// The database that the URL names.
    database: String,
    comments: Comments,
    /// Whether what concerns two members is a transaction.
    transactions: bool,
    reset: Reset,
    timeout: Duration,
    connections_max: Option<u32>,
}

impl MongoDb {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<MongoDb, StoreError> {
        url.allow(&[OWN.as_slice(), &DRIVER].concat())?;
        let misused = |message: String| StoreError::usage(&url, message);
        // The driver would take what follows such a character for a host, and say so.
        let credentials = url.place().trim_start_matches('/').rsplit_once('@').map_or("", |(before, _)| before);
        if credentials.split_once(':').unwrap_or((credentials, "")).1.contains([':', '/', '?', '#', '[', ']', '@']) {
            return Err(misused("has a password with one of : / ? # [ ] @ in it; write it percent-encoded".into()));
        }
        if url.text("w") == Some("0") {
            let message =
                "w=0 asks for no answer to a write, so that nobody knows whether it happened; w=1 is the least";
            return Err(misused(message.into()));
        }
        let connection = ConnectionString::parse(url.without(&OWN)).map_err(|e| misused(fate::words(&e)))?;
        let Some(database) = connection.default_database.clone() else {
            return Err(misused("names no database; write mongodb://USER:PASSWORD@HOST:PORT/DATABASE".into()));
        };
        Ok(MongoDb {
            database,
            connection,
            comments: Comments::of(&url)?,
            transactions: url.choice("transactions", &[("off", false), ("on", true)])?,
            reset: url.choice("reset", &[("copy", Reset::Copy), ("reload", Reset::Reload)])?,
            timeout: Duration::from_millis(url.count("timeout_ms")?.unwrap_or(TIMEOUT_MS).into()),
            connections_max: url.count("connections")?,
            url,
        })
    }

    /// What the driver is told, where a server must be found within `most`; for
    /// `mongodb+srv` it asks the name service for the hosts.
    async fn options(&self, most: Duration) -> Result<ClientOptions, StoreError> {
        let mut options = ClientOptions::parse(self.connection.clone()).await.map_err(|error| match *error.kind {
            ErrorKind::DnsResolve { .. } => self.driver_failed(error),
            _ => self.misused(fate::words(&error)),
        })?;
        // A little less than the time itself lets the driver say that there was no
        // server, and with it that nothing was sent.
        options.server_selection_timeout = Some(most * 9 / 10);
        // An operation ends in its time, connected or not.
        options.connect_timeout = Some(patience(self.timeout));
        options.retry_writes = Some(options.retry_writes.unwrap_or(false));
        options.retry_reads = Some(options.retry_reads.unwrap_or(false));
        Ok(options)
    }

    /// A client for all that is not an operation of an experiment.
    async fn keeper(&self) -> Result<Client, StoreError> {
        let mut options = self.options(patience(self.timeout)).await?;
        options.write_concern = Some(WriteConcern::majority());
        options.read_concern = Some(ReadConcern::local());
        options.selection_criteria = Some(ReadPreference::Primary.into());
        (options.retry_writes, options.retry_reads) = (None, None);
        Client::with_options(options).map_err(|error| self.driver_failed(error))
    }

    /// Something of the driver's that is not an operation, and must end too.
    async fn in_time<X>(&self, work: impl IntoFuture<Output = Result<X, Error>>) -> Result<X, StoreError> {
        let most = patience(self.timeout);
        match tokio::time::timeout(most, work.into_future()).await {
            Ok(done) => done.map_err(|error| self.driver_failed(error)),
            Err(_) => Err(self.failed(format!("gave no answer within {} ms", most.as_millis()))),
        }
    }

    /// Refuses transactions where there can be none.
    async fn check_transactions(&self, database: &Database) -> Result<(), StoreError> {
        if !self.transactions {
            return Ok(());
        }
        let hello = self.in_time(database.run_command(doc! { "hello": 1 })).await?;
        match settings::is_single_server(&hello) {
            false => Ok(()),
            true => Err(self.misused(
                "is a single server, and transactions=on needs a replica set (of one member, say): start it with \
                 --replSet, initiate the set, or leave transactions=off",
            )),
        }
    }

    /// An error that the user can mend.
    fn misused(&self, message: impl ToString) -> StoreError {
        StoreError::usage(&self.url, message)
    }

    /// An error of the store's.
    fn failed(&self, message: impl ToString) -> StoreError {
        StoreError::store(&self.url, message)
    }

    /// An error of the driver's, with what a user should do about it.
    fn driver_failed(&self, error: Error) -> StoreError {
        match fate::advice(&error, &self.database) {
            Some(advice) => self.failed(format!("{}; {advice}", fate::words(&error).trim_end_matches('.'))),
            None => self.failed(fate::words(&error)),
        }
    }
}

/// Does some work with a client that is of no use afterwards: its connections and
/// monitors do not outlive the work.
async fn closing<X>(client: &Client, work: impl Future<Output = X>) -> X {
    let done = work.await;
    client.clone().shutdown().immediate(true).await;
    done
}

impl Store for MongoDb {
    type Connection = Actions;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        closing(&client, load::load(self, &client, source, progress)).await
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        let client = self.keeper().await?;
        let held = closing(&client, load::held(self, &client)).await?;
        if let Some(held) = &held {
            self.comments.check(&self.url, held)?;
        }
        Ok(held)
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, self.in_time(load::write_state(&database, state))).await
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, audit::check_counts(self, &database, source)).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let client = self.keeper().await?;
        closing(&client, settings::settings(self, &client)).await
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, audit::digest(self, &database)).await
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<Actions>, StoreError> {
        // One client for the worker: its pool has a connection for each thread,
        // and one monitor watches each server for all of them.
        let mut options = self.options(self.timeout).await?;
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
                match database.run_command(doc! { "ping": 1 }).await {
                    Err(error) if fate::is_without_server(&error) && Instant::now() < until => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    done => return done,
                }
            }
        })
        .await?;
        self.check_transactions(&database).await?;
        // Each connection may take its time.
        if tokio::time::timeout(patience(self.timeout) * count, client.warm_connection_pool()).await.is_err() {
            return Err(self.failed(format!("{count} connections could not be made in time")));
        }
        let shared = Arc::new(Shared::new(self, &database, source));
        Ok(threads.map(|_| Actions::new(shared.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Blame;

    fn open(url: &str) -> Result<MongoDb, StoreError> {
        MongoDb::open(StoreUrl::parse(url)?)
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
        check("mongodb://h/d?w=0", "w=0 asks for no answer");
        check("mongodb://h/d?ttl=1", "parameter ttl is unknown; mongodb: takes comments, transactions,");
        check("mongodb://h/d?comments=table", "\"table\" is none of embedded, collection");
        check("mongodb://h/d?transactions=true", "\"true\" is none of off, on");
        check("mongodb://h/d?reset=template", "\"template\" is none of copy, reload");
        check("mongodb://h/d?timeout_ms=0", "0 is too few");
        check("mongodb://h/d?connections=x", "\"x\" is not a number");
        check("mongodb://u:hush@h/d?journal=maybe", "journal");
        check("mongodb://u:hush@h:port/d", "invalid");
        check("mongodb://u:hu?sh@h/d", "percent-encoded");
        check("mongodb://u:hush@hush@h/d", "percent-encoded");
        check("mongodb://u:h%75sh%@h/d", "unescaped %");
    }

    #[tokio::test]
    async fn a_url_is_what_the_driver_is_told() {
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

    /// Nobody listens there: the driver's words are in the error, the password is not.
    #[tokio::test]
    async fn a_server_that_is_not_there_is_said_so_without_the_password() {
        let store = open("mongodb://user:hush@127.0.0.1:1/d?timeout_ms=300").unwrap();
        let error = store.held().await.unwrap_err();
        assert_eq!(error.blame, Blame::Store);
        let text = error.to_string();
        assert!(text.contains("is the server running") && !text.contains("hush"), "{text}");
    }
}
