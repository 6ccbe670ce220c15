//! Hash maps that behave the same in every run; their order is never used for output.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from integers.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// A set of integers.
pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Mixes one integer by multiplication and folding. The generator makes all keys itself, so no
/// input can choose keys that collide.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(*byte as u64);
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.write_u64(id as u64);
    }

    fn write_u64(&mut self, id: u64) {
        // Only the low 128 bits of the product are needed.
        let product = ((self.0 ^ id) as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
