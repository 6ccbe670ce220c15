//! Mixes of writes alone, as BG has them. A write that is not possible is a no-operation, and a
//! trace of nothing else is refused.

use tracegen::{GenerateError, GenerateOptions, generate};

use crate::replay::replay;
use crate::{busy, content, generate_into, operations};

/// A mix that runs out. At first there are 500 invitations and 500 friendships, so 500 invitations
/// can be accepted and 1,000 friendships ended.
const DWINDLING: [&str; 4] =
    ["fragments=1", "data.members=100", "mix={accept_friend_request=1,thaw_friendship=1}", "access.unique_window=0"];

fn dwindling(more: &[&str]) -> schemas::spec::Spec {
    busy(&[&DWINDLING[..], more].concat())
}

#[test]
fn writes_alone_make_sense_when_replayed() {
    let updates = "mix={invite_friend=0.4,accept_friend_request=0.2,reject_friend_request=0.2,thaw_friendship=0.2}";
    for spec in [
        busy(&["data.members=200", "fragments=2", "sessions=5000", updates]),
        dwindling(&["sessions=1500"]),
        dwindling(&["sessions=1300", "access.unique_window=20"]),
        dwindling(&["sessions=600", "mix={delete_comment=1}"]),
    ] {
        let (found, expect) = replay(&spec, spec.sessions / 2).unwrap();
        assert_eq!(found, expect);
    }
}

/// A socialite who can do nothing leaves a no-operation of each kind, and another socialite is
/// drawn. The next session of the trace carries all these no-operations.
#[test]
fn socialites_who_can_do_nothing_are_counted_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (short, long) = (dir.path().join("short"), dir.path().join("long"));
    let manifest = generate_into(&dwindling(&["sessions=1500"]), &long, 1);
    let rows = operations(&manifest, &long, 0);
    assert_eq!(rows.len(), 1_500);
    assert!(rows.iter().any(|row| row.noops > 100), "no member was drawn in vain");
    assert_eq!(manifest.noops.values().sum::<u64>(), rows.iter().map(|row| row.noops as u64).sum::<u64>());
    assert_eq!(manifest.noops.len(), 2);
    let first = generate_into(&dwindling(&["sessions=1200"]), &short, 1);
    assert_eq!(operations(&first, &short, 0), rows[..1_200]);
    assert!(first.noops["thaw_friendship"] < manifest.noops["thaw_friendship"]);
}

fn refused(spec: &schemas::spec::Spec) -> GenerateError {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let error = generate(spec, &folder, &GenerateOptions { threads: 2, ..GenerateOptions::default() }).unwrap_err();
    assert!(content(dir.path()).is_empty(), "something is left");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a folder is left");
    error
}

#[test]
fn a_mix_that_uses_itself_up_is_refused_with_what_could_be_made() {
    let error = refused(&dwindling(&["sessions=1501"]));
    assert!(
        matches!(error, GenerateError::OnlyNoops { fragment: 0, made: 1_500, asked: 1_501, enough_for: 1_500, .. }),
        "{error}"
    );
    let error = error.to_string();
    for part in [
        "mix: fragment 0 of 1 ended after 1500 of 1501 sessions (1000000 no-operations in a row)",
        "generate at most 1500 sessions",
        "invite_friend",
    ] {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
    // No member acts twice within the window, so the trace ends even if the only member who could
    // act is within it.
    let error = refused(&dwindling(&["sessions=1501", "access.unique_window=20"]));
    assert!(matches!(error, GenerateError::OnlyNoops { made: 1_300..=1_500, .. }), "{error}");
}

#[test]
fn a_trace_of_no_operations_alone_is_refused() {
    let error = refused(&dwindling(&["data.pending_per_member=0", "mix={accept_friend_request=1}"])).to_string();
    assert!(error.contains("fragment 0 of 1 ended after 0 of 20000 sessions"), "{error}");
    assert!(!error.contains("generate at most"), "{error}");
    // The length that is enough for one fragment is given as that of the whole trace.
    let error = refused(&dwindling(&["fragments=4", "mix={reject_friend_request=1}"]));
    let GenerateError::OnlyNoops { fragments: 4, made, enough_for, .. } = error else { panic!("{error}") };
    assert!((100..150).contains(&made) && (400..600).contains(&enough_for), "{made} of {enough_for}");
}
