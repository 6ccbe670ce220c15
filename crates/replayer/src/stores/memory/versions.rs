//! What records were before their last changes, as long as a transaction may have to see that.
//!
//! Without transactions under way nothing is kept, so operations by themselves pay nothing but a look.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use schemas::workload::kv::keys::KeyPlace;

/// The changes of one record while transactions watch, the oldest first.
#[derive(Debug, Clone)]
struct Changes<R> {
    number: u64,
    /// When, and what the record was before.
    before: VecDeque<(u64, R)>,
}

/// A moment: what is committed at it is what a transaction sees that began there.
pub type Moment = u64;

/// The changes of all records while transactions watch. `R` is what a record is.
#[derive(Debug, Clone)]
pub struct Versions<R> {
    now: Moment,
    /// The moments at which transactions began that are under way, and how many began there.
    watching: BTreeMap<Moment, u32>,
    changes: BTreeMap<KeyPlace, Changes<R>>,
    /// All changes in their order, to forget them.
    order: VecDeque<(Moment, KeyPlace)>,
}

impl<R> Default for Versions<R> {
    fn default() -> Versions<R> {
        Versions { now: 0, watching: BTreeMap::new(), changes: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<R> Versions<R> {
    /// A transaction begins; returns at which moment.
    pub fn watch(&mut self) -> Moment {
        *self.watching.entry(self.now).or_default() += 1;
        self.now
    }

    /// A transaction that began at this moment has ended. Forgets what no other one can see.
    pub fn leave(&mut self, began: Moment) {
        if let Some(count) = self.watching.get_mut(&began) {
            *count -= 1;
            if *count == 0 {
                self.watching.remove(&began);
            }
        }
        let oldest = self.watching.keys().next().copied().unwrap_or(Moment::MAX);
        while let Some((_, place)) = self.order.pop_front_if(|(at, _)| *at <= oldest) {
            if let Some(changes) = self.changes.get_mut(&place) {
                changes.before.pop_front();
                if changes.before.is_empty() {
                    self.changes.remove(&place);
                }
            }
        }
    }

    /// Whether any transaction is under way that changes have to be kept for.
    #[inline]
    pub fn is_watched(&self) -> bool {
        !self.watching.is_empty()
    }

    /// Another moment begins: the changes that follow happen together.
    pub fn tick(&mut self) {
        self.now += 1;
    }

    /// A record changes now.
    pub fn note(&mut self, place: KeyPlace, number: u64, before: R) {
        let changes = self.changes.entry(place).or_insert_with(|| Changes { number, before: VecDeque::new() });
        changes.before.push_back((self.now, before));
        self.order.push_back((self.now, place));
    }

    /// The number of a record and what it was at a moment, if it has changed since.
    pub fn at(&self, place: KeyPlace, began: Moment) -> Option<(u64, &R)> {
        let changes = self.changes.get(&place)?;
        let first = changes.before.partition_point(|(at, _)| *at <= began);
        changes.before.get(first).map(|(_, before)| (changes.number, before))
    }

    /// Whether a record in this range has changed since a moment.
    pub fn has_changed(&self, places: impl RangeBounds<KeyPlace>, began: Moment) -> bool {
        let is_later = |changes: &Changes<R>| changes.before.back().is_some_and(|(at, _)| *at > began);
        self.changes.range(places).any(|(_, changes)| is_later(changes))
    }

    /// The first record from a place on that has changed while transactions watched.
    pub fn next(&self, from: Bound<KeyPlace>) -> Option<KeyPlace> {
        self.changes.range((from, Bound::Unbounded)).next().map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use schemas::workload::kv::{Data, Keys};

    use super::*;

    fn places() -> [KeyPlace; 3] {
        let data: Data = serde_json::from_str(r#"{"records": 9}"#).expect("a data set");
        let keys = Keys::new(&data);
        [1, 2, 3].map(|record| keys.place(record))
    }

    #[test]
    fn a_transaction_sees_the_moment_at_which_it_began() {
        let [a, b, c] = places();
        let mut versions: Versions<&str> = Versions::default();
        let first = versions.watch();
        versions.tick();
        versions.note(a, 1, "a0");
        versions.note(b, 2, "b0");
        let second = versions.watch();
        versions.tick();
        versions.note(a, 1, "a1");
        assert_eq!([a, b, c].map(|place| versions.at(place, first)), [Some((1, &"a0")), Some((2, &"b0")), None]);
        assert_eq!([a, b, c].map(|place| versions.at(place, second)), [Some((1, &"a1")), None, None]);
        assert!(versions.has_changed(b..=c, first) && !versions.has_changed(b..=c, second));
        assert_eq!(versions.next(Bound::Excluded(a)), Some(b));
        // The first one's end forgets what only it could see.
        versions.leave(first);
        assert_eq!((versions.changes.len(), versions.order.len()), (1, 1));
        assert_eq!(versions.at(a, second), Some((1, &"a1")));
        versions.leave(second);
        assert!(versions.changes.is_empty() && versions.order.is_empty() && !versions.is_watched());
    }
}
