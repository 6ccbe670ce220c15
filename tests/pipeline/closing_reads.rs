//! Closing reads: after an experiment of a key-value workload every record is read, which says what the
//! store holds and what the next experiment begins with.

use std::path::PathBuf;

use serde_json::Value;

use crate::faults::with;
use crate::fleet::Host;
use crate::support::Workplace;

/// Updates of few records that race, and some inserts. A read is rare.
const SPEC: &str = "name = \"closing\"\nfamily = \"kv\"\nsessions = 40000\nfragments = 4\n[data]\nrecords = 400\nfields = 3\n\
                    field_bytes = 40\n[access]\nread_all_fields = false\n[mix]\nupdate = 60\nread = 36\ninsert = 4\n";

fn workplace() -> Workplace {
    let place = Workplace::new();
    std::fs::write(place.path("closing.toml"), SPEC).expect("a specification");
    place
}

/// Runs an experiment of some sessions; its run folder.
fn run(place: &Workplace, name: &str, store: &str, more: &[&str]) -> String {
    let all = ["run", "closing.toml", "--store", store, "--sessions", "6000", "--name", name];
    place.run(&[&all, more].concat()).ends();
    format!("runs/{name}")
}

fn json(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn document(place: &Workplace, run: &str, experiment: u32, name: &str) -> Value {
    json(place.experiment(run, experiment).expect("an experiment").join(name))
}

/// What the closing read of an experiment found.
fn closing(place: &Workplace, run: &str, experiment: u32) -> Value {
    document(place, run, experiment, "verdict.json")["figures"]["closing"].clone()
}

fn ask(place: &Workplace, run: &str, sql: &str) -> String {
    let answer = place.run(&["analyze", "sql", run, sql, "--format", "csv"]).succeeds();
    answer.lines().skip(1).collect::<Vec<_>>().join(";")
}

fn audit(place: &Workplace, run: &str, experiment: u32, fragment: u32) -> PathBuf {
    place.experiment(run, experiment).expect("an experiment").join(format!("audit/fragment-{fragment}.arrows"))
}

#[test]
fn every_record_is_read_after_the_experiment() {
    let place = workplace();
    let mut stores = vec!["memory:".to_string(), "sqlite:kv.db".to_string()];
    let name = || format!("encore_closing_{}", std::process::id());
    let databases = [servers::postgres(), servers::mysql(), servers::mongodb()].into_iter().flatten();
    stores.extend(databases.map(|server| server.url(&name())));
    stores.extend(servers::redis().map(|redis| redis.url("6")));
    stores.extend(servers::cassandra_url(&name()));
    for (number, store) in stores.iter().enumerate() {
        let run = run(&place, &format!("r{number}"), store, &["--threads", "16", "--workers", "2"]);
        let found = closing(&place, &run, 1);
        let inserted = ask(&place, &run, "SELECT count(*) FILTER (operation = 'insert') FROM operations");
        let items = 400 + inserted.parse::<u64>().expect("a number");
        assert_eq!(
            (&found["items"], &found["failed"], &found["unpredictable"]),
            (&items.into(), &0.into(), &0.into()),
            "{store}"
        );
        assert_eq!(found["missing"], Value::Array(Vec::new()), "{store}");
        // Each record once, after all operations; what was seen is the value of a write of it.
        let sql = "SELECT count(*) = count(DISTINCT key), bool_and(fields = 7 AND outcome = 'ok'),
                       min(start_ns) > (SELECT max(end_ns) FROM operations) FROM closing_reads";
        assert_eq!(ask(&place, &run, sql), "true,true,true", "{store}");
        let sql = "SELECT count(*) > 100, bool_and(coalesce(w.key = s.key, false))
                   FROM (SELECT fragment, key, unnest(observed[2:]) AS id FROM closing_reads) AS s
                   LEFT JOIN operations AS w ON w.fragment = write_fragment(s.id) AND w.session = write_session(s.id)
                       AND w.step = write_step(s.id)";
        assert_eq!(ask(&place, &run, sql), "true,true", "{store}");
    }
    let exported =
        place.run(&["analyze", "export", "runs/r0", "--format", "csv", "--rows", "closing-reads"]).succeeds();
    assert!(exported.lines().count() > 400, "{exported}");
    let page = std::fs::read_to_string(place.path("runs/r0/report.html")).expect("a report");
    assert!(page.contains("Closing read: "), "the page lacks the closing read");
}

/// A lost update that no later operation reads is seen by the closing read alone.
#[test]
fn lost_updates_that_no_operation_reads_are_found() {
    let place = workplace();
    let only_updates = ["--threads", "1", "--set", "mix.read=0", "--set", "mix.insert=0"];
    let store = with("memory:", "lost=0.05");
    let lossy = run(&place, "lossy", &store, &only_updates);
    let found = closing(&place, &lossy, 1);
    let unpredictable = found["unpredictable"].as_u64().expect("a number");
    assert!(found["items"] == 400 && (10..100).contains(&unpredictable), "{found}");
    let verdict = document(&place, &lossy, 1, "verdict.json");
    assert_eq!((&verdict["figures"]["reads"], &verdict["figures"]["unpredictable_reads"]), (&0.into(), &0.into()));
    // They are marked in the view, and the writes that prove them are shown.
    let sql = "SELECT count(DISTINCT owner), bool_and(closing AND session IS NULL) FROM unpredictable";
    assert_eq!(ask(&place, &lossy, sql), format!("{unpredictable},true"));
    let shown = place.run(&["analyze", "validate", &lossy]).exits(1);
    let words = format!("closing read: 400 items, {unpredictable} unpredictable");
    assert!(shown.contains(&words) && shown.contains("read by the closing read of fragment "), "{shown}");
    assert!(shown.contains("writes before and during the read"), "{shown}");
    let summary = place.run(&["analyze", "summary", &lossy]).exits(1);
    assert!(summary.contains(&format!("# 1 {words}")), "{summary}");

    let unread = run(&place, "unread", &store, &[&only_updates[..], &["--no-closing-read"]].concat());
    assert_eq!(closing(&place, &unread, 1), Value::Null);
    assert!(!place.experiment(&unread, 1).expect("one").join("audit").exists());
    assert_eq!(
        ask(&place, &unread, "SELECT (SELECT count(*) FROM closing_reads), (SELECT count(*) FROM unpredictable)"),
        "0,0"
    );
}

#[test]
fn failed_closing_reads_leave_the_value_open() {
    let place = workplace();
    let run = run(&place, "failing", &with("memory:", "error=0.05"), &["--threads", "4"]);
    let found = closing(&place, &run, 1);
    let failed = found["failed"].as_u64().expect("a number");
    assert!((5..60).contains(&failed) && found["unpredictable"] == 0, "{found}");
    let sql = "SELECT count(*), bool_and(error LIKE 'injected fault%' AND len(observed) = 0) FROM closing_reads
               WHERE outcome = 'failed'";
    assert_eq!(ask(&place, &run, sql), format!("{failed},true"));
}

/// A family whose trace sets say what they leave has no closing read, and `null:` holds nothing to read.
#[test]
fn what_needs_no_closing_read_has_none() {
    let place = workplace();
    for (name, spec, store) in [("social", "busy.toml", "memory:"), ("null", "closing.toml", "null:")] {
        let all = ["run", spec, "--store", store, "--sessions", "1000", "--threads", "2", "--name", name];
        place.run(&all).ends();
        let run = format!("runs/{name}");
        assert_eq!(closing(&place, &run, 1), Value::Null, "{name}");
        assert!(!place.experiment(&run, 1).expect("one").join("audit").exists(), "{name}");
        assert_eq!(document(&place, &run, 1, "plan.json")["closing_read"], Value::Null, "{name}");
    }
}

/// Two experiments on a store that tells the truth, the second one continued. Their writes raced.
fn continued(place: &Workplace) -> String {
    place.run(&["trace", "gen", "closing.toml", "-o", "closing.trace"]).succeeds();
    let all = ["replay", "run", "--trace", "closing.trace", "--store", "sqlite:kv.db?synchronous=off", "-T", "8"];
    for more in ["--load", "--continue"] {
        place.run(&[&all[..], &["-o", "runs/both", "--sessions", "4000", more]].concat()).succeeds();
    }
    "runs/both".to_string()
}

#[test]
fn a_continued_experiment_begins_with_the_closing_read() {
    let place = workplace();
    let run = continued(&place);
    let name = &document(&place, &run, 1, "plan.json")["closing_read"];
    assert!(name.is_string() && document(&place, &run, 1, "replay.json")["began_with"].is_null());
    assert_eq!(&document(&place, &run, 2, "replay.json")["began_with"], name);
    assert_eq!(ask(&place, &run, "SELECT count(*) FILTER (unpredictable) FROM operations"), "0");
    for experiment in [1, 2] {
        let found = closing(&place, &run, experiment);
        assert!(found["unpredictable"] == 0 && found["missing"] == Value::Array(Vec::new()), "{found}");
    }
}

/// A file that is missing or cut off is reported, and the rest of the analysis is as without it.
#[test]
fn damaged_files_are_reported() {
    let place = workplace();
    let run = continued(&place);
    std::fs::remove_file(audit(&place, &run, 1, 0)).expect("it is removed");
    let cut = audit(&place, &run, 1, 1);
    let bytes = std::fs::read(&cut).expect("a file");
    std::fs::write(&cut, &bytes[..bytes.len() - 8]).expect("it is cut off");
    std::fs::write(audit(&place, &run, 1, 2), "not a log").expect("it is overwritten");
    let summary = |experiment: &str| {
        let ran = place.run(&["analyze", "summary", &run, "--experiment", experiment, "--json"]);
        let summary: Value = serde_json::from_str(&ran.stdout()).expect("a summary");
        let number: usize = experiment.parse().expect("a number");
        summary["verdicts"][number - 1]["figures"].clone()
    };
    let first = summary("1");
    let missing = first["closing"]["missing"].to_string();
    for words in ["fragment 0: no file", "fragment 1: ", "the file is incomplete", "fragment 2: "] {
        assert!(missing.contains(words), "{missing}");
    }
    assert!(first["closing"]["items"].as_u64() > Some(150), "{first}");
    let second = summary("2");
    let missing = second["closing"]["missing"].to_string();
    assert!(
        missing.contains("fragment 0: the closing read of experiment 1 ") && !missing.contains("fragment 3"),
        "{missing}"
    );
    assert_eq!((&second["unpredictable_reads"], &second["closing"]["unpredictable"]), (&0.into(), &0.into()));
}

/// A stale read of a record that the experiment has not written yet: any earlier write of it was possible
/// before, and the closing read says which it was.
#[test]
fn a_continued_experiment_finds_what_it_could_not_see_without_a_closing_read() {
    let place = workplace();
    // Fast enough that the first experiment writes most records several times. Of a record that was written
    // once, a stale read would be found in any case.
    let store = with("memory:?latency_us=20", "stale=0.1");
    let rate = ["rate", "closing.toml", "--store", &store, "--between", "continue", "--name", "stale"];
    let few = ["--max-threads", "2", "--search-s", "0.2", "--sla", "1% < 10s, 100% unpredictable, 0.2s"];
    let records = ["--set", "sessions=200000", "--set", "data.fields=1", "--set", "access.distribution=uniform"];
    place.run(&[&rate[..], &few, &records].concat()).ends();
    let run = "runs/stale";
    assert!(document(&place, run, 2, "replay.json")["began_with"].is_string());
    let unpredictable = || {
        let figures = document(&place, run, 2, "verdict.json")["figures"].clone();
        figures["unpredictable_reads"].as_u64().expect("a number")
    };
    let with_closing_read = unpredictable();
    let folder = place.experiment(run, 1).expect("an experiment").join("audit");
    std::fs::remove_dir_all(folder).expect("the closing read is removed");
    std::fs::remove_dir_all(place.path("runs/stale/operations/experiment=2")).expect("the tables are removed");
    place.run(&["analyze", "validate", run, "--experiment", "2"]);
    let without = unpredictable();
    assert!(with_closing_read > without, "{with_closing_read} with, {without} without");
}

/// Most of a rating's time was spent in reading all records after each short experiment of its search.
#[test]
fn a_search_has_no_closing_reads_unless_the_next_experiment_begins_with_one() {
    let place = workplace();
    let rate = ["rate", "closing.toml", "--store", "memory:?latency_us=20", "--set", "sessions=200000"];
    let few = ["--max-threads", "2", "--search-s", "0.2", "--sla", "1% < 10s, 100% unpredictable, 0.2s"];
    for (between, of_search) in [("load", false), ("continue", true)] {
        let said = place.run(&[&rate[..], &few, &["--between", between, "--name", between]].concat()).ends();
        assert!(said.contains("every item is read after") && said.contains("--no-closing-read"), "{said}");
        let run = format!("runs/{between}");
        let numbers = (1..).take_while(|number| place.experiment(&run, *number).is_some());
        let purposes: Vec<bool> = numbers
            .map(|number| {
                let is_search = document(&place, &run, number, "trial.json")["purpose"] == "search";
                let is_read = document(&place, &run, number, "plan.json")["closing_read"].is_string();
                assert_eq!(is_read, of_search || !is_search, "experiment {number} of {run}");
                assert_eq!(place.experiment(&run, number).expect("one").join("audit").exists(), is_read);
                is_search
            })
            .collect();
        assert!(purposes.contains(&true), "{run} searched nothing");
    }
}

/// Replayers on other machines send what they read, or summarize it and send it later.
#[test]
fn replayers_send_their_closing_reads() {
    let place = workplace();
    let hosts = [Host::start(&place, 81, &[]), Host::start(&place, 82, &[])];
    let Some(store) = servers::redis().map(|redis| redis.url("7")) else { return };
    let replayers = ["--replayer", &hosts[0].address, "--replayer", &hosts[1].address, "--threads", "8"];
    let fetched = run(&place, "fetched", &store, &replayers);
    let left = run(&place, "left", &store, &[&replayers[..], &["--leave-logs"]].concat());
    let found = closing(&place, &fetched, 1);
    assert!(found["items"].as_u64() > Some(600) && found["missing"] == Value::Array(Vec::new()), "{found}");
    assert_eq!(closing(&place, &left, 1), found);
    assert!((0..4).all(|fragment| audit(&place, &fetched, 1, fragment).exists()));
    assert!((0..4).all(|fragment| !audit(&place, &left, 1, fragment).exists()));
    place.run(&["collect", &left, "--replayer", &hosts[0].address, "--replayer", &hosts[1].address]).succeeds();
    assert!((0..4).all(|fragment| audit(&place, &left, 1, fragment).exists()));
    place.run(&["analyze", "validate", &left]);
    assert_eq!(closing(&place, &left, 1), found);
    assert_eq!(ask(&place, &left, "SELECT count(*) FROM closing_reads"), found["items"].to_string());
}
