//! The README's first command, on a smaller workload.

use std::process::Command;

use crate::support::Workplace;

#[test]
fn rating_sqlite_fills_a_run_folder() {
    let place = Workplace::alone();
    let arguments = [
        "rate",
        "busy.toml",
        "--sla",
        "95% < 10s, 0.1% unpredictable, 1s",
        "--search-s",
        "0.3",
        "--max-threads",
        "8",
        "--sessions",
        "60000",
        "--set",
        "data.members=400",
    ];
    let ran = place.measures("small", &arguments);
    let text = ran.succeeds();
    assert!(text.contains("SoAR") && text.contains("Socialites"), "{text}");
    // The commands that the rating proposes work as they are printed, from any folder.
    for part in [" analyze sql ", " analyze summary "] {
        let line = text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {text}"));
        let ran = Command::new("sh").args(["-c", line.trim()]).current_dir("/").output().expect("a shell");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    let read = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(place.path("runs/small").join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let run = read("run.json");
    assert_eq!(run["state"], "complete", "{run}");
    assert_eq!(run["store_settings"]["journal_mode"], "wal", "{run}");
    let rating = read("rating.json");
    assert!(rating["soar"]["value"].as_f64() > Some(0.0), "{rating}");
    assert!(rating["socialites"]["value"].as_f64() > Some(0.0), "{rating}");
    let experiments = rating["experiments"].as_array().expect("experiments");
    assert!(experiments.iter().filter(|e| e["is_final"] == true).count() >= 1, "{rating}");
    for experiment in experiments {
        let (number, threads) =
            (experiment["experiment"].as_u64().expect("a number"), experiment["threads"].as_u64().expect("T"));
        let folder = place.path(&format!("runs/small/experiments/{number:04}-T{threads}"));
        for file in ["plan.json", "replay.json", "verdict.json", "log/fragment-0.arrows", "log/fragment-1.arrows"] {
            assert!(folder.join(file).exists(), "{}", folder.join(file).display());
        }
        assert!(place.path(&format!("runs/small/operations/experiment={number}/fragment=1/part-0.parquet")).exists());
    }
    let ask = |sql: &str| place.run(&["analyze", "sql", "runs/small", sql, "--format", "csv"]).succeeds();
    let listed = ask("SELECT count(*) AS n, count(*) FILTER (ok > 0) AS done FROM experiments");
    // An experiment in which a busy machine ran no operation is listed, but has no row.
    let done = ask("SELECT count(DISTINCT experiment) AS n FROM operations").trim().replace("n\n", "");
    assert_eq!(listed.trim(), format!("n,done\n{},{done}", experiments.len()));
    // A further run reuses the trace set.
    let again = ["run", "busy.toml", "--name", "again", "--threads", "2", "--set", "data.members=400"];
    let text = place.run(&[&again[..], &["--sla", "95% < 10s, 2s"]].concat()).ends();
    assert!(!text.contains("generating") && text.contains("60,000 sessions"), "{text}");
}

#[test]
fn a_store_that_lies_misses_the_sla() {
    let place = Workplace::alone();
    let arguments = [
        "rate",
        "busy.toml",
        "--store",
        "memory:?latency_us=5000&stale=0.2",
        "--sla",
        "95% < 10s, 0.1% unpredictable, 1s",
        "--search-s",
        "0.3",
        "--max-threads",
        "4",
        "--sessions",
        "60000",
    ];
    let text = place.measures("liar", &arguments).exits(1);
    assert!(text.contains("unpredictable"), "{text}");
    place.run(&["analyze", "validate", "runs/liar"]).exits(1);
}

#[test]
fn a_store_beyond_the_upper_limit_is_rated_at_least() {
    let place = Workplace::alone();
    let arguments = [
        "rate",
        "busy.toml",
        "--store",
        "memory:?latency_us=5000",
        "--sla",
        "95% < 10s, 0.1% unpredictable, 1s",
        "--search-s",
        "0.3",
        "--max-threads",
        "4",
        "--sessions",
        "60000",
        "--json",
    ];
    let text = place.measures("fast", &arguments).succeeds();
    let rating: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    assert_eq!(rating["socialites"]["value"], 4.0, "{rating}");
    assert_eq!(rating["socialites"]["at_least"], true, "{rating}");
}

/// A trace that is too short for the store is extended. The longer trace starts with the shorter
/// one, so that earlier measurements stay valid.
#[test]
fn a_short_trace_is_extended() {
    let place = Workplace::alone();
    let run = ["run", "busy.toml", "--store", "memory:?latency_us=1000", "--name", "x", "--threads", "8"];
    let short = ["--set", "sessions=100", "--sla", "95% < 10s, 5s"];
    let text = place.run(&[&run[..], &short].concat()).ends();
    assert!(text.contains("trace too short: 100 sessions") && text.contains("; extended to "), "{text}");
}

/// Verdicts are coloured only where the user wants colours.
#[test]
fn a_pipe_and_no_color_get_no_colours() {
    let place = Workplace::with_trace();
    let said = |variables: &[(&str, &str)]| {
        let run = ["run", "busy.toml", "--store", "memory:", "--threads", "2", "--sessions", "500"];
        let mut command = place.command(&run);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().expect("the program starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(!said(&[]).contains('\u{1b}'), "colours in a pipe");
    assert!(said(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'), "no colours where they are forced");
    assert!(!said(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'), "colours in spite of NO_COLOR");
}
