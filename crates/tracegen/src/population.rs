//! Who the members are: how popular each is, and which fragment she belongs to
//! (D-Zipfian, bg-2013 section E).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemas::spec::{Distribution, Spec};

use crate::GenerateError;
use crate::alias::AliasTable;
use crate::chance::Stream;
use crate::ring::Ring;

/// The members of all fragments.
pub(crate) struct Population {
    /// The members of each fragment.
    pub(crate) rings: Vec<Ring>,
    /// The share of all draws that fall on each fragment.
    pub(crate) weights: Vec<f64>,
    /// The weight of each member, by id.
    popularity: Vec<f64>,
}

/// What a fragment's remaining share is compared by in the heap: the largest
/// first, then the lowest fragment.
struct Remaining {
    share: f64,
    fragment: Reverse<u32>,
}

impl Ord for Remaining {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.share.total_cmp(&other.share).then(self.fragment.cmp(&other.fragment))
    }
}

impl PartialOrd for Remaining {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Remaining {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Remaining {}

impl Population {
    /// Deals the members of a checked specification to its fragments.
    pub(crate) fn new(spec: &Spec) -> Result<Population, GenerateError> {
        let members = spec.data.members as u32;
        let mut by_rank: Vec<u32> = (0..members).collect();
        // The seed alone decides who is popular, whatever the number of fragments.
        Stream::new(spec.seed, "ranks", 0).shuffle(&mut by_rank);
        let mut popularity = vec![0.0; by_rank.len()];
        for (index, member) in by_rank.iter().enumerate() {
            popularity[*member as usize] = weight(spec, index as u64 + 1);
        }
        let total: f64 = by_rank.iter().map(|m| popularity[*m as usize]).sum();

        let target = total / spec.fragments as f64;
        let mut dealt: Vec<Vec<u32>> = vec![Vec::new(); spec.fragments as usize];
        let mut shares = vec![0.0; spec.fragments as usize];
        let mut heap: BinaryHeap<Remaining> =
            (0..spec.fragments).map(|f| Remaining { share: target, fragment: Reverse(f) }).collect();
        for member in by_rank {
            let Some(mut top) = heap.peek_mut() else { break };
            let fragment = top.fragment.0 as usize;
            top.share -= popularity[member as usize];
            shares[fragment] += popularity[member as usize];
            dealt[fragment].push(member);
        }

        let (friends, pending) = (spec.data.friends_per_member, spec.data.pending_per_member);
        let mut rings = Vec::with_capacity(dealt.len());
        for (fragment, members) in (0..spec.fragments).zip(dealt) {
            if (members.len() as u64) <= friends + 2 * pending {
                return Err(GenerateError::FewMembers {
                    fragment,
                    fragments: spec.fragments,
                    members: members.len() as u64,
                    friends,
                    pending,
                });
            }
            rings.push(Ring::new(members, friends, pending, Stream::new(spec.seed, "ring", fragment)));
        }
        // Twelve decimals: any JSON reader gets back the very same number, so
        // that everyone shares sessions between fragments alike.
        let weights = shares.iter().map(|s| (s / total * 1e12).round() / 1e12).collect();
        Ok(Population { rings, weights, popularity })
    }

    /// The weight of each member, by id.
    pub(crate) fn popularity(&self) -> &[f64] {
        &self.popularity
    }

    /// The distribution over the positions of a fragment's ring: the global one,
    /// rescaled.
    pub(crate) fn distribution(&self, fragment: u32) -> AliasTable {
        let weights: Vec<f64> =
            self.rings[fragment as usize].members().iter().map(|m| self.popularity[*m as usize]).collect();
        AliasTable::new(&weights)
    }
}

/// The weight of a rank, counted from 1. `libm`, because the standard library's
/// power may differ between platforms.
fn weight(spec: &Spec, rank: u64) -> f64 {
    match spec.access.distribution {
        Distribution::Uniform => 1.0,
        Distribution::Zipfian => libm::pow(rank as f64, -(1.0 - spec.access.theta)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Population {
        /// The global probability of each member.
        pub(crate) fn probabilities(&self) -> Vec<f64> {
            let total: f64 = self.popularity.iter().sum();
            self.popularity.iter().map(|p| p / total).collect()
        }
    }

    fn spec(members: u64, fragments: u32) -> Spec {
        let text = format!(
            "name = 't'\nsessions = 1\nfragments = {fragments}\n\
             [data]\nmembers = {members}\nfriends_per_member = 2\n[mix]\nview_profile = 1\n"
        );
        Spec::parse(&text, "t.toml").unwrap()
    }

    #[test]
    fn fragments_get_every_member_once_and_equal_shares() {
        let population = Population::new(&spec(10_000, 16)).unwrap();
        let mut all: Vec<u32> = population.rings.iter().flat_map(|r| r.members().to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
        for weight in &population.weights {
            assert!((weight - 1.0 / 16.0).abs() < 1e-4, "{weight}");
        }
        assert!((population.weights.iter().sum::<f64>() - 1.0).abs() < 1e-10);
    }

    /// Readers take the weights from JSON and must share sessions as the
    /// generator did, to the last bit.
    #[test]
    fn weights_survive_json() {
        for fragments in [3, 7, 13, 16] {
            let weights = Population::new(&spec(5_000, fragments)).unwrap().weights;
            let text = serde_json::to_string(&weights).unwrap();
            assert_eq!(serde_json::from_str::<Vec<f64>>(&text).unwrap(), weights);
        }
    }

    #[test]
    fn a_fragment_of_one_popular_member_is_refused() {
        let error = Population::new(&spec(30, 10)).err().unwrap().to_string();
        assert!(error.contains("data.friends_per_member, fragments: 2 friends"), "{error}");
        assert!(error.contains("fragment 0 of 10 has 1 "), "{error}");
    }
}
