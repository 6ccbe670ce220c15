//! Logs of each format, as the versions of PostgreSQL write them, and damaged ones.

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::{End, Imported, Limit, Transaction, Value, Window};
use super::prefix::Prefix;
use super::{Format, Options, import, reader};
use crate::sql::import::lines::Lines;
use crate::sql::import::tally::Tally;

/// A folder with files of these contents.
fn files(contents: &[&[u8]]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = (0..contents.len()).map(|number| folder.path().join(format!("{number}.log"))).collect::<Vec<_>>();
    for (path, content) in paths.iter().zip(contents) {
        std::fs::write(path, content).unwrap();
    }
    (folder, paths)
}

fn read_with(text: &str, options: &Options) -> Result<Imported, String> {
    let (folder, paths) = files(&[text.as_bytes()]);
    let error = |e: super::ImportError| e.to_string().replace(&folder.path().display().to_string(), "");
    import(&paths, options, folder.path()).map_err(error)
}

fn read(text: &str) -> Imported {
    read_with(text, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str, options: &Options, expect: &[&str]) {
    let error = read_with(text, options).err().unwrap_or_else(|| panic!("{text} was taken"));
    for part in expect {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

fn all(imported: &mut Imported) -> Vec<Transaction> {
    std::iter::from_fn(|| imported.transactions.next_transaction().unwrap()).collect()
}

fn count(imported: &Imported, reason: &str) -> u64 {
    imported.report.not_taken.iter().find(|refused| refused.reason.contains(reason)).map_or(0, |one| one.count)
}

fn texts(imported: &Imported) -> Vec<&str> {
    imported.statements.iter().map(|statement| statement.text.as_str()).collect()
}

/// Debian's prefix and `log_statement = all` with `log_duration`.
const STDERR: &str = "\
2026-11-24 06:33:30.100 UTC [7] LOG:  checkpoint starting: time
2026-11-24 06:33:30.123 UTC [77] app@shop LOG:  statement: BEGIN
2026-11-24 06:33:30.124 UTC [77] app@shop LOG:  duration: 0.050 ms
2026-11-24 06:33:30.125 UTC [77] app@shop LOG:  statement: UPDATE t
\t   SET a = a + -3
\t WHERE b = 'it''s'
2026-11-24 06:33:30.127 UTC [77] app@shop LOG:  duration: 1.500 ms
2026-11-24 06:33:30.127 UTC [78] app@shop LOG:  execute <unnamed>: SELECT a FROM t WHERE b = $1 AND c = $2
2026-11-24 06:33:30.127 UTC [78] app@shop DETAIL:  parameters: $1 = 'x
\ty', $2 = NULL
2026-11-24 06:33:30.128 UTC [78] app@shop LOG:  duration: 0.200 ms
2026-11-24 06:33:30.130 UTC [77] app@shop LOG:  statement: END
2026-11-24 06:33:30.131 UTC [77] app@shop LOG:  duration: 0.500 ms
2026-11-24 06:33:30.132 UTC [77] app@shop LOG:  disconnection: session time: 0:00:00.010 user=app database=shop host=[local]
";

#[test]
fn a_log_of_stderr_becomes_transactions() {
    let mut imported = read(STDERR);
    assert_eq!(texts(&imported), ["UPDATE t SET a = a + $1 WHERE b = $2", "SELECT a FROM t WHERE b = $1 AND c = $2"]);
    let found = all(&mut imported);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.end, first.steps.len(), first.end_us - first.begin_us), (End::Commit, 1, 7_000));
    assert_eq!((first.steps[0].start_us - first.begin_us, first.steps[0].took_us), (2_000, Some(1_500)));
    assert_eq!(first.parameters(0).collect::<Vec<_>>(), [Value::Integer(-3), Value::Unknown("it's")]);
    assert_eq!((second.end, second.session, second.steps[0].took_us), (End::Autocommit, 1, Some(200)));
    assert_eq!(second.parameters(0).collect::<Vec<_>>(), [Value::Unknown("x\ny"), Value::Null]);
    let report = &imported.report;
    assert_eq!((report.statements, report.sessions, report.transactions, report.distinct), (2, 2, 2, 2));
    assert_eq!((count(&imported, "other messages"), count(&imported, "connections")), (1, 1));
}

#[test]
fn durations_are_taken_back_from_the_time_of_their_line() {
    let log = "\
2026-11-24 06:33:30.110 UTC [77] a@b LOG:  duration: 0.100 ms  parse <unnamed>: SELECT $1
2026-11-24 06:33:30.111 UTC [77] a@b LOG:  duration: 0.100 ms  bind <unnamed>: SELECT $1
2026-11-24 06:33:30.111 UTC [77] a@b DETAIL:  Parameters: $1 = '5'
2026-11-24 06:33:30.123 UTC [77] a@b LOG:  duration: 10.500 ms  execute <unnamed>: SELECT $1
2026-11-24 06:33:30.123 UTC [77] a@b DETAIL:  Parameters: $1 = '5'
2026-11-24 06:33:30.223 UTC [77] a@b LOG:  duration: 100.000 ms  statement: SELECT 7
";
    let mut imported = read(log);
    let found = all(&mut imported);
    let starts: Vec<i64> = found.iter().map(|one| one.begin_us % 1_000_000).collect();
    assert_eq!(starts, [112_500, 123_000]);
    assert_eq!(count(&imported, "parse and bind"), 2);
}

#[test]
fn statements_that_fail_are_taken_once_and_end_their_transaction() {
    let log = "\
2026-11-24 06:33:30.100 UTC [77] a@b LOG:  statement: BEGIN
2026-11-24 06:33:30.110 UTC [77] a@b LOG:  statement: INSERT INTO t VALUES (1)
2026-11-24 06:33:30.110 UTC [77] a@b ERROR:  duplicate key value violates unique constraint \"t_pkey\"
2026-11-24 06:33:30.110 UTC [77] a@b DETAIL:  Key (a)=(1) already exists.
2026-11-24 06:33:30.110 UTC [77] a@b STATEMENT:  INSERT INTO t VALUES (1)
2026-11-24 06:33:30.120 UTC [77] a@b LOG:  statement: COMMIT
2026-11-24 06:33:30.130 UTC [78] a@b ERROR:  division by zero
2026-11-24 06:33:30.130 UTC [78] a@b CONTEXT:  unnamed portal with parameters: $1 = '0'
2026-11-24 06:33:30.130 UTC [78] a@b STATEMENT:  SELECT 1 / $1
2026-11-24 06:33:30.140 UTC [78] a@b ERROR:  division by zero
2026-11-24 06:33:30.140 UTC [78] a@b STATEMENT:  SELECT 2 / $1
";
    let mut imported = read(log);
    let found = all(&mut imported);
    assert_eq!(
        found.iter().map(|one| (one.end, one.steps.len())).collect::<Vec<_>>(),
        [(End::Abort, 1), (End::Autocommit, 1)]
    );
    assert_eq!(imported.report.failed, 2);
    assert_eq!(found[1].parameters(0).collect::<Vec<_>>(), [Value::Unknown("0"), Value::Integer(1)]);
    assert_eq!(count(&imported, "parameters of the statement"), 1);
}

/// With `log_min_duration_statement` alone, a line is written when a statement is over. A failure after it is another one's.
#[test]
fn a_failure_is_not_that_of_the_execution_before() {
    let log = "\
2026-11-24 06:33:30.125 UTC [77] app@shop LOG:  duration: 0.200 ms  execute <unnamed>: INSERT INTO t VALUES ($1)
2026-11-24 06:33:30.125 UTC [77] app@shop DETAIL:  parameters: $1 = '1'
2026-11-24 06:33:30.127 UTC [77] app@shop ERROR:  duplicate key
2026-11-24 06:33:30.127 UTC [77] app@shop STATEMENT:  INSERT INTO t VALUES ($1)
2026-11-24 06:33:30.130 UTC [77] app@shop LOG:  duration: 0.200 ms  statement: SELECT 1
";
    let mut imported = read(log);
    let failed = |transaction: &Transaction| transaction.steps.iter().map(|step| step.failed).collect::<Vec<_>>();
    let found: Vec<Vec<bool>> = all(&mut imported).iter().map(failed).collect();
    // The log has no parameters of the one that failed, so it is counted and not taken.
    assert_eq!(found, [[false], [false]], "{}", imported.report);
    assert_eq!(count(&imported, "parameters of the statement"), 1, "{}", imported.report);
}

#[test]
fn a_log_of_several_databases_and_cut_parameters_are_noted() {
    let log = "\
2026-11-24 06:33:30.125 UTC [77] app@shop LOG:  duration: 0.200 ms  execute <unnamed>: INSERT INTO t VALUES ($1)
2026-11-24 06:33:30.125 UTC [77] app@shop DETAIL:  parameters: $1 = 'abc...'
2026-11-24 06:33:30.130 UTC [78] app@bank LOG:  duration: 0.200 ms  statement: SELECT 1
";
    let notes = read(log).report.notes.join("\n");
    assert!(notes.contains("several databases") && notes.contains("bank (1 entry), shop (1 entry)"), "{notes}");
    assert!(notes.contains("1 statement has a parameter that ends with \"...\""), "{notes}");
    let one = Options { databases: vec!["bank".into()], ..Options::default() };
    assert!(read_with(log, &one).unwrap().report.notes.is_empty());
}

/// A value may have a carriage return; the lines of a server on Windows end with one.
#[test]
fn carriage_returns_of_values_stay() {
    let log = "2026-11-24 06:33:30.124 UTC [77] app@shop LOG:  duration: 0.200 ms  statement: SELECT 'x'\n\
               2026-11-24 06:33:30.125 UTC [77] app@shop LOG:  duration: 0.200 ms  statement: SELECT 'a\r\n\tb'\n";
    let last = |log: &str| {
        let mut imported = read(log);
        let transactions = all(&mut imported);
        format!("{:?}", transactions[1].parameters(0).next())
    };
    assert_eq!(last(log), "Some(Unknown(\"a\\r\\nb\"))");
    let windows = log.replace("a\r\n\tb", "ab").replace('\n', "\r\n");
    assert_eq!(last(&windows), "Some(Unknown(\"ab\"))");
}

#[test]
fn what_a_savepoint_undoes_is_not_in_the_trace() {
    let log = "\
2026-11-24 06:33:30.100 UTC [77] a@b LOG:  statement: BEGIN ISOLATION LEVEL SERIALIZABLE
2026-11-24 06:33:30.101 UTC [77] a@b LOG:  statement: INSERT INTO t VALUES (1)
2026-11-24 06:33:30.102 UTC [77] a@b LOG:  statement: SAVEPOINT a
2026-11-24 06:33:30.103 UTC [77] a@b LOG:  statement: UPDATE t SET a = 5
2026-11-24 06:33:30.104 UTC [77] a@b LOG:  statement: INSERT INTO t VALUES (2)
2026-11-24 06:33:30.104 UTC [77] a@b ERROR:  duplicate key value violates unique constraint \"t_pkey\"
2026-11-24 06:33:30.104 UTC [77] a@b STATEMENT:  INSERT INTO t VALUES (2)
2026-11-24 06:33:30.105 UTC [77] a@b LOG:  statement: ROLLBACK TO SAVEPOINT a
2026-11-24 06:33:30.106 UTC [77] a@b LOG:  statement: DELETE FROM t WHERE a = 3
2026-11-24 06:33:30.107 UTC [77] a@b LOG:  statement: COMMIT
";
    let mut imported = read(log);
    assert_eq!(texts(&imported), ["INSERT INTO t VALUES ($1)", "DELETE FROM t WHERE a = $1"]);
    let [one] = &all(&mut imported)[..] else { panic!("one transaction") };
    assert_eq!(one.end, End::Commit);
    let parameters: Vec<Vec<Value<'_>>> = (0..one.steps.len()).map(|step| one.parameters(step).collect()).collect();
    assert_eq!(parameters, [[Value::Integer(1)], [Value::Integer(3)]]);
    assert_eq!((imported.report.statements, imported.report.failed, imported.report.distinct), (2, 0, 2));
    assert_eq!(
        (count(&imported, "SAVEPOINT"), count(&imported, "undone by"), count(&imported, "isolation")),
        (2, 2, 1)
    );
    // Without going back, a statement that failed ends the transaction.
    let log = log.replace("ROLLBACK TO SAVEPOINT a", "RELEASE SAVEPOINT a");
    assert_eq!(all(&mut read(&log))[0].end, End::Abort);
}

#[test]
fn what_is_not_taken_is_counted_once_when_it_fails() {
    let log = "\
2026-11-24 06:33:30.100 UTC [77] a@b LOG:  statement: SELECT 1
2026-11-24 06:33:30.101 UTC [77] a@b LOG:  statement: DO $$ BEGIN RAISE 'no'; END $$
2026-11-24 06:33:30.101 UTC [77] a@b ERROR:  no
2026-11-24 06:33:30.101 UTC [77] a@b STATEMENT:  DO $$ BEGIN RAISE 'no'; END $$
2026-11-24 06:33:30.102 UTC [77] a@b ERROR:  syntax error at or near \"SELEC\" at character 1
2026-11-24 06:33:30.102 UTC [77] a@b STATEMENT:  SELEC 1
2026-11-24 06:33:30.103 UTC [77] a@b LOG:  statement: EXPLAIN ANALYZE DELETE FROM t
";
    let imported = read(log);
    assert_eq!(
        (count(&imported, "DO: code"), count(&imported, "EXPLAIN"), count(&imported, "does not know")),
        (1, 1, 1)
    );
    assert_eq!(imported.report.not_taken.len(), 3, "{}", imported.report);
}

/// A record of csvlog with so many columns.
fn csv(columns: usize, time: &str, message: &str, detail: &str, statement: &str) -> String {
    let quoted =
        |text: &str| if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) };
    let severity = if statement.is_empty() { "LOG" } else { "ERROR" };
    let mut all = vec![time.to_string(), quoted("app"), quoted("shop"), "77".into(), quoted("127.0.0.1:5000")];
    all.extend(["6921ab00.4d".into(), "1".into(), quoted("SELECT"), "2026-11-24 06:33:00 UTC".into()]);
    all.extend(["3/12".into(), "0".into(), severity.into(), "00000".into(), quoted(message), quoted(detail)]);
    all.extend([
        String::new(),
        String::new(),
        String::new(),
        String::new(),
        quoted(statement),
        String::new(),
        String::new(),
    ]);
    all.extend([quoted("psql"), quoted("client backend"), String::new(), "-77".into()]);
    all.truncate(columns);
    all.join(",") + "\n"
}

#[test]
fn csv_logs_of_all_versions_are_read() {
    for columns in [23, 24, 26] {
        let mut log =
            csv(columns, "2026-11-24 06:33:30.123 CET", "statement: SELECT \"a,\nb\" FROM t WHERE c = 'x'", "", "");
        log += &csv(columns, "2026-11-24 06:33:30.125 CET", "execute a: SELECT $1", "parameters: $1 = 'x,\ny'", "");
        log += &csv(columns, "2026-11-24 06:33:30.126 CET", "division by zero", "", "SELECT 1/0");
        let mut imported = read(&log);
        assert_eq!(texts(&imported), ["SELECT \"a,\nb\" FROM t WHERE c = $1", "SELECT $1", "SELECT $1/$2"]);
        let found = all(&mut imported);
        assert_eq!(found[1].begin_us - found[0].begin_us, 2_000);
        assert_eq!(found[1].parameters(0).collect::<Vec<_>>(), [Value::Unknown("x,\ny")]);
        assert_eq!(imported.report.failed, 1);
        // A file that was cut off: its last record is not taken.
        let imported = read(&log[..log.len() - 30]);
        assert_eq!((imported.report.statements, count(&imported, "cut off")), (2, 1));
    }
}

/// A server that was killed leaves a record with an open quote in mid-file; `tail` begins within one.
#[test]
fn a_cut_record_of_csvlog_takes_no_other_with_it() {
    let record = |second: u32, text: &str| csv(26, &format!("2026-11-24 06:33:3{second}.123 CET"), text, "", "");
    let whole = [
        record(1, "statement: SELECT 1,\n2"),
        record(2, "statement: SELECT 'a'\nFROM t"),
        record(3, "statement: SELECT '2026-11-24 06:33:30 CET,\"app\",\"shop\",77,'\nFROM t"),
        record(4, "statement: SELECT 4"),
    ];
    let imported = read(&whole.concat());
    assert_eq!((imported.report.statements, count(&imported, "cut off")), (4, 0));
    // The second one ends within its text.
    let cut = &whole[1][..whole[1].find("\nFROM").unwrap() + 1];
    let imported = read(&[&whole[0], cut, &whole[2], &whole[3]].concat());
    assert_eq!((imported.report.statements, count(&imported, "cut off")), (3, 1));
    // The file begins within the first one.
    let tail = &whole[0][whole[0].find("\n2").unwrap() + 1..];
    let imported = read(&[tail, &whole[1], &whole[2], &whole[3]].concat());
    assert_eq!((imported.report.statements, count(&imported, "cut off")), (3, 1));
    let cut = imported.report.not_taken.iter().find(|one| one.reason.contains("cut off")).unwrap();
    assert!(cut.place.ends_with("0.log:1") && cut.example.starts_with("2\""), "{cut:?}");
}

#[test]
fn json_logs_are_read() {
    let log = r#"{"timestamp":"2026-11-24 06:33:30.123 UTC","user":"app","dbname":"shop","pid":77,"remote_host":"[local]","session_id":"6921ab00.4d","line_num":3,"ps":"idle","session_start":"2026-11-24 06:33:00 UTC","vxid":"3/12","txid":0,"error_severity":"LOG","message":"execute a: SELECT $1","detail":"Parameters: $1 = 'x\ny'","application_name":"psql","backend_type":"client backend","query_id":0}
{"timestamp":"2026-11-24 06:33:30.125 UTC","pid":12,"session_id":"6921ab00.c","error_severity":"LOG","message":"checkpoint starting: time","backend_type":"checkpointer"}
{"timestamp":"2026-11-24 06:33:30.126 UTC","user":"app","dbname":"shop","pid":77,"session_id":"6921ab00.4d","error_severity":"ERROR","state_code":"22012","message":"division by zero","statement":"SELECT 1/0"}
{"timestamp":"2026-11-24 06:33:30.1"#;
    let mut imported = read(log);
    assert_eq!(texts(&imported), ["SELECT $1", "SELECT $1/$2"]);
    assert_eq!(all(&mut imported)[0].parameters(0).collect::<Vec<_>>(), [Value::Unknown("x\ny")]);
    assert_eq!((count(&imported, "cut off"), count(&imported, "other messages")), (1, 1));
}

#[test]
fn rotated_and_compressed_files_are_one_log_in_any_order() {
    let (first, second) = STDERR.split_at(STDERR.find("2026-11-24 06:33:30.127").unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(second.as_bytes()).unwrap();
    let (gzip, zstd) = (gzip.finish().unwrap(), zstd::encode_all(first.as_bytes(), 1).unwrap());
    let (folder, paths) = files(&[&gzip, &zstd, b""]);
    let mut imported = import(&paths, &Options::default(), folder.path()).unwrap();
    assert_eq!(all(&mut imported), all(&mut read(STDERR)));
    // The same file twice is no log.
    let (folder, paths) = files(&[STDERR.as_bytes()]);
    let twice = [paths[0].clone(), paths[0].clone()];
    let error = import(&twice, &Options::default(), folder.path()).err().unwrap().to_string();
    assert!(error.contains("parts of one log"), "{error}");
}

#[test]
fn lines_that_are_not_taken_are_counted_with_an_example() {
    let log =
        format!("\tgoes on\n{STDERR}no prefix\n2026-11-24 06:33:31.000 UTC [79] app@shop LOG:  statement: SELECT 1");
    let imported = read(&log);
    assert_eq!(count(&imported, "beginning is not in the logs"), 1);
    assert_eq!(count(&imported, "does not begin with log_line_prefix"), 1);
    assert_eq!(count(&imported, "cut off"), 1);
    let refused = imported.report.not_taken.iter().find(|one| one.reason.contains("log_line_prefix")).unwrap();
    assert!(refused.place.ends_with("0.log:16") && refused.example == "no prefix", "{refused:?}");
    let text = imported.report.to_string();
    assert!(text.contains("taken: 2 statements (2 different, 0 failed) in 2 transactions of 2 sessions"), "{text}");
}

#[test]
fn filters_choose_databases_users_and_times() {
    let of = |options: Options| read_with(STDERR, &options).map(|imported| imported.report.statements);
    let names = |name: &str| vec![name.to_string()];
    assert_eq!(of(Options { databases: names("shop"), users: names("app"), ..Options::default() }), Ok(2));
    assert!(of(Options { databases: names("other"), ..Options::default() }).is_err_and(|e| e.contains("no statement")));
    let limit = |text: &str| Some(Limit::parse(text).unwrap());
    let window = Window { from: limit("2026-11-24 06:33:30.127"), ..Window::default() };
    assert_eq!(of(Options { window, ..Options::default() }), Ok(1));
    // Statements outside of the window are not in the list.
    assert_eq!(texts(&read_with(STDERR, &Options { window, ..Options::default() }).unwrap()).len(), 1);
    let window = Window { to: limit("2026-11-24 06:33:30.127"), ..Window::default() };
    assert_eq!(of(Options { window, ..Options::default() }), Ok(1));
    let prefix = Some("%m [%p] %q%u@%d ".to_string());
    assert_eq!(of(Options { prefix, users: names("app"), ..Options::default() }), Ok(2));
}

#[test]
fn definitions_are_refused_with_file_and_line_or_left_out() {
    let log = format!("{STDERR}2026-11-24 06:33:31.000 UTC [79] app@shop LOG:  statement: CREATE INDEX i ON t (a)\n");
    refused(&log, &Options::default(), &["/0.log:15: changes the schema", "CREATE INDEX i ON t (a)", "--skip-ddl"]);
    let window = Window { skip_ddl: true, ..Window::default() };
    let imported = read_with(&log, &Options { window, ..Options::default() }).unwrap();
    assert_eq!((imported.report.statements, count(&imported, "DDL")), (2, 1));
    let window = Window { to: Some(Limit::parse("2026-11-24 06:33:31").unwrap()), ..Window::default() };
    assert!(read_with(&log, &Options { window, ..Options::default() }).is_ok());
}

#[test]
fn wrong_input_is_refused_with_file_and_line() {
    let options = Options::default;
    let prefix = |text: &str| Options { prefix: Some(text.into()), ..options() };
    refused(STDERR, &prefix("%m "), &["--log-line-prefix", "neither %c nor %p"]);
    refused(STDERR, &prefix("%t <%c> "), &["/0.log:1: no line begins with log_line_prefix", "checkpoint", "SHOW"]);
    let lines = "06:33 hello\n06:34 world\n";
    refused(lines, &options(), &["/0.log:1: ", "none of the usual prefixes", "--log-line-prefix", "line: 06:33 hello"]);
    refused(STDERR, &Options { format: Some(Format::Csv), ..options() }, &["/0.log:1: is no record of a csvlog"]);
    refused(STDERR, &Options { format: Some(Format::Json), ..options() }, &["/0.log:1: is no object of a jsonlog"]);
    refused("", &options(), &["the logs are empty"]);
    let databases = vec!["shop".to_string()];
    let log = "2026-11-24 06:33:30.123 UTC [77] LOG:  statement: SELECT 1\n";
    refused(log, &Options { databases, ..prefix("%m [%p] ") }, &["--database", "does not tell %d"]);
    refused(
        "2026-11-24 06:33:30.123 UTC [77] LOG:  ready\n",
        &options(),
        &["no statement that can be taken", "log_statement"],
    );
}

#[test]
fn a_session_without_id_ends_when_its_process_gets_another_connection() {
    let log = "\
2026-11-24 06:33:30.100 UTC [77] LOG:  connection received: host=[local]
2026-11-24 06:33:30.110 UTC [77] LOG:  statement: BEGIN
2026-11-24 06:33:30.120 UTC [77] LOG:  statement: SELECT 1
2026-11-24 06:33:31.100 UTC [77] LOG:  connection received: host=[local]
2026-11-24 06:33:31.110 UTC [77] LOG:  statement: SELECT 1; SELECT 2
";
    let mut imported = read(log);
    let found: Vec<_> = all(&mut imported).iter().map(|one| (one.session, one.end, one.steps.len())).collect();
    assert_eq!(found, [(0, End::Abort, 1), (1, End::Commit, 2)]);
    assert!(imported.report.notes.iter().any(|note| note.contains("1 transaction had no end")));
}

/// What a prefix writes for an entry, by its escapes.
fn written(parts: &[(char, String)], has_session: bool) -> String {
    let mut text = String::new();
    for (escape, literal) in parts {
        let value = match escape {
            'q' if has_session => "",
            'q' => return text,
            'a' | 'u' if !has_session => "",
            'd' if !has_session => "",
            'a' => "my app",
            'u' => "app",
            'd' => "shop",
            'r' => "10.0.0.1(5000)",
            'h' => "10.0.0.1",
            'b' => "client backend",
            'p' => "77",
            'P' | 'v' => "",
            't' => "2026-11-24 06:33:30 UTC",
            'm' => "2026-11-24 06:33:30.123 UTC",
            'n' => "1795502010.123",
            'i' => "idle in transaction",
            'e' => "00000",
            'c' => "6921ab00.4d",
            'l' | 'x' => "12",
            's' => "2026-11-24 06:33:00 UTC",
            'Q' => "-123456",
            _ => "%",
        };
        text += value;
        text += literal;
    }
    text
}

proptest! {
    /// Whatever the prefix, an entry that was written with it is read again.
    #[test]
    fn entries_are_read_with_any_prefix(
        fields in prop::collection::vec(
            (prop::sample::select("aurdhbpPtmnieclsvxQ%".chars().collect::<Vec<_>>()), "[ |,;]{1,2}"), 0..6),
        time in prop::sample::select(vec!['m', 'n']),
        stop in any::<bool>(),
        has_session in any::<bool>(),
        message in "[a-zA-Z0-9 :$'%|,]{0,30}",
        at in any::<prop::sample::Index>(),
    ) {
        let mut parts = vec![(time, " ".to_string()), ('c', " ".to_string())];
        if stop {
            parts.push(('q', String::new()));
        }
        let from = if stop { parts.len() } else { 0 };
        for (field, literal) in fields {
            let place = from + at.index(parts.len() - from + 1);
            parts.insert(place, (field, literal));
        }
        let setting: String = parts.iter().map(|(escape, literal)| format!("%{escape}{literal}")).collect();
        let line = format!("{}LOG:  statement: {message}\n", written(&parts, has_session));
        let prefix = Prefix::parse(&setting).unwrap();
        let lines = Lines::new(Path::new("a.log"), Box::new(std::io::Cursor::new(line.clone().into_bytes())));
        let mut reader = reader(lines, 0, Format::Stderr, Some(&prefix)).unwrap();
        let (mut entry, mut tally) = (super::Entry::default(), Tally::default());
        tally.file(Path::new("a.log"));
        prop_assert!(reader.next(&mut entry, &mut tally).unwrap(), "{setting:?} {line:?}");
        prop_assert_eq!(&entry.message, &format!("statement: {message}"), "{} {}", setting, line);
        prop_assert_eq!(&entry.session, "6921ab00.4d");
        prop_assert_eq!(entry.process, 77);
        if has_session && prefix.has(&['u']) && prefix.tells('u') {
            prop_assert_eq!(&entry.user, "app");
        }
    }

    /// No file makes a reader panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..STDERR.len()) {
        let mut damaged = STDERR.as_bytes()[..cut].to_vec();
        damaged.extend_from_slice(&bytes);
        for content in [&bytes, &damaged] {
            for format in [None, Some(Format::Csv), Some(Format::Json), Some(Format::Stderr)] {
                let (folder, paths) = files(&[content]);
                let _ = import(&paths, &Options { format, ..Options::default() }, folder.path());
            }
        }
    }
}
