use std::collections::BTreeMap;

use proptest::prelude::*;
use schemas::share::sessions_by_fragment;
use schemas::vocabulary::kv::{TraceRow, Verb};

use super::*;
use crate::core::generator::{Drawn, Sessions as _};

fn spec(fragments: u32, records: u64, tests: &str, more: &str) -> SpecOf<ConsbenchWorkload> {
    let text = format!(
        "name = 't'\nfamily = 'consbench'\nfragments = {fragments}\n{more}\n[data]\nrecords = {records}\nfields = 2\n\
         [consbench]\n{tests}\n"
    );
    SpecOf::parse(&text, "t.toml").unwrap()
}

/// The sessions of all fragments, with their due times.
fn sessions(spec: &SpecOf<ConsbenchWorkload>) -> Vec<Vec<TraceRow>> {
    let consbench = Consbench::new(spec.clone()).unwrap();
    let shares = sessions_by_fragment(consbench.weights(), spec.common.sessions);
    let of = |(fragment, count): (u32, u64)| {
        let mut made = consbench.sessions(fragment);
        let session = |_| {
            let (due_us, mut rows) = (made.next_due_us(), Vec::new());
            assert_eq!(made.try_next(|row| rows.push(TraceRow { due_us, ..*row })), Drawn::Session);
            assert_eq!(rows.len(), 1);
            rows[0]
        };
        (0..count).map(session).collect()
    };
    (0..spec.common.fragments).zip(shares).map(of).collect()
}

/// The tests of a fragment: each write with its reads.
fn tests_of<'a>(rows: &'a [TraceRow], tests: &Tests) -> Vec<(&'a TraceRow, &'a [TraceRow])> {
    rows.chunks(tests.sessions() as usize).map(|test| (&test[0], &test[1..])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every test is a write, and its reads of the same record, one in each slot of the burst. Tests of a
    /// fragment do not overlap.
    #[test]
    fn every_write_has_its_burst(
        (fragments, records) in (1u32..5, 5u64..40),
        (burst_us, pause_us, reads) in (1_000u64..100_000, 0u64..50_000, 1u32..200),
        (readers, seed, each) in (5u32..40, 0u64..1_000, 1u64..12),
    ) {
        let interval_us = burst_us + pause_us;
        let text = format!(
            "tests = {}\nburst = '{burst_us}us'\ninterval = '{interval_us}us'\nreads = {reads}\nreaders = {readers}",
            each * u64::from(fragments)
        );
        let spec = spec(fragments, records, &text, &format!("seed = {seed}"));
        let (tests, consbench) = (spec.own.consbench.tests(), Consbench::new(spec.clone()).unwrap());
        for (fragment, rows) in (0u32..).zip(sessions(&spec)) {
            prop_assert_eq!(rows.len() as u64, each * tests.sessions());
            prop_assert!(rows.windows(2).all(|pair| pair[0].due_us <= pair[1].due_us));
            prop_assert!((0..).zip(&rows).all(|(number, row)| row.session == number && row.step == 0));
            let begin = interval_us * u64::from(fragment) / u64::from(fragments);
            for (number, (write, burst)) in (0u64..).zip(tests_of(&rows, &tests)) {
                prop_assert_eq!((write.operation.verb, write.operation.fields), (Verb::Update, 3));
                prop_assert_eq!(write.operation.id.place(), (fragment, write.session, 0));
                prop_assert!(consbench.records.space().is_in(fragment, write.operation.key));
                let at = write.due_us.unwrap() - begin - number * interval_us;
                prop_assert!(at <= pause_us, "{} of {}", at, pause_us);
                prop_assert_eq!(burst.len() as u32, reads);
                for (slot, read) in (0u64..).zip(burst) {
                    let operation = (read.operation.verb, read.operation.key, read.operation.fields);
                    prop_assert_eq!(operation, (Verb::Read, write.operation.key, 3));
                    let at = read.due_us.unwrap() - write.due_us.unwrap();
                    let edge = |slot: u64| burst_us * slot / u64::from(reads);
                    prop_assert!((edge(slot)..=edge(slot + 1)).contains(&at), "read {} at {}", slot, at);
                }
                // The writer reads first, and then all readers in turn.
                prop_assert_eq!(write.actor, burst[0].actor);
                let own = consbench.actors(fragment);
                for pair in burst.windows(2) {
                    prop_assert!(pair[1].actor == pair[0].actor + 1 || pair[1].actor + own == pair[0].actor + 1);
                }
            }
        }
    }

    #[test]
    fn a_longer_trace_starts_with_the_shorter_one(seed in 0u64..1_000, tests in 2u64..10, more in 0u64..10) {
        let of = |tests: u64| {
            sessions(&spec(2, 9, &format!("tests = {tests}\nburst = '20ms'"), &format!("seed = {seed}")))
        };
        for (short, long) in of(tests).into_iter().zip(of(tests + more)) {
            prop_assert_eq!(&short[..], &long[..short.len()]);
        }
    }
}

/// Records of a fragment are written in turn, so that each has its turn before one is written again.
#[test]
fn records_are_written_in_turn() {
    let spec = spec(3, 20, "tests = 90\nburst = '10ms'\nreads = 2", "");
    for rows in sessions(&spec) {
        let written: Vec<u64> =
            rows.iter().filter(|row| row.operation.verb == Verb::Update).map(|row| row.operation.key).collect();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        written.iter().for_each(|record| *counts.entry(*record).or_default() += 1);
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert!(most - least <= 1, "{counts:?}");
        assert!(
            written
                .windows(counts.len())
                .all(|turn| turn.iter().collect::<std::collections::BTreeSet<_>>().len() == counts.len())
        );
    }
}

/// Fragments have their own due times and different draws.
#[test]
fn fragments_test_at_different_times() {
    let rows = sessions(&spec(2, 9, "tests = 8\nburst = '10ms'\ninterval = '100ms'", ""));
    let writes = |rows: &[TraceRow]| -> Vec<u64> {
        rows.iter().filter(|row| row.operation.verb == Verb::Update).map(|row| row.due_us.unwrap()).collect()
    };
    let (one, other) = (writes(&rows[0]), writes(&rows[1]));
    assert_eq!((one.len(), other.len()), (4, 4));
    assert!(one.iter().zip(&other).all(|(one, other)| *other != one + 50_000));
    assert!((50_000..140_000).contains(&other[0]));
}

/// The bytes of a trace depend on these draws, so a change of them is a change of the format.
#[test]
fn the_draws_are_pinned() {
    let rows =
        sessions(&spec(1, 9, "tests = 2\nburst = '10ms'\nreads = 4\ninterval = '20ms'\nreaders = 3", "")).remove(0);
    let found: Vec<String> = rows
        .iter()
        .map(|row| {
            let (verb, key) = (row.operation.verb.name(), row.operation.key);
            format!("{} us: {verb} {key} by {}", row.due_us.unwrap(), row.actor)
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"));
}
