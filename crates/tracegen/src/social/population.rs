//! The members: how popular each is, and which fragment each belongs to (D-Zipfian, bg-2013 section E).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemas::spec::SpecOf;
use schemas::workload::social::{Assignment, Distribution, SocialWorkload};

use crate::core::alias::AliasTable;
use crate::core::chance::Stream;
use crate::core::error::GenerateError;
use crate::social::assigned::{Assigned, Wanted};
use crate::social::initial::Initial;
use crate::social::ring::Ring;

/// How far a fragment's share of all draws may be from its weight, relative to the weight. With
/// many members the difference is much smaller; with few it cannot be.
const SHARE_TOLERANCE: f64 = 0.05;

/// A fragment's window, in its own sessions: its share of the window that the specification asks
/// for, and at most half of its members, so that there are always other members to draw.
pub(crate) fn fragment_window(asked: u64, weight: f64, members: u64) -> u64 {
    fragment_share(asked, weight).min(members / 2)
}

/// A fragment's share of the window that the specification asks for.
pub(crate) fn fragment_share(asked: u64, weight: f64) -> u64 {
    (asked as f64 * weight).ceil() as u64
}

/// The members of all fragments.
pub(crate) struct Population {
    /// The members of each fragment and their initial relations.
    pub(crate) initial: Vec<Initial>,
    /// Each fragment's share of all draws.
    pub(crate) weights: Vec<f64>,
    /// The weight of each member, by id.
    popularity: Vec<f64>,
}

/// A fragment's remaining share. The heap has the largest share first, and of equal shares the
/// lowest fragment.
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
    /// Distributes the members of a checked specification over its fragments.
    pub(crate) fn new(spec: &SpecOf<SocialWorkload>) -> Result<Population, GenerateError> {
        let members = spec.own.data.members as u32;
        let mut by_rank: Vec<u32> = (0..members).collect();
        // The seed alone decides which members are popular, whatever the number of fragments.
        Stream::new(spec.common.seed, "ranks", 0).shuffle(&mut by_rank);
        let mut popularity = vec![0.0; by_rank.len()];
        for (index, member) in by_rank.iter().enumerate() {
            popularity[*member as usize] = weight(spec, index as u64 + 1);
        }
        let total: f64 = by_rank.iter().map(|m| popularity[*m as usize]).sum();

        let asked = asked_shares(spec, total);
        let mut dealt: Vec<Vec<u32>> = vec![Vec::new(); asked.len()];
        let mut shares = vec![0.0; asked.len()];
        let mut heap: BinaryHeap<Remaining> = (0..spec.common.fragments)
            .zip(&asked)
            .map(|(fragment, share)| Remaining { share: *share, fragment: Reverse(fragment) })
            .collect();
        for member in &by_rank {
            let Some(mut top) = heap.peek_mut() else { break };
            let fragment = top.fragment.0 as usize;
            top.share -= popularity[*member as usize];
            shares[fragment] += popularity[*member as usize];
            dealt[fragment].push(*member);
        }
        if !spec.common.fragment_weights.is_empty() {
            check_shares(&asked, &shares, total)?;
        }
        let initial = assign(spec, &by_rank, dealt)?;
        // With twelve decimals every JSON reader gets exactly the same number, so that all readers
        // share sessions between fragments alike.
        let weights = shares.iter().map(|s| (s / total * 1e12).round() / 1e12).collect();
        Ok(Population { initial, weights, popularity })
    }

    /// The weight of each member, by id.
    pub(crate) fn popularity(&self) -> &[f64] {
        &self.popularity
    }

    /// The window of a fragment within which no socialite acts twice, in the fragment's own sessions.
    pub(crate) fn unique_window(&self, spec: &SpecOf<SocialWorkload>, fragment: u32) -> u64 {
        let (weight, members) = (self.weights[fragment as usize], self.initial[fragment as usize].len() as u64);
        fragment_window(spec.own.access.unique_window, weight, members)
    }

    /// The distribution over the positions of a fragment: the global one, rescaled.
    pub(crate) fn distribution(&self, fragment: u32) -> AliasTable {
        let weights: Vec<f64> =
            self.initial[fragment as usize].members().iter().map(|m| self.popularity[*m as usize]).collect();
        AliasTable::new(&weights)
    }
}

/// The access weight of a rank; ranks count from 1.
fn weight(spec: &SpecOf<SocialWorkload>, rank: u64) -> f64 {
    match spec.own.access.distribution {
        Distribution::Uniform => 1.0,
        Distribution::Zipfian => zipfian(rank, spec.own.access.theta),
    }
}

/// The Zipfian weight of a rank; ranks count from 1. It uses `libm`, because the standard library's
/// power function may differ between platforms.
fn zipfian(rank: u64, theta: f64) -> f64 {
    libm::pow(rank as f64, -(1.0 - theta))
}

/// The total weight that each fragment's members should have; `total` is that of all members.
fn asked_shares(spec: &SpecOf<SocialWorkload>, total: f64) -> Vec<f64> {
    if spec.common.fragment_weights.is_empty() {
        return vec![total / spec.common.fragments as f64; spec.common.fragments as usize];
    }
    // The weights are divided by the largest first, since the sum of large weights may not be finite.
    let largest = spec.common.fragment_weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = spec.common.fragment_weights.iter().map(|weight| weight / largest).sum();
    spec.common.fragment_weights.iter().map(|weight| weight / largest / sum * total).collect()
}

/// Refuses shares that differ too much from the specification's weights.
fn check_shares(asked: &[f64], found: &[f64], total: f64) -> Result<(), GenerateError> {
    for (fragment, (asked, found)) in (0..).zip(asked.iter().zip(found)) {
        if (found - asked).abs() > SHARE_TOLERANCE * asked {
            return Err(GenerateError::UnequalShare {
                fragment,
                asked: asked / total,
                found: found / total,
                what: "member",
            });
        }
    }
    Ok(())
}

/// The initial graph of each fragment's members.
fn assign(spec: &SpecOf<SocialWorkload>, by_rank: &[u32], dealt: Vec<Vec<u32>>) -> Result<Vec<Initial>, GenerateError> {
    let data = &spec.own.data;
    let (friends, pending) = (data.confirmed_per_member(), data.waiting_per_member());
    // The same bounds as in the check of the specification, which knows only the average.
    let needed = match data.friendships {
        Assignment::Ring => friends.ceil() + 2.0 * pending.ceil(),
        Assignment::Uniform | Assignment::Zipfian => 2.0 * (friends.ceil() + 2.0 * pending.ceil()),
    } as u64;
    let mut ranks = vec![0; if data.friendships == Assignment::Zipfian { by_rank.len() } else { 0 }];
    if data.friendships == Assignment::Zipfian {
        for (rank, member) in (1u32..).zip(by_rank) {
            ranks[*member as usize] = rank;
        }
    }
    let mut initial = Vec::with_capacity(dealt.len());
    for (fragment, members) in (0..spec.common.fragments).zip(dealt) {
        let count = members.len() as u64;
        if count <= needed {
            return Err(GenerateError::Infeasible(format!(
                "data.friends_per_member, fragments: fragment {fragment} of {} has {count} members (popular members \
                 leave room for few others); {friends} friends and {pending} invitations per member need more than \
                 {needed} members; lower data.friends_per_member or fragments, or raise data.members",
                spec.common.fragments
            )));
        }
        let wanted = Wanted {
            friendships: (count as f64 * friends / 2.0).round() as u64,
            invitations: (count as f64 * pending).round() as u64,
            seed: spec.common.seed,
            fragment,
        };
        initial.push(match data.friendships {
            Assignment::Ring => {
                let chance = Stream::new(spec.common.seed, "ring", fragment);
                Initial::Ring(Ring::new(members, friends as u64, pending as u64, chance))
            }
            Assignment::Uniform => Initial::Assigned(Assigned::new(members, |_| 1.0, wanted)),
            Assignment::Zipfian => {
                let weight = |member: u32| zipfian(ranks[member as usize] as u64, data.friendships_theta);
                Initial::Assigned(Assigned::new(members, weight, wanted))
            }
        });
    }
    Ok(initial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::share::sessions_by_fragment;

    impl Population {
        /// The global probability of each member.
        pub(crate) fn probabilities(&self) -> Vec<f64> {
            let total: f64 = self.popularity.iter().sum();
            self.popularity.iter().map(|p| p / total).collect()
        }
    }

    fn spec(members: u64, fragments: u32) -> SpecOf<SocialWorkload> {
        let text = format!(
            "name = 't'\nsessions = 1\nfragments = {fragments}\n\
             [data]\nmembers = {members}\nfriends_per_member = 2\n[mix]\nview_profile = 1\n"
        );
        SpecOf::<SocialWorkload>::parse(&text, "t.toml").unwrap()
    }

    #[test]
    fn fragments_get_every_member_once_and_equal_shares() {
        let population = Population::new(&spec(10_000, 16)).unwrap();
        let mut all: Vec<u32> = population.initial.iter().flat_map(|r| r.members().to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
        for weight in &population.weights {
            assert!((weight - 1.0 / 16.0).abs() < 1e-4, "{weight}");
        }
        assert!((population.weights.iter().sum::<f64>() - 1.0).abs() < 1e-10);
    }

    /// Readers take the weights from JSON and must share sessions exactly as the generator did.
    #[test]
    fn weights_survive_json() {
        for fragments in [3, 7, 13, 16] {
            let weights = Population::new(&spec(5_000, fragments)).unwrap().weights;
            let text = serde_json::to_string(&weights).unwrap();
            assert_eq!(serde_json::from_str::<Vec<f64>>(&text).unwrap(), weights);
        }
    }

    fn weighted(members: u64, weights: &str, data: &str) -> SpecOf<SocialWorkload> {
        let fragments = weights.split(',').count();
        let text = format!(
            "name = 't'\nsessions = 1\nfragments = {fragments}\nfragment_weights = [{weights}]\n\
             [data]\nmembers = {members}\n{data}\n[mix]\nview_profile = 1\n"
        );
        SpecOf::<SocialWorkload>::parse(&text, "t.toml").unwrap()
    }

    #[test]
    fn fragments_get_the_shares_of_their_weights() {
        for data in ["friends_per_member = 2", "friends_per_member = 2\nfriendships = 'zipfian'"] {
            let population = Population::new(&weighted(10_000, "1, 2e0, 5", data)).unwrap();
            for (weight, expect) in population.weights.iter().zip([0.125, 0.25, 0.625]) {
                assert!((weight - expect).abs() < 1e-4, "{weight} for {expect}");
            }
            let members: usize = population.initial.iter().map(Initial::len).sum();
            assert_eq!(members, 10_000);
        }
        let large = Population::new(&weighted(1_000, "1e308, 1e308", "")).unwrap();
        assert!((large.weights[0] - 0.5).abs() < 1e-3);
        let error = Population::new(&weighted(100, "1, 1000", "")).err().unwrap().to_string();
        assert!(error.starts_with("fragment_weights: fragment 0 should have 0.0999% of all draws"), "{error}");
    }

    /// Sessions of fragments of any weights together draw members by the one global distribution.
    #[test]
    fn the_union_of_weighted_fragments_follows_the_global_distribution() {
        const MEMBERS: usize = 2_000;
        const DRAWS: u64 = 1_000_000;
        // The value that chi-square exceeds by chance once in a thousand times (Wilson and Hilferty).
        let degrees = MEMBERS as f64 - 1.0;
        let spread = 2.0 / (9.0 * degrees);
        let critical = degrees * (1.0 - spread + 3.0902 * spread.sqrt()).powi(3);
        let global = Population::new(&weighted(MEMBERS as u64, "1", "")).unwrap().probabilities();
        let chi_square = |weights: &str, shares: Option<&[f64]>| -> f64 {
            let population = Population::new(&weighted(MEMBERS as u64, weights, "")).unwrap();
            let counts = sessions_by_fragment(shares.unwrap_or(&population.weights), DRAWS);
            let mut drawn = vec![0u64; MEMBERS];
            for (fragment, count) in (0u32..).zip(counts) {
                let distribution = population.distribution(fragment);
                let initial = &population.initial[fragment as usize];
                let mut chance = Stream::new(1, "test", fragment);
                for _ in 0..count {
                    drawn[initial.member(distribution.draw(&mut chance)) as usize] += 1;
                }
            }
            let parts = drawn.iter().zip(&global).map(|(n, p)| {
                let expect = p * DRAWS as f64;
                (*n as f64 - expect).powi(2) / expect
            });
            parts.sum()
        };
        for weights in ["1, 2, 5", "0.1, 0.7", "3, 1, 1, 1, 1, 1, 1, 4"] {
            let found = chi_square(weights, None);
            assert!(found < critical, "{weights}: chi-square {found} above {critical}");
        }
        // The test would notice if each fragment got equally many draws.
        assert!(chi_square("1, 2, 5", Some(&[1.0, 1.0, 1.0])) > critical);
    }

    /// A data set has as many drawn friendships and invitations as the specification asks for.
    #[test]
    fn relations_are_as_many_as_asked_for() {
        for assignment in ["uniform", "zipfian"] {
            let data = format!(
                "friends_per_member = 9\nconfirmed_share = 0.7\npending_per_member = 1\nfriendships = '{assignment}'"
            );
            let population = Population::new(&weighted(3_000, "1, 2, 5", &data)).unwrap();
            for initial in &population.initial {
                let members = initial.len() as f64;
                let positions = 0..initial.len() as u32;
                let friends: u32 = positions.clone().map(|p| initial.friend_count(p)).sum();
                let pending: u32 = positions.map(|p| initial.pending_count(p)).sum();
                assert_eq!(friends as f64, (members * 6.3 / 2.0).round() * 2.0);
                assert_eq!(pending as f64, (members * 3.7).round());
            }
        }
    }

    #[test]
    fn a_fragment_of_one_popular_member_is_refused() {
        let error = Population::new(&spec(30, 10)).err().unwrap().to_string();
        assert!(error.contains("2 friends and "), "{error}");
        assert!(error.contains("data.friends_per_member, fragments: fragment 0 of 10 has 1 "), "{error}");
    }
}
