//! `redis://USER:PASSWORD@HOST:PORT/NUMBER` Redis, 4.0 or later, or a server that speaks its
//! protocol; `rediss:` with TLS. One connection a thread. With `cluster=true` the server is a node of a
//! cluster, and each thread has a connection to each node.
//!
//! A record is a hash, as YCSB's binding stores it: its key is the record's, its fields are `field0`,
//! `field1`, and so on. If the sessions scan, the keys are also in the sorted set `encore:keys`, all with
//! score 0, so that Redis orders them as texts. (YCSB's own `_indices` orders keys by their hashes,
//! so Encore neither writes nor reads it.) The marker is the string `encore:held`.
//!
//! An insert, an update, a scan and, with an index, a delete are scripts: HSET by itself neither
//! requires nor refuses an existing key. MULTI with EXEC could do several commands at once, but not
//! one of them only if another has found the key. A script is atomic and takes one round trip.
//!
//! What differs in a cluster: `nodes.rs` finds the primaries, and connects all of them to load, to count
//! and to digest; `wire.rs` follows redirects; `apart.rs` keeps the index of keys by commands of its own.
//!
//! The parameters:
//!
//! - `cluster`: whether the server is a node of a cluster (`false`).
//! - `replica`: `HOST:PORT` of a replica; reads outside of transactions go there. Not in a cluster.
//! - `wait`: how many replicas must have a write before it counts as done (`WAIT`); default: none.
//! - `wait_ms`: how long a write waits for them (1,000). If fewer have it by then, its fate is unknown.
//! - `ttl`: for how many seconds a record stays after its last write; default: for ever.
//! - `timeout_ms`: how long an operation may take before it times out (10,000).
//! - `connections`: the most connections of all threads together; default: one a thread.

mod adopted;
mod apart;
mod connection;
mod keys;
mod load;
mod nodes;
mod replica;
mod scripts;
mod settings;
mod transactions;
mod wire;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::{RedisError, RedisResult};
use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::spec::Spec;
use schemas::vocabulary::kv::Kv;

use super::adoption::adopt;
use super::counted::Counted;
use super::fields::{Fields, asks_for_scans, check_one_state, has_scans};
use super::link::{self, Limits, expiry_note, in_time};
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, block_on, patience};
use crate::source::Source;
pub use connection::RedisConnection;
use connection::Shared;
use nodes::{Nodes, Obstacle, Topology};
use replica::{Replica, Wait};
use scripts::{Index, Scripts};

/// The key of the marker.
const HELD: &str = "encore:held";

/// The key of the index of scans.
const INDEX: &str = "encore:keys";

/// The parameters of the URL.
const PARAMETERS: [&str; 7] = {
    let [ttl, timeout, connections] = link::PARAMETERS;
    let [replica, wait, wait_ms] = replica::PARAMETERS;
    [ttl, timeout, connections, "cluster", replica, wait, wait_ms]
};

/// What the version of the records is. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// How many connections a worker makes at the same time.
const CONNECTING_MAX: usize = 16;

/// The store in a database of a Redis server, or in a cluster.
pub struct Redis {
    url: StoreUrl,
    topology: Topology,
    /// For how many seconds a record stays.
    ttl: Option<u32>,
    timeout: Duration,
    connections_max: Option<u32>,
    /// The server for reads outside of transactions.
    replica: Option<Replica>,
    /// Which replicas a write waits for.
    wait: Option<Wait>,
    counted: Counted,
}

impl Redis {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Redis, StoreError> {
        url.allow(&PARAMETERS)?;
        if !url.place().starts_with("//") {
            return Err(StoreError::usage(&url, "names no server; write redis://HOST:PORT/NUMBER"));
        }
        let topology = Topology::of(&url, &url.without(&PARAMETERS))?;
        let Limits { ttl, timeout, connections_max } = Limits::of(&url)?;
        let wait = Wait::of(&url)?;
        let replica = match &topology {
            Topology::One(primary) => Replica::of(&url, primary)?,
            Topology::Cluster(_) if wait.is_some() || url.text("replica").is_some() => {
                let message = "replica and wait are for a server by itself, so each does not go with cluster=true; \
                               remove it";
                return Err(StoreError::usage(&url, message));
            }
            Topology::Cluster(_) => None,
        };
        Ok(Redis { topology, ttl, timeout, connections_max, replica, wait, counted: Counted::default(), url })
    }

    /// What makes one loaded store different from another, for the marker.
    fn design(&self) -> [(&'static str, String); 1] {
        [("ttl", self.ttl.map_or("none".to_string(), |seconds| seconds.to_string()))]
    }

    /// The marker of a freshly loaded store.
    fn loaded(&self, source: &Source) -> HeldState {
        let design = self.design().map(|(name, value)| (name.to_string(), value));
        HeldState::loaded(LAYOUT, design.into(), source)
    }

    /// Connections for everything except the operations of an experiment.
    async fn nodes(&self) -> Result<Nodes, StoreError> {
        in_time(&self.url, self.timeout, self.topology.connect(), |obstacle| match obstacle {
            Obstacle::Url(why) => StoreError::usage(&self.url, why),
            Obstacle::Incomplete(why) => StoreError::store(&self.url, why),
            Obstacle::Driver(error) => self.failed(error),
        })
        .await
    }

    /// Who keeps the index of keys while the sessions of a trace set run.
    fn index(&self, source: &Source) -> Index {
        match (has_scans(source), self.topology.is_cluster()) {
            (false, _) => Index::None,
            (true, false) => Index::InScripts,
            (true, true) => Index::Apart,
        }
    }

    /// Waits for work that is not an operation, within a time limit.
    async fn in_time<X>(&self, work: impl Future<Output = RedisResult<X>>) -> Result<X, StoreError> {
        in_time(&self.url, self.timeout, work, |error| self.failed(error)).await
    }

    /// Waits until the replica, if there is one, has all that the primary has.
    async fn await_replica(&self, nodes: &mut Nodes) -> Result<(), StoreError> {
        match &self.replica {
            Some(replica) => replica.await_caught_up(self, nodes).await,
            None => Ok(()),
        }
    }

    /// Connections for operations, whose reads go to the replica if there is one.
    async fn connect_with(
        &self,
        source: &Source,
        threads: Range<u32>,
        replica: Option<&Replica>,
    ) -> Result<Vec<RedisConnection>, StoreError> {
        let mut nodes = self.nodes().await?;
        if let Some(replica) = replica {
            replica.await_caught_up(self, &mut nodes).await?;
        }
        let index = self.index(source);
        let shared = Arc::new(Shared {
            connector: self.topology.connector(&nodes, patience(self.timeout)).map_err(|error| self.failed(&error))?,
            reader: replica.map(Replica::connector),
            wait: self.wait,
            fields: Fields::of(source),
            index,
            scripts: self.in_time(Scripts::load(index, self.ttl, &mut nodes)).await?,
            timeout: self.timeout,
            ttl: self.ttl,
        });
        let shared = &shared;
        let connections = stream::iter(threads).map(async |_| {
            let wire = self.in_time(shared.connector.connect()).await?;
            let reader = match (&shared.reader, replica) {
                (Some(reader), Some(replica)) => {
                    let made = async {
                        let mut wire = reader.connect().await?;
                        // A replica does not get the scripts of its primary.
                        wire.query::<String>(&shared.scripts.scan.load_command()).await?;
                        Ok(wire)
                    };
                    Some(self.in_time(made).await.map_err(|error| replica.failed(error))?)
                }
                _ => None,
            };
            Ok(RedisConnection::new(shared.clone(), wire, reader))
        });
        connections.buffered(CONNECTING_MAX).try_collect().await
    }

    /// An error of the server or of the way to it, with what a user should do about it.
    fn failed(&self, error: &RedisError) -> StoreError {
        let words = words::words(error);
        match words::advice(error) {
            Some(advice) => StoreError::store(&self.url, format!("{words}; {advice}")),
            None => StoreError::store(&self.url, words),
        }
    }
}

impl Store for Redis {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        load::held(self, &mut self.nodes().await?).await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        load::write_state(self, &mut self.nodes().await?, state).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut settings = settings::settings(self, &mut self.nodes().await?).await?;
        settings.extend(expiry_note(self.ttl));
        Ok(settings)
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        // A server that does not answer has counted nothing that is known.
        let counts = block_on(&self.url, async { settings::counts(self, &mut self.nodes().await?).await });
        self.counted.with(counts.unwrap_or_default())
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }
}

impl Serves<Kv> for Redis {
    type Connection = RedisConnection;

    /// A cluster has none: a transaction of Redis concerns keys of one slot only.
    fn transactions(&self) -> Option<Isolation> {
        (!self.topology.is_cluster()).then_some(Isolation::Serializable)
    }

    fn accepts(&self, spec: &Spec, file: &Path) -> Result<(), StoreError> {
        if self.ttl.is_some() && asks_for_scans(spec) {
            let message = format!(
                "ttl does not go with scans, which mix.scan of {} asks for: the index of keys would keep those of \
                 expired records; remove ttl, or set mix.scan to 0",
                file.display()
            );
            return Err(StoreError::usage(&self.url, message));
        }
        Ok(())
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        load::load(self, source, progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        let design = self.design();
        held.check(&self.url, LAYOUT, &design.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        adopt(self, source).await
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        load::check_count(self, source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        check_one_state(&self.url, source)?;
        load::digest(self, source).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<RedisConnection>, StoreError> {
        self.connect_with(source, threads, self.replica.as_ref()).await
    }

    async fn connect_to_latest(
        &self,
        source: &Source,
        threads: Range<u32>,
    ) -> Result<Vec<RedisConnection>, StoreError> {
        self.connect_with(source, threads, None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Blame;

    fn open(url: &str) -> Result<Redis, StoreError> {
        Redis::open(StoreUrl::parse(url)?)
    }

    #[test]
    fn wrong_urls_are_refused_by_name() {
        let check = |url: &str, expect: &str| {
            let error = open(url).err().expect(url);
            assert_eq!(error.blame, Blame::Usage, "{error}");
            let text = error.to_string();
            assert!(text.contains(expect) && !text.contains("hush"), "{text}");
        };
        check("redis:h", "names no server; write redis://HOST:PORT/NUMBER");
        check("redis://h/name", "Invalid database number");
        check("redis://u:hush@h:port/0", "redis://USER:PASSWORD@HOST:PORT/NUMBER");
        check("redis://h/0?ttl=0", "ttl: 0 is too few");
        check("redis://h/0?ttl=soon", "\"soon\" is not a number");
        check("redis://h/0?protocol=resp3", "unknown parameter protocol; redis: supports ttl, timeout_ms, connections");
        check("redis://h:1/?cluster=yes", "\"yes\" is not one of false, true");
        check("redis://h:1/3?cluster=true", "names a database, but a cluster has only number 0; remove the number");
        check("redis://u:hush@h:1,i:port/?cluster=true", "write redis://USER:PASSWORD@HOST:PORT/NUMBER");
        check("redis://u:hush@h:1,i:2/0", "several hosts; add cluster=true");
        assert!(open("rediss://u:p%40ss@h:7,[::1]:8/0?cluster=true&ttl=60").unwrap().topology.is_cluster());
        let store = open("rediss://u:p%40ss@h:7/3?ttl=60&timeout_ms=50&connections=2").unwrap();
        assert_eq!((store.ttl, store.timeout.as_millis(), store.connections_max), (Some(60), 50, Some(2)));
        assert_eq!(store.topology.database(), 3);
    }

    /// No server listens there. The error says so in one line, without the password.
    #[tokio::test]
    async fn a_server_that_is_not_there_is_said_so_without_the_password() {
        for scheme in ["redis", "rediss"] {
            let store = open(&format!("{scheme}://user:hush@127.0.0.1:1/0?timeout_ms=300")).unwrap();
            let error = store.held().await.unwrap_err();
            assert_eq!(error.blame, Blame::Store);
            let text = error.to_string();
            let expect = ": cannot connect: connection refused; is the server running, and is the address right?";
            assert!(text.ends_with(expect) && !text.contains("hush"), "{text}");
        }
    }
}
