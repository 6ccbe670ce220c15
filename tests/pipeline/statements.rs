//! SQL of an application: imported from BenchFoundry's files, replayed on relational databases, compared.

use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use schemas::vocabulary::Control;
use schemas::vocabulary::sql::text::{Dialect, effect};
use schemas::vocabulary::sql::{Parameter, Pick, ResultOf, Statement, Type, Value};
use tracegen::sql::{Act, Header, Process, SetWriter, Step};

use crate::key_value::ask;
use crate::support::Workplace;

/// Tables with a hyphen in their names, and types that databases call differently.
const SCHEMA: &str = "\
0:CREATE TABLE `SHOP-CUSTOMER` (C_ID MEDIUMINT UNSIGNED UNIQUE, C_NAME VARCHAR(16), C_STATE CHAR(4), C_BALANCE DECIMAL(12, 2), C_SINCE DATETIME, C_NOTE VARCHAR(60), PRIMARY KEY(C_ID));
1:CREATE TABLE `ORDER` (O_ID INT UNSIGNED, C_ID MEDIUMINT UNSIGNED, O_WHEN DATETIME, O_TOTAL DECIMAL(8, 2), O_LINES TINYINT UNSIGNED, PRIMARY KEY(O_ID));

# the next order's number
2:CREATE TABLE COUNTER (K SMALLINT, NEXT BIGINT, RATE DOUBLE, IMAGE BLOB, PRIMARY KEY(K));
";

const OPERATIONS: &str = "\
0:INSERT into `SHOP-CUSTOMER` (C_ID, C_NAME, C_STATE, C_BALANCE, C_SINCE, C_NOTE) VALUES (?, ?, ?, ?, ?, ?);
1:INSERT INTO COUNTER (K, NEXT, RATE, IMAGE) VALUES (?, ?, ?, ?);
2:SELECT C_ID, C_NAME, C_STATE, C_BALANCE, C_SINCE, C_NOTE FROM `SHOP-CUSTOMER` WHERE C_ID=?;
3:UPDATE `SHOP-CUSTOMER` SET C_BALANCE = C_BALANCE - ?, C_NOTE = ? WHERE C_ID = ?;
4:INSERT INTO `ORDER` (O_ID, C_ID, O_WHEN, O_TOTAL, O_LINES) VALUES (?, ?, ?, ?, ?);
5:SELECT O_ID, O_TOTAL, O_WHEN FROM `ORDER` WHERE O_TOTAL > ? ORDER BY O_TOTAL DESC, O_ID LIMIT 1, 5;
6:SELECT C_STATE, COUNT(*), SUM(C_BALANCE), MIN(C_SINCE) FROM `SHOP-CUSTOMER` GROUP BY C_STATE;
7:INSERT INTO COUNTER (K, NEXT) VALUES (?, ?) ON DUPLICATE KEY UPDATE NEXT = COUNTER.NEXT + VALUES(NEXT);
8:SELECT K, NEXT, RATE, IMAGE FROM COUNTER;
9:DELETE FROM `ORDER` WHERE O_ID = ?;
10:SELECT c.C_NAME, o.O_TOTAL FROM `SHOP-CUSTOMER` c JOIN `ORDER` o ON o.C_ID = c.C_ID WHERE o.O_LINES > ?;
";

const CUSTOMERS: u32 = 40;

/// What the processes call: a statement and its values.
#[derive(Default)]
struct Files {
    parameters: String,
    sets: u32,
}

impl Files {
    fn call(&mut self, statement: u32, values: &str) -> String {
        if values.is_empty() {
            return format!("{statement}\n");
        }
        let set = self.sets;
        // Writing to a text cannot fail.
        let _ = writeln!(self.parameters, "{set}:{values}");
        self.sets += 1;
        format!("{statement};{set}\n")
    }
}

/// Writes the files of an application.
fn write_files(place: &Workplace) {
    let mut files = Files::default();
    let (mut load, mut run) = (String::new(), String::new());
    let process = |number: u32, start_ms: u32, transactions: &[String]| {
        let all: String = transactions.iter().map(|one| format!("BOT;0\n{one}EOT\n")).collect();
        format!("BOP;{start_ms};{number}\n{all}EOP\n\n")
    };
    for customer in 0..CUSTOMERS {
        let note = if customer % 7 == 0 { "NULL".to_string() } else { format!("'it''s; number {customer} `ü`'") };
        let (state, day) = (["CA", "BLN ", "X"][customer as usize % 3], customer % 28 + 1);
        let values =
            format!("{customer}; 'NAME{customer}'; '{state}'; {}.{:02}; 2016-5-{day}; {note}", customer * 97, customer);
        load += &process(customer, 0, &[files.call(0, &values)]);
    }
    load += &process(CUSTOMERS, 0, &[files.call(1, "0; 1; 2.5e-1; X'00ff10'")]);
    for number in 0..60 {
        let customer = number * 13 % CUSTOMERS;
        let pay = files.call(3, &format!("{}.5; 'paid {number}'; {customer}", number % 9))
            + &files.call(
                4,
                &format!(
                    "{number}; {customer}; 2016-5-16 1:02:{:02}; {}.25; {}",
                    number % 60,
                    number % 11 * 10,
                    number % 5
                ),
            )
            + &files.call(7, "0; 1");
        let look = files.call(2, &customer.to_string())
            + &files.call(5, "20.50")
            + &files.call(6, "")
            + &files.call(8, "")
            + &files.call(10, "2");
        let clear = files.call(9, &(number / 2).to_string());
        run += &process(CUSTOMERS + 1 + number, number * 5, &[pay, look, clear]);
    }
    let folder = place.path("shop");
    std::fs::create_dir_all(&folder).expect("a folder");
    let all = [
        ("schema", SCHEMA),
        ("operation", OPERATIONS),
        ("param", &files.parameters),
        ("cparam", ""),
        ("load", &load),
        ("warm", ""),
        ("run", &run),
    ];
    for (name, content) in all {
        std::fs::write(folder.join(format!("shop_{name}")), content).expect("a file");
    }
}

/// A database of each kind that is there.
fn stores() -> Vec<String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let database = format!("encore_sql_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let servers = [servers::postgres(), servers::mysql()].into_iter().flatten();
    let urls = servers.map(|server| server.url(&database));
    std::iter::once("sqlite:shop.db?synchronous=off".to_string()).chain(urls).collect()
}

fn replay(place: &Workplace, store: &str, run: &str, more: &[&str]) -> String {
    let all = [&["replay", "run", "--trace", "shop.trace", "--store", store, "-o", run, "--load", "--digest"], more];
    let said = place.run(&all.concat()).succeeds();
    said.lines().last().unwrap_or_default().to_string()
}

#[test]
fn what_statements_return_is_the_same_on_every_database() {
    let place = Workplace::new();
    write_files(&place);
    let said = place.run(&["trace", "import", "benchfoundry", "shop", "--closed-loop", "--log-results"]).succeeds();
    assert!(said.contains("60 sessions (closed loop), 3 tables filled by 41, 11 statements"), "{said}");
    place.run(&["trace", "verify", "shop.trace"]).succeeds();
    let (stores, mut digests) = (stores(), Vec::new());
    for (number, store) in stores.iter().enumerate() {
        let run = format!("run-{number}");
        digests.push(replay(&place, store, &run, &["--threads", "1"]));
        let sql = "SELECT count(*) FILTER (outcome <> 'ok'), count(*) FILTER (unpredictable), count(*) FROM operations";
        assert_eq!(ask(&place, &run, sql), "0,0,900", "{store}");
        assert_eq!(ask(&place, &run, "SELECT count(*), count(hash) FROM results"), "540,300", "{store}");
        let same = place.run(&["analyze", "compare", "--results", "run-0", &run]).succeeds();
        assert!(same.contains("540 statements compared, 540 returned the same"), "{store}: {same}");
    }
    assert!(digests.iter().all(|digest| *digest == digests[0] && digest.starts_with("digest ")), "{digests:?}");
    // The database is restored before it is loaded again.
    for (number, store) in stores.iter().enumerate() {
        let again = replay(&place, store, &format!("again-{number}"), &["--threads", "1"]);
        assert_eq!(again, digests[0], "{store}");
    }
}

/// The first processes are in no figure, unless the user wants them there.
#[test]
fn the_warm_up_of_benchfoundry_is_left_out() {
    let place = Workplace::new();
    write_files(&place);
    let (run, warm) = (place.path("shop/shop_run"), place.path("shop/shop_warm"));
    let text = std::fs::read_to_string(&run).expect("a file");
    let (first, rest) = text.split_at(text.match_indices("BOP").nth(2).expect("processes").0);
    std::fs::write(&warm, first).expect("a file");
    std::fs::write(&run, rest).expect("a file");
    place.run(&["trace", "import", "benchfoundry", "shop", "--closed-loop"]).succeeds();
    let sql =
        "SELECT count(DISTINCT session) FILTER (warmup), count(DISTINCT session) FILTER (NOT warmup) FROM operations";
    replay(&place, "sqlite:a.db?synchronous=off", "a", &["--threads", "1"]);
    assert_eq!(ask(&place, "a", sql), "2,58");
    replay(&place, "sqlite:b.db?synchronous=off", "b", &["--threads", "1", "--warmup", "0"]);
    assert_eq!(ask(&place, "b", sql), "0,60");
    let run = |name: &str, more: &[&str]| {
        let store = format!("sqlite:{name}.db?synchronous=off");
        let words = ["run", "--trace", "shop.trace", "--store", &store, "--threads", "1", "--name", name];
        place.run(&[&words[..], more].concat())
    };
    run("c", &["--sessions", "58"]).ends();
    assert_eq!(ask(&place, "runs/c", sql), "2,58");
    // It cannot be made longer.
    let short = run("d", &[]).exits(3);
    assert!(short.contains("trace too short") && short.contains("cannot be made longer"), "{short}");
    run("e", &["--sessions", "59"]).fails(2, &["it has 60 sessions, and 61 are needed", "--sessions 58"]);
}

#[test]
fn a_difference_between_runs_is_found() {
    let place = Workplace::new();
    write_files(&place);
    place.run(&["trace", "import", "benchfoundry", "shop"]).succeeds();
    replay(&place, "sqlite:a.db?synchronous=off", "a", &["--threads", "1"]);
    place.run(&["replay", "run", "--trace", "shop.trace", "--store", "null:", "--threads", "1", "-o", "n"]).ends();
    let said = place.run(&["analyze", "compare", "--results", "a", "n"]).exits(1);
    assert!(said.contains("540 statements compared") && said.contains("the first differences"), "{said}");
    let json = place.run(&["analyze", "compare", "--results", "a", "n", "--json"]).exits(1);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["compared"], 540, "{json}");
    assert!(json["by_statement"].as_array().is_some_and(|all| all.len() >= 5), "{json}");
}

/// Processes start at their times, and stores without statements refuse the trace set by name.
#[test]
fn processes_start_at_their_times() {
    let place = Workplace::new();
    write_files(&place);
    let said = place.run(&["trace", "import", "benchfoundry", "shop"]).succeeds();
    assert!(said.contains("(open loop)"), "{said}");
    replay(&place, "sqlite:a.db?synchronous=off", "a", &["--threads", "4"]);
    let sql = "SELECT count(*), max(due_ns), bool_and(start_ns >= due_ns) FROM operations WHERE step = 0";
    assert_eq!(ask(&place, "a", sql), "60,295000000,true");
    let refused =
        place.run(&["replay", "run", "--trace", "shop.trace", "--store", "memory:", "--threads", "1", "-o", "m"]);
    refused.fails(2, &["memory:", "sql", "sqlite:PATH"]);
    let gen_refused = place.run(&["trace", "gen", "shop.trace", "-o", "other.trace"]);
    gen_refused.fails(2, &["encore trace import"]);
}

#[test]
fn wrong_files_are_refused_by_line_and_leave_nothing() {
    let place = Workplace::new();
    write_files(&place);
    let run = place.path("shop/shop_run");
    let text = std::fs::read_to_string(&run).expect("a file");
    std::fs::write(&run, text.replacen("BOT;0", "BOT;0\n77;1", 1)).expect("a file");
    let before = place.contents();
    let refused = place.run(&["trace", "import", "benchfoundry", "shop"]);
    refused.fails(2, &["shop_run:3: statement 77 is not in"]);
    assert_eq!(place.contents(), before);
}

/// A trace set that numbers orders as an application does: it reads the next number, and inserts an order with it.
fn write_numbered(place: &Workplace) {
    let statement = |text: &str, parameters: &[Type]| {
        let effect = effect(text, Dialect::Logical).expect(text);
        let (name, text, parameters) = (String::new(), text.to_string(), parameters.to_vec());
        Statement { name, text, parameters, reads: effect.reads, writes: effect.writes, ordered: effect.ordered }
    };
    let header = Header {
        name: "shop".into(),
        source: "test".into(),
        dialect: Dialect::Logical,
        schema:
            "CREATE TABLE counter (k INT PRIMARY KEY, next_id BIGINT);\nCREATE TABLE `ORDER` (id BIGINT PRIMARY KEY, \
                 note VARCHAR(20))"
                .into(),
        statements: vec![
            statement("INSERT INTO counter (k, next_id) VALUES (?, ?)", &[Type::Integer, Type::Integer]),
            statement("SELECT k, next_id FROM counter WHERE k = ?", &[Type::Integer]),
            statement("INSERT INTO `ORDER` (id, note) VALUES (?, ?)", &[Type::Integer, Type::Text]),
            statement("UPDATE counter SET next_id = next_id + 1 WHERE k = ?", &[Type::Integer]),
        ],
        kinds: vec!["order".into()],
        fragments: 1,
        log_results: false,
        checks: Vec::new(),
    };
    let mut writer = SetWriter::create(&place.path("shop.trace"), header).expect("a writer");
    let [key, first] = [0, 100].map(|number| Parameter::Value(Value::Integer(number)));
    writer.preload(0, &[key, first]).expect("a row");
    let plain = |act| Step { think_us: 0, act };
    let call = |number, parameters: &[Parameter<'static>], is_kept| {
        plain(Act::Statement { number, parameters: parameters.to_vec(), custom: vec!["ONE"], is_kept })
    };
    for client in 0..20 {
        let id = ResultOf { kind: Type::Integer, step: 1, column: 1, pick: Pick::First };
        let steps = vec![
            plain(Act::Control(Control::Begin)),
            call(1, &[key], true),
            call(2, &[Parameter::Result(id), Parameter::Value(Value::Text("it's an order"))], false),
            call(3, &[key], false),
            plain(Act::Control(Control::Commit)),
        ];
        writer.process(&Process { kind: 0, client, due_us: None, steps }).expect("a process");
    }
    writer.finish().expect("a trace set");
}

/// Where a statement needs what an earlier one has returned, the replayer fills it in; stores get a value.
#[test]
fn a_parameter_may_be_the_result_of_an_earlier_step() {
    let place = Workplace::new();
    write_numbered(&place);
    let mut digests = Vec::new();
    for (number, store) in stores().iter().enumerate() {
        let run = format!("run-{number}");
        digests.push(replay(&place, store, &run, &["--threads", "1"]));
        let sql = "SELECT count(*), count(*) FILTER (outcome = 'ok') FROM operations";
        assert_eq!(ask(&place, &run, sql), "100,100", "{store}");
    }
    // 20 orders and the counter.
    assert!(digests.iter().all(|digest| *digest == digests[0] && digest.ends_with("-21")), "{digests:?}");
    // Nothing is returned, so what depends on it is not sent.
    place.run(&["replay", "run", "--trace", "shop.trace", "--store", "null:", "--threads", "1", "-o", "n"]).ends();
    let sql = "SELECT count(*) FILTER (outcome = 'skipped'), min(error) FILTER (outcome = 'skipped') FROM operations \
               WHERE statement = 2";
    let skipped = ask(&place, "n", sql);
    assert!(skipped.starts_with("20,") && skipped.contains("a parameter is a result"), "{skipped}");
}
