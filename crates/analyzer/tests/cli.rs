//! The command line: what it prints, and its exit codes.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{Event, Fixture, World, log_row, simulate};
use schemas::oplog::Outcome;
use schemas::run::{RunDocument, RunState};
use schemas::social::{Action, Operation};

fn analyzer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_analyzer")).args(arguments).env_remove("COLUMNS").output().unwrap()
}

/// Standard output, standard error and the exit code, without what differs between machines.
fn run(fixture: &Fixture, arguments: &[&str]) -> String {
    let path = fixture.run.root().display().to_string();
    let arguments: Vec<&str> = arguments.iter().map(|a| if *a == "RUN" { path.as_str() } else { a }).collect();
    let output = analyzer(&arguments);
    let text = format!(
        "{}{}exit code {}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().unwrap()
    );
    // The bytes of a Parquet file depend on its writer, and so does the trace set's id.
    text.replace(&path, "RUN")
        .replace(&fixture.plan().trace_id, "TRACE_ID")
        .replace(&fixture.trace().display().to_string(), "TRACE")
}

fn event(session: u64, start: i64, end: i64, outcome: Outcome, what: (Action, u64, u64), observed: &[i64]) -> Event {
    let (action, socialite, target) = what;
    let error = (outcome != Outcome::Ok).then(|| "it timed out".to_string());
    let operation = Operation { action, socialite, target, comment: None };
    Event { operation, log: log_row(session, start, end, outcome), observed: observed.to_vec(), error }
}

/// A history with every kind of violation, and writes that matter to them.
fn liar() -> Fixture {
    use Action::*;
    use Outcome::{Ok, Unknown};
    let ms = 1_000_000;
    let events = vec![
        event(0, 0, ms, Ok, (InviteFriend, 1, 5), &[]),
        event(1, 2 * ms, 3 * ms, Ok, (InviteFriend, 2, 5), &[]),
        event(2, 4 * ms, 9 * ms, Ok, (AcceptFriendRequest, 5, 1), &[]),
        event(3, 5 * ms, 6 * ms, Unknown, (RejectFriendRequest, 5, 2), &[]),
        event(4, 7 * ms, 8 * ms, Ok, (ViewProfile, 5, 5), &[4, 2, 3]),
        event(5, 10 * ms, 11 * ms, Ok, (ViewFriendRequests, 5, 5), &[1, 2]),
        event(6, 10 * ms, 12 * ms, Ok, (ListFriends, 7, 5), &[3, 4, 6, 7]),
        event(7, 10 * ms, 13 * ms, Ok, (ViewTopKResources, 7, 5), &[10, 11]),
        event(8, 10 * ms, 14 * ms, Ok, (ViewProfile, 7, 9), &[4]),
        event(9, 15 * ms, 16 * ms, Ok, (ViewFriendRequests, 5, 5), &[]),
    ];
    let fixture = Fixture::new(&[(World::new(0, 20, 2), events)]);
    fixture.write_report(20 * ms as u64, [9, 0, 1, 0, 0]);
    fixture
}

fn honest() -> Fixture {
    let world = World::new(0, 40, 4);
    Fixture::new(&[(world.clone(), simulate(&mut world.clone(), 11, 300, 200))])
}

#[test]
fn help_shows_examples() {
    for command in [
        "",
        "summary",
        "validate",
        "isolation",
        "consistency",
        "sql",
        "report",
        "export",
        "compare",
        "summarize",
        "tasks",
        "fragment",
        "merge",
        "plan-cluster",
    ] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|a| !a.is_empty()).collect();
        let output = analyzer(&arguments);
        assert_eq!(output.status.code(), Some(0));
        insta::assert_snapshot!(format!("help_{command}"), String::from_utf8_lossy(&output.stdout));
    }
}

/// A plan is computed from the report that is given, and from the one that the program has otherwise.
#[test]
fn a_cluster_is_planned_from_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let cost = r#"{"task_s": 0.5, "operation_ns": 2000.0, "operation_bytes": 10.0}"#;
    let steps =
        ["generate fragments", "replay on memory:", "analyze fragments", "merge", "percentiles over all rows, SQL"];
    let costs: Vec<String> = steps.iter().map(|step| format!("{step:?}: {cost}")).collect();
    let machine = r#""machine": {"processor": "An Abacus"}"#;
    std::fs::write(&report, format!("{{{machine}, \"costs\": {{{}}}}}", costs.join(", "))).unwrap();
    let path = report.to_str().unwrap();
    let plan = |more: &[&str]| analyzer(&[&["plan-cluster", "--operations", "3600000000"], more].concat());
    let given = plan(&["--measured", path, "--cores", "2", "--within", "30m", "--json"]);
    let plans: serde_json::Value = serde_json::from_slice(&given.stdout).unwrap();
    // 7,200 s of two processors are two hosts for half an hour, and what the tasks cost makes a third.
    assert_eq!(plans[0]["fragments"], 4, "{plans}");
    assert_eq!(plans[0]["steps"][1]["hosts"], 3, "{plans}");
    assert_eq!(plans[0]["stored_bytes"], 108e9, "{plans}");
    assert_eq!(plans[0]["scratch_bytes"], 54e9, "{plans}");
    let text = plan(&["--measured", path, "--cores", "2", "--within", "30m"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("measured on An Abacus") && text.contains("holds 54.0 GB on its disk"), "{text}");
    let own = plan(&["--json"]);
    let plans: serde_json::Value = serde_json::from_slice(&own.stdout).unwrap();
    assert!(plans[0]["stored_bytes"].as_f64().unwrap() > 3.6e9, "{plans}");

    std::fs::write(&report, "{\"costs\": {}}").unwrap();
    let wrong = plan(&["--measured", path]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains(path) && said.contains("not a report of `benches/run cluster`"), "{said}");
}

#[test]
fn summary_of_an_honest_store() {
    insta::assert_snapshot!(run(&honest(), &["summary", "RUN"]));
}

#[test]
fn summary_of_a_liar() {
    insta::assert_snapshot!(run(&liar(), &["summary", "RUN"]));
}

#[test]
fn validate_shows_reads_and_witnesses() {
    insta::assert_snapshot!(run(&liar(), &["validate", "RUN", "--worst", "20"]));
    insta::assert_snapshot!(run(&honest(), &["validate", "RUN"]));
}

/// Unpredictable reads of the warm-up are reported separately from those that count.
#[test]
fn validate_leaves_out_the_warm_up() {
    let mut fixture = liar();
    fixture.fragments[0].warmup_sessions = 6;
    fixture.write_documents();
    fixture.write_warm_report(10_000_000, 6, 6_000_000, [4, 0, 0, 0, 0]);
    let text = run(&fixture, &["validate", "RUN"]);
    let expect = "4 reads checked, 3 unpredictable (75%)\n\
                  outside the measured part: 2 more unpredictable reads (not counted)\n";
    assert!(text.contains(expect) && !text.contains("by session 4 step"), "{text}");
    let text = run(&fixture, &["summary", "RUN"]);
    assert!(text.contains("warm-up          6 operations, not counted\n"), "{text}");
}

/// The store was not in the expected state: the experiment has a plan and a verdict, and no log.
#[test]
fn an_experiment_that_never_ran_is_shown_with_its_reason() {
    let fixture = honest();
    std::fs::remove_dir_all(fixture.log(0).parent().unwrap()).unwrap();
    std::fs::remove_file(fixture.run.experiment(1, common::THREADS).report()).unwrap();
    let reasons = vec!["the store is empty".to_string()];
    let verdict = analyzer::void_verdict(1, common::THREADS, "99% < 5ms".parse().unwrap(), reasons);
    analyzer::record_void(&fixture.run, &verdict).unwrap();
    for arguments in [&["summary", "RUN"][..], &["summary", "RUN", "--sla", "95% < 1ms"]] {
        let text = run(&fixture, arguments);
        assert!(text.contains("void: the store is empty\n") && text.ends_with("exit code 3\n"), "{text}");
    }
    let text = run(&fixture, &["validate", "RUN"]);
    assert!(text.contains(" 0 reads checked") && text.ends_with("exit code 0\n"), "{text}");
    let text = sql(&fixture, "SELECT ruling, reasons, measured_from_ns FROM experiments", "csv");
    assert_eq!(text, "ruling,reasons,measured_from_ns\nvoid,[the store is empty],\nexit code 0\n");
}

#[test]
fn another_sla_changes_the_ruling_and_not_the_run() {
    // With a stored verdict or without one.
    let fixture = honest();
    let text = run(&fixture, &["summary", "RUN", "--sla", "99% < 1us", "--json"]);
    assert!(text.ends_with("exit code 1\n"), "{text}");
    assert!(!tree(fixture.run.root()).iter().any(|(path, _)| path.ends_with("verdict.json")), "it was kept");
    let text = run(&fixture, &["summary", "RUN", "--json"]);
    assert!(text.ends_with("exit code 0\n"), "{text}");
    let before = tree(fixture.run.root());
    let text = run(&fixture, &["summary", "RUN", "--sla", "99% < 1us", "--json"]);
    assert!(text.ends_with("exit code 1\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&json["selected"], &json["verdicts"][0]["ruling"]), (&1.into(), &"fail".into()));
    assert_eq!(tree(fixture.run.root()), before);
}

#[test]
fn validate_as_json() {
    let text = run(&liar(), &["validate", "RUN", "--json"]);
    let json: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&json["reads"], json["worst"].as_array().unwrap().len()), (&6.into(), 5));
    assert_eq!(json["worst"][0]["item"], "pending_count");
}

#[test]
fn wrong_usage_and_input_have_exit_code_2() {
    let fixture = honest();
    for (arguments, expect) in [
        (&["summary", "/no/such/run"][..], "is this a run folder?"),
        (&["summary", "RUN", "--sla", "fast"], "write it like"),
        (&["summary", "RUN", "--experiment", "9"], "there is no experiment 9; it has 1"),
        (&["validate", "RUN", "--experiment", "9"], "there is no experiment 9; it has 1"),
        (&["sql", "RUN", "SELEC 1"], "error: SQL: "),
        (&["sql", "RUN", "SELECT 1", "--memory-limit", "much"], "--memory-limit much: "),
        (&["sql", "RUN", "SELECT 1", "--memory-limit", "4' '"], "--memory-limit 4' ': "),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        let text = run(&fixture, arguments);
        assert!(text.contains("error: ") && text.contains(expect) && text.ends_with("exit code 2\n"), "{text}");
    }
    // A garbage log: one line that names it.
    std::fs::write(fixture.log(0), "this is no log at all").unwrap();
    let fresh = fixture.run.sealed_operations(1, 0);
    std::fs::remove_file(fresh).unwrap();
    let text = run(&fixture, &["summary", "RUN"]);
    assert!(text.contains("fragment-0.arrows: byte 0") && text.ends_with("exit code 2\n"), "{text}");
}

/// A byte of a sealed table changes: every command that reads the run names the file.
#[test]
fn a_sealed_table_that_changed_is_named() {
    let fixture = honest();
    let counted = sql(&fixture, "SELECT count(*) AS n, sum(start_ns) AS s FROM operations", "csv");
    let table = fixture.run.sealed_operations(1, 0);
    let whole = std::fs::read(&table).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&table, &changed).unwrap();
    for arguments in [&["summary", "RUN"][..], &["sql", "RUN", "SELECT 1"], &["report", "RUN"], &["validate", "RUN"]] {
        let text = run(&fixture, arguments);
        let is_named = text.contains("part-0.parquet: its content changed") && text.contains("delete this file");
        assert!(is_named && text.ends_with("exit code 2\n"), "{arguments:?}: {text}");
    }
    std::fs::write(&table, &whole[1..]).unwrap();
    let text = run(&fixture, &["summary", "RUN"]);
    assert!(
        text.contains(&format!("it has {} bytes, and the analysis wrote {}", whole.len() - 1, whole.len())),
        "{text}"
    );
    std::fs::remove_file(&table).unwrap();
    let again = sql(&fixture, "SELECT count(*) AS n, sum(start_ns) AS s FROM operations", "csv");
    assert_eq!(again, counted, "the next analysis makes it again");
}

/// The sealed tables of a fixed log stay the same, byte for byte: teams share them. If this fails
/// because the format changed on purpose, raise `RUN_FORMAT_VERSION` and accept the new sums.
#[test]
fn sealed_tables_of_a_fixed_log_do_not_change() {
    let sums = |fixture: &Fixture| {
        let verdict = analyzer::analyze(&fixture.run, 1, None).unwrap();
        let sums = verdict.sealed.iter().flat_map(|sealed| [sealed.operations.clone(), sealed.unpredictable.clone()]);
        sums.map(|sum| format!("{} bytes, {}\n", sum.bytes, sum.blake3)).collect::<String>()
    };
    insta::assert_snapshot!(format!("honest\n{}liar\n{}", sums(&honest()), sums(&liar())));
}

/// A table is read for its checksum once, until its file changes.
#[test]
fn sealed_tables_are_verified_once() {
    let fixture = honest();
    run(&fixture, &["summary", "RUN"]);
    let path = fixture.run.verified();
    let text = std::fs::read_to_string(&path).unwrap();
    // Another checksum than the recorded one shows that the table is read: it is found wrong.
    let verdict = fixture.run.experiment(1, 4).verdict();
    let document = std::fs::read_to_string(&verdict).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&document).unwrap();
    let sum = json["sealed"][0]["operations"]["blake3"].as_str().unwrap().to_string();
    let other = "0".repeat(64);
    json["sealed"][0]["operations"]["blake3"] = other.as_str().into();
    std::fs::write(&verdict, json.to_string()).unwrap();
    let read = run(&fixture, &["summary", "RUN"]);
    assert!(read.contains("its content changed"), "{read}");
    // If the hidden file says that this checksum was seen, the table is not read.
    std::fs::write(&path, text.replace(&sum, &other)).unwrap();
    let unread = run(&fixture, &["summary", "RUN"]);
    assert!(unread.ends_with("exit code 0\n"), "{unread}");
}

/// Every file with its content.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn sql(fixture: &Fixture, statement: &str, format: &str) -> String {
    run(fixture, &["sql", "RUN", statement, "--format", format])
}

#[test]
fn sql_prints_tables_csv_and_json() {
    let fixture = liar();
    let statement =
        "SELECT session, operation, outcome, error, observed, unpredictable FROM operations ORDER BY session";
    insta::assert_snapshot!(sql(&fixture, statement, "table"));
    insta::assert_snapshot!(sql(&fixture, statement, "csv"));
    insta::assert_snapshot!(sql(&fixture, statement, "json"));
    let types = "SELECT 1.50::DECIMAL(5,2) AS d, sum(session) AS h, DATE '2026-01-02' AS y, {'a': [1, NULL]} AS s, \
                 'say \"a, b\"' AS t, INTERVAL 3 DAY AS i FROM operations";
    insta::assert_snapshot!(sql(&fixture, types, "table"));
    insta::assert_snapshot!(sql(&fixture, types, "csv"));
    insta::assert_snapshot!(sql(&fixture, types, "json"));
}

#[test]
fn sql_views_have_documented_columns() {
    let fixture = liar();
    let derived = ["sessions", "isolation_anomalies", "experiments", "timeline", "spectrum", "service_spectrum"];
    let of_items = ["item_updates", "item_reads", "freshness"];
    let of_registers = ["register_writes", "register_reads", "read_staleness", "register_staleness"];
    let of_items = of_items.into_iter().chain(of_registers);
    for view in ["operations", "unpredictable", "closing_reads"].into_iter().chain(derived).chain(of_items) {
        let statement = format!("SELECT column_name, column_type FROM (DESCRIBE {view})");
        insta::assert_snapshot!(format!("view_{view}"), sql(&fixture, &statement, "csv"));
    }
    insta::assert_snapshot!(sql(&fixture, "SELECT * EXCLUDE (trace) FROM experiments", "json"));
    insta::assert_snapshot!(sql(&fixture, "SELECT * FROM sessions WHERE any_unknown", "json"));
}

/// Another program can open a run with the statements that Encore prints.
#[test]
fn the_definitions_make_the_same_views_elsewhere() {
    for fixture in [liar(), honest()] {
        let printed = run(&fixture, &["sql", "RUN", "--definitions"]);
        let own_folder = format!("'{}/", fixture.run.root().display());
        let statements = printed.strip_suffix("exit code 0\n").unwrap().replace("'RUN/", &own_folder);
        let elsewhere = duckdb::Connection::open_in_memory().unwrap();
        elsewhere.execute_batch(&statements).unwrap();
        for view in
            ["operations", "unpredictable", "closing_reads", "sessions", "item_updates", "item_reads", "freshness"]
        {
            let statement = format!("SELECT count(*) AS n FROM {view}");
            let rows: u64 = elsewhere.query_row(&statement, [], |row| row.get(0)).unwrap();
            assert_eq!(sql(&fixture, &statement, "csv"), format!("n\n{rows}\nexit code 0\n"), "{view}");
        }
    }
}

#[test]
fn sql_keeps_to_its_memory_limit() {
    let fixture = honest();
    let limit = |size| {
        let setting = "SELECT current_setting('memory_limit') AS m";
        run(&fixture, &["sql", "RUN", setting, "--format", "csv", "--memory-limit", size])
    };
    assert_eq!(limit("3GiB"), "m\n3.0 GiB\nexit code 0\n");
    let statement = "SELECT count(DISTINCT hash(range)) AS n FROM range(20000000)";
    for (statement, limit) in [(statement, "8MiB"), ("SELECT 1", "1KiB")] {
        let text = run(&fixture, &["sql", "RUN", statement, "--memory-limit", limit]);
        let expect = format!("error: --memory-limit {limit}: too small for this query; use more\nexit code 2\n");
        assert!(text.ends_with(&expect), "{text}");
    }
}

/// An experiment without a violation, and a run without an experiment, have the same columns.
#[test]
fn empty_tables_have_the_same_columns() {
    let describe = "SELECT column_name, column_type FROM (DESCRIBE operations) \
                    UNION ALL SELECT column_name, column_type FROM (DESCRIBE unpredictable)";
    let full = sql(&liar(), describe, "csv");
    let fixture = honest();
    assert_eq!(sql(&fixture, describe, "csv"), full);
    assert_eq!(sql(&fixture, "SELECT count(*) AS n FROM unpredictable", "csv"), "n\n0\nexit code 0\n");
    std::fs::remove_dir_all(fixture.run.root().join("experiments")).unwrap();
    // Of a run that was complete they are missing: its folder was not copied whole.
    let missing = sql(&fixture, describe, "csv");
    assert!(missing.contains("experiments: missing") && missing.ends_with("exit code 2\n"), "{missing}");
    let document = RunDocument { state: RunState::Interrupted, ..fixture.run.read_document().unwrap() };
    schemas::files::write_json(&fixture.run.document(), &document).unwrap();
    assert_eq!(sql(&fixture, describe, "csv"), full);
    assert_eq!(sql(&fixture, "SELECT count(*) AS n FROM experiments", "csv"), "n\n0\nexit code 0\n");
}

#[test]
fn sql_that_does_more_than_read_is_refused() {
    let fixture = honest();
    sql(&fixture, "SELECT 1", "csv");
    let inside = fixture.run.root().join("operations/stolen.csv").display().to_string();
    let before = tree(fixture.folder.path());
    for statement in [
        format!("COPY (SELECT 1) TO '{inside}'"),
        format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{inside}'"),
        format!("SELECT 1; COPY (SELECT 1) TO '{inside}'"),
        format!("ATTACH '{inside}' AS other"),
        format!("EXPORT DATABASE '{inside}'"),
        "CREATE TABLE t (a INT)".into(),
        "INSERT INTO experiments (experiment) VALUES (9)".into(),
        "UPDATE experiments SET threads = 9".into(),
        "DELETE FROM experiments".into(),
        "DROP VIEW operations".into(),
        "SET enable_external_access = true".into(),
        "PRAGMA enable_profiling".into(),
        "INSTALL httpfs".into(),
        "LOAD httpfs".into(),
        "CALL enable_logging()".into(),
        format!("SELECT * FROM enable_logging('QueryLog', storage := 'file', storage_path := '{inside}')"),
        format!("SELECT * FROM query('COPY (SELECT 1) TO ''{inside}''')"),
        "SELECT * FROM read_text('/etc/passwd')".into(),
        "SELECT * FROM '/etc/passwd'".into(),
        "SELECT * FROM glob('/etc/*')".into(),
        "SELECT (SELECT count(*) FROM checkpoint())".into(),
        "".into(),
        "SELECT 1; SELECT 2".into(),
    ] {
        let text = sql(&fixture, &statement, "csv");
        assert!(text.starts_with("error: ") && text.ends_with("exit code 2\n"), "{statement}: {text}");
    }
    assert_eq!(tree(fixture.folder.path()), before);
}

#[test]
fn sql_that_reads_is_run() {
    let fixture = honest();
    for statement in [
        "WITH o AS (SELECT * FROM operations) SELECT count(*) FROM o;",
        "DESCRIBE operations",
        "SUMMARIZE experiments",
        "SHOW TABLES",
        "FROM experiments",
        " explain  select 1",
        "EXPLAIN ANALYZE SELECT count(*) FROM operations",
        "VALUES (1)",
        "SELECT unnest(observed) FROM operations, range(3) LIMIT 1",
        "-- a comment\nSELECT 1 /* and ; more */",
    ] {
        let text = sql(&fixture, statement, "table");
        assert!(text.ends_with("exit code 0\n"), "{statement}: {text}");
    }
}
