//! Counts instructions per operation on the two hot paths with valgrind's callgrind, and compares
//! them with `counts.toml`.
//!
//! Times on a shared machine are noise; instructions are (almost) the same each time. Counting with
//! N and with 2 N operations and subtracting removes the cost of the start. A path that costs more
//! than its count fails: fix it or, if the cost is justified, update the count and give the reason
//! in the commit. A path that costs clearly less fails as well, so that the improvement is recorded
//! and kept.

use std::path::Path;
use std::process::Command;

/// Operations in the shorter of the two runs.
const OPERATIONS: u64 = 100_000;

/// How often each replay is counted.
const RUNS: u32 = 3;

/// How far a count may be above the recorded one, as a share: compilers and processors differ a
/// little, and so does the work of other threads.
const TOLERANCE: f64 = 0.05;

/// How far a count may be below the recorded one, as a share, before it must be updated.
const TOLERANCE_BELOW: f64 = 0.15;

/// The quickstart's mix on a small data set, so that the start costs little.
const SPEC: &str = include_str!("../../traces/quickstart.toml");

const COUNTS: &str = include_str!("counts.toml");

/// The instructions that a command needs, over all its threads; `None` without valgrind.
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
    // A summary of a run that is void, as on a busy machine, has exit code 3.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments:?}: {errors}");
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
    // The output is shown with --nocapture.
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
        // Work on a timer runs more often on a busy machine. It only adds to a count, so the lowest
        // of several counts is the right one.
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
