//! Each class by hand, with the story of its witness.

use schemas::isolation::Isolation;

use super::*;
use crate::consistency::isolation::story::{self, Names};
use crate::consistency::isolation::{DELETED, INITIAL};
use Act::{Delete, Insert, Read, Write};
use Fate::{Aborted, Committed, Unknown};

struct Plain;

impl Names for Plain {
    fn item(&self, owner: u64, element: u32) -> String {
        format!("record {owner} field {element}")
    }

    fn writer(&self, write: i64) -> Option<(i64, i64)> {
        Some((write / 10, write % 10))
    }
}

fn check(history: &[Told], expect: &[(Class, u64)], level: Option<Isolation>) -> Anomalies {
    let found = found(history, Limits::default());
    assert_eq!(classes(&found), expect);
    assert_eq!(found.strongest(), level);
    for (class, _) in expect {
        assert!(found.witness(*class).is_some(), "{class:?} has no witness");
    }
    found
}

#[test]
fn two_that_read_what_the_other_writes_are_write_skew() {
    let history = [
        txn(1, (0, 100), Committed, &[(Read, ITEM, 0), (Read, OTHER, 0), (Write, ITEM, 13)]),
        txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Read, OTHER, 0), (Write, OTHER, 23)]),
    ];
    let found = check(&history, &[(Class::WriteSkew, 2)], Some(Isolation::Snapshot));
    let story = story::tell(found.witness(Class::WriteSkew).unwrap(), &Plain);
    let expect = "\
write skew (G2-item), fragment 0: 2 transactions
  T1: session 1 step 0, thread 1, from 0.000000000 s to 0.000000100 s, committed
      step   1, 0.000000025 s to 0.000000037 s: read  record 7 field 0: the initial value
      step   2, 0.000000050 s to 0.000000062 s: read  record 8 field 1: the initial value
      step   3, 0.000000075 s to 0.000000087 s: wrote record 7 field 0: the value of T1 from session 1 step 3
  T2: session 2 step 0, thread 2, from 0.000000010 s to 0.000000120 s, committed
      step   1, 0.000000037 s to 0.000000050 s: read  record 7 field 0: the initial value
      step   2, 0.000000064 s to 0.000000077 s: read  record 8 field 1: the initial value
      step   3, 0.000000091 s to 0.000000104 s: wrote record 8 field 1: the value of T2 from session 2 step 3
  T1 before T2: T1 read record 8 field 1 as the initial value, which T2 overwrote.
  T2 before T1: T2 read record 7 field 0 as the initial value, which T1 overwrote.
  So T1 before T2 before T1: no order of these transactions explains what they saw.
";
    assert_eq!(story, expect);
}

#[test]
fn two_that_overwrite_the_same_version_are_a_lost_update() {
    let history = [
        txn(1, (0, 100), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12)]),
        txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Write, ITEM, 22)]),
        txn(3, (20, 130), Committed, &[(Read, ITEM, 0), (Write, ITEM, 32)]),
    ];
    let found = check(&history, &[(Class::LostUpdate, 2)], Some(Isolation::ReadCommitted));
    let story = story::tell(found.witness(Class::LostUpdate).unwrap(), &Plain);
    assert!(
        story.contains("Both T1 and T2 read record 7 field 0 as the initial value, and both overwrote it."),
        "{story}"
    );
}

#[test]
fn half_of_another_transaction_is_read_skew() {
    let history = [
        txn(1, (0, 200), Committed, &[(Read, ITEM, 0), (Read, OTHER, 24)]),
        txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Write, ITEM, 22), (Read, OTHER, 0), (Write, OTHER, 24)]),
    ];
    let found = check(&history, &[(Class::ReadSkew, 2)], Some(Isolation::RepeatableRead));
    let story = story::tell(found.witness(Class::ReadSkew).unwrap(), &Plain);
    assert!(story.contains("T1 read record 7 field 0 as the initial value, which T2 overwrote."), "{story}");
    assert!(story.contains("T2 before T1: T1 read what T2 wrote to record 8 field 1."), "{story}");
}

#[test]
fn an_item_that_changes_inside_of_a_transaction_is_a_fuzzy_read() {
    let history = [
        txn(1, (0, 200), Committed, &[(Read, ITEM, 0), (Read, ITEM, 22)]),
        txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Write, ITEM, 22)]),
    ];
    let expect = [(Class::FuzzyRead, 1), (Class::ReadSkew, 2)];
    let found = check(&history, &expect, Some(Isolation::ReadCommitted));
    let story = story::tell(found.witness(Class::FuzzyRead).unwrap(), &Plain);
    assert!(story.contains("T1 read what T2 wrote") || story.contains("T2 before T1: T1 read"), "{story}");
    assert!(story.contains("The item changed inside of T1"), "{story}");
}

#[test]
fn a_value_that_was_rolled_back_is_an_aborted_read() {
    let history = [
        txn(1, (0, 200), Aborted, &[(Read, ITEM, 0), (Write, ITEM, 12)]),
        txn(2, (150, 300), Committed, &[(Read, ITEM, 12)]),
    ];
    let found = check(&history, &[(Class::AbortedRead, 1)], Some(Isolation::ReadUncommitted));
    let story = story::tell(found.witness(Class::AbortedRead).unwrap(), &Plain);
    assert!(story.contains("T2 read what T1 had written to record 7 field 0, and T1 was rolled back."), "{story}");
}

/// A write keeps its id over tries. A later try that committed is the writer, unless the read had ended
/// before that try wrote.
#[test]
fn a_later_try_makes_the_value_good() {
    let again = |at, fate| {
        let mut told = txn(1, at, fate, &[(Read, ITEM, 0), (Write, ITEM, 12)]);
        told.transaction.try_number = u16::from(fate == Committed);
        told
    };
    let reader = |at| txn(2, at, Committed, &[(Read, ITEM, 12)]);
    let tries = [again((0, 100), Aborted), again((110, 210), Committed)];
    check(&[tries.to_vec(), vec![reader((300, 400))]].concat(), &[], Some(Isolation::StrictSerializable));
    let dirty = [tries.to_vec(), vec![reader((50, 120))]].concat();
    check(&dirty, &[(Class::AbortedRead, 1)], Some(Isolation::ReadUncommitted));
}

#[test]
fn a_value_that_its_transaction_overwrote_is_an_intermediate_read() {
    let history = [
        txn(1, (0, 200), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12), (Write, ITEM, 13)]),
        txn(2, (90, 300), Committed, &[(Read, ITEM, 12)]),
    ];
    check(&history, &[(Class::IntermediateRead, 1)], Some(Isolation::ReadUncommitted));
}

#[test]
fn two_that_read_each_others_writes_are_circular() {
    let history = [
        txn(1, (0, 200), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12), (Read, OTHER, 22)]),
        txn(2, (10, 220), Committed, &[(Read, OTHER, 0), (Write, OTHER, 22), (Read, ITEM, 12)]),
    ];
    check(&history, &[(Class::CircularRead, 2)], Some(Isolation::ReadUncommitted));
}

#[test]
fn two_that_overwrite_each_others_writes_are_a_dirty_write() {
    let history = [
        txn(1, (0, 200), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12), (Read, OTHER, 22), (Write, OTHER, 14)]),
        txn(2, (10, 220), Committed, &[(Read, OTHER, 0), (Write, OTHER, 22), (Read, ITEM, 12), (Write, ITEM, 24)]),
    ];
    // Each has overwritten what the other wrote.
    check(&history, &[(Class::DirtyWrite, 2)], None);
}

#[test]
fn a_transaction_that_saw_the_past_is_stale() {
    let write = txn(1, (0, 100), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12)]);
    let read = |start| txn(2, (start, start + 50), Committed, &[(Read, ITEM, 0)]);
    check(&[write.clone(), read(100)], &[], Some(Isolation::StrictSerializable));
    let found = check(&[write, read(101)], &[(Class::StaleTransaction, 1)], Some(Isolation::Serializable));
    let story = story::tell(found.witness(Class::StaleTransaction).unwrap(), &Plain);
    assert!(story.contains("T2 before T1: T2 had ended when T1 began."), "{story}");
}

/// A commit of unknown fate counts once a committed transaction has seen it, and what it saw itself then
/// counts as well.
#[test]
fn unknown_commits_are_optional() {
    let unknown = |fate| txn(1, (0, 100), fate, &[(Read, ITEM, 0), (Read, OTHER, 0), (Write, ITEM, 13)]);
    let other = txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Read, OTHER, 0), (Write, OTHER, 23)]);
    check(&[unknown(Unknown), other.clone()], &[], Some(Isolation::StrictSerializable));
    let seen = txn(3, (200, 220), Committed, &[(Read, ITEM, 13)]);
    check(&[unknown(Unknown), other.clone(), seen], &[(Class::WriteSkew, 2)], Some(Isolation::Snapshot));
    // Seen by one that was seen.
    let link = txn(3, (200, 220), Unknown, &[(Read, ITEM, 13), (Write, ITEM, 32)]);
    check(&[unknown(Unknown), other.clone(), link.clone()], &[], Some(Isolation::StrictSerializable));
    let seen = txn(4, (300, 320), Committed, &[(Read, ITEM, 32)]);
    check(&[unknown(Unknown), other, link, seen], &[(Class::WriteSkew, 2)], Some(Isolation::Snapshot));
}

/// A blind write has no place in the order of versions: no edge, and it is counted.
#[test]
fn what_is_not_known_is_no_anomaly() {
    let history = [
        txn(1, (0, 100), Committed, &[(Read, OTHER, 0), (Write, ITEM, 12)]),
        txn(2, (10, 120), Committed, &[(Read, ITEM, 0), (Write, OTHER, 22)]),
    ];
    let found = check(&history, &[], Some(Isolation::StrictSerializable));
    assert_eq!((found.unordered_writes, found.operations, found.committed), (2, 4, 2));
}

/// An insert is the first version. A delete leaves a version that others see by the record's absence.
#[test]
fn inserts_and_deletes_are_versions() {
    let history = [
        txn(1, (0, 100), Committed, &[(Insert, ITEM, 11)]),
        txn(2, (10, 120), Committed, &[(Read, OTHER, INITIAL), (Delete, OTHER, DELETED)]),
        // Saw the insert and not the delete, and the other way round.
        txn(3, (200, 300), Committed, &[(Read, ITEM, 11), (Read, OTHER, DELETED)]),
    ];
    let found = check(&history, &[], Some(Isolation::StrictSerializable));
    assert_eq!(found.unordered_writes, 0);
    let skewed = txn(4, (0, 90), Committed, &[(Read, OTHER, INITIAL), (Read, ITEM, 12)]);
    let history =
        [txn(1, (0, 100), Committed, &[(Read, OTHER, INITIAL), (Delete, OTHER, DELETED), (Insert, ITEM, 12)]), skewed];
    check(&history, &[(Class::ReadSkew, 2)], Some(Isolation::RepeatableRead));
}

/// A try that was rolled back and the next one write the same version. A read that may have seen either of them
/// proves nothing: the store without isolation that it was found on had no dirty write here.
#[test]
fn a_read_that_may_have_seen_either_try_is_no_anomaly() {
    let first = txn(1, (0, 100), Aborted, &[(Read, ITEM, 0), (Write, ITEM, 12)]);
    let mut reader = txn(2, (50, 260), Committed, &[(Read, ITEM, 12), (Write, ITEM, 22)]);
    (reader.events[0].start_ns, reader.events[0].end_ns) = (90, 200);
    let mut second = txn(1, (110, 300), Committed, &[(Read, ITEM, 22), (Write, ITEM, 12)]);
    second.transaction.try_number = 1;
    second.events[1].start_ns = 195;
    let history = |reader: &Told| [first.clone(), reader.clone(), second.clone()];
    check(&history(&reader), &[], Some(Isolation::StrictSerializable));
    // One that ended before the second try wrote has seen what was rolled back.
    reader.events[0].end_ns = 194;
    check(&history(&reader), &[(Class::AbortedRead, 1)], Some(Isolation::ReadUncommitted));
    // One that began after the end of the first try has seen what the second one wrote.
    (reader.events[0].start_ns, reader.events[0].end_ns) = (101, 200);
    check(&history(&reader), &[(Class::DirtyWrite, 2)], None);
}

/// A read of another version between two writes of an item hid the first of them: others that saw it were not
/// counted.
#[test]
fn a_write_is_intermediate_whatever_was_read_in_between() {
    let history = [
        txn(1, (0, 100), Committed, &[(Read, ITEM, 0), (Write, ITEM, 12), (Read, ITEM, 0), (Write, ITEM, 14)]),
        txn(2, (50, 200), Committed, &[(Read, ITEM, 12)]),
    ];
    let found = found(&history, Limits::default());
    assert_eq!(found.count(Class::IntermediateRead), 1, "{:?}", classes(&found));
    assert_eq!(found.strongest(), Some(Isolation::ReadUncommitted));
}
