//! Statistics of a data set and a trace, counted by fragment and merged.

use std::collections::BTreeMap;

use schemas::manifest::Shares;
use schemas::spec::SpecOf;
use schemas::workload::social::{
    Bucket, Histogram, SocialStatistics, SocialWorkload, SocialiteStatistics, TargetStatistics,
};
use serde::{Deserialize, Serialize};

use crate::social::activity::Activity;
use crate::social::initial::Initial;
use crate::social::population::Population;
use crate::social::top_fifth::{TopFifth, fifth};
use crate::social::walls;

/// For a number of something: how many members have it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Tally(BTreeMap<u64, u64>);

impl Tally {
    /// Counts a member with this number.
    pub(crate) fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    /// Adds the counts of another fragment.
    pub(crate) fn merge(&mut self, other: &Tally) {
        for (number, members) in &other.0 {
            *self.0.entry(*number).or_default() += members;
        }
    }

    fn members(&self) -> u64 {
        self.0.values().sum()
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(number, members)| number * members).sum()
    }

    /// A histogram with the ranges 0, 1, 2 to 3, 4 to 7 and so on.
    pub(crate) fn histogram(&self) -> Histogram {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (number, members) in &self.0 {
            match buckets.last_mut() {
                Some(bucket) if *number <= bucket.to => bucket.members += members,
                _ => {
                    let from = number.checked_ilog2().map_or(0, |bits| 1 << bits);
                    // Numbers have 64 bits, so the highest range ends with the last number.
                    let to = if from == 0 { 0 } else { from + (from - 1) };
                    buckets.push(Bucket { from, to, members: *members });
                }
            }
        }
        Histogram {
            min: self.0.keys().next().copied().unwrap_or_default(),
            mean: self.total() as f64 / self.members().max(1) as f64,
            max: self.0.keys().next_back().copied().unwrap_or_default(),
            buckets,
        }
    }

    /// The share of the total that belongs to the fifth of the members with the highest numbers; 0
    /// if the total is 0.
    pub(crate) fn share_of_top_fifth(&self) -> f64 {
        let mut left = fifth(self.members());
        let mut theirs = 0;
        for (number, members) in self.0.iter().rev() {
            let taken = left.min(*members);
            theirs += number * taken;
            left -= taken;
        }
        theirs as f64 / self.total().max(1) as f64
    }
}

/// How many friends, invitations and resources the members of a fragment have before the first session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Degrees {
    friends: Tally,
    pending: Tally,
    wall_resources: Tally,
}

impl Degrees {
    /// The degrees of a fragment's members.
    pub(crate) fn of(spec: &SpecOf<SocialWorkload>, initial: &Initial, fragment: u32) -> Degrees {
        let mut degrees = Degrees::default();
        for position in 0..initial.len() as u32 {
            degrees.friends.add(initial.friend_count(position) as u64);
            degrees.pending.add(initial.pending_count(position) as u64);
        }
        for count in walls::counts(spec, initial, &initial.positions_by_member(), fragment) {
            degrees.wall_resources.add(count);
        }
        degrees
    }

    /// Adds the degrees of another fragment.
    pub(crate) fn merge(&mut self, other: &Degrees) {
        self.friends.merge(&other.friends);
        self.pending.merge(&other.pending);
        self.wall_resources.merge(&other.wall_resources);
    }
}

/// Draws of members as targets: members, strangers, owners of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct References {
    all: u64,
    to_top_fifth: u64,
}

impl References {
    /// Counts a draw.
    pub(crate) fn add(&mut self, is_to_top_fifth: bool) {
        self.all += 1;
        self.to_top_fifth += is_to_top_fifth as u64;
    }

    /// Adds the counts of another fragment.
    pub(crate) fn merge(&mut self, other: References) {
        self.all += other.all;
        self.to_top_fifth += other.to_top_fifth;
    }
}

/// How often members acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SocialiteCounts {
    /// All sessions.
    all: u64,
    /// The sessions of the member who has the most.
    of_most_active: u64,
    /// The sessions of the most popular fifth.
    of_top_fifth: u64,
}

impl SocialiteCounts {
    /// The counts of a fragment, from each member's sessions and whether they are in the top fifth.
    pub(crate) fn of(sessions: &[u64], in_top_fifth: &[bool]) -> SocialiteCounts {
        let top = sessions.iter().zip(in_top_fifth).filter(|(_, is_in)| **is_in);
        SocialiteCounts {
            all: sessions.iter().sum(),
            of_most_active: sessions.iter().copied().max().unwrap_or_default(),
            of_top_fifth: top.map(|(sessions, _)| sessions).sum(),
        }
    }

    /// Adds the counts of another fragment, which has other members.
    pub(crate) fn merge(&mut self, other: SocialiteCounts) {
        self.all += other.all;
        self.of_most_active = self.of_most_active.max(other.of_most_active);
        self.of_top_fifth += other.of_top_fifth;
    }

    /// The statistics of the manifest, with the window asked for and the expected shares.
    fn statistics(&self, asked: u64, activity: &Activity, top: &TopFifth) -> SocialiteStatistics {
        let share = |sessions: u64| sessions as f64 / self.all.max(1) as f64;
        SocialiteStatistics {
            unique_window_asked: asked,
            unique_window: activity.window,
            most_active: Shares {
                distribution: activity.most_active_by_distribution,
                expected: activity.most_active,
                achieved: share(self.of_most_active),
            },
            top_fifth: Shares {
                distribution: top.share,
                expected: activity.top_fifth,
                achieved: share(self.of_top_fifth),
            },
        }
    }
}

/// How members were drawn in the sessions of a fragment.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Drawing {
    /// How often members acted.
    pub(crate) socialites: SocialiteCounts,
    /// Draws of members as targets.
    pub(crate) targets: References,
}

/// What is counted of a fragment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tallies {
    pub(crate) degrees: Degrees,
    pub(crate) drawing: Drawing,
}

impl Tallies {
    /// Adds those of another fragment.
    pub(crate) fn merge(&mut self, other: &Tallies) {
        self.degrees.merge(&other.degrees);
        self.drawing.socialites.merge(other.drawing.socialites);
        self.drawing.targets.merge(other.drawing.targets);
    }
}

/// How many threads the trace can keep busy, and the statistics of the manifest.
pub(crate) fn statistics(
    spec: &SpecOf<SocialWorkload>,
    population: &Population,
    top: &TopFifth,
    Tallies { degrees, drawing }: &Tallies,
) -> (u64, SocialStatistics) {
    let activity = Activity::new(spec, population, top);
    let targets = drawing.targets.to_top_fifth as f64 / drawing.targets.all.max(1) as f64;
    let statistics = SocialStatistics {
        friends: degrees.friends.histogram(),
        pending: degrees.pending.histogram(),
        wall_resources: degrees.wall_resources.histogram(),
        socialites: drawing.socialites.statistics(spec.own.access.unique_window, &activity, top),
        targets: TargetStatistics {
            top_fifth: Shares { distribution: top.share, expected: top.share, achieved: targets },
        },
        friends_of_top_fifth: degrees.friends.share_of_top_fifth(),
    };
    (activity.threads_max(), statistics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(numbers: &[u64]) -> Tally {
        let mut tally = Tally::default();
        numbers.iter().for_each(|number| tally.add(*number));
        tally
    }

    #[test]
    fn buckets_are_powers_of_two_and_leave_out_the_empty() {
        let mut numbers = tally(&[0, 0, 1, 2, 3]);
        numbers.merge(&tally(&[3, 7, 16, u64::MAX >> 8]));
        let histogram = numbers.histogram();
        let buckets: Vec<(u64, u64, u64)> = histogram.buckets.iter().map(|b| (b.from, b.to, b.members)).collect();
        let expect = [(0, 0, 2), (1, 1, 1), (2, 3, 3), (4, 7, 1), (16, 31, 1), (1 << 55, u64::MAX >> 8, 1)];
        assert_eq!(buckets, expect);
        assert_eq!((histogram.min, histogram.max), (0, u64::MAX >> 8));
        assert_eq!(tally(&[1, 2, 6]).histogram().mean, 3.0);
        assert_eq!(Tally::default().histogram(), Histogram::default());
    }

    #[test]
    fn the_top_fifth_is_rounded_up_and_has_its_share() {
        let check = |numbers: &[u64], expect: f64| assert_eq!(tally(numbers).share_of_top_fifth(), expect);
        check(&[1, 1, 1, 1, 6], 0.6);
        // A fifth of six members is two; the second one is one of three equals.
        check(&[1, 2, 2, 2, 1, 8], 10.0 / 16.0);
        check(&[0, 0], 0.0);
        check(&[4; 10], 0.2);
    }

    #[test]
    fn the_top_fifth_of_equals_is_a_fifth() {
        for (access, expect) in [("uniform", 0.2), ("zipfian", 0.59)] {
            let text = format!(
                "name = 't'\nsessions = 1\n[data]\nmembers = 1_000\n[access]\ndistribution = '{access}'\n\
                 [mix]\nview_profile = 1\n"
            );
            let spec = SpecOf::<SocialWorkload>::parse(&text, "t.toml").unwrap();
            let top = TopFifth::new(&Population::new(&spec).unwrap());
            assert_eq!((0..1_000).filter(|member| top.has(*member)).count(), 200);
            assert!((top.share - expect).abs() < 0.01, "{access}: {}", top.share);
        }
    }
}
