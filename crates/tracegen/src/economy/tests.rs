use std::collections::{BTreeMap, BTreeSet};

use schemas::share::sessions_by_fragment;
use schemas::vocabulary::Operation as _;
use schemas::vocabulary::kv::{TraceRow, Verb, WHOLE_BALANCE};
use schemas::workload::kv::Values;

use super::*;
use crate::core::generator::{Drawn, Sessions as _};

const MIX: &str = "read = 30\nupdate = 10\ninsert = 10\nscan = 5\ndelete = 5\nread_modify_write = 30\nadjust = 10\n";

fn spec(text: &str) -> SpecOf<EconomyWorkload> {
    SpecOf::parse(&format!("name = 't'\nfamily = 'economy'\n{text}"), "t.toml").unwrap()
}

/// The sessions of all fragments.
fn sessions(spec: &SpecOf<EconomyWorkload>) -> Vec<Vec<Vec<TraceRow>>> {
    let economy = Economy::new(spec.clone()).unwrap();
    let shares = sessions_by_fragment(economy.weights(), spec.common.sessions);
    let of = |(fragment, count): (u32, u64)| {
        let mut made = economy.sessions(fragment);
        let session = |_| {
            let mut rows = Vec::new();
            assert_eq!(made.try_next(|row| rows.push(*row)), Drawn::Session);
            rows
        };
        (0..count).map(session).collect()
    };
    (0..spec.common.fragments).zip(shares).map(of).collect()
}

/// A bank that does one session after the other.
struct Bank {
    balances: BTreeMap<u64, i64>,
    captured: i64,
}

impl Bank {
    fn of(economy: &Economy, fragment: u32) -> Bank {
        let spec = economy.records.spec();
        let values = Values::new(&spec.common, &spec.own.data);
        let records =
            economy.records.space().records(fragment).iter().map(|index| spec.own.data.first_record + *index as u64);
        Bank { balances: records.map(|record| (record, values.initial_balance(record))).collect(), captured: 0 }
    }

    fn total(&self) -> i64 {
        self.balances.values().sum::<i64>() + self.captured
    }

    /// Does the operations of a transaction. Each write is on a record that it has read.
    fn transact(&mut self, rows: &[TraceRow]) {
        let mut read = BTreeSet::new();
        for TraceRow { operation, .. } in rows {
            let (record, amount) = (operation.key, operation.amount);
            match operation.verb {
                Verb::Read => {
                    assert!(self.balances.contains_key(&record), "{operation:?}");
                    read.insert(record);
                }
                Verb::Insert => {
                    assert!((0..=self.captured.max(0)).contains(&amount), "{operation:?} of {}", self.captured);
                    assert_eq!(self.balances.insert(record, amount), None);
                    self.captured -= amount;
                }
                Verb::Update => {
                    assert!(read.contains(&record) && (1..=2).contains(&amount.abs()), "{operation:?}");
                    *self.balances.get_mut(&record).unwrap() += amount;
                    self.captured -= amount;
                }
                Verb::Delete => {
                    assert!(read.contains(&record) && amount == WHOLE_BALANCE, "{operation:?}");
                    self.captured += self.balances.remove(&record).unwrap();
                }
                Verb::Scan | Verb::Begin | Verb::Commit | Verb::Abort => assert_eq!(amount, 0),
            }
        }
    }
}

/// Kinds that YCSB+T does not have keep the money too.
#[test]
fn transfers_in_steps_write_an_account_twice() {
    let spec = spec("sessions = 400\n[data]\nrecords = 30\n[mix]\nread_two = 1\ntransfer_in_steps = 1\n");
    let economy = Economy::new(spec.clone()).unwrap();
    let mut bank = Bank::of(&economy, 0);
    let total = bank.total();
    let mut twice = 0;
    for rows in &sessions(&spec)[0] {
        bank.transact(rows);
        assert_eq!((bank.total(), bank.captured), (total, 0), "{rows:?}");
        let written: Vec<u64> = rows.iter().filter(|row| row.operation.writes()).map(|row| row.operation.key).collect();
        match written[..] {
            [] => assert_eq!(rows.len(), 4),
            [first, again, second] => {
                assert!(first == again && second != first, "{rows:?}");
                twice += 1;
            }
            _ => panic!("{rows:?}"),
        }
    }
    assert!((100..300).contains(&twice), "{twice}");
}

/// Every session is one transaction that keeps the money, in its own fragment, on records that exist then.
#[test]
fn every_session_keeps_the_money() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "exponential", "hotspot"] {
        let spec = spec(&format!(
            "sessions = 6000\nfragments = 3\n[data]\nrecords = 700\nfirst_record = 70\nfields = 3\ntotal_cash = 100001\n\
             [access]\ndistribution = '{distribution}'\ndependency_window = 30\nscan_length_max = 20\n[mix]\n{MIX}"
        ));
        let economy = Economy::new(spec.clone()).unwrap();
        let mut money = 0;
        for (fragment, sessions) in (0..).zip(sessions(&spec)) {
            let mut bank = Bank::of(&economy, fragment);
            let total = bank.total();
            money += total;
            let mut lengths = BTreeMap::new();
            for rows in &sessions {
                let [first, .., last] = &rows[..] else { panic!("{rows:?}") };
                assert_eq!((first.operation.verb, last.operation.verb), (Verb::Begin, Verb::Commit));
                assert!(rows[1..rows.len() - 1].iter().all(|row| row.operation.control().is_none()));
                for (step, row) in (0..).zip(rows) {
                    assert_eq!((row.step, row.txn, row.session), (step, Some(0), first.session));
                    assert_eq!(row.operation.id.place(), (fragment, row.session, step));
                    assert!(
                        row.operation.control().is_some() || economy.records.space().is_in(fragment, row.operation.key)
                    );
                    // The balance is in field 0.
                    assert!(row.operation.fields == 0 || row.operation.fields & 1 == 1);
                }
                bank.transact(rows);
                assert_eq!(bank.total(), total, "{rows:?}");
                *lengths.entry(rows.len()).or_insert(0) += 1;
            }
            assert!(lengths.keys().copied().eq([3, 4, 5, 6]), "{distribution}: {lengths:?}");
            let mut made = economy.sessions(fragment);
            (0..sessions.len()).for_each(|_| assert_eq!(made.try_next(|_| {}), Drawn::Session));
            assert_eq!(made.captured(), bank.captured);
        }
        assert_eq!(money, 100_001);
    }
}

/// A delete waits until sessions that use its record have ended, so that a replay finds it there.
#[test]
fn a_record_is_left_alone_before_its_delete() {
    let spec = spec(&format!("sessions = 4000\n[data]\nrecords = 400\n[access]\ndependency_window = 50\n[mix]\n{MIX}"));
    let mut last_used: BTreeMap<u64, u64> = BTreeMap::new();
    let mut deleted = 0;
    for rows in &sessions(&spec)[0] {
        for TraceRow { session, operation, .. } in rows {
            match operation.verb {
                Verb::Delete => {
                    let last = last_used.get(&operation.key).copied();
                    assert!(last.is_none_or(|last| last + 50 <= *session), "{session}: {last:?}");
                    deleted += 1;
                }
                Verb::Update | Verb::Insert => drop(last_used.insert(operation.key, *session)),
                _ => {}
            }
        }
    }
    assert!(deleted > 100, "{deleted}");
}

#[test]
fn a_longer_trace_starts_with_the_shorter_one() {
    let of = |sessions_: u64| {
        let spec = spec(&format!("sessions = {sessions_}\nseed = 5\n[data]\nrecords = 300\n[mix]\n{MIX}"));
        sessions(&spec).remove(0)
    };
    let (short, long) = (of(500), of(900));
    assert_eq!((&short[..], short.len(), long.len()), (&long[..500], 500, 900));
}

/// The bytes of a trace depend on these draws, so a change of them is a change of the format.
#[test]
fn the_draws_are_pinned() {
    let spec = spec(&format!(
        "sessions = 24\nseed = 1\n[data]\nrecords = 20\n[access]\ndistribution = 'zipfian'\ndependency_window = 1\n[mix]\n{MIX}"
    ));
    let sentence = |row: &TraceRow| {
        let (verb, key, amount) = (row.operation.verb.name(), row.operation.key, row.operation.amount);
        match row.operation.control() {
            Some(_) => verb.to_string(),
            None if amount == 0 => format!("{verb} {key}"),
            None => format!("{verb} {key} {amount:+}"),
        }
    };
    let found: Vec<String> =
        sessions(&spec)[0].iter().map(|rows| rows.iter().map(sentence).collect::<Vec<_>>().join(", ")).collect();
    insta::assert_snapshot!(found.join("\n"));
}

/// Where all records but those that were chosen lately are gone, a delete takes one of these.
#[test]
fn records_can_all_be_deleted() {
    let spec = spec("sessions = 10\n[data]\nrecords = 10\n[mix]\ndelete = 1\n");
    assert_eq!(sessions(&spec)[0].len(), 10);
    let economy = Economy::new(spec.clone()).unwrap();
    let mut made = economy.sessions(0);
    (0..10).for_each(|_| assert_eq!(made.try_next(|_| {}), Drawn::Session));
    assert!(matches!(made.try_next(|_| {}), Drawn::Never { .. }));
    assert_eq!(made.captured(), 10_000);
}

/// Without deletes an update captures what the next one releases.
#[test]
fn updates_alone_keep_the_money() {
    let spec = spec("sessions = 100\n[data]\nrecords = 10\n[mix]\nupdate = 1\n");
    let amounts: Vec<i64> = sessions(&spec)[0].iter().map(|rows| rows[2].operation.amount).collect();
    assert!(amounts.chunks(2).all(|two| *two == [-1, 1]), "{amounts:?}");
}

/// A transaction that aborts leaves no trace in what comes later.
#[test]
fn aborted_transactions_leave_nothing() {
    let spec = spec(&format!(
        "sessions = 3000\n[data]\nrecords = 500\n[access]\ndependency_window = 20\n[transactions]\nabort_share = 0.3\n[mix]\n{MIX}"
    ));
    let economy = Economy::new(spec.clone()).unwrap();
    let mut bank = Bank::of(&economy, 0);
    let (total, mut aborted) = (bank.total(), 0);
    for rows in &sessions(&spec)[0] {
        match rows.last().unwrap().operation.verb {
            Verb::Abort => aborted += 1,
            _ => bank.transact(rows),
        }
        assert_eq!(bank.total(), total);
    }
    assert!((800..1_000).contains(&aborted), "{aborted}");
}
