//! No socialite acts twice within `access.unique_window` sessions.

use std::collections::BTreeMap;

use schemas::manifest::Manifest;
use schemas::share::next_fragment;

use crate::{generate_into, mixed, operations, statistics_of};

/// The fewest sessions from one session of a socialite to the same socialite's next: among the
/// sessions of each fragment alone, and among all sessions in the global order.
fn shortest_returns(settings: &[&str]) -> (Manifest, Vec<u64>, u64) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = generate_into(&mixed(settings), &folder, 2);
    let socialites: Vec<Vec<u64>> = manifest
        .fragments
        .iter()
        .map(|counts| {
            let rows = operations(&manifest, &folder, counts.fragment);
            rows.iter().filter(|row| row.step == 0).map(|row| row.operation.socialite).collect()
        })
        .collect();
    let shortest = |order: &mut dyn Iterator<Item = u64>| {
        let mut last = BTreeMap::new();
        let returns = (0u64..).zip(order).filter_map(|(at, socialite)| Some(at - last.insert(socialite, at)?));
        returns.min().unwrap_or(u64::MAX)
    };
    let alone = socialites.iter().map(|of| shortest(&mut of.iter().copied())).collect();
    let mut positions = vec![0; socialites.len()];
    let mut global = (0..manifest.sessions()).map(|_| {
        let fragment = next_fragment(&manifest.weights(), &positions);
        positions[fragment] += 1;
        socialites[fragment][positions[fragment] as usize - 1]
    });
    let global = shortest(&mut global);
    (manifest, alone, global)
}

/// In a fragment the guarantee is exact. Over all fragments it is one session less for each other
/// fragment, because each fragment rounds its place in the global order.
#[test]
fn no_socialite_acts_twice_within_the_window() {
    for (fragments, window, weights) in
        [(1, 300, ""), (2, 100, ""), (3, 64, "3, 1, 2"), (8, 200, ""), (4, 10, "1, 2, 3, 4"), (1, 1, ""), (2, 2, "")]
    {
        let settings = [
            format!("fragments={fragments}"),
            format!("access.unique_window={window}"),
            format!("fragment_weights=[{weights}]"),
            "data.members=1200".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (manifest, alone, global) = shortest_returns(&settings);
        for (counts, shortest) in manifest.fragments.iter().zip(alone) {
            // The window is no longer than promised: popular members act again as soon as it ends.
            assert_eq!(shortest, (window as f64 * counts.weight).ceil() as u64, "{settings:?}: {counts:?}");
        }
        assert!(global + fragments > window, "{settings:?}: a socialite acts again after {global} sessions");
        assert_eq!(statistics_of(&manifest).socialites.unique_window, window);
    }
}

#[test]
fn without_a_window_socialites_act_again_at_once() {
    let (manifest, alone, global) = shortest_returns(&["access.unique_window=0", "fragments=1"]);
    assert_eq!((alone, global), (vec![1], 1));
    assert_eq!(statistics_of(&manifest).socialites.unique_window, 0);
}

/// The default window suits any population: it is at most half of a small one.
#[test]
fn the_window_is_at_most_half_of_the_members() {
    for (members, fragments, asked, in_effect) in
        [(40, 1, "512", 20), (41, 1, "512", 20), (40, 1, "4294967296", 20), (60, 2, "512", 28), (6, 1, "512", 3)]
    {
        let settings = [
            format!("data.members={members}"),
            format!("fragments={fragments}"),
            format!("access.unique_window={asked}"),
            "data.friends_per_member=2".into(),
            "data.pending_per_member=0".into(),
            "sessions=5000".into(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let (manifest, alone, global) = shortest_returns(&settings);
        for (counts, shortest) in manifest.fragments.iter().zip(alone) {
            assert_eq!(shortest, counts.actors / 2, "{settings:?}");
        }
        let socialites = statistics_of(&manifest).socialites;
        assert_eq!((socialites.unique_window, socialites.unique_window_asked), (in_effect, asked.parse().unwrap()));
        assert!(global + fragments > in_effect, "{settings:?}: a socialite acts again after {global} sessions");
        assert!(manifest.active_threads_max >= in_effect, "{socialites:?}");
    }
    // A fragment of one member has no other member to draw.
    let one = ["data.members=1", "data.friends_per_member=0", "data.pending_per_member=0", "fragments=1"];
    let (manifest, alone, _) = shortest_returns(&[&one[..], &["mix={list_friends=1}", "sessions=9"]].concat());
    let socialites = statistics_of(&manifest).socialites;
    assert_eq!((alone, socialites.unique_window, manifest.active_threads_max), (vec![1], 1, 1));
}
