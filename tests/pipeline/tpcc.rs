//! TPC-C from specification to conditions: loaded and replayed on relational databases, with the same state on all; the
//! twelve conditions find what breaks them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use schemas::manifest::Manifest;
use schemas::vocabulary::sql::text::{Dialect, definitions, translate};
use schemas::workload::sql::checks::read_checks;
use schemas::workload::sql::dataset::read_schema;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, SqliteConnection};

use crate::key_value::ask;
use crate::support::Workplace;

/// Two warehouses, scaled down: some transactions are remote, and deliveries empty a district.
const SPEC: &str = "\
name = 'orders'
family = 'tpcc'
seed = 5
sessions = 600
fragments = 2
[data]
warehouses = 2
items = 200
customers = 30
[mix]
new_order = 45
payment = 43
order_status = 4
delivery = 15
stock_level = 4
";

fn with_trace() -> Workplace {
    with_trace_of("each")
}

/// The same, with the lines of a new order each by itself or together.
fn with_trace_of(lines: &str) -> Workplace {
    let place = Workplace::new();
    std::fs::write(place.path("orders.toml"), SPEC).expect("a file");
    let lines = format!("data.lines={lines}");
    let said = place.run(&["trace", "gen", "orders.toml", "-o", "orders.trace", "--set", &lines]).succeeds();
    assert!(said.contains("2 warehouses") || said.contains("not TPC-C"), "{said}");
    place.run(&["trace", "verify", "orders.trace"]).succeeds();
    place
}

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_tpcc_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// A database of each kind that is there.
fn stores() -> Vec<String> {
    let name = database();
    let servers = [servers::postgres(), servers::mysql()].into_iter().flatten();
    let urls = servers.map(|server| server.url(&name));
    std::iter::once("sqlite:orders.db?synchronous=off".to_string()).chain(urls).collect()
}

fn with(url: &str, parameter: &str) -> String {
    format!("{url}{}{parameter}", if url.contains('?') { '&' } else { '?' })
}

fn replay(place: &Workplace, store: &str, run: &str, threads: &str) -> String {
    let all = ["replay", "run", "--trace", "orders.trace", "--store", store, "-o", run, "--load", "--digest"];
    let said = place.run(&[&all[..], &["--threads", threads]].concat()).succeeds();
    said.lines().last().unwrap_or_default().to_string()
}

/// One thread leaves the same rows on every database, and all conditions hold.
#[test]
fn every_database_ends_with_the_same_rows() {
    let place = with_trace();
    let mut digests = Vec::new();
    for (number, store) in stores().iter().enumerate() {
        let run = format!("run-{number}");
        digests.push(replay(&place, store, &run, "1"));
        let sql = "SELECT count(*) FILTER (outcome <> 'ok'), count(DISTINCT (fragment, session)) FROM operations";
        assert_eq!(ask(&place, &run, sql), "0,600", "{store}");
        // Deliveries have emptied a district, and found no order to deliver.
        let sql = "SELECT count(*) FILTER (row_count = 0) > 0, count(*) FILTER (row_count = 1) > 0 FROM results \
                   WHERE operation = 'update'";
        assert_eq!(ask(&place, &run, sql), "true,true", "{store}");
        place.run(&["analyze", "validate", &run]).succeeds();
    }
    assert!(digests.iter().all(|digest| *digest == digests[0] && digest.starts_with("digest ")), "{digests:?}");
}

/// Lines together leave the rows that lines each by itself leave, with less than a third of the statements of a new order.
#[test]
fn lines_together_leave_the_same_rows() {
    let (each, together) = (with_trace_of("each"), with_trace_of("together"));
    for (number, store) in stores().iter().enumerate() {
        let run = format!("run-{number}");
        let digests = [&each, &together].map(|place| replay(place, store, &run, "1"));
        assert!(digests[0] == digests[1] && digests[0].starts_with("digest "), "{store}: {digests:?}");
        let statements = [&each, &together].map(|place| {
            let sql = "SELECT count(*) FROM operations WHERE kind = 'new_order'";
            ask(place, &run, sql).parse::<u32>().expect("a number")
        });
        assert!(statements[1] * 3 < statements[0], "{store}: {statements:?}");
        together.run(&["analyze", "validate", &run]).succeeds();
    }
    for (number, store) in stores().iter().enumerate() {
        let run = format!("threads-{number}");
        replay(&together, store, &run, "4");
        together.run(&["analyze", "validate", &run]).succeeds();
    }
}

/// Several threads, at the level that the database has by default and at the highest one: nothing fails, and all
/// conditions hold.
#[test]
fn threads_keep_the_conditions() {
    let place = with_trace();
    let plain = stores();
    let serializable = plain.iter().map(|store| with(store, "isolation=serializable"));
    for (number, store) in plain.iter().cloned().chain(serializable).enumerate() {
        let run = format!("run-{number}");
        replay(&place, &store, &run, "16");
        let sql = "SELECT count(*) FILTER (outcome NOT IN ('ok', 'aborted')), count(DISTINCT (fragment, session)) \
                   FROM operations";
        assert_eq!(ask(&place, &run, sql), "0,600", "{store}");
        place.run(&["analyze", "validate", &run]).succeeds();
    }
}

/// Without its locks, a transaction delivers what another one has delivered: a level below serializable lets that happen, and the
/// conditions show it.
#[test]
fn a_weak_level_without_locks_breaks_conditions() {
    let place = with_trace();
    let busy = ["sessions=1000", "fragments=1", "data.warehouses=1", "data.terminals=16", "mix.delivery=60"];
    let settings = busy.iter().flat_map(|setting| ["--set", setting]);
    let words: Vec<&str> = ["trace", "gen", "orders.toml", "-o", "busy.trace"].into_iter().chain(settings).collect();
    place.run(&words).succeeds();
    let weak = "isolation=read-committed&locking=none";
    let servers = [servers::postgres(), servers::mysql()].into_iter().flatten();
    for (number, store) in servers.map(|server| with(&server.url(&database()), weak)).enumerate() {
        let run = format!("weak-{number}");
        let replay =
            ["replay", "run", "--trace", "busy.trace", "--store", &store, "-o", &run, "--load", "--threads", "16"];
        place.run(&replay).succeeds();
        let said = place.run(&["analyze", "validate", &run]).exits(1);
        assert!(said.contains("condition 3.3.2.1") && said.contains(" is violated by "), "{store}: {said}");
        // What the sessions have drawn is in the summary, beside the limits.
        let summary = place.run(&["analyze", "summary", &run]).exits(1);
        assert!(summary.contains("9.2.2.5") && summary.contains("new orders rolled back"), "{summary}");
        assert!(!summary.contains("remote lines"), "one warehouse has no remote ones: {summary}");
    }
}

/// The queries of the conditions by their names, in the dialect of a database.
fn queries(folder: &Path, to: Dialect) -> BTreeMap<String, String> {
    let manifest = Manifest::read(folder).expect("a manifest");
    let schema = read_schema(folder).expect("a schema");
    let (_, keys) = definitions(&schema, Dialect::Logical, to).expect("definitions");
    let checks = read_checks(folder, &manifest.files, Dialect::Logical).expect("conditions");
    let query =
        |check: &schemas::workload::sql::checks::Check| translate(&check.statement(), Dialect::Logical, to, &keys, &[]);
    checks.iter().map(|check| (check.name.clone(), query(check).expect("a query"))).collect()
}

/// For each condition a change of the data that breaks it.
const FAULTS: [(u32, &str); 12] = [
    (1, "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2"),
    (2, "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3"),
    (3, "UPDATE new_order SET no_o_id = no_o_id - 1000 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 25"),
    (4, "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 1 AND ol_number = 1"),
    (5, "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1"),
    (6, "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 10 AND o_id = 1"),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2",
    ),
    (8, "UPDATE history SET h_amount = h_amount + 1 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 7"),
    (9, "UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_w_id = 2 AND d_id = 10"),
    (10, "UPDATE customer SET c_balance = c_balance - 0.01 WHERE c_w_id = 2 AND c_d_id = 4 AND c_id = 2"),
    (11, "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 5"),
    (12, "UPDATE customer SET c_ytd_payment = c_ytd_payment + 5 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1"),
];

/// How many rows each query returns on the data as they are, and with its fault.
macro_rules! found {
    ($connection:ty, $url:expr, $queries:expr) => {{
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut client = <$connection>::connect($url).await.expect("a connection");
            let mut found = Vec::new();
            for (number, fault) in FAULTS {
                let query = &$queries[&format!("3.3.2.{number}")];
                let before = client.fetch_all(AssertSqlSafe(query.clone())).await.expect("rows").len();
                client.execute("BEGIN").await.expect("begin");
                let changed = client.execute(fault).await.expect("a fault").rows_affected();
                let after = client.fetch_all(AssertSqlSafe(query.clone())).await.expect("rows").len();
                client.execute("ROLLBACK").await.expect("rollback");
                found.push((number, before, changed > 0, after > 0));
            }
            found
        })
    }};
}

/// Nothing is found in what was loaded, and each fault is found by its own condition.
#[test]
fn each_condition_finds_its_fault() {
    let place = with_trace();
    let folder = place.path("orders.trace");
    let expect: Vec<(u32, usize, bool, bool)> = (1..=12).map(|number| (number, 0, true, true)).collect();
    let load = |store: &str| {
        place.run(&["replay", "load", "--trace", "orders.trace", "--store", store]).succeeds();
    };
    load("sqlite:orders.db?synchronous=off");
    let url = format!("sqlite:{}", place.path("orders.db").display());
    assert_eq!(found!(SqliteConnection, &url, queries(&folder, Dialect::Sqlite)), expect);
    if let Some(server) = servers::postgres() {
        let url = server.url(&database());
        load(&url);
        assert_eq!(found!(PgConnection, &url, queries(&folder, Dialect::Postgres)), expect);
    }
    if let Some(server) = servers::mysql() {
        let url = server.url(&database());
        load(&url);
        assert_eq!(found!(MySqlConnection, &url, queries(&folder, Dialect::Mysql)), expect);
    }
}

/// An experiment on data that break a condition says so.
#[test]
fn a_violated_condition_is_reported() {
    let place = with_trace();
    let store = "sqlite:orders.db?synchronous=off";
    place.run(&["replay", "load", "--trace", "orders.trace", "--store", store]).succeeds();
    let url = format!("sqlite:{}", place.path("orders.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut client = SqliteConnection::connect(&url).await.expect("a connection");
        client.execute("UPDATE warehouse SET w_ytd = w_ytd + 7 WHERE w_id = 2").await.expect("a fault");
    });
    let run = ["replay", "run", "--trace", "orders.trace", "--store", store, "-o", "r", "--threads", "1"];
    place.run(&run).ends();
    let said = place.run(&["analyze", "validate", "r"]).exits(1);
    assert!(said.contains("3.3.2.1") && said.contains("3.3.2.8") && said.contains("w_id = 2"), "{said}");
    assert!(!said.contains("3.3.2.9 "), "{said}");
}
