//! Friendships and invitations of a fragment as the sessions so far leave them.
//!
//! Only what changed is stored: the pairs that were written, and the places where members' lists
//! differ. All else is as in the [`Initial`] graph.

use schemas::social::{Change, ListKind, Operation};

use crate::core::chance::Stream;
use crate::core::maps::IdMap;
use crate::social::initial::Initial;
use crate::social::relation::Relation;

/// How many random elements are tried before the whole list is searched.
const TRIES: u32 = 8;

/// Which writes count as long ago, seen from one session of the trace.
#[derive(Clone, Copy)]
pub(crate) struct Horizon {
    /// The session that is being made.
    pub(crate) session: u64,
    /// A write that is at least this many sessions back is long ago.
    pub(crate) window: u64,
}

impl Horizon {
    /// Whether a pair or comment last written by session `last_write` can be written again without
    /// a wait in the replay.
    pub(crate) fn is_settled(self, last_write: Option<u64>) -> bool {
        last_write.is_none_or(|last| self.session - last >= self.window)
    }
}

/// A pair that was written: its relation now, and the session that wrote it last.
#[derive(Clone, Copy)]
struct Written {
    relation: Relation,
    session: u64,
}

/// The relations of a fragment's members, by their positions.
pub(crate) struct Graph<'a> {
    initial: &'a Initial,
    pairs: IdMap<u64, Written>,
    friends: IdMap<u32, Changed>,
    pending: IdMap<u32, Changed>,
}

/// How a member's list differs from the initial one. With a hundred friends a member, a copy of the
/// list would take five times the memory.
struct Changed {
    /// How many elements it has now.
    count: u32,
    /// The places whose element differs from the initial one, with that element; ascending.
    places: Vec<(u32, u32)>,
}

impl Changed {
    /// The element at a place of a list whose initial elements are `initial`.
    fn get(&self, place: u32, initial: impl Fn(u32) -> u32) -> u32 {
        match self.places.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(at) => self.places[at].1,
            Err(_) => initial(place),
        }
    }

    fn set(&mut self, place: u32, element: u32) {
        match self.places.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(at) => self.places[at].1 = element,
            Err(at) => self.places.insert(at, (place, element)),
        }
    }

    fn push(&mut self, element: u32) {
        self.set(self.count, element);
        self.count += 1;
    }

    /// Removes an element if it is in the list. The last element takes its place.
    fn remove(&mut self, element: u32, initial: impl Fn(u32) -> u32) {
        let mut changed = self.places.iter().peekable();
        let found = (0..self.count).find(|place| {
            let here = changed.next_if(|(changed, _)| changed == place);
            here.map_or_else(|| initial(*place), |(_, element)| *element) == element
        });
        let Some(found) = found else { return };
        let last = self.count - 1;
        let moved = self.get(last, initial);
        self.places.retain(|(place, _)| *place != last);
        if found != last {
            self.set(found, moved);
        }
        self.count = last;
    }
}

/// The key of an unordered pair.
fn pair(a: u32, b: u32) -> u64 {
    (a.min(b) as u64) << 32 | a.max(b) as u64
}

impl<'a> Graph<'a> {
    /// The graph before the first session.
    pub(crate) fn new(initial: &'a Initial) -> Graph<'a> {
        Graph { initial, pairs: IdMap::default(), friends: IdMap::default(), pending: IdMap::default() }
    }

    /// The relation of two different members.
    pub(crate) fn relation(&self, a: u32, b: u32) -> Relation {
        self.pairs.get(&pair(a, b)).map_or_else(|| self.initial.relation(a, b), |written| written.relation)
    }

    /// The session that last wrote the pair.
    pub(crate) fn last_write(&self, a: u32, b: u32) -> Option<u64> {
        self.pairs.get(&pair(a, b)).map(|written| written.session)
    }

    /// A random friend. It prefers pairs that were last written long ago; if there is none, it
    /// takes the friend whose pair was written longest ago.
    pub(crate) fn pick_friend(&self, of: u32, horizon: Horizon, chance: &mut Stream) -> Option<u32> {
        match self.friends.get(&of) {
            Some(list) => {
                let initial = |i| self.initial.friend(of, i);
                self.pick(of, list.count, |i| list.get(i, initial), horizon, chance)
            }
            None => self.pick(of, self.initial.friend_count(of), |i| self.initial.friend(of, i), horizon, chance),
        }
    }

    /// A random inviter of a pending invitation, with the same preference.
    pub(crate) fn pick_inviter(&self, of: u32, horizon: Horizon, chance: &mut Stream) -> Option<u32> {
        match self.pending.get(&of) {
            Some(list) => {
                let initial = |i| self.initial.inviter(of, i);
                self.pick(of, list.count, |i| list.get(i, initial), horizon, chance)
            }
            None => self.pick(of, self.initial.pending_count(of), |i| self.initial.inviter(of, i), horizon, chance),
        }
    }

    fn pick(
        &self,
        of: u32,
        count: u32,
        element: impl Fn(u32) -> u32,
        horizon: Horizon,
        chance: &mut Stream,
    ) -> Option<u32> {
        if count == 0 {
            return None;
        }
        let is_settled = |other: &u32| horizon.is_settled(self.last_write(of, *other));
        for _ in 0..TRIES {
            let other = element(chance.below(count as u64) as u32);
            if is_settled(&other) {
                return Some(other);
            }
        }
        let settled: Vec<u32> = (0..count).map(&element).filter(is_settled).collect();
        if settled.is_empty() {
            (0..count).map(element).min_by_key(|other| self.last_write(of, *other))
        } else {
            Some(settled[chance.below(settled.len() as u64) as usize])
        }
    }

    /// Applies the changes of an operation of `session`, in which members are given by position.
    pub(crate) fn apply(&mut self, operation: &Operation, session: u64) {
        for change in operation.changes().iter() {
            // The counts follow from the lists, and comments are stored elsewhere.
            let Change::Element { kind, owner, element, present } = change else { continue };
            let (owner, element) = (owner as u32, element as u32);
            // Changes come in order, so the last change of a pair decides its relation.
            let relation = match (kind, present) {
                (ListKind::Comments, _) => continue,
                (_, false) => Relation::Strangers,
                (ListKind::Friends, true) => Relation::Friends,
                (ListKind::Pending, true) => Relation::Invited { inviter: element },
            };
            self.pairs.insert(pair(owner, element), Written { relation, session });
            let initial = self.initial;
            let (lists, is_friends) = match kind {
                ListKind::Friends => (&mut self.friends, true),
                _ => (&mut self.pending, false),
            };
            let list = lists.entry(owner).or_insert_with(|| {
                let count = if is_friends { initial.friend_count(owner) } else { initial.pending_count(owner) };
                Changed { count, places: Vec::new() }
            });
            match (present, is_friends) {
                (true, _) => list.push(element),
                (false, true) => list.remove(element, |i| initial.friend(owner, i)),
                (false, false) => list.remove(element, |i| initial.inviter(owner, i)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A list stored as differences equals the full list, place by place.
        #[test]
        fn a_changed_list_is_what_a_copy_would_be(steps in prop::collection::vec((any::<bool>(), 0u32..30), 0..60)) {
            let initial = |place: u32| 100 + place;
            let mut copy: Vec<u32> = (0..5).map(initial).collect();
            let mut changed = Changed { count: 5, places: Vec::new() };
            for (next, (adds, choice)) in (1000u32..).zip(steps) {
                if adds {
                    copy.push(next);
                    changed.push(next);
                } else {
                    // Sometimes an element that is not in the list.
                    let element = copy.get(choice as usize).copied().unwrap_or(7);
                    if let Some(at) = copy.iter().position(|e| *e == element) {
                        copy.swap_remove(at);
                    }
                    changed.remove(element, initial);
                }
                let list: Vec<u32> = (0..changed.count).map(|place| changed.get(place, initial)).collect();
                prop_assert_eq!(&list, &copy);
                prop_assert!(changed.places.iter().all(|(place, _)| *place < changed.count));
            }
        }
    }
}
