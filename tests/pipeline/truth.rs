//! The throughput of an experiment that passes is the store's. The tests compare it with the
//! throughput that follows from the parameters of `memory:`. `benches/run truth` is the long form.

use serde_json::Value;

use crate::support::Workplace;

const SPEC: &str = "name = \"popular\"\nsessions = 400_000\n[data]\nmembers = 10_000\n[mix]\nview_profile = 1\n";

/// A folder that holds this specification.
fn place(spec: &str) -> Workplace {
    let place = Workplace::alone();
    std::fs::write(place.path("popular.toml"), spec).expect("the spec is written");
    place
}

struct Experiment {
    per_s: f64,
    ruling: String,
    reasons: String,
    report: Value,
}

/// Measures a store for a second, in a run of its own.
fn measure(place: &Workplace, trace: &str, run: &str, store: &str, threads: u32) -> Experiment {
    let threads = threads.to_string();
    let mut command = vec!["replay", "run", "--trace", trace, "--store", store, "-T", &threads];
    command.extend(["--duration", "1s", "-o", run, "--json"]);
    let report: Value = serde_json::from_str(&place.run(&command).succeeds()).expect("a report");
    // A void experiment is a valid result here, with any exit code.
    place.run(&["analyze", "summary", run]);
    let verdict = place.path(&format!("{run}/experiments/0001-T{threads}/verdict.json"));
    let verdict = std::fs::read_to_string(verdict).expect("a verdict");
    let verdict: Value = serde_json::from_str(&verdict).expect("a verdict");
    let reasons = verdict["reasons"].as_array().expect("reasons").iter().filter_map(Value::as_str);
    Experiment {
        per_s: verdict["figures"]["throughput_per_s"].as_f64().expect("a throughput"),
        ruling: verdict["ruling"].as_str().expect("a ruling").to_string(),
        reasons: reasons.collect::<Vec<_>>().join("; "),
        report,
    }
}

/// An experiment that passes must be right. Other work on the machine may make experiments void.
#[test]
fn what_passes_is_at_most_a_twentieth_off_the_truth() {
    let place = place(SPEC);
    place.run(&["trace", "gen", "popular.toml"]).succeeds();
    for (name, store, threads, true_per_s) in [
        ("few", "memory:?latency_us=5000", 16, 16.0 / 0.005),
        ("many", "memory:?latency_us=20000", 256, 256.0 / 0.020),
        ("servers", "memory:?latency_us=5000&servers=8", 64, 8.0 / 0.005),
    ] {
        let found = measure(&place, "popular.trace", name, store, threads);
        let off = found.per_s / true_per_s - 1.0;
        assert!(found.ruling != "pass" || off.abs() < 0.05, "{name}: {} of {true_per_s}", found.per_s);
        // `replay run` and `analyze` must report the same throughput.
        let printed = found.report["ok_counted"].as_f64().expect("a count") * 1e9
            / found.report["counted_ns"].as_f64().expect("a time");
        assert!((printed / found.per_s - 1.0).abs() < 1e-9, "{name}: {printed} and {}", found.per_s);
    }
}

/// Eight servers of 5 ms complete 1,600 sessions a second, however many arrive. Above that the queue
/// grows as long as the experiment lasts. Sessions that wait at the end have no rows in the log; without
/// them an overloaded store looked fast.
#[test]
fn a_confirmed_arrival_rate_is_within_the_capacity_of_the_store() {
    let place = place(SPEC);
    let store = "memory:?latency_us=5000&servers=8";
    let command = ["rate", "popular.toml", "--store", store, "--by", "rate", "--name", "r", "--shared-actors"];
    let search = "--first-rate 400 --max-rate 6400 --threads 64 --search-s 0.5 --sessions 20000";
    let search: Vec<&str> = search.split_whitespace().chain(["--sla", "95% < 100ms, 1.5s"]).collect();
    // Other work on the machine may make experiments void, so any exit code is valid here.
    place.run(&[&command[..], &search].concat());
    let rating = std::fs::read_to_string(place.path("runs/r/rating.json")).expect("a rating");
    let rating: Value = serde_json::from_str(&rating).expect("a rating");
    let rate = &rating["rate"];
    // In 1.5 s a queue that grows by 7% takes 100 ms to pass for one session in twenty.
    let per_s = rate["value"].as_f64().expect("a value");
    assert!(rate["confirmed_by"].is_null() || per_s <= 1_600.0 * 1.10, "{rate}");
    let experiments = rating["experiments"].as_array().expect("experiments");
    let twice = experiments.iter().filter(|one| one["rate_per_s"].as_f64() >= Some(3_200.0));
    for overloaded in twice {
        assert_ne!(overloaded["ruling"], "pass", "{overloaded}");
    }
}

/// Guards against a rating that is limited by the workload: more threads than the members keep
/// busy. A short experiment hid this behind sessions that wait. With forty members a rating
/// reported "Socialites at least 512 (confirmed)".
#[test]
fn a_workload_that_limits_the_threads_never_passes() {
    let place = place(SPEC);
    place.run(&["trace", "gen", "popular.toml", "--set", "access.unique_window=0", "-o", "any.trace"]).succeeds();
    place.run(&["trace", "gen", "popular.toml", "--set", "data.members=40", "-o", "forty.trace"]).succeeds();
    for (trace, most) in [("any.trace", "at most 41 threads"), ("forty.trace", "at most 2")] {
        let found = measure(&place, trace, &trace[..3], "memory:?latency_us=20000", 256);
        assert_eq!(found.ruling, "void", "{trace}: {}/s", found.per_s);
        let cause = "the workload, not the store, limits T: ";
        assert!(found.reasons.contains(cause) && found.reasons.contains(most), "{trace}: {}", found.reasons);
    }
}

/// Sessions that wait for busy members at the end of the time are given back. The state of the
/// store is then known exactly, and the next experiment runs these sessions first.
#[test]
fn what_is_given_back_is_known_and_run_by_the_next_experiment() {
    let place = place(
        &SPEC
            .replace("view_profile = 1", "view_profile = 1\ninvite_friend = 1\nthaw_friendship = 1")
            .replace("members = 10_000", "members = 400\nfriends_per_member = 20")
            .replace("400_000", "100_000"),
    );
    place.run(&["trace", "gen", "popular.toml", "--set", "access.unique_window=0"]).succeeds();
    let store = "sqlite:store.db?synchronous=off";
    let replay = |run: &str, more: &[&str]| {
        let command =
            ["replay", "run", "--trace", "popular.trace", "--store", store, "-T", "64", "-o", run, "--digest"];
        let out = place.run(&[&command, more].concat()).succeeds();
        out.lines().last().unwrap_or_default().trim_start_matches("digest ").to_string()
    };
    let expected = |run: &str| {
        let report = format!("{run}/experiments/0001-T64/replay.json");
        let digest = place.run(&["trace", "digest", "popular.trace", "--after", &report]).succeeds();
        let text = std::fs::read_to_string(place.path(&report)).expect("a report");
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let given_back = report["positions"][0]["given_back"].as_array().map_or(0, Vec::len);
        (digest.trim().to_string(), given_back)
    };
    let first = replay("first", &["--load", "--duration", "500ms"]);
    let (digest, given_back) = expected("first");
    assert!(given_back > 0, "no session was given back: the test proves nothing");
    assert_eq!(first, digest);
    let second = replay("second", &["--continue", "--duration", "300ms"]);
    assert_eq!(second, expected("second").0);
    // The validator knows which operations ran when, so it accuses no read of a correct store.
    for run in ["first", "second"] {
        let text = place.run(&["analyze", "validate", run, "--json"]).stdout();
        let found: Value = serde_json::from_str(&text).expect("a validation");
        assert_eq!(found["unpredictable_reads"], 0, "{run}: {text}");
    }
    let third = replay("third", &["--continue"]);
    let whole = place.run(&["trace", "digest", "popular.trace"]).succeeds();
    assert_eq!(third, whole.trim());
}
