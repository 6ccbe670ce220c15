//! `memory:` the reference store: in this process and linearizable, or lying
//! in a known, seeded way, which is how the analyzer is tested.
//!
//! | parameter | what the store does |
//! |---|---|
//! | `stale=P` | a read answers, with this probability, from before the last write of the item |
//! | `lost=P` | a write is acknowledged and forgotten |
//! | `error=P` | an operation fails and does nothing |
//! | `unknown=P` | a write reports an unknown fate; every other one of them happened |
//! | `latency_us=N` | each operation takes this long, half before and half after it takes effect |
//! | `servers=N` | so many operations are worked on at a time, the others queue: the highest throughput is known, N a `latency_us` |
//! | `stall_ms=N` | once, a second after the first operation, the store stands still this long |
//! | `seed=N` | of these draws |
//!
//! The store counts the reads whose answer was not the truth at that instant
//! and says so in its counters (`lies_told`), so that a test knows how many
//! there are to find.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemas::dataset::Table;
use schemas::digest::StateDigest;
use schemas::social::{Change, CountKind, ListKind, Observation, Operation};

use super::url::StoreUrl;
use super::{Answer, Connection, HeldState, LoadProgress, OperationError, Store, StoreError, promise};
use crate::clock::Clock;
use crate::source::{Payload, Source};

/// How the store lies.
#[derive(Debug, Clone, Copy)]
struct Lies {
    stale: f64,
    lost: f64,
    error: f64,
    unknown: f64,
    latency_ns: i64,
    /// How many operations are worked on at a time; 0 for all.
    servers: u32,
    stall_ns: i64,
    seed: u64,
}

/// The elements of a list, and those before its last write.
#[derive(Debug, Clone, Default)]
struct List {
    now: Vec<u64>,
    before: Option<Vec<u64>>,
}

impl List {
    fn set(&mut self, element: u64, present: bool, keep_before: bool) {
        if keep_before {
            self.before = Some(self.now.clone());
        }
        match (self.now.binary_search(&element), present) {
            (Err(at), true) => self.now.insert(at, element),
            (Ok(at), false) => {
                self.now.remove(at);
            }
            _ => {}
        }
    }
}

/// What the store holds: lists alone, since every count is the length of one.
#[derive(Debug, Clone, Default)]
struct State {
    lists: HashMap<(ListKind, u64), List>,
    walls: HashMap<u64, Vec<u64>>,
}

impl State {
    fn apply(&mut self, operation: &Operation, keep_before: bool) {
        for change in operation.changes().iter() {
            if let Change::Element { kind, owner, element, present } = change {
                self.lists.entry((kind, owner)).or_default().set(element, present, keep_before);
            }
        }
    }

    /// The list, or what it was before its last write.
    fn list(&self, kind: ListKind, owner: u64, stale: bool) -> &[u64] {
        match self.lists.get(&(kind, owner)) {
            None => &[],
            Some(list) => match (&list.before, stale) {
                (Some(before), true) => before,
                _ => &list.now,
            },
        }
    }

    fn read(&self, operation: &Operation, top_k: usize, stale: bool, values: &mut Vec<i64>) {
        for observation in operation.observations().iter() {
            match observation {
                Observation::Count { kind, owner } => {
                    let list = match kind {
                        CountKind::FriendCount => ListKind::Friends,
                        CountKind::PendingCount => ListKind::Pending,
                    };
                    values.push(self.list(list, owner, stale).len() as i64);
                }
                Observation::ResourceCount { owner } => values.push(self.walls.get(&owner).map_or(0, Vec::len) as i64),
                Observation::List { kind, owner } => {
                    values.extend(self.list(kind, owner, stale).iter().map(|e| *e as i64));
                }
                Observation::TopK { owner } => {
                    let wall = self.walls.get(&owner).map_or(&[][..], Vec::as_slice);
                    values.extend(wall.iter().rev().take(top_k).map(|r| *r as i64));
                }
            }
        }
    }
}

#[derive(Default)]
struct Inner {
    shown: State,
    /// What a correct store would hold; kept only when writes get lost.
    truth: Option<State>,
    /// Who wrote the comments of the trace.
    authors: HashMap<u64, u64>,
    resources: BTreeMap<u64, (u64, u64)>,
    members: BTreeSet<u64>,
    top_k: usize,
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
    /// When each server is free; those that have never worked are not in it.
    free_at: Mutex<BinaryHeap<Reverse<i64>>>,
    opened: Clock,
    /// When the stall ends; 0 before it has begun.
    stalled_until_ns: AtomicI64,
    first_operation_ns: AtomicI64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in another thread cannot leave the state half-changed in a way
        // that matters: it ends the experiment.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Memory {
    /// Reads the lies from the URL.
    pub fn open(url: StoreUrl) -> Result<Memory, StoreError> {
        url.allow(&["stale", "lost", "error", "unknown", "latency_us", "servers", "stall_ms", "seed"])?;
        let lies = Lies {
            stale: url.probability("stale")?,
            lost: url.probability("lost")?,
            error: url.probability("error")?,
            unknown: url.probability("unknown")?,
            latency_ns: url.number::<u32>("latency_us", 0)? as i64 * 1_000,
            servers: url.number("servers", 0)?,
            stall_ns: url.number::<u32>("stall_ms", 0)? as i64 * 1_000_000,
            seed: url.number("seed", 1)?,
        };
        let shared = Shared {
            inner: Mutex::default(),
            lies_told: AtomicU64::new(0),
            free_at: Mutex::default(),
            opened: Clock::starting_in(0),
            stalled_until_ns: AtomicI64::new(0),
            first_operation_ns: AtomicI64::new(0),
        };
        Ok(Memory { url, lies, shared: Arc::new(shared) })
    }
}

impl Store for Memory {
    type Connection = MemoryConnection;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let mut state = State::default();
        let mut inner = Inner { top_k: source.data().top_k as usize, ..Inner::default() };
        let wrong = |e| StoreError::usage(&self.url, e);
        let mut lists: HashMap<(ListKind, u64), Vec<u64>> = HashMap::new();
        for fragment in source.fragments() {
            let folder = &source.folder;
            Table::Members
                .for_each(folder, fragment, |[member]| {
                    inner.members.insert(member);
                })
                .map_err(wrong)?;
            Table::Friendships
                .for_each(folder, fragment, |[a, b]| {
                    lists.entry((ListKind::Friends, a)).or_default().push(b);
                    lists.entry((ListKind::Friends, b)).or_default().push(a);
                })
                .map_err(wrong)?;
            Table::Invitations
                .for_each(folder, fragment, |[inviter, invitee]| {
                    lists.entry((ListKind::Pending, invitee)).or_default().push(inviter);
                })
                .map_err(wrong)?;
            Table::Resources
                .for_each(folder, fragment, |[resource, owner, wall]| {
                    inner.resources.insert(resource, (owner, wall));
                    state.walls.entry(wall).or_default().push(resource);
                })
                .map_err(wrong)?;
            Table::Comments
                .for_each(folder, fragment, |[comment, resource, author]| {
                    lists.entry((ListKind::Comments, resource)).or_default().push(comment);
                    inner.authors.insert(comment, author);
                })
                .map_err(wrong)?;
        }
        for (key, mut elements) in lists {
            elements.sort_unstable();
            state.lists.insert(key, List { now: elements, before: None });
        }
        state.walls.values_mut().for_each(|wall| wall.sort_unstable());
        inner.truth = (self.lies.lost > 0.0).then(|| state.clone());
        inner.shown = state;
        inner.held = Some(HeldState::loaded(0, BTreeMap::new(), source));
        *self.shared.lock() = inner;
        progress(source.rows_total(), source.rows_total());
        Ok(())
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(self.shared.lock().held.clone())
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        self.shared.lock().held = Some(state.clone());
        Ok(())
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let (found, expected) = (self.shared.lock().members.len() as u64, source.rows(Table::Members));
        if found == expected {
            return Ok(());
        }
        Err(StoreError::usage(&self.url, format!("holds {found} members, the trace set has {expected}")))
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        Ok(BTreeMap::from([
            ("durability".into(), format!("{}: memory of the replayer's process", promise::NONE)),
            ("isolation".into(), format!("{}, except injected faults", promise::LINEARIZABLE)),
        ]))
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let inner = self.shared.lock();
        let payload: Payload = source.payload();
        let mut digest = StateDigest::default();
        for member in &inner.members {
            payload.digest_member(&mut digest, *member);
        }
        for (resource, (owner, wall)) in &inner.resources {
            digest.resource(*resource, *owner, *wall, &payload.resource(*resource));
        }
        for ((kind, owner), list) in &inner.shown.lists {
            for element in &list.now {
                match kind {
                    ListKind::Friends if owner < element => digest.friendship(*owner, *element),
                    ListKind::Friends => {}
                    ListKind::Pending => digest.invitation(*element, *owner),
                    ListKind::Comments => {
                        let author = inner.authors.get(element).copied().unwrap_or(u64::MAX);
                        digest.comment(*element, *owner, author, &payload.comment(*element));
                    }
                }
            }
        }
        Ok(digest)
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("lies_told".into(), self.shared.lies_told.load(Ordering::Relaxed))])
    }

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<MemoryConnection>, StoreError> {
        let connection = |thread: u32| {
            let chance = Chance(self.lies.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (thread as u64) << 32);
            MemoryConnection { shared: self.shared.clone(), lies: self.lies, chance, truth: Vec::new(), unknowns: 0 }
        };
        Ok(threads.map(connection).collect())
    }
}

/// SplitMix64: small, and good enough for lies.
struct Chance(u64);

impl Chance {
    fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

/// A thread's way to the store.
pub struct MemoryConnection {
    shared: Arc<Shared>,
    lies: Lies,
    chance: Chance,
    truth: Vec<i64>,
    unknowns: u64,
}

impl MemoryConnection {
    /// The stall begins a second after the first operation, for everybody.
    async fn stall(&self) {
        let shared = &self.shared;
        let now = shared.opened.now_ns().max(1);
        let _ = shared.first_operation_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        if now - shared.first_operation_ns.load(Ordering::Relaxed) < 1_000_000_000 {
            return;
        }
        let until = now + self.lies.stall_ns;
        let _ = shared.stalled_until_ns.compare_exchange(0, until, Ordering::Relaxed, Ordering::Relaxed);
        shared.opened.sleep_until(shared.stalled_until_ns.load(Ordering::Relaxed)).await;
    }

    /// When the operation that comes now takes effect, and when it ends: `latency_us` after
    /// one of the servers was free for it. From one start, so that two waits that end some
    /// microseconds late make the operation late once.
    fn times(&self) -> (i64, i64) {
        let (now, latency_ns) = (self.shared.opened.now_ns(), self.lies.latency_ns);
        let mut start = now;
        if self.lies.servers > 0 {
            let mut free_at = self.shared.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            if free_at.len() == self.lies.servers as usize {
                // There is at least one.
                start = free_at.pop().map_or(now, |Reverse(free_ns)| free_ns.max(now));
            }
            free_at.push(Reverse(start + latency_ns));
        }
        (start + latency_ns / 2, start + latency_ns)
    }

    /// The instant at which the operation takes effect.
    fn take_effect(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        if self.chance.happens(self.lies.error) {
            return Err(OperationError::Failed("the store was asked to fail (error=)".into()));
        }
        if operation.action.is_write() {
            let unknown = self.chance.happens(self.lies.unknown);
            if unknown {
                self.unknowns += 1;
            }
            if unknown && self.unknowns.is_multiple_of(2) {
                return Err(OperationError::Unknown("the store was asked not to say (unknown=)".into()));
            }
            if let (Some(comment), true) = (operation.comment, operation.action == schemas::social::Action::PostComment)
            {
                inner.authors.insert(comment, operation.socialite);
            }
            if let Some(truth) = &mut inner.truth {
                truth.apply(operation, false);
            }
            if !self.chance.happens(self.lies.lost) {
                inner.shown.apply(operation, self.lies.stale > 0.0);
            }
            if unknown {
                return Err(OperationError::Unknown("the store was asked not to say (unknown=)".into()));
            }
            return Ok(());
        }
        let stale = self.chance.happens(self.lies.stale);
        inner.shown.read(operation, inner.top_k, stale, &mut answer.values);
        if stale || inner.truth.is_some() {
            self.truth.clear();
            inner.truth.as_ref().unwrap_or(&inner.shown).read(operation, inner.top_k, false, &mut self.truth);
            if self.truth != answer.values {
                self.shared.lies_told.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Connection for MemoryConnection {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if self.lies.stall_ns > 0 {
            self.stall().await;
        }
        if self.lies.latency_ns == 0 {
            return self.take_effect(operation, answer);
        }
        let (effect_ns, end_ns) = self.times();
        self.shared.opened.sleep_until(effect_ns).await;
        let result = self.take_effect(operation, answer);
        self.shared.opened.sleep_until(end_ns).await;
        result
    }
}
