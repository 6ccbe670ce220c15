//! The closed economy, from the specification to the anomaly score: transactions keep the money, and
//! without them it gets lost.

use serde_json::Value;

use crate::key_value::ask;
use crate::support::Workplace;

/// Few accounts, so that transactions meet.
const SPEC: &str = "name = \"economy\"\nfamily = \"economy\"\nsessions = 20000\nfragments = 2\n[data]\nrecords = 200\n\
                    total_cash = 200003\nfields = 2\n[access]\ndistribution = \"zipfian\"\ndependency_window = 64\n\
                    scan_length_max = 10\n[mix]\nread = 20\nupdate = 10\ninsert = 5\nscan = 5\ndelete = 5\n\
                    read_modify_write = 45\nadjust = 10\n";

fn workplace() -> Workplace {
    let place = Workplace::new();
    std::fs::write(place.path("economy.toml"), SPEC).expect("a specification");
    place
}

/// Runs an experiment; its run folder.
fn run(place: &Workplace, name: &str, store: &str, more: &[&str]) -> String {
    let all = ["run", "economy.toml", "--store", store, "--sessions", "4000", "--name", name];
    place.run(&[&all, more].concat()).ends();
    format!("runs/{name}")
}

/// The sum of an experiment, and the exit code of its validation.
fn sum(place: &Workplace, run: &str, experiment: &str, code: i32) -> Value {
    let said = place.run(&["analyze", "validate", run, "--experiment", experiment, "--json"]).exits(code);
    serde_json::from_str::<Value>(&said).expect("JSON")["sum"].clone()
}

/// The sum at the end by SQL: what the closing read has found.
fn end_by_sql(place: &Workplace, run: &str) -> String {
    ask(place, run, "SELECT sum(observed[-1]) FROM closing_reads WHERE outcome = 'ok' AND len(observed) > 0")
}

#[test]
fn transactions_keep_the_money() {
    let place = workplace();
    let name = || format!("encore_economy_{}", std::process::id());
    let isolated =
        |url: String, level: &str| format!("{url}{}isolation={level}", if url.contains('?') { '&' } else { '?' });
    let mut stores: Vec<String> =
        ["serializable", "snapshot"].iter().map(|level| format!("memory:?isolation={level}&latency_us=100")).collect();
    stores.push("sqlite:economy.db".to_string());
    let databases = [servers::postgres(), servers::mysql()].into_iter().flatten();
    stores.extend(databases.map(|server| isolated(server.url(&name()), "serializable")));
    stores.extend(servers::mongodb().map(|server| server.url(&name())));
    stores.extend(servers::redis().map(|server| server.url("11")));
    for (number, store) in stores.iter().enumerate() {
        let run = run(&place, &format!("r{number}"), store, &["--threads", "8", "--tries", "20"]);
        let sum = sum(&place, &run, "1", 0);
        assert_eq!(
            (&sum["start"], &sum["off"], &sum["apart"]),
            (&200_003.into(), &0.into(), &0.into()),
            "{store}: {sum}"
        );
        assert_eq!((&sum["score"], &sum["transactions"]), (&0.0.into(), &4_000.into()), "{store}: {sum}");
        assert_eq!(end_by_sql(&place, &run), sum["end"].to_string(), "{store}");
        let changes = ask(&place, &run, "SELECT sum(change)::BIGINT FROM money_changes WHERE NOT unknown");
        let moved = sum["released"].as_i64().unwrap() - sum["captured"].as_i64().unwrap();
        assert_eq!(changes, moved.to_string(), "{store}: {sum}");
        let kinds = "SELECT count(DISTINCT operation) FROM operations WHERE outcome = 'ok'";
        assert_eq!(ask(&place, &run, kinds), "7", "{store}");
        let said = place.run(&["analyze", "summary", &run]).ends();
        assert!(
            said.contains("money: 200,003 at the start") && said.contains("nothing off; anomaly score 0 ("),
            "{said}"
        );
    }
}

/// A store that promises nothing breaks no promise.
#[test]
fn without_isolation_money_gets_lost() {
    let place = workplace();
    for (number, (store, more)) in [
        ("memory:?latency_us=200", &["--transactions", "off"][..]),
        ("memory:?latency_us=200&isolation=none", &[]),
        ("memory:?latency_us=200&isolation=read-committed", &["--tries", "20"]),
    ]
    .into_iter()
    .enumerate()
    {
        let run = run(&place, &format!("l{number}"), store, &[&["--threads", "16"], more].concat());
        let found = place.run(&["analyze", "validate", &run, "--json"]);
        let sum = serde_json::from_str::<Value>(&found.ends()).expect("JSON")["sum"].clone();
        assert!(sum["score"].as_f64().unwrap() > 0.0, "{store}: {sum}");
        assert_eq!(sum["apart"].as_u64().unwrap() > 0, number < 2, "{store}: {sum}");
        let said = place.run(&["analyze", "summary", &run]).ends();
        assert!(!said.contains("although the store says"), "{said}");
        // One thread loses nothing.
        let alone = self::run(&place, &format!("a{number}"), store, &[&["--threads", "1"], more].concat());
        let said = place.run(&["analyze", "validate", &alone, "--json"]).ends();
        let sum = serde_json::from_str::<Value>(&said).expect("JSON")["sum"].clone();
        assert_eq!(sum["off"], 0, "{store}: {sum}");
    }
}

/// YCSB+T's Figure 4 on a store without isolation: the score grows with the number of threads. Deletes capture
/// balances, so every update adds $1, and each lost update takes exactly $1 from the sum: nothing cancels out.
#[test]
fn the_anomaly_score_grows_with_the_number_of_threads() {
    const GROWTH: &str = "name = \"growth\"\nfamily = \"economy\"\nsessions = 6000\n[data]\nrecords = 40\nfields = 1\n\
                          [access]\ndistribution = \"uniform\"\ndependency_window = 8\n[mix]\nupdate = 400\ndelete = 1\n";
    let place = Workplace::new();
    std::fs::write(place.path("growth.toml"), GROWTH).expect("a specification");
    let score = |threads: &str| {
        let store = ["run", "growth.toml", "--store", "memory:?isolation=none&latency_us=200"];
        place.run(&[&store[..], &["--threads", threads, "--sessions", "6000", "--name", threads]].concat()).ends();
        let said = place.run(&["analyze", "validate", &format!("runs/{threads}"), "--json"]).ends();
        let sum = &serde_json::from_str::<Value>(&said).expect("JSON")["sum"];
        assert_eq!(sum["transactions"], 6_000, "{sum}");
        sum["score"].as_f64().expect("a score")
    };
    let [alone, two, sixteen] = ["1", "2", "16"].map(score);
    assert!(alone == 0.0 && two > 0.0 && sixteen > 2.0 * two, "{alone} {two} {sixteen}");
}
