//! Tests of staleness, from the specification to the table of consistency: a store that is right, and one whose
//! reads are stale by chance.

use serde_json::Value;

use crate::key_value::ask;
use crate::support::Workplace;

/// 40 tests in two seconds, in two fragments.
const SPEC: &str = "name = \"consbench\"\nfamily = \"consbench\"\nfragments = 2\n[data]\nrecords = 30\nfields = 2\n\
                    [consbench]\nreplicas = 3\ntests = 40\nduration = \"2s\"\nburst = \"80ms\"\nreads = 25\n";

/// Runs an experiment; its run folder.
fn run(place: &Workplace, name: &str, store: &str) -> String {
    let all = ["run", "consbench.toml", "--store", store, "--threads", "8", "--duration", "2s", "--name", name];
    place.run(&all).ends();
    format!("runs/{name}")
}

fn consistency(place: &Workplace, run: &str) -> Value {
    let said = place.run(&["analyze", "consistency", run, "--json"]).succeeds();
    serde_json::from_str::<Value>(&said).expect("JSON")["consistency"].clone()
}

#[test]
fn a_burst_of_reads_shows_whether_a_write_is_stale() {
    let place = Workplace::new();
    std::fs::write(place.path("consbench.toml"), SPEC).expect("a specification");
    let said = place.run(&["trace", "gen", "consbench.toml"]).succeeds();
    assert!(!said.contains("error"), "{said}");
    let shown = place.run(&["trace", "show", "consbench.trace"]).succeeds();
    for words in [
        "written one after the other",
        "40 writes, one in 100ms in each fragment, up to 20ms later",
        "25 reads within 80ms of the write's due time",
        "each of 3 replicas is read within 48ms in 99% of cases",
        "64 clients; one reads again after some 102.4ms",
        "threads that this trace can keep busy: 64 (consbench.readers)",
    ] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }

    let right = run(&place, "right", "memory:");
    let found = consistency(&place, &right);
    assert!(found["registers"].as_u64() > Some(0) && found["reads"].as_u64() > Some(0), "{found}");
    assert_eq!((&found["linearizable"], &found["stale_reads"]), (&found["registers"], &0.into()), "{found}");
    // Each write that was replayed has its burst, but for the last one of each fragment.
    let whole = "SELECT count(*) FROM (SELECT fragment, session // 26 AS test, count(*) AS n, \
                 count(DISTINCT key) AS keys, count(DISTINCT actor) AS actors, \
                 count(*) FILTER (operation = 'update') AS writes FROM operations GROUP BY fragment, session // 26) AS tests \
                 WHERE test < (SELECT max(session) // 26 FROM operations AS all_of WHERE all_of.fragment = tests.fragment) \
                 AND (n <> 26 OR keys <> 1 OR actors <> 25 OR writes <> 1)";
    assert_eq!(ask(&place, &right, whole), "0");

    // A fifth of the reads is stale, among them such of clients that have just written.
    let stale = run(&place, "stale", "memory:?stale=0.2");
    let found = consistency(&place, &stale);
    assert!(found["stale_reads"].as_u64() > Some(0), "{found}");
    assert!(found["linearizable"].as_u64() < found["registers"].as_u64(), "{found}");
    assert!(found["by_actor"]["read_your_writes"]["reads"].as_u64() > Some(0), "{found}");
}

/// Each refusal names the file and the key, and changes nothing.
#[test]
fn tests_that_cannot_be_done_are_refused() {
    let place = Workplace::new();
    let check = |from: &str, to: &str, words: &[&str]| {
        std::fs::write(place.path("consbench.toml"), SPEC.replace(from, to)).expect("a specification");
        let before = place.contents();
        place.run(&["trace", "gen", "consbench.toml"]).fails(2, &[&["consbench.toml"], words].concat());
        assert!(place.contents() == before, "{to} changed something");
    };
    check("tests = 40", "tests = 0", &["consbench.tests", "every fragment needs a test"]);
    check("80ms", "101ms", &["consbench.burst", "longer than the time between two writes of a fragment (100ms)"]);
    check("reads = 25", "reads = 0", &["consbench.reads", "not between 1 and"]);
    check("replicas = 3", "replicas = 0", &["consbench.replicas"]);
    check("tests = 40", "tests = 40\nwriters = 2", &["writers"]);
    check("records = 30", "records = 1", &["fragments", "data.records (1)"]);
}
