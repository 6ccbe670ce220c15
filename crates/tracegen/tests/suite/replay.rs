//! Every operation of a trace makes sense when replayed, and names the write that it depends on.

use std::collections::BTreeMap;

use crate::social;
use proptest::prelude::*;
use schemas::digest::StateDigest;
use schemas::manifest::Manifest;
use schemas::share::next_fragment;
use schemas::social::TraceRow;
use schemas::spec::Spec;
use tracegen::{GenerateError, GenerateOptions, generate};

use crate::model::Model;
use crate::script::{Script, Tally};
use crate::{busy, generate_into, mixed, operations};

/// Replays a whole trace set in the model. Returns the digest of the generator and that of the
/// model after all sessions. After the first `stop` sessions of the global order it compares the
/// two itself.
pub fn replay(spec: &Spec, stop: u64) -> Option<(StateDigest, StateDigest)> {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let options = GenerateOptions { threads: 1, ..GenerateOptions::default() };
    let manifest = match generate(spec, &folder, &options) {
        Err(GenerateError::Infeasible(_)) => return None,
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
    let script = Script::new(spec);
    let mut tally = Tally::default();
    let mut sessions: Vec<_> = rows.iter().map(|rows| rows.chunk_by(|a, b| a.session == b.session)).collect();
    let mut positions = vec![0; rows.len()];
    for done in 0..spec.sessions {
        if done == stop {
            assert_eq!(tracegen::digest(&folder, tracegen::Ran::First(stop)).unwrap(), whole(&models));
        }
        let next = next_fragment(&manifest.weights(), &positions);
        script.replay(sessions[next].next().unwrap(), positions[next], &mut models[next], &mut tally);
        positions[next] += 1;
    }
    assert!(sessions.iter_mut().all(|left| left.next().is_none()));
    check_counts(&manifest, &tally);
    let found = tracegen::digest(&folder, tracegen::Ran::All).unwrap();
    Some((found, whole(&models)))
}

/// The counts of the manifest must match the trace.
fn check_counts(manifest: &Manifest, tally: &Tally) {
    let share = |kind: &String| tally.sessions.get(kind).copied().unwrap_or(0) as f64 / manifest.spec.sessions as f64;
    assert!(manifest.achieved_mix.iter().all(|(kind, achieved)| *achieved == share(kind)), "{manifest:?}");
    assert_eq!(manifest.achieved_mix.len(), manifest.requested_mix.len());
    let by_action = manifest.operations_by_name.iter().filter(|(_, operations)| **operations > 0);
    let by_action: BTreeMap<String, u64> = by_action.map(|(action, n)| (action.clone(), *n)).collect();
    assert_eq!(by_action, tally.operations);
    assert_eq!(manifest.operations(), tally.operations.values().sum::<u64>());
    assert_eq!(manifest.ended_early, tally.ended_early);
    assert_eq!(manifest.noops.values().sum::<u64>(), tally.noops);
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
        top_k in 1u64..4,
        shares in prop::collection::vec(0u32..4, 23),
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
            format!("data.top_k={top_k}"),
            format!("access.dependency_window={window}"),
            format!("access.distribution={distribution}"),
        ];
        let kinds: Vec<String> = mixed(&[]).mix.into_keys().collect();
        prop_assert_eq!(kinds.len(), shares.len());
        for (kind, share) in kinds.into_iter().zip(shares) {
            // The mix must contain a read.
            let share = if kind == "list_friends" { 0.5 } else { share as f64 };
            settings.push(format!("mix.{kind}={share}"));
        }
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        if let Some((found, expect)) = replay(&mixed(&settings), sessions / 2) {
            prop_assert_eq!(found, expect);
        }
    }
}

#[test]
fn operations_make_sense_in_a_busy_world() {
    let (found, expect) = replay(&busy(&["data.members=500", "fragments=3"]), 5_000).unwrap();
    assert_eq!(found, expect);
}

/// Every kind of session occurs, and every kind that can end early does. Kinds whose first step
/// needs something that may be missing are no-operations now and then. For example, the most
/// popular member has invited all others when no window limits how often they act.
#[test]
fn sessions_make_sense_in_a_mixed_world() {
    let spec = mixed(&["access.unique_window=0"]);
    let (found, expect) = replay(&spec, 5_000).unwrap();
    assert_eq!(found, expect);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = generate_into(&spec, &folder, 2);
    assert!(manifest.achieved_mix.values().all(|share| *share > 0.001), "{:?}", manifest.achieved_mix);
    let ended: Vec<&str> = manifest.ended_early.keys().map(String::as_str).collect();
    let expect = [
        "accept_friend_request_session",
        "accept_two",
        "delete_comment_session",
        "discuss",
        "fall_out",
        "invite_friend_session",
        "look_at_a_stranger",
        "post_comment_session",
        "reject_friend_request_session",
        "thaw_friendship_session",
        "view_friend_profile_session",
    ];
    assert_eq!(ended, expect);
    let noops: Vec<&str> = manifest.noops.keys().map(String::as_str).collect();
    let expect = [
        "accept_friend_request",
        "accept_two",
        "delete_comment",
        "discuss",
        "fall_out",
        "invite_friend",
        "look_at_a_stranger",
        "reject_friend_request",
        "thaw_friendship",
    ];
    assert_eq!(noops, expect);
    // An operation that depends on a step of its own session names that session.
    let rows: Vec<_> = (0..2).flat_map(|fragment| operations(&manifest, &folder, fragment)).collect();
    let own = rows.iter().filter(|row| row.after == Some(row.session)).count();
    assert!(own > 20, "{own}");
}

/// Generates a ready specification with this number of sessions.
fn ready(name: &str, sessions: u64) -> (Manifest, Vec<TraceRow>) {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut spec = Spec::read(&traces.join(name)).unwrap();
    spec.sessions = sessions;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = generate_into(&spec, &folder, 1);
    let rows = operations(&manifest, &folder, 0);
    (manifest, rows)
}

/// A replay with as many threads as the window hardly ever waits.
#[test]
fn dependencies_lie_further_back_than_the_window() {
    for name in ["quickstart.toml", "bg-sessions.toml"] {
        let (manifest, rows) = ready(name, 500_000);
        let distances: Vec<u64> = rows.iter().filter_map(|r| Some(r.session - r.after?)).collect();
        let near = distances.iter().filter(|d| **d < social(&manifest.spec).access.dependency_window).count();
        assert!(distances.len() > 500, "{name}: only {} dependencies: nothing is tested", distances.len());
        assert!(near * 10_000 < rows.len(), "{name}: {near} of {} operations wait for a recent write", rows.len());
    }
}

/// The friends, invitations and comments that the sessions need exist, and do not run out.
#[test]
fn the_ready_sessions_are_sustainable() {
    let (manifest, _) = ready("bg-sessions.toml", 500_000);
    for (kind, requested) in &manifest.requested_mix {
        let asked = requested * manifest.spec.sessions as f64;
        let in_vain = [&manifest.noops, &manifest.ended_early].map(|of| of.get(kind).copied().unwrap_or(0) as f64);
        assert!(in_vain.iter().sum::<f64>() < asked * 0.1, "{kind}: {in_vain:?} of {asked}");
    }
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
