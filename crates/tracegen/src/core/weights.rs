//! Draws among items whose weights come and go, exactly and in logarithmic time (a Fenwick tree).

use super::chance::Stream;

/// The weights of items that stand one after the other. Weights are whole numbers, so that a weight
/// that is removed leaves nothing behind.
pub struct Weights {
    /// Node i, counted from 1, holds the sum of the last `lowest_bit(i)` weights up to item i - 1.
    nodes: Vec<u64>,
    total: u64,
}

impl Weights {
    /// Items with these weights, whose sum fits in 63 bits.
    pub fn new(weights: impl Iterator<Item = u64>) -> Weights {
        let mut nodes: Vec<u64> = weights.collect();
        let total = nodes.iter().sum();
        for node in 1..=nodes.len() {
            let parent = node + lowest_bit(node);
            if parent <= nodes.len() {
                nodes[parent - 1] += nodes[node - 1];
            }
        }
        Weights { nodes, total }
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds an item behind the last one.
    pub fn push(&mut self, weight: u64) {
        let node = self.nodes.len() + 1;
        // The items below the node that are there already.
        let below = self.before(node - 1) - self.before(node - lowest_bit(node));
        self.nodes.push(weight + below);
        self.total += weight;
    }

    /// Takes the weight of an item away; returns it. The item keeps its place, and is drawn no more.
    pub fn remove(&mut self, item: usize) -> u64 {
        let weight = self.before(item + 1) - self.before(item);
        let mut node = item + 1;
        while node <= self.nodes.len() {
            self.nodes[node - 1] -= weight;
            node += lowest_bit(node);
        }
        self.total -= weight;
        weight
    }

    /// The sum of the weights before an item.
    pub fn before(&self, item: usize) -> u64 {
        let (mut node, mut sum) = (item, 0);
        while node > 0 {
            sum += self.nodes[node - 1];
            node -= lowest_bit(node);
        }
        sum
    }

    /// The item that holds this point, counted from 0, of the line of all weights. The point is below
    /// the total.
    pub fn find(&self, mut point: u64) -> usize {
        let (mut item, mut step) = (0, self.nodes.len().checked_ilog2().map_or(0, |bits| 1 << bits));
        while step > 0 {
            if let Some(sum) = self.nodes.get(item + step - 1)
                && *sum <= point
            {
                item += step;
                point -= sum;
            }
            step >>= 1;
        }
        item
    }

    /// An item in proportion to its weight. There is a weight above 0.
    pub fn draw(&self, chance: &mut Stream) -> usize {
        self.find(chance.below(self.total))
    }
}

/// The lowest bit that is set.
fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Sums and points are those of a plain list, whatever is added and removed.
        #[test]
        fn the_tree_agrees_with_a_list(
            initial in prop::collection::vec(0u64..9, 0..40),
            changes in prop::collection::vec((any::<bool>(), 0u64..9), 0..80),
        ) {
            let (mut list, mut tree) = (initial.clone(), Weights::new(initial.into_iter()));
            for (removes, number) in changes {
                if removes && !list.is_empty() {
                    let item = number as usize % list.len();
                    prop_assert_eq!(tree.remove(item), std::mem::take(&mut list[item]));
                } else {
                    list.push(number);
                    tree.push(number);
                }
                prop_assert_eq!(tree.total(), list.iter().sum::<u64>());
                let line: Vec<usize> =
                    list.iter().enumerate().flat_map(|(item, weight)| vec![item; *weight as usize]).collect();
                for (point, item) in line.iter().enumerate() {
                    prop_assert_eq!(tree.find(point as u64), *item);
                }
                prop_assert_eq!(tree.before(list.len()), tree.total());
            }
        }
    }
}
