//! `memcached://HOST:PORT` memcached by itself, 1.6 or later, one connection a thread, in the meta
//! protocol. It has no scans, and it may evict records.
//!
//! A record is an item, as YCSB's binding stores it: its key is `usertable-` and the record's key, its
//! value the JSON object of the fields. An insert adds the item; an update of all fields replaces it.
//! An update of some fields reads the item and replaces it if it has not changed since, as often as
//! another write comes between. So every operation is atomic.
//!
//! The parameters:
//!
//! - `ttl`: for how many seconds a record stays after its last write; default: for ever.
//! - `timeout_ms`: how long an operation may take before it times out (10,000).
//! - `connections`: the most connections of all threads together; default: one a thread.

mod adopted;
mod connection;
mod load;
mod record;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use memcache::exp::{AsyncMetaConnection, Error};
use schemas::digest::StateDigest;
use schemas::spec::Spec;
use schemas::vocabulary::kv::Kv;

use super::adoption::adopt;
use super::counted::Counted;
use super::fields::{Fields, asks_for_scans, check_one_state};
use super::link::{Limits, PARAMETERS, expiry_note, in_time};
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, block_on, patience, promise};
use crate::source::Source;
pub use connection::MemcachedConnection;
use connection::Shared;

/// The version of the items. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// memcached interprets a longer time as a date.
const TTL_MAX: u32 = 30 * 24 * 3600;

const DEFAULT_PORT: u16 = 11211;

/// The scheme of its URLs.
pub const SCHEME: &str = "memcached";

/// The store in a memcached server.
pub struct Memcached {
    url: StoreUrl,
    address: String,
    /// For how many seconds a record stays.
    ttl: Option<u32>,
    timeout: Duration,
    connections_max: Option<u32>,
    counted: Counted,
}

impl Memcached {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Memcached, StoreError> {
        url.allow(&PARAMETERS)?;
        let host = url.place().strip_prefix("//").map(|place| place.strip_suffix('/').unwrap_or(place));
        let host = host.filter(|host| !host.is_empty() && !host.contains(['/', '@']));
        let Some(host) = host else {
            let message = "names no server; write memcached://HOST:PORT, without user and database";
            return Err(StoreError::usage(&url, message));
        };
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let Limits { ttl, timeout, connections_max } = Limits::of(&url)?;
        if ttl.is_some_and(|seconds| seconds > TTL_MAX) {
            return Err(StoreError::usage(&url, format!("parameter ttl: more than {TTL_MAX} (30 days)")));
        }
        Ok(Memcached {
            address: if has_port { host.to_string() } else { format!("{host}:{DEFAULT_PORT}") },
            ttl,
            timeout,
            connections_max,
            counted: Counted::default(),
            url,
        })
    }

    fn design(&self) -> [(&'static str, String); 1] {
        [("ttl", self.ttl.map_or("none".to_string(), |seconds| seconds.to_string()))]
    }

    /// The marker of a freshly loaded store.
    fn loaded(&self, source: &Source) -> HeldState {
        let design = self.design().map(|(name, value)| (name.to_string(), value));
        HeldState::loaded(LAYOUT, design.into(), source)
    }

    fn patience(&self) -> Duration {
        patience(self.timeout)
    }

    /// A connection.
    async fn keeper(&self) -> Result<AsyncMetaConnection, StoreError> {
        self.in_time(AsyncMetaConnection::connect(self.address.as_str())).await
    }

    /// Waits for work that is not an operation, within a time limit.
    async fn in_time<X>(&self, work: impl Future<Output = Result<X, Error>>) -> Result<X, StoreError> {
        in_time(&self.url, self.timeout, work, |error| self.failed(error)).await
    }

    fn failed(&self, error: &Error) -> StoreError {
        match error {
            Error::Io(error) => self.unreachable(error),
            Error::Server(message) if message.contains("too large") => {
                let message = format!("{message}; start memcached with larger items (-I), or use smaller records");
                StoreError::store(&self.url, message)
            }
            Error::Server(message) if message.contains("out of memory") => {
                let message = format!("{message}; start memcached with more memory (-m), or use fewer records");
                StoreError::usage(&self.url, message)
            }
            error => StoreError::store(&self.url, error),
        }
    }

    fn unreachable(&self, error: &std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::ConnectionRefused => StoreError::store(
                &self.url,
                "cannot connect: connection refused; is the server running, and is the address right?",
            ),
            _ => StoreError::store(&self.url, error),
        }
    }

    /// The server's own words, by name, of those that are wanted.
    async fn stats(&self, command: &str, wanted: &[&str]) -> Result<BTreeMap<String, String>, StoreError> {
        let lines = text::ask(&self.address, command, self.patience()).await;
        let lines = lines.map_err(|error| self.unreachable(&error))?;
        let named = lines.iter().filter_map(|line| match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
            ["STAT", name, value] if wanted.contains(&name) => Some((name.to_string(), value.to_string())),
            _ => None,
        });
        Ok(named.collect())
    }

    /// Refuses a server that cannot perform updates.
    async fn check_fitness(&self) -> Result<(), StoreError> {
        let settings = self.stats("stats settings", &["cas_enabled"]).await?;
        match settings.get("cas_enabled").is_some_and(|word| word == "no") {
            false => Ok(()),
            true => Err(StoreError::usage(&self.url, "runs without CAS, which updates require; start it without -C")),
        }
    }
}

impl Store for Memcached {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        load::held(self, &mut self.keeper().await?).await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        load::write_state(self, &mut self.keeper().await?, state).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let version = self.stats("stats", &["version"]).await?;
        let wanted = ["maxbytes", "item_size_max", "evictions", "cas_enabled", "num_threads"];
        let mut settings = self.stats("stats settings", &wanted).await?;
        let evicts = settings.get("evictions").is_some_and(|word| word == "on");
        settings.extend(self.design().map(|(name, value)| (name.to_string(), value)));
        settings.extend(expiry_note(self.ttl));
        let mut say = |name: &str, value: String| settings.insert(name.to_string(), value);
        say("version", format!("memcached {}", version.get("version").map_or("of unknown version", String::as_str)));
        say("durability", promise::NONE.to_string());
        say(
            "isolation",
            match evicts {
                true => format!("{}: until a record is evicted", promise::LINEARIZABLE),
                false => promise::LINEARIZABLE.to_string(),
            },
        );
        Ok(settings)
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        // A server that does not answer has counted nothing that is known.
        let counts = block_on(&self.url, self.stats("stats", &["evictions", "reclaimed"])).unwrap_or_default();
        let counts =
            counts.into_iter().filter_map(|(name, count)| Some((format!("memcached_{name}"), count.parse().ok()?)));
        self.counted.with(counts.collect())
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }
}

impl Serves<Kv> for Memcached {
    type Connection = MemcachedConnection;

    fn accepts(&self, spec: &Spec, file: &Path) -> Result<(), StoreError> {
        if !asks_for_scans(spec) {
            return Ok(());
        }
        Err(StoreError::usage(
            &self.url,
            format!(
                "has no scans, which mix.scan of {} asks for; set mix.scan to 0, or use a store that has scans, such as \
                 redis://HOST or mongodb://HOST/DATABASE",
                file.display()
            ),
        ))
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        self.check_fitness().await?;
        load::load(self, source, progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        let design = self.design();
        held.check(&self.url, LAYOUT, &design.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        self.check_fitness().await?;
        adopt(self, source).await
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        load::check_all(self, source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        check_one_state(&self.url, source)?;
        load::digest(self, source).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<MemcachedConnection>, StoreError> {
        let shared = Arc::new(Shared {
            address: self.address.clone(),
            fields: Fields::of(source),
            ttl: self.ttl,
            timeout: self.timeout,
        });
        let mut connections = Vec::with_capacity(threads.len());
        for _ in threads {
            connections.push(MemcachedConnection::new(shared.clone(), self.keeper().await?));
        }
        Ok(connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Blame;

    fn open(url: &str) -> Result<Memcached, StoreError> {
        Memcached::open(StoreUrl::parse(url)?)
    }

    #[test]
    fn wrong_urls_are_refused_by_name() {
        let check = |url: &str, expect: &str| {
            let error = open(url).err().expect(url);
            assert_eq!(error.blame, Blame::Usage, "{error}");
            let text = error.to_string();
            assert!(text.contains(expect) && !text.contains("hush"), "{text}");
        };
        check("memcached:h:1", "names no server; write memcached://HOST:PORT");
        check("memcached://", "names no server");
        check("memcached://h:1/0", "without user and database");
        check("memcached://u:hush@h:1", "without user and database");
        check("memcached://h?ttl=0", "ttl: 0 is too few");
        check("memcached://h?ttl=2592001", "more than 2592000");
        check("memcached://h?size=1", "unknown parameter size; memcached: supports ttl, timeout_ms, connections");
        let address = |url: &str| open(url).unwrap().address;
        assert_eq!(["memcached://h", "memcached://h:7/"].map(address), ["h:11211", "h:7"]);
        assert_eq!(address("memcached://[::1]"), "[::1]:11211");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_said_so() {
        let error = open("memcached://127.0.0.1:1").unwrap().held().await.unwrap_err();
        assert_eq!(error.blame, Blame::Store);
        assert!(error.to_string().contains("cannot connect: connection refused; is the server running"), "{error}");
    }
}
