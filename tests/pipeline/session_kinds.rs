//! Figures by kind of session: how they ended and how long they took; SQL gives the same.

use serde_json::Value as Json;

use crate::conditions::{Conditions, replay, verdict, workplace};
use crate::key_value::ask;
use crate::support::Workplace;

#[test]
fn sessions_are_counted_by_their_kinds_and_sql_gives_the_same() {
    let place = workplace(Conditions::Kept);
    let postgres = servers::postgres().map(|server| server.url(&format!("encore_kinds_{}", std::process::id())));
    let stores = ["sqlite:bank.db?synchronous=off".to_string()].into_iter().chain(postgres);
    for (number, store) in stores.enumerate() {
        let run = format!("run-{number}");
        replay(&place, &store, &run);
        let found = verdict(&place, &run)["figures"]["by_session"].clone();
        let expect = [("refused", [10, 0, 10]), ("transfer", [30, 30, 0])];
        for (kind, counts) in expect {
            let own = &found[kind];
            assert_eq!(
                ["sessions", "committed", "rolled_back"].map(|name| own[name].as_i64().unwrap()),
                counts,
                "{own}"
            );
            assert_eq!(
                ["aborted", "failed", "unknown", "skipped"].map(|name| own[name].as_i64()),
                [Some(0); 4],
                "{own}"
            );
            let columns = "sessions, committed, rolled_back, aborted, failed, unknown, skipped, per_minute, share_percent, \
                           p50_ns, p90_ns, max_ns, headline IS NULL";
            let sql = format!("SELECT {columns} FROM session_kinds WHERE kind = '{kind}'");
            let row = ask(&place, &run, &sql);
            let values: Vec<&str> = row.split(',').collect();
            for (name, value) in columns.split(", ").zip(&values).take(12) {
                let (found, value) = (own[name].as_f64().expect(name), value.parse::<f64>().expect("a number"));
                // Percentiles of a verdict are rounded to three significant digits.
                assert!((found - value).abs() <= 0.001 * value.abs(), "{store} {kind} {name}: {found} and {value}");
            }
            assert_eq!(values[12], "true");
        }
        assert_eq!(found["transfer"]["share_percent"], Json::from(75.0));
        let summary = place.run(&["analyze", "summary", &run]).ends();
        let rows: Vec<&str> = summary.lines().skip_while(|line| !line.starts_with(" session ")).collect();
        assert!(
            rows[0].contains("committed  a minute  % of mix  rolled back") && rows[2].contains("25.00"),
            "{summary}"
        );
        assert!(rows[3].starts_with(" transfer") && rows[3].contains("75.00"), "{summary}");
    }
    place.run(&["analyze", "report", "run-0"]).succeeds();
    let page = std::fs::read_to_string(place.path("run-0/report.html")).expect("a page");
    assert!(page.contains(">Sessions</h2>") && page.contains("FROM session_kinds"), "the page lacks the sessions");
}

/// Without transactions each operation counts by itself, so what the trace wants rolled back is committed.
#[test]
fn sessions_without_transactions_are_not_rolled_back() {
    let place = workplace(Conditions::Kept);
    let run = ["replay", "run", "--trace", "bank.trace", "--threads", "1", "--load", "--transactions", "off"];
    place.run(&[&run[..], &["--store", "sqlite:bank.db?synchronous=off", "-o", "off"]].concat()).succeeds();
    let found = verdict(&place, "off")["figures"]["by_session"]["refused"].clone();
    assert_eq!((&found["committed"], &found["rolled_back"]), (&10.into(), &0.into()), "{found}");
    assert_eq!(ask(&place, "off", "SELECT committed, rolled_back FROM session_kinds WHERE kind = 'refused'"), "10,0");
}

/// TPC-C, scaled down, with too few payments. The other kinds are far from their lowest shares, so that a short experiment
/// does not miss them by chance.
const ORDERS: &str = "name = 'orders'\nfamily = 'tpcc'\nsessions = 20000\n[data]\nitems = 200\ncustomers = 30\n\
                      [mix]\nnew_order = 45\npayment = 25\norder_status = 10\ndelivery = 10\nstock_level = 10\n";

#[test]
fn a_rating_of_tpcc_ends_with_its_headline_and_its_conditions() {
    let place = Workplace::alone();
    std::fs::write(place.path("orders.toml"), ORDERS).expect("a specification");
    let rate = ["rate", "orders.toml", "--store", "sqlite:orders.db?synchronous=off", "--max-threads", "2"];
    let few = ["--search-s", "0.3", "--sla", "1% < 10s, 100% unpredictable, 1s"];
    let said = place.measures("r", &[&rate[..], &few].concat()).ends();
    let (before, after) = said.split_once("SoAR ").unwrap_or_default();
    assert!(!before.contains("tpmC ") && after.contains(": tpmC "), "{said}");
    assert!(
        after.contains("(committed new_order sessions a minute); 1 constraint of the benchmark is missed"),
        "{said}"
    );
    assert!(after.contains(": 12 of 12 conditions hold"), "{said}");
    assert!(said.contains("after the load, 12 of 12 conditions hold"), "{said}");
    // After every experiment, also those of the search.
    let sql = "SELECT count(DISTINCT experiment) = (SELECT count(*) FROM experiments), count(*) FILTER (outcome = 'holds') \
               = 12 * count(DISTINCT experiment) FROM checks";
    assert_eq!(ask(&place, "runs/r", sql), "true,true", "{said}");
    let summary = place.run(&["analyze", "summary", "runs/r"]).ends();
    assert!(summary.contains("% of the sessions are payment, and at least 43% are required"), "{summary}");
    assert!(summary.contains("stock_level") && summary.contains("20s pass"), "{summary}");
}
