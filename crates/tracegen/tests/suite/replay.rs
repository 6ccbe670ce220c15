//! Every operation of a trace makes sense when replayed, and names the write it
//! has to wait for.

use std::collections::BTreeMap;

use proptest::prelude::*;
use schemas::digest::StateDigest;
use schemas::share::next_fragment;
use schemas::social::Action;
use schemas::spec::Spec;
use tracegen::{GenerateError, GenerateOptions, generate};

use crate::model::Model;
use crate::{busy, generate_into, operations};

/// Replays a whole trace set in the model; gives what it must leave after the
/// first `stop` sessions of the global order, and after all.
fn replay(spec: &Spec, stop: u64) -> Option<(StateDigest, StateDigest)> {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let options = GenerateOptions { threads: 1, ..GenerateOptions::default() };
    let manifest = match generate(spec, &folder, &options) {
        Err(GenerateError::FewMembers { .. }) => return None,
        generated => generated.unwrap(),
    };
    manifest.verify(&folder).unwrap();
    assert_eq!(manifest.sessions(), spec.sessions);
    let mut models: Vec<Model> = (0..spec.fragments).map(|f| Model::load(&folder, f)).collect();
    let rows: Vec<_> = (0..spec.fragments).map(|f| operations(&manifest, &folder, f)).collect();
    models.iter().for_each(|model| model.check_counts(&manifest));

    let whole = |models: &[Model]| {
        let mut digest = StateDigest::default();
        models.iter().for_each(|model| digest.merge(model.digest(&manifest)));
        digest
    };
    let mut positions = vec![0; rows.len()];
    for done in 0..spec.sessions {
        if done == stop {
            assert_eq!(tracegen::digest(&folder, Some(stop)).unwrap(), whole(&models));
        }
        let next = next_fragment(&manifest.weights(), &positions);
        models[next].replay(&rows[next][positions[next] as usize]);
        positions[next] += 1;
    }
    let found = tracegen::digest(&folder, None).unwrap();
    Some((found, whole(&models)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_make_sense_in_small_worlds(
        seed in 0u64..1000,
        (members, fragments) in (12u64..60, 1u64..4),
        (half_friends, pending) in (0u64..3, 0u64..4),
        (resources, comments) in (1u64..4, 0u64..3),
        (sessions, window) in (1u64..600, 0u64..100),
        uniform in any::<bool>(),
        shares in prop::collection::vec(0u32..4, 11),
    ) {
        let distribution = if uniform { "uniform" } else { "zipfian" };
        let mut settings = vec![
            format!("seed={seed}"),
            format!("sessions={sessions}"),
            format!("fragments={fragments}"),
            format!("data.members={}", members * fragments),
            format!("data.friends_per_member={}", 2 * half_friends),
            format!("data.pending_per_member={pending}"),
            format!("data.resources_per_member={resources}"),
            format!("data.comments_per_resource={comments}"),
            format!("access.dependency_window={window}"),
            format!("access.distribution={distribution}"),
        ];
        for (action, share) in Action::ALL.into_iter().zip(shares) {
            // One read has to be there.
            let share = if action == Action::ListFriends { 0.5 } else { share as f64 };
            settings.push(format!("mix.{}={share}", action.name()));
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        if let Some((found, expect)) = replay(&busy(&settings), sessions / 2) {
            prop_assert_eq!(found, expect);
        }
    }
}

#[test]
fn operations_make_sense_in_a_busy_world() {
    let (found, expect) = replay(&busy(&["data.members=500", "fragments=3"]), 5_000).unwrap();
    assert_eq!(found, expect);
}

/// A replay with as many threads as the window hardly ever waits.
#[test]
fn dependencies_lie_further_back_than_the_window() {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut spec = Spec::read(&traces.join("quickstart.toml")).unwrap();
    spec.sessions = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = generate_into(&spec, &folder, 1);
    let rows = operations(&manifest, &folder, 0);
    let distances: Vec<u64> = rows.iter().filter_map(|r| Some(r.session - r.after?)).collect();
    let near = distances.iter().filter(|d| **d < spec.access.dependency_window).count();
    assert!(distances.len() > 500, "only {} dependencies: nothing is tested", distances.len());
    assert!(near * 10_000 < rows.len(), "{near} of {} operations wait for a recent write", rows.len());
}

#[test]
fn the_achieved_mix_follows_the_requested_one() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = generate_into(&busy(&["sessions=100000"]), &dir.path().join("t"), 2);
    assert_eq!(manifest.requested_mix.len(), 11);
    assert!((manifest.requested_mix.values().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!((manifest.achieved_mix.values().sum::<f64>() - 1.0).abs() < 1e-9);
    for (action, requested) in &manifest.requested_mix {
        let achieved = manifest.achieved_mix[action];
        assert!((achieved - requested).abs() < 0.01, "{action:?}: {achieved} for {requested}");
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = ["data.pending_per_member=0", "mix={list_friends=1,accept_friend_request=1}", "sessions=1000"];
    let manifest = generate_into(&busy(&settings), &dir.path().join("t"), 2);
    let expect: BTreeMap<String, f64> =
        [("list_friends".to_string(), 1.0), ("accept_friend_request".to_string(), 0.0)].into_iter().collect();
    assert_eq!(manifest.achieved_mix, expect);
    assert!((400..600).contains(&manifest.noops["accept_friend_request"]), "{:?}", manifest.noops);
}
