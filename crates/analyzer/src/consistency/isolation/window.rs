//! The transactions that are held: their events, and for each version who wrote, read and overwrote it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use schemas::anomalies::Fate;

use super::index::Index;
use super::{Act, Event, Item, Transaction};

/// In place of a number of a transaction: there is none.
pub(super) const NONE: u64 = u64::MAX;

/// A transaction that is in no cycle.
pub(super) const NO_CLASS: u8 = u8::MAX;

/// A transaction. Its number is its place in the history.
pub(super) struct Node {
    pub(super) transaction: Transaction,
    /// The number of its first event.
    pub(super) first: u64,
    /// How many events it has.
    pub(super) events: u32,
    /// Reads that saw an item change though the transaction had not changed it.
    pub(super) fuzzy: u32,
    /// The worst class of the cycles that it is in.
    pub(super) class: u8,
    /// Whether a transaction that had ended before its start has to come after it.
    pub(super) is_stale: bool,
}

impl Node {
    /// When all of its effects were there at the latest.
    pub(super) fn settled_ns(&self) -> i64 {
        if self.transaction.fate == Fate::Unknown { i64::MAX } else { self.transaction.end_ns }
    }
}

/// What an event is to its version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing that is not known already.
    None,
    /// It read the version, and its transaction did not overwrite it.
    Read,
    /// It read the version, and its transaction overwrote it.
    Overwrite,
    /// It wrote the version.
    Write,
}

/// An event as a member of the lists of its version.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// The number of its transaction.
    pub(super) node: u64,
    /// The number of the next older event in the list, plus 1; 0 at the end.
    next: u64,
    /// Its version.
    pub(super) version: u32,
    pub(super) role: Role,
}

/// A version of an item.
pub(super) struct Held {
    pub(super) item: Item,
    pub(super) id: i64,
    /// The transaction that wrote it and was not rolled back.
    pub(super) writer: u64,
    /// When that write started.
    pub(super) write_start_ns: i64,
    /// A try that wrote it and was rolled back. Another try may have written it again.
    pub(super) aborted: u64,
    /// When the last such try had ended.
    aborted_end_ns: i64,
    /// The list of those who only read it: a number of an event plus 1.
    pub(super) readers: u64,
    /// The list of those who read and overwrote it.
    pub(super) overwriters: u64,
    /// The last transaction that had to do with it.
    touched: u64,
    /// A transaction that has been counted and that had overwritten it.
    pub(super) counted_overwriter: u64,
    /// Whether its own transaction overwrote it.
    pub(super) is_intermediate: bool,
}

/// Whose write of a version a read saw: tries of one transaction write the same versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saw {
    /// That of the try that was not rolled back, or of an unknown writer.
    Written,
    /// That of a try that was rolled back.
    Aborted,
    /// One of the two: it ended after the one began to write and began before the other had ended.
    Either,
}

/// Mixes the two numbers of a key.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }
}

type Hashing = BuildHasherDefault<Mix>;

fn hash_of(item: Item, id: i64) -> u32 {
    let mut mix = Mix::default();
    (item, id).hash(&mut mix);
    mix.finish() as u32
}

/// The transactions that are held, the oldest first.
#[derive(Default)]
pub(super) struct Window {
    pub(super) nodes: Vec<Node>,
    /// Whether each of them counts as committed: apart, as this is looked up for every dependency.
    active: Vec<bool>,
    /// The number of the first transaction.
    pub(super) base: u64,
    accesses: Vec<Access>,
    events: Vec<Event>,
    /// The number of the first event.
    first: u64,
    versions: Vec<Held>,
    /// Places in `versions` that hold no version.
    free: Vec<u32>,
    index: Index,
    /// Transactions of unknown fate.
    unknown: usize,
    roles: Roles,
}

impl Window {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many of the oldest transactions ended before a time, up to the first that did not.
    pub(super) fn ended_before(&self, low: i64) -> usize {
        self.nodes.iter().position(|node| node.transaction.end_ns >= low).unwrap_or(self.nodes.len())
    }

    pub(super) fn access(&self, number: u64) -> &Access {
        &self.accesses[(number - self.first) as usize]
    }

    pub(super) fn event(&self, number: u64) -> &Event {
        &self.events[(number - self.first) as usize]
    }

    pub(super) fn version(&self, version: u32) -> &Held {
        &self.versions[version as usize]
    }

    pub(super) fn version_mut(&mut self, version: u32) -> &mut Held {
        &mut self.versions[version as usize]
    }

    /// The place of a transaction in `nodes`; None if it has been forgotten.
    pub(super) fn place(&self, node: u64) -> Option<usize> {
        node.checked_sub(self.base).map(|place| place as usize).filter(|place| *place < self.nodes.len())
    }

    /// The numbers of the events of a list, the newest first, up to the first one that is forgotten.
    pub(super) fn list(&self, head: u64) -> impl Iterator<Item = u64> + '_ {
        let mut next = head;
        std::iter::from_fn(move || {
            let number = next.checked_sub(1).filter(|number| *number >= self.first)?;
            next = self.access(number).next;
            Some(number)
        })
    }

    /// Whether a transaction counts as committed.
    pub(super) fn is_active(&self, place: usize) -> bool {
        self.active[place]
    }

    /// The numbers of the events of a transaction.
    pub(super) fn events_of(&self, place: usize) -> std::ops::Range<u64> {
        let node = &self.nodes[place];
        node.first..node.first + u64::from(node.events)
    }

    /// Whose write of a version this read saw.
    pub(super) fn saw(&self, version: &Held, read: &Event) -> Saw {
        if version.aborted == NONE {
            Saw::Written
        } else if version.writer == NONE || read.end_ns < version.write_start_ns {
            Saw::Aborted
        } else if read.start_ns > version.aborted_end_ns {
            Saw::Written
        } else {
            Saw::Either
        }
    }

    /// Adds a transaction. Returns how many of its writes overwrote a version that is not known.
    pub(super) fn add(&mut self, transaction: &Transaction, events: &[Event]) -> u64 {
        let number = self.base + self.nodes.len() as u64;
        let first = self.first + self.events.len() as u64;
        let is_committed = transaction.fate == Fate::Committed;
        let mut node = Node {
            transaction: *transaction,
            first,
            events: events.len() as u32,
            fuzzy: 0,
            class: NO_CLASS,
            is_stale: false,
        };
        self.events.extend_from_slice(events);
        let mut unordered = 0;
        if transaction.fate == Fate::Aborted {
            self.add_aborted(number, transaction.end_ns, events);
        } else {
            self.unknown += usize::from(!is_committed);
            let mut roles = std::mem::take(&mut self.roles);
            (node.fuzzy, unordered) = roles.find(events);
            self.link(number, first, events, &roles.0);
            for write in &roles.1 {
                let event = &events[*write as usize];
                let version = self.touch(event.item, event.version, number);
                self.version_mut(version).is_intermediate = true;
            }
            self.roles = roles;
        }
        self.nodes.push(node);
        self.active.push(is_committed);
        unordered
    }

    /// Of a transaction that was rolled back, only its writes matter: others may have seen them.
    fn add_aborted(&mut self, number: u64, end_ns: i64, events: &[Event]) {
        for event in events {
            let (mut version, mut role) = (u32::MAX, Role::None);
            if event.act != Act::Read {
                version = self.touch(event.item, event.version, number);
                let held = self.version_mut(version);
                (held.aborted, held.aborted_end_ns) = (number, held.aborted_end_ns.max(end_ns));
                role = Role::Write;
            }
            self.accesses.push(Access { node: number, next: 0, version, role });
        }
    }

    fn link(&mut self, number: u64, first: u64, events: &[Event], roles: &[Role]) {
        for (index, (event, role)) in events.iter().zip(roles).enumerate() {
            let mut access = Access { node: number, next: 0, version: u32::MAX, role: *role };
            if *role != Role::None {
                access.version = self.touch(event.item, event.version, number);
                let head = first + index as u64 + 1;
                let version = self.version_mut(access.version);
                match role {
                    Role::Read => access.next = std::mem::replace(&mut version.readers, head),
                    Role::Overwrite => access.next = std::mem::replace(&mut version.overwriters, head),
                    Role::Write | Role::None => {
                        (version.writer, version.write_start_ns) = (number, event.start_ns);
                    }
                }
            }
            self.accesses.push(access);
        }
    }

    /// The version, with a note that a transaction has to do with it.
    fn touch(&mut self, item: Item, id: i64, node: u64) -> u32 {
        let hash = hash_of(item, id);
        self.index.reserve();
        let versions = &self.versions;
        let is_it = |place: u32| versions[place as usize].item == item && versions[place as usize].id == id;
        let slot = match self.index.find(hash, is_it) {
            Ok(place) => {
                self.versions[place as usize].touched = node;
                return place;
            }
            Err(slot) => slot,
        };
        let new = Held {
            item,
            id,
            writer: NONE,
            write_start_ns: 0,
            aborted: NONE,
            aborted_end_ns: i64::MIN,
            readers: 0,
            overwriters: 0,
            touched: node,
            counted_overwriter: NONE,
            is_intermediate: false,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.versions[place as usize] = new;
                place
            }
            None => {
                self.versions.push(new);
                self.versions.len() as u32 - 1
            }
        };
        self.index.put(slot, hash, place);
        place
    }

    /// Forgets the oldest transactions, and the versions that only they had to do with.
    pub(super) fn forget(&mut self, count: usize) {
        let events: usize = self.nodes[..count].iter().map(|node| node.events as usize).sum();
        let unknown = self.nodes[..count].iter().filter(|node| node.transaction.fate == Fate::Unknown).count();
        self.unknown -= unknown;
        self.nodes.drain(..count);
        self.active.drain(..count);
        self.accesses.drain(..events);
        self.events.drain(..events);
        self.base += count as u64;
        self.first += events as u64;
        for (place, version) in self.versions.iter_mut().enumerate() {
            if version.touched < self.base {
                self.index.remove(hash_of(version.item, version.id), place as u32);
                version.touched = NONE;
                self.free.push(place as u32);
            }
        }
    }

    /// Counts transactions of unknown fate as committed if a committed one has seen a write of theirs.
    pub(super) fn settle_unknown(&mut self) {
        if self.unknown == 0 {
            return;
        }
        let mut seen: Vec<usize> =
            (0..self.len()).filter(|place| self.is_open(*place) && self.is_seen(*place)).collect();
        while let Some(place) = seen.pop() {
            self.active[place] = true;
            // It has happened, so what it saw has happened too.
            for number in self.events_of(place) {
                let access = *self.access(number);
                if !matches!(access.role, Role::Read | Role::Overwrite) {
                    continue;
                }
                let version = self.version(access.version);
                let writer = self.place(version.writer).filter(|writer| self.is_open(*writer));
                if let Some(writer) = writer.filter(|_| self.saw(version, self.event(number)) == Saw::Written) {
                    seen.push(writer);
                }
            }
        }
    }

    /// Whether a transaction is of unknown fate, and does not count as committed yet.
    fn is_open(&self, place: usize) -> bool {
        self.nodes[place].transaction.fate == Fate::Unknown && !self.active[place]
    }

    /// Whether a committed transaction has seen a write of this one.
    fn is_seen(&self, place: usize) -> bool {
        let own = self.base + place as u64;
        self.events_of(place).any(|number| {
            let access = self.access(number);
            if access.role != Role::Write {
                return false;
            }
            let version = self.version(access.version);
            let mut readers = self.list(version.readers).chain(self.list(version.overwriters));
            version.writer == own
                && readers.any(|number| {
                    let reader = self.access(number).node;
                    let is_active = self.place(reader).is_some_and(|place| self.active[place]);
                    reader != own && is_active && self.saw(version, self.event(number)) == Saw::Written
                })
        })
    }
}

/// The roles of a transaction's events, and those of its writes that it overwrote itself.
#[derive(Default)]
struct Roles(Vec<Role>, Vec<u32>);

/// Up to so many events, the last one of an item is found by looking at all.
const FEW: usize = 24;

impl Roles {
    /// Returns how many reads saw an item change, and how many writes overwrote a version that is not
    /// known.
    fn find(&mut self, events: &[Event]) -> (u32, u64) {
        let Roles(roles, overwritten) = self;
        roles.clear();
        overwritten.clear();
        let (mut fuzzy, mut unordered) = (0, 0);
        // Own writes after which the transaction has read another version of the item.
        let mut hidden: Vec<u32> = Vec::new();
        // Of each item the last event that counts.
        let mut last_of: HashMap<Item, u32, Hashing> = HashMap::default();
        for (index, event) in events.iter().enumerate() {
            let last = if events.len() <= FEW {
                (0..index).rev().find(|last| roles[*last] != Role::None && events[*last].item == event.item)
            } else {
                last_of.get(&event.item).map(|last| *last as usize)
            };
            let role = match (event.act, last) {
                (Act::Read, Some(last)) if events[last].version == event.version => Role::None,
                (Act::Read, last) => {
                    fuzzy += u32::from(last.is_some());
                    hidden.extend(last.filter(|last| roles[*last] == Role::Write).map(|last| last as u32));
                    Role::Read
                }
                (_, Some(last)) => {
                    match roles[last] {
                        Role::Write if events[last].version != event.version => overwritten.push(last as u32),
                        Role::Read => {
                            roles[last] = Role::Overwrite;
                            let is_own = |write: &&u32| events[**write as usize].item == event.item;
                            overwritten.extend(hidden.iter().filter(is_own));
                        }
                        _ => {}
                    }
                    Role::Write
                }
                (Act::Insert, None) => Role::Write,
                (Act::Write | Act::Delete, None) => {
                    unordered += 1;
                    Role::Write
                }
            };
            roles.push(role);
            if role != Role::None && events.len() > FEW {
                last_of.insert(event.item, index as u32);
            }
        }
        (fuzzy, unordered)
    }
}
