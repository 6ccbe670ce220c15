//! Open loops from files: response and service times, queueing and lateness, M and the rates.

mod common;

use std::process::Command;

use analyzer::sql::Database;
use common::{Event, Fixture, THREADS, World, log_row, outcomes};
use duckdb::types::Value;
use schemas::oplog::Outcome;
use schemas::pace::{Due, OpenLoop, Overload};
use schemas::run::{ExperimentFolder, Host, ReplayReport, ReplayerReport};
use schemas::social::{Action, Operation};
use schemas::verdict::Verdict;

const MS: i64 = 1_000_000;

/// How late the replayer starts a session that it waited for.
const LATE_NS: i64 = 20_000;

/// One thread, and 300 sessions that are due every 10 ms. Each takes 1 ms, but the one that is due at
/// 1 s takes a second.
fn stalled(world: &mut World, member: u64) -> Vec<Event> {
    let mut freed_ns = i64::MIN;
    (0..300)
        .map(|session| {
            let operation =
                Operation { action: Action::ViewProfile, socialite: member, target: member + 9, comment: None };
            let due_ns = session as i64 * 10 * MS;
            let start_ns = if freed_ns > due_ns { freed_ns + 1 } else { due_ns + LATE_NS };
            freed_ns = start_ns + if session == 100 { 1000 * MS } else { MS };
            let mut log = log_row(session, start_ns, freed_ns, Outcome::Ok);
            log.due_ns = Some(due_ns);
            Event { operation, log, observed: world.answer(&operation), error: None }
        })
        .collect()
}

/// The same on each of two replayers, whose threads both have the number 0.
fn fixture() -> Fixture {
    let worlds = [0, 100].map(|first| {
        let world = World::new(first, 40, 4);
        (world.clone(), stalled(&mut world.clone(), first))
    });
    let fixture = Fixture::new(&worlds);
    fixture.write_report(3_000_000_000, outcomes(worlds.iter().flat_map(|(_, events)| events)));
    let folder = experiment(&fixture);
    let mut plan = fixture.plan();
    plan.open_loop = Some(OpenLoop { due: Due::Even { per_s: 200.0 }, overload: Overload::Queue });
    schemas::files::write_json(&folder.plan(), &plan).unwrap();
    let mut report: ReplayReport = schemas::files::read_json(&folder.report()).unwrap();
    report.replayers = (0..2).map(replayer).collect();
    schemas::files::write_json(&folder.report(), &report).unwrap();
    fixture
}

fn replayer(fragment: u32) -> ReplayerReport {
    ReplayerReport {
        name: format!("host-{fragment}:1"),
        host: Host { name: "host".into(), system: "linux-x86_64".into(), cpus: 2 },
        fragments: vec![fragment],
        threads: THREADS / 2,
        ok: 300,
        errors: 0,
        worker_cpu_share: 0.2,
        dispatch_lag_ns_mean: 100.0,
        dispatch_lag_ns_p99: 100,
        run_delay_share: None,
        idle_ns: 0,
        overloaded: false,
        clock: Default::default(),
    }
}

fn experiment(fixture: &Fixture) -> ExperimentFolder {
    fixture.run.experiment(1, THREADS)
}

fn query(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Vec<Vec<Value>> {
    Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap().query(statement).unwrap().rows
}

fn within_one_percent(ns: u64, expect_ns: i64) -> bool {
    (ns as f64 / expect_ns as f64 - 1.0).abs() < 0.01
}

/// Sessions that queue while the store stalls have long response times, but only one operation met the
/// stall itself. Figures without due times hide it (coordinated omission).
#[test]
fn a_stall_shows_in_full_in_response_times_and_hardly_in_service_times() {
    let fixture = fixture();
    let verdict = fixture.analyze().unwrap();
    let overall = &verdict.figures.overall;
    let service = overall.service.unwrap();
    assert!(within_one_percent(overall.max_ns, 1000 * MS + LATE_NS), "{overall:?}");
    // 100 sessions are due in the second of the stall, and the last third of them queues for longest.
    assert!(overall.p95_ns > 800 * MS as u64 && overall.p99_ns > 950 * MS as u64, "{overall:?}");
    assert!(within_one_percent(service.p99_ns, MS) && within_one_percent(service.p50_ns, MS), "{service:?}");
    assert!(within_one_percent(service.max_ns, 1000 * MS), "{service:?}");
    assert_eq!(verdict.figures.by_operation["view_profile"].service, Some(service));
    // SQL gives the same.
    let columns = "service_mean_ns, service_p50_ns, service_p95_ns, service_p99_ns, service_max_ns";
    let numbers = |ns: u64| Value::BigInt(ns as i64);
    let expect = [service.p50_ns, service.p95_ns, service.p99_ns, service.max_ns].map(numbers);
    let found = query(&fixture, &verdict, &format!("SELECT {columns} FROM experiments"));
    assert_eq!(found[0][0], Value::Double(service.mean_ns));
    assert_eq!(found[0][1..], expect);
}

/// A response time is the time in the queue, then the lateness of the replayer, other waits, and the
/// service time.
#[test]
fn every_response_time_is_the_sum_of_its_parts() {
    let fixture = fixture();
    let verdict = fixture.analyze().unwrap();
    let sums = "SELECT count(*), count(*) FILTER (response_ns = queued_ns + late_ns + waited_ns + service_ns), \
                count(*) FILTER (queued_ns = 0 AND late_ns = 20000), count(*) FILTER (queued_ns > 0 AND late_ns = 1), \
                max(queued_ns) FROM operations";
    // Each replayer clears its queue of 99 sessions at 1 ms each, while 12 more come.
    let queued = 111;
    let numbers = [600, 600, 2 * (300 - queued), 2 * queued, 990 * MS + LATE_NS].map(Value::BigInt);
    assert_eq!(query(&fixture, &verdict, sums), [numbers]);
}

/// The queue of the stall clears within a slice, in which most response times are long and one service
/// time of each replayer is. Spectrum, timeline and sessions used to have response times only.
#[test]
fn slices_spectra_and_sessions_have_both_times() {
    let fixture = fixture();
    let verdict = fixture.analyze().unwrap();
    let slices = &verdict.figures.timeline.slices;
    let (slice, service) = (slices[10], slices[10].service.unwrap());
    assert!(slice.p50_ns > 100 * MS as u64 && service.p95_ns < 2 * MS as u64, "{slice:?}");
    assert!(within_one_percent(slice.max_ns, 1000 * MS) && within_one_percent(service.max_ns, 1000 * MS), "{slice:?}");
    // The view has exact values; those of the verdict may be 0.8% higher.
    let columns = "service_max_ns, service_p50_ns, service_p95_ns, service_p99_ns";
    let rows = query(&fixture, &verdict, &format!("SELECT {columns} FROM timeline ORDER BY slice"));
    assert_eq!(rows.len(), slices.len());
    for (row, slice) in rows.iter().zip(slices) {
        let service = slice.service.unwrap();
        for (exact, found) in row.iter().zip([service.max_ns, service.p50_ns, service.p95_ns, service.p99_ns]) {
            let Value::BigInt(exact) = *exact else { panic!("{exact:?}") };
            assert!(exact as u64 <= found && found <= (exact + exact / 128) as u64, "{exact} and {service:?}");
        }
    }
    let of = |column: &str, view: &str| {
        let statement = format!("SELECT sum(operations)::BIGINT, max({column}), max(percent) FROM {view}");
        query(&fixture, &verdict, &statement)
    };
    let expect = |max_ns| [[Value::BigInt(600), Value::BigInt(max_ns), Value::Double(100.0)]];
    assert_eq!(of("response_ns", "spectrum"), expect(1000 * MS + LATE_NS));
    assert_eq!(of("service_ns", "service_spectrum"), expect(1000 * MS));
    let sessions = "SELECT max(response_ns), max(duration_ns), count(due_ns) FROM sessions";
    let expect = [1000 * MS + LATE_NS, 1000 * MS, 600].map(Value::BigInt);
    assert_eq!(query(&fixture, &verdict, sessions), [expect]);
}

/// A closed loop has one kind of times, and shows it once.
#[test]
fn a_closed_loop_has_no_service_times_of_its_own() {
    let world = World::new(0, 40, 4);
    let mut events = stalled(&mut world.clone(), 0);
    events.iter_mut().for_each(|event| event.log.due_ns = None);
    let fixture = Fixture::new(&[(world, events.clone())]);
    fixture.write_report(3_000_000_000, outcomes(&events));
    let verdict = fixture.analyze().unwrap();
    let slices = &verdict.figures.timeline.slices;
    assert!(verdict.figures.overall.service.is_none() && slices.iter().all(|slice| slice.service.is_none()));
    let statement = "SELECT count(service_max_ns), (SELECT count(*) FROM service_spectrum), \
                     (SELECT count(*) FROM sessions WHERE response_ns IS DISTINCT FROM duration_ns) FROM timeline";
    assert_eq!(query(&fixture, &verdict, statement), [[0, 0, 0].map(Value::BigInt)]);
}

#[test]
fn m_and_rates_of_the_timeline_are_those_of_sql() {
    let fixture = fixture();
    let verdict = analyzer::analyze(&fixture.run, 1, Some(&"95% < 100ms, 3s".parse().unwrap())).unwrap();
    let timeline = &verdict.figures.timeline;
    assert_eq!(timeline.slice_s, 0.2);
    // Of each replayer's sessions, 101 of 300 end more than 100 ms after they were due.
    let met = verdict.figures.met_percent.unwrap();
    assert!((met - 199.0 / 3.0).abs() < 1e-9, "{met}");
    let slices: Vec<_> = timeline.slices.iter().map(|s| (s.sessions, s.met, s.due_per_s)).collect();
    assert_eq!((slices[0], slices[6]), ((40, 40, Some(200.0)), (0, 0, Some(200.0))));
    assert_eq!((timeline.slices[0].met_percent(), timeline.slices[6].met_percent()), (Some(100.0), None));
    let statement = "SELECT sessions, met, due_per_s, met_percent FROM timeline ORDER BY slice";
    let double = |value: Option<f64>| value.map_or(Value::Null, Value::Double);
    let row = |s: &schemas::verdict::Slice| {
        let counts = [s.sessions, s.met].map(|count| Value::BigInt(count as i64));
        counts.into_iter().chain([double(s.due_per_s), double(s.met_percent())]).collect::<Vec<_>>()
    };
    assert_eq!(query(&fixture, &verdict, statement), timeline.slices.iter().map(row).collect::<Vec<_>>());
    assert_eq!(query(&fixture, &verdict, "SELECT met_percent FROM experiments"), [[Value::Double(met)]]);
}

/// What the program prints for an open loop, and the page's charts.
#[test]
fn open_loops_in_words_and_pictures() {
    let fixture = fixture();
    let run = fixture.run.root().display().to_string();
    let analyze = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_analyzer")).args(arguments).env_remove("COLUMNS").output();
        String::from_utf8(output.unwrap().stdout).unwrap().replace(&run, "RUN")
    };
    let sla = ["--sla", "95% < 100ms, 3s"];
    insta::assert_snapshot!(
        analyze(&[&["summary", &run], &sla[..]].concat()).replace(&fixture.plan().trace_id, "TRACE")
    );
    fixture.analyze().unwrap();
    analyze(&["report", &run]);
    let page = std::fs::read_to_string(fixture.run.root().join("report.html")).unwrap();
    let of_load = ["Operations that met both limits (M). Wanted and achieved rate", "M (% of operations)"];
    let of_service = ["Service times", "service p95", "Service times over time", "Percentiles of service times"];
    for words in of_load.into_iter().chain(of_service).chain(["Service times by percentile: reads"]) {
        assert!(page.contains(words), "{words:?} is not in the page");
    }
    let tooltips = |series: &str| page.matches(&format!("<title>{series} ")).count();
    assert!(tooltips("wanted 200.0 sessions/s at") > 10 && tooltips("achieved") > 10 && tooltips("M") > 5, "{page}");
    // Percentiles of both times, and a spectrum of both.
    let mean_ms = |more: &[&str]| {
        let text = analyze(&[&["export", &run, "--format", "hgrm"], more].concat());
        assert!(text.contains("Total count    =          600]"), "{text}");
        let mean = text.split("#[Mean    =").nth(1).and_then(|rest| rest.split(',').next()).expect("a mean");
        mean.trim().parse::<f64>().expect("a number")
    };
    let (response, service) = (mean_ms(&[]), mean_ms(&["--times", "service"]));
    // 299 sessions of 1 ms, and one of a second.
    assert!((4.3..4.4).contains(&service) && response > 100.0, "{response} ms, {service} ms");
    assert_eq!(mean_ms(&["--times", "response"]), response);
    let spectrum = analyze(&["export", &run, "--format", "csv", "--rows", "service-spectrum"]);
    assert!(spectrum.starts_with("experiment,operation,service_ns,operations,percent\n"), "{spectrum}");
    let comparison = analyze(&["compare", &run, &run]);
    assert!(comparison.contains("service p95 of a slice (ms)"), "{comparison}");
    let metrics = analyze(&["export", &run, "--format", "openmetrics"]);
    assert!(metrics.contains("encore_service_time_seconds{") && metrics.contains("encore_met_ratio{"), "{metrics}");
}

/// Another program needs no more than the statements for the columns that depend on replayers and
/// rates.
#[test]
fn the_definitions_have_all_of_an_open_loop() {
    let fixture = fixture();
    let verdict = fixture.analyze().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyzer"));
    let printed = command.arg("sql").arg(fixture.run.root()).arg("--definitions").output().unwrap().stdout;
    let elsewhere = duckdb::Connection::open_in_memory().unwrap();
    elsewhere.execute_batch(std::str::from_utf8(&printed).unwrap()).unwrap();
    let statement = "SELECT sum(queued_ns)::BIGINT FROM operations";
    let queued_ns: i64 = elsewhere.query_row(statement, [], |row| row.get(0)).unwrap();
    assert_eq!(query(&fixture, &verdict, statement), [[Value::BigInt(queued_ns)]]);
    let rates: f64 = elsewhere.query_row("SELECT max(due_per_s) FROM due_rates", [], |row| row.get(0)).unwrap();
    assert_eq!(rates, 200.0);
}
