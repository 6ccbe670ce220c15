use std::collections::{BTreeMap, BTreeSet};

use schemas::vocabulary::kv::{TraceRow, Verb};

use super::*;
use crate::core::generator::{Drawn, Sessions as _};

fn spec(text: &str) -> SpecOf<KvWorkload> {
    SpecOf::<KvWorkload>::parse(&format!("name = 't'\nfamily = 'kv'\n{text}"), "t.toml").unwrap()
}

/// The rows of all fragments.
fn rows(spec: &SpecOf<KvWorkload>) -> Vec<Vec<TraceRow>> {
    let kv = Kv::new(spec.clone()).unwrap();
    let shares = sessions_by_fragment(kv.weights(), spec.common.sessions);
    let of = |(fragment, count): (u32, u64)| {
        let mut sessions = kv.sessions(fragment);
        let mut rows = Vec::new();
        (0..count).for_each(|_| assert_eq!(sessions.try_next(|row| rows.push(*row)), Drawn::Session));
        rows
    };
    (0..spec.common.fragments).zip(shares).map(of).collect()
}

/// How often each record is drawn, by its number.
fn drawn(spec: &SpecOf<KvWorkload>) -> BTreeMap<u64, u64> {
    let mut drawn = BTreeMap::new();
    for row in rows(spec).into_iter().flatten().filter(|row| row.operation.verb != Verb::Insert) {
        *drawn.entry(row.operation.key).or_default() += 1;
    }
    drawn
}

/// Ids of writes have a limit for each fragment, not for the whole.
#[test]
fn a_trillion_sessions_need_enough_fragments() {
    let of = |sessions: u64, fragments: u32, distribution: &str| {
        let text = format!(
            "sessions = {sessions}\nfragments = {fragments}\n[data]\nrecords = 1000\n[access]\ndistribution = '{distribution}'\n\
             [mix]\nread = 1\n"
        );
        SpecOf::<KvWorkload>::parse(&format!("name = 't'\nfamily = 'kv'\n{text}"), "t.toml").map(Kv::new)
    };
    let trillion = 1_000_000_000_000;
    assert!(of(trillion, 16, "uniform").unwrap().is_ok());
    let error = of(trillion, 14, "uniform").err().unwrap().to_string();
    assert!(error.contains("sessions: 1000000000000 is more than 68719476736 for each fragment"), "{error}");
    // The most popular record is in one of them.
    let error = of(trillion, 16, "zipfian").unwrap().err().unwrap().to_string();
    assert!(error.starts_with("sessions: a fragment would have ") && error.ends_with("use more fragments"), "{error}");
}

/// Every operation is on a record that exists then, in its own fragment; it waits for the insert.
#[test]
fn every_operation_makes_sense() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "exponential", "hotspot"] {
        let spec = spec(&format!(
            "sessions = 20000\nfragments = 3\n[data]\nrecords = 500\nfirst_record = 70\nfields = 4\n[access]\n\
             distribution = '{distribution}'\nkey_space = 900\nscan_length_max = 40\nread_all_fields = false\n[mix]\nread = 40\nupdate = 20\n\
             insert = 20\nscan = 10\nread_modify_write = 5\ndelete = 1\n"
        ));
        let kv = Kv::new(spec.clone()).unwrap();
        let mut seen = BTreeSet::new();
        for (fragment, rows) in (0u32..).zip(rows(&spec)) {
            let mut exists: BTreeMap<u64, Option<u64>> =
                kv.space.records(fragment).iter().map(|index| (70 + *index as u64, None)).collect();
            let mut last_write: BTreeMap<u64, u64> = BTreeMap::new();
            let clients = sessions::clients(&spec, fragment);
            for row in rows {
                let operation = row.operation;
                let record = operation.key;
                assert!(clients.contains(&row.actor) && kv.space.is_in(fragment, record), "{row:?}");
                assert_eq!(operation.id.place(), (fragment, row.session, row.step));
                let inserted = exists.get(&record).copied();
                match operation.verb {
                    Verb::Insert => {
                        assert!(inserted.is_none() && seen.insert(record) && record >= 570, "{row:?}");
                        exists.insert(record, Some(row.session));
                        last_write.insert(record, row.session);
                        assert_eq!((operation.fields, row.after), (0b1111, None));
                    }
                    // A scan begins at a key, whether its record exists or not.
                    Verb::Scan if inserted.is_none() => assert!(kv.space.from(fragment, record) > 0),
                    verb => {
                        let inserted = inserted.unwrap_or_else(|| panic!("{row:?} is on a record that does not exist"));
                        let after = match verb.writes() {
                            true => last_write.insert(record, row.session).or(inserted),
                            false => inserted,
                        };
                        assert_eq!(row.after, after, "{row:?}");
                        assert_eq!(operation.length > 0, verb == Verb::Scan);
                        assert!(operation.length <= 40);
                        if verb == Verb::Delete {
                            exists.remove(&record);
                        } else {
                            assert_eq!(operation.fields.count_ones(), 1, "{row:?}");
                        }
                    }
                }
            }
        }
        assert!(seen.len() > 3_000, "{distribution}");
    }
}

/// A scan of a fragment that is not the last one never needs a record of the next one.
#[test]
fn scans_stay_inside_their_fragment() {
    let spec = spec(
        "sessions = 5000\nfragments = 4\n[data]\nrecords = 300\n[access]\nscan_length_max = 60\n[mix]\nscan = 1\ninsert = 1\n",
    );
    let kv = Kv::new(spec.clone()).unwrap();
    let mut shortened = 0;
    for (fragment, rows) in (0u32..4).zip(rows(&spec)) {
        for row in rows.iter().filter(|row| row.operation.verb == Verb::Scan) {
            let there = kv.space.from(fragment, row.operation.key);
            assert!(fragment == 3 || there >= row.operation.length as usize, "{row:?}");
            shortened += (there == row.operation.length as usize) as u32;
        }
    }
    assert!(shortened > 100);
}

#[test]
fn draws_follow_their_distribution() {
    let of = |distribution: &str, fragments: u32| {
        drawn(&spec(&format!(
            "sessions = 200000\nfragments = {fragments}\n[data]\nrecords = 1000\n[access]\ndistribution = '{distribution}'\n\
             [mix]\nread = 1\n"
        )))
    };
    for fragments in [1, 5] {
        let share = |drawn: &BTreeMap<u64, u64>, records: std::ops::Range<u64>| {
            drawn.range(records).map(|(_, n)| n).sum::<u64>() as f64 / 200_000.0
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.006, "{found} for {expected}");
        let uniform = of("uniform", fragments);
        near(share(&uniform, 0..100), 0.1);
        let hotspot = of("hotspot", fragments);
        near(share(&hotspot, 0..200), 0.8);
        let sequential = of("sequential", fragments);
        assert!(sequential.values().all(|n| (190..=210).contains(n)), "{sequential:?}");
        // With one fragment, the last record has the first rank.
        let below = |rank| crate::core::zipfian::Zipfian::new(1_000).below(rank);
        let latest = of("latest", fragments);
        if fragments == 1 {
            near(share(&latest, 999..1_000), below(1));
            near(share(&latest, 998..999), below(2) - below(1));
            let exponential = of("exponential", 1);
            near(share(&exponential, 143..1_000), 0.95 / (1.0 - libm::pow(0.05, 1.0 / 0.857_142_857_1)));
        }
        // YCSB scatters rank i to the record that the hash of i gives.
        let scattered = of("zipfian", fragments);
        let popularity = popularity::Popularity::new(
            &spec("sessions = 1\n[data]\nrecords = 1000\n[access]\ndistribution = 'zipfian'\n[mix]\nread = 1\n").own,
        );
        let total: u64 = (0..1_000).map(|record| popularity.of(record)).sum();
        for record in 0..1_000 {
            let found = scattered.get(&record).copied().unwrap_or(0) as f64 / 200_000.0;
            near(found, popularity.of(record) as f64 / total as f64);
        }
        let first = schemas::workload::kv::keys::hash(0) % 1_001;
        assert_eq!(scattered.iter().max_by_key(|(_, n)| **n).unwrap().0, &first);
    }
}

/// With inserts, the latest records are those that were inserted lately.
#[test]
fn the_latest_follow_the_inserts() {
    let spec = spec(
        "sessions = 20000\n[data]\nrecords = 1000\n[access]\ndistribution = 'latest'\ndependency_window = 100\n[mix]\nread = 95\ninsert = 5\n",
    );
    let rows = rows(&spec).remove(0);
    let mut inserted: Vec<u64> = Vec::new();
    let (mut recent, mut late) = (0, 0);
    for row in rows {
        match row.operation.verb {
            Verb::Insert => inserted.push(row.session),
            _ if row.session > 10_000 => {
                let back = inserted.len() as i64 - (row.operation.key as i64 - 1_000);
                assert!(row.after.is_none_or(|after| after + 100 <= row.session));
                recent += (back < 50) as u32;
                late += 1;
            }
            _ => {}
        }
    }
    assert!(recent * 2 > late, "{recent} of {late} reads are of the latest 50 records");
}

#[test]
fn fragments_have_the_shares_of_their_weights() {
    let weights = |text: &str| {
        let spec = spec(&format!("sessions = 1\n{text}\n[access]\ndistribution = 'zipfian'\n[mix]\nread = 1\n"));
        Kv::new(spec).map(|kv| kv.space.weights)
    };
    let found = weights("fragments = 3\nfragment_weights = [1, 2, 5]\n[data]\nrecords = 100000\n").unwrap();
    for (found, expected) in found.iter().zip([0.125, 0.25, 0.625]) {
        assert!((found - expected).abs() < 0.05 * expected, "{found} for {expected}");
    }
    let equal = weights("fragments = 8\n[data]\nrecords = 100000\n").unwrap();
    assert!(equal.iter().all(|weight| (weight - 0.125).abs() < 0.03), "{equal:?}");
    assert_eq!(weights("fragments = 10\n[data]\nrecords = 10\n").unwrap().len(), 10);
    let error = weights("fragments = 2\nfragment_weights = [1, 1000]\n[data]\nrecords = 10\n").unwrap_err().to_string();
    assert!(error.contains("one record cannot be split"), "{error}");
}

/// The sessions of the only fragment, and the statistics.
fn statistics(text: &str, sessions: u64) -> KvStatistics {
    let kv = Kv::new(spec(&format!("sessions = {sessions}\n{text}"))).unwrap();
    let mut made = kv.sessions(0);
    (0..sessions).for_each(|_| assert_eq!(made.try_next(|_| {}), Drawn::Session));
    kv.statistics(vec![kv.tally(0, &made)]).1
}

/// The hottest records are drawn as often as the distribution says, among the records that exist. The
/// expectation was that before the first insert, so that inserts looked like a failure.
#[test]
fn the_hottest_records_have_their_shares() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "exponential", "hotspot"] {
        for (mix, draws) in [
            ("read = 1", 40e3),
            ("read = 95\ninsert = 5", 38e3),
            ("scan = 2\ninsert = 8", 8e3),
            ("read = 98\ndelete = 2", 40e3f64),
        ] {
            let found = statistics(
                &format!("[data]\nrecords = 1000\n[access]\ndistribution = '{distribution}'\n[mix]\n{mix}\n"),
                40_000,
            );
            for shares in [found.hottest, found.top_hundredth] {
                // Four times the deviation of so many draws.
                let near = 4.0 * (shares.expected.max(0.001) / draws).sqrt();
                assert!((shares.achieved - shares.expected).abs() < near, "{distribution} {mix}: {shares:?}");
            }
            assert!(found.drawn_records > 90, "{distribution} {mix}: {found:?}");
        }
    }
    let latest =
        statistics("[data]\nrecords = 100\n[access]\ndistribution = 'latest'\n[mix]\nread = 1\ninsert = 1\n", 40_000);
    // The hundredth of many records has more of the draws than that of a hundred.
    assert!(latest.top_hundredth.expected > 1.5 * latest.top_hundredth.distribution, "{latest:?}");
}

/// Each fragment drew among all records until one was its own, so that many fragments took minutes.
#[test]
fn a_draw_in_one_of_many_fragments_takes_one_draw() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "exponential", "hotspot"] {
        let spec = spec(&format!(
            "sessions = 900\nfragments = 150\n[data]\nrecords = 3000\n[access]\ndistribution = '{distribution}'\n\
             [mix]\nread = 9\ninsert = 1\n"
        ));
        let kv = Kv::new(spec.clone()).unwrap();
        let smallest = (0..150).map(|fragment| kv.space.records(fragment).len()).min();
        // An eighth of an equal part: new records have keys in every fragment.
        assert!(smallest.is_some_and(|records| records >= 2), "{distribution}: {smallest:?}");
        let rows = rows(&spec);
        let operations: usize = rows.iter().map(Vec::len).sum();
        assert_eq!(operations, 900);
    }
}

/// A million no-operations of a thousand draws each took minutes to say that no record is left.
#[test]
fn a_fragment_without_records_ends_at_once() {
    for (distribution, more) in
        [("uniform", ""), ("zipfian", "key_space = 5_000_000_000_000"), ("latest", ""), ("exponential", "")]
    {
        let kv = Kv::new(spec(&format!(
            "sessions = 60\n[data]\nrecords = 100\n[access]\ndistribution = '{distribution}'\n{more}\n[mix]\ndelete = 1\n"
        )))
        .unwrap();
        let mut sessions = kv.sessions(0);
        let mut deleted = BTreeSet::new();
        for _ in 0..100 {
            assert_eq!(sessions.try_next(|row| assert!(deleted.insert(row.operation.key))), Drawn::Session);
        }
        assert_eq!(sessions.try_next(|_| {}), Drawn::Never { noops: 1 }, "{distribution}");
    }
}

const TRANSACTIONS: &str = "sessions = 4000\nfragments = 2\n[data]\nrecords = 200\nfields = 4\n[access]\n\
    scan_length_max = 20\n[mix]\nread = 30\nupdate = 20\ninsert = 20\nscan = 10\nread_modify_write = 20\n";

/// Begin, commit and abort are added, and nothing else changes.
#[test]
fn transactions_wrap_the_same_sessions() {
    let waits = "[think_time]\nmean_us = 50\ndistribution = 'exponential'\n";
    let plain = rows(&spec(&format!("{TRANSACTIONS}{waits}")));
    let wrapped = rows(&spec(&format!("{TRANSACTIONS}{waits}[transactions]\n")));
    for (plain, wrapped) in plain.iter().zip(&wrapped) {
        let of_data: Vec<&TraceRow> = wrapped.iter().filter(|row| row.operation.verb.control().is_none()).collect();
        let what = |row: &TraceRow| {
            let operation = row.operation;
            (row.session, row.actor, row.after, operation.verb, operation.key, operation.fields, operation.length)
        };
        assert_eq!(plain.iter().map(what).collect::<Vec<_>>(), of_data.iter().map(|row| what(row)).collect::<Vec<_>>());
        // A client thinks as long in both.
        let waits = |rows: &[&TraceRow]| rows.iter().map(|row| u64::from(row.think_us)).sum::<u64>();
        let thought = |row: &&TraceRow| row.step > 0;
        let plain: Vec<&TraceRow> = plain.iter().filter(thought).collect();
        let wrapped: Vec<&TraceRow> = wrapped.iter().filter(thought).collect();
        assert_eq!(waits(&plain), waits(&wrapped));
    }
}

#[test]
fn each_session_is_one_transaction_and_some_end_with_an_abort() {
    let spec = spec(&format!("{TRANSACTIONS}[transactions]\nabort_share = 0.25\n"));
    let (mut aborts, mut sessions) = (0, 0);
    for (fragment, rows) in (0u32..).zip(rows(&spec)) {
        // Records of transactions that end with an abort never exist.
        let mut never: BTreeSet<u64> = BTreeSet::new();
        for session in rows.chunk_by(|a, b| a.session == b.session) {
            let verbs: Vec<Verb> = session.iter().map(|row| row.operation.verb).collect();
            let last = verbs[verbs.len() - 1];
            assert!(verbs[0] == Verb::Begin && matches!(last, Verb::Commit | Verb::Abort), "{verbs:?}");
            assert!(session.iter().all(|row| row.txn == Some(0)));
            assert!((3..=4).contains(&session.len()));
            for (step, row) in (0u16..).zip(session) {
                assert_eq!(row.operation.id.place(), (fragment, row.session, step));
            }
            // What it waits for, it waits for before it begins.
            let after = session.iter().filter_map(|row| row.after).max();
            assert_eq!(session[0].after, after, "{session:?}");
            let keys = session.iter().filter(|row| row.operation.verb.control().is_none());
            for row in keys {
                assert!(!never.contains(&row.operation.key), "{row:?}");
            }
            if last == Verb::Abort {
                aborts += 1;
                never.extend(
                    session.iter().filter(|row| row.operation.verb == Verb::Insert).map(|row| row.operation.key),
                );
            }
            sessions += 1;
        }
        assert!(never.len() > 50);
    }
    assert!((900..1_100).contains(&aborts), "{aborts} of {sessions}");
}
