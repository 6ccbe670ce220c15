//! Runs each tool alone, one after the other, as its help describes.

use crate::support::Workplace;

#[test]
fn the_tools_work_alone_and_after_each_other() {
    let place = Workplace::new();
    place.run(&["trace", "gen", "busy.toml"]).succeeds();
    let shown = place.run(&["trace", "show", "busy.trace"]).succeeds();
    assert!(shown.contains("invite_friend") && shown.contains("120"), "{shown}");
    place.run(&["trace", "verify", "busy.trace"]).succeeds();
    place.run(&["replay", "load", "--trace", "busy.trace", "--store", "sqlite:s.db"]).succeeds();
    let ran = place.run(&[
        "replay",
        "run",
        "--trace",
        "busy.trace",
        "--store",
        "sqlite:s.db",
        "--threads",
        "4",
        "--sessions",
        "2000",
        "-o",
        "runs/one",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&ran.succeeds()).expect("one JSON object");
    assert_eq!((report["sessions"].as_u64(), report["ok"].as_u64()), (Some(2000), Some(2000)), "{report}");
    assert_eq!(report["store_settings"]["synchronous"], "full");

    let summary = place.run(&["analyze", "summary", "runs/one", "--sla", "95% < 10s"]).ends();
    for operation in ["view_profile", "delete_comment"] {
        assert!(summary.contains(operation), "{summary}");
    }
    let valid = place.run(&["analyze", "validate", "runs/one"]).succeeds();
    assert!(valid.contains("reads checked, 0 unpredictable"), "{valid}");
    let rows = place.run(&["analyze", "sql", "runs/one", "SELECT count(*) AS n FROM operations", "--format", "csv"]);
    assert_eq!(rows.succeeds().trim(), "n\n2000");
    let by_fragment = "SELECT fragment, count(DISTINCT session) AS n FROM operations GROUP BY 1 ORDER BY 1";
    let rows = place.run(&["analyze", "sql", "runs/one", by_fragment, "--format", "json"]).succeeds();
    let rows: serde_json::Value = serde_json::from_str(&rows).expect("a JSON array");
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
}

/// Users export all rows, so an export must not take a statement for each value.
#[test]
fn all_rows_can_be_exported() {
    let place = Workplace::with_trace();
    place.run(&["trace", "gen", "busy.toml", "-o", "long.trace", "--sessions", "100000"]).succeeds();
    place.run(&["replay", "run", "--trace", "long.trace", "--store", "memory:", "-T", "4", "-o", "r"]).succeeds();
    for format in ["csv", "json"] {
        let text = place.run(&["analyze", "sql", "r", "SELECT * FROM operations", "--format", format]).succeeds();
        let rows = text.matches(if format == "csv" { "\n" } else { "\"session\"" }).count();
        assert_eq!(rows, if format == "csv" { 100_001 } else { 100_000 }, "{format}");
    }
}

/// SQL on the raw rows gives every figure of a summary again.
#[test]
fn the_summary_agrees_with_sql() {
    let place = Workplace::with_trace();
    place
        .run(&[
            "replay",
            "run",
            "--trace",
            "busy.trace",
            "--store",
            "memory:?latency_us=500&error=0.002",
            "-T",
            "16",
            "-o",
            "r",
        ])
        .succeeds();
    let summary = place.run(&["analyze", "summary", "r", "--json"]);
    let text = summary.stdout();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let verdict = find_figures(&summary).unwrap_or_else(|| panic!("no figures in {summary}"));
    let sql = "SELECT count(*) FILTER (outcome = 'ok') AS ok, count(*) FILTER (outcome = 'failed') AS failed, \
               count(*) FILTER (outcome = 'skipped') AS skipped, \
               quantile_disc(response_ns, 0.95) FILTER (outcome = 'ok') AS p95, \
               max(response_ns) FILTER (outcome = 'ok') AS longest FROM operations";
    let rows = place.run(&["analyze", "sql", "r", sql, "--format", "json"]).succeeds();
    let rows: serde_json::Value = serde_json::from_str(&rows).expect("a JSON array");
    for (name, column) in [("ok", "ok"), ("failed", "failed"), ("skipped", "skipped")] {
        assert_eq!(verdict["overall"][name], rows[0][column], "{name}");
    }
    assert!(rows[0]["failed"].as_u64() > Some(0), "no operation failed: the test proves nothing");
    for (name, column) in [("p95_ns", "p95"), ("max_ns", "longest")] {
        let (a, b) = (verdict["overall"][name].as_f64().expect(name), rows[0][column].as_f64().expect(column));
        assert!((a - b).abs() <= b * 0.002, "{name}: {a} by histogram, {b} by SQL");
    }
}

/// Finds the figures in the document.
fn find_figures(value: &serde_json::Value) -> Option<&serde_json::Value> {
    match value {
        serde_json::Value::Object(map) if map.contains_key("overall") => Some(value),
        serde_json::Value::Object(map) => map.values().find_map(find_figures),
        serde_json::Value::Array(items) => items.iter().find_map(find_figures),
        _ => None,
    }
}
