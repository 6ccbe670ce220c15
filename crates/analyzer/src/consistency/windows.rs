//! The metrics of all registers of a fragment, in one pass over its operations and in bounded memory.
//!
//! Operations come by their start. They are collected in a **window**. When it is full, the operations are
//! sorted by register, the metrics of each register are computed from what is there, and what no later
//! operation needs is dropped: a run that fits one window is judged at once, exactly as from its whole
//! history.
//!
//! What stays after a window:
//!
//! - the last quarter of it, so that its reads and writes are there for the operations that follow;
//! - of each register, the writes that a correct read may still see, writes of unknown fate, and the values
//!   that were read after one of these had come. What is known of a value (when it was there first, when
//!   it was read last, its Γ so far) stays with its write.
//!
//! So memory is bounded by the window, by what is in flight, and by the registers. A read that sees a
//! value which was overwritten more than a quarter of a window ago may find it forgotten. Such reads are
//! counted, and nothing is concluded from them: all that is said of a store is proved by what it did.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use schemas::verdict::{Broken, K, Register};

use super::gamma::proof;
use super::history::{Access, BEFORE, COUNTED, Clients, Cluster, NEW};
use super::measure::{Measured, Which};
use super::summary::ConsistencySummary;
use crate::validate::{FOREVER, Interval, Item, ItemRead};

/// How many operations of registers a window takes: some 100 MB.
pub const WINDOW: usize = 1 << 21;

/// A write without a place in [`Windows::values`].
const FRESH: u32 = u32::MAX;

/// An operation of a register.
#[derive(Clone, Copy)]
struct Pending {
    value: i64,
    start: i64,
    end: i64,
    actor: u64,
    thread: u32,
    register: u32,
    /// Of a read, its tag; of a write, the place of what is known of its value, or [`FRESH`].
    tag: u32,
    is_write: bool,
}

impl Pending {
    fn access(&self) -> Access {
        let (at, by) =
            (Interval { start: self.start, end: self.end }, Clients { thread: self.thread, actor: self.actor });
        Access { value: self.value, at, by, tag: self.tag }
    }

    fn of(register: u32, is_write: bool, access: &Access, tag: u32) -> Pending {
        let Access { value, at, by, .. } = *access;
        let (start, end) = (at.start, at.end);
        Pending { value, start, end, actor: by.actor, thread: by.thread, register, tag, is_write }
    }
}

/// What is known of a value whose write stays.
#[derive(Clone, Copy)]
struct Value {
    cluster: Cluster,
    gamma: i64,
    visible: i64,
}

/// What is known of a register, apart from the operations in the window.
#[derive(Clone, Copy)]
struct State {
    item: Item,
    /// When the last read of its initial value started, and Γ of that value.
    initial_last_read: i64,
    initial_gamma: i64,
    /// Of all values so far.
    gamma: i64,
    /// Of all windows so far; None if a read ended before its write started.
    delta: Option<i64>,
    k: K,
    /// Γ of the initial value was counted.
    has_initial: bool,
    /// Known writes that were forgotten, and the least end of these.
    forgotten: u32,
    first_end: i64,
    /// Those of them that no read has followed so far.
    unfollowed: u32,
    writes: u64,
    unknown: u32,
    reads: u64,
    stale: u64,
    unattributed: u64,
    lost: u64,
}

impl State {
    fn new(item: Item) -> State {
        State {
            item,
            initial_last_read: BEFORE,
            initial_gamma: 0,
            gamma: 0,
            delta: Some(0),
            k: K::One,
            has_initial: false,
            forgotten: 0,
            first_end: FOREVER,
            unfollowed: 0,
            writes: 0,
            unknown: 0,
            reads: 0,
            stale: 0,
            unattributed: 0,
            lost: 0,
        }
    }
}

/// An unpredictable read within β: it misses no limit if it was only stale, and not by more than the
/// SLA allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Excusable {
    /// The code of its operation.
    pub(crate) code: u8,
    /// Its end.
    pub(crate) end_ns: i64,
    /// How much is wrong with it.
    pub(crate) violations: u32,
    /// How many of its registers were stale.
    pub(crate) stale: u32,
    /// By how much, at most.
    pub(crate) t_ns: i64,
}

/// A multiplicative hash: items are numbers that nobody chooses.
#[derive(Default)]
pub(crate) struct ItemHasher(u64);

impl Hasher for ItemHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// The registers of a fragment.
pub struct Windows {
    fragment: u32,
    summary: ConsistencySummary,
    /// The limit of Γ, by which reads are excused.
    limit_ns: Option<u64>,
    /// The numbers of registers that were read or written, a bit each. Removals write all of an owner's.
    used: u64,
    /// No later read starts before.
    passed: i64,
    window: usize,
    /// The window is full when it has this many operations.
    full: usize,
    numbers: HashMap<Item, u32, BuildHasherDefault<ItemHasher>>,
    states: Vec<State>,
    pending: Vec<Pending>,
    /// The first of them that came after the last sweep.
    first_new: usize,
    values: Vec<Value>,
    excusable: Vec<Excusable>,
    excused: Vec<Excusable>,
    work: Measured,
    /// The operations sorted by register; where those of each register end.
    order: Vec<u32>,
    ends: Vec<u32>,
    reads: Vec<Access>,
    /// What is known of the value of each write; empty if nothing is.
    known: Vec<Option<Cluster>>,
}

impl Windows {
    /// Of a fragment, with windows of this many operations.
    pub fn new(fragment: u32, summary: ConsistencySummary, limit_ns: Option<u64>, window: usize) -> Windows {
        Windows {
            fragment,
            summary,
            limit_ns,
            used: 0,
            passed: BEFORE,
            window,
            full: window,
            numbers: HashMap::default(),
            states: Vec::new(),
            pending: Vec::new(),
            first_new: 0,
            values: Vec::new(),
            excusable: Vec::new(),
            excused: Vec::new(),
            work: Measured::default(),
            order: Vec::new(),
            ends: Vec::new(),
            reads: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The same, with only some of the metrics.
    pub fn with(mut self, which: Which) -> Windows {
        self.work.which = which;
        self
    }

    /// Adds a write. Writes come by their start, and before the reads that end after it. One of unknown
    /// fate ends at [`FOREVER`].
    #[inline]
    pub fn write(&mut self, item: Item, value: i64, at: Interval, by: Clients) {
        self.used |= 1 << item.element();
        self.remove(item, value, at, by);
    }

    /// Adds a write that a removal of the register's owner makes. A register that nothing else reads or
    /// writes does not count.
    pub fn remove(&mut self, item: Item, value: i64, at: Interval, by: Clients) {
        let register = self.register(item);
        let state = &mut self.states[register as usize];
        state.writes += 1;
        state.unknown += u32::from(at.end == FOREVER);
        self.push(Pending::of(register, true, &Access { value, at, by, tag: FRESH }, FRESH));
    }

    /// No read that starts earlier comes from now on.
    #[inline]
    pub fn pass(&mut self, start: i64) {
        self.passed = start;
    }

    /// Adds an answered read. Reads come by their start.
    #[inline]
    pub fn read(&mut self, item: Item, value: i64, at: Interval, by: Clients) {
        self.pass(at.start);
        self.read_as(item, value, at, by, NEW);
    }

    /// Adds a read of an operation that [`Windows::excusable`] has told of.
    #[inline]
    pub(crate) fn read_as(&mut self, item: Item, value: i64, at: Interval, by: Clients, tag: u32) {
        self.used |= 1 << item.element();
        let register = self.register(item);
        self.push(Pending::of(register, false, &Access { value, at, by, tag }, tag));
    }

    /// Tells of a read that may be excused. Returns the tag of its registers.
    pub(crate) fn excusable(&mut self, read: Excusable) -> u32 {
        self.excusable.push(read);
        self.excusable.len() as u32 - 1
    }

    /// Whether reads may be excused.
    pub(crate) fn excuses(&self) -> bool {
        self.limit_ns.is_some()
    }

    /// The reads that were excused since the last call.
    pub(crate) fn excused(&mut self) -> impl Iterator<Item = Excusable> {
        self.excused.drain(..)
    }

    /// Computes the metrics of a full window. Only call it between two operations of a log: all registers of
    /// an operation must be in one window.
    #[inline]
    pub fn settle(&mut self) {
        if self.pending.len() >= self.full {
            self.sweep(false);
        }
    }

    /// Computes what is left. Returns the summary.
    pub fn finish(&mut self) -> ConsistencySummary {
        self.sweep(true);
        for state in &self.states {
            if state.writes == 0 {
                continue;
            }
            let summary = &mut self.summary;
            summary.registers += 1;
            summary.k[state.k as usize] += 1;
            summary.writes += state.writes;
            summary.unknown_writes += u64::from(state.unknown);
            summary.reads += state.reads;
            summary.stale_reads += state.stale;
            summary.forgotten_reads += state.lost;
            summary.unattributed_reads += state.unattributed;
            summary.gamma.add(state.gamma);
            match state.delta {
                Some(delta) => summary.delta.add(delta),
                None => summary.from_the_future += 1,
            }
            summary.k_staleness.add_n(0, state.reads - state.stale);
            summary.t_staleness.add_n(0, state.reads - state.stale);
            if state.k != K::One {
                summary.complete_worst(&register_of(self.fragment, state), |broken| {
                    (broken.delta_ns, broken.k) = (state.delta, state.k);
                    (broken.writes, broken.reads, broken.stale_reads) = (state.writes, state.reads, state.stale);
                });
            }
        }
        std::mem::replace(&mut self.summary, ConsistencySummary::new(Default::default(), None))
    }

    fn register(&mut self, item: Item) -> u32 {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(item).or_insert(next);
        if number == next {
            self.states.push(State::new(item));
        }
        number
    }

    #[inline]
    fn push(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    /// Sorts the window by register: a stable counting sort, so that operations stay by their start.
    fn sort(&mut self) {
        self.ends.clear();
        self.ends.resize(self.states.len(), 0);
        for pending in &self.pending {
            self.ends[pending.register as usize] += 1;
        }
        let mut at = 0;
        for end in &mut self.ends {
            // For now, where those of the register begin.
            let count = std::mem::replace(end, at);
            at += count;
        }
        self.order.clear();
        self.order.resize(self.pending.len(), 0);
        for (pending, index) in self.pending.iter().zip(0..) {
            let end = &mut self.ends[pending.register as usize];
            self.order[*end as usize] = index;
            *end += 1;
        }
    }

    fn sweep(&mut self, is_last: bool) {
        self.sort();
        let (old, values) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.values));
        let recent = if is_last { &[][..] } else { &old[old.len().saturating_sub(self.window / 4)..] };
        let horizon = recent.iter().map(|pending| pending.start).min().unwrap_or(FOREVER);
        // A read that is still to come may have started before writes that are here.
        let horizon = if is_last { horizon } else { horizon.min(self.passed) };
        self.pending.reserve(if is_last { 0 } else { self.window });
        let order = std::mem::take(&mut self.order);
        let mut from = 0;
        for register in 0..self.states.len() {
            let own = &order[from..self.ends[register] as usize];
            from = self.ends[register] as usize;
            if is_last && self.used >> self.states[register].item.element() & 1 == 0 {
                // Only removals touched it.
                self.states[register].writes = 0;
                continue;
            }
            let has_new = own.last().is_some_and(|last| *last as usize >= self.first_new);
            if has_new || is_last && !own.is_empty() {
                self.measure(register as u32, own.iter().map(|at| &old[*at as usize]), &values, horizon);
            } else {
                self.keep(own.iter().map(|at| &old[*at as usize]), &values, horizon);
            }
        }
        self.order = order;
        if let Some(limit) = self.limit_ns {
            let is_excused = |read: &Excusable| read.stale == read.violations && read.t_ns.unsigned_abs() <= limit;
            self.excused.extend(self.excusable.drain(..).filter(is_excused));
        }
        self.first_new = self.pending.len();
        // What stays must not fill most of the next window.
        self.full = self.window.max(2 * self.pending.len());
    }

    /// Keeps what is left of a register in which nothing has happened.
    fn keep<'a>(&mut self, own: impl Iterator<Item = &'a Pending>, values: &[Value], horizon: i64) {
        for pending in own.filter(|pending| pending.is_write || pending.start >= horizon) {
            let mut pending = *pending;
            if pending.is_write {
                self.values.push(values[pending.tag as usize]);
                pending.tag = self.values.len() as u32 - 1;
            }
            self.pending.push(pending);
        }
    }

    /// Computes the metrics of a register, and keeps what later operations need.
    fn measure<'a>(&mut self, register: u32, own: impl Iterator<Item = &'a Pending>, values: &[Value], horizon: i64) {
        let Windows { work, states, reads, known, summary, excusable, .. } = self;
        let state = &mut states[register as usize];
        work.history.writes.clear();
        reads.clear();
        for pending in own {
            if pending.is_write { &mut work.history.writes } else { &mut *reads }.push(pending.access());
        }
        work.history.attribute(reads.iter().copied());
        let history = &work.history;
        match state.forgotten {
            0 => state.unattributed += history.unattributed,
            _ => {
                state.lost += history.lost;
                state.unattributed += history.unattributed - history.lost;
            }
        }
        if history.writes.is_empty() {
            state.reads += history.reads.iter().filter(|read| read.access.tag != COUNTED).count() as u64;
            let last = history.reads.last().map_or(BEFORE, |read| read.access.at.start);
            state.initial_last_read = state.initial_last_read.max(last);
            for read in reads.iter().filter(|read| read.at.start >= horizon) {
                self.pending.push(Pending::of(register, false, read, COUNTED));
            }
            return;
        }
        known.clear();
        if work.history.writes.iter().any(|write| write.tag != FRESH) {
            let value = |write: &Access| values.get(write.tag as usize).map(|value| value.cluster);
            known.extend(work.history.writes.iter().map(value));
        }
        work.fill(state.initial_last_read, |index| known.get(index as usize).copied().flatten());
        count_reads(work, state, summary, excusable);
        summary.by_thread.merge(&work.by_thread);
        summary.by_actor.merge(&work.by_actor);
        take_in_gamma(work, state, values);
        if !work.gamma.is_linearizable() {
            take_in_conflict(work, state, summary, self.fragment);
        }
        self.retire(register, values, horizon);
    }

    /// Drops what no later operation of a register needs, and keeps the rest.
    fn retire(&mut self, register: u32, values: &[Value], horizon: i64) {
        let Windows { work, states, summary, pending, reads, .. } = self;
        let state = &mut states[register as usize];
        let Measured { history, clusters, gamma, visibility_ns, .. } = work;
        // A write is settled if one that started after its end has ended before the horizon.
        let known = history.writes.iter().filter(|write| write.at.end < horizon);
        let newest = known.map(|write| write.at.start).max().unwrap_or(BEFORE);
        let is_last = horizon == FOREVER;
        let is_settled = |cluster: &Cluster| match cluster.write {
            None => newest > BEFORE,
            Some(index) => {
                let write = &history.writes[index as usize];
                let gone = if write.at.end == FOREVER { cluster.first_end } else { write.at.end };
                write.at.start < horizon && gone < newest
            }
        };
        let base = clusters.iter().filter(|cluster| cluster.write.is_some() && !is_settled(cluster));
        let first = base.map(|cluster| cluster.first_end).min().unwrap_or(FOREVER);
        let last_read = history.reads.last().map_or(BEFORE, |read| read.access.at.start);
        let has_new = history.reads.iter().any(|read| read.access.tag != COUNTED);
        if has_new {
            summary.t_visibility.add_n(0, u64::from(std::mem::take(&mut state.unfollowed)));
        }
        // A write of unknown fate that no read saw has no cluster.
        let mut next = 0;
        for (cluster, gamma) in clusters.iter().zip(&gamma.values) {
            let goes = is_last
                || is_settled(cluster)
                    && cluster.last_start().max(cluster.first_end) < horizon
                    && cluster.last_start() <= first;
            let Some(index) = cluster.write else {
                state.initial_last_read = cluster.last_read;
                state.initial_gamma = *gamma;
                if goes {
                    // The initial value without a read says nothing.
                    if cluster.last_read >= 0 && !state.has_initial {
                        summary.add_value(*gamma, cluster.last_read);
                        state.has_initial = true;
                    }
                    (state.initial_last_read, state.initial_gamma) = (BEFORE, 0);
                }
                continue;
            };
            for unseen in next..index {
                keep_unseen(register, &history.writes[unseen as usize], is_last, pending, &mut self.values);
            }
            next = index + 1;
            let write = &history.writes[index as usize];
            let before = values.get(write.tag as usize).map_or(0, |value| value.visible);
            let visible = visibility_ns.get(index as usize).copied().flatten().unwrap_or(0).max(before);
            if !goes {
                self.values.push(Value { cluster: *cluster, gamma: *gamma, visible });
                pending.push(Pending::of(register, true, write, self.values.len() as u32 - 1));
                continue;
            }
            if cluster.last_start() >= 0 {
                summary.add_value(*gamma, cluster.last_start());
            }
            if write.at.end != FOREVER {
                match write.at.end < last_read || visible > 0 {
                    true => summary.t_visibility.add(visible),
                    false => state.unfollowed += 1,
                }
                state.forgotten += 1;
                state.first_end = state.first_end.min(write.at.end);
            }
        }
        for unseen in next..history.writes.len() as u32 {
            keep_unseen(register, &history.writes[unseen as usize], is_last, pending, &mut self.values);
        }
        if !is_last {
            for read in reads.iter().filter(|read| read.at.start >= horizon) {
                pending.push(Pending::of(register, false, read, COUNTED));
            }
        }
    }
}

/// Keeps a write of unknown fate that no read has seen so far.
fn keep_unseen(register: u32, write: &Access, is_last: bool, pending: &mut Vec<Pending>, values: &mut Vec<Value>) {
    if is_last {
        return;
    }
    let cluster =
        Cluster { write: None, written: write.at.start, first_end: write.at.end, last_read: BEFORE, future: 0 };
    values.push(Value { cluster, gamma: 0, visible: 0 });
    pending.push(Pending::of(register, true, write, values.len() as u32 - 1));
}

fn register_of(fragment: u32, state: &State) -> Register {
    Register { fragment: i64::from(fragment), owner: state.item.owner(), element: state.item.element() }
}

/// Counts the reads that were not counted before.
fn count_reads(work: &Measured, state: &mut State, summary: &mut ConsistencySummary, excusable: &mut [Excusable]) {
    for (read, staleness) in work.history.reads.iter().zip(&work.reads) {
        let tag = read.access.tag;
        if tag == COUNTED {
            continue;
        }
        let (start, mut k, mut t_ns) = (read.access.at.start, staleness.k, staleness.t_ns);
        if read.saw.is_none() && state.forgotten > 0 {
            // All writes are newer than the initial value.
            k += u64::from(state.forgotten);
            t_ns = start - state.first_end.min(start - t_ns);
        }
        state.reads += 1;
        if k > 0 {
            state.stale += 1;
            summary.k_staleness.add(i64::try_from(k).unwrap_or(i64::MAX));
            summary.t_staleness.add(t_ns);
            if let Some(own) = excusable.get_mut(tag as usize) {
                own.stale += 1;
                own.t_ns = own.t_ns.max(t_ns);
            }
        }
        if let Some(age_ns) = staleness.age_ns {
            summary.freshness.add(&ItemRead { age_ns, is_fresh: k == 0 });
        }
    }
}

/// Takes in what Γ of the values was before the window.
fn take_in_gamma(work: &mut Measured, state: &mut State, values: &[Value]) {
    let Measured { history, clusters, gamma, .. } = work;
    for (cluster, own) in clusters.iter().zip(&mut gamma.values) {
        let before = match cluster.write {
            None => {
                // It was overwritten when the first write that was forgotten had ended.
                let since = if state.forgotten > 0 { cluster.last_read.saturating_sub(state.first_end) } else { 0 };
                state.initial_gamma.max(since)
            }
            Some(index) => values.get(history.writes[index as usize].tag as usize).map_or(0, |value| value.gamma),
        };
        *own = before.max(*own);
        state.gamma = state.gamma.max(*own);
    }
    if state.gamma > 0 && state.k == K::One && work.gamma.is_linearizable() {
        // Only a read of the initial value after all that overwrote it was forgotten.
        state.k = K::Two;
        state.delta = state.delta.map(|delta| delta.max(state.gamma));
    }
}

/// Takes in what proves that a register is not linearizable.
fn take_in_conflict(work: &Measured, state: &mut State, summary: &mut ConsistencySummary, fragment: u32) {
    state.k = state.k.max(work.k);
    state.delta = state.delta.zip(work.delta_ns).map(|(before, now)| before.max(now));
    let Some(conflict) = work.gamma.conflict else { return };
    if state.gamma < summary.worst_from() {
        return;
    }
    summary.keep_worst(Broken {
        register: register_of(fragment, state),
        gamma_ns: state.gamma,
        delta_ns: state.delta,
        k: state.k,
        writes: state.writes,
        reads: state.reads,
        stale_reads: state.stale,
        proof: proof(&work.history, &work.clusters, conflict),
    });
}

#[cfg(test)]
mod tests {
    use super::super::brute::{Accesses, Dice, histories};
    use super::super::history::{History, INITIAL};
    use super::super::measure::Measured as One;
    use super::*;

    /// A summary without limits over a second.
    fn summary() -> ConsistencySummary {
        let measured = crate::timeline::Measured {
            from_ns: 0,
            elapsed_ns: 1_000_000_000,
            counted_ns: 1_000_000_000,
            planned_ns: None,
        };
        ConsistencySummary::new(measured, Some(3))
    }

    /// The summary of these registers, in the order of a log: writes by their start, reads once all writes
    /// that started before their end are there.
    fn of(registers: &[Accesses], window: usize) -> ConsistencySummary {
        let mut windows = Windows::new(0, summary(), Some(3), window);
        let mut events: Vec<(bool, usize, Access)> = Vec::new();
        for (index, (writes, reads)) in registers.iter().enumerate() {
            events.extend(writes.iter().map(|write| (true, index, *write)));
            events.extend(reads.iter().map(|read| (false, index, *read)));
        }
        events.sort_by_key(|(is_write, index, access)| {
            (access.at.start, access.at.end, access.value, access.by.thread, access.by.actor, *index, *is_write)
        });
        let mut waiting: std::collections::VecDeque<(usize, Access)> = Default::default();
        let leave = |windows: &mut Windows, waiting: &mut std::collections::VecDeque<(usize, Access)>, now| {
            while waiting.front().is_some_and(|(_, read)| read.at.end < now) {
                if let Some((index, read)) = waiting.pop_front() {
                    windows.read(Item::new(index as u64, 0), read.value, read.at, read.by);
                    windows.settle();
                }
            }
        };
        for (is_write, index, access) in events {
            leave(&mut windows, &mut waiting, access.at.start);
            match is_write {
                true => windows.write(Item::new(index as u64, 0), access.value, access.at, access.by),
                false => waiting.push_back((index, access)),
            }
            windows.settle();
        }
        leave(&mut windows, &mut waiting, i64::MAX);
        windows.finish()
    }

    /// In one window the metrics are those of each history as a whole.
    #[test]
    fn one_window_is_the_whole_history() {
        let all: Vec<Accesses> = histories(3_000, 61, 40).collect();
        for registers in all.chunks(5) {
            let found = of(registers, 1_000);
            let mut expected = [0u64; 9];
            let mut worst = Vec::new();
            for (writes, reads) in registers.iter().filter(|(writes, _)| !writes.is_empty()) {
                let one = One::of(History::new(writes.clone(), reads.clone()));
                worst.push(one.gamma.item());
                expected[0] += 1;
                expected[1] += u64::from(one.gamma.is_linearizable());
                expected[2] += one.history.reads.len() as u64;
                expected[3] += one.stale_reads();
                expected[4] = expected[4].max(one.reads.iter().map(|read| read.k).max().unwrap_or(0));
                let t = one.reads.iter().map(|read| read.t_ns).max().unwrap_or(0);
                expected[5] = expected[5].max(t.unsigned_abs());
                let last = one.history.reads.last().map_or(BEFORE, |read| read.access.at.start);
                let followed =
                    one.history.writes.iter().zip(&one.visibility_ns).filter(|(write, _)| write.at.end < last);
                for visible in followed.filter_map(|(_, visible)| *visible) {
                    expected[6] += 1;
                    expected[7] = expected[7].max(visible.unsigned_abs());
                }
                let is_there = |cluster: &&Cluster| cluster.last_start() >= 0;
                expected[8] += one.clusters.iter().filter(is_there).count() as u64;
            }
            let Some(figures) = found.figures() else {
                assert_eq!(expected[0], 0);
                continue;
            };
            let visible = figures.t_visibility_ns;
            assert_eq!(
                [
                    figures.registers,
                    figures.linearizable,
                    figures.reads,
                    figures.stale_reads,
                    figures.k_staleness.max,
                    figures.t_staleness_ns.max,
                    visible.count,
                    visible.max,
                    figures.value_gamma_ns.count
                ],
                expected
            );
            assert_eq!(figures.gamma_ns.max, worst.iter().copied().max().unwrap_or(0).unsigned_abs());
            assert_eq!(figures.gamma_ns.count, figures.registers);
            assert_eq!(figures.forgotten_reads, 0);
            let kept: Vec<i64> = figures.worst.iter().map(|broken| broken.gamma_ns).collect();
            worst.retain(|gamma| *gamma > 0);
            worst.sort_by_key(|gamma| -gamma);
            assert_eq!(kept, worst);
        }
    }

    /// Accesses of registers with an operation each nanosecond or so. `back` says how many values a read
    /// may be behind.
    fn long(registers: usize, operations: i64, back: u64, seed: u64) -> Vec<Accesses> {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut all: Vec<Accesses> = vec![Default::default(); registers];
        let mut values = vec![vec![INITIAL]; registers];
        for effect in 1..=operations {
            let register = dice.below(registers as u64) as usize;
            let (at, length) = (effect * 4, dice.below(30) as i64);
            let at = Interval { start: at - length, end: at + dice.below(30) as i64 };
            let by = Clients { thread: dice.below(3) as u32, actor: dice.below(5) };
            if dice.below(3) == 0 {
                values[register].push(effect);
                all[register].0.push(Access { value: effect, at, by, tag: NEW });
            } else {
                let written = &values[register];
                let behind = if back > 0 && dice.below(4) == 0 { dice.below(back + 1) as usize } else { 0 };
                let value = written[written.len().saturating_sub(1 + behind)];
                all[register].1.push(Access { value, at, by, tag: NEW });
            }
        }
        all
    }

    /// A store that is right is right in windows of any length.
    #[test]
    fn windows_accuse_no_correct_store() {
        for seed in 1..20 {
            for (registers, window) in [(1, 40), (1, 200), (7, 64), (60, 100), (60, 1_000)] {
                let figures = of(&long(registers, 2_000, 0, seed), window).figures().unwrap();
                assert_eq!((figures.linearizable, figures.stale_reads), (figures.registers, 0), "{seed} {window}");
                assert_eq!((figures.gamma_ns.max, figures.t_visibility_ns.max), (0, 0));
                assert_eq!((figures.forgotten_reads, figures.unattributed_reads), (0, 0));
                for (_, checked) in figures.by_thread.named().into_iter().chain(figures.by_actor.named()) {
                    assert_eq!(checked.violations, 0);
                }
            }
        }
    }

    /// What a store that is wrong did is found in windows too, if they reach back far enough; and what they say is
    /// never more than the whole history shows.
    #[test]
    fn windows_find_what_the_whole_history_shows() {
        for seed in 1..20 {
            for registers in [1, 7, 60] {
                let all = long(registers, 3_000, 3, seed);
                let whole = of(&all, 1_000_000).figures().unwrap();
                assert!(whole.stale_reads > 0 && whole.linearizable < whole.registers, "{}", whole.stale_reads);
                let windows = of(&all, 1_000).figures().unwrap();
                assert_eq!(windows.reads + windows.forgotten_reads, whole.reads);
                assert_eq!((windows.registers, windows.writes), (whole.registers, whole.writes));
                assert_eq!(windows.value_gamma_ns.count, whole.value_gamma_ns.count);
                if windows.forgotten_reads == 0 {
                    assert_eq!((windows.stale_reads, windows.linearizable), (whole.stale_reads, whole.linearizable));
                    assert_eq!(windows.k_staleness, whole.k_staleness, "{seed} {registers}");
                    assert_eq!(windows.t_staleness_ns, whole.t_staleness_ns);
                    assert_eq!((windows.gamma_ns, windows.value_gamma_ns), (whole.gamma_ns, whole.value_gamma_ns));
                    assert_eq!(windows.t_visibility_ns, whole.t_visibility_ns);
                    assert_eq!(windows.k, whole.k);
                }
                let few = of(&all, 60).figures().unwrap();
                assert!(few.linearizable >= whole.linearizable && few.stale_reads <= whole.stale_reads);
                assert!(few.gamma_ns.max <= whole.gamma_ns.max && few.t_visibility_ns.max <= whole.t_visibility_ns.max);
                assert!(few.t_staleness_ns.max <= whole.t_staleness_ns.max);
            }
        }
    }

    /// What windows keep does not grow with the run.
    #[test]
    fn memory_is_bounded_by_the_window_and_the_registers() {
        let mut windows = Windows::new(0, summary(), None, 1_000);
        for n in 0..200_000i64 {
            let (item, at) = (Item::new(n as u64 % 50, 0), Interval { start: 10 * n, end: 10 * n + 5 });
            match n / 50 % 2 {
                0 => windows.write(item, n + 1, at, Clients::default()),
                _ => windows.read(item, n + 1 - 50, at, Clients::default()),
            }
            windows.settle();
            assert!(windows.pending.len() <= 1_000 && windows.values.len() <= 1_000, "{}", windows.pending.len());
        }
        let figures = windows.finish().figures().unwrap();
        assert_eq!((figures.registers, figures.reads, figures.stale_reads), (50, 100_000, 0));
    }

    /// Summaries of fragments merge to that of the whole.
    #[test]
    fn summaries_merge() {
        let all = long(20, 3_000, 2, 5);
        let mut whole = of(&all[..10], 100_000);
        let other = of(&all[10..], 100_000);
        whole.merge(&other);
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<ConsistencySummary>(&text).unwrap(), whole);
        let mut reverse = other;
        reverse.merge(&of(&all[..10], 100_000));
        assert_eq!(
            reverse.figures().map(|figures| figures.over_time),
            whole.figures().map(|figures| figures.over_time)
        );
        let (merged, at_once) = (whole.figures().unwrap(), of(&all, 100_000).figures().unwrap());
        assert_eq!((merged.gamma_ns, merged.k, merged.by_actor), (at_once.gamma_ns, at_once.k, at_once.by_actor));
        assert_eq!(merged.values_within, at_once.values_within);
        assert_eq!(merged.freshness, at_once.freshness);
    }
}
