//! What a trace set says of its social network and of the draws.

use serde::{Deserialize, Serialize};

use crate::workload::Shares;

/// Statistics of a data set and a trace, over all fragments, besides
/// [`active_threads_max`](crate::manifest::Manifest::active_threads_max). That is the number of sessions from one of the
/// most active socialite to her next (1 / `most_active.expected`), and at least `unique_window` and 1.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocialStatistics {
    /// Confirmed friends per member before the first session.
    pub friends: Histogram,
    /// Pending invitations to each member before the first session.
    pub pending: Histogram,
    /// Resources on each member's wall.
    pub wall_resources: Histogram,
    /// How the sessions are distributed over the socialites.
    pub socialites: SocialiteStatistics,
    /// How targets are drawn: members, strangers, owners of resources.
    pub targets: TargetStatistics,
    /// Share of all confirmed friendships (each counted for both sides) that
    /// the fifth of the members with the most friends has; 0 to 1.
    pub friends_of_top_fifth: f64,
}

/// How the sessions are distributed over the socialites.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocialiteStatistics {
    /// `access.unique_window` of the specification, in sessions of the whole trace.
    pub unique_window_asked: u64,
    /// The window in effect, in sessions of the whole trace. It is smaller than the requested one
    /// where half of a fragment's members are fewer than the fragment's share of it. No socialite
    /// acts twice within so many consecutive sessions of the global order. Each fragment rounds
    /// for itself: with F fragments this holds for F - 1 sessions less.
    pub unique_window: u64,
    /// Share of the sessions in which the most active socialite acts.
    pub most_active: Shares,
    /// Share of the sessions that belong to the fifth of the members who rank highest in the
    /// access distribution.
    pub top_fifth: Shares,
}

/// How the draws of targets are distributed over the members.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TargetStatistics {
    /// Share of the draws that go to the fifth of the members who rank highest in the access
    /// distribution. The expected share is that of the distribution.
    pub top_fifth: Shares,
}

/// The distribution of a number, such as friends, over the members.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub max: u64,
    /// Sorted by `from`; ranges without members are omitted.
    pub buckets: Vec<Bucket>,
}

/// The members whose number is in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The lowest number of the range.
    pub from: u64,
    /// The highest number of the range.
    pub to: u64,
    /// How many members have a number in the range.
    pub members: u64,
}
