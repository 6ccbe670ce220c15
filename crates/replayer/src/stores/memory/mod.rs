//! `memory:` the reference store, in this process and linearizable. It can inject faults in a
//! known, seeded way, to test the analyzer.
//!
//! | parameter | what the store does |
//! |---|---|
//! | `stale=P` | a read returns, with this probability, the item as it was before its last write |
//! | `lag_ms=N` | reads see the records as they were N ms before, as on a replica that applies writes late (`kv`) |
//! | `invert_ms=N` | a write lasts N ms longer after it took effect, and until then every second read, by chance, does not see it (`kv`) |
//! | `lost=P` | a write is acknowledged and lost |
//! | `error=P` | an operation fails and does nothing |
//! | `unknown=P` | a write reports an unknown fate; every second one of these writes happens |
//! | `latency_us=N` | each operation takes this long, half before and half after it takes effect |
//! | `servers=N` | at most N operations run at a time, others queue: the highest throughput is N per `latency_us` |
//! | `stall_ms=N` | the store stands still this long, once, a second after the first operation |
//! | `seed=N` | the seed of these draws |
//! | `isolation=LEVEL` | of transactions: `serializable` (default), `snapshot`, `read-committed`, `read-uncommitted`; `none`: there are no transactions |
//! | `write_locks=off` | at `read-uncommitted`: a transaction may overwrite what another one has written that has not ended |
//! | `promise=LEVEL` | the level that the store says it runs transactions at, whatever `isolation` is: a lie about itself |
//!
//! The store counts the reads whose answer was wrong at that instant, in its counter `lies_told`.
//! So a test knows how many violations the analyzer has to find.
//!
//! `seed` drives the draws of faults only. Which transactions meet is a matter of threads and their timing.
//!
//! Each level of isolation has the anomalies that it allows and no others (`transactions.rs`), so the weaker
//! ones are planted faults too. In transactions `error` and `unknown` apply to operations and commits; with
//! `stale`, `lost`, `lag_ms` or `invert_ms` there are no transactions.

mod connection;
mod kv;
mod social;
mod timing;
mod transactions;
mod versions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::vocabulary::Vocabulary;

use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Serves, Store, StoreError, promise};
use crate::source::Source;
use connection::{MemoryConnection, State, Transaction};
use timing::Timing;

/// The faults that the store injects.
#[derive(Debug, Clone, Copy)]
struct Lies {
    stale: f64,
    lost: f64,
    error: f64,
    unknown: f64,
    /// How far behind reads are.
    lag_ns: i64,
    /// How long a write may or may not be seen before it ends.
    invert_ns: i64,
    seed: u64,
}

impl Lies {
    /// How long what a write has changed stays readable.
    fn keep_ns(&self) -> i64 {
        self.lag_ns.max(self.invert_ns)
    }
}

/// What the store holds of one family.
pub struct Room<S> {
    shown: S,
    /// What a correct store would hold; kept only when writes get lost.
    truth: Option<S>,
}

/// What the store holds: the data set of one family, and the marker.
#[derive(Default)]
pub struct Inner {
    social: Option<Room<social::Lists>>,
    kv: Option<Room<kv::Records>>,
    held: Option<HeldState>,
}

/// The store.
pub struct Memory {
    url: StoreUrl,
    lies: Lies,
    /// What it says of its transactions; None if there are none.
    promised: Option<Isolation>,
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
    lies_told: AtomicU64,
    timing: Timing,
    /// The isolation of transactions; None if there are none.
    level: Option<Isolation>,
    /// Whether a transaction keeps others from overwriting what it has written, at read uncommitted.
    has_write_locks: bool,
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
        url.allow(&[
            "stale",
            "lag_ms",
            "invert_ms",
            "lost",
            "error",
            "unknown",
            "latency_us",
            "servers",
            "stall_ms",
            "seed",
            "isolation",
            "write_locks",
            "promise",
        ])?;
        let lies = Lies {
            stale: url.probability("stale")?,
            lost: url.probability("lost")?,
            error: url.probability("error")?,
            unknown: url.probability("unknown")?,
            lag_ns: i64::from(url.number::<u32>("lag_ms", 0)?) * 1_000_000,
            invert_ns: i64::from(url.number::<u32>("invert_ms", 0)?) * 1_000_000,
            seed: url.number("seed", 1)?,
        };
        let timing = Timing::of(&url)?;
        let level = level(&url, &lies)?;
        let has_write_locks = has_write_locks(&url, level)?;
        let promised = promised(&url, level)?;
        let shared = Shared { inner: Mutex::default(), lies_told: AtomicU64::new(0), timing, level, has_write_locks };
        Ok(Memory { url, lies, promised, shared: Arc::new(shared) })
    }

    /// What the store promises. An operation by itself is linearizable at every level.
    fn isolation(&self) -> String {
        match (self.url.text("isolation"), self.promised) {
            (Some(_), Some(level)) => format!("{}: of transactions; operations are linearizable", level.name()),
            _ => format!("{}: except injected faults", promise::LINEARIZABLE),
        }
    }
}

/// The levels of transactions, by their names in URLs.
const LEVELS: [(&str, Isolation); 4] = [
    ("serializable", Isolation::Serializable),
    ("snapshot", Isolation::Snapshot),
    ("read-committed", Isolation::ReadCommitted),
    ("read-uncommitted", Isolation::ReadUncommitted),
];

/// Whether transactions lock what they write. Only read uncommitted has locks.
fn has_write_locks(url: &StoreUrl, level: Option<Isolation>) -> Result<bool, StoreError> {
    let has_locks = url.choice("write_locks", &[("on", true), ("off", false)])?;
    if url.text("write_locks").is_some() && level != Some(Isolation::ReadUncommitted) {
        let message = "write_locks is a choice of read uncommitted; remove it, or add isolation=read-uncommitted";
        return Err(StoreError::usage(url, message));
    }
    Ok(has_locks)
}

/// The level that the store says it has: its own, unless a URL makes it lie.
fn promised(url: &StoreUrl, level: Option<Isolation>) -> Result<Option<Isolation>, StoreError> {
    if url.text("promise").is_none() {
        return Ok(level);
    }
    if level.is_none() {
        let message = "promise is about transactions, and there are none; remove it, or choose another isolation";
        return Err(StoreError::usage(url, message));
    }
    url.choice("promise", &LEVELS).map(Some)
}

/// The isolation that a URL asks for.
fn level(url: &StoreUrl, lies: &Lies) -> Result<Option<Isolation>, StoreError> {
    let [serializable, snapshot, committed, uncommitted] = LEVELS.map(|(name, level)| (name, Some(level)));
    let asked = url.choice("isolation", &[serializable, snapshot, committed, uncommitted, ("none", None)])?;
    let lies = lies.stale > 0.0 || lies.lost > 0.0 || lies.keep_ns() > 0;
    if lies && asked.is_some() && url.text("isolation").is_some() {
        let message =
            "stale, lost, lag_ms and invert_ms do not go with transactions; remove them, or use isolation=none";
        return Err(StoreError::usage(url, message));
    }
    Ok(asked.filter(|_| !lies))
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
            ("isolation".into(), self.isolation()),
        ]))
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("lies_told".into(), self.shared.lies_told.load(Ordering::Relaxed))])
    }
}

/// A vocabulary whose operations the store performs on a state of its own.
pub trait Kept: Vocabulary {
    /// That state.
    type State: State<Self>;
}

impl<V: Kept> Serves<V> for Memory {
    type Connection = MemoryConnection<V>;

    fn transactions(&self) -> Option<Isolation> {
        let exist = <V::State as State<V>>::Transaction::EXIST;
        self.promised.filter(|_| exist)
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        if self.lies.keep_ns() > 0 && !V::State::KEEPS_PAST {
            let message = "lag_ms and invert_ms are faults of key-value workloads; remove them, or use stale=P";
            return Err(StoreError::usage(&self.url, message));
        }
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

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<MemoryConnection<V>>, StoreError> {
        Ok(threads.map(|thread| MemoryConnection::new(self.shared.clone(), self.lies, thread)).collect())
    }
}
