//! The program as it is called: what it refuses, and with which exit code.

use std::path::Path;
use std::process::{Command, Output};

const SPEC: &str = "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n";

fn coord(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coord"));
    command.args(args).current_dir(folder).env_remove("ENCORE_HOME").output().unwrap()
}

/// The program refuses the arguments with one message and leaves nothing behind.
fn check(args: &[&str], expect: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let output = coord(folder.path(), args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(expect), "{args:?}: {error:?} lacks {expect:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{args:?} left files");
}

#[test]
fn wrong_usage_and_input_exit_with_2() {
    check(&["run", "t.toml", "--threads", "0"], "0 is not in 1..");
    check(&["rate", "t.toml", "--sla", "95 < 100ms"], "\"95\" is not a percentage");
    check(&["rate", "t.toml", "--max-threads", "0"], "0 is not in 1..");
    check(&["rate"], "traces/quickstart.toml: No such file");
    check(&["rate", "none.toml"], "none.toml: No such file");
    check(&["rate", "t.toml", "--set", "data.membres=1"], "membres");
    check(&["rate", "--trace", "none.trace"], "is this a trace set?");
    check(&["run", "t.toml", "--threads", "1", "--duration", "1s", "--sessions", "1"], "cannot be used with");
    check(&["simulate", "--noise", "99"], "--noise 99 is not a percentage");
    check(&["simulate", "--curve", "cubic"], "invalid value 'cubic'");
    check(&["fly"], "unrecognized subcommand 'fly'");
}

#[test]
fn a_store_that_cannot_be_opened_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let output = coord(folder.path(), &["run", "t.toml", "--threads", "1", "--store", "nosuch:x", "--name", "a"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("nosuch"), "{error}");
    assert!(!folder.path().join("runs/a").exists());
}

#[test]
fn the_other_tools_answer_under_their_own_names() {
    let folder = tempfile::tempdir().unwrap();
    for (subcommand, tool) in [("trace", "tracegen"), ("replay", "replayer"), ("analyze", "analyzer")] {
        let output = coord(folder.path(), &[subcommand, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && help.contains(tool), "{subcommand}: {help}");
    }
}

#[test]
fn a_simulation_needs_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let output = coord(folder.path(), &["simulate", "--peaks", "500,100000000", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["cases"].as_array().unwrap().len(), 2);
    assert!(printed["cases"][1]["soar"]["unique_experiments"].as_u64().unwrap() <= 25);
    let output = coord(folder.path(), &["simulate", "--peak", "500"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with("SoAR (actions/s)\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_small_rating_fills_its_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args = ["rate", "t.toml", "--store", "memory:?latency_us=500", "--sla", "50% < 10s, 0.2s", "--search-s", "0.1"];
    let output = coord(folder.path(), &[&args[..], &["--max-threads", "2", "--name", "a", "--json"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{error}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let kept: serde_json::Value = schemas::files::read_json(&run.rating()).unwrap();
    assert_eq!(printed, kept);
    assert_eq!(run.read_document().unwrap().state, schemas::run::RunState::Complete);
    // Ten sessions do not last: the trace was extended on the way.
    let manifest = schemas::manifest::Manifest::read(&folder.path().join("runs/traces/t.trace")).unwrap();
    assert!(manifest.sessions() > 10);
    let experiments = run.experiments().unwrap();
    assert_eq!(experiments.len(), kept["experiments"].as_array().unwrap().len());
    for (number, experiment) in experiments {
        for file in [experiment.plan(), experiment.report(), experiment.verdict(), experiment.log(0)] {
            assert!(file.exists(), "experiment {number} has no {}", file.display());
        }
    }
}
