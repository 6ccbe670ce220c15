//! A whole replay leaves the same state with any number of threads and in any store: the state that
//! the trace defines.

use crate::support::Workplace;

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("digest ").to_string()
}

#[test]
fn a_whole_replay_leaves_the_same_state_everywhere() {
    let place = Workplace::with_trace();
    let expected = last_line(&place.run(&["trace", "digest", "busy.trace"]).succeeds());
    for store in ["memory:", "sqlite:store.db?synchronous=off"] {
        for threads in ["1", "7", "64"] {
            for workers in ["1", "2"] {
                let run = format!("run-{}-{threads}-{workers}", &store[..6]);
                let ran = place.run(&[
                    "replay",
                    "run",
                    "--trace",
                    "busy.trace",
                    "--store",
                    store,
                    "--threads",
                    threads,
                    "--workers",
                    workers,
                    "-o",
                    &run,
                    "--load",
                    "--digest",
                ]);
                assert_eq!(last_line(&ran.succeeds()), expected, "{store} T={threads} workers={workers}");
            }
        }
    }
}

/// With a latency, sessions wait for their actor and for the sessions that they depend on. A
/// store that answers at once never makes them wait.
#[test]
fn a_slow_store_ends_in_the_same_state() {
    let place = Workplace::new();
    // Members may act again at once, and writes may depend on a recent write.
    let set = ["--set", "access.unique_window=0", "--set", "access.dependency_window=0"];
    place.run(&[&["trace", "gen", "busy.toml", "-o", "busy.trace"], &set[..]].concat()).succeeds();
    let expected = last_line(&place.run(&["trace", "digest", "busy.trace"]).succeeds());
    let ran = place.run(&[
        "replay",
        "run",
        "--trace",
        "busy.trace",
        "--store",
        "memory:?latency_us=1000",
        "--threads",
        "64",
        "-o",
        "slow",
        "--digest",
    ]);
    assert_eq!(last_line(&ran.succeeds()), expected);
    let waited = place.run(&[
        "analyze",
        "sql",
        "slow",
        "SELECT count(*) AS n FROM operations WHERE waited_ns > 0",
        "--format",
        "csv",
    ]);
    assert_ne!(last_line(&waited.succeeds()), "0", "no operation had to wait: the test proves nothing");
}

#[test]
fn a_part_of_the_trace_leaves_the_state_of_that_part() {
    let place = Workplace::with_trace();
    let expected = last_line(&place.run(&["trace", "digest", "busy.trace", "--sessions", "1001"]).succeeds());
    let ran = place.run(&[
        "replay",
        "run",
        "--trace",
        "busy.trace",
        "--store",
        "sqlite:a.db?synchronous=off",
        "--threads",
        "8",
        "--sessions",
        "1001",
        "-o",
        "part",
        "--load",
        "--digest",
    ]);
    assert_eq!(last_line(&ran.succeeds()), expected);
    // A store in that state cannot start the trace from the beginning.
    place
        .run(&[
            "replay",
            "run",
            "--trace",
            "busy.trace",
            "--store",
            "sqlite:a.db?synchronous=off",
            "-T",
            "1",
            "-o",
            "next",
        ])
        .fails(2, &["sqlite:a.db", "the experiment starts at 0", "encore replay load"]);
}
