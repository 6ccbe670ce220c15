//! The measured part of an experiment: warm-up, no-operations, timeline and
//! freshness, each also by SQL; and experiments that never ran.

mod common;

use analyzer::sql::{Answer, Database};
use common::{Dice, Event, Fixture, World, log_row, noops_before, outcomes, simulate};
use duckdb::types::Value;
use schemas::oplog::Outcome;
use schemas::plan::Limit;
use schemas::run::{EndReason, FragmentPosition, ReplayReport};
use schemas::social::{Action, Operation};
use schemas::verdict::{Figures, Ruling, Slice, Verdict};

fn world() -> World {
    World::new(0, 40, 4)
}

fn truthful(seed: u64, operations: u64) -> Vec<Event> {
    simulate(&mut world(), seed, operations, 300)
}

fn query(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Answer {
    Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap().query(statement).unwrap()
}

fn integer(value: &Value) -> u64 {
    match value {
        Value::BigInt(n) => *n as u64,
        Value::HugeInt(n) => *n as u64,
        other => panic!("{other:?} is no integer"),
    }
}

fn integers(answer: &Answer) -> Vec<Vec<u64>> {
    answer.rows.iter().map(|row| row.iter().map(integer).collect()).collect()
}

/// Sets the warm-up of the first fragment, and writes a report with it.
fn warm(fixture: &mut Fixture, events: &[Event], warmup_sessions: u64) {
    fixture.fragments[0].warmup_sessions = warmup_sessions;
    fixture.write_documents();
    let measured = &events[warmup_sessions as usize..];
    let from = measured.iter().map(|e| e.log.start_ns).min().unwrap_or(0);
    let to = measured.iter().map(|e| e.log.end_ns).max().unwrap_or(0);
    fixture.write_warm_report(from as u64, warmup_sessions, (to - from) as u64, outcomes(measured));
}

/// Operations that start after the planned time, to end the sessions that were under way, are in
/// no figure. Operations in flight at its end are in all figures except the rates.
#[test]
fn rates_are_those_of_the_planned_time() {
    let events = truthful(1, 900);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 300);
    let from_ns = events[300..].iter().map(|e| e.log.start_ns).min().unwrap();
    let to_ns = events[300..].iter().map(|e| e.log.end_ns).max().unwrap();
    let planned_ns = (to_ns - from_ns) / 2;
    let mut plan = fixture.plan();
    plan.limit = Limit::DurationS(planned_ns as f64 / 1e9);
    schemas::files::write_json(&fixture.run.experiment(1, plan.threads).plan(), &plan).unwrap();
    let verdict = fixture.analyze().unwrap();
    let figures = &verdict.figures;
    let drained = events[300..].iter().filter(|e| e.log.start_ns - from_ns >= planned_ns).count() as u64;
    assert!((200..400).contains(&drained), "{drained}");
    assert_eq!((figures.overall.ok, figures.drained_operations), (600 - drained, drained));
    assert!(figures.counted_ns.abs_diff(planned_ns as u64) <= 1, "{}", figures.counted_ns);
    let within = "SELECT count(*) FROM operations o JOIN experiments e USING (experiment) \
                  WHERE NOT warmup AND NOT drained AND o.end_ns - e.measured_from_ns <= e.counted_ns";
    let within = integers(&query(&fixture, &verdict, within))[0][0];
    assert!((200..400).contains(&within), "{within}");
    let counted_s = figures.counted_ns as f64 / 1e9;
    assert!((figures.throughput_per_s * counted_s - within as f64).abs() < 1e-6, "{}", figures.throughput_per_s);
}

/// Time in which threads only wait counts too: the experiment ends no sooner.
#[test]
fn idle_time_counts() {
    let events = truthful(1, 300);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 0);
    let mut plan = fixture.plan();
    plan.limit = Limit::DurationS(100.0);
    schemas::files::write_json(&fixture.run.experiment(1, plan.threads).plan(), &plan).unwrap();
    let figures = fixture.analyze().unwrap().figures;
    assert!(figures.elapsed_ns < 1_000_000_000, "{}", figures.elapsed_ns);
    assert_eq!((figures.counted_ns, figures.throughput_per_s), (100_000_000_000, 3.0));
    // The slices cover the same time.
    let slices = figures.timeline.slices.len() as f64;
    assert_eq!(slices * figures.timeline.slice_s, 100.0, "{:?}", figures.timeline);
}

/// A replayer that has sent its report may be unreachable when its log is fetched.
#[test]
fn a_log_that_could_not_be_fetched_makes_the_experiment_void() {
    let events = truthful(1, 300);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 0);
    let folder = fixture.run.experiment(1, fixture.plan().threads);
    let mut report: ReplayReport = schemas::files::read_json(&folder.report()).unwrap();
    report.positions = vec![FragmentPosition::at(0, 300)];
    report.faults = vec!["the log could not be fetched".into()];
    schemas::files::write_json(&folder.report(), &report).unwrap();
    std::fs::remove_file(folder.log(0)).unwrap();
    let verdict = fixture.analyze().unwrap();
    assert_eq!(verdict.ruling, Ruling::Void);
    let says = |words: &str| verdict.reasons.iter().any(|reason| reason.contains(words));
    assert!(says("the log could not be fetched") && says("fragment 0: no log"), "{:?}", verdict.reasons);
}

/// Such an experiment made the whole run unreadable: its report says that it was interrupted, and
/// it has no log.
#[test]
fn an_experiment_that_was_stopped_before_it_began_is_void() {
    let events = truthful(1, 300);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 0);
    let folder = fixture.run.experiment(1, fixture.plan().threads);
    std::fs::remove_file(folder.log(0)).unwrap();
    let error = fixture.analyze().unwrap_err().to_string();
    assert!(error.contains("fragment-0.arrows"), "what ran has a log: {error}");
    let report =
        ReplayReport { end: EndReason::Interrupted, positions: vec![FragmentPosition::at(0, 0)], ..Default::default() };
    schemas::files::write_json(&folder.report(), &report).unwrap();
    let verdict = fixture.analyze().unwrap();
    let says = |words: &str| verdict.reasons.iter().any(|reason| reason.contains(words));
    assert!(verdict.ruling == Ruling::Void && says("never started"), "{:?}", verdict.reasons);
}

#[test]
fn the_warm_up_is_sealed_and_checked_and_not_counted() {
    let mut events = truthful(1, 900);
    let is_profile = |e: &&Event| e.operation.action == Action::ViewProfile;
    let liar = events.iter().position(|e| is_profile(&e)).unwrap();
    events[liar].observed[0] += 9;
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 300);
    let verdict = fixture.analyze().unwrap();
    let figures = &verdict.figures;
    assert_eq!((verdict.ruling, verdict.reasons.as_slice()), (Ruling::Pass, &[][..]));
    assert_eq!((figures.warmup_operations, figures.overall.ok, figures.sessions), (300, 600, 600));
    let reads = events[300..].iter().filter(|e| e.operation.action.is_read()).count() as u64;
    // Without the writes of the warm-up a correct store would look wrong.
    assert_eq!((figures.reads, figures.unpredictable_reads), (reads, 0));
    let noops: u64 = (300..900).map(|session| noops_before(session) as u64).sum();
    assert_eq!((figures.noops, noops), (120, 120));
    let elapsed_s = figures.elapsed_ns as f64 / 1e9;
    assert!((figures.throughput_per_s * elapsed_s - 600.0).abs() < 1e-6);
    assert!((figures.sessions_per_s * elapsed_s - 720.0).abs() < 1e-6);
    assert_eq!(figures.timeline.slices.iter().map(|s| s.ok).sum::<u64>(), 600);

    let sums = "SELECT count(*) FILTER (warmup), count(*) FILTER (NOT warmup), count(*) FILTER (kind <> operation), \
                max(session) FILTER (warmup), (SELECT count(*) FROM unpredictable WHERE warmup), \
                (SELECT count(*) FROM unpredictable), (SELECT count(*) FROM sessions WHERE warmup), \
                (SELECT sum(warmup_operations + noops) FROM experiments) FROM operations";
    assert_eq!(integers(&query(&fixture, &verdict, sums)), [[300, 600, 0, 299, 1, 1, 300, 420]]);
}

#[test]
fn the_spectrum_counts_every_response_time_once() {
    let events = truthful(1, 900);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 300);
    let verdict = fixture.analyze().unwrap();
    let mut expect: Vec<u64> = events[300..]
        .iter()
        .filter(|e| e.operation.action == Action::ViewProfile)
        .map(|e| (e.log.end_ns - e.log.start_ns) as u64)
        .collect();
    expect.sort_unstable();
    for (percent, rank) in [(50.0, expect.len().div_ceil(2)), (100.0, expect.len())] {
        let statement = format!(
            "SELECT min(response_ns), (SELECT sum(operations) FROM spectrum WHERE operation = 'view_profile'), \
             (SELECT sum(operations) FROM spectrum) FROM spectrum WHERE operation = 'view_profile' AND percent >= {percent}"
        );
        let answer = integers(&query(&fixture, &verdict, &statement));
        assert_eq!(answer, [[expect[rank - 1], expect.len() as u64, 600]], "{percent}");
    }
}

/// A killed replayer leaves no report: only the log shows the measured part.
#[test]
fn without_a_report_the_measured_part_is_from_its_first_start_to_its_last_end() {
    let events = truthful(2, 500);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 200);
    let reported = fixture.analyze().unwrap();
    std::fs::remove_file(fixture.run.experiment(1, common::THREADS).report()).unwrap();
    let verdict = fixture.analyze().unwrap();
    assert_eq!(verdict.ruling, Ruling::Void);
    assert_eq!(verdict.figures, reported.figures);
    check_timeline(&fixture, &verdict);
}

#[test]
fn a_warm_up_that_takes_everything_makes_it_void() {
    let events = truthful(3, 100);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 100);
    let verdict = fixture.analyze().unwrap();
    assert_eq!(verdict.ruling, Ruling::Void);
    assert!(verdict.reasons[0].starts_with("nothing measured: all operations (100)"), "{:?}", verdict.reasons);
    assert_eq!(verdict.figures, Figures { warmup_operations: 100, ..Figures::default() });
    assert_eq!(query(&fixture, &verdict, "FROM timeline").rows, Vec::<Vec<Value>>::new());
}

/// Checks that the verdict's timeline and the view of that name agree. The verdict's percentiles
/// come from histograms and may be 0.8% higher.
fn check_timeline(fixture: &Fixture, verdict: &Verdict) {
    let statement = "SELECT slice, (from_s * 1e9)::BIGINT, ok, errors, unpredictable, max_ns, p50_ns, p95_ns, p99_ns \
                     FROM timeline ORDER BY slice";
    let found = integers(&query(fixture, verdict, statement));
    let timeline = &verdict.figures.timeline;
    let slice_ns = (timeline.slice_s * 1e9).round() as u64;
    assert_eq!(found.len(), timeline.slices.len());
    for (index, (row, slice)) in (0..).zip(found.iter().zip(&timeline.slices)) {
        let Slice { ok, errors, unpredictable, max_ns, .. } = *slice;
        assert_eq!(row[..6], [index, index * slice_ns, ok, errors, unpredictable, max_ns]);
        for (exact, found) in row[6..].iter().zip([slice.p50_ns, slice.p95_ns, slice.p99_ns]) {
            assert!(*exact <= found && found <= exact + exact / 128, "slice {index}: {found} ns, not {exact} ns");
        }
    }
}

#[test]
fn the_timeline_is_that_of_sql_over_all_fragments() {
    let worlds: Vec<(World, Vec<Event>)> = (0..3)
        .map(|i| {
            let world = World::new(i * 100, 30, 3);
            let mut events = simulate(&mut world.clone(), i + 7, 4000, 0);
            for (index, event) in events.iter_mut().enumerate() {
                match index % 50 {
                    7 => event.log.outcome = Outcome::Failed,
                    8 if event.operation.action == Action::ViewProfile => event.observed[0] += 1,
                    _ => {}
                }
            }
            (world, events)
        })
        .collect();
    let fixture = Fixture::new(&worlds);
    fixture.write_report(25_000_000, outcomes(worlds.iter().flat_map(|(_, events)| events)));
    let verdict = fixture.analyze().unwrap();
    let timeline = &verdict.figures.timeline;
    // The log ends after 4 ms: the rest of the reported time is empty.
    assert_eq!((timeline.slice_s, timeline.slices.len()), (0.002, 13));
    assert!(timeline.slices[..2].iter().all(|s| s.ok > 1000 && s.errors > 50 && s.unpredictable > 5));
    assert!(timeline.slices[3..].iter().all(|s| *s == Slice::default()));
    check_timeline(&fixture, &verdict);
}

/// A store that stalls for a second must not hide it.
#[test]
fn a_stall_raises_p99_and_shows_in_the_timeline() {
    let ms = 1_000_000;
    let mut world = world();
    let mut events = Vec::new();
    for call in 0..67 {
        for thread in 0..4 {
            let operation = Operation { action: Action::ViewProfile, socialite: thread, target: 9, comment: None };
            let (start, end) = match call {
                0..33 => (call * 30, call * 30 + 30),
                33 => (990, 1990),
                _ => ((call - 34) * 30 + 1990, (call - 34) * 30 + 2020),
            };
            let mut log = log_row(events.len() as u64, start * ms, end * ms, Outcome::Ok);
            log.thread = thread as u32;
            events.push(Event { operation, log, observed: world.answer(&operation), error: None });
        }
    }
    let fixture = Fixture::new(&[(world, events.clone())]);
    fixture.write_report(2980 * ms as u64, outcomes(&events));
    let verdict = fixture.analyze().unwrap();
    let figures = &verdict.figures;
    let about = |ns: u64, expect_ms: u64| ns.abs_diff(expect_ms * ms as u64) <= expect_ms * ms as u64 / 100;
    assert!(about(figures.overall.p99_ns, 1000) && about(figures.overall.p50_ns, 30), "{:?}", figures.overall);
    let slices = &figures.timeline.slices;
    assert_eq!((figures.timeline.slice_s, slices.len()), (0.2, 15));
    for (index, slice) in slices.iter().enumerate() {
        match index {
            5..9 => assert_eq!(slice.ok, 0, "slice {index}"),
            9 => assert!(about(slice.max_ns, 1000) && about(slice.p99_ns, 1000), "{slice:?}"),
            _ => assert!(slice.ok >= 20 && about(slice.max_ns, 30), "slice {index}: {slice:?}"),
        }
    }
    check_timeline(&fixture, &verdict);
}

/// Like [`simulate`], but readers see a write only `lag` operations later.
fn stale(seed: u64, operations: u64, lag: usize) -> Vec<Event> {
    let (mut truth, mut seen, mut late) = (world(), world(), std::collections::VecDeque::new());
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..operations)
        .map(|session| {
            let operation = truth.draw(&mut dice, 200);
            let observed = seen.answer(&operation);
            truth.apply(&operation);
            late.push_back(operation);
            if late.len() > lag {
                late.pop_front().iter().for_each(|operation| seen.apply(operation));
            }
            let start = 10_000 + session as i64 * 1000;
            Event { operation, log: log_row(session, start, start + 900, Outcome::Ok), observed, error: None }
        })
        .collect()
}

fn check_freshness(fixture: &Fixture, verdict: &Verdict) {
    let statement = "SELECT from_us, to_us, reads, fresh FROM freshness ORDER BY from_us";
    let expect: Vec<Vec<u64>> =
        verdict.figures.freshness.iter().map(|f| vec![f.from_us, f.to_us, f.reads, f.fresh]).collect();
    assert_eq!(integers(&query(fixture, verdict, statement)), expect);
}

#[test]
fn a_correct_store_is_fresh_at_any_age() {
    let events = truthful(4, 3000);
    let mut fixture = Fixture::new(&[(world(), events.clone())]);
    warm(&mut fixture, &events, 500);
    let verdict = fixture.analyze().unwrap();
    let freshness = &verdict.figures.freshness;
    assert!(freshness.len() > 5 && freshness.iter().all(|f| f.fresh == f.reads), "{freshness:?}");
    check_freshness(&fixture, &verdict);
}

#[test]
fn a_stale_store_is_not_fresh_until_its_lag_has_passed() {
    let fixture = Fixture::new(&[(world(), stale(5, 12_000, 64)), (other_world(), misshapen())]);
    let verdict = fixture.analyze().unwrap();
    let freshness = &verdict.figures.freshness;
    // A write becomes visible 64 operations later, which is 64 microseconds.
    for bucket in freshness.iter().filter(|bucket| bucket.from_us >= 64) {
        assert_eq!(bucket.fresh, bucket.reads, "{bucket:?}");
    }
    let young: Vec<_> = freshness.iter().filter(|bucket| bucket.from_us < 64 && bucket.reads >= 50).collect();
    assert!(young.len() > 2 && young.iter().all(|bucket| bucket.fresh * 5 < bucket.reads), "{freshness:?}");
    check_freshness(&fixture, &verdict);
}

/// A second fragment, of members 100 and up, with fresh reads.
fn other_world() -> World {
    World::new(100, 40, 4)
}

fn misshapen() -> Vec<Event> {
    let mut events = simulate(&mut other_world(), 6, 200, 300);
    // An answer of the wrong shape says nothing about its items.
    let profile = events.iter_mut().rev().find(|e| e.operation.action == Action::ViewProfile);
    profile.unwrap().observed.truncate(1);
    events
}

/// An experiment whose store was not in the expected state has a plan and a verdict, and no log.
#[test]
fn an_experiment_that_never_ran_has_the_verdict_that_was_recorded() {
    let fixture = Fixture::new(&[(world(), truthful(6, 10))]);
    std::fs::remove_file(fixture.log(0)).unwrap();
    std::fs::remove_file(fixture.run.experiment(1, common::THREADS).report()).unwrap();
    assert!(analyzer::stored_verdict(&fixture.run, 1).unwrap().is_none());
    let sla = "99% < 5ms".parse().unwrap();
    let reasons = vec!["the store holds another state than the plan begins with".to_string()];
    let verdict = analyzer::void_verdict(1, common::THREADS, sla, reasons.clone());
    analyzer::record_void(&fixture.run, &verdict).unwrap();
    assert_eq!(analyzer::stored_verdict(&fixture.run, 1).unwrap(), Some(verdict.clone()));
    let again = fixture.analyze().unwrap();
    assert_eq!((again.ruling, &again.reasons, again.sla), (Ruling::Void, &reasons, Default::default()));
    let statement = "SELECT experiment, (SELECT count(*) FROM operations), (SELECT count(*) FROM timeline), \
                     (SELECT count(*) FROM freshness), ok FROM experiments WHERE ruling = 'void'";
    assert_eq!(integers(&query(&fixture, &verdict, statement)), [[1, 0, 0, 0, 0]]);
}
