//! The way to memcached: one connection a thread, in the meta protocol, whose leases close the
//! race between a fill and an invalidation.
//!
//! A cache that is away makes a store slower, never wrong. If a write could not invalidate its
//! items, all threads of this process bypass the cache until one of them has emptied it. (Within
//! one experiment, an item is read only in the process that writes it: fragments share nothing.
//! In the next experiment another process may read it, or the database may have been changed
//! without the cache. So the cache holds a marker with the state of the database that it matches,
//! except while an experiment runs.)

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use memcache::exp::{
    AsyncMetaConnection, DeleteOptions, Error, GetOptions, MetaCommand, MetaResponse, ReturnCode, SetOptions,
    build_delete, build_get, build_set, parse_meta_result,
};

use super::keys::Item;
use crate::clock::Clock;
use crate::stores::memcached::text;
use crate::stores::patience;

/// How long no thread tries to reach a cache that failed.
const PAUSE_NS: i64 = 200_000_000;

/// How long a lease is valid, in seconds. This is longer than any fill takes, and short enough
/// that a reader that never fills costs little.
const LEASE_S: u32 = 10;

/// The most bytes of a database's name in each key.
const NAME_BYTES_MAX: usize = 150;

/// What this process knows of the cache.
pub struct Cache {
    address: String,
    /// What all keys begin with, since two databases may share a cache.
    prefix: String,
    timeout: Duration,
    clock: Clock,
    /// Until then no thread tries to connect.
    away_until_ns: AtomicI64,
    /// How many writes could not invalidate their items, and for how many of them the cache has
    /// been emptied since.
    owed: AtomicU64,
    paid: AtomicU64,
    /// The smallest value that the cache has refused as too large.
    too_large_bytes: AtomicUsize,
    counts: Counts,
}

/// Counts of what happened, over all threads.
#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    fills: AtomicU64,
    fills_refused: AtomicU64,
    too_large: AtomicU64,
    invalidations: AtomicU64,
    passed_by: AtomicU64,
    emptied: AtomicU64,
}

fn add(count: &AtomicU64, n: u64) {
    count.fetch_add(n, Ordering::Relaxed);
}

impl Cache {
    /// The cache at an address, not connected yet, for a database of this name.
    pub fn new(address: String, database: &str, timeout: Duration) -> Cache {
        // A key has at most 250 characters, none of them a space.
        let name: String = database.chars().filter(char::is_ascii_graphic).collect();
        let prefix = format!("encore:{}", &name[name.len().saturating_sub(NAME_BYTES_MAX)..]);
        Cache {
            address,
            prefix,
            timeout,
            clock: Clock::starting_in(0),
            away_until_ns: AtomicI64::new(i64::MIN),
            owed: AtomicU64::new(0),
            paid: AtomicU64::new(0),
            too_large_bytes: AtomicUsize::new(usize::MAX),
            counts: Counts::default(),
        }
    }

    /// The counts by their names in a run's report.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let counts = &self.counts;
        let named = [
            ("cache_hits", &counts.hits),
            ("cache_misses", &counts.misses),
            ("cache_fills", &counts.fills),
            ("cache_fills_refused", &counts.fills_refused),
            ("cache_too_large", &counts.too_large),
            ("cache_invalidations", &counts.invalidations),
            ("cache_passed_by", &counts.passed_by),
            ("cache_emptied", &counts.emptied),
        ];
        named.map(|(name, count)| (name.to_string(), count.load(Ordering::Relaxed))).into()
    }

    /// How long the cache may take for anything that is not part of an operation.
    pub fn patience(&self) -> Duration {
        patience(self.timeout)
    }

    /// Whether the cache may hold values that a write has made stale.
    pub fn is_suspect(&self) -> bool {
        self.paid.load(Ordering::SeqCst) < self.owed.load(Ordering::SeqCst)
    }

    /// Removes everything from the cache. An error if the cache does not answer within `most`.
    pub async fn empty(&self, most: Duration) -> io::Result<()> {
        let owed = self.owed.load(Ordering::SeqCst);
        match self.ask("flush_all", most).await?.as_slice() {
            [answer] if answer == "OK" => {
                self.paid.fetch_max(owed, Ordering::SeqCst);
                add(&self.counts.emptied, 1);
                Ok(())
            }
            other => Err(io::Error::other(format!("unexpected answer to flush_all: {other:?}"))),
        }
    }

    /// The state of the database that the cache matches, as [`Cache::fits`] has recorded it; none
    /// while an experiment runs.
    pub async fn state(&self) -> io::Result<Option<String>> {
        match self.ask(&format!("mg {}:state v", self.prefix), self.patience()).await?.as_slice() {
            [answer] if answer == "EN" => Ok(None),
            [_, value] => Ok(Some(value.clone())),
            other => Err(io::Error::other(format!("unexpected answer to mg: {other:?}"))),
        }
    }

    /// Records that the cache matches this state of the database.
    pub async fn fits(&self, state: &str) -> io::Result<()> {
        let command = format!("ms {}:state {}\r\n{state}", self.prefix, state.len());
        match self.ask(&command, self.patience()).await?.as_slice() {
            [answer] if answer == "HD" => Ok(()),
            other => Err(io::Error::other(format!("unexpected answer to ms: {other:?}"))),
        }
    }

    /// Records that the cache matches no known state.
    pub async fn fits_nothing(&self) -> io::Result<()> {
        match self.ask(&format!("md {}:state", self.prefix), self.patience()).await?.as_slice() {
            [answer] if answer == "HD" || answer == "NF" => Ok(()),
            other => Err(io::Error::other(format!("unexpected answer to md: {other:?}"))),
        }
    }

    /// The settings in effect: version, memory, the largest item.
    pub async fn settings(&self) -> io::Result<BTreeMap<String, String>> {
        let mut settings = BTreeMap::new();
        for (command, wanted) in [
            ("stats", &["version"][..]),
            ("stats settings", &["maxbytes", "item_size_max", "evictions", "cas_enabled"]),
        ] {
            for line in self.ask(command, self.patience()).await? {
                if let ["STAT", name, value] = line.splitn(3, ' ').collect::<Vec<_>>()[..]
                    && wanted.contains(&name)
                {
                    settings.insert(format!("memcached_{name}"), value.to_string());
                }
            }
        }
        Ok(settings)
    }

    /// Sends a command that is not part of an operation.
    async fn ask(&self, command: &str, most: Duration) -> io::Result<Vec<String>> {
        text::ask(&self.address, command, most).await
    }

    fn key(&self, item: &Item) -> String {
        format!("{}:{item}", self.prefix)
    }

    fn is_away(&self) -> bool {
        self.clock.now_ns() < self.away_until_ns.load(Ordering::Relaxed)
    }

    fn leave_alone(&self) {
        self.away_until_ns.store(self.clock.now_ns() + PAUSE_NS, Ordering::Relaxed);
    }

    async fn in_time<X>(&self, work: impl Future<Output = Result<X, Error>>) -> Result<X, Error> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done,
            Err(_) => Err(Error::Io(io::ErrorKind::TimedOut.into())),
        }
    }
}

/// The result of looking an item up.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// The value.
    Hit(Vec<u8>),
    /// No value, and whether the reader may fill it.
    Miss(Fill),
}

/// Whether a reader may put the value from the database into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// It may.
    Free,
    /// It may unless the item has been invalidated in the meantime: a lease with its token.
    Leased(u64),
    /// It may not: another reader has the lease, or the cache is away.
    No,
}

/// Whether a command may be sent on a new connection if the old one is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It may.
    Anew,
    /// It may not: a lease belongs to its connection, since a restarted server gives the same
    /// tokens to other readers.
    AsItIs,
}

/// A thread's connection to the cache.
pub struct CacheConnection {
    cache: Arc<Cache>,
    /// None if it broke. Its leases and outstanding answers are lost with it.
    connection: Option<AsyncMetaConnection>,
}

impl CacheConnection {
    /// Connects.
    pub async fn open(cache: Arc<Cache>) -> Result<CacheConnection, Error> {
        let connecting = AsyncMetaConnection::connect(cache.address.as_str());
        let connection = match tokio::time::timeout(cache.patience(), connecting).await {
            Ok(connected) => Some(connected?),
            Err(_) => return Err(Error::Io(io::ErrorKind::TimedOut.into())),
        };
        Ok(CacheConnection { cache, connection })
    }

    /// Looks an item up; with `lease`, a miss asks for the right to fill it.
    pub async fn look(&mut self, item: &Item, lease: bool) -> Look {
        let options = {
            let mut options = GetOptions::default();
            options.return_cas = lease;
            options.vivify_ttl = lease.then_some(LEASE_S);
            options
        };
        let looked = match build_get(self.cache.key(item), &options) {
            Ok(command) => self.one(&command, Reach::Anew).await.and_then(parse_meta_result),
            Err(error) => Err(error),
        };
        let counts = &self.cache.counts;
        match looked {
            // An empty value is a lease that another reader has.
            Ok(found) if found.value.as_ref().is_some_and(|value| !value.is_empty()) => {
                add(&counts.hits, 1);
                Look::Hit(found.value.unwrap_or_default())
            }
            Ok(found) => {
                add(&counts.misses, 1);
                Look::Miss(match (lease, found.won, found.cas) {
                    (false, ..) => Fill::Free,
                    (true, true, Some(token)) => Fill::Leased(token),
                    (true, ..) => Fill::No,
                })
            }
            Err(_) => {
                add(&counts.passed_by, 1);
                Look::Miss(Fill::No)
            }
        }
    }

    /// Puts a value into the cache, for `ttl_s` seconds unless that is 0.
    pub async fn fill(&mut self, item: &Item, value: Vec<u8>, fill: Fill, ttl_s: u32) {
        let cache = self.cache.clone();
        // The lease is lost with its connection.
        if fill == Fill::No || self.connection.is_none() {
            return;
        }
        let bytes = value.len();
        if bytes >= cache.too_large_bytes.load(Ordering::Relaxed) {
            return add(&cache.counts.too_large, 1);
        }
        let mut options = SetOptions::default();
        options.ttl = (ttl_s > 0).then_some(ttl_s);
        options.compare_cas = match fill {
            Fill::Leased(token) => Some(token),
            Fill::Free | Fill::No => None,
        };
        let stored = match build_set(cache.key(item), value, &options) {
            Ok(command) => self.one(&command, Reach::AsItIs).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(answer) if answer.rc() == ReturnCode::Hd => add(&cache.counts.fills, 1),
            Ok(_) => add(&cache.counts.fills_refused, 1),
            Err(Error::Server(message)) if message.contains("too large") => {
                cache.too_large_bytes.fetch_min(bytes, Ordering::Relaxed);
                add(&cache.counts.too_large, 1);
            }
            Err(_) => add(&cache.counts.fills_refused, 1),
        }
    }

    /// Removes items, and with them the leases on them. If that fails, the cache is bypassed
    /// until it has been emptied.
    pub async fn invalidate(&mut self, items: &[Item]) {
        let options = DeleteOptions::default();
        let commands: Result<Vec<MetaCommand>, Error> =
            items.iter().map(|item| build_delete(self.cache.key(item), &options)).collect();
        let done = match commands {
            Ok(commands) => self.several(&commands, Reach::Anew).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(_) => add(&self.cache.counts.invalidations, items.len() as u64),
            Err(_) => {
                self.cache.owed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    async fn one(&mut self, command: &MetaCommand, reach: Reach) -> Result<MetaResponse, Error> {
        let mut answers = self.several(std::slice::from_ref(command), reach).await?;
        answers.pop().ok_or_else(|| Error::Protocol("memcached gave no answer".into()))
    }

    /// Sends commands together and waits for their answers. If a connection from before breaks, the
    /// commands are retried once on a new one: an idle connection may have been closed long ago.
    async fn several(&mut self, commands: &[MetaCommand], reach: Reach) -> Result<Vec<MetaResponse>, Error> {
        let cache = self.cache.clone();
        if cache.is_suspect() && !cache.is_away() && cache.empty(cache.timeout).await.is_err() {
            cache.leave_alone();
        }
        if cache.is_suspect() || (cache.is_away() && self.connection.is_none()) {
            return Err(Error::Io(io::ErrorKind::NotConnected.into()));
        }
        if let Some(connection) = self.connection.take() {
            match self.on(connection, commands).await {
                // A timeout does not mean that the connection is closed.
                Err(Error::Io(error)) if error.kind() != io::ErrorKind::TimedOut && reach == Reach::Anew => {}
                done => return done,
            }
        }
        let connecting = AsyncMetaConnection::connect(cache.address.as_str());
        match cache.in_time(connecting).await {
            Ok(connection) => self.on(connection, commands).await,
            Err(error) => {
                cache.leave_alone();
                Err(error)
            }
        }
    }

    /// Sends commands on a connection, and keeps it unless it broke.
    async fn on(
        &mut self,
        mut connection: AsyncMetaConnection,
        commands: &[MetaCommand],
    ) -> Result<Vec<MetaResponse>, Error> {
        let done = self.cache.in_time(connection.execute_batch(commands)).await;
        match &done {
            // The server has answered, and read everything that was sent. (An error for one of
            // several commands would leave answers unread.)
            Ok(_) => self.connection = Some(connection),
            Err(Error::Server(_) | Error::Rejected(_)) if commands.len() == 1 => self.connection = Some(connection),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::TimedOut => self.cache.leave_alone(),
            Err(_) => {}
        }
        done
    }
}
