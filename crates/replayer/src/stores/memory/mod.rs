//! `memory:` the reference store, in this process and linearizable. It can inject faults in a
//! known, seeded way, to test the analyzer.
//!
//! | parameter | what the store does |
//! |---|---|
//! | `stale=P` | a read returns, with this probability, the item as it was before its last write |
//! | `lost=P` | a write is acknowledged and lost |
//! | `error=P` | an operation fails and does nothing |
//! | `unknown=P` | a write reports an unknown fate; every second one of these writes happens |
//! | `latency_us=N` | each operation takes this long, half before and half after it takes effect |
//! | `servers=N` | at most N operations run at a time, others queue: the highest throughput is N per `latency_us` |
//! | `stall_ms=N` | the store stands still this long, once, a second after the first operation |
//! | `seed=N` | the seed of these draws |
//!
//! The store counts the reads whose answer was wrong at that instant, in its counter `lies_told`.
//! So a test knows how many violations the analyzer has to find.

mod connection;
mod kv;
mod social;
mod timing;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use schemas::digest::StateDigest;
use schemas::vocabulary::Vocabulary;

use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, promise};
use crate::source::Source;
use connection::{MemoryConnection, State};
use timing::Timing;

/// The faults that the store injects.
#[derive(Debug, Clone, Copy)]
struct Lies {
    stale: f64,
    lost: f64,
    error: f64,
    unknown: f64,
    seed: u64,
}

/// What the store holds of one family.
struct Room<S> {
    shown: S,
    /// What a correct store would hold; kept only when writes get lost.
    truth: Option<S>,
}

/// What the store holds: the data set of one family, and the marker.
#[derive(Default)]
struct Inner {
    social: Option<Room<social::Lists>>,
    kv: Option<Room<kv::Records>>,
    held: Option<HeldState>,
}

/// The store.
pub struct Memory {
    url: StoreUrl,
    lies: Lies,
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
    lies_told: AtomicU64,
    timing: Timing,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in another thread ends the experiment, so a state that it has half changed does
        // not matter.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Memory {
    /// Reads from the URL which faults to inject.
    pub fn open(url: StoreUrl) -> Result<Memory, StoreError> {
        url.allow(&["stale", "lost", "error", "unknown", "latency_us", "servers", "stall_ms", "seed"])?;
        let lies = Lies {
            stale: url.probability("stale")?,
            lost: url.probability("lost")?,
            error: url.probability("error")?,
            unknown: url.probability("unknown")?,
            seed: url.number("seed", 1)?,
        };
        let timing = Timing::of(&url)?;
        let shared = Shared { inner: Mutex::default(), lies_told: AtomicU64::new(0), timing };
        Ok(Memory { url, lies, shared: Arc::new(shared) })
    }
}

impl Store for Memory {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(self.shared.lock().held.clone())
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        self.shared.lock().held = Some(state.clone());
        Ok(())
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        Ok(BTreeMap::from([
            ("durability".into(), format!("{}: memory of the replayer's process", promise::NONE)),
            ("isolation".into(), format!("{}: except injected faults", promise::LINEARIZABLE)),
        ]))
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("lies_told".into(), self.shared.lies_told.load(Ordering::Relaxed))])
    }
}

/// A vocabulary whose operations the store performs on a state of its own.
trait Kept: Vocabulary {
    type State: State<Self>;
}

impl<V: Kept> Serves<V> for Memory {
    type Connection = MemoryConnection;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let shown = V::State::loaded(source, &self.url)?;
        let truth = (self.lies.lost > 0.0).then(|| shown.clone());
        let held = HeldState::loaded(0, BTreeMap::new(), source);
        let mut inner = Inner { held: Some(held), ..Inner::default() };
        *V::State::room(&mut inner) = Some(Room { shown, truth });
        *self.shared.lock() = inner;
        progress(source.rows_total(), source.rows_total());
        Ok(())
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let mut inner = self.shared.lock();
        let room = V::State::room(&mut inner);
        let (found, expected) = (room.as_ref().map_or(0, |room| room.shown.count()), V::State::expected(source));
        if found == expected {
            return Ok(());
        }
        let what = V::State::COUNTED;
        Err(StoreError::usage(&self.url, format!("holds {found} {what}, the trace set has {expected}")))
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mut inner = self.shared.lock();
        match V::State::room(&mut inner) {
            Some(room) => room.shown.digest(source, &self.url),
            None => Err(StoreError::state(&self.url, "is not loaded")),
        }
    }

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<MemoryConnection>, StoreError> {
        Ok(threads.map(|thread| MemoryConnection::new(self.shared.clone(), self.lies, thread)).collect())
    }
}
