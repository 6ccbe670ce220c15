//! Draws from any discrete distribution in constant time (Walker's alias
//! method, built as Vose does).

use super::chance::Stream;

/// A distribution over 0..n.
pub struct AliasTable {
    cells: Vec<Cell>,
}

/// One of n equally likely cells: below the threshold it stands for its own
/// number, above for another one.
#[derive(Clone, Copy)]
struct Cell {
    threshold: u64,
    alias: u32,
}

impl AliasTable {
    /// The distribution that gives number i a probability in proportion to
    /// `weights[i]`; there are at least one and at most 2^32 positive weights.
    pub fn new(weights: &[f64]) -> AliasTable {
        // Only +, -, * and / in a fixed order: every platform builds the same table.
        let sum: f64 = weights.iter().sum();
        let mut shares: Vec<f64> = weights.iter().map(|w| w / sum * weights.len() as f64).collect();
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|i| shares[*i as usize] < 1.0);
        let mut cells: Vec<Cell> = (0..weights.len() as u32).map(|i| Cell { threshold: u64::MAX, alias: i }).collect();
        while let (Some(low), Some(high)) = (poor.pop(), rich.last().copied()) {
            let share = shares[low as usize];
            cells[low as usize] = Cell { threshold: (share * 2f64.powi(64)) as u64, alias: high };
            let left = (shares[high as usize] + share) - 1.0;
            shares[high as usize] = left;
            if left < 1.0 {
                rich.pop();
                poor.push(high);
            }
        }
        AliasTable { cells }
    }

    /// Draws a number. One word gives the cell (its product's high half) and
    /// the place in the cell (the low half, uniform up to n / 2^64).
    pub fn draw(&self, chance: &mut Stream) -> u32 {
        let product = chance.word() as u128 * self.cells.len() as u128;
        let index = (product >> 64) as usize;
        let cell = self.cells[index];
        if (product as u64) < cell.threshold { index as u32 } else { cell.alias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl AliasTable {
        /// The exact probability of each number, from the cells.
        fn probabilities(&self) -> Vec<f64> {
            let mut found = vec![0.0; self.cells.len()];
            for (index, cell) in self.cells.iter().enumerate() {
                let own = cell.threshold as f64 / 2f64.powi(64);
                found[index] += own / self.cells.len() as f64;
                found[cell.alias as usize] += (1.0 - own) / self.cells.len() as f64;
            }
            found
        }
    }

    proptest! {
        #[test]
        fn the_table_holds_the_distribution(weights in prop::collection::vec(0.001f64..100.0, 1..200)) {
            let sum: f64 = weights.iter().sum();
            let found = AliasTable::new(&weights).probabilities();
            for (weight, probability) in weights.iter().zip(found) {
                prop_assert!((weight / sum - probability).abs() < 1e-12);
            }
        }
    }
}
