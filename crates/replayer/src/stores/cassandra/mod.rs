//! `cassandra://USER:PASSWORD@HOST:PORT,HOST:PORT/KEYSPACE` Apache Cassandra 4.0 or later, through the
//! driver of the crate `scylla`. The threads of a worker share a session: a few connections to each node, on
//! which requests overtake each other.
//!
//! A record is a row of `usertable`, as in YCSB's binding: its key is the column `y_id`, its fields are `field0`,
//! `field1`, and so on. `layout.rs` decides whether each record is a partition, or each fragment, for scans. The
//! marker is the row of the table `encore_state`.
//!
//! Without `conditions=lwt` an insert, an update and a delete are blind: Cassandra neither requires nor refuses an
//! existing row. `timestamps.rs` says which of two writes wins.
//!
//! The parameters:
//!
//! - `read_level`, `write_level`: consistency levels of operations (`QUORUM`).
//! - `replication_factor`: copies of each row; default: those of the keyspace, or 3, or the number of nodes.
//! - `coordinator`: `token-aware`, `by-thread` (one node each, in turn), or HOST:PORT, several with commas.
//! - `conditions`: `none`, or `lwt`: writes are lightweight transactions that check whether the row exists.
//! - `read_repair`, `speculative_retry`: options of the table; default: the server's.
//! - `timeout_ms`: how long an operation may take before it times out (10,000).
//! - `connections_per_node`: connections of each worker to each node (1).
//! - `physical`: a file with the tables for those of a trace set of SQL (`encore trace physical`).

mod cells;
mod connection;
mod layout;
mod level;
mod load;
mod nodes;
mod place;
mod rows;
mod schema;
mod settings;
mod sql;
mod statements;
mod timestamps;
mod words;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use schemas::digest::StateDigest;
use schemas::spec::Spec;
use schemas::vocabulary::kv::Kv;
use schemas::workload::kv::{KvWorkload, SessionKind};

use super::fields::check_one_state;
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError};
use crate::source::Source;
pub use connection::CassandraConnection;
use level::{Level, Use};
use nodes::Coordinator;
use place::Place;
use schema::TableOptions;
pub use sql::SqlConnection;

/// The version of the tables. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// How long an operation may take unless the URL says otherwise.
const TIMEOUT_MS: u32 = 10_000;

/// The parameters of the URL.
const PARAMETERS: [&str; 10] = [
    "read_level",
    "write_level",
    "replication_factor",
    "coordinator",
    "conditions",
    "read_repair",
    "speculative_retry",
    "timeout_ms",
    "connections_per_node",
    "physical",
];

/// Whether a write checks that its row is there, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conditions {
    /// It does not.
    None,
    /// It is a lightweight transaction.
    Lwt,
}

/// The store in a keyspace of a Cassandra cluster.
pub struct Cassandra {
    url: StoreUrl,
    place: Place,
    read_level: Level,
    write_level: Level,
    replication_factor: Option<u32>,
    coordinator: Coordinator,
    conditions: Conditions,
    options: TableOptions,
    timeout: Duration,
    connections_per_node: NonZeroUsize,
}

impl Cassandra {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Cassandra, StoreError> {
        if let Some(name) = ["ssl", "tls"].into_iter().find(|name| url.text(name).is_some()) {
            let message = format!(
                "unknown parameter {name}: Encore does not encrypt connections to Cassandra; use a network that you \
                 trust, and remove {name}"
            );
            return Err(StoreError::usage(&url, message));
        }
        url.allow(&PARAMETERS)?;
        let place = Place::of(&url)?;
        Ok(Cassandra {
            read_level: Level::of(&url, "read_level", Use::Reads)?,
            write_level: Level::of(&url, "write_level", Use::Writes)?,
            replication_factor: url.count("replication_factor")?,
            coordinator: Coordinator::of(&url)?,
            conditions: url.choice("conditions", &[("none", Conditions::None), ("lwt", Conditions::Lwt)])?,
            options: TableOptions::of(&url)?,
            timeout: Duration::from_millis(url.count("timeout_ms")?.unwrap_or(TIMEOUT_MS).into()),
            connections_per_node: NonZeroUsize::new(url.count("connections_per_node")?.unwrap_or(1) as usize)
                .unwrap_or(NonZeroUsize::MIN),
            place,
            url,
        })
    }

    /// What makes one loaded store different from another, for the marker.
    fn design(&self) -> [(&'static str, String); 3] {
        let or = |text: Option<String>| text.unwrap_or_else(|| "default".to_string());
        [
            ("replication_factor", or(self.replication_factor.map(|factor| factor.to_string()))),
            ("read_repair", or(self.options.read_repair.clone())),
            ("speculative_retry", or(self.options.speculative_retry.clone())),
        ]
    }

    /// The marker of a freshly loaded store.
    fn loaded(&self, source: &Source) -> HeldState {
        let design = self.design().map(|(name, value)| (name.to_string(), value));
        HeldState::loaded(LAYOUT, design.into(), source)
    }
}

impl Store for Cassandra {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        schema::held(self, &self.session().await?).await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        schema::write_state(self, &self.session().await?, state).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        settings::settings(self, &self.session().await?).await
    }
}

impl Serves<Kv> for Cassandra {
    type Connection = CassandraConnection;

    fn accepts(&self, spec: &Spec, file: &Path) -> Result<(), StoreError> {
        let deletes = spec.kinds().iter().any(|(name, _)| *name == SessionKind::Delete.name());
        let are_ordered = KvWorkload::of(spec).is_ok_and(|workload| workload.access.ordered_writes);
        if !deletes || are_ordered || self.conditions == Conditions::Lwt {
            return Ok(());
        }
        let message = format!(
            "writes without a condition, so an update that follows the delete of its record would bring a part of the \
             record back, and {} has deletes (mix.delete) whose order it leaves open; set access.ordered_writes = true, \
             set mix.delete to 0, or add conditions=lwt to the URL",
            file.display()
        );
        Err(StoreError::usage(&self.url, message))
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(self, source, progress).await
    }

    async fn adopt(&self, _source: &Source) -> Result<(), StoreError> {
        let message =
            "keeps no records that another tool has loaded: --keep-data does not support Cassandra; remove it";
        Err(StoreError::usage(&self.url, message))
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        let design = self.design();
        held.check(&self.url, LAYOUT, &design.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        load::check_count(self, source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        check_one_state(&self.url, source)?;
        load::digest(self, source).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<CassandraConnection>, StoreError> {
        let session = self.session().await?;
        schema::check_levels(self, &session).await?;
        connection::connect(self, session, source, threads).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Blame;

    fn open(url: &str) -> Result<Cassandra, StoreError> {
        Cassandra::open(StoreUrl::parse(url)?)
    }

    #[test]
    fn wrong_urls_are_refused_by_name() {
        let check = |url: &str, expect: &str| {
            let error = open(url).err().expect(url);
            assert_eq!(error.blame, Blame::Usage, "{error}");
            let text = error.to_string();
            assert!(text.contains(expect) && !text.contains("hush"), "{text}");
        };
        check("cassandra:h/k", "names no keyspace; write cassandra://HOST:PORT/KEYSPACE");
        check("cassandra://h:1", "names no keyspace; write cassandra://HOST:PORT/KEYSPACE");
        check("cassandra:///k", "names no server");
        check("cassandra://u:hush@h:port/k", "\"port\" is not a port");
        check("cassandra://u:hu%73h%@h/k", "write %25 for a percent sign");
        check("cassandra://h/my-keys", "\"my-keys\" is not the name of a keyspace");
        check("cassandra://h/system_auth", "is a system database");
        check("cassandra://h/k?read_level=MOST", "\"MOST\" is not one of ONE, TWO, THREE, QUORUM, ALL");
        check("cassandra://h/k?read_level=ANY", "ANY is a level of writes");
        check("cassandra://h/k?write_level=SERIAL", "SERIAL is a level of reads");
        check("cassandra://h/k?replication_factor=0", "0 is too few");
        check("cassandra://h/k?read_repair=MAYBE", "\"MAYBE\" is not one of BLOCKING, NONE");
        check("cassandra://h/k?speculative_retry=soon", "\"soon\" is none of NEVER, ALWAYS");
        check("cassandra://h/k?coordinator=", "names no node");
        check("cassandra://h/k?consistency=ONE", "unknown parameter consistency; cassandra: supports read_level");
        check("cassandra://h/k?tls=true", "does not encrypt connections to Cassandra");
        let store =
            open("cassandra://u:p%40ss@h,[::1]:7/k_1?read_level=local_one&write_level=ANY&timeout_ms=50").unwrap();
        assert_eq!((store.read_level.name(), store.write_level.name()), ("LOCAL_ONE", "ANY"));
        assert_eq!(store.timeout.as_millis(), 50);
    }

    /// No server listens there. The error says so in one line, without the password.
    #[tokio::test]
    async fn a_server_that_is_not_there_is_said_so_without_the_password() {
        let store = open("cassandra://user:hush@127.0.0.1:1/k?timeout_ms=300").unwrap();
        let error = store.held().await.unwrap_err();
        assert_eq!(error.blame, Blame::Store);
        let text = error.to_string();
        let expect = ": cannot connect: connection refused; is the server running, and is the address right?";
        assert!(text.ends_with(expect) && !text.contains("hush"), "{text}");
    }
}
