//! The statistics of the manifest, counted again from the tables.

use std::collections::BTreeMap;

use schemas::manifest::Histogram;

use crate::model::Model;
use crate::{generate_into, mixed};

/// Compares a histogram with the numbers that it was made of.
fn check(histogram: &Histogram, numbers: &[u64]) {
    assert_eq!(histogram.min, *numbers.iter().min().unwrap());
    assert_eq!(histogram.max, *numbers.iter().max().unwrap());
    assert_eq!(histogram.mean, numbers.iter().sum::<u64>() as f64 / numbers.len() as f64);
    let mut left: Vec<u64> = numbers.to_vec();
    for bucket in &histogram.buckets {
        assert!(
            bucket.from == 0 && bucket.to == 0 || bucket.from.is_power_of_two() && bucket.to == 2 * bucket.from - 1
        );
        let before = left.len();
        left.retain(|number| !(bucket.from..=bucket.to).contains(number));
        assert_eq!(bucket.members, (before - left.len()) as u64);
        assert!(bucket.members > 0);
    }
    assert!(left.is_empty(), "in no bucket: {left:?}");
}

#[test]
fn histograms_count_the_data_set() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = generate_into(&mixed(&["sessions=500", "data.resources_per_member=3"]), &folder, 2);
    let models = [Model::load(&folder, 0), Model::load(&folder, 1)];
    let count = |of: fn(&Model, u64) -> u64| -> Vec<u64> {
        models.iter().flat_map(|model| model.members().map(move |member| of(model, member))).collect()
    };
    let statistics = &manifest.statistics;
    check(&statistics.friends, &count(Model::friend_count));
    check(&statistics.pending, &count(Model::pending_count));
    let walls = count(|model, member| model.wall(member).len() as u64);
    check(&statistics.wall_resources, &walls);
    assert!(statistics.wall_resources.buckets.len() >= 4, "{statistics:?}");
    let mut friends = count(Model::friend_count);
    friends.sort_unstable_by(|a, b| b.cmp(a));
    let theirs = friends[..friends.len() / 5].iter().sum::<u64>() as f64;
    assert_eq!(statistics.friends_of_top_fifth, theirs / friends.iter().sum::<u64>() as f64);
}

/// The popular fifth gets the references that the distribution promises.
#[test]
fn the_popular_fifth_gets_its_share() {
    let weight = |theta: f64, rank: u32| libm::pow(rank as f64, theta - 1.0);
    for (theta, fragments) in [(0.27, 1), (0.27, 4), (0.9, 1)] {
        let settings = [
            format!("access.theta={theta}"),
            format!("fragments={fragments}"),
            "data.members=1000".into(),
            "sessions=100000".into(),
            // Strangers are left out: popular members have fewer.
            "mix={list_friends=3,view_comments=2,post_comment_session=2,accept_friend_request_session=1}".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let dir = tempfile::tempdir().unwrap();
        let manifest = generate_into(&mixed(&settings), &dir.path().join("t"), 2);
        let sum = |ranks: u32| (1..=ranks).map(|rank| weight(theta, rank)).sum::<f64>();
        let statistics = &manifest.statistics;
        assert!((statistics.expected_to_top_fifth - sum(200) / sum(1_000)).abs() < 1e-9, "{statistics:?}");
        let difference = statistics.references_to_top_fifth - statistics.expected_to_top_fifth;
        assert!(difference.abs() < 0.005, "{theta}: {difference}");
    }
}

/// A later session counts too: more sessions, other counts, the same data set.
#[test]
fn a_longer_trace_has_the_same_data_set_statistics() {
    let of = |sessions: &str| {
        let dir = tempfile::tempdir().unwrap();
        generate_into(&mixed(&[sessions]), &dir.path().join("t"), 2)
    };
    let (short, long) = (of("sessions=1000"), of("sessions=3000"));
    let histograms =
        |s: &schemas::manifest::Statistics| (s.friends.clone(), s.pending.clone(), s.wall_resources.clone());
    assert_eq!(histograms(&short.statistics), histograms(&long.statistics));
    let total = |of: &BTreeMap<String, u64>| of.values().sum::<u64>();
    assert!(total(&long.ended_early) > total(&short.ended_early));
}
