//! `redis://USER:PASSWORD@HOST:PORT/NUMBER` Redis, 4.0 or later, or a server that speaks its
//! protocol; `rediss:` with TLS. One connection a thread.
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
//! The parameters:
//!
//! - `ttl`: for how many seconds a record stays after its last write; default: for ever.
//! - `timeout_ms`: how long an operation may take before it times out (10,000).
//! - `connections`: the most connections of all threads together; default: one a thread.

mod adopted;
mod connection;
mod keys;
mod load;
mod scripts;
mod settings;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use schemas::digest::StateDigest;
use schemas::vocabulary::kv::Kv;

use super::adoption::adopt;
use super::counted::Counted;
use super::fields::{Fields, check_one_state, has_scans};
use super::link::{Limits, PARAMETERS, expiry_note, in_time};
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, block_on};
use crate::source::Source;
pub use connection::RedisConnection;
use connection::Shared;
use scripts::Scripts;

/// The key of the marker.
const HELD: &str = "encore:held";

/// The key of the index of scans.
const INDEX: &str = "encore:keys";

/// What the version of the records is. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// How many connections a worker makes at the same time.
const CONNECTING_MAX: usize = 16;

/// The store in a database of a Redis server.
pub struct Redis {
    url: StoreUrl,
    client: Client,
    /// For how many seconds a record stays.
    ttl: Option<u32>,
    timeout: Duration,
    connections_max: Option<u32>,
    counted: Counted,
}

impl Redis {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Redis, StoreError> {
        url.allow(&PARAMETERS)?;
        if !url.place().starts_with("//") {
            return Err(StoreError::usage(&url, "names no server; write redis://HOST:PORT/NUMBER"));
        }
        let client = Client::open(url.without(&PARAMETERS)).map_err(|error| {
            StoreError::usage(
                &url,
                format!("{}; write redis://USER:PASSWORD@HOST:PORT/NUMBER", connection::words(&error)),
            )
        })?;
        let Limits { ttl, timeout, connections_max } = Limits::of(&url)?;
        Ok(Redis { client, ttl, timeout, connections_max, counted: Counted::default(), url })
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

    /// Refuses records that expire if sessions scan.
    fn check_ttl(&self, source: &Source) -> Result<(), StoreError> {
        if self.ttl.is_some() && has_scans(source) {
            let message = "ttl does not go with scans: the index of keys would keep those of expired records; remove \
                           ttl, or use a trace set without scans";
            return Err(StoreError::usage(&self.url, message));
        }
        Ok(())
    }

    /// A connection for everything except the operations of an experiment.
    async fn keeper(&self) -> Result<MultiplexedConnection, StoreError> {
        self.in_time(connect(&self.client)).await
    }

    /// Waits for work that is not an operation, within a time limit.
    async fn in_time<X>(&self, work: impl Future<Output = RedisResult<X>>) -> Result<X, StoreError> {
        in_time(&self.url, self.timeout, work, |error| self.failed(error)).await
    }

    /// An error of the server or of the way to it, with what a user should do about it.
    fn failed(&self, error: &RedisError) -> StoreError {
        let words = connection::words(error);
        match connection::advice(error) {
            Some(advice) => StoreError::store(&self.url, format!("{words}; {advice}")),
            None => StoreError::store(&self.url, words),
        }
    }
}

/// A connection without time limits of its own: those of Encore hold.
async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await
}

impl Store for Redis {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        load::held(self, &mut self.keeper().await?).await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let mut connection = self.keeper().await?;
        load::write_state(self, &mut connection, state).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut settings = settings::settings(self, &mut self.keeper().await?).await?;
        settings.extend(expiry_note(self.ttl));
        Ok(settings)
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        // A server that does not answer has counted nothing that is known.
        let counts = block_on(&self.url, async { settings::counts(self, &mut self.keeper().await?).await });
        self.counted.with(counts.unwrap_or_default())
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }
}

impl Serves<Kv> for Redis {
    type Connection = RedisConnection;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        self.check_ttl(source)?;
        load::load(self, source, progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        let design = self.design();
        held.check(&self.url, LAYOUT, &design.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        self.check_ttl(source)?;
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
        let mut keeper = self.keeper().await?;
        let shared = Arc::new(Shared {
            client: self.client.clone(),
            fields: Fields::of(source),
            scripts: self.in_time(Scripts::load(has_scans(source), self.ttl, &mut keeper)).await?,
            timeout: self.timeout,
        });
        let shared = &shared;
        let connections =
            stream::iter(threads).map(async |_| Ok(RedisConnection::new(shared.clone(), self.keeper().await?)));
        connections.buffered(CONNECTING_MAX).try_collect().await
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
        let store = open("rediss://u:p%40ss@h:7/3?ttl=60&timeout_ms=50&connections=2").unwrap();
        assert_eq!((store.ttl, store.timeout.as_millis(), store.connections_max), (Some(60), 50, Some(2)));
        assert_eq!(store.client.get_connection_info().redis_settings().password(), Some("p@ss"));
        assert_eq!(store.client.get_connection_info().redis_settings().db(), 3);
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
