//! Instructions for each operation on the two hot paths, counted by valgrind's
//! callgrind and held against `counts.toml`.
//!
//! Times on a shared machine are noise; instructions are (almost) the same each
//! time. What is there before the first operation is taken out by counting
//! twice, with N and with 2 N operations. A path that costs more than it did
//! fails: either mend it or, where the cost is worth it, write the new count down
//! with the reason in the commit. One that costs clearly less fails as well, so
//! that what was won is kept.

use std::path::Path;
use std::process::Command;

/// Operations in the shorter of two runs.
const OPERATIONS: u64 = 100_000;

/// How often a replay is counted.
const RUNS: u32 = 3;

/// By what share a count may be higher than the one written down: compilers and
/// processors differ a little, and so does the work of threads beside.
const TOLERANCE: f64 = 0.05;

/// By what share it may be lower before the new count has to be written down.
const TOLERANCE_BELOW: f64 = 0.15;

/// The quickstart's mix on a small data set, so that little comes before the
/// first operation.
const SPEC: &str = include_str!("../../traces/quickstart.toml");

const COUNTS: &str = include_str!("counts.toml");

/// Instructions that a command needs, of all its threads; none where there is no
/// valgrind.
fn instructions(folder: &Path, arguments: &[&str]) -> Option<u64> {
    let file = folder.join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())]);
    let output = command.arg(env!("CARGO_BIN_EXE_encore-e2e")).args(arguments).current_dir(folder).output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let required = std::env::var("ENCORE_TEST_SERVERS").is_ok_and(|value| value == "required");
            assert!(!required, "valgrind is not on this machine");
            eprintln!("skipped: no valgrind on this machine");
            return None;
        }
        output => output.expect("valgrind starts"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let collected = errors.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.unwrap_or_else(|| panic!("callgrind counted nothing: {errors}"));
    Some(count.trim().parse().expect("a number of instructions"))
}

fn encore(folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_encore-e2e")).args(arguments).current_dir(folder).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with the trace sets `1.trace` and `2.trace`, the second twice as long.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("spec.toml"), SPEC).expect("the spec is written");
    for times in [1, 2] {
        let sessions = (times * OPERATIONS).to_string();
        let (trace, members) = (format!("{times}.trace"), "data.members=500");
        let arguments = ["trace", "gen", "spec.toml", "--set", members, "--sessions", &sessions, "-o", &trace];
        encore(folder.path(), &arguments);
    }
    folder
}

fn check(path: &str, short: u64, long: u64) {
    let counts: toml::Table = COUNTS.parse().expect("counts.toml is TOML");
    let written = counts[path].as_integer().expect("a count") as f64;
    let counted = (long - short) as f64 / OPERATIONS as f64;
    // Shown with --nocapture.
    println!("{path}: {counted:.0} instructions an operation, {written:.0} written down");
    let ratio = counted / written;
    let more =
        "it costs more than it did: mend it, or write the new count into tests/instructions/counts.toml and say why";
    let less =
        "it costs less than it did: write the new count into tests/instructions/counts.toml, so that it stays so";
    assert!(ratio <= 1.0 + TOLERANCE, "{path}: {counted:.0} instructions an operation instead of {written:.0}; {more}");
    assert!(
        ratio >= 1.0 - TOLERANCE_BELOW,
        "{path}: {counted:.0} instructions an operation instead of {written:.0}; {less}"
    );
}

#[test]
fn a_replay_against_nothing_costs_what_it_did() {
    let folder = place();
    for threads in ["1", "64"] {
        // What ticks by the clock ticks more often on a machine that has other things to
        // do: it adds to a count, and never takes from it, so the lowest of some is meant.
        let run = |times: &str| {
            let counts = (0..RUNS).map(|number| {
                let (trace, run) = (format!("{times}.trace"), format!("run-{times}-{threads}-{number}"));
                let arguments = ["replay", "run", "--trace", &trace, "--store", "null:", "-T", threads, "-o", &run];
                instructions(folder.path(), &arguments)
            });
            counts.collect::<Option<Vec<u64>>>().and_then(|counts| counts.into_iter().min())
        };
        let (Some(short), Some(long)) = (run("1"), run("2")) else { return };
        check(&format!("replay_null_T{threads}"), short, long);
    }
}

#[test]
fn an_analysis_costs_what_it_did() {
    let folder = place();
    let run = |times: &str| {
        let (trace, run) = (format!("{times}.trace"), format!("run-{times}"));
        encore(folder.path(), &["replay", "run", "--trace", &trace, "--store", "memory:", "-T", "8", "-o", &run]);
        instructions(folder.path(), &["analyze", "summary", &run])
    };
    let (Some(short), Some(long)) = (run("1"), run("2")) else { return };
    check("analyze_sealed", short, long);
}
