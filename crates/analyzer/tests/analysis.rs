//! The analysis of whole experiments from files: figures, violations, torn and wrong logs.

mod common;

use common::{Event, Fixture, World, log_row, simulate};
use proptest::prelude::*;
use schemas::oplog::Outcome;
use schemas::social::{Action, Operation};
use schemas::verdict::Ruling;

fn world() -> World {
    World::new(0, 40, 4)
}

fn truthful(seed: u64, operations: u64) -> Vec<Event> {
    simulate(&mut world(), seed, operations, 300)
}

#[test]
fn a_truthful_store_passes_with_the_figures_of_its_log() {
    let events = truthful(1, 1000);
    let fixture = Fixture::new(&[(world(), events.clone())]);
    let verdict = fixture.analyze().unwrap();
    assert_eq!((verdict.ruling, verdict.reasons.clone()), (Ruling::Pass, vec![]));
    let figures = &verdict.figures;
    assert_eq!((figures.overall.ok, figures.sessions, figures.throughput_per_s), (1000, 1000, 1000.0));
    assert_eq!(figures.reads, events.iter().filter(|e| e.operation.action.is_read()).count() as u64);
    let longest = events.iter().map(|e| e.log.end_ns - e.log.start_ns).max().unwrap() as f64;
    assert!((figures.overall.max_ns as f64 - longest).abs() <= longest / 500.0);
    let stored = analyzer::stored_verdict(&fixture.run, 1).unwrap().unwrap();
    assert_eq!((stored.ruling, stored.figures.overall.p99_ns), (Ruling::Pass, figures.overall.p99_ns));
}

/// Guards what tools of other teams read: the bytes of the sealed tables of one log never change by
/// accident. After a change on purpose, or a new version of Parquet's writer, write the new sums here.
#[test]
fn a_golden_log_is_sealed_byte_for_byte() {
    let mut events = truthful(1, 1000);
    // One read in two hundred lies, so that both tables have rows.
    let reads = events.iter_mut().filter(|event| event.operation.action.is_read());
    reads.step_by(200).for_each(|event| event.observed.iter_mut().for_each(|seen| *seen += 1_000_000));
    let verdict = Fixture::new(&[(world(), events)]).analyze().unwrap();
    let sealed = &verdict.sealed[0];
    assert_eq!(
        [&sealed.operations, &sealed.unpredictable].map(|table| (table.bytes, table.blake3.as_str())),
        [
            (17_640, "f11862e61ab03de099ae15364eae191af3d2ca69748402e78f0bd6ea04c5d413"),
            (3_096, "65ccbf5a3fdf25e821898e8e55b13658aa733ad7be49fd9610d54b04186e30a8"),
        ]
    );
}

#[test]
fn fragments_add_up_to_the_whole() {
    let worlds: Vec<(World, Vec<Event>)> = (0..3)
        .map(|i| {
            let world = World::new(i * 100, 30, 3);
            (world.clone(), simulate(&mut world.clone(), i + 7, 400, 200))
        })
        .collect();
    let fixture = Fixture::new(&worlds);
    let whole = fixture.analyze().unwrap().figures;
    assert_eq!((whole.overall.ok, whole.unpredictable_reads), (1200, 0));
    let sum: u64 = whole.by_operation.values().map(|f| f.ok).sum();
    assert_eq!(sum, 1200);
}

#[test]
fn open_loop_response_times_count_from_the_due_time() {
    let mut events = truthful(2, 10);
    for event in &mut events {
        event.log.due_ns = Some(event.log.start_ns - 200_000_000);
    }
    let verdict = Fixture::new(&[(world(), events)]).analyze().unwrap();
    assert_eq!(verdict.ruling, Ruling::Fail);
    assert_eq!(verdict.reasons, ["0% within 100ms, needs 95%"]);
    assert!(verdict.figures.overall.p50_ns >= 199_000_000);
}

#[test]
fn a_continued_experiment_starts_from_the_state_that_the_earlier_sessions_left() {
    let events = truthful(3, 600);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    fixture.fragments[0].first_session = 400;
    fixture.write_documents();
    fixture.write_log(0, 400, &events[400..], true);
    let figures = fixture.analyze().unwrap().figures;
    assert_eq!((figures.overall.ok, figures.unpredictable_reads), (200, 0));
}

/// Without this, a killed replayer would make a correct store look wrong.
#[test]
fn what_a_killed_replayer_did_not_log_may_have_happened() {
    let mut seeds_with_gap = 0;
    for seed in 1..40 {
        let events = truthful(seed, 500);
        let fixture = Fixture::new(&[(world(), events.clone())]);
        std::fs::remove_file(fixture.run.experiment(1, common::THREADS).report()).unwrap();
        // The last batch is lost: the operations that ended last, and those in flight.
        let mut by_end = events.clone();
        by_end.sort_by_key(|e| e.log.end_ns);
        by_end.truncate(448);
        let logged: Vec<u64> = by_end.iter().map(|e| e.log.session).collect();
        let first_lost = (0..500).find(|s| !logged.contains(s)).unwrap();
        seeds_with_gap += u32::from(logged.iter().any(|s| *s > first_lost));
        fixture.write_log(0, 0, &by_end, false);
        let verdict = fixture.analyze().unwrap();
        assert_eq!(verdict.figures.unpredictable_reads, 0, "seed {seed}");
        assert_eq!(verdict.ruling, Ruling::Void);
        assert_eq!(verdict.figures.overall.ok, 448);
        let missing = &verdict.figures.missing[0];
        assert!(missing.contains("fragment 0: log incomplete: 448 rows up to session "), "{missing}");
        assert!(missing.contains("at most 68 rows missing"), "{missing}");
    }
    assert!(seeds_with_gap > 3, "{seeds_with_gap}: sessions missing before logged ones are what is tested");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The validator finds a count that is off by more than concurrent writes can explain (six:
    /// three sessions before and three after), and nothing else.
    #[test]
    fn planted_lies_are_found_and_nothing_else(seed in 1u64..1_000_000, by in 7i64..13) {
        let mut events = truthful(seed, 300);
        let liar = events.iter().position(|e| e.operation.action == Action::ViewProfile).unwrap();
        events[liar].observed[0] += by;
        let figures = Fixture::new(&[(world(), events)]).analyze().unwrap().figures;
        prop_assert_eq!(figures.unpredictable_reads, 1);
        prop_assert_eq!(figures.by_operation["view_profile"].unpredictable, 1);
    }

    /// A write was acknowledged and never happened. The validator finds the later read that
    /// misses it.
    #[test]
    fn lost_writes_are_found(seed in 1u64..1_000_000) {
        let mut world = world();
        let mut events = simulate(&mut world, seed, 50, 300);
        let invite = Operation { action: Action::InviteFriend, socialite: 0, target: 20, comment: None };
        let look = Operation { action: Action::ViewFriendRequests, socialite: 20, target: 20, comment: None };
        let seen: Vec<i64> = world.answer(&look).into_iter().filter(|e| *e != 0).collect();
        let lost = log_row(50, 1_000_000, 1_000_010, Outcome::Ok);
        let read = log_row(51, 1_000_011, 1_000_020, Outcome::Ok);
        events.push(Event { operation: invite, log: lost, observed: vec![], error: None });
        events.push(Event { operation: look, log: read, observed: seen, error: None });
        let figures = Fixture::new(&[(World::new(0, 40, 4), events)]).analyze().unwrap().figures;
        prop_assert_eq!(figures.unpredictable_reads, 1);
    }
}

/// A correct log of 200 operations, damaged by `change`, gives this error.
fn check_error(change: impl FnOnce(&mut Vec<Event>), expect: &str) {
    let events = truthful(5, 200);
    let fixture = Fixture::new(&[(world(), events.clone())]);
    let mut spoiled = events;
    change(&mut spoiled);
    fixture.write_log(0, 0, &spoiled, true);
    let error = fixture.analyze().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("fragment-0.arrows") && text.contains(expect), "{text}");
    assert_eq!(error.exit_code(), 2);
    assert!(!fixture.run.sealed_operations(1, 0).exists(), "nothing is sealed of a log that is wrong");
}

#[test]
fn logs_that_do_not_fit_their_trace_are_errors_that_name_the_row() {
    check_error(|e| e[150].log.session = 5000, "session 5000 is not in the trace set, which has 200");
    check_error(|e| e[150].log.session = 1 << 50, "is not in the trace set, which has 200");
    check_error(|e| e[150].log.step = 3, "session 150 step 3 is not in the trace set");
    check_error(|e| e[150].log.session = 20, "session 20 step 0 is logged twice");
    check_error(|e| e[150].log.session = 149, "is logged twice");
    check_error(|e| e[3].log.end_ns = e[3].log.start_ns - 1, "session 3 ends at");
    check_error(|e| drop(e.remove(77)), "session 77 step 0 is missing");
}

#[test]
fn another_trace_set_or_log_is_an_error() {
    let events = truthful(6, 50);
    let fixture = Fixture::new(&[(world(), events.clone())]);
    fixture.write_log(0, 3, &events[3..], true);
    let text = fixture.analyze().unwrap_err().to_string();
    assert!(text.contains("the log has first session 3, the plan has 0"), "{text}");

    let fixture = Fixture::new(&[(world(), events)]);
    common::write_trace(&fixture.trace(), &[(world(), truthful(9, 60).iter().map(|e| e.operation).collect())]);
    // A longer trace set of the same workload would be accepted; this one is of another workload.
    let document = std::fs::read_to_string(fixture.run.document()).unwrap();
    std::fs::write(fixture.run.document(), document.replace(&common::spec().workload_id(), "another")).unwrap();
    let text = fixture.analyze().unwrap_err().to_string();
    assert!(text.contains("small.trace") && text.contains("experiment 1 replayed"), "{text}");

    let text = analyzer::analyze(&fixture.run, 4, None).unwrap_err().to_string();
    assert!(text.contains("there is no experiment 4; it has 1"), "{text}");
}
