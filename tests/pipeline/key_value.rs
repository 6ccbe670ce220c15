//! Key-value workloads: YCSB's, on every store that serves them, from the specification to SQL.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection, Executor, SqliteConnection};

use crate::faults::with;
use crate::support::Workplace;

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_kv_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// A ready specification.
pub fn workload(letter: &str) -> String {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    traces.join(format!("ycsb-{letter}.toml")).display().to_string()
}

/// A short experiment of one of YCSB's workloads; its run folder.
fn experiment(place: &Workplace, letter: &str, store: &str, name: &str) -> String {
    let arguments = ["run", &workload(letter), "--store", store, "--threads", "8", "--sessions", "6000"];
    let small = ["--set", "data.records=500", "--set", "access.scan_length_max=20", "--name", name];
    place.run(&[&arguments[..], &small].concat()).ends();
    format!("runs/{name}")
}

/// The answer to a statement about a run: rows with `;` between them.
pub fn ask(place: &Workplace, run: &str, sql: &str) -> String {
    let answer = place.run(&["analyze", "sql", run, sql, "--format", "csv"]).succeeds();
    answer.lines().skip(1).collect::<Vec<_>>().join(";")
}

/// Every operation succeeded, every read returned what it may, and there are operations of so many
/// sessions.
pub fn is_flawless(place: &Workplace, run: &str, store: &str, sessions: u32) {
    let sql = "SELECT count(*) FILTER (outcome <> 'ok'), count(*) FILTER (unpredictable) FROM operations";
    assert_eq!(ask(place, run, sql), "0,0", "{store}: {run}");
    let sql = "SELECT count(DISTINCT (fragment, session)) FROM operations";
    assert_eq!(ask(place, run, sql), sessions.to_string(), "{store}: {run}");
}

fn servers() -> Vec<String> {
    let databases = [servers::postgres(), servers::mysql(), servers::mongodb()].into_iter().flatten();
    let mut urls: Vec<String> = databases.map(|server| server.url(&database())).collect();
    urls.extend(servers::redis().map(|redis| redis.url("5")));
    urls.extend(servers::cassandra_url(&database()));
    urls
}

/// YCSB's workloads A to F on every store: nothing fails, and no read is unpredictable.
#[test]
fn every_store_runs_the_workloads_of_ycsb() {
    let place = Workplace::new();
    let mut stores = servers();
    stores.extend(["memory:".to_string(), "sqlite:kv.db".to_string()]);
    for (number, store) in stores.iter().enumerate() {
        for letter in ["a", "d", "e", "f"] {
            let run = experiment(&place, letter, store, &format!("{letter}-{number}"));
            is_flawless(&place, &run, store, 6000);
        }
    }
    // Scans of a cluster are not atomic, but each record of them is one that was there.
    if let Some(cluster) = servers::redis_cluster() {
        for letter in ["a", "e"] {
            let run = experiment(&place, letter, &cluster.url(), &format!("{letter}-cluster"));
            is_flawless(&place, &run, &cluster.url(), 6000);
        }
    }
    // memcached has no databases, so the test has a server of its own.
    if let Some(server) = servers::Server::start(servers::Kind::Memcached, servers::Options::default()) {
        let store = format!("memcached://{}", server.address());
        let run = experiment(&place, "a", &store, "cached");
        is_flawless(&place, &run, &store, 6000);
        let scans = ["run", &workload("e"), "--store", &store, "--threads", "1", "--set", "data.records=500"];
        place.run(&scans).fails(2, &["memcached", "scan", "redis://HOST"]);
    }
}

/// A note says that expired records count as missing, wherever the result is shown.
#[test]
fn reads_of_expired_records_have_a_note() {
    let place = Workplace::new();
    let Some(server) = servers::Server::start(servers::Kind::Memcached, servers::Options::default()) else { return };
    let store = format!("memcached://{}?ttl=3600", server.address());
    let run = experiment(&place, "c", &store, "expiring");
    let note = "records expire 3600 s after their last write (ttl=3600)";
    for command in [["analyze", "summary", &run], ["analyze", "validate", &run]] {
        let shown = place.run(&command).ends();
        assert!(shown.contains("note") && shown.contains(note), "{shown}");
        assert_eq!(shown.matches(note).count(), 1, "{shown}");
    }
    let arguments =
        ["run", &workload("c"), "--store", &store, "--threads", "2", "--sessions", "500", "--name", "again"];
    let told = place.run(&[&arguments[..], &["--set", "data.records=500"]].concat()).ends();
    assert!(told.contains(&format!("note: {note}")), "{told}");
}

/// The reason why an experiment could not start was in its summary only.
#[test]
fn an_experiment_that_cannot_start_says_why_on_the_terminal() {
    let place = Workplace::new();
    let run = |name| {
        let arguments = ["run", &workload("c"), "--store", "sqlite:kv.db", "--threads", "2", "--sessions", "500"];
        place.run(&[&arguments[..], &["--set", "data.records=500", "--name", name]].concat())
    };
    run("first").ends();
    // What every load copies lacks a record.
    let loaded = format!("sqlite:{}", place.path("kv.db.loaded").display());
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let mut client = SqliteConnection::connect(&loaded).await.expect("a connection");
        let delete = "DELETE FROM usertable WHERE YCSB_KEY = (SELECT min(YCSB_KEY) FROM usertable)";
        client.execute(delete).await.expect("a deletion");
        client.close().await.expect("a file");
    });
    let told = run("second");
    let shown = told.exits(3) + &told.stderr();
    for words in ["experiment 1 did not start", "usertable: found 499, the data set of", "encore replay load"] {
        assert!(shown.contains(words), "{shown} lacks {words:?}");
    }
}

/// Reads and the writes that they saw are joined by the ids of writes.
#[test]
fn a_read_says_whose_write_it_saw() {
    let place = Workplace::new();
    let run = experiment(&place, "f", "memory:", "joined");
    let kinds = ask(&place, &run, "SELECT operation, count(*) FROM operations GROUP BY ALL ORDER BY ALL");
    assert!(kinds.starts_with("read,6000;update,"), "{kinds}");
    // What a read observed besides the mask are ids of updates of the same record that had begun.
    let sql = "WITH seen AS (
                   SELECT fragment, key, end_ns, unnest(observed[2:]) AS id FROM operations WHERE operation = 'read'
               )
               SELECT count(*) > 1000, bool_and(w.key = s.key AND w.start_ns < s.end_ns)
               FROM seen AS s LEFT JOIN operations AS w
                   ON w.fragment = write_fragment(s.id) AND w.session = write_session(s.id) AND w.step = write_step(s.id)";
    assert_eq!(ask(&place, &run, sql), "true,true");
    let fresh = ask(&place, &run, "SELECT sum(reads) > 0, sum(reads) = sum(fresh) FROM freshness");
    assert_eq!(fresh, "true,true");
}

/// A store that lies is found out, with the write that proves it.
#[test]
fn lies_about_values_are_found() {
    let place = Workplace::new();
    for lie in ["stale=0.05", "lost=0.05"] {
        let run = experiment(&place, "a", &with("memory:", lie), &lie[..4]);
        let counters = std::fs::read_to_string(place.experiment(&run, 1).expect("an experiment").join("replay.json"));
        let report: serde_json::Value = serde_json::from_str(&counters.expect("a report")).expect("JSON");
        let told = report["store_counters"]["lies_told"].as_u64().unwrap_or_else(|| panic!("{report}"));
        let found = ask(&place, &run, "SELECT count(*) FILTER (unpredictable) FROM operations");
        assert!(told > 50 && found == told.to_string(), "{lie}: {found} of {told} lies");
        let shown = place.run(&["analyze", "validate", &run]).stdout();
        assert!(shown.contains("field ") && shown.contains(" of record "), "{shown}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let place = Workplace::new();
    let a = workload("a");
    place
        .run(&["run", &a, "--store", "casql+sqlite:x.db?memcached=127.0.0.1:1", "--threads", "1"])
        .fails(2, &["has no operations of kv", "redis://HOST:6379/0", "sqlite:PATH"]);
    place
        .run(&["run", &a, "--store", "redis://127.0.0.1:1/3?cluster=true", "--threads", "1"])
        .fails(2, &["names a database", "only number 0", "remove the number"]);
    // All operations of a record are timed by one clock.
    place
        .run(&["run", &a, "--store", "sqlite:kv.db", "--threads", "4", "--replayers", "2", "--set", "fragments=1"])
        .fails(2, &["--replayers: 2 replayers need at least 2 fragments", "one clock", "--set fragments=2"]);
    place.run(&["trace", "gen", &a, "--set", "data.members=5"]).fails(2, &["ycsb-a.toml", "members"]);
    place.run(&["trace", "gen", "busy.toml", "--set", "data.records=5"]).fails(2, &["busy.toml", "records"]);
    place
        .run(&["trace", "gen", &a, "--set", "mix.view_profile=1"])
        .fails(2, &["mix.view_profile", "read_modify_write"]);
}

/// What a store cannot do was found out by the load of its own cell, after the cells before it had been
/// rated. No server is needed to know it.
#[test]
fn cells_that_a_store_cannot_run_are_refused_before_the_first_one_starts() {
    let place = Workplace::new();
    let refused = |command: &[&str], words: &[&str]| {
        place.run(command).fails(2, words);
        assert!(!place.path("runs").exists(), "{command:?} has started");
    };
    for (letter, store, words) in [
        ("e", "memcached://127.0.0.1:1", ["memcached://127.0.0.1:1: has no scans", "mix.scan of ", "ycsb-e.toml"]),
        ("e", "redis://127.0.0.1:1/0?ttl=9", ["ttl does not go with scans", "mix.scan of ", "ycsb-e.toml"]),
        ("a", "casql+sqlite:x.db?memcached=127.0.0.1:1", ["has no operations of kv", "family = \"kv\"", "ycsb-a.toml"]),
    ] {
        let spec = workload(letter);
        refused(&["rate", &spec, "--store", store], &words);
        refused(&["run", &spec, "--store", store, "--threads", "1"], &words);
        let plan = format!(
            "name = \"cells\"\ntitle = \"Cells\"\nspec = \"{spec}\"\n\
             [[stores]]\nlabel = \"reference\"\nurl = \"memory:\"\n\
             [[stores]]\nlabel = \"other\"\nurl = \"{store}\"\n"
        );
        std::fs::write(place.path("cells.toml"), plan).expect("the plan is written");
        refused(&["compare", "cells.toml"], &words);
    }
}
