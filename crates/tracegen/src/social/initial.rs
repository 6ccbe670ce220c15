//! The graph of a fragment before the first session, for every way in which the specification can
//! assign friendships.
//!
//! Members have positions, numbered from 0 within the fragment. The code that draws members or
//! stores relations works with positions.

use crate::social::assigned::Assigned;
use crate::social::relation::Relation;
use crate::social::ring::Ring;

/// The initial graph of a fragment.
pub(crate) enum Initial {
    /// Computed, and the same for every member.
    Ring(Ring),
    /// Drawn and stored.
    Assigned(Assigned),
}

impl Initial {
    /// The members by position.
    pub(crate) fn members(&self) -> &[u32] {
        match self {
            Initial::Ring(ring) => ring.members(),
            Initial::Assigned(assigned) => assigned.members(),
        }
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.members().len()
    }

    /// The member at a position.
    pub(crate) fn member(&self, position: u32) -> u64 {
        self.members()[position as usize] as u64
    }

    /// The positions in the order of the members' ids.
    pub(crate) fn positions_by_member(&self) -> Vec<u32> {
        let members = self.members();
        let mut positions: Vec<u32> = (0..members.len() as u32).collect();
        positions.sort_unstable_by_key(|p| members[*p as usize]);
        positions
    }

    /// How many friends a member has.
    pub(crate) fn friend_count(&self, position: u32) -> u32 {
        match self {
            Initial::Ring(ring) => ring.friend_count(),
            Initial::Assigned(assigned) => assigned.friends(position).len() as u32,
        }
    }

    /// A member's friend number `index` (below [`friend_count`](Initial::friend_count)).
    pub(crate) fn friend(&self, position: u32, index: u32) -> u32 {
        match self {
            Initial::Ring(ring) => ring.friend(position, index),
            Initial::Assigned(assigned) => assigned.friends(position)[index as usize],
        }
    }

    /// How many invitations wait for a member.
    pub(crate) fn pending_count(&self, position: u32) -> u32 {
        match self {
            Initial::Ring(ring) => ring.pending_count(),
            Initial::Assigned(assigned) => assigned.inviters(position).len() as u32,
        }
    }

    /// A member's inviter number `index` (below [`pending_count`](Initial::pending_count)).
    pub(crate) fn inviter(&self, position: u32, index: u32) -> u32 {
        match self {
            Initial::Ring(ring) => ring.inviter(position, index),
            Initial::Assigned(assigned) => assigned.inviters(position)[index as usize],
        }
    }

    /// The friends of a member.
    pub(crate) fn friends(&self, position: u32) -> impl Iterator<Item = u32> {
        (0..self.friend_count(position)).map(move |index| self.friend(position, index))
    }

    /// The inviters of a member.
    pub(crate) fn inviters(&self, position: u32) -> impl Iterator<Item = u32> {
        (0..self.pending_count(position)).map(move |index| self.inviter(position, index))
    }

    /// The relation of the members at two different positions.
    pub(crate) fn relation(&self, a: u32, b: u32) -> Relation {
        match self {
            Initial::Ring(ring) => ring.relation(a, b),
            Initial::Assigned(assigned) => assigned.relation(a, b),
        }
    }
}
