//! The Zipfian distribution over ranks, as YCSB draws it (Gray and others, "Quickly generating
//! billion-record synthetic databases", 1994).

use super::chance::Stream;

/// The constant of all Zipfian distributions of YCSB: rank i, counted from 1, has the weight
/// i^-0.99.
pub const CONSTANT: f64 = 0.99;

/// Draws ranks.
#[derive(Debug, Clone)]
pub struct Zipfian {
    items: u64,
    /// The sum of all weights.
    sum: f64,
    eta: f64,
}

const ALPHA: f64 = 1.0 / (1.0 - CONSTANT);

impl Zipfian {
    /// A distribution over this many ranks, at least 1. Takes some nanoseconds for each rank.
    pub fn new(items: u64) -> Zipfian {
        Zipfian::with_sum(items, (1..=items).map(weight).sum())
    }

    /// The same with a sum of weights that is known.
    pub fn with_sum(items: u64, sum: f64) -> Zipfian {
        let first_two = 1.0 + weight(2);
        let eta = (1.0 - libm::pow(2.0 / items as f64, 1.0 - CONSTANT)) / (1.0 - first_two / sum);
        Zipfian { items, sum, eta }
    }

    /// Adds one rank more.
    pub fn grow(&mut self) {
        let items = self.items + 1;
        *self = Zipfian::with_sum(items, self.sum + weight(items));
    }

    /// Takes the last rank away. There is at least 1.
    pub fn shrink(&mut self) {
        *self = Zipfian::with_sum(self.items - 1, self.sum - weight(self.items));
    }

    /// How many ranks there are.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The probability that [`Zipfian::draw`] gives a rank below this one, counted from 0. The draw is
    /// exact for the first two ranks and an approximation for the others; this is what it draws.
    pub fn below(&self, rank: u64) -> f64 {
        match rank {
            0 => 0.0,
            _ if rank >= self.items => 1.0,
            1 => 1.0 / self.sum,
            _ => 1.0 - (1.0 - libm::pow(rank as f64 / self.items as f64, 1.0 - CONSTANT)) / self.eta,
        }
    }

    /// A rank, counted from 0.
    pub fn draw(&self, chance: &mut Stream) -> u64 {
        let unit = chance.unit();
        let scaled = unit * self.sum;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < 1.0 + weight(2) || self.items == 2 {
            return 1;
        }
        let rank = self.items as f64 * libm::pow(self.eta * unit - self.eta + 1.0, ALPHA);
        (rank as u64).min(self.items - 1)
    }
}

/// The weight of a rank, counted from 1. It uses `libm`, because the standard library's power
/// function may differ between platforms.
fn weight(rank: u64) -> f64 {
    libm::pow(rank as f64, -CONSTANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The algorithm is exact for the first two ranks, and an approximation for the others.
    #[test]
    fn ranks_are_drawn_by_their_shares() {
        const DRAWS: usize = 400_000;
        for items in [1, 2, 3, 1_000] {
            let zipfian = Zipfian::new(items);
            let mut drawn = vec![0u64; items as usize];
            let mut chance = Stream::new(1, "test", 0);
            (0..DRAWS).for_each(|_| drawn[zipfian.draw(&mut chance) as usize] += 1);
            for rank in (0..items).take(2) {
                let (share, exact) = (drawn[rank as usize] as f64 / DRAWS as f64, weight(rank + 1) / zipfian.sum);
                assert!((share - exact).abs() < 0.003, "{items}: rank {rank} has {share}");
            }
            let mut found = 0;
            for rank in 0..=items {
                let (share, expected) = (found as f64 / DRAWS as f64, zipfian.below(rank));
                assert!((share - expected).abs() < 0.003, "{items}: {share} for {expected} below rank {rank}");
                found += drawn.get(rank as usize).copied().unwrap_or(0);
            }
        }
    }

    #[test]
    fn a_distribution_grows_and_shrinks_rank_by_rank() {
        let mut grown = Zipfian::new(10);
        (0..10).for_each(|_| grown.shrink());
        assert_eq!(grown.items(), 0);
        (0..110).for_each(|_| grown.grow());
        (0..10).for_each(|_| grown.shrink());
        let whole = Zipfian::new(100);
        assert_eq!(grown.items(), 100);
        assert!((grown.sum - whole.sum).abs() < 1e-9 && (grown.eta - whole.eta).abs() < 1e-9);
    }
}
