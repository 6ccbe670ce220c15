//! A trace set from tables that a Python program writes: the ready example, imported and replayed.

use std::process::Command;

use crate::key_value::ask;
use crate::support::Workplace;

/// Runs the example. Returns false, and says so, if there is no Python.
fn write_shop(place: &Workplace) -> bool {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/examples/shop.py");
    match Command::new("python3").arg(example).arg(place.path("shop")).status() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: python3 is not installed, and the example of tables is a Python program");
            false
        }
        done => {
            assert!(done.expect("python3 runs").success(), "the example fails");
            true
        }
    }
}

/// SQLite, and PostgreSQL if it is there.
fn stores() -> Vec<String> {
    let database = format!("encore_tables_{}", std::process::id());
    let server = servers::postgres().map(|server| server.url(&database));
    std::iter::once("sqlite:shop.db?synchronous=off".to_string()).chain(server).collect()
}

#[test]
fn the_example_in_python_is_imported_and_replayed() {
    let place = Workplace::new();
    if !write_shop(&place) {
        return;
    }
    let said = place.run(&["trace", "import", "table", "shop", "--log-results", "--closed-loop"]).succeeds();
    assert!(said.contains("500 sessions (closed loop), 3 tables filled by 101, 7 statements"), "{said}");
    place.run(&["trace", "verify", "shop.trace"]).succeeds();
    let bought = std::fs::read_to_string(place.path("shop/operations.csv")).expect("a file").matches("commit").count();
    let mut digests = Vec::new();
    for (number, store) in stores().iter().enumerate() {
        let run = format!("run-{number}");
        let args = ["--store", store, "-o", &run, "--load", "--digest", "--threads", "1"];
        let said = place.run(&[&["replay", "run", "--trace", "shop.trace"][..], &args].concat()).succeeds();
        digests.push(said.lines().last().unwrap_or_default().to_string());
        let sql = "SELECT count(*) FILTER (outcome <> 'ok'), count(*) FILTER (operation = 'commit'), count(*) FROM \
                   operations";
        assert_eq!(ask(&place, &run, sql), format!("0,{bought},{}", 500 + 6 * bought), "{store}");
        let same = place.run(&["analyze", "compare", "--results", "run-0", &run]).succeeds();
        assert!(same.contains("returned the same"), "{store}: {same}");
    }
    // 100 products, the counter, and an order of its own number for each process that bought.
    let rows = format!("-{}", 101 + bought);
    assert!(digests.iter().all(|digest| *digest == digests[0] && digest.ends_with(&rows)), "{digests:?}");
}

#[test]
fn processes_start_at_the_times_of_the_table() {
    let place = Workplace::new();
    if !write_shop(&place) {
        return;
    }
    let said =
        place.run(&["trace", "import", "table", "shop", "-o", "open.trace", "--name", "mine", "--json"]).succeeds();
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((json["folder"].as_str(), json["sessions"].as_u64()), (Some("open.trace"), Some(500)), "{json}");
    let shown = place.run(&["trace", "show", "open.trace"]).succeeds();
    assert!(shown.contains("mine") && shown.contains("500 sessions a second"), "{shown}");
    // The example is short enough to be read.
    let example = include_str!("../../traces/examples/shop.py");
    assert!(example.lines().count() <= 30);
}

#[test]
fn a_wrong_row_is_refused_and_nothing_is_written() {
    let place = Workplace::new();
    if !write_shop(&place) {
        return;
    }
    let table = place.path("shop/operations.csv");
    let text = std::fs::read_to_string(&table).expect("a file");
    std::fs::write(&table, text.replacen("count up", "count down", 1)).expect("a file");
    let before = place.contents();
    let line = 1 + text.lines().position(|line| line.contains("count up")).expect("such a line");
    let expect = format!("shop/operations.csv:{line}: statement count down is not in the list of statements");
    place.run(&["trace", "import", "table", "shop"]).fails(2, &[&expect]);
    place.run(&["trace", "import", "table", "nowhere"]).fails(2, &["nowhere: is no folder"]);
    assert_eq!(place.contents(), before);
}
