//! The graph of a fragment before the first session, drawn pair by pair: some
//! members have more friends than others.
//!
//! The graph is stored as sorted lists, one behind the other. A friendship takes 8 bytes (it is in
//! two lists), an invitation 4 bytes (it is in the invitee's list). A member takes 4 bytes for the
//! id and 16 for the starts of the lists. Drawing takes another 12 bytes for each friendship or
//! invitation.

use crate::core::alias::AliasTable;
use crate::core::chance::Stream;
use crate::social::relation::Relation;

/// The number of rounds before the missing pairs are drawn uniformly. Where a few popular members
/// are friends of nearly all others, draws from the distribution find a new pair too rarely. If
/// only every twentieth draw finds one, 6 of 1,000 pairs are still missing after these rounds.
const ROUNDS_MAX: u32 = 100;

/// How many relations are drawn, and the seed and fragment of their random streams.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// Confirmed friendships.
    pub(crate) friendships: u64,
    /// Pending invitations.
    pub(crate) invitations: u64,
    /// The seed of the specification.
    pub(crate) seed: u64,
    /// The number of the fragment.
    pub(crate) fragment: u32,
}

/// Lists of positions, one for each member, each sorted.
struct Lists {
    /// Where each list begins, and where the last one ends.
    starts: Vec<usize>,
    elements: Vec<u32>,
}

impl Lists {
    /// The lists of (owner, element) pairs, in any order but with rising elements of each owner.
    fn new(owners: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut starts = vec![0; owners + 1];
        for (owner, _) in pairs.clone() {
            starts[owner as usize + 1] += 1;
        }
        for owner in 0..owners {
            starts[owner + 1] += starts[owner];
        }
        let mut next = starts.clone();
        let mut elements = vec![0; starts[owners]];
        for (owner, element) in pairs {
            elements[next[owner as usize]] = element;
            next[owner as usize] += 1;
        }
        Lists { starts, elements }
    }

    fn of(&self, owner: u32) -> &[u32] {
        &self.elements[self.starts[owner as usize]..self.starts[owner as usize + 1]]
    }
}

/// The members of a fragment in the order of their ids, and their relations.
pub(crate) struct Assigned {
    members: Vec<u32>,
    friends: Lists,
    inviters: Lists,
}

impl Assigned {
    /// Draws the relations of the members. Both sides of a relation are drawn in proportion to
    /// `weight`. No pair is drawn twice.
    ///
    /// At most about half of all pairs may be wanted, so that a uniform draw finds a new one soon.
    pub(crate) fn new(mut members: Vec<u32>, weight: impl Fn(u32) -> f64, wanted: Wanted) -> Assigned {
        members.sort_unstable();
        let count = members.len();
        if wanted.friendships + wanted.invitations == 0 {
            let none = || Lists::new(count, std::iter::empty());
            return Assigned { members, friends: none(), inviters: none() };
        }
        let weights: Vec<f64> = members.iter().map(|member| weight(*member)).collect();
        let sides = AliasTable::new(&weights);
        drop(weights);
        let stream = |purpose| Stream::new(wanted.seed, purpose, wanted.fragment);
        let friendships = draw_pairs(wanted.friendships, &sides, count, &[], stream("friendships"));
        let invitations = draw_pairs(wanted.invitations, &sides, count, &friendships, stream("invitations"));

        // The pairs are sorted. So each member gets first the friends at lower positions and then
        // those at higher ones, both in order: the list is sorted.
        let lower = friendships.iter().map(|pair| unpack(*pair)).map(|(low, high)| (high, low));
        let higher = friendships.iter().map(|pair| unpack(*pair));
        let friends = Lists::new(count, lower.chain(higher));
        // Both sides are drawn alike, so either may be the inviter.
        let mut toss = stream("inviters");
        let mut directed: Vec<(u32, u32)> = invitations
            .into_iter()
            .map(unpack)
            .map(|(low, high)| if toss.below(2) == 0 { (low, high) } else { (high, low) })
            .collect();
        directed.sort_unstable();
        let inviters = Lists::new(count, directed.iter().copied());
        Assigned { members, friends, inviters }
    }

    /// The members by position.
    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    /// The friends of a member, sorted.
    pub(crate) fn friends(&self, position: u32) -> &[u32] {
        self.friends.of(position)
    }

    /// The inviters whose invitations wait for a member, sorted.
    pub(crate) fn inviters(&self, position: u32) -> &[u32] {
        self.inviters.of(position)
    }

    /// The relation of the members at two different positions.
    pub(crate) fn relation(&self, a: u32, b: u32) -> Relation {
        let (short, other) = if self.friends(a).len() <= self.friends(b).len() { (a, b) } else { (b, a) };
        if self.friends(short).binary_search(&other).is_ok() {
            Relation::Friends
        } else if self.inviters(a).binary_search(&b).is_ok() {
            Relation::Invited { inviter: b }
        } else if self.inviters(b).binary_search(&a).is_ok() {
            Relation::Invited { inviter: a }
        } else {
            Relation::Strangers
        }
    }
}

/// An unordered pair as one number, with the lower position in the high half.
fn pack(a: u32, b: u32) -> u64 {
    (a.min(b) as u64) << 32 | a.max(b) as u64
}

/// The lower and the higher position of a pair.
fn unpack(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// Draws `wanted` different pairs that are not among the sorted `taken` ones, and returns them sorted.
///
/// Each round draws as many pairs as are missing. The result is that of drawing one by one until
/// there are enough, but this needs no table of pairs.
fn draw_pairs(wanted: u64, sides: &AliasTable, members: usize, taken: &[u64], mut chance: Stream) -> Vec<u64> {
    let wanted = wanted as usize;
    let mut round = 0;
    let mut pairs: Vec<u64> = Vec::with_capacity(wanted);
    while pairs.len() < wanted {
        let missing = wanted - pairs.len();
        let known = pairs.len();
        for _ in 0..missing {
            let (a, b) = if round < ROUNDS_MAX {
                (sides.draw(&mut chance), sides.draw(&mut chance))
            } else {
                (chance.below(members as u64) as u32, chance.below(members as u64) as u32)
            };
            if a != b && taken.binary_search(&pack(a, b)).is_err() {
                pairs.push(pack(a, b));
            }
        }
        pairs[known..].sort_unstable();
        // The stable sort merges two sorted runs in linear time.
        pairs.sort();
        pairs.dedup();
        round += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The weights of BG's Zipfian distribution; in these tests members are numbered by rank, from 0.
    fn zipfian(theta: f64) -> impl Fn(u32) -> f64 {
        move |member| libm::pow(member as f64 + 1.0, -(1.0 - theta))
    }

    fn assigned(members: u32, weight: impl Fn(u32) -> f64, friendships: u64, invitations: u64) -> Assigned {
        let wanted = Wanted { friendships, invitations, seed: 3, fragment: 0 };
        Assigned::new((0..members).collect(), weight, wanted)
    }

    proptest! {
        /// The lists and the relation of a pair say the same, and there are as
        /// many relations as asked for, up to half of all pairs.
        #[test]
        fn lists_and_relations_agree(
            count in 2u32..40, theta in 0.01f64..=1.0, filled in 0.0f64..=0.5, friendly in 0.0f64..=1.0,
        ) {
            let relations = (count * (count - 1) / 2) as f64 * filled;
            let friendships = (relations * friendly) as u64;
            let invitations = relations as u64 - friendships;
            let graph = assigned(count, zipfian(theta), friendships, invitations);
            let (mut friends, mut inviters) = (0, 0);
            for a in 0..count {
                friends += graph.friends(a).len() as u64;
                inviters += graph.inviters(a).len() as u64;
                prop_assert!(graph.friends(a).is_sorted() && graph.inviters(a).is_sorted());
                prop_assert!(!graph.friends(a).contains(&a) && !graph.inviters(a).contains(&a));
                for b in (0..count).filter(|b| *b != a) {
                    let relation = graph.relation(a, b);
                    prop_assert_eq!(relation, graph.relation(b, a));
                    let times = graph.friends(a).iter().filter(|f| **f == b).count();
                    prop_assert_eq!(times, (relation == Relation::Friends) as usize);
                    let times = graph.inviters(a).iter().filter(|i| **i == b).count();
                    prop_assert_eq!(times, (relation == Relation::Invited { inviter: b }) as usize);
                }
            }
            prop_assert_eq!((friends, inviters), (2 * friendships, invitations));
        }
    }

    /// The share of friendships (each counted for both sides) that the first fifth of the members
    /// has when pairs are drawn without repetition. Each pair exists with probability 1 - e^(-t p),
    /// for the t that gives the total.
    fn expected_share_of_top_fifth(weights: &[f64], friendships: f64) -> f64 {
        let sum: f64 = weights.iter().sum();
        let totals = |t: f64| {
            let (mut all, mut top) = (0.0, 0.0);
            for (i, a) in weights.iter().enumerate() {
                for (j, b) in weights.iter().enumerate().skip(i + 1) {
                    let there = 1.0 - libm::exp(-t * a * b / (sum * sum));
                    all += there;
                    top += there * ((i < weights.len() / 5) as u32 + (j < weights.len() / 5) as u32) as f64;
                }
            }
            (all, top / (2.0 * all))
        };
        let (mut low, mut high) = (0.0, 100.0 * friendships);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if totals(middle).0 < friendships { low = middle } else { high = middle }
        }
        totals(low).1
    }

    fn check_share_of_top_fifth(weight: impl Fn(u32) -> f64, from: f64, to: f64) {
        let (members, friendships) = (1_000, 5_000);
        let weights: Vec<f64> = (0..members).map(&weight).collect();
        let expect = expected_share_of_top_fifth(&weights, friendships as f64);
        assert!((from..to).contains(&expect), "{expect}");
        let graph = assigned(members, weight, friendships, 0);
        let top: usize = (0..members / 5).map(|position| graph.friends(position).len()).sum();
        let found = top as f64 / (2 * friendships) as f64;
        // Four standard deviations of 10,000 independent sides.
        assert!((found - expect).abs() < 0.02, "{found}, expected {expect}");
    }

    #[test]
    fn popular_members_have_more_friends() {
        check_share_of_top_fifth(zipfian(0.27), 0.45, 0.65);
    }

    #[test]
    fn uniform_assignment_gives_equal_shares() {
        check_share_of_top_fifth(|_| 1.0, 0.199, 0.201);
    }

    /// The first member takes part in nearly every draw, and can have 99
    /// friends at most.
    #[test]
    fn draws_end_when_popular_members_are_saturated() {
        let graph = assigned(100, |member| if member == 0 { 1e3 } else { 1.0 }, 1_500, 900);
        assert_eq!(graph.friends(0).len(), 99);
        let invitations: usize = (0..100).map(|position| graph.inviters(position).len()).sum();
        assert_eq!((graph.friends.elements.len(), invitations), (3_000, 900));
    }

    /// Data sets depend on these numbers: a change of them is a change of format.
    #[test]
    fn draws_are_pinned() {
        let graph = assigned(50, zipfian(0.27), 60, 40);
        assert_eq!(graph.friends(0), [1, 3, 5, 6, 7, 8, 10, 11, 17, 18, 23, 29, 45]);
        assert_eq!(graph.inviters(0), [2, 4, 13, 25, 35, 39]);
    }
}
