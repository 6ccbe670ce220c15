//! Experiments with a warm-up, experiments that continue, and what becomes of
//! the store's state in between.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use common::{plan, trace};
use replayer::any_store::{self, AnyStore};
use replayer::experiment::{Control, Experiment, ExperimentError, Part, Snapshot};
use replayer::stores::Blame;
use schemas::oplog::{LogColumns, LogReader, LogRow, Outcome};
use schemas::plan::{Limit, Plan};
use schemas::run::{EndReason, ReplayReport};

/// Runs a plan on a store that is in the right state; its logs are in `folder`.
fn run(store: &dyn AnyStore, plan: Plan, folder: PathBuf) -> Result<ReplayReport, ExperimentError> {
    store.run(&Experiment::prepare(plan, folder)?, &Control::default(), &mut |_| {})
}

/// The rows of a fragment's log.
fn log(folder: &Path, fragment: u32) -> Vec<LogRow> {
    let path = folder.join(format!("log/fragment-{fragment}.arrows"));
    let mut rows = Vec::new();
    for batch in LogReader::open(&path).expect("a log") {
        let batch = batch.expect("a batch");
        let columns = LogColumns::of(&batch, &path).expect("columns");
        rows.extend((0..columns.len()).map(|at| columns.row(at)));
    }
    rows
}

/// If a log cannot be created, nothing is replayed, and the store stays as it was.
#[test]
fn a_log_that_cannot_be_made_leaves_the_store_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["sessions=300"]);
    let url = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    let store = any_store::open(&url).expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let first = run(store.as_ref(), plan(&source, 2, Limit::Sessions(100), &[], 0), folder.path().join("1"));
    let first = first.expect("a replay");
    let next = || plan(&source, 2, Limit::Sessions(100), &first.positions, 0);
    let error = run(store.as_ref(), next(), folder.path().join("1")).expect_err("the log exists").to_string();
    assert!(error.contains("fragment-0.arrows"), "{error}");
    let second = run(store.as_ref(), next(), folder.path().join("2")).expect("it goes on where it was");
    assert_eq!(second.sessions, 100);
}

/// A replayer that stood still while the others began has missed the beginning. The work that it
/// could not do counts, and its report says how late it was.
#[test]
fn a_replayer_that_receives_its_start_late_reports_the_delay() {
    const LATE_NS: i64 = 400_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["sessions=20000", "data.members=1000"]);
    let store = any_store::open("memory:?latency_us=1000").expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let now_ns = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
    for warmup in [0, 50] {
        let waits = AtomicU32::new(0);
        let start = move || {
            // The warm-up begins in time.
            let is_first = waits.fetch_add(1, Ordering::Relaxed) == 0;
            Some(now_ns() - if warmup > 0 && is_first { 0 } else { LATE_NS })
        };
        let control = Control { start: Some(Arc::new(start)), ..Control::default() };
        let plan = plan(&source, 4, Limit::DurationS(1.0), &[], warmup);
        let experiment = Experiment::prepare(plan, folder.path().join(warmup.to_string())).expect("a plan");
        let report = store.run(&experiment, &control, &mut |_| {}).expect("a replay");
        // At most 4,000 operations a second are possible.
        assert!((600..2_500).contains(&report.ok_counted), "{report:?}");
        assert!(report.dispatch_lag_ns_max >= LATE_NS as u64 - 10_000_000, "{report:?}");
        assert!(report.dispatch_lag_ns_mean > 40e6, "{report:?}");
        store.load(&source, &|_, _| {}).expect("a load");
    }
}

/// Workers of unequal fragments begin to measure at the same instant, when the
/// last of them is warm.
#[test]
fn the_measured_part_begins_for_all_workers_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=3", "sessions=600"]);
    let store = any_store::open("memory:?latency_us=50").expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let plan = Plan { workers: 3, ..plan(&source, 6, Limit::Sessions(200), &[], 150) };
    let warmup: Vec<u64> = plan.fragments.iter().map(|f| f.warmup_sessions).collect();
    let experiment = Experiment::prepare(plan, folder.path().join("out")).expect("a plan");
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let report =
        store.run(&experiment, &Control::default(), &mut |snapshot| snapshots.push(snapshot)).expect("a replay");
    assert_eq!(warmup.iter().sum::<u64>(), 150);
    assert_eq!((report.end, report.warmup_operations), (EndReason::Limit, 150));
    assert_eq!((report.sessions, report.ok), (200, 200));
    assert_eq!(report.positions.iter().map(|p| p.next_session).sum::<u64>(), 350);
    let rows: Vec<(bool, LogRow)> = (0..3)
        .flat_map(|f| log(experiment.folder(), f).into_iter().map(move |row| (f as usize, row)))
        .map(|(f, row)| (row.session < warmup[f], row))
        .collect();
    assert_eq!(rows.len(), 350);
    let began_ns = report.warmup_ns as i64;
    for (is_warmup, row) in &rows {
        assert!(if *is_warmup { row.end_ns <= began_ns } else { row.start_ns >= began_ns }, "{began_ns}: {row:?}");
    }
    let last_ns = rows.iter().map(|(_, row)| row.end_ns).max().expect("rows");
    assert_eq!(report.elapsed_ns as i64, last_ns - began_ns);
    let last = snapshots.last().expect("snapshots");
    assert_eq!((last.part, last.outcomes[0]), (Part::Measured, 200));
    assert_eq!(
        store.digest(&source).expect("a digest"),
        tracegen::digest(&source.folder, tracegen::Ran::First(350)).expect("one")
    );
}

/// The stop comes with the first progress, long before the warm-up is over.
#[test]
fn a_stop_in_the_warm_up_measures_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    // 300 operations, 20 ms each: progress is reported several times before they are done.
    let store = any_store::open("memory:?latency_us=20000").expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let plan = plan(&source, 1, Limit::Sessions(20), &[], 300);
    let experiment = Experiment::prepare(plan, folder.path().join("out")).expect("a plan");
    let control = Control::default();
    let stop = control.stop.clone();
    let report = store.run(&experiment, &control, &mut |_| stop.store(true, Ordering::Relaxed)).expect("a replay");
    assert_eq!(report.end, EndReason::Interrupted);
    assert_eq!((report.sessions, report.elapsed_ns), (0, 0));
    assert_eq!((report.ok, report.failed, report.unknown, report.skipped), (0, 0, 0, 0));
    let rows = log(experiment.folder(), 0);
    assert_eq!((report.warmup_operations, report.positions[0].next_session), (rows.len() as u64, rows.len() as u64));
    assert!(rows.len() < 300 && rows.iter().all(|row| row.end_ns <= report.warmup_ns as i64));
    // What ran is what the store holds, so an experiment may continue there.
    assert_eq!(store.positions(&source).expect("positions"), report.positions);
}

#[test]
fn a_trace_that_runs_out_says_what_would_have_been_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |sessions: u64, limit: Limit, warmup: u64| {
        let folder = tempfile::tempdir_in(folder.path()).expect("a folder");
        let source = trace(folder.path(), &[&format!("sessions={sessions}"), "fragments=2"]);
        let store = any_store::open("memory:").expect("a store");
        store.load(&source, &|_, _| {}).expect("a load");
        run(store.as_ref(), plan(&source, 2, limit, &[], warmup), folder.path().join("out")).expect("a replay")
    };
    let needed = EndReason::TraceExhausted { sessions_needed: 500 };
    let in_measured = check(400, Limit::Sessions(200), 300);
    assert_eq!((in_measured.end, in_measured.sessions, in_measured.warmup_operations), (needed.clone(), 100, 300));
    let in_warmup = check(250, Limit::Sessions(200), 300);
    assert_eq!((in_warmup.end, in_warmup.sessions, in_warmup.warmup_operations), (needed, 0, 250));
    let enough = check(500, Limit::Sessions(200), 300);
    assert_eq!((enough.end, enough.sessions), (EndReason::Limit, 200));
    // With a planned duration, the estimate uses the pace of the warm-up.
    let timed = check(250, Limit::DurationS(1.0), 300);
    let EndReason::TraceExhausted { sessions_needed } = timed.end else { panic!("{:?}", timed.end) };
    assert!(sessions_needed > 300 && timed.sessions == 0, "{sessions_needed}");
}

/// Sessions run in two experiments leave the same state as in one.
#[test]
fn an_experiment_continues_where_the_last_one_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2"]);
    let sqlite = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    for (name, url) in [("memory", "memory:"), ("sqlite", &sqlite)] {
        let store = any_store::open(url).expect("a store");
        store.load(&source, &|_, _| {}).expect("a load");
        let first = run(store.as_ref(), plan(&source, 4, Limit::Sessions(150), &[], 0), folder.path().join(name));
        let first = first.expect("a replay");
        assert_eq!(store.positions(&source).expect("positions"), first.positions, "{url}");
        let again = plan(&source, 2, Limit::Sessions(80), &first.positions, 20);
        let second = run(store.as_ref(), again.clone(), folder.path().join(format!("{name}-2"))).expect("a replay");
        assert_eq!((second.warmup_operations, second.sessions), (20, 80), "{url}");
        let expected = tracegen::digest(&source.folder, tracegen::Ran::First(250)).expect("a digest");
        assert_eq!(store.digest(&source).expect("a digest"), expected, "{url}");
        // The store has moved on, so the same plan can no longer start.
        let experiment = Experiment::prepare(again, folder.path().join("not")).expect("a plan");
        let error = store.check(&experiment).expect_err("the store is elsewhere");
        assert_eq!(error.blame, Blame::State, "{error}");
        assert!(error.message.contains("the experiment starts at"), "{error}");
        // Nothing is left to measure at the end of the trace.
        let rest = run(
            store.as_ref(),
            plan(&source, 2, Limit::WholeTrace, &second.positions, 0),
            folder.path().join(format!("{name}-3")),
        );
        let rest = rest.expect("a replay");
        assert_eq!(rest.sessions, 150, "{url}");
        let error =
            Experiment::prepare(plan(&source, 2, Limit::WholeTrace, &rest.positions, 0), folder.path().join("not"))
                .expect_err("no session is left");
        assert!(error.is_usage() && error.to_string().contains("no session left to measure"), "{error}");
    }
}

#[test]
fn a_store_in_an_unknown_state_has_no_positions() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let store = any_store::open("memory:?error=0.2").expect("a store");
    let error = store.positions(&source).expect_err("nothing is loaded");
    assert_eq!(error.blame, Blame::State);
    assert!(error.message.contains("is not loaded"), "{error}");
    store.load(&source, &|_, _| {}).expect("a load");
    assert!(store.positions(&source).expect("positions").is_empty());
    run(store.as_ref(), plan(&source, 1, Limit::Sessions(100), &[], 0), folder.path().join("out")).expect("a replay");
    let error = store.positions(&source).expect_err("writes have failed");
    assert_eq!(error.blame, Blame::State);
    assert!(error.message.contains("writes of experiment 1 did not succeed"), "{error}");
}

/// All sessions here act for very few members.
#[test]
fn sessions_of_a_popular_member_overlap_only_when_they_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = ["data.members=6", "data.friends_per_member=2", "data.pending_per_member=0", "sessions=200"];
    let source = trace(folder.path(), &settings);
    let overlaps = |unique_actors: bool, name: &str| {
        let store = any_store::open("memory:?latency_us=500").expect("a store");
        store.load(&source, &|_, _| {}).expect("a load");
        let plan = Plan { unique_actors, ..plan(&source, 8, Limit::WholeTrace, &[], 0) };
        run(store.as_ref(), plan, folder.path().join(name)).expect("a replay");
        let mut actors = Vec::new();
        let files = source.manifest.operation_files(&source.folder, 0);
        let (mut reader, mut chunk) =
            (schemas::trace::OperationsReader::<schemas::social::Social>::new(0, files, 64), Vec::new());
        while reader.next_rows(&mut chunk).expect("a chunk") {
            actors.extend(chunk.iter().map(|row| row.operation.socialite));
        }
        let mut rows = log(&folder.path().join(name), 0);
        rows.sort_by_key(|row| (actors[row.session as usize], row.start_ns));
        let same = |a: &LogRow, b: &LogRow| actors[a.session as usize] == actors[b.session as usize];
        rows.windows(2).filter(|pair| same(&pair[0], &pair[1]) && pair[1].start_ns < pair[0].end_ns).count()
    };
    assert_eq!(overlaps(true, "unique"), 0);
    assert!(overlaps(false, "shared") > 0);
}

/// The store stands still for a second. The log has the operations that hang in it, with the time
/// that they took.
#[test]
fn a_stall_is_logged_in_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    // 300 operations by 2 threads, 8 ms each, take longer than the second after
    // which the stall begins.
    let store = any_store::open("memory:?latency_us=8000&stall_ms=1000").expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let plan = Plan { unique_actors: false, ..plan(&source, 2, Limit::Sessions(300), &[], 0) };
    let report = run(store.as_ref(), plan, folder.path().join("out")).expect("a replay");
    let rows = log(&folder.path().join("out"), 0);
    assert_eq!((rows.len(), report.ok), (300, 300));
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok));
    let hung = rows.iter().filter(|row| row.end_ns - row.start_ns >= 1_000_000_000).count();
    assert!(hung >= 1, "no operation hung in the stall");
}

fn replayer(arguments: &[&str]) -> (i32, serde_json::Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_replayer")).args(arguments).output().expect("it starts");
    let code = output.status.code().expect("an exit code");
    let value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (code, value, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_command_line_warms_up_and_continues() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let trace = source.folder.display().to_string();
    let url = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    let out = folder.path().join("run").display().to_string();
    let run = |store: &str, more: &[&str]| {
        replayer(&[&["run", "--trace", &trace, "--store", store, "-T", "2", "-o", &out, "--json"], more].concat())
    };
    let (code, _, error) = run(&url, &["--continue"]);
    assert!(code == 2 && error.contains("is not loaded; load it with `replayer load --trace "), "{code}: {error}");
    let (code, first, error) = run(&url, &["--load", "--warmup", "10%", "--sessions", "50"]);
    assert_eq!((code, first["warmup_operations"].as_u64(), first["ok"].as_u64()), (0, Some(40), Some(50)), "{error}");
    let (code, second, error) = run(&url, &["--continue", "--warmup", "7ops", "--sessions", "30", "--digest"]);
    assert_eq!((code, second["warmup_operations"].as_u64(), second["ok"].as_u64()), (0, Some(7), Some(30)), "{error}");
    let expected = tracegen::digest(&source.folder, tracegen::Ran::First(127)).expect("a digest").to_string();
    assert_eq!(second["digest"].as_str(), Some(expected.as_str()));
    // Without --continue the experiment would start at the beginning, and the store is not there.
    let (code, _, error) = run(&url, &["--sessions", "30"]);
    assert!(code == 2 && error.contains("at session 127, the experiment starts at 0"), "{code}: {error}");
    let (code, _, error) = run("memory:", &["--continue"]);
    assert!(code == 2 && error.contains("--continue") && error.contains("remove --continue"), "{code}: {error}");
    let (code, _, error) = run(&url, &["--continue", "--warmup", "100%"]);
    assert!(code == 2 && error.contains("\"100%\" is not a warm-up"), "{code}: {error}");
}
