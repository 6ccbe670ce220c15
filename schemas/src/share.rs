//! Divides a number of sessions among fragments of unequal weight.
//!
//! Session k (from 0) of a fragment with weight w is due at virtual time (k + 1) / w. The *global
//! order* of a trace set is all its sessions in the order of that time (ties by fragment). A
//! fragment's share of N sessions is its part of the first N of that order. So a longer trace
//! never takes a session away from a fragment. A replayer that works on several fragments
//! interleaves them in this order.

/// The virtual time at which session `index` of a fragment is due.
fn due(index: u64, weight: f64) -> f64 {
    (index + 1) as f64 / weight
}

/// Each fragment's share of the first `total` sessions of the global order.
///
/// Weights are positive and finite; their unit does not matter.
pub fn sessions_by_fragment(weights: &[f64], total: u64) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    // A little below the exact quota, so that rounding never assigns too many sessions.
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

/// The position of each fragment after `sessions` more sessions of the global order, taken from
/// `positions` on. Replayers end an experiment independently, so a fragment can be ahead of the
/// global order. It then waits until the others have caught up.
pub fn ends_after(weights: &[f64], positions: &[u64], sessions: u64) -> Vec<u64> {
    let ends = |total| {
        let shares = sessions_by_fragment(weights, total).into_iter();
        shares.zip(positions).map(|(share, position)| share.max(*position)).collect::<Vec<u64>>()
    };
    let before: u64 = positions.iter().sum();
    let goal = before.saturating_add(sessions);
    // Each further session of the global order advances one fragment by one session or by none,
    // and `goal` of them are always enough.
    let total = least(0, goal, |total| ends(total).iter().sum::<u64>() >= goal);
    ends(total)
}

/// The shortest prefix of the global order in which each fragment has at least
/// `wanted` sessions.
pub fn sessions_enough(weights: &[f64], wanted: &[u64]) -> u64 {
    let sum: f64 = weights.iter().sum();
    let quota = |(weight, wanted): (&f64, &u64)| (*wanted as f64 + 1.0) / weight * sum;
    let most = weights.iter().zip(wanted).map(quota).fold(0.0, f64::max) as u64;
    // By rounding, a share may be smaller than its quota, but by at most one session.
    let most = most.saturating_add(2 * weights.len() as u64);
    least(wanted.iter().sum(), most, |total| {
        sessions_by_fragment(weights, total).iter().zip(wanted).all(|(share, wanted)| share >= wanted)
    })
}

/// The smallest number from `low` to `high` for which `holds` is true. `holds` must be true for
/// `high`, and for every number above one for which it is true.
fn least(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

/// The fragment of the session that follows in the global order when
/// `positions` sessions of each fragment have been taken.
pub fn next_fragment(weights: &[f64], positions: &[u64]) -> usize {
    let candidates = weights.iter().copied().zip(positions.iter().copied()).enumerate();
    next_among(candidates.map(|(fragment, (weight, position))| (fragment, weight, position))).unwrap_or(0)
}

/// Like [`next_fragment`], for some of the fragments: (number, weight, position), sorted by
/// number.
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
        /// The closed form gives the same as assigning the sessions one by one.
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

        /// From any positions, the result is the same as assigning one by one from the beginning
        /// and skipping the sessions that were already taken.
        #[test]
        fn ends_count_only_sessions_that_are_left(
            fragments in prop::collection::vec((0.01f64..5.0, 0u64..60), 1..7), sessions in 0u64..300,
        ) {
            let (weights, positions): (Vec<f64>, Vec<u64>) = fragments.into_iter().unzip();
            let (mut dealt, mut ends, mut left) = (vec![0; weights.len()], positions.clone(), sessions);
            while left > 0 {
                let next = next_fragment(&weights, &dealt);
                if dealt[next] == ends[next] {
                    ends[next] += 1;
                    left -= 1;
                }
                dealt[next] += 1;
            }
            prop_assert_eq!(ends_after(&weights, &positions, sessions), ends);
        }

        #[test]
        fn enough_is_enough_and_no_more(
            fragments in prop::collection::vec((0.01f64..5.0, 0u64..60), 1..7),
        ) {
            let (weights, wanted): (Vec<f64>, Vec<u64>) = fragments.into_iter().unzip();
            let has = |total| {
                let shares = sessions_by_fragment(&weights, total);
                shares.iter().zip(&wanted).all(|(share, wanted)| share >= wanted)
            };
            let total = sessions_enough(&weights, &wanted);
            prop_assert!(has(total) && (total == 0 || !has(total - 1)));
        }
    }

    #[test]
    fn equal_weights_take_turns() {
        assert_eq!(sessions_by_fragment(&[1.0, 1.0, 1.0], 10), [4, 3, 3]);
    }
}
