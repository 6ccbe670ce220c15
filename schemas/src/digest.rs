//! The digest of a store's state: the same for the same facts, in whatever
//! order a store hands them out.
//!
//! Each fact is hashed by BLAKE3 over a tag and its fields (8 bytes each,
//! little-endian, then the payload); the first 16 bytes, as a little-endian
//! number, are added modulo 2^128. Sums of fragments add up to that of the whole.

use std::fmt;

/// The sum over the facts added so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateDigest {
    sum: u128,
    facts: u64,
}

impl StateDigest {
    fn add(&mut self, tag: u8, fields: &[u64], payload: &[&[u8]]) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[tag]);
        for field in fields {
            hasher.update(&field.to_le_bytes());
        }
        for part in payload {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut low = [0; 16];
        low.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(low));
        self.facts += 1;
    }

    /// A member with her attributes and images (empty when the store has none).
    pub fn member(&mut self, member: u64, attributes: &str, image: &[u8], thumbnail: &[u8]) {
        self.add(0, &[member], &[attributes.as_bytes(), image, thumbnail]);
    }

    /// A confirmed friendship; the order of the two does not matter.
    pub fn friendship(&mut self, a: u64, b: u64) {
        self.add(1, &[a.min(b), a.max(b)], &[]);
    }

    /// An invitation that waits for `invitee`.
    pub fn invitation(&mut self, inviter: u64, invitee: u64) {
        self.add(2, &[inviter, invitee], &[]);
    }

    /// A resource.
    pub fn resource(&mut self, resource: u64, owner: u64, wall: u64, text: &str) {
        self.add(3, &[resource, owner, wall], &[text.as_bytes()]);
    }

    /// A comment.
    pub fn comment(&mut self, comment: u64, resource: u64, author: u64, text: &str) {
        self.add(4, &[comment, resource, author], &[text.as_bytes()]);
    }

    /// Takes in the facts of another part of the same state.
    pub fn merge(&mut self, other: StateDigest) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.facts += other.facts;
    }

    /// How many facts were added.
    pub fn facts(&self) -> u64 {
        self.facts
    }
}

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.sum, self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_content_does() {
        let (mut a, mut b, mut c) = (StateDigest::default(), StateDigest::default(), StateDigest::default());
        a.friendship(1, 2);
        a.invitation(3, 4);
        b.invitation(3, 4);
        b.friendship(2, 1);
        c.invitation(4, 3);
        c.friendship(1, 2);
        assert_eq!(a, b);
        assert_ne!(a, c);
        // Nothing, and the same fact twice, are told apart too.
        let mut twice = a;
        twice.merge(b);
        assert_ne!(twice, a);
    }
}
