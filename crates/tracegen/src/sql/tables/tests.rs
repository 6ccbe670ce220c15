//! Imports of small tables, right and wrong.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use schemas::vocabulary::sql::{Sql, read_statements};
use schemas::workload::sql::dataset;
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::*;

const SCHEMA: &str = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(9), price DECIMAL(6, 2))";
const STATEMENTS: &str = "statement,text,parameters\n\
    1,\"INSERT INTO item (id, name, price) VALUES (?, ?, ?);\",\n\
    get,SELECT name FROM item WHERE id = ?,integer\n\
    all,SELECT id FROM item ORDER BY id,\n";
const PRELOAD: &str = "statement,parameters\n1,\"[1, \"\"a\"\", 5]\"\n1,\"[2, null, 0.50]\"\n";
const CHECKS: &str = "[[check]]\nname = \"names\"\ntitle = \"Every item has a price\"\n\
    query = \"SELECT id FROM item WHERE price IS NULL\"\n";
const OPERATIONS: &str = "process,client,kind,due_us,think_us,statement,parameters\n\
    a,3,look,0,,get,[1]\n\
    b,0,add,10,,begin,\n\
    b,,,,5,all,\n\
    b,0,add,10,,1,\"[3, \"\"c\"\", 1.25]\"\n\
    b,,,,,get,\"[{\"\"step\"\": 1, \"\"column\"\": 0, \"\"row\"\": \"\"last\"\"}]\"\n\
    b,,,,,COMMIT,\n";

/// Imports the sample with one file replaced; without the file if it has no content.
fn imported(file: &str, content: &str) -> (tempfile::TempDir, Result<Manifest, ImportError>) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let files = [
        ("schema.sql", SCHEMA),
        ("statements.csv", STATEMENTS),
        ("preload.csv", PRELOAD),
        ("operations.csv", OPERATIONS),
        ("checks.toml", CHECKS),
    ];
    for (name, usual) in files {
        let content = if name == file { content } else { usual };
        if !content.is_empty() {
            std::fs::write(source.join(name), content).unwrap();
        }
    }
    let done = import(&source, &folder.path().join("t.trace"), &options());
    (folder, done)
}

fn options() -> ImportOptions {
    ImportOptions { name: "t".into(), dialect: Dialect::Logical, fragments: 1, closed_loop: false, log_results: false }
}

#[test]
fn the_warm_up_comes_first_and_conditions_come_along() {
    let operations =
        "process,statement,parameters,warmup\na,get,[1],true\nb,get,[1],1\nb,all,,\nc,get,[1],\nd,get,[2],false\n";
    let (_folder, done) = imported("operations.csv", operations);
    let data = done.unwrap().spec.workload::<SqlWorkload>().unwrap().data;
    assert_eq!((data.warmup_sessions, data.checks), (2, 1));
    let wrong = |file: &str, text: &str, words: &[&str]| {
        let (folder, done) = imported(file, text);
        let error = done.unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        assert!(!folder.path().join("t.trace").exists());
    };
    let late = operations.replace("[2],false", "[2],true");
    wrong("operations.csv", &late, &["operations.csv:6", "put the warm-up first"]);
    let other = operations.replace("b,all,,", "b,all,,0");
    wrong("operations.csv", &other, &["operations.csv:4", "another warmup"]);
    let unknown = operations.replace("[1],1", "[1],yes");
    wrong("operations.csv", &unknown, &["operations.csv:3", "warmup is \"yes\"", "write true"]);
    wrong("checks.toml", &CHECKS.replace("SELECT", "DELETE"), &["checks.toml", "names"]);
    wrong("checks.toml", &CHECKS.replace("query", "qeury"), &["checks.toml", "qeury"]);
}

#[test]
fn statements_processes_and_times_are_those_of_the_tables() {
    let (folder, done) = imported("", "");
    let manifest = done.unwrap();
    let place = folder.path().join("t.trace");
    manifest.verify(&place).unwrap();
    let signatures: Vec<String> = read_statements(&place).unwrap().iter().map(|one| one.signature()).collect();
    // Types that no one has declared are the widest of the values.
    assert_eq!(signatures, ["update(integer,text,decimal)", "query(integer)", "query()"]);
    let statistics: SqlStatistics = manifest.statistics_of::<SqlWorkload>().unwrap();
    assert_eq!((statistics.loaded_rows, statistics.uses, statistics.length_us), (Some(2), vec![1, 2, 1], 10));
    assert_eq!(dataset::preload(&place, 3).unwrap().map(|rows| rows.unwrap().len()).sum::<usize>(), 2);
    assert_eq!((manifest.sessions(), manifest.operations()), (2, 6));
    assert_eq!(manifest.spec.mix.keys().collect::<Vec<_>>(), ["add", "look"]);
    let workload: SqlWorkload = manifest.spec.workload().unwrap();
    assert_eq!((workload.data.source.as_str(), workload.data.clients), ("table", 4));
    let mut reader = manifest.reader::<Sql>(&place, 0, 100).unwrap();
    let mut rows = Vec::new();
    reader.next_rows(&mut rows).unwrap();
    let steps: Vec<_> = rows
        .iter()
        .map(|row| (row.session, row.operation.verb.name(), row.think_us, row.due_us, row.operation.is_kept))
        .collect();
    let expect = [
        (0, "query", 0, Some(0), false),
        (1, "begin", 0, Some(10), false),
        (1, "query", 5, None, true),
        (1, "update", 0, None, false),
        (1, "query", 0, None, false),
        (1, "commit", 0, None, false),
    ];
    assert_eq!(steps, expect);
}

#[test]
fn without_its_times_a_trace_is_a_closed_loop() {
    let (folder, _) = imported("", "");
    let source = folder.path().join("source");
    let place = folder.path().join("closed.trace");
    let manifest = import(&source, &place, &ImportOptions { closed_loop: true, ..options() }).unwrap();
    assert!(manifest.spec.arrivals.is_none());
}

fn refused(file: &str, content: &str, expect: &str) {
    let (folder, done) = imported(file, content);
    let error = done.map(drop).unwrap_err().to_string();
    let error = error.replace(&folder.path().join("source").display().to_string(), "");
    assert!(error.contains(expect), "{error}\nis not\n{expect}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was written: {error}");
}

#[test]
fn what_is_wrong_is_refused_by_file_and_row_and_leaves_nothing() {
    let op = |from: &str, to: &str, expect: &str| {
        assert!(OPERATIONS.contains(from), "{from}");
        refused("operations.csv", &OPERATIONS.replacen(from, to, 1), expect);
    };
    op("get,[1]", "got,[1]", "/operations.csv:2: statement got is not in the list of statements");
    op("get,[1]", "get,", "/operations.csv:2: statement get has 1 parameters, and the row has 0");
    op("get,[1]", "get,1", "/operations.csv:2: parameters are no JSON array");
    op(
        "get,[1]",
        "get,[1.5]",
        "/operations.csv:2: parameter 1 of statement get is 1.5, and its type is integer; write a",
    );
    op(
        "\"\"c\"\"",
        "4",
        "/operations.csv:5: parameter 2 of statement 1 is 4, of type integer, and was of type text before",
    );
    op("b,0,add,10,,begin", "b,0,add,-1,,begin", "/operations.csv:3: due_us is \"-1\"; write a whole number from 0");
    op("a,3,look,0", "a,3,look,11", "/operations.csv:3: starts at 10 us, before the process in front of it (11 us)");
    op("a,3,look,0", "a,3,look,", "/operations.csv:3: has a due_us, and the process in front of it has none");
    op("b,0,add,10,,1,", "b,0,add,11,,1,", "/operations.csv:5: has another due_us than the first row of process b");
    op("b,0,add,10,,1,", "b,1,add,10,,1,", "/operations.csv:5: has another client than");
    op("b,0,add,10,,1,", "b,0,put,10,,1,", "/operations.csv:5: has another kind than");
    op("b,,,,,COMMIT,\n", "", "/operations.csv:3: process b leaves its transaction open");
    op("b,,,,,COMMIT,\n", "b,,,,,begin,\n", "/operations.csv:7: begins a transaction inside of another one");
    op("b,0,add,10,,begin,\n", "b,0,add,10,,abort,\n", "/operations.csv:3: ends a transaction, and none has begun");
    op("COMMIT,", "COMMIT,[1]", "/operations.csv:7: begin, commit and abort have no parameters");
    op("\"\"step\"\": 1", "\"\"step\"\": 2", "parameter 1 is the result of step 2, which is no earlier statement");
    op("b,,,,,COMMIT,\n", "b,,,,,COMMIT,\na,,,10,,all,\n", "/operations.csv:8: the process began in an earlier row");
    op("b,,,,,COMMIT,\n", "b,,,,,COMMIT\n", "/operations.csv:7: has 6 fields, and the first line has 7");
    op("think_us", "think_ms", "column \"think_ms\" is none of process, statement");
    op("process,", "kind,", "/operations.csv: has two columns \"kind\"");
    op("b,,,,5,", "b,,,,3000000000,", "think_us is \"3000000000\"; write a whole number from 0 to 2147483647");
    let numbers = "process,statement\n1,all\n3,all\n2,all\n";
    refused("operations.csv", numbers, "/operations.csv:4: process 2 follows process 3; sort the rows");
    refused("operations.csv", "process,statement\n", "/operations.csv: has no operation");
    refused("operations.csv", "", "has neither operations.csv nor operations.parquet");

    let list = |text: &str, expect: &str| {
        refused("statements.csv", &format!("statement,text,parameters\nq,{text}\n"), expect);
    };
    list("SELECT FROM WHERE,", "/statements.csv:2: statement q is not SQL that Encore knows");
    list("DROP TABLE item,", "/statements.csv:2: statement q changes the schema; a definition (DDL)");
    list("SELECT ?,\"integer,text\"", "/statements.csv:2: statement q declares 2 parameters, and its text has 1");
    list("SELECT ?,number", "/statements.csv:2: statement q: \"number\" is no type of a parameter");
    let two = "statement,text\nq,SELECT 1\nq,SELECT 2\n";
    refused("statements.csv", two, "/statements.csv:3: statement q is there twice");
    refused("statements.csv", "statement,text\ncommit,SELECT 1\n", "a statement cannot be called commit");
    refused(
        "preload.csv",
        "statement,parameters\n1,\"[1, \"\"a\"\"]\"\n",
        "/preload.csv:2: statement 1 has 3 parameters",
    );
    let result = "statement,parameters\nget,\"[{\"\"step\"\": 0, \"\"column\"\": 0}]\"\n";
    refused("preload.csv", result, "/preload.csv:2: has a parameter that is a result");
    refused("schema.sql", "SELECT 1", "/schema.sql: statement 1: SELECT 1 is no definition");
}

/// A Parquet file is read like the CSV file with the same content, whatever integers and texts it has.
#[test]
fn parquet_files_have_the_columns_in_any_type() {
    let (folder, _) = imported("", "");
    let source = folder.path().join("source");
    std::fs::remove_file(source.join("operations.csv")).unwrap();
    let write = |statement: &str| {
        let columns: [(&str, ArrayRef); 4] = [
            ("statement", Arc::new(LargeStringArray::from(vec!["get", "all", statement]))),
            ("process", Arc::new(Int64Array::from(vec![1, 1, 2]))),
            // Pandas has floating point numbers where values are missing.
            ("due_us", Arc::new(Float64Array::from(vec![Some(5.0), None, Some(7.0)]))),
            ("parameters", Arc::new(StringArray::from(vec![Some("[1]"), None, Some("[2]")]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
        let file = File::create(source.join("operations.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    write("get");
    let manifest = import(&source, &folder.path().join("t2.trace"), &options()).unwrap();
    assert_eq!((manifest.sessions(), manifest.operations()), (2, 3));
    assert_eq!(manifest.statistics_of::<SqlWorkload>().unwrap().length_us, 7);
    write("got");
    let error = import(&source, &folder.path().join("t3.trace"), &options()).map(drop).unwrap_err().to_string();
    assert!(error.contains("operations.parquet: row 2: statement got is not in the list"), "{error}");
    std::fs::write(source.join("operations.csv"), OPERATIONS).unwrap();
    let error = import(&source, &folder.path().join("t3.trace"), &options()).map(drop).unwrap_err().to_string();
    assert!(error.contains("has operations.csv and operations.parquet; remove one"), "{error}");
}
