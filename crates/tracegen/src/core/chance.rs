//! The generator's only source of randomness: ChaCha8 streams keyed by seed, purpose and fragment.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A stream of random numbers that is the same on every platform.
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of one purpose in one fragment. Streams of different keys are
    /// independent, so that a new purpose never shifts the numbers of another.
    pub fn new(seed: u64, purpose: &str, fragment: u32) -> Stream {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes());
        hasher.update(purpose.as_bytes());
        hasher.update(&[0]);
        hasher.update(&fragment.to_le_bytes());
        Stream(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform integer below `n`, which is at least 1. Unbiased: Lemire's
    /// multiplication, which refuses the few words that would favour some results.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = self.word() as u128 * n as u128;
        if (product as u64) < n {
            let surplus = n.wrapping_neg() % n;
            while (product as u64) < surplus {
                product = self.word() as u128 * n as u128;
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Puts the items in a random order (Fisher and Yates).
    pub fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned_and_differ_by_key() {
        let first = |seed, purpose, fragment| Stream::new(seed, purpose, fragment).word();
        // Trace sets depend on this number: a change of it is a change of format.
        assert_eq!(first(1, "ranks", 0), 0xce8a_3627_8acd_90af);
        assert_ne!(first(1, "ranks", 0), first(2, "ranks", 0));
        assert_ne!(first(1, "ranks", 0), first(1, "ring", 0));
        assert_ne!(first(1, "ring", 0), first(1, "ring", 1));
    }

    #[test]
    fn integers_and_units_are_uniform() {
        let mut stream = Stream::new(7, "test", 0);
        let mut seen = [0u32; 6];
        let mut sum = 0.0;
        for _ in 0..60_000 {
            seen[stream.below(6) as usize] += 1;
            let unit = stream.unit();
            assert!((0.0..1.0).contains(&unit));
            sum += unit;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert!((29_700.0..30_300.0).contains(&sum), "{sum}");
        assert_eq!(stream.below(1), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Stream::new(1, "test", 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
