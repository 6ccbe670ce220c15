//! `casql+SCHEME://…?memcached=HOST:PORT` a relational store with memcached in front (bg-2013's
//! CASQL). A read is answered from the cache if the cache has the answer. Otherwise the database
//! answers it, and the answer goes into the cache.
//!
//! The parameters:
//!
//! - `memcached`: `HOST:PORT`; a load empties this server.
//! - `consistency`: `invalidate` (default): a write removes what it makes stale. `lease`: the same, and
//!   a reader may not fill an item that was removed after the reader missed it. `ttl`: nothing is
//!   removed.
//! - `ttl_s`: how long a value stays, in seconds; default with `ttl` 60, else for ever.
//! - `compress`: `off` (default), `on`: values are compressed (zstd).
//! - `cache_timeout_ms`: how long the cache may take to answer before it is bypassed (500).
//! - `fill_delay_us`: a pause between reading from the database and filling the cache (0), to provoke
//!   the race that leases close.
//!
//! All other parameters are those of the database.

mod cache;
mod codec;
mod connection;
mod keys;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use schemas::digest::StateDigest;
use schemas::social::Social;

use super::relational::Relational;
use super::relational::engine::Engine;
use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, promise};
use crate::source::Source;
use cache::{Cache, CacheConnection};
use codec::{Codec, Coder};
pub use connection::CasqlConnection;
use connection::Protocol;

/// The parameters of the cache.
const OWN: [&str; 6] = ["memcached", "consistency", "ttl_s", "compress", "cache_timeout_ms", "fill_delay_us"];

/// memcached interprets a longer time as a date.
const TTL_S_MAX: u32 = 30 * 24 * 3600;

/// How the cache avoids stale values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// A write removes what it makes stale (bg-2013, section C). A reader that missed before the
    /// write and fills after it can put the old value back.
    Invalidate,
    /// No write removes anything: values are stale until they expire.
    Ttl,
    /// As `Invalidate`, but a fill needs the lease that its miss was given. An invalidation takes
    /// that lease away.
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
            return Err(StoreError::usage(&url, "needs the address of memcached; add memcached=HOST:PORT"));
        };
        if url.text("locking").is_some() {
            let message =
                "locking concerns transactions of key-value workloads, which this store does not serve; remove it";
            return Err(StoreError::usage(&url, message));
        }
        if url.text("replica").is_some() {
            let message =
                "replica does not go with a cache: a fill from the replica would keep what is stale; remove it";
            return Err(StoreError::usage(&url, message));
        }
        let consistency = url.choice("consistency", &Consistency::ALL)?;
        let ttl_s = url.number("ttl_s", if consistency == Consistency::Ttl { 60 } else { 0 })?;
        if ttl_s > TTL_S_MAX || (consistency == Consistency::Ttl && ttl_s == 0) {
            return Err(StoreError::usage(&url, format!("parameter ttl_s: {ttl_s} is not between 1 and {TTL_S_MAX}")));
        }
        let timeout = Duration::from_millis(url.count("cache_timeout_ms")?.map_or(500, u64::from));
        // The part after the credentials, so that no key contains a password.
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

    /// Names a state of the database, for the cache's marker: the design, the workload, where the
    /// trace stands, and how stale values may be.
    fn state_of(&self, held: &HeldState) -> String {
        let Protocol { consistency, codec, .. } = self.protocol;
        let HeldState { design, workload_id, positions, .. } = held;
        let text = format!("{design:?} {workload_id} {positions:?} {} {codec:?}", consistency.name());
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Empties the cache, which then matches any state, and records this one.
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
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn file(&self) -> Option<&Path> {
        self.database.file()
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        self.database.held().await
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        let mut state = state.clone();
        // An experiment that continues from here would read stale values without noticing.
        if self.cache.is_suspect() && self.cache.empty(self.cache.patience()).await.is_err() {
            state.diverged = state.diverged.or(Some("the cache may be stale: invalidations failed".to_string()));
        }
        self.database.set_held(&state).await?;
        // If this fails, the marker is found missing before the next experiment.
        let _ = match state.diverged {
            None => self.cache.fits(&self.state_of(&state)).await,
            Some(_) => self.cache.fits_nothing().await,
        };
        Ok(())
    }

    async fn prepare_cache(&self, held: &HeldState) -> Result<(), StoreError> {
        let fits = self.cache.state().await.map_err(|error| self.cache_failed(error))?;
        match fits.is_some_and(|state| state == self.state_of(held)) {
            true => Ok(()),
            false => self.empty_for(held).await,
        }
    }

    fn is_suspect(&self) -> bool {
        self.cache.is_suspect()
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
            Consistency::Invalidate => format!("{of_database}: except fills that race with an invalidation"),
            Consistency::Ttl => format!("{}: values up to {ttl_s} s old", promise::NONE),
        };
        settings.insert("isolation".into(), isolation);
        Ok(settings)
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        self.cache.counters()
    }

    fn connections_max(&self) -> Option<u32> {
        self.database.connections_max()
    }
}

impl<E: Engine> Serves<Social> for Casql<E> {
    type Connection = CasqlConnection<E>;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        // If the cache is away, the load does not begin.
        self.cache.settings().await.map_err(|error| self.cache_failed(error))?;
        Serves::<Social>::load(&self.database, source, progress).await?;
        match self.database.held().await? {
            Some(held) => self.empty_for(&held).await,
            None => Ok(()),
        }
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        Serves::<Social>::check_design(&self.database, held)
    }

    fn design_settings(&self, source: &Source) -> BTreeMap<String, String> {
        Serves::<Social>::design_settings(&self.database, source)
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        Serves::<Social>::check_loaded(&self.database, source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        Serves::<Social>::digest(&self.database, source).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<CasqlConnection<E>>, StoreError> {
        // From here on the cache changes, and the state of the database with it.
        self.cache.fits_nothing().await.map_err(|error| self.cache_failed(error))?;
        let coder = Coder::new(self.protocol.codec).map_err(|error| StoreError::store(&self.url, error))?;
        let coder = Rc::new(RefCell::new(coder));
        let mut connections = Vec::with_capacity(threads.len());
        for database in Serves::<Social>::connect(&self.database, source, threads).await? {
            let cache = CacheConnection::open(self.cache.clone()).await.map_err(|error| self.cache_failed(error))?;
            connections.push(CasqlConnection::new(database, cache, coder.clone(), self.protocol));
        }
        Ok(connections)
    }
}
