//! The fifth of the members that is the most popular.

use crate::social::population::Population;

/// The fifth of all members with the highest ranks in the access distribution.
pub(crate) struct TopFifth {
    /// Indexed by the member's id.
    is_in: Vec<bool>,
    /// Their share of all draws by the distribution.
    pub(crate) share: f64,
}

impl TopFifth {
    /// Among members of equal popularity, those with the lowest ids rank highest.
    pub(crate) fn new(population: &Population) -> TopFifth {
        let popularity = population.popularity();
        let mut left = fifth(popularity.len() as u64) as usize;
        let mut sorted = popularity.to_vec();
        let (_, lowest, _) = sorted.select_nth_unstable_by(left - 1, |a, b| b.total_cmp(a));
        let lowest = *lowest;
        let mut is_in: Vec<bool> = popularity.iter().map(|p| *p > lowest).collect();
        left -= is_in.iter().filter(|is_in| **is_in).count();
        for (is_in, p) in is_in.iter_mut().zip(popularity) {
            if *p == lowest && left > 0 {
                *is_in = true;
                left -= 1;
            }
        }
        // The sum is taken by id, never in the order that the selection above leaves.
        let theirs: f64 = popularity.iter().zip(&is_in).filter(|(_, is_in)| **is_in).map(|(p, _)| p).sum();
        TopFifth { is_in, share: theirs / popularity.iter().sum::<f64>() }
    }

    /// Whether this member is in the fifth.
    pub(crate) fn has(&self, member: u64) -> bool {
        self.is_in[member as usize]
    }
}

/// A fifth of this many members, rounded up.
pub(crate) fn fifth(members: u64) -> u64 {
    members.div_ceil(5)
}
