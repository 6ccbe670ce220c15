//! The README's first command, on a smaller workload.

use crate::support::Workplace;

#[test]
fn rating_sqlite_fills_a_run_folder() {
    let place = Workplace::alone();
    let arguments = [
        "rate",
        "busy.toml",
        "--name",
        "small",
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
    let ran = place.run(&arguments);
    let text = ran.succeeds();
    assert!(text.contains("SoAR") && text.contains("Socialites"), "{text}");
    assert!(text.contains("analyze sql runs/small") && text.contains("analyze summary runs/small"), "{text}");

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
    // The commands that it recommends work as printed.
    place.run(&["analyze", "summary", "runs/small"]).succeeds();
    let ask = |sql: &str| place.run(&["analyze", "sql", "runs/small", sql, "--format", "csv"]).succeeds();
    let listed = ask("SELECT count(*) AS n, count(*) FILTER (ok > 0) AS done FROM experiments");
    // One that a busy machine has swallowed whole is listed, and has no row.
    let done = ask("SELECT count(DISTINCT experiment) AS n FROM operations").trim().replace("n\n", "");
    assert_eq!(listed.trim(), format!("n,done\n{},{done}", experiments.len()));
    // A further run takes the trace set as it is.
    let again = ["run", "busy.toml", "--name", "again", "--threads", "2", "--set", "data.members=400"];
    let text = place.run(&[&again[..], &["--sla", "95% < 10s, 2s"]].concat()).succeeds();
    assert!(!text.contains("generating") && text.contains("60,000 sessions"), "{text}");
}

#[test]
fn a_store_that_lies_misses_the_sla() {
    let place = Workplace::alone();
    let arguments = [
        "rate",
        "busy.toml",
        "--store",
        "memory:?latency_us=1000&stale=0.2",
        "--name",
        "liar",
        "--sla",
        "95% < 10s, 0.1% unpredictable, 1s",
        "--search-s",
        "0.3",
        "--max-threads",
        "4",
        "--sessions",
        "60000",
    ];
    let ran = place.run(&arguments);
    let text = ran.exits(1);
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
        "memory:?latency_us=2000",
        "--name",
        "fast",
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
    let text = place.run(&arguments).succeeds();
    let rating: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    assert_eq!(rating["socialites"]["value"], 4.0, "{rating}");
    assert_eq!(rating["socialites"]["at_least"], true, "{rating}");
}

/// A trace that is too short for the store is extended: the longer one starts
/// with the shorter one, so that nothing measured before loses its meaning.
#[test]
fn a_short_trace_is_extended() {
    let place = Workplace::alone();
    let run = ["run", "busy.toml", "--store", "memory:?latency_us=1000", "--name", "x", "--threads", "8"];
    let short = ["--set", "sessions=100", "--sla", "95% < 10s, 5s"];
    let text = place.run(&[&run[..], &short].concat()).succeeds();
    assert!(text.contains("the trace ran out: 100 sessions") && text.contains("it is extended"), "{text}");
}

/// Rulings have a colour where colours are wanted, and nowhere else.
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
