//! `--keep-data`: runs on a table that another tool has loaded, through the program.

use std::process::Stdio;
use std::time::{Duration, Instant};

use schemas::workload::kv::{Keys, KvWorkload};
use sqlx::{AssertSqlSafe, Connection, Executor, Row, SqliteConnection};

use crate::key_value::{ask, is_flawless};
use crate::support::Workplace;

/// The workload's data set is what the other tool has loaded.
const SPEC: &str = r#"
name = "kept"
family = "kv"
sessions = 20000
[data]
records = 400
fields = 3
field_bytes = 24
[mix]
read = 50
update = 40
scan = 10
"#;

fn run<X>(future: impl Future<Output = X>) -> X {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future)
}

/// A folder with the specification, and the table in a file of SQLite as YCSB's JDBC binding makes it.
fn place() -> Workplace {
    let place = Workplace::new();
    std::fs::write(place.path("kept.toml"), SPEC).expect("the spec is written");
    std::fs::write(place.path("ycsb.db"), "").expect("an empty file");
    let spec = schemas::spec::Spec::parse(SPEC, "kept.toml").expect("a spec");
    let keys = Keys::new(&spec.workload::<KvWorkload>().expect("its own part").data);
    let columns = "FIELD0 TEXT, FIELD1 TEXT, FIELD2 TEXT";
    let mut text = format!("BEGIN; CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, {columns});");
    for record in 0..400 {
        let key = keys.key(record);
        text += &format!("INSERT INTO usertable VALUES ('{key}', 'precious value number {record}', 'b', 'c');");
    }
    sql(&place, &format!("{text} COMMIT"));
    place
}

fn sql(place: &Workplace, text: &str) {
    let url = format!("sqlite:{}", place.path("ycsb.db").display());
    run(async {
        let mut client = SqliteConnection::connect(&url).await.expect("a connection");
        client.execute(AssertSqlSafe(text.to_string())).await.expect("it is executed");
        client.close().await.expect("a file");
    });
}

fn count(place: &Workplace, condition: &str) -> i64 {
    let url = format!("sqlite:{}", place.path("ycsb.db").display());
    let text = format!("SELECT count(*) FROM usertable WHERE {condition}");
    run(async {
        let mut client = SqliteConnection::connect(&url).await.expect("a connection");
        client.fetch_one(AssertSqlSafe(text)).await.expect("a row").get(0)
    })
}

const KEPT: [&str; 4] = ["kept.toml", "--store", "sqlite:ycsb.db?synchronous=off", "--keep-data"];

#[test]
fn runs_on_kept_records_continue_the_trace() {
    let place = place();
    for name in ["one", "two"] {
        let run = [&["run"], &KEPT[..], &["--threads", "4", "--sessions", "2000", "--name", name]].concat();
        place.run(&run).ends();
        let run = format!("runs/{name}");
        let sql = "SELECT count(*) FILTER (outcome <> 'ok'), count(*) FILTER (unpredictable), count(*) FROM operations";
        assert_eq!(ask(&place, &run, sql), "0,0,2000");
    }
    let sessions = |run: &str| ask(&place, run, "SELECT min(session), max(session) FROM operations");
    assert_eq!((sessions("runs/one"), sessions("runs/two")), ("0,1999".into(), "2000,3999".into()));
    let overwritten = count(&place, "FIELD0 NOT LIKE 'precious%'");
    assert!((50..400).contains(&overwritten), "the runs have overwritten {overwritten} of 400 records");
    // A rating continues where they stopped, and a resumed one where it stopped itself.
    let rating = ["--search-s", "0.2", "--max-threads", "2", "--sla", "50% < 10s, 0.4s", "--rating", "soar"];
    let rate = [&["rate"], &KEPT[..], &rating, &["--name", "rated"]].concat();
    place.run(&rate).ends();
    let mut before = 3999;
    for experiment in 1..=2 {
        let sql = format!("SELECT min(session) FROM operations WHERE experiment = {experiment}");
        let first: i64 = ask(&place, "runs/rated", &sql).parse().expect("a number");
        assert!(first > before, "experiment {experiment} begins at {first}");
        before = first;
    }
    assert_eq!(ask(&place, "runs/rated", "SELECT count(*) FILTER (unpredictable) FROM operations"), "0");
    // Nothing overwrites the table.
    place
        .run(&["rate", "kept.toml", "--store", "sqlite:ycsb.db", "--name", "loads"])
        .fails(2, &["sqlite:ycsb.db", "does not overwrite them", "--keep-data"]);
    let load = ["replay", "load", "--trace", "runs/traces/kept.trace", "--store", "sqlite:ycsb.db"];
    place.run(&load).fails(2, &["sqlite:ycsb.db", "does not overwrite them", "encore_state"]);
    assert_eq!(count(&place, "true"), 400);
}

/// The store itself says where the trace continues, also after the experiment that Ctrl-C has ended.
#[test]
fn an_interrupted_rating_of_kept_records_is_resumed() {
    let place = place();
    let rating = ["--search-s", "0.4", "--max-threads", "4", "--sla", "50% < 10s, 0.6s", "--name", "r"];
    let mut command = place.command(&[&["rate"], &KEPT[..], &rating].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a rating");
    let patience = Instant::now() + Duration::from_secs(120);
    let second = || place.experiment("runs/r", 2).is_some_and(|folder| folder.join("log").exists());
    while !second() {
        assert!(Instant::now() < patience, "the second experiment has not begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(place.run(&["rate", "--resume", "runs/r"]).ends().contains("SoAR"));
    let sql = "SELECT count(*) FILTER (unpredictable), count(DISTINCT experiment) >= 2 FROM operations";
    assert_eq!(ask(&place, "runs/r", sql), "0,true");
    // No session ran twice.
    let twice =
        "SELECT count(*) FROM (SELECT session FROM operations GROUP BY ALL HAVING count(DISTINCT experiment) > 1)";
    assert_eq!(ask(&place, "runs/r", twice), "0");
}

/// Values of the other tool that are shorter than an id were unverifiable, so that most undone writes were
/// not found.
#[test]
fn undone_writes_of_short_values_are_found() {
    let place = place();
    // Every write of a fourth of the records is undone.
    sql(
        &place,
        "CREATE TRIGGER liar AFTER UPDATE ON usertable WHEN NEW.rowid % 4 = 0 BEGIN \
         UPDATE usertable SET FIELD0 = OLD.FIELD0, FIELD1 = OLD.FIELD1, FIELD2 = OLD.FIELD2 WHERE rowid = NEW.rowid; \
         END",
    );
    let run = [&["run"], &KEPT[..], &["--threads", "4", "--sessions", "6000", "--name", "lies"]].concat();
    place.run(&run).ends();
    let truth = "SELECT count(*) FROM unpredictable WHERE item = 'field' AND owner % 4 <> 3";
    assert_eq!(ask(&place, "runs/lies", truth), "0");
    // FIELD1 and FIELD2 have initial values of one letter.
    let found = "SELECT bool_and(n > 20) FROM (SELECT element, count(*) AS n FROM unpredictable
                 WHERE item = 'field' GROUP BY element) HAVING count(*) = 3";
    assert_eq!(ask(&place, "runs/lies", found), "true");
    // No read of such a record after a write of its field is without a finding.
    let missed = "SELECT count(*) FROM operations AS r WHERE operation = 'read' AND key % 4 = 3 AND NOT unpredictable
                  AND EXISTS (SELECT 1 FROM operations AS w WHERE w.operation = 'update' AND w.key = r.key
                              AND w.outcome = 'ok' AND w.fields & r.fields <> 0 AND w.end_ns < r.start_ns)";
    assert_eq!(ask(&place, "runs/lies", missed), "0");
}

/// A read of a field without a value failed, and the experiment passed.
#[test]
fn a_lost_field_is_an_unpredictable_read() {
    let place = place();
    sql(
        &place,
        "CREATE TRIGGER loser AFTER UPDATE ON usertable WHEN NEW.rowid = 4 BEGIN \
         UPDATE usertable SET FIELD1 = NULL WHERE rowid = 4; END",
    );
    let run = ["--threads", "4", "--sessions", "6000", "--name", "lost"];
    place.run(&[&["run"], &KEPT[..], &run].concat()).ends();
    assert_eq!(ask(&place, "runs/lost", "SELECT count(*) FROM operations WHERE outcome <> 'ok'"), "0");
    let found = "SELECT DISTINCT owner, element, observed FROM unpredictable WHERE item = 'field'";
    assert_eq!(ask(&place, "runs/lost", found), "3,1,-2");
    let told = place.run(&["analyze", "validate", "runs/lost"]).exits(1);
    assert!(told.contains("field 1 of record 3 has no value"), "{told}");
}

#[test]
fn a_replay_keeps_records_too() {
    let place = place();
    place.run(&["trace", "gen", "kept.toml", "-o", "kept.trace"]).succeeds();
    let replay = ["replay", "run", "--trace", "kept.trace", "--store", "sqlite:ycsb.db", "-T", "2", "-o", "r"];
    let short = [&replay[..], &["--sessions", "300"]].concat();
    place.run(&short).fails(2, &["table usertable", "has not made", "--keep-data"]);
    place.run(&[&short[..], &["--keep-data", "--load"]].concat()).fails(2, &["--keep-data", "--load"]);
    let ran = place.run(&[&short[..], &["--keep-data"]].concat());
    ran.succeeds();
    assert!(!ran.stderr().contains("not checked"), "{}", ran.stderr());
    place.run(&[&short[..], &["--continue"]].concat()).succeeds();
    assert_eq!(ask(&place, "r", "SELECT max(session) FROM operations"), "599");
}

/// Rows that were deleted by hand after a load by Encore.
#[test]
fn a_count_that_contradicts_the_trace_set_stops_a_replay_before_it_starts() {
    let place = Workplace::new();
    std::fs::write(place.path("kept.toml"), SPEC).expect("the spec is written");
    place.run(&["trace", "gen", "kept.toml", "-o", "kept.trace"]).succeeds();
    place.run(&["replay", "load", "--trace", "kept.trace", "--store", "sqlite:ycsb.db"]).succeeds();
    sql(&place, "DELETE FROM usertable WHERE YCSB_KEY = (SELECT min(YCSB_KEY) FROM usertable)");
    let replay = ["replay", "run", "--trace", "kept.trace", "--store", "sqlite:ycsb.db", "-T", "2", "-o", "r"];
    place.run(&replay).fails(
        2,
        &["sqlite:ycsb.db", "rows of table usertable: found 399", "kept.trace has 400", "`encore replay load --trace"],
    );
    assert!(!place.path("r").exists(), "a run was begun");
}

#[test]
fn records_that_are_not_the_data_set_stop_a_run_before_it_starts() {
    let place = place();
    let run = |more: &[&str]| place.run(&[&["run"], &KEPT[..], &["--threads", "1", "--name", "x"], more].concat());
    run(&["--set", "data.records=401"]).fails(2, &["sqlite:ycsb.db", "found 400", "has 401", "recordcount"]);
    run(&["--set", "data.key_order=ordered"]).fails(2, &["user0 ", "insertorder"]);
    run(&["--set", "data.fields=4"]).fails(2, &["FIELD3", "fieldcount"]);
    let between = ["rate", "kept.toml", "--store", "sqlite:ycsb.db", "--keep-data", "--between", "load"];
    place.run(&between).fails(2, &["--between load", "--keep-data"]);
    place.run(&["rate", "kept.toml", "--keep-data"]).fails(2, &["--store"]);
    place
        .run(&["run", "kept.toml", "--store", "memory:", "--keep-data", "--threads", "1"])
        .fails(2, &["--store memory:", "remove --keep-data"]);
    place
        .run(&["run", "busy.toml", "--store", "sqlite:ycsb.db", "--keep-data", "--threads", "1"])
        .fails(2, &["can only be loaded by Encore"]);
    sql(&place, "UPDATE usertable SET YCSB_KEY = 'user1' WHERE YCSB_KEY = (SELECT min(YCSB_KEY) FROM usertable)");
    run(&[]).fails(2, &["has no record user", "the store has user1"]);
    assert!(!place.path("runs/x").exists(), "a run was begun");
    assert_eq!(count(&place, "FIELD0 LIKE 'precious%'"), 400);
}

/// Values that are too short to say whose they are: the run says once that reads are not checked.
#[test]
fn a_run_says_what_it_cannot_check() {
    let place = place();
    let short = ["--set", "data.field_bytes=12", "--store", "memory:", "--threads", "2", "--sessions", "500"];
    let says = |text: String| assert_eq!(text.matches("values shorter than 16 bytes").count(), 1, "{text}");
    says(place.run(&[&["run", "kept.toml", "--name", "short"], &short[..]].concat()).ends());
    let summary = place.run(&["analyze", "summary", "runs/short"]);
    says(summary.stdout());
    says(place.run(&["analyze", "validate", "runs/short"]).succeeds());
    says(std::fs::read_to_string(place.path("runs/short/report.html")).expect("a page"));
    let replay = ["replay", "run", "--trace", "runs/traces/kept.trace", "--store", "memory:", "-T", "2", "-o", "r"];
    let ran = place.run(&replay);
    ran.succeeds();
    says(ran.stderr());
    let long = ["run", "kept.toml", "--store", "memory:", "--threads", "2", "--sessions", "500", "--name", "long"];
    let said = place.run(&long).ends();
    assert!(!said.contains("values shorter"), "{said}");
    is_flawless(&place, "runs/long", "memory:", 500);
}
