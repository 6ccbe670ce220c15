//! Conditions that the data of a trace set keep: checked after a load and after experiments, every violated one with
//! its rows.

use schemas::vocabulary::Control;
use schemas::vocabulary::sql::text::{Dialect, effect};
use schemas::vocabulary::sql::{Parameter, Statement, Type, Value};
use schemas::workload::sql::checks::{Check, When};
use serde_json::Value as Json;
use tracegen::sql::{Act, Header, Process, SetWriter, Step};

use crate::faults::with;
use crate::key_value::ask;
use crate::support::Workplace;

/// Which conditions a trace set has.
#[derive(Clone, Copy, PartialEq)]
pub enum Conditions {
    /// Two that sessions keep, and one that holds until then.
    Kept,
    /// The same, one that sessions violate, and one whose query fails after them.
    Violated,
    /// The loaded data violate one, and the query of another names no table.
    Wrong,
}

fn conditions(which: Conditions) -> Vec<Check> {
    let check = |name: &str, title: &str, when, query: &str| {
        let [name, title, query] = [name, title, query].map(String::from);
        Check { name, title, when, query }
    };
    let always = When::Always;
    let mut all = vec![
        check(
            "1",
            "The balances add up to 0",
            always,
            "SELECT SUM(balance) AS total FROM account HAVING SUM(balance) <> 0",
        ),
        check("2", "No account has a bound above 0", always, "SELECT k, bound FROM account WHERE bound > 0"),
        check("3", "No transfer is recorded", When::AfterLoad, "SELECT id FROM transfer"),
    ];
    match which {
        Conditions::Kept => {}
        Conditions::Violated => all.extend([
            check("4", "No balance is below 0", always, "SELECT k, balance FROM account WHERE balance < 0 ORDER BY k"),
            // There is no such number above 0.
            check("5", "Bounds have a size", always, "SELECT k FROM account WHERE ABS(bound) < 0"),
        ]),
        Conditions::Wrong => all.extend([
            check(
                "4",
                "No account has a note",
                always,
                "SELECT k, note FROM account WHERE note IS NOT NULL ORDER BY k",
            ),
            check("5", "There is a table", always, "SELECT k FROM absent"),
        ]),
    }
    all
}

/// Writes a trace set of transfers between accounts: 30 are committed, 10 are rolled back as the trace asks.
fn write(place: &Workplace, which: Conditions) {
    let statement = |text: &str, parameters: &[Type]| {
        let effect = effect(text, Dialect::Logical).expect(text);
        let (name, text, parameters) = (String::new(), text.to_string(), parameters.to_vec());
        Statement { name, text, parameters, reads: effect.reads, writes: effect.writes, ordered: effect.ordered }
    };
    let integers = [Type::Integer, Type::Integer];
    let header = Header {
        name: "bank".into(),
        source: "test".into(),
        dialect: Dialect::Logical,
        schema: "CREATE TABLE account (k INT PRIMARY KEY, balance BIGINT, bound BIGINT, note VARCHAR(20));\n\
                 CREATE TABLE transfer (id INT PRIMARY KEY, k INT)"
            .into(),
        statements: vec![
            statement(
                "INSERT INTO account (k, balance, bound, note) VALUES (?, 0, 0, ?)",
                &[Type::Integer, Type::Text],
            ),
            statement("UPDATE account SET balance = balance + ? WHERE k = ?", &integers),
            statement("INSERT INTO transfer (id, k) VALUES (?, ?)", &integers),
            statement("UPDATE account SET bound = ? WHERE k = ?", &integers),
        ],
        kinds: vec!["transfer".into(), "refused".into()],
        fragments: 2,
        log_results: false,
        checks: conditions(which),
    };
    let mut writer = SetWriter::create(&place.path("bank.trace"), header).expect("a writer");
    let number = |number: i64| Parameter::Value(Value::Integer(number));
    let note = if which == Conditions::Wrong { Value::Text("it's new") } else { Value::Null };
    for account in 0..12 {
        writer.preload(0, &[number(account), Parameter::Value(note)]).expect("a row");
    }
    let plain = |act| Step { think_us: 0, act };
    let call = |number, parameters: &[Parameter<'static>]| {
        plain(Act::Statement { number, parameters: parameters.to_vec(), custom: Vec::new(), is_kept: false })
    };
    for session in 0..40 {
        let (is_refused, account) = (session % 4 == 3, session % 11);
        let steps = vec![
            plain(Act::Control(Control::Begin)),
            call(1, &[number(-2), number(account)]),
            call(1, &[number(2), number(11)]),
            call(2, &[number(session), number(account)]),
            call(3, &[number(i64::MIN), number(account)]),
            plain(Act::Control(if is_refused { Control::Abort } else { Control::Commit })),
        ];
        let kind = usize::from(is_refused);
        writer.process(&Process { kind, client: session as u64, due_us: None, steps }).expect("a process");
    }
    writer.finish().expect("a trace set");
}

/// A folder with the trace set.
pub fn workplace(which: Conditions) -> Workplace {
    let place = Workplace::new();
    write(&place, which);
    place
}

const REPLAY: [&str; 7] = ["replay", "run", "--trace", "bank.trace", "--threads", "1", "--load"];

/// Replays it all on one thread, after a load.
pub fn replay(place: &Workplace, store: &str, run: &str) {
    place.run(&[&REPLAY[..], &["--store", store, "-o", run]].concat()).succeeds();
}

/// The verdict on the first experiment.
pub fn verdict(place: &Workplace, run: &str) -> Json {
    place.run(&["analyze", "summary", run]).ends();
    let path = place.experiment(run, 1).expect("an experiment").join("verdict.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a verdict")).expect("JSON")
}

#[test]
fn every_violated_condition_is_reported_with_its_rows() {
    let place = workplace(Conditions::Violated);
    let database = format!("encore_conditions_{}", std::process::id());
    let servers = [servers::postgres(), servers::mysql()].into_iter().flatten();
    let urls = servers.map(|server| with(&server.url(&database), "isolation=read-committed"));
    let stores: Vec<String> = ["sqlite:bank.db?synchronous=off".to_string()].into_iter().chain(urls).collect();
    for (number, store) in stores.iter().enumerate() {
        let run = format!("run-{number}");
        replay(&place, store, &run);
        let sql = "SELECT name, outcome, coalesce(violations, -1), len(first_rows), error IS NOT NULL, took_ns > 0 OR outcome = 'load only' \
                   FROM checks ORDER BY name";
        let expect = "1,holds,0,0,false,true;2,holds,0,0,false,true;3,load only,-1,0,false,true;\
                      4,violated,11,10,false,true;5,failed,-1,0,true,true";
        assert_eq!(ask(&place, &run, sql), expect, "{store}");
        let verdict = verdict(&place, &run);
        let found = &verdict["figures"]["conditions"];
        assert_eq!((&found["checked"], &found["holds"]), (&4.into(), &2.into()), "{store}: {found}");
        // Only a store that promises serializable transactions has broken its promise.
        let is_blamed =
            verdict["reasons"].to_string().contains("1 of 4 conditions are violated (4), although the store");
        let is_void = verdict["ruling"] == "void";
        assert!(is_void || is_blamed == (number == 0), "{store}: {}", verdict["reasons"]);
        let shown = place.run(&["analyze", "validate", &run]).exits(1);
        let words = "condition 4 is violated by 11 rows: No balance is below 0\n    k = 0, balance = -6\n";
        let failed = "condition 5 could not be checked: ";
        assert!(shown.contains(words) && shown.contains("\n    and 1 more\n") && shown.contains(failed), "{shown}");
        let summary = place.run(&["analyze", "summary", &run]).ends();
        let line = "condition 4 is violated by 11 rows: No balance is below 0\n";
        assert!(summary.contains(&format!("# 1 {line}")) && summary.contains(&format!("\n{line}")), "{summary}");
        assert!(summary.contains(failed) && !summary.contains("k = 0"), "{summary}");
        if !is_void {
            place.run(&["analyze", "summary", &run]).exits(1);
        }
        let json = place.run(&["analyze", "validate", &run, "--json"]).exits(1);
        let json: Json = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["violations"]["4"][0], "k = 0, balance = -6", "{json}");
    }
    // At a level that promises nothing of conditions, the agreement is kept, and the exit code still says it.
    let run =
        ["run", "--trace", "bank.trace", "--threads", "1", "--sessions", "40", "--transactions", "off", "--name", "c"];
    let ran = place.run(&[&run[..], &["--store", "sqlite:bank.db?synchronous=off"]].concat());
    let said = ran.ends();
    assert!(said.contains("violated by") && said.contains("\n    k = "), "{said}");
    if !said.contains("void") {
        assert!(said.contains("pass"), "{said}");
        ran.exits(1);
    }
    place.run(&["analyze", "report", "run-0"]).succeeds();
    let page = std::fs::read_to_string(place.path("run-0/report.html")).expect("a page");
    assert!(page.contains("Conditions of the data") && page.contains("k = 0, balance = -6"), "the page lacks them");
}

#[test]
fn conditions_that_hold_are_one_line() {
    let place = workplace(Conditions::Kept);
    let store = "sqlite:bank.db?synchronous=off";
    replay(&place, store, "kept");
    let line = "2 of 2 conditions hold (3 is checked after a load only)\n";
    let summary = place.run(&["analyze", "summary", "kept"]).ends();
    assert!(summary.contains(line) && !summary.contains(&format!("# 1 {line}")), "{summary}");
    let shown = place.run(&["analyze", "validate", "kept"]).succeeds();
    assert!(shown.contains(line), "{shown}");
    // Left out with the closing read.
    place.run(&[&REPLAY[..], &["--store", store, "-o", "none", "--no-closing-read"]].concat()).succeeds();
    assert_eq!(verdict(&place, "none")["figures"]["conditions"], Json::Null);
    assert_eq!(ask(&place, "none", "SELECT count(*) FROM checks"), "0");
    assert!(!place.experiment("none", 1).expect("an experiment").join("audit").exists());
    // The coordinator's experiments end with them too.
    let said = place
        .run(&["run", "--trace", "bank.trace", "--store", store, "--threads", "2", "--sessions", "40", "--name", "c"])
        .ends();
    assert!(said.contains("2 of 2 conditions hold (3 is"), "{said}");
    assert_eq!(ask(&place, "runs/c", "SELECT count(*) FILTER (outcome = 'holds') FROM checks"), "2");
}

/// A file that is gone or damaged is said, and the experiment counts without it.
#[test]
fn conditions_whose_file_is_lost_are_not_taken_as_kept() {
    let place = workplace(Conditions::Kept);
    replay(&place, "sqlite:bank.db?synchronous=off", "run");
    let path = place.experiment("run", 1).expect("an experiment").join("audit/checks.parquet");
    std::fs::write(&path, "PAR1").expect("a file");
    let summary = place.run(&["analyze", "summary", "run"]).ends();
    assert!(summary.contains("# 1 the conditions were not checked: "), "{summary}");
    assert_eq!(ask(&place, "run", "SELECT count(*) FROM checks"), "0");
    assert_eq!(verdict(&place, "run")["figures"]["conditions"]["holds"], 0);
}

/// A data set that violates its own conditions is a defect: nothing runs on it.
#[test]
fn data_that_violate_conditions_after_a_load_are_refused() {
    let place = workplace(Conditions::Wrong);
    let postgres = servers::postgres().map(|server| server.url(&format!("encore_wrong_{}", std::process::id())));
    let stores = ["sqlite:bank.db?synchronous=off".to_string()].into_iter().chain(postgres);
    for store in stores {
        let load = place.run(&["replay", "load", "--trace", "bank.trace", "--store", &store]);
        let words = [
            "the data that were loaded do not keep 2 of 5 conditions of bank.trace",
            "condition 4 is violated by 12 rows: No account has a note\n    k = 0, note = it's new\n",
            "condition 5 could not be checked: ",
            "absent",
            "generate the trace set again",
        ];
        load.fails(2, &words);
        let run = ["replay", "run", "--trace", "bank.trace", "--store", &store, "--threads", "1", "-o", "run"];
        place.run(&run).fails(2, &["after the load its data did not keep 2 of 5 conditions"]);
        let said = place.run(&["run", "--trace", "bank.trace", "--store", &store, "--threads", "1", "--name", "c"]);
        said.fails(2, &["condition 4 is violated by 12 rows"]);
        assert!(!place.path("run").exists());
        std::fs::remove_dir_all(place.path("runs")).unwrap_or_default();
    }
}
