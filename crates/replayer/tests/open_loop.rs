//! Experiments in an open loop, over several workers: due times, overload, refusals.

mod common;

use std::path::Path;
use std::process::Command;

use replayer::any_store;
use replayer::experiment::{Control, Experiment};
use replayer::source::Source;
use schemas::oplog::{LogColumns, LogReader, LogRow};
use schemas::pace::{Due, OpenLoop, Overload, ThreadsFrom};
use schemas::plan::{Limit, Plan};
use schemas::run::ReplayReport;
use schemas::social::Social;

use common::{plan, trace};

fn open_loop(per_s: f64) -> Option<OpenLoop> {
    Some(OpenLoop { due: Due::Even { per_s }, overload: Overload::Queue })
}

/// The report, the log of each fragment, and the fragments' shares of all sessions.
fn replay(store: &str, change: impl FnOnce(Plan) -> Plan) -> (ReplayReport, Vec<Vec<LogRow>>, Vec<f64>) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2", "sessions=600"]);
    let store = any_store::open(store).expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    let plan = change(plan(&source, 8, Limit::Sessions(400), &[], 50));
    let experiment = Experiment::prepare(plan, folder.path().join("out")).expect("a plan");
    let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect("a replay");
    let log = |fragment: u32| log(&folder.path().join("out"), fragment);
    (report, vec![log(0), log(1)], source.manifest.weights())
}

/// The log of a fragment in an experiment's folder, in the order of the trace.
fn log(experiment: &Path, fragment: u32) -> Vec<LogRow> {
    let path = experiment.join(format!("log/fragment-{fragment}.arrows"));
    let mut rows = Vec::new();
    for batch in LogReader::open(&path).expect("a log") {
        let batch = batch.expect("a batch");
        let columns = LogColumns::of(&batch, &path).expect("columns");
        rows.extend((0..columns.len()).map(|at| columns.row(at)));
    }
    rows.sort_by_key(|row: &LogRow| (row.session, row.step));
    rows
}

/// Fragments on two workers count from one instant, and each has its share of the plan's rate.
#[test]
fn fragments_on_two_workers_stay_on_one_clock() {
    let (report, logs, weights) =
        replay("memory:?latency_us=300", |plan| Plan { workers: 2, open_loop: open_loop(2_000.0), ..plan });
    let pacing = report.pacing.expect("an open loop");
    assert_eq!((report.sessions, pacing.sessions_due, pacing.sessions_unstarted), (400, 400, 0));
    let began_ns = report.warmup_ns as i64;
    for (fragment, rows) in logs.iter().enumerate() {
        let step_ns = 1e9 / (2_000.0 * weights[fragment] / weights.iter().sum::<f64>());
        let measured: Vec<&LogRow> = rows.iter().filter(|row| row.start_ns >= began_ns && row.step == 0).collect();
        for (place, row) in measured.iter().enumerate() {
            let expect_ns = began_ns + ((place as f64 + (fragment as f64 + 0.5) / 2.0) * step_ns) as i64;
            assert!((row.due_ns.expect("a due time") - expect_ns).abs() <= 1, "{row:?}: {expect_ns}");
            assert!(row.start_ns >= expect_ns - 1, "{row:?}");
        }
        assert!(rows.iter().all(|row| row.due_ns.is_some() == (row.step == 0)));
    }
}

/// Both parts begin at once with the first of their sessions, and a factor scales all due times.
#[test]
fn due_times_of_the_trace_are_scaled_and_count_from_each_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2", "sessions=300", "arrivals.rate=500"]);
    let due_us = due_times(&source);
    let trace = source.folder.display().to_string();
    let out = folder.path().join("run").display().to_string();
    let arguments = ["run", "--trace", &trace, "--store", "memory:?latency_us=100", "-T", "8", "--json", "-o", &out];
    let more = ["--workers", "2", "--warmup", "50", "--sessions", "200", "--rate-factor", "4"];
    let (code, report, error) = command(&[&arguments[..], &more].concat());
    assert_eq!((code, &report["pacing"]["sessions_due"]), (0, &200.into()), "{error}");
    let began_ns = report["warmup_ns"].as_i64().expect("a number");
    let logs = [0, 1].map(|fragment| log(&folder.path().join("run/experiments/0001-T8"), fragment));
    let first_sessions = |is_measured: bool| {
        let of = |rows: &Vec<LogRow>| {
            rows.iter().find(|row| (row.start_ns >= began_ns) == is_measured).map(|row| row.session)
        };
        [0, 1].map(|fragment| of(&logs[fragment]).expect("a session") as usize)
    };
    for is_measured in [false, true] {
        let firsts = first_sessions(is_measured);
        let from_us = [0, 1].map(|fragment| due_us[fragment][firsts[fragment]]).into_iter().min().expect("two");
        for (fragment, rows) in logs.iter().enumerate() {
            for row in rows.iter().filter(|row| row.step == 0 && (row.start_ns >= began_ns) == is_measured) {
                let part_ns = if is_measured { began_ns } else { 0 };
                let expect_ns = part_ns + ((due_us[fragment][row.session as usize] - from_us) * 1_000 / 4) as i64;
                assert_eq!(row.due_ns, Some(expect_ns), "{row:?}");
                assert!(row.start_ns >= expect_ns, "{row:?}");
            }
        }
    }
}

/// When each session of each fragment is due, in µs.
fn due_times(source: &Source) -> Vec<Vec<u64>> {
    let of = |fragment: u32| {
        let mut reader = source.manifest.reader::<Social>(&source.folder, fragment, 1_000).expect("a reader");
        let (mut rows, mut due_us) = (Vec::new(), Vec::new());
        while reader.next_rows(&mut rows).expect("rows") {
            due_us.extend(rows.iter().filter_map(|row| row.due_us));
        }
        due_us
    };
    source.fragments().map(of).collect()
}

#[test]
fn a_trace_set_with_due_times_is_replayed_in_an_open_loop_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["arrivals.rate=500"]);
    let closed = plan(&source, 4, Limit::WholeTrace, &[], 0);
    let even = Plan { open_loop: open_loop(9.0), ..closed.clone() };
    for (plan, expect) in [(closed, "the plan has no open_loop"), (even, "the plan wants even ones (--rate)")] {
        let error = Experiment::prepare(plan, folder.path().join("out")).expect_err("due times");
        assert!(error.is_usage() && error.to_string().contains(expect), "{error}");
    }
    let trace = source.folder.display().to_string();
    let out = folder.path().join("run").display().to_string();
    for (flags, expect) in [
        (["--rate", "9"], "has due times of its own; use --rate-factor"),
        (["--target", "9"], "--target: trace"),
        (["--threads-over-time", "0s:1"], "--threads-over-time: trace"),
    ] {
        let arguments = ["run", "--trace", &trace, "--store", "null:", "-T", "4", "-o", &out];
        let (code, _, error) = command(&[&arguments[..], &flags].concat());
        assert!(code == 2 && error.contains(expect) && error.contains("phases.trace"), "{code}: {error}");
        assert!(!folder.path().join("run").exists());
    }
}

#[test]
fn a_closed_loop_reports_no_pacing_and_has_no_due_times() {
    let (report, logs, _) = replay("null:", |plan| Plan { target_per_s: Some(1e6), ..plan });
    assert!(report.pacing.is_none() && logs.iter().flatten().all(|row| row.due_ns.is_none()));
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let check = |change: &dyn Fn(Plan) -> Plan, expect: &str| {
        let plan = change(plan(&source, 4, Limit::WholeTrace, &[], 0));
        let error = Experiment::prepare(plan, folder.path().join("out")).expect_err("a contradiction");
        assert!(error.is_usage() && error.to_string().contains(expect), "{error}");
    };
    let steps = |steps: &[(f64, u32)]| -> Vec<ThreadsFrom> {
        steps.iter().map(|(from_s, threads)| ThreadsFrom { from_s: *from_s, threads: *threads }).collect()
    };
    check(&|plan| Plan { open_loop: open_loop(f64::NAN), ..plan }, "per_s is NaN");
    check(&|plan| Plan { open_loop: open_loop(1.0), target_per_s: Some(1.0), ..plan }, "open_loop excludes");
    check(&|plan| Plan { target_per_s: Some(-1.0), ..plan }, "target_per_s is -1");
    check(&|plan| Plan { threads_over_time: steps(&[(0.0, 5)]), ..plan }, "5 threads");
    check(&|plan| Plan { threads_over_time: steps(&[(1.0, 2)]), ..plan }, "begins at 1 s");
    let of_trace =
        OpenLoop { due: Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 }, overload: Overload::Queue };
    check(&|plan| Plan { open_loop: Some(of_trace), ..plan }, "has no due times");
}

fn command(arguments: &[&str]) -> (i32, serde_json::Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_replayer")).args(arguments).output().expect("it starts");
    let code = output.status.code().expect("an exit code");
    let value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (code, value, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A store that takes 50 ms with one thread, and a session due each millisecond.
#[test]
fn the_command_line_says_what_becomes_of_sessions_that_had_to_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let trace = source.folder.display().to_string();
    let run = |name: &str, overload: &str| {
        let out = folder.path().join(name).display().to_string();
        let arguments = ["run", "--trace", &trace, "--store", "memory:?latency_us=50000", "-T", "1", "--json"];
        command(&[&arguments[..], &["--rate", "1000", "--sessions", "12", "-o", &out, "--overload", overload]].concat())
    };
    let (code, report, error) = run("queue", "queue");
    assert_eq!((code, &report["pacing"]["sessions_due"], &report["ok"]), (0, &12.into(), &12.into()), "{error}");
    assert!(report["pacing"]["sessions_queued"].as_u64() >= Some(11), "{report}");
    // The last of twelve sessions waits for eleven others, which take 50 ms each.
    assert!(report["pacing"]["queued_ns_max"].as_u64() >= Some(500_000_000), "{report}");
    let (code, report, error) = run("skip", "skip");
    assert_eq!((code, &report["pacing"]["sessions_due"]), (0, &12.into()), "{error}");
    assert!(report["pacing"]["sessions_skipped"].as_u64() >= Some(11), "{report}");
    assert_eq!(report["pacing"]["sessions_skipped"], report["pacing"]["sessions_queued"]);
    let (code, report, error) = run("stop", "stop");
    assert!(code == 3 && error.contains("--overload stop") && error.contains("more threads"), "{code}: {error}");
    assert_eq!((&report["end"], &report["pacing"]["sessions_queued"]), (&"overloaded".into(), &1.into()));
}

#[test]
fn flags_that_do_not_fit_are_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let trace = source.folder.display().to_string();
    let out = folder.path().join("run").display().to_string();
    let check = |flags: &[&str], expect: &[&str]| {
        let arguments = ["run", "--trace", &trace, "--store", "null:", "-T", "4", "-o", &out];
        let (code, _, error) = command(&[&arguments[..], flags].concat());
        assert!(code == 2 && expect.iter().all(|words| error.contains(words)), "{flags:?}: {code}: {error}");
        assert!(!folder.path().join("run").exists(), "{flags:?}");
    };
    check(&["--rate", "-1"], &["--rate", "above 0"]);
    check(&["--rate", "inf"], &["--rate", "above 0"]);
    check(&["--rate", "10", "--target", "5"], &["--target and --rate exclude each other"]);
    check(&["--rate", "10", "--threads-over-time", "0s:2"], &["--threads-over-time and --rate exclude each other"]);
    check(&["--overload", "skip", "--target", "5"], &["--target and --overload exclude each other"]);
    check(&["--rate", "10", "--rate-factor", "2"], &["--rate and --rate-factor exclude each other"]);
    check(&["--rate-factor", "2"], &["--rate-factor", "no due times", "use --rate"]);
    check(&["--overload", "skip"], &["--overload", "no due times", "add --rate"]);
    check(&["--threads-over-time", "0s:2,10s:5"], &["--threads-over-time", "5 threads", "--threads is 4"]);
    check(&["--threads-over-time", "0s:2,10s"], &["--threads-over-time", "\"10s\""]);
}
