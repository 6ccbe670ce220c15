//! Imports of small files, right and wrong.

use schemas::vocabulary::sql::{Parameter, Sql, Value, decode, read_statements};
use schemas::workload::sql::{SqlStatistics, SqlWorkload, dataset};

use super::*;

const SCHEMA: &str = "0:CREATE TABLE `NEW-ORDER` (NO_ID MEDIUMINT UNSIGNED, NAME VARCHAR(9), YTD DECIMAL(12, 2), \
                      AT DATETIME, PRIMARY KEY(NO_ID));\n";
const OPERATIONS: &str = "0:INSERT into `NEW-ORDER` (NO_ID, NAME, YTD, AT) VALUES (?, ?, ?, ?);\n\
                          1:SELECT NAME FROM `NEW-ORDER` WHERE NO_ID=?;\n";
const PARAMETERS: &str = "0:1; 'a;b'; .50; 2016-5-16\n1:2; 'it''s'; 7; NULL\n2:1\n";
const LOAD: &str = "BOP;0;0\nBOT;0\n0;0\nEOT\nEOP\n\nBOP;0;1\nBOT;0\n0;1\nEOT\nEOP\n";
const RUN: &str =
    "# a comment\nBOP;0;4\nBOT;0\n1;2\n1;2;0\nEOT\nBOT;20\n1;2;-1\nEOT\nEOP\n\nBOP;500;5\nBOT;7\n1;2\nEOT\nEOP\n";

/// Imports the sample with one file replaced.
fn imported(file: &str, content: &str, options: &ImportOptions) -> (tempfile::TempDir, Result<Manifest, ImportError>) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let files = [
        ("schema", SCHEMA),
        ("operation", OPERATIONS),
        ("param", PARAMETERS),
        ("cparam", "0:QUORUM; 10.0.0.1\n"),
        ("load", LOAD),
        ("warm", ""),
        ("run", RUN),
    ];
    for (name, usual) in files {
        let content = if name == file { content } else { usual };
        std::fs::write(source.join(format!("t_{name}")), content).unwrap();
    }
    let done = import(&source, &folder.path().join("t.trace"), options);
    (folder, done)
}

fn options() -> ImportOptions {
    ImportOptions { name: "t".into(), fragments: 1, open_loop: None, log_results: false }
}

#[test]
fn statements_parameters_and_times_are_those_of_the_files() {
    let (folder, done) = imported("", "", &options());
    let manifest = done.unwrap();
    let place = folder.path().join("t.trace");
    assert_eq!(Manifest::read(&place).unwrap(), manifest);
    manifest.verify(&place).unwrap();
    let statements = read_statements(&place).unwrap();
    let signatures: Vec<String> = statements.iter().map(|one| one.signature()).collect();
    assert_eq!(signatures, ["update(integer,text,decimal,date)", "query(integer)"]);
    let statistics: SqlStatistics = manifest.statistics_of::<SqlWorkload>().unwrap();
    assert_eq!((statistics.loaded_rows, statistics.uses, statistics.length_us), (Some(2), vec![0, 4], 507_000));
    let preload: Vec<(u32, Vec<u8>)> = dataset::preload(&place, 2).unwrap().flat_map(|rows| rows.unwrap()).collect();
    let second: Vec<Parameter> = decode(&preload[1].1).collect::<Result<_, _>>().unwrap();
    let values = [Value::Integer(2), Value::Text("it's"), Value::Decimal("7"), Value::Null];
    assert_eq!(second, values.map(Parameter::Value));
    let mut reader = manifest.reader::<Sql>(&place, 0, 100).unwrap();
    let mut rows = Vec::new();
    reader.next_rows(&mut rows).unwrap();
    let steps: Vec<_> = rows
        .iter()
        .map(|row| (row.session, row.step, row.operation.verb.name(), row.txn, row.think_us, row.due_us))
        .collect();
    assert_eq!(
        steps,
        [
            (0, 0, "begin", Some(0), 0, Some(0)),
            (0, 1, "query", Some(0), 0, None),
            (0, 2, "query", Some(0), 0, None),
            (0, 3, "commit", Some(0), 0, None),
            (0, 4, "begin", Some(4), 20_000, None),
            (0, 5, "query", Some(4), 0, None),
            (0, 6, "commit", Some(4), 0, None),
            (1, 0, "begin", Some(0), 0, Some(507_000)),
            (1, 1, "query", Some(0), 0, None),
            (1, 2, "commit", Some(0), 0, None),
        ]
    );
    assert!(!reader.next_rows(&mut rows).unwrap());
}

#[test]
fn the_same_files_give_the_same_trace_set_and_may_replace_it() {
    let (folder, done) = imported("", "", &options());
    let (_other, again) = imported("", "", &options());
    assert_eq!(done.unwrap(), again.unwrap());
    let place = folder.path().join("t.trace");
    import(&folder.path().join("source"), &place, &options()).unwrap();
    // Another workload does not replace it.
    let two = ImportOptions { fragments: 2, ..options() };
    let refused = import(&folder.path().join("source"), &place, &two).unwrap_err().to_string();
    assert!(refused.contains("already exists and is a trace set of another workload"), "{refused}");
}

#[test]
fn a_closed_loop_and_fragments_are_as_asked_for() {
    let two = ImportOptions { fragments: 2, open_loop: Some(false), ..options() };
    let (_folder, done) = imported("", "", &two);
    let manifest = done.unwrap();
    assert_eq!(manifest.spec.arrivals, None);
    let sessions: Vec<u64> = manifest.fragments.iter().map(|fragment| fragment.sessions).collect();
    assert_eq!((sessions, manifest.active_threads_max), (vec![1, 1], 2));
}

#[test]
fn the_warm_up_comes_first_and_moves_the_times() {
    let (folder, done) = imported("warm", "BOP;300;9\nBOT;0\n1;2\nEOT\nEOP\n", &options());
    let manifest = done.unwrap();
    let workload: SqlWorkload = manifest.spec.workload().unwrap();
    assert_eq!(workload.data.warmup_sessions, 1);
    let mut reader = manifest.reader::<Sql>(&folder.path().join("t.trace"), 0, 100).unwrap();
    let mut rows = Vec::new();
    reader.next_rows(&mut rows).unwrap();
    let due: Vec<u64> = rows.iter().filter_map(|row| row.due_us).collect();
    assert_eq!(due, [300_000, 1_300_000, 1_807_000]);
    let kinds = |row: usize| &reader.kinds()[rows[row].kind as usize];
    assert_eq!((kinds(0).as_str(), kinds(3).as_str()), ("warmup", "process"));
}

#[test]
fn wrong_files_are_refused_with_file_and_line() {
    let check = |file: &str, content: &str, expect: &[&str]| {
        let (folder, done) = imported(file, content, &options());
        let error = done.expect_err(content).to_string();
        assert!(expect.iter().all(|part| error.contains(part)), "{content}: {error}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["source"], "{content}");
    };
    let run = |operations: &str| format!("BOP;0;0\nBOT;0\n{operations}\nEOT\nEOP\n");
    check("run", &run("7;2"), &["t_run:3", "statement 7 is not in", "t_operation"]);
    check(
        "run",
        &run("1;0"),
        &["t_run:3", "statement 1 has 1 parameters, and the set has 4 (line 1 of the parameters)"],
    );
    check("run", &run("1"), &["t_run:3", "has 1 parameters, and the set has 0"]);
    check("run", &run("1;9"), &["t_run:3", "set 9 of parameters does not exist"]);
    check("run", &run("1;2;3"), &["t_run:3", "set 3 of custom parameters does not exist"]);
    check("run", &run("1;x"), &["t_run:3", "is no operation"]);
    check("run", &format!("{}BOP;0;1\nBOT;0\n1;2\n", run("1;2")), &["t_run:7", "no EOT ends"]);
    check("run", "BOP;0;0\nBOT;0\n1;2\nEOP\n", &["t_run:2", "still open at the EOP of line 4"]);
    check("run", "BOP;0;0\nBOT;0\nBOT;0\n1;2\nEOT\nEOP\n", &["t_run:3", "inside of the one of line 2"]);
    check("run", "BOP;0;0\n1;2\nEOP\n", &["t_run:2", "outside of a transaction"]);
    check("run", "BOP;0;0\nBOT;0\nEOT\nEOP\n", &["t_run:2", "without an operation"]);
    check("run", "BOP;x;0\n", &["t_run:1", "\"x\" is not a number"]);
    check("run", "", &["t_run:1", "has no process"]);
    check(
        "run",
        &format!("BOP;9;0\n{}BOP;8;0\n", &run("1;2")[8..]),
        &["t_run:6", "starts at 8 ms, before the process in front of it (9 ms); sort"],
    );
    check("param", "0:1; JANUBB\n1:2\n2:1\n", &["t_param:1", "JANUBB is no value"]);
    check("param", "0:1; 'open; 7\n", &["t_param:1", "has no end"]);
    check("param", "7\n", &["t_param:1", "does not begin with a number and a colon"]);
    check(
        "param",
        "0:1; 'a'; 1; NULL\n1:'2'; 'b'; 1; NULL\n2:1\n",
        &[
            "t_load:9",
            "parameter 1 of statement 0 is of type text (line 2 of the parameters), and of type integer in line 1",
        ],
    );
    check("operation", "0:SELEKT ?\n", &["t_operation:1", "statement 0 is not SQL that Encore knows"]);
    check("operation", "0:CREATE TABLE a (b INT)\n", &["t_operation:1", "changes the schema"]);
    check("operation", "0:COMMIT\n", &["t_operation:1", "begins or ends a transaction"]);
    check("operation", "0:SELECT 1\n0:SELECT 2\n", &["t_operation:2", "statement 0 is already in line 1"]);
    check("schema", "0:DROP TABLE a\n", &["t_schema:1", "is no definition"]);
    check("schema", "0:CREATE TABLE\n", &["t_schema:1", "is not SQL that Encore knows"]);
}

#[test]
fn a_folder_without_the_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || import(folder.path(), &folder.path().join("t.trace"), &options()).unwrap_err().to_string();
    assert!(refused().contains("has no file NAME_operation"), "{}", refused());
    std::fs::write(folder.path().join("a_operation"), OPERATIONS).unwrap();
    assert!(refused().contains("has no file a_schema"), "{}", refused());
    std::fs::write(folder.path().join("b_operation"), OPERATIONS).unwrap();
    assert!(refused().contains("has files of a and of b"), "{}", refused());
}
