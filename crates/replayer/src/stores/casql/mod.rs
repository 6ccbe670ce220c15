//! `casql+SCHEME://…?memcached=HOST:PORT` a relational store with memcached in
//! front (bg-2013's CASQL): reads are answered from the cache where it has their
//! answer, and from the database otherwise, which then goes into the cache.
//!
//! | parameter | values |
//! |---|---|
//! | `memcached` | `HOST:PORT`; a load empties this server |
//! | `consistency` | `invalidate` (default): a write removes what it makes stale; `lease`: likewise, and nobody may fill an item that was removed after it was missed; `ttl`: nobody removes anything |
//! | `ttl_s` | how long a value stays, in seconds; `ttl`: 60, else for ever |
//! | `compress` | `off` (default), `on`: values are compressed (zstd) |
//! | `cache_timeout_ms` | how long the cache may take to answer before it is passed by (500) |
//! | `fill_delay_us` | a pause between reading from the database and filling the cache (0), to provoke the race that leases close |
//!
//! All other parameters are those of the database.

mod cache;
mod codec;
mod connection;
mod keys;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use schemas::digest::StateDigest;

use super::relational::Relational;
use super::relational::engine::Engine;
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Store, StoreError, promise};
use crate::source::Source;
use cache::{Cache, CacheConnection};
use codec::{Codec, Coder};
pub use connection::CasqlConnection;
use connection::Protocol;

/// The parameters that are not the database's.
const OWN: [&str; 6] = ["memcached", "consistency", "ttl_s", "compress", "cache_timeout_ms", "fill_delay_us"];

/// memcached takes a longer time for a date.
const TTL_S_MAX: u32 = 30 * 24 * 3600;

/// How the cache is kept from telling what is no longer true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// A write removes what it makes stale (bg-2013, section C). A reader that
    /// missed before and fills afterwards can put the old value back.
    Invalidate,
    /// Nobody removes anything: values are stale until their time is over.
    Ttl,
    /// As `Invalidate`, but a fill needs the lease that its miss was given, and
    /// which an invalidation takes away.
    Lease,
}

impl Consistency {
    const ALL: [(&str, Consistency); 3] =
        [("invalidate", Consistency::Invalidate), ("ttl", Consistency::Ttl), ("lease", Consistency::Lease)];

    fn name(self) -> &'static str {
        Consistency::ALL.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

/// A relational store with memcached in front.
pub struct Casql<E> {
    url: StoreUrl,
    database: Relational<E>,
    cache: Arc<Cache>,
    protocol: Protocol,
}

impl<E: Engine> Casql<E> {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Casql<E>, StoreError> {
        let Some(address) = url.text("memcached").filter(|address| address.contains(':')) else {
            return Err(StoreError::usage(&url, "names no cache; add memcached=HOST:PORT"));
        };
        let consistency = url.choice("consistency", &Consistency::ALL)?;
        let ttl_s = url.number("ttl_s", if consistency == Consistency::Ttl { 60 } else { 0 })?;
        if ttl_s > TTL_S_MAX || (consistency == Consistency::Ttl && ttl_s == 0) {
            return Err(StoreError::usage(&url, format!("parameter ttl_s: {ttl_s} is not between 1 and {TTL_S_MAX}")));
        }
        let timeout = Duration::from_millis(url.count("cache_timeout_ms")?.map_or(500, u64::from));
        // What follows the credentials: no key holds a password.
        let database = url.place().rsplit_once('@').map_or(url.place(), |(_, database)| database);
        let cache = Arc::new(Cache::new(address.to_string(), database, timeout));
        let inner = url.without(&OWN);
        let inner = inner.strip_prefix("casql+").unwrap_or(&inner);
        Ok(Casql {
            cache,
            database: Relational::open(StoreUrl::parse(inner)?)?,
            protocol: Protocol {
                consistency,
                ttl_s,
                codec: url.choice("compress", &[("off", Codec::Plain), ("on", Codec::Zstd)])?,
                fill_delay: Duration::from_micros(url.number("fill_delay_us", 0)?),
            },
            url,
        })
    }

    /// What the cache is told of a state of the database: where its trace stands, and how
    /// stale values may be there.
    fn state_of(&self, held: &HeldState) -> String {
        let Protocol { consistency, codec, .. } = self.protocol;
        let HeldState { design, workload_id, positions, .. } = held;
        let text = format!("{design:?} {workload_id} {positions:?} {} {codec:?}", consistency.name());
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Empties the cache, which fits any state then.
    async fn empty_for(&self, held: &HeldState) -> Result<(), StoreError> {
        let emptied = async {
            self.cache.empty(self.cache.patience()).await?;
            self.cache.fits(&self.state_of(held)).await
        };
        emptied.await.map_err(|error| self.cache_failed(error))
    }

    fn cache_failed(&self, error: impl ToString) -> StoreError {
        let address = self.url.text("memcached").unwrap_or_default();
        StoreError::store(&self.url, format!("memcached at {address}: {}; is it running?", error.to_string()))
    }
}

impl<E: Engine> Store for Casql<E> {
    type Connection = CasqlConnection<E>;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        // A cache that is away is no reason to begin.
        self.cache.settings().await.map_err(|error| self.cache_failed(error))?;
        self.database.load(source, progress).await?;
        match self.database.held().await? {
            Some(held) => self.empty_for(&held).await,
            None => Ok(()),
        }
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        self.database.held().await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let mut state = state.clone();
        // Whoever goes on from here would find stale values, and know nothing of them.
        if self.cache.is_suspect() && self.cache.empty(self.cache.patience()).await.is_err() {
            state.diverged = state.diverged.or(Some("the cache could not be told of writes".to_string()));
        }
        self.database.set_held(&state).await?;
        // Whatever is not said is found missing before the next experiment.
        let _ = match state.diverged {
            None => self.cache.fits(&self.state_of(&state)).await,
            Some(_) => self.cache.fits_nothing().await,
        };
        Ok(())
    }

    async fn attune(&self, held: &HeldState) -> Result<(), StoreError> {
        let fits = self.cache.state().await.map_err(|error| self.cache_failed(error))?;
        match fits.is_some_and(|state| state == self.state_of(held)) {
            true => Ok(()),
            false => self.empty_for(held).await,
        }
    }

    fn is_suspect(&self) -> bool {
        self.cache.is_suspect()
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        self.database.check_loaded(source).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut settings = self.database.settings().await?;
        settings.extend(self.cache.settings().await.map_err(|error| self.cache_failed(error))?);
        let Protocol { consistency, ttl_s, codec, .. } = self.protocol;
        settings.insert("consistency".into(), consistency.name().into());
        settings.insert("ttl_s".into(), ttl_s.to_string());
        settings.insert("compress".into(), if codec == Codec::Zstd { "on" } else { "off" }.into());
        let of_database = settings.get("isolation").cloned().unwrap_or_default();
        let isolation = match consistency {
            Consistency::Lease => of_database,
            Consistency::Invalidate => format!("{of_database}: but for fills that overtake an invalidation"),
            Consistency::Ttl => format!("{}: values up to {ttl_s} s old", promise::NONE),
        };
        settings.insert("isolation".into(), isolation);
        Ok(settings)
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        self.database.digest(source).await
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        self.cache.counters()
    }

    fn connections_max(&self) -> Option<u32> {
        self.database.connections_max()
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<CasqlConnection<E>>, StoreError> {
        // From here on it changes, and the state of the database with it.
        self.cache.fits_nothing().await.map_err(|error| self.cache_failed(error))?;
        let coder = Coder::new(self.protocol.codec).map_err(|error| StoreError::store(&self.url, error))?;
        let coder = Rc::new(RefCell::new(coder));
        let mut connections = Vec::with_capacity(threads.len());
        for database in self.database.connect(source, threads).await? {
            let cache = CacheConnection::open(self.cache.clone()).await.map_err(|error| self.cache_failed(error))?;
            connections.push(CasqlConnection::new(database, cache, coder.clone(), self.protocol));
        }
        Ok(connections)
    }
}
