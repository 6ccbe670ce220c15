//! Finds the place of a version by its item and id: an open hash table of places alone. The versions themselves hold the
//! keys, so that a look-up touches little memory.

/// In place of a place: the slot is free.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    place: u32,
}

/// The table. Slots that follow each other hold what belongs to the first of them (linear probing).
#[derive(Default)]
pub(super) struct Index {
    /// A power of two, or none.
    slots: Vec<Slot>,
    used: usize,
}

impl Index {
    /// Makes sure that one place more can be put in. A quarter of the slots stays free.
    pub(super) fn reserve(&mut self) {
        const LEAST: usize = 1 << 10;
        if (self.used + 1) * 4 <= self.slots.len() * 3 {
            return;
        }
        let larger = vec![Slot { hash: 0, place: FREE }; (self.slots.len() * 2).max(LEAST)];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.place != FREE {
                let at = self.first_free(slot.hash);
                self.slots[at] = slot;
            }
        }
    }

    fn first_free(&self, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.slots[at].place != FREE {
            at = self.next(at);
        }
        at
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The place with this hash that `is_it`, or the slot in which to [put](Index::put) it. Call
    /// [`Index::reserve`] first.
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot.place == FREE {
                return Err(at);
            }
            if slot.hash == hash && is_it(slot.place) {
                return Ok(slot.place);
            }
            at = self.next(at);
        }
    }

    /// Puts a place into a slot that [`Index::find`] has returned.
    pub(super) fn put(&mut self, slot: usize, hash: u32, place: u32) {
        self.slots[slot] = Slot { hash, place };
        self.used += 1;
    }

    /// Removes a place. What follows moves up, so that no gap hides it.
    pub(super) fn remove(&mut self, hash: u32, place: u32) {
        let mut gap = self.home(hash);
        while self.slots[gap].place != place {
            if self.slots[gap].place == FREE {
                return;
            }
            gap = self.next(gap);
        }
        self.used -= 1;
        let mask = self.slots.len() - 1;
        let mut at = self.next(gap);
        while self.slots[at].place != FREE {
            let home = self.home(self.slots[at].hash);
            // It may move if its home is not between the gap and itself.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
            at = self.next(at);
        }
        self.slots[gap].place = FREE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys of few hashes, so that they stand in each other's way.
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec((0u32..40, prop::bool::ANY), 0..400)) {
            let hash = |key: u32| (key % 5).wrapping_mul(1023);
            let (mut index, mut map) = (Index::default(), BTreeMap::new());
            for (key, insert) in steps {
                index.reserve();
                let found = index.find(hash(key), |place| place == key);
                prop_assert_eq!(found.ok(), map.get(&key).copied());
                match (insert, found) {
                    (true, Err(slot)) => {
                        index.put(slot, hash(key), key);
                        map.insert(key, key);
                    }
                    (false, _) => {
                        index.remove(hash(key), key);
                        map.remove(&key);
                    }
                    (true, Ok(_)) => {}
                }
                prop_assert_eq!(index.used, map.len());
            }
            for key in 0..40 {
                index.reserve();
                prop_assert_eq!(index.find(hash(key), |place| place == key).ok(), map.get(&key).copied());
            }
        }
    }

    #[test]
    fn it_grows() {
        let mut index = Index::default();
        for place in 0..5_000u32 {
            index.reserve();
            let slot = index.find(place * 7, |found| found == place).unwrap_err();
            index.put(slot, place * 7, place);
        }
        assert!((0..5_000).all(|place| index.find(place * 7, |found| found == place) == Ok(place)));
    }
}
