//! The records of a fragment in the order of their keys, for scans.

use std::collections::BTreeMap;
use std::collections::btree_map;

use schemas::workload::kv::Keys;
use schemas::workload::kv::keys::KeyPlace;

/// The records that exist, or once existed, in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Those of the data set, counted from its first record.
    initial: Vec<u32>,
    /// Those that sessions inserted or deleted.
    changed: BTreeMap<KeyPlace, u64>,
}

impl Order {
    pub(super) fn new(initial: Vec<u32>) -> Order {
        Order { initial, changed: BTreeMap::new() }
    }

    /// Adds a record that is inserted or deleted.
    pub(super) fn add(&mut self, place: KeyPlace, record: u64) {
        self.changed.insert(place, record);
    }

    /// The records from a key on.
    pub(super) fn from<'a>(&'a self, keys: &'a Keys, first: u64, place: KeyPlace) -> Walk<'a> {
        let at = |index: &u32| keys.place(keys.number(first + *index as u64));
        let initial = &self.initial[self.initial.partition_point(|index| at(index) < place)..];
        let mut walk =
            Walk { keys, first, initial: initial.iter(), changed: self.changed.range(place..), next: [None; 2] };
        walk.next = [walk.next_initial(), walk.next_changed()];
        walk
    }
}

/// Records in the order of their keys, each with the place of its key.
pub(super) struct Walk<'a> {
    keys: &'a Keys,
    first: u64,
    initial: std::slice::Iter<'a, u32>,
    changed: btree_map::Range<'a, KeyPlace, u64>,
    /// The next of the data set, and the next that was inserted or deleted.
    next: [Option<(KeyPlace, u64)>; 2],
}

impl Walk<'_> {
    fn next_initial(&mut self) -> Option<(KeyPlace, u64)> {
        let record = self.first + *self.initial.next()? as u64;
        Some((self.keys.place(self.keys.number(record)), record))
    }

    fn next_changed(&mut self) -> Option<(KeyPlace, u64)> {
        self.changed.next().map(|(place, record)| (*place, *record))
    }
}

impl Iterator for Walk<'_> {
    type Item = (KeyPlace, u64);

    fn next(&mut self) -> Option<(KeyPlace, u64)> {
        let [initial, changed] = self.next;
        let next = match (initial, changed) {
            (Some(initial), Some(changed)) => initial.min(changed),
            (one, other) => one.or(other)?,
        };
        // A record of the data set that is deleted is in both.
        if initial.is_some_and(|(place, _)| place == next.0) {
            self.next[0] = self.next_initial();
        }
        if changed.is_some_and(|(place, _)| place == next.0) {
            self.next[1] = self.next_changed();
        }
        Some(next)
    }
}
