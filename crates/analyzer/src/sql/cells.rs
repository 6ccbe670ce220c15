//! The table `cells`: the results of a comparison, one row per store and point.

use duckdb::{Connection, params};
use schemas::comparison::{Cell, ComparisonDocument, Measurement, Outcome};
use schemas::verdict::{ConditionFigures, Rating};

/// The statement that makes the table.
pub(super) const DEFINITION: &str = include_str!("cells.sql");

/// Creates the table and fills it.
pub(super) fn fill(connection: &Connection, document: &ComparisonDocument) -> Result<(), duckdb::Error> {
    connection.execute_batch(DEFINITION)?;
    let mut insert = connection.prepare(
        "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
         ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for Cell { point, store, run, workload_id, outcome, .. } in &document.cells {
        let (name, ratings, measured, error) = match outcome {
            Outcome::Missing => ("missing", [None; 3], None, None),
            Outcome::Rated { soar, socialites, rate } => {
                ("rated", [soar, socialites, rate].map(Option::as_ref), None, None)
            }
            Outcome::Measured(measured) => ("measured", [None; 3], Some(measured), None),
            Outcome::Failed(message) => ("failed", [None; 3], None, Some(message)),
        };
        let [soar, socialites, rate] = ratings;
        // If every experiment was void there is no value: null, not 0.
        let rated = |rating: Option<&Rating>| rating.filter(|rating| !rating.unmeasured).cloned();
        let value = |rating: Option<&Rating>| rated(rating).map(|rating| rating.value);
        let low = |rating: Option<&Rating>| rating.and_then(|rating| rating.interval.as_ref()).map(|i| i.low);
        let high = |rating: Option<&Rating>| rating.and_then(|rating| rating.interval.as_ref()).map(|i| i.high);
        let at_least = |rating: Option<&Rating>| rated(rating).map(|rating| rating.at_least);
        let confirmed_by = |rating: Option<&Rating>| rating.and_then(|rating| rating.confirmed_by);
        let void = |rating: Option<&Rating>| rating.and_then(|rating| rating.rests_on_void.clone());
        // An experiment in which nothing ran has no figures.
        let ran = measured.filter(|measured| measured.reads > 0 || measured.throughput_per_s > 0.0);
        let counted = measured.and_then(|measured| measured.headline.as_ref());
        insert.execute(params![
            point,
            store,
            run,
            workload_id,
            name,
            value(soar),
            low(soar),
            high(soar),
            rated(soar).map(|soar| soar.threads),
            at_least(soar),
            confirmed_by(soar),
            void(soar),
            value(socialites),
            low(socialites),
            high(socialites),
            at_least(socialites),
            confirmed_by(socialites),
            void(socialites),
            value(rate),
            low(rate),
            high(rate),
            rated(rate).map(|rate| rate.threads),
            at_least(rate),
            confirmed_by(rate),
            void(rate),
            measured.map(|measured| measured.threads),
            ran.map(|measured| measured.throughput_per_s),
            ran.map(|measured| measured.within_beta_percent),
            ran.and_then(|measured| measured.p95_ns),
            ran.and_then(|measured| measured.gamma_p95_ns),
            measured.map(|measured| measured.reads),
            measured.map(|measured| measured.unpredictable_reads),
            measured.and_then(Measurement::unpredictable_percent),
            measured.and_then(|measured| measured.anomaly_score),
            measured.and_then(|measured| measured.response_ns_p95),
            measured.and_then(|measured| measured.service_ns_p95),
            counted.map(|counted| &counted.name),
            counted.map(|counted| counted.per_minute),
            measured.and_then(|measured| measured.conditions.as_ref()).and_then(ConditionFigures::broken_names),
            measured.map(|measured| measured.ruling.name()),
            error,
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use duckdb::types::Value;
    use schemas::comparison::ComparisonFolder;

    use crate::sql::Database;

    /// A cell of each outcome, and an experiment in which nothing ran.
    const DOCUMENT: &str = r#"{
      "format_version": 2, "encore_version": "0.1.0", "name": "n", "started_unix_s": 1, "state": "running",
      "plan": {
        "name": "n", "title": "t", "spec": "w.toml", "rating": "soar", "between": "load",
        "axis": {"label": "size", "points": [{"label": "a"}]}, "stores": [{"label": "one", "url": "memory:"}]
      },
      "host": {"name": "h", "system": "linux x86_64", "cpus": 2}, "command": ["coord"], "differences": [],
      "cells": [
        {"point": "a", "store": "one", "run": "a-one", "workload_id": "w", "store_settings": {},
         "outcome": {"rated": {"soar": {"value": 5.5, "threads": 2, "interval": {"low": 5.0, "high": 6.0, "basis": "b"},
           "at_least": true, "confirmed_by": 3, "rests_on": [3], "rests_on_void": null, "notes": []}, "socialites": null}}},
        {"point": "b", "store": "one", "run": "b", "workload_id": "w", "store_settings": {}, "outcome": "missing"},
        {"point": "c", "store": "one", "run": "c", "workload_id": "w", "store_settings": {}, "outcome": {"failed": "no room"}},
        {"point": "d", "store": "one", "run": "d", "workload_id": "w", "store_settings": {},
         "outcome": {"measured": {"threads": 4, "throughput_per_s": 9.0, "within_beta_percent": 50.0, "reads": 200,
           "unpredictable_reads": 1, "response_ns_p95": 1200000000, "service_ns_p95": 900000,
           "headline": {"name": "tpmC", "per_minute": 12.5},
           "conditions": {"checked": 2, "holds": 1, "took_ns": 1,
             "broken": [{"name": "3.3.2.1", "title": "T", "violations": 4}]},
           "ruling": "fail", "reasons": []}}},
        {"point": "e", "store": "one", "run": "e", "workload_id": "w", "store_settings": {},
         "outcome": {"measured": {"threads": 4, "throughput_per_s": 0.0, "within_beta_percent": 0.0, "reads": 0,
           "unpredictable_reads": 0, "ruling": "void", "reasons": []}}},
        {"point": "f", "store": "one", "run": "f", "workload_id": "w", "store_settings": {},
         "outcome": {"rated": {"soar": {"value": 0.0, "threads": 0, "interval": null, "at_least": false, "unmeasured": true,
           "confirmed_by": null, "rests_on": [], "rests_on_void": "too slow", "notes": []}, "socialites": null}}},
        {"point": "g", "store": "one", "run": "g", "workload_id": "w", "store_settings": {},
         "outcome": {"rated": {"soar": null, "socialites": null,
           "rate": {"value": 440.0, "threads": 16, "interval": {"low": 440.0, "high": 460.0, "basis": "b"},
           "at_least": false, "confirmed_by": 9, "rests_on": [9], "rests_on_void": null, "notes": []}}}}
      ]
    }"#;

    #[test]
    fn every_outcome_is_a_row_and_what_is_not_there_is_null() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("comparison.json"), DOCUMENT).unwrap();
        let database = Database::of_comparison(&ComparisonFolder::new(folder.path()), None).unwrap();
        let check = |columns: &str, point: &str, expect: &[Value]| {
            let answer = database.query(&format!("SELECT {columns} FROM cells WHERE point = '{point}'")).unwrap();
            assert_eq!(answer.rows, [expect], "{columns} of {point}");
        };
        let text = |text: &str| Value::Text(text.into());
        let double = Value::Double;
        check("outcome, soar, soar_low, soar_high", "a", &[text("rated"), double(5.5), double(5.0), double(6.0)]);
        check(
            "soar_threads, soar_at_least, soar_confirmed_by, soar_void, socialites",
            "a",
            &[Value::UInt(2), Value::Boolean(true), Value::UInt(3), Value::Null, Value::Null],
        );
        check("rate, rate_threads, soar_threads", "a", &[Value::Null, Value::Null, Value::UInt(2)]);
        check("outcome, rate, rate_low, rate_high", "g", &[text("rated"), double(440.0), double(440.0), double(460.0)]);
        check(
            "rate_threads, rate_at_least, rate_confirmed_by, rate_void, soar",
            "g",
            &[Value::UInt(16), Value::Boolean(false), Value::UInt(9), Value::Null, Value::Null],
        );
        check("outcome, soar, error", "b", &[text("missing"), Value::Null, Value::Null]);
        check("outcome, error", "c", &[text("failed"), text("no room")]);
        check(
            "outcome, throughput_per_s, within_beta_percent, unpredictable_percent, ruling",
            "d",
            &[text("measured"), double(9.0), double(50.0), double(0.5), text("fail")],
        );
        check("response_ns_p95, service_ns_p95", "d", &[Value::UBigInt(1_200_000_000), Value::UBigInt(900_000)]);
        check("counted_name, counted_per_minute", "d", &[text("tpmC"), double(12.5)]);
        check("conditions_broken", "d", &[text("3.3.2.1")]);
        check("counted_name, counted_per_minute, conditions_broken", "e", &[Value::Null, Value::Null, Value::Null]);
        check("response_ns_p95, service_ns_p95", "e", &[Value::Null, Value::Null]);
        check("throughput_per_s, unpredictable_percent, ruling", "e", &[Value::Null, Value::Null, text("void")]);
        check(
            "soar, soar_threads, soar_at_least, soar_void",
            "f",
            &[Value::Null, Value::Null, Value::Null, text("too slow")],
        );
    }
}
