//! Data sets whose friendships are drawn, and fragments of unequal weight.

use proptest::prelude::*;
use schemas::digest::StateDigest;
use schemas::spec::Spec;
use tracegen::{GenerateError, GenerateOptions, generate};

use crate::model::Model;
use crate::{busy, content, generate_into, operations};

/// Replays a whole trace set in the model. The tables must be well-formed and the operations must
/// make sense. Returns false when the fragments are too small.
fn replays(spec: &Spec) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest = match generate(spec, &folder, &GenerateOptions { threads: 1, ..GenerateOptions::default() }) {
        Err(GenerateError::Infeasible(_) | GenerateError::UnequalShare { .. }) => return false,
        generated => generated.unwrap(),
    };
    let mut expect = StateDigest::default();
    for fragment in 0..spec.fragments {
        let mut model = Model::load(&folder, fragment);
        operations(&manifest, &folder, fragment).iter().for_each(|row| model.replay(row));
        expect.merge(model.digest(&manifest));
    }
    assert_eq!(tracegen::digest(&folder, tracegen::Ran::All).unwrap(), expect);
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_make_sense_with_drawn_friendships(
        seed in 0u64..1000,
        (members, fragments) in (12u64..50, 1u64..4),
        (friends, confirmed, pending) in (0u64..5, 0.0f64..=1.0, 0u64..2),
        theta in 0.01f64..=1.0,
        uniform in any::<bool>(),
    ) {
        let settings = [
            format!("seed={seed}"),
            "sessions=500".into(),
            format!("fragments={fragments}"),
            format!("data.members={}", members * fragments),
            format!("data.friends_per_member={friends}"),
            format!("data.confirmed_share={confirmed}"),
            format!("data.pending_per_member={pending}"),
            format!("data.friendships={}", if uniform { "uniform" } else { "zipfian" }),
            format!("data.friendships_theta={theta}"),
        ];
        let spec = Spec::parse_unchecked(crate::BUSY, "busy.toml", &settings).unwrap();
        prop_assume!(spec.check("busy.toml").is_ok());
        replays(&spec);
    }
}

#[test]
fn operations_make_sense_in_busy_worlds() {
    for friendships in ["data.friendships=uniform", "data.friendships=zipfian"] {
        assert!(replays(&busy(&[friendships, "fragments=3", "data.confirmed_share=0.7"])));
        assert!(replays(&busy(&[friendships, "fragments=2", "fragment_weights=[1, 3]"])));
    }
    // A ring's invitations can be a share of its friendships too.
    assert!(replays(&busy(&["data.confirmed_share=0.6", "fragments=3"])));
}

#[test]
fn bytes_depend_on_the_specification_alone() {
    for friendships in ["data.friendships=uniform", "data.friendships=zipfian"] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let settings = [friendships, "fragments=4", "fragment_weights=[1, 2, 5, 2]", "data.members=2000"];
        let long = busy(&settings);
        let manifest = generate_into(&long, &path("one"), 1);
        assert_eq!(manifest, generate_into(&long, &path("four"), 4));
        assert_eq!(content(&path("one")), content(&path("four")));
        for (counts, weight) in manifest.fragments.iter().zip([0.1, 0.2, 0.5, 0.2]) {
            assert!((counts.weight - weight).abs() < 0.002, "{} for {weight}", counts.weight);
            assert!((counts.sessions as f64 / 20_000.0 - weight).abs() < 0.002, "{} for {weight}", counts.sessions);
        }

        let short = generate_into(&Spec { sessions: 5_000, ..long.clone() }, &path("short"), 2);
        assert_eq!(short.workload_id, manifest.workload_id);
        for fragment in 0..4 {
            let (first, all) =
                (operations(&short, &path("short"), fragment), operations(&manifest, &path("one"), fragment));
            assert_eq!(first, all[..first.len()]);
        }
        let is_dataset = |(name, _): &&(String, Vec<u8>)| name.starts_with("dataset");
        let (short, long) = (content(&path("short")), content(&path("one")));
        assert!(short.iter().filter(is_dataset).eq(long.iter().filter(is_dataset)));
        assert_eq!(short.iter().filter(is_dataset).count(), 4 * 5);
    }
}

#[test]
fn fragments_that_are_too_small_are_refused() {
    let refused = |settings: &[&str], expect: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let error = generate(&busy(settings), &dir.path().join("t"), &GenerateOptions::default()).unwrap_err();
        for part in expect {
            assert!(error.to_string().contains(part), "{error} lacks {part:?}");
        }
    };
    let settings = ["data.friendships=zipfian", "fragments=2", "fragment_weights=[1, 100]"];
    refused(&settings, &["data.friends_per_member, fragments: fragment 0", "10 friends and 5", "more than 40 members"]);
    refused(&["fragments=2", "fragment_weights=[1, 1e5]"], &["fragment_weights: fragment 0 should have 0.0010%"]);
}
