//! A family that is not Encore's own goes through the whole pipeline: see `tests/toy/`.

use crate::support::Workplace;

const SPEC: &str = "name = \"toy\"\nfamily = \"counters\"\nsessions = 20000\nfragments = 2\n[data]\ncounters = 40\n\
                    [mix]\nlook = 9\nraise = 1\n";

#[test]
fn a_family_of_ones_own_is_generated_replayed_and_judged() {
    let place = Workplace::new();
    std::fs::write(place.path("toy.toml"), SPEC).expect("a specification");
    let toy = |arguments: &[&str]| place.run_program(env!("CARGO_BIN_EXE_encore-toy"), arguments);
    let run = |name: &str, store: &str| {
        let all = ["run", "toy.toml", "--store", store, "--threads", "4", "--sessions", "20000", "--name", name];
        toy(&all).ends()
    };
    run("true", "counters:");
    let ask = |run: &str, sql: &str| toy(&["analyze", "sql", run, sql, "--format", "csv"]).succeeds();
    let counts = ask("runs/true", "SELECT operation, count(*) FROM operations GROUP BY ALL ORDER BY ALL");
    assert!(counts.contains("look,17862\nraise,2138"), "{counts}");
    assert_eq!(ask("runs/true", "SELECT count(*) FROM unpredictable").lines().nth(1), Some("0"));
    let fresh = ask("runs/true", "SELECT sum(reads) = sum(fresh), sum(reads) > 10000 FROM freshness");
    assert_eq!(fresh.lines().nth(1), Some("true,true"));

    // What its benchmark asks of its kinds of sessions: looks are fast enough, and there are too few raises.
    let summary = toy(&["analyze", "summary", "runs/true"]).ends();
    let line =
        |start: &str| summary.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_default().to_string();
    assert!(summary.contains("3600s pass  80 pass"), "{summary}");
    assert!(line("missed: ").ends_with("% of the sessions are raise, and at least 50% are required"), "{summary}");
    assert!(line("looksC ").ends_with("look sessions a minute); 1 constraint of the benchmark is missed"), "{summary}");
    let goals = ask(
        "runs/true",
        "SELECT kind, headline, share_min_percent, share_percent >= share_min_percent FROM session_kinds ORDER BY 1",
    );
    assert!(goals.contains("look,looksC,80.0,true\nraise,,50.0,false"), "{goals}");
    let few = ["--max-threads", "2", "--search-s", "0.2", "--sla", "1% < 10s, 100% unpredictable, 0.2s", "--name", "r"];
    let rated = toy(&[&["rate", "toy.toml", "--store", "counters:", "--set", "sessions=400000"], &few[..]].concat());
    let said = rated.ends();
    let (rating, after) = said.split_once("SoAR ").unwrap_or_default();
    assert!(!rating.contains(": looksC ") && after.contains(": looksC "), "{said}");

    run("false", "counters:?stuck=50");
    let lies = ask("runs/false", "SELECT count(*) > 100 FROM unpredictable WHERE item = 'counter'");
    assert_eq!(lies.lines().nth(1), Some("true"));
    let shown = toy(&["analyze", "validate", "runs/false"]).stdout();
    assert!(shown.contains("counter"), "{shown}");

    toy(&["run", "toy.toml", "--store", "memory:", "--threads", "1"])
        .fails(2, &["has no operations of counting", "counters:"]);
    place
        .run(&["run", "toy.toml", "--store", "memory:", "--threads", "1"])
        .fails(2, &["family: \"counters\" is unknown", "social, kv"]);
}
