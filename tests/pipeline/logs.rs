//! Real traffic: pgbench on a real PostgreSQL that logs it, imported from each form of its log, and replayed on a copy of
//! the database.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use servers::{Kind, Options, Server};

use crate::key_value::ask;
use crate::support::Workplace;

/// Transactions of pgbench in each mode.
const TRANSACTIONS: u64 = 100;
const MODES: [&str; 3] = ["simple", "extended", "prepared"];

/// A statement whose types are known to the database alone, and values that are no numbers.
const TYPES: &str = "\\set n random(1, 1000)
BEGIN;
INSERT INTO kinds (id, day, at, note, amount, tags) VALUES (:n, '2026-03-01', '2026-03-01 10:00:00+02', 'it''s', 1.50, '{a,b}') ON CONFLICT (id) DO NOTHING;
SELECT id, day, note, amount FROM kinds WHERE day = '2026-03-01' AND id = :n;
SELECT left(note, 2), day + 1, amount * 2 FROM kinds WHERE 'a' = ANY (tags) AND at < '2026-03-02 00:00:00Z' ORDER BY id LIMIT 3;
SELECT :n + 1, 7 / 2;
END;
";

/// A program of PostgreSQL.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|one| one.path().join("bin").join(name)).filter(|p| p.exists()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

fn succeeded(output: std::io::Result<Output>) -> String {
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Keeps a session's statements out of the log.
const QUIET: &str = "-c log_min_duration_statement=-1";

fn psql(url: &str, sql: &str) -> String {
    let arguments = ["-XAtq", "-v", "ON_ERROR_STOP=1", url, "-c", sql];
    succeeded(Command::new(program("psql")).args(arguments).env("PGOPTIONS", QUIET).output())
}

/// The contents of the tables, but for times of the clock.
fn contents(url: &str) -> String {
    let tables = [
        ("pgbench_accounts", "aid, bid, abalance"),
        ("pgbench_tellers", "tid, bid, tbalance"),
        ("pgbench_branches", "bid, bbalance"),
        ("pgbench_history", "tid, bid, aid, delta"),
        ("kinds", "id, day, at, note, amount, tags"),
    ];
    let sums = tables.map(|(table, columns)| {
        psql(
            url,
            &format!(
                "SELECT count(*), md5(string_agg(r::text, ',' ORDER BY r)) FROM (SELECT {columns} FROM {table}) r"
            ),
        )
    });
    sums.concat()
}

/// A server that logs every statement in all three forms into a folder.
fn server(logs: &Path) -> Option<Server> {
    let folder = format!("log_directory={}", logs.display());
    let arguments = [
        ["-c", "logging_collector=on"],
        ["-c", &folder],
        ["-c", "log_filename=all.log"],
        ["-c", "log_destination=stderr,csvlog,jsonlog"],
        ["-c", "log_min_duration_statement=0"],
        ["-c", "log_line_prefix=%m [%p] %q%u@%d "],
        ["-c", "log_file_mode=0644"],
    ]
    .concat();
    Server::start(Kind::Postgres, Options { arguments: &arguments, ..Options::default() })
}

/// Fills a database, copies it, and lets pgbench work on it. Returns the URLs of both.
fn record(place: &Workplace, server: &Server) -> (String, String) {
    let (shop, copy) = (server.url("shop"), server.url("copy"));
    psql(&server.url("encore"), "CREATE DATABASE shop");
    let init = Command::new(program("pgbench")).args(["-i", "-q", "-s", "1", &shop]).env("PGOPTIONS", QUIET).output();
    succeeded(init);
    let kinds = "CREATE TABLE kinds (id int PRIMARY KEY, day date, at timestamptz, \
                 note varchar(10), amount numeric(8, 2), tags text[])";
    psql(&shop, kinds);
    psql(&server.url("encore"), "CREATE DATABASE copy TEMPLATE shop");
    std::fs::write(place.path("types.sql"), TYPES).expect("a file");
    for (mode, scripts) in MODES.iter().flat_map(|mode| [(mode, "tpcb-like"), (mode, "")]) {
        let transactions = TRANSACTIONS.to_string();
        let mut pgbench = Command::new(program("pgbench"));
        pgbench.args(["-n", "-c", "1", "-t", &transactions, "--random-seed=7", "-M", mode]);
        match scripts {
            "" => pgbench.arg("-f").arg(place.path("types.sql")),
            script => pgbench.args(["-b", script]),
        };
        succeeded(pgbench.arg(&shop).output());
    }
    (shop, copy)
}

#[test]
fn a_log_of_postgresql_replayed_on_a_copy_leaves_the_same_tables() {
    let place = Workplace::new();
    let logs = tempfile::tempdir().expect("a folder");
    // The server runs as another user.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(logs.path(), permissions).expect("permissions");
    let Some(server) = server(logs.path()) else { return };
    let (shop, copy) = record(&place, &server);
    let wanted = contents(&shop);
    // pgbench looks at its tables once when it starts.
    let (executions, starts) = (MODES.len() as u64 * TRANSACTIONS, MODES.len() as u64 * 2);
    for form in ["log", "csv", "json"] {
        let log = logs.path().join(format!("all.{form}"));
        let (log, trace) = (log.to_str().expect("UTF-8"), format!("{form}.trace"));
        let import = ["trace", "import", "postgres-log", log, "--database", "shop", "-o", &trace, "--json"];
        let said = place.run(&import).succeeds();
        let imported: Value = serde_json::from_str(&said).expect("JSON");
        // Five statements of tpcb-like and four of the other script, with BEGIN and END.
        assert_eq!(imported["operations"].as_u64(), Some(executions * (7 + 6) + starts), "{form}: {said}");
        assert_eq!(imported["sessions"].as_u64(), Some(executions * 2 + starts), "{form}: {said}");
        place.run(&["trace", "verify", &trace]).succeeds();

        let database = format!("copy_{form}");
        psql(&server.url("encore"), &format!("CREATE DATABASE {database} TEMPLATE copy"));
        let (store, run) = (server.url(&database), format!("run-{form}"));
        let replay =
            ["replay", "run", "--trace", &trace, "--store", &store, "--threads", "1", "-o", &run, "--keep-data"];
        place.run(&replay).succeeds();
        assert_eq!(ask(&place, &run, "SELECT count(*) FILTER (outcome <> 'ok') FROM operations"), "0", "{form}");
        psql(&store, "DROP TABLE encore_state");
        assert_eq!(contents(&store), wanted, "{form}");

        let said = place.run(&["analyze", "compare", "--recorded", &run]).succeeds();
        assert!(
            said.contains(&format!(
                "{} statements executed, 0 of the log not executed; 0 failed in the log",
                with_commas(executions * 9 + starts)
            )),
            "{said}"
        );
    }
    are_due_as_in_the_log(&place, "run-json", &logs.path().join("all.json"));
    // Where a table is gone, its statements fail that the log has not seen fail.
    psql(&server.url("encore"), "CREATE DATABASE broken TEMPLATE copy");
    let broken = server.url("broken");
    psql(&broken, "DROP TABLE kinds");
    let replay = ["replay", "run", "--trace", "json.trace", "--store", &broken, "--threads", "1", "-o", "broken"];
    place.run(&[&replay[..], &["--keep-data"]].concat()).succeeds();
    let said = place.run(&["analyze", "compare", "--recorded", "broken", "--json"]).exits(1);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    for one in said["by_statement"].as_array().expect("statements") {
        // In a transaction that has failed, what comes later fails too.
        let text = one["text"].as_str().expect("a text");
        let is_gone = text.contains("kinds") || text == "SELECT $1 + $2, $3 / $4";
        let expect = if is_gone { &one["executed"] } else { &Value::from(0) };
        assert!(&one["replayed_failed"] == expect && one["recorded_failed"] == 0, "{one}");
    }
    assert!(said["other_outcome"].as_u64() >= Some(executions), "{said}");
    // The three forms say the same.
    for other in ["csv", "json"] {
        let said = place.run(&["analyze", "compare", "--results", "run-log", &format!("run-{other}")]).succeeds();
        assert!(said.contains("returned the same"), "{said}");
    }
    assert_ne!(contents(&copy), wanted, "the trace changes the tables");
}

/// Runs SQL with MariaDB's own client, in a database.
fn mariadb(server: &Server, database: &str, sql: &str) -> String {
    let url = server.url(database);
    let (user, place) = url.trim_start_matches("mysql://").split_once('@').expect("a user");
    let (user, password) = user.split_once(':').expect("a password");
    let (host, port) = place.split('/').next().and_then(|place| place.split_once(':')).expect("a port");
    let login = ["--no-defaults", "-N", "-u", user, &format!("-p{password}"), "-h", host, "-P", port];
    succeeded(Command::new("mariadb").args(login).args([database, "-e", sql]).output())
}

#[test]
fn a_general_log_of_mariadb_replayed_on_a_copy_leaves_the_same_tables() {
    const TRANSACTIONS: u64 = 60;
    let place = Workplace::new();
    let logs = tempfile::tempdir().expect("a folder");
    // The server runs as another user.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(logs.path(), permissions).expect("permissions");
    let log = logs.path().join("general.log").display().to_string();
    let arguments = ["--general-log=1", &format!("--general-log-file={log}")];
    let Some(server) = Server::start(Kind::Mysql, Options { arguments: &arguments, ..Options::default() }) else {
        return;
    };
    // From another database, so that the filter leaves it out.
    for database in ["shop", "copy"] {
        let rows: Vec<String> = (0..20).map(|id| format!("({id}, 100)")).collect();
        let sql = format!(
            "CREATE DATABASE {database}; CREATE TABLE {database}.stock (id INT PRIMARY KEY, pieces INT); \
             CREATE TABLE {database}.sale (id INT PRIMARY KEY, note VARCHAR(20), day DATE, price DECIMAL(8, 2)); \
             INSERT INTO {database}.stock VALUES {}",
            rows.join(", ")
        );
        mariadb(&server, "encore", &sql);
    }
    let contents = |database: &str| {
        let sql = format!("SELECT * FROM {database}.stock ORDER BY id; SELECT * FROM {database}.sale ORDER BY id");
        mariadb(&server, "encore", &sql)
    };
    let before = contents("shop");
    let transactions = (0..TRANSACTIONS).map(|id| {
        let (item, end) = (id * 7 % 20, if id % 5 == 4 { "ROLLBACK" } else { "COMMIT" });
        format!(
            "BEGIN; SELECT pieces FROM stock WHERE id = {item} FOR UPDATE; \
             UPDATE stock SET pieces = pieces - {} WHERE id = {item}; \
             INSERT INTO sale VALUES ({id}, 'it''s \"{id}\"', '2026-03-0{}', {id}.50); {end}; ",
            id % 3 + 1,
            id % 9 + 1
        )
    });
    mariadb(&server, "shop", &transactions.collect::<String>());
    let wanted = contents("shop");
    assert_ne!(wanted, before, "the transactions change the tables");
    let import = ["trace", "import", "mysql-general-log", &log, "--database", "shop", "-o", "shop.trace", "--json"];
    let imported: Value = serde_json::from_str(&place.run(&import).succeeds()).expect("JSON");
    assert_eq!(imported["report"]["distinct"].as_u64(), Some(3), "{imported}");
    assert_eq!(imported["report"]["transactions"].as_u64(), Some(TRANSACTIONS), "{imported}");
    let store = server.url("copy");
    let replay = ["replay", "run", "--trace", "shop.trace", "--store", &store, "--threads", "1", "-o", "run"];
    place.run(&[&replay[..], &["--keep-data"]].concat()).succeeds();
    assert_eq!(ask(&place, "run", "SELECT count(*) FILTER (outcome <> 'ok') FROM operations"), "0");
    assert_eq!(contents("copy"), wanted);
}

/// Each session is due within a millisecond of when the log says that its first statement began.
fn are_due_as_in_the_log(place: &Workplace, run: &str, log: &Path) {
    let log = std::fs::read_to_string(log).expect("a log");
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let begins = entries.filter(|entry| entry["dbname"] == "shop").filter_map(|entry| {
        let message = entry["message"].as_str()?.strip_prefix("duration: ")?;
        let (took_ms, text) = message.split_once(" ms  ")?;
        let (kind, text) = text.split_once(": ")?;
        let is_first = (kind == "statement" || kind.starts_with("execute"))
            && (text.starts_with("BEGIN") || text.starts_with("select "));
        // `2026-11-24 06:33:30.125 UTC`
        let time = entry["timestamp"].as_str()?.get(11..23)?;
        let parts: Vec<f64> = time.split(':').filter_map(|part| part.parse().ok()).collect();
        let seconds = parts.iter().fold(0.0, |sum, part| sum * 60.0 + part);
        is_first.then(|| seconds - took_ms.parse::<f64>().unwrap_or_default() / 1e3)
    });
    let begins: Vec<f64> = begins.collect();
    let due = "SELECT due_ns // 1000 FROM operations WHERE step = 0 ORDER BY due_ns";
    let due: Vec<f64> = ask(place, run, due).split(';').filter_map(|us| us.parse().ok()).collect();
    assert_eq!(due.len(), begins.len());
    for (due_us, begin_s) in due.iter().zip(&begins) {
        // A log that goes on over midnight.
        let since_s = (begin_s - begins[0]).rem_euclid(86_400.0);
        assert!((due_us / 1e6 - since_s).abs() <= 0.001, "{due_us} µs, and {since_s} s in the log");
    }
}

fn with_commas(number: u64) -> String {
    schemas::words::thousands(number)
}
