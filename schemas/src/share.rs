//! How a number of sessions is shared between fragments of unequal weight.
//!
//! Session k (from 0) of a fragment with weight w falls due at virtual time
//! (k + 1) / w; all sessions of a trace set in the order of that time (ties by
//! fragment) are its *global order*. The first N of it are each fragment's
//! share of N sessions, so a longer trace never takes a session away from a
//! fragment, and a replayer that works on several fragments interleaves them
//! in this order.

/// The virtual time at which session `index` of a fragment falls due.
fn due(index: u64, weight: f64) -> f64 {
    (index + 1) as f64 / weight
}

/// Each fragment's share of the first `total` sessions of the global order.
///
/// Weights are positive and finite; their unit does not matter.
pub fn sessions_by_fragment(weights: &[f64], total: u64) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    // A little below the exact quota, so that rounding never hands out too much.
    let mut shares: Vec<u64> =
        weights.iter().map(|w| ((w / sum) * total as f64 * (1.0 - 1e-12) - 1.0).floor().max(0.0) as u64).collect();
    let mut given: u64 = shares.iter().sum();
    while given < total {
        let next = next_fragment(weights, &shares);
        shares[next] += 1;
        given += 1;
    }
    shares
}

/// The fragment of the session that follows in the global order when
/// `positions` sessions of each fragment have been taken.
pub fn next_fragment(weights: &[f64], positions: &[u64]) -> usize {
    let candidates = weights.iter().copied().zip(positions.iter().copied()).enumerate();
    next_among(candidates.map(|(fragment, (weight, position))| (fragment, weight, position))).unwrap_or(0)
}

/// Like [`next_fragment`], for some of the fragments: (number, weight,
/// position), by rising number.
pub fn next_among(candidates: impl Iterator<Item = (usize, f64, u64)>) -> Option<usize> {
    let mut best = None;
    for (fragment, weight, position) in candidates {
        let at = due(position, weight);
        if best.is_none_or(|(_, earliest)| at < earliest) {
            best = Some((fragment, at));
        }
    }
    best.map(|(fragment, _)| fragment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The closed form gives what dealing one by one gives.
        #[test]
        fn shares_are_the_prefix_of_the_global_order(
            weights in prop::collection::vec(0.01f64..5.0, 1..9), total in 0u64..2000,
        ) {
            let mut dealt = vec![0; weights.len()];
            for _ in 0..total {
                let next = next_fragment(&weights, &dealt);
                dealt[next] += 1;
            }
            prop_assert_eq!(sessions_by_fragment(&weights, total), dealt);
        }
    }

    #[test]
    fn equal_weights_take_turns() {
        assert_eq!(sessions_by_fragment(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
    }
}
