//! Snippets of logs of MySQL 8 and MariaDB 10.11.

use std::path::PathBuf;

use super::super::{End, Imported, Value, Window};
use super::import;

fn read(text: &str, databases: &[&str]) -> Result<Imported, String> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("general.log");
    std::fs::write(&path, text).unwrap();
    let databases: Vec<String> = databases.iter().map(|name| name.to_string()).collect();
    import(&[path], &databases, Window::default(), folder.path()).map_err(|e| e.to_string())
}

const MYSQL: &str = "\
/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
2026-11-24T06:33:30.000100Z\t    8 Connect\tapp@localhost on shop using Socket
2026-11-24T06:33:30.000200Z\t    8 Query\tBEGIN
2026-11-24T06:33:30.001200Z\t    8 Query\tUPDATE t SET a = a + 1
  WHERE b = 'it\\'s'
2026-11-24T06:33:30.001700Z\t    8 Execute\tSELECT a FROM t WHERE b = 7
2026-11-24T06:33:30.002200Z\t    8 Query\tCOMMIT
2026-11-24T06:33:30.003200Z\t    9 Query\tSELECT 1
2026-11-24T06:33:30.004200Z\t    8 Quit\t
";

#[test]
fn a_log_of_mysql_becomes_transactions() {
    let mut imported = read(MYSQL, &[]).unwrap();
    let texts: Vec<&str> = imported.statements.iter().map(|statement| statement.text.as_str()).collect();
    assert_eq!(texts, ["UPDATE t SET a = a + ? WHERE b = ?", "SELECT a FROM t WHERE b = ?", "SELECT ?"]);
    let first = imported.transactions.next_transaction().unwrap().unwrap();
    assert_eq!((first.end, first.steps.len(), first.end_us - first.begin_us), (End::Commit, 2, 2_000));
    assert_eq!(first.parameters(0).collect::<Vec<_>>(), [Value::Integer(1), Value::Unknown("it's")]);
    assert_eq!(first.steps[0].start_us - first.begin_us, 1_000);
    let second = imported.transactions.next_transaction().unwrap().unwrap();
    assert_eq!((second.end, second.steps.len()), (End::Autocommit, 1));
    assert!(imported.transactions.next_transaction().unwrap().is_none());
}

#[test]
fn a_log_that_is_given_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["general.log", "copy.log"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| std::fs::write(path, MYSQL).unwrap());
    for twice in [[0, 0], [0, 1]] {
        let files = twice.map(|number| paths[number].clone());
        let error = import(&files, &[], Window::default(), folder.path()).err().unwrap().to_string();
        assert!(error.contains("general.log") && error.contains("give each log once"), "{error}");
    }
}

#[test]
fn the_database_of_a_connection_is_followed() {
    assert_eq!(read(MYSQL, &["shop"]).unwrap().report.statements, 2);
    assert!(read(MYSQL, &["other"]).is_err_and(|e| e.contains("no statement that can be taken")));
}

#[test]
fn a_log_of_mariadb_leaves_times_out() {
    let log = "\
261124  6:33:30\t     5 Connect\tapp@localhost on  using TCP/IP
\t\t     5 Query\tset autocommit=0
\t\t     5 Query\tinsert into t values (1)
261124  6:33:31\t     5 Query\tcommit
\t\t     5 Query\tselect a from t
";
    let mut imported = read(log, &[]).unwrap();
    let first = imported.transactions.next_transaction().unwrap().unwrap();
    assert_eq!((first.end, first.steps.len(), first.end_us - first.begin_us), (End::Commit, 1, 1_000_000));
    // Without autocommit the last statement is in a transaction that has no end.
    assert_eq!(imported.transactions.next_transaction().unwrap().unwrap().end, End::Abort);
    assert!(imported.report.notes.iter().any(|note| note.contains("whole seconds")));
}

#[test]
fn another_file_is_refused_with_its_name() {
    let error = read("2026-11-24 06:33:30 UTC [7] LOG:  statement: SELECT 1\n", &[]).err().unwrap();
    assert!(error.contains("general.log:1: is no general log"), "{error}");
}

/// The transactions of a log: how each ended, and its statements.
fn transactions(log: &str) -> Vec<(End, Vec<String>)> {
    let mut imported = read(log, &[]).unwrap();
    let texts: Vec<String> = imported.statements.iter().map(|statement| statement.text.clone()).collect();
    let mut all = Vec::new();
    while let Some(transaction) = imported.transactions.next_transaction().unwrap() {
        let steps = transaction.steps.iter().map(|step| texts[step.statement as usize].clone());
        all.push((transaction.end, steps.collect()));
    }
    all
}

fn log(statements: &[&str]) -> String {
    let line =
        |(number, text): (usize, &&str)| format!("2026-11-24T06:33:{:02}.000000Z\t    8 Query\t{text}\n", number + 1);
    let lines: String = statements.iter().enumerate().map(line).collect();
    format!(
        "2026-11-24T06:33:00.000000Z\t    8 Connect\ta@h on shop using Socket\n{lines}2026-11-24T06:34:00.000000Z\t    8 Quit\t\n"
    )
}

#[test]
fn what_mysql_commits_by_itself_is_a_transaction_of_its_own() {
    let check = |statements: &[&str], expect: &[(End, &[&str])]| {
        let expect: Vec<(End, Vec<String>)> =
            expect.iter().map(|(end, texts)| (*end, texts.iter().map(|text| text.to_string()).collect())).collect();
        assert_eq!(transactions(&log(statements)), expect, "{statements:?}");
    };
    let insert = "INSERT INTO t VALUES (?)";
    // As a pool of connections does it: autocommit off for a while.
    check(
        &[
            "SET autocommit=0",
            "INSERT INTO t VALUES (1)",
            "COMMIT",
            "SET autocommit=1",
            "INSERT INTO t VALUES (2)",
            "INSERT INTO t VALUES (3)",
        ],
        &[(End::Commit, &[insert]), (End::Autocommit, &[insert]), (End::Autocommit, &[insert])],
    );
    // Turned on with statements under way, MySQL commits them.
    check(
        &["SET autocommit=0", "INSERT INTO t VALUES (1)", "SET autocommit=1", "DELETE FROM t"],
        &[(End::Commit, &[insert]), (End::Autocommit, &["DELETE FROM t"])],
    );
    check(
        &["BEGIN", "INSERT INTO t VALUES (1)", "START TRANSACTION", "DELETE FROM t", "ROLLBACK"],
        &[(End::Commit, &[insert]), (End::Abort, &["DELETE FROM t"])],
    );
}

#[test]
fn two_minus_signs_are_a_comment_only_before_a_blank() {
    let texts = transactions(&log(&["UPDATE t SET a = a--5 WHERE b = 7", "DELETE FROM t -- 5"]));
    assert_eq!(texts[0].1, ["UPDATE t SET a = a-? WHERE b = ?"]);
    assert_eq!(texts[1].1, ["DELETE FROM t"]);
}

#[test]
fn logs_that_overlap_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.log", "b.log"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], log(&["DELETE FROM t"])).unwrap();
    std::fs::write(&paths[1], log(&["DELETE FROM t"]).replace("06:33:00", "06:33:30").replace("33:01", "33:31"))
        .unwrap();
    let error = import(&paths, &[], Window::default(), folder.path()).err().unwrap().to_string();
    assert!(error.contains("b.log: begins 30 s before the end of") && error.contains("each server"), "{error}");
}
