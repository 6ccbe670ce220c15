//! The digest of a store's state. It depends only on the facts, not on the order in which a store
//! returns them.
//!
//! BLAKE3 hashes each fact: a tag, then the fields (8 bytes each, little-endian), then the
//! payload (each part after its length). The first 16 bytes, as a little-endian number, are added
//! modulo 2^128. The digests of fragments add up to the digest of the whole.

use std::fmt;

/// The sum over the facts added so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateDigest {
    sum: u128,
    facts: u64,
}

impl StateDigest {
    /// Adds a fact. Each kind of facts of a family has a tag of its own.
    pub fn add(&mut self, tag: u8, fields: &[u64], payload: &[&[u8]]) {
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

    /// Adds the facts of another part of the same state.
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
