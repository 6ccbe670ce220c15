//! Counts the statistics of the manifest again, from the tables.

use std::collections::BTreeMap;

use schemas::workload::social::Histogram;

use crate::model::Model;
use crate::{generate_into, mixed, operations, statistics_of};

/// Compares a histogram with the numbers that it was made from.
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
    let statistics = statistics_of(&manifest);
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

/// The popular fifth gets its share of the targets by the distribution. It gets the same share of
/// the sessions when socialites may act again at once.
#[test]
fn the_popular_fifth_gets_its_share() {
    let weight = |theta: f64, rank: u32| libm::pow(rank as f64, theta - 1.0);
    for (theta, fragments) in [(0.27, 1), (0.27, 4), (0.9, 1)] {
        let settings = [
            format!("access.theta={theta}"),
            format!("fragments={fragments}"),
            "data.members=1000".into(),
            "access.unique_window=0".into(),
            "sessions=100000".into(),
            // The mix has no sessions with strangers: popular members have fewer of them.
            "mix={list_friends=3,view_comments=2,post_comment_session=2,accept_friend_request_session=1}".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let dir = tempfile::tempdir().unwrap();
        let manifest = generate_into(&mixed(&settings), &dir.path().join("t"), 2);
        let sum = |ranks: u32| (1..=ranks).map(|rank| weight(theta, rank)).sum::<f64>();
        let statistics = statistics_of(&manifest);
        for shares in [statistics.targets.top_fifth, statistics.socialites.top_fifth] {
            assert!((shares.distribution - sum(200) / sum(1_000)).abs() < 1e-9, "{statistics:?}");
            assert!((shares.expected - shares.distribution).abs() < 1e-9, "{statistics:?}");
            assert!((shares.achieved - shares.expected).abs() < 0.006, "{theta}: {shares:?}");
        }
        let most = statistics.socialites.most_active;
        assert!((most.distribution - 1.0 / sum(1_000)).abs() < 1e-9, "{statistics:?}");
        assert_eq!(manifest.active_threads_max, (1.0 / most.expected) as u64);
    }
}

/// With a window, socialites differ from the distribution as the model expects, and targets do not
/// differ.
#[test]
fn the_window_levels_socialites_and_leaves_targets() {
    for (fragments, members, window, in_effect) in [(1, 1_000, 256, 256), (4, 1_000, 200, 200), (1, 200, 512, 100)] {
        let settings = [
            format!("fragments={fragments}"),
            format!("data.members={members}"),
            format!("access.unique_window={window}"),
            "sessions=100000".into(),
            "mix={list_friends=3,view_comments=2}".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("t");
        let manifest = generate_into(&mixed(&settings), &folder, 2);
        let (socialites, targets) = (statistics_of(&manifest).socialites, statistics_of(&manifest).targets.top_fifth);
        assert_eq!((socialites.unique_window_asked, socialites.unique_window), (window, in_effect));
        assert!((targets.achieved - targets.distribution).abs() < 0.006, "{targets:?}");
        assert_eq!(targets.expected, targets.distribution);
        let (most, fifth) = (socialites.most_active, socialites.top_fifth);
        assert_eq!(fifth.distribution, targets.distribution);
        assert!(fifth.expected < fifth.distribution - 0.02, "{fifth:?}");
        assert!((fifth.achieved - fifth.expected).abs() < 0.006, "{fifth:?}");
        assert!(most.expected < most.distribution / 3.0, "{most:?}");
        assert!((most.achieved / most.expected - 1.0).abs() < 0.1, "{most:?}");
        assert!(manifest.active_threads_max >= in_effect, "{socialites:?}");
        assert!((manifest.active_threads_max as f64 * most.expected - 1.0).abs() < 0.01, "{socialites:?}");

        // The manifest's figure must match the trace.
        let mut sessions = BTreeMap::new();
        let rows = (0..fragments).flat_map(|fragment| operations(&manifest, &folder, fragment));
        rows.for_each(|row| *sessions.entry(row.operation.socialite).or_insert(0u64) += 1);
        assert_eq!(most.achieved, *sessions.values().max().unwrap() as f64 / 100_000.0);
    }
}

/// The statistics of the data set do not depend on the number of sessions; the counts of sessions do.
#[test]
fn a_longer_trace_has_the_same_data_set_statistics() {
    let of = |sessions: &str| {
        let dir = tempfile::tempdir().unwrap();
        generate_into(&mixed(&[sessions]), &dir.path().join("t"), 2)
    };
    let (short, long) = (of("sessions=1000"), of("sessions=3000"));
    let histograms = |s: schemas::workload::social::SocialStatistics| (s.friends, s.pending, s.wall_resources);
    assert_eq!(histograms(statistics_of(&short)), histograms(statistics_of(&long)));
    let total = |of: &BTreeMap<String, u64>| of.values().sum::<u64>();
    assert!(total(&long.ended_early) > total(&short.ended_early));
}
