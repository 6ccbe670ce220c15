//! Replays that do not end as planned: killed, interrupted, or out of disk space.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::Workplace;

const REPLAY: [&str; 11] = [
    "replay",
    "run",
    "--trace",
    "long.trace",
    "--store",
    "memory:?latency_us=1000",
    "--threads",
    "16",
    "--duration",
    "60s",
    "--output=r",
];

fn workplace() -> Workplace {
    let place = Workplace::new();
    place.run(&["trace", "gen", "busy.toml", "-o", "long.trace", "--sessions", "1200000"]).succeeds();
    place
}

/// Waits for a condition that must become true; the ten minutes are for very slow machines.
fn until(what: &str, child: &mut Child, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(600);
    while !condition() {
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "the program ended before {what}: {ended:?}");
        assert!(Instant::now() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Sends Ctrl-C to a program. It must end with code 130, name the place of its results, and mark
/// the run as interrupted.
fn interrupt(child: Child, place: &Workplace, run: &str, named: &str) {
    interrupt_by(libc::SIGINT, child, place, run, named);
}

/// The same with any signal that asks a program to end.
fn interrupt_by(number: i32, child: Child, place: &Workplace, run: &str, named: &str) {
    signal(&child, number);
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted") && error.contains(named), "{error}");
    let document = std::fs::read_to_string(place.path(run).join("run.json")).expect("run.json");
    assert!(document.contains("\"interrupted\""), "{document}");
}

#[test]
fn a_killed_replayer_loses_its_last_batch_and_no_more() {
    let place = workplace();
    let mut child = place.command(&REPLAY).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    let log = place.path("r/experiments/0001-T16/log/fragment-0.arrows");
    until("three batches", &mut child, || bytes(&log) > 100_000);
    child.kill().expect("it can be killed");
    child.wait().expect("it is dead");
    let summary = place.run(&["analyze", "summary", "r", "--json"]);
    let text = summary.stdout();
    assert!(text.contains("log incomplete"), "{text}\n{}", summary.stderr());
    assert!(text.contains("\"void\""), "{text}");
    // Everything that was flushed is there. Rows that are missing from the log do not make the
    // correct store look wrong.
    let sql = "SELECT count(*) AS n, count(*) FILTER (unpredictable) AS u FROM operations";
    let rows = place.run(&["analyze", "sql", "r", sql, "--format", "csv"]).succeeds();
    let (n, u) = rows.lines().last().and_then(|l| l.split_once(',')).expect("two numbers");
    assert!(n.parse::<u64>().expect("a count") > 1000, "{rows}");
    assert_eq!(u, "0", "{rows}");
}

#[test]
fn ctrl_c_closes_the_log_and_says_so() {
    let place = workplace();
    let mut child = place.command(&REPLAY).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    let log = place.path("r/experiments/0001-T16/log/fragment-0.arrows");
    until("a batch", &mut child, || bytes(&log) > 20_000);
    interrupt(child, &place, "r", "r/experiments/0001-T16");
    let summary = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(summary.contains("interrupted") && !summary.contains("log incomplete"), "{summary}");
}

/// A closed terminal (SIGHUP) ends a replay too, unless the replay was started to ignore that signal.
#[test]
fn a_terminal_that_closes_ends_a_replay_and_leaves_its_log() {
    let place = workplace();
    let started = |arguments: &[&str], disposition: libc::sighandler_t| {
        let mut command = place.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: one async-signal-safe call between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::signal(libc::SIGHUP, disposition);
                Ok(())
            });
        }
        command.spawn().expect("a child")
    };
    let mut child = started(&REPLAY, libc::SIG_DFL);
    let log = place.path("r/experiments/0001-T16/log/fragment-0.arrows");
    until("a batch", &mut child, || bytes(&log) > 20_000);
    interrupt_by(libc::SIGHUP, child, &place, "r", "r/experiments/0001-T16");

    let outlives: Vec<&str> = REPLAY
        .iter()
        .map(|a| match *a {
            "60s" => "2s",
            "--output=r" => "--output=s",
            other => other,
        })
        .collect();
    let mut child = started(&outlives, libc::SIG_IGN);
    let log = place.path("s/experiments/0001-T16/log/fragment-0.arrows");
    until("a batch", &mut child, || bytes(&log) > 0);
    signal(&child, libc::SIGHUP);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Regression: the delays of a replayer that stood still were reported as the store's.
#[test]
fn a_replayer_that_stood_still_is_void() {
    let place = Workplace::alone();
    place.run(&["trace", "gen", "busy.toml", "-o", "long.trace", "--sessions", "1200000"]).succeeds();
    let arguments: Vec<&str> = REPLAY.iter().map(|a| if *a == "60s" { "4s" } else { a }).collect();
    let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    let log = place.path("r/experiments/0001-T16/log/fragment-0.arrows");
    until("a batch", &mut child, || bytes(&log) > 20_000);
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, libc::SIGCONT);
    assert!(child.wait().expect("it ends").success());
    let summary = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(summary.contains("\"void\"") && summary.contains("load generator too slow"), "{summary}");
}

#[test]
fn an_interrupted_rating_keeps_what_it_has() {
    let place = Workplace::new();
    let arguments = [
        "rate",
        "busy.toml",
        "--store",
        "memory:?latency_us=1000",
        "--name",
        "r",
        "--sessions",
        "400000",
        "--search-s",
        "2",
    ];
    let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    until("the second experiment", &mut child, || place.experiment_log_bytes("runs/r", 2) > 2_000);
    interrupt(child, &place, "runs/r", "runs/r");
    place.run(&["analyze", "sql", "runs/r", "SELECT count(*) FROM operations"]).succeeds();
}

/// After its coordinator is killed, a replayer finishes and logs the operations in flight, and then ends.
#[test]
fn a_killed_coordinator_leaves_a_whole_log() {
    let place = workplace();
    let arguments = [
        "run",
        "--trace",
        "long.trace",
        "--store",
        "memory:?latency_us=1000",
        "--threads",
        "4",
        "--duration",
        "60s",
        "--name=r",
    ];
    let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    let log = place.path("runs/r/experiments/0001-T4/log/fragment-0.arrows");
    until("a batch", &mut child, || bytes(&log) > 20_000);
    child.kill().expect("it can be killed");
    child.wait().expect("it is dead");
    let report = place.path("runs/r/experiments/0001-T4/replay.json");
    let patience = Instant::now() + Duration::from_secs(600);
    while !report.exists() {
        assert!(Instant::now() < patience, "the replayer never reported");
        std::thread::sleep(Duration::from_millis(20));
    }
    let summary = place.run(&["analyze", "summary", "runs/r", "--json"]).stdout();
    assert!(summary.contains("interrupted") && !summary.contains("log incomplete"), "{summary}");
}

/// To a program, a file that may not grow looks like a full disk.
#[test]
fn a_full_disk_is_named_and_leaves_what_was_there() {
    let place = workplace();
    let limited = |arguments: &[&str], bytes: u64| {
        let mut command = place.command(arguments);
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        command.output().expect("the program starts")
    };
    let before = place.contents();
    let output = limited(&["trace", "gen", "busy.toml", "-o", "long.trace", "--sessions", "1300000"], 200_000);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.starts_with("error: ") && error.contains("part-00000.parquet"), "{error}");
    assert!(place.contents() == before, "the old trace set was touched, or something was left over");

    let output = limited(&REPLAY, 300_000);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("fragment-") && error.contains(".arrows"), "{error}");
    let run = std::fs::read_to_string(place.path("r/run.json")).expect("run.json");
    assert!(run.contains("\"failed\""), "{run}");

    let output = limited(&["replay", "load", "--trace", "long.trace", "--store", "sqlite:s.db"], 20_000);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("sqlite:s.db"), "{error}");
    assert!(!place.path("s.db").exists() && !place.path("s.db.loading").exists(), "half a store was left");
}
