//! The graph of a fragment before the first session as a ring: computed, never stored.
//!
//! The members of a fragment form a ring in random order. Each is a friend of the k/2 next members
//! in both directions. The members after those, in one direction, have invited the member.

use crate::core::chance::Stream;
use crate::social::relation::Relation;

/// The members of a fragment by their position in the ring.
pub(crate) struct Ring {
    members: Vec<u32>,
    half_friends: u32,
    pending: u32,
}

impl Ring {
    /// A ring of these members, in an order that the seed and the fragment decide.
    ///
    /// There must be more members than `friends + 2 * pending`, so that no pair has two relations.
    pub(crate) fn new(mut members: Vec<u32>, friends: u64, pending: u64, mut chance: Stream) -> Ring {
        debug_assert!(members.len() as u64 > friends + 2 * pending);
        chance.shuffle(&mut members);
        Ring { members, half_friends: (friends / 2) as u32, pending: pending as u32 }
    }

    /// The members by position.
    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    /// How many friends each member has.
    pub(crate) fn friend_count(&self) -> u32 {
        self.half_friends * 2
    }

    /// How many invitations wait for each member.
    pub(crate) fn pending_count(&self) -> u32 {
        self.pending
    }

    /// The position `steps` further round the ring.
    fn further(&self, position: u32, steps: u32) -> u32 {
        ((position as u64 + steps as u64) % self.members.len() as u64) as u32
    }

    /// The friend number `index` (below [`friend_count`](Ring::friend_count)).
    pub(crate) fn friend(&self, position: u32, index: u32) -> u32 {
        let steps = if index < self.half_friends {
            index + 1
        } else {
            self.members.len() as u32 - (index - self.half_friends + 1)
        };
        self.further(position, steps)
    }

    /// The inviter number `index` (below [`pending_count`](Ring::pending_count)).
    pub(crate) fn inviter(&self, position: u32, index: u32) -> u32 {
        self.further(position, self.half_friends + 1 + index)
    }

    /// The relation of the members at two different positions.
    pub(crate) fn relation(&self, a: u32, b: u32) -> Relation {
        let ahead = if b > a { b - a } else { self.members.len() as u32 - (a - b) };
        let behind = self.members.len() as u32 - ahead;
        if ahead.min(behind) <= self.half_friends {
            Relation::Friends
        } else if ahead <= self.half_friends + self.pending {
            Relation::Invited { inviter: b }
        } else if behind <= self.half_friends + self.pending {
            Relation::Invited { inviter: a }
        } else {
            Relation::Strangers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The lists and the relation of a pair say the same, down to the
        /// smallest ring that is allowed.
        #[test]
        fn lists_and_relations_agree(half in 0u64..5, pending in 0u64..5, spare in 1u64..6) {
            let count = (2 * half + 2 * pending + spare) as u32;
            let ring = Ring::new((0..count).collect(), 2 * half, pending, Stream::new(1, "test", 0));
            for a in 0..count {
                let friends: Vec<u32> = (0..ring.friend_count()).map(|i| ring.friend(a, i)).collect();
                let inviters: Vec<u32> = (0..ring.pending_count()).map(|i| ring.inviter(a, i)).collect();
                for b in (0..count).filter(|b| *b != a) {
                    let relation = ring.relation(a, b);
                    prop_assert_eq!(relation, ring.relation(b, a));
                    let times = friends.iter().filter(|f| **f == b).count();
                    prop_assert_eq!(times, (relation == Relation::Friends) as usize);
                    let times = inviters.iter().filter(|i| **i == b).count();
                    prop_assert_eq!(times, (relation == Relation::Invited { inviter: b }) as usize);
                }
            }
        }
    }
}
