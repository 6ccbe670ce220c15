//! Tests the sum against sequential histories, with transactions that commit, abort, are tried again and
//! are lost.

use schemas::oplog::Outcome;
use schemas::vocabulary::Control;
use schemas::vocabulary::kv::{Found, Operation, Seen, Verb, WHOLE_BALANCE, WriteId};
use schemas::workload::kv::KvWorkload;
use schemas::workload::kv::keys::KeyRange;

use super::items::EconomyItems;
use crate::family::kv::items::KvItems;
use crate::fixtures::row_of;
use crate::validate::{Interval, Items, Sum};

/// 10 records with 1000 each.
fn items() -> EconomyItems {
    let text = "name = 't'\nfamily = 'economy'\nsessions = 1\n[data]\nrecords = 10\n[mix]\nread = 1\n";
    let spec = schemas::spec::Spec::parse(text, "t.toml").unwrap();
    let records = KvItems::new(&KvWorkload::of(&spec).unwrap(), KeyRange::default());
    EconomyItems::new(records, 10, 10_000)
}

fn observed(balance: i64) -> Vec<i64> {
    let mut observed = Vec::new();
    Found::push(&mut observed, [(0, Seen { number: 0, balance: Some(balance) })].into_iter());
    observed
}

fn operation(verb: Verb, key: u64, amount: i64) -> Operation {
    Operation { verb, key, fields: 1, length: 0, id: WriteId::new(0, 0, 0), amount }
}

/// How a try ended, and whether the store ran it as a transaction.
#[derive(Debug, Clone, Copy)]
struct Try {
    number: u16,
    is_atomic: bool,
    end: Outcome,
}

const COMMITTED: Try = Try { number: 0, is_atomic: true, end: Outcome::Ok };

/// A transaction of these operations, each with its outcome and the balance that a read saw.
fn transact(items: &mut EconomyItems, session: u64, tried: Try, steps: &[(Operation, Outcome, i64)]) {
    let mut each = |operation, outcome, attempts, observed: &[i64]| {
        let mut row = row_of(session, 1, 2, operation);
        (row.log.outcome, row.log.attempts, row.log.try_number) = (outcome, attempts, tried.number);
        items.account(&row, observed);
    };
    let attempts = u16::from(tried.is_atomic);
    let control = |control| Operation::of_transaction(control, WriteId::new(0, 0, 0));
    each(control(Control::Begin), Outcome::Ok, attempts, &[]);
    for (operation, outcome, balance) in steps {
        let observed = if operation.verb == Verb::Read { observed(*balance) } else { Vec::new() };
        each(*operation, *outcome, 1, &observed);
    }
    each(control(Control::Commit), tried.end, attempts, &[]);
}

/// The sum, if the closing read finds this money.
fn closed(mut items: EconomyItems, end: i64) -> Sum {
    items.account_closing(&[]);
    items.account_closing(&observed(end));
    items.sum().unwrap()
}

const DELETE: [(Operation, Outcome, i64); 2] = [
    (
        Operation { verb: Verb::Read, key: 3, fields: 1, length: 0, id: WriteId::new(0, 0, 0), amount: 0 },
        Outcome::Ok,
        700,
    ),
    (
        Operation {
            verb: Verb::Delete,
            key: 3,
            fields: 0,
            length: 0,
            id: WriteId::new(0, 0, 0),
            amount: WHOLE_BALANCE,
        },
        Outcome::Ok,
        0,
    ),
];

#[test]
fn a_delete_captures_and_an_insert_releases() {
    let mut items = items();
    transact(&mut items, 1, COMMITTED, &DELETE);
    transact(&mut items, 2, COMMITTED, &[(operation(Verb::Insert, 77, 600), Outcome::Ok, 0)]);
    let transfer = [
        (operation(Verb::Read, 1, 0), Outcome::Ok, 1_000),
        (operation(Verb::Read, 2, 0), Outcome::Ok, 1_000),
        (operation(Verb::Update, 1, -1), Outcome::Ok, 0),
        (operation(Verb::Update, 2, 1), Outcome::Ok, 0),
    ];
    transact(&mut items, 3, COMMITTED, &transfer);
    let sum = closed(items, 9_900);
    assert_eq!((sum.start, sum.captured, sum.released, sum.end), (10_000, 700, 600, 9_900));
    assert_eq!((sum.off, sum.transactions, sum.apart, sum.is_incomplete), (0, 3, 0, false));
}

/// A delete that was rolled back has captured nothing, and one of unknown fate perhaps.
#[test]
fn only_what_committed_counts() {
    for (end, off) in [(Outcome::Ok, [700, 0]), (Outcome::Aborted, [0, 700]), (Outcome::Failed, [0, 700])] {
        for (money, off) in [(10_000, off[0]), (9_300, off[1])] {
            let mut items = items();
            transact(&mut items, 1, Try { end, ..COMMITTED }, &DELETE);
            assert_eq!(closed(items, money).off, off, "{end:?} {money}");
        }
    }
    for money in [10_000, 9_300] {
        let mut items = items();
        transact(&mut items, 1, Try { end: Outcome::Unknown, ..COMMITTED }, &DELETE);
        assert_eq!(closed(items, money).off, 0, "{money}");
    }
}

/// A store without transactions does what it does: no commit undoes it.
#[test]
fn without_transactions_every_operation_counts_by_itself() {
    let apart = Try { is_atomic: false, ..COMMITTED };
    let half = [
        (operation(Verb::Read, 1, 0), Outcome::Ok, 1_000),
        (operation(Verb::Read, 2, 0), Outcome::Ok, 1_000),
        (operation(Verb::Update, 1, -1), Outcome::Ok, 0),
        (operation(Verb::Update, 2, 1), Outcome::Failed, 0),
    ];
    let mut items = items();
    transact(&mut items, 1, apart, &half);
    // The log says that $1 was taken and not given, so this is no anomaly of the store.
    let sum = closed(items, 9_999);
    assert_eq!((sum.captured, sum.off, sum.apart), (1, 0, 1));
}

#[test]
fn a_later_try_begins_anew() {
    let mut items = items();
    transact(&mut items, 1, Try { end: Outcome::Aborted, ..COMMITTED }, &DELETE);
    let mut again = DELETE;
    again[0].2 = 650;
    transact(&mut items, 1, Try { number: 1, ..COMMITTED }, &again);
    let sum = closed(items, 9_350);
    assert_eq!((sum.captured, sum.off, sum.transactions), (650, 0, 1));
}

/// A lost update: both transfers read 1000.
#[test]
fn a_lost_update_is_off() {
    let mut items = items();
    for session in [1, 2] {
        let deposit =
            [(operation(Verb::Read, 1, 0), Outcome::Ok, 1_000), (operation(Verb::Update, 1, 1), Outcome::Ok, 0)];
        transact(&mut items, session, COMMITTED, &deposit);
    }
    let sum = closed(items, 10_001);
    assert_eq!((sum.released, sum.off), (2, 1));
}

/// What a continued experiment began with is what the closing read before it has seen.
#[test]
fn a_continued_experiment_begins_with_the_closing_read_before() {
    let begun = |reads: u64| {
        let mut items = items();
        let before = Interval { start: -5, end: -5 };
        items.register(&operation(Verb::Insert, 77, 5), before, -5).unwrap();
        for record in 0..reads {
            items.begin_with(&operation(Verb::Read, record, 0), &observed(100)).unwrap();
        }
        closed(items, 1_100)
    };
    let sum = begun(11);
    assert_eq!((sum.start, sum.off, sum.is_incomplete), (1_100, 0, false));
    assert!(begun(10).is_incomplete);
}

#[test]
fn a_balance_that_cannot_be_read_makes_the_sum_unknown() {
    let mut items = items();
    items.account_closing(&[0]);
    assert!(closed(items, 10_000).is_incomplete);
}
