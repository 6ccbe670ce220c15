//! The result of a comparison, and the folder that holds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::ComparisonPlan;
use crate::run::{COMPARISON, Host, RunState};
use crate::verdict::{ConditionFigures, Figures, OperationFigures, Rating, Ruling, TransactionFigures, Verdict};

/// The paths of a comparison's folder.
///
/// ```text
/// comparison.json      ComparisonDocument
/// comparison.md        the table, with notes
/// comparison.svg       the chart
/// transactions.svg     what transactions cost, if stores were measured with and without them
/// comparison.html      the whole comparison as a page
/// POINT-STORE/         run::RunFolder of a cell
/// ```
#[derive(Debug, Clone)]
pub struct ComparisonFolder {
    root: PathBuf,
}

impl ComparisonFolder {
    /// The comparison in a folder, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> ComparisonFolder {
        ComparisonFolder { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `comparison.json`.
    pub fn document(&self) -> PathBuf {
        self.root.join(COMPARISON)
    }

    /// `comparison.md`.
    pub fn table(&self) -> PathBuf {
        self.root.join("comparison.md")
    }

    /// `transactions.svg`.
    pub fn chart_of_transactions(&self) -> PathBuf {
        self.root.join("transactions.svg")
    }

    /// `comparison.svg`.
    pub fn chart(&self) -> PathBuf {
        self.root.join("comparison.svg")
    }

    /// `comparison.html`.
    pub fn page(&self) -> PathBuf {
        self.root.join("comparison.html")
    }
}

/// `comparison.json`: what was compared, and the results so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The version of Encore.
    pub encore_version: String,
    /// The comparison's name.
    pub name: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Whether it is running, complete, interrupted or failed.
    pub state: RunState,
    /// The plan as it was carried out: with the values from the command line, and without
    /// secrets.
    pub plan: ComparisonPlan,
    /// The machine.
    pub host: Host,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// Every cell, point by point, and in each point store by store.
    pub cells: Vec<Cell>,
    /// Settings in which the stores differ, as far as they are known.
    pub differences: Vec<SettingDifference>,
}

/// One store at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The point's label; empty without an axis.
    pub point: String,
    /// The store's label.
    pub store: String,
    /// The name of its run folder in the comparison's folder.
    pub run: String,
    /// The workload, which all stores of a point share.
    pub workload_id: String,
    /// The result.
    pub outcome: Outcome,
    /// The settings in effect, as the store itself reports them.
    pub store_settings: BTreeMap<String, String>,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not been rated or measured yet.
    Missing,
    /// It was rated; a rating that was not requested is null.
    Rated {
        /// Highest throughput that meets the SLA, in operations a second.
        soar: Option<Rating>,
        /// Highest number of threads that meets the SLA.
        socialites: Option<Rating>,
        /// Highest arrival rate that meets the SLA, in sessions a second. Absent in a rating by threads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<Rating>,
    },
    /// It was measured with one experiment.
    Measured(Measurement),
    /// Its rating or its experiment ended with this error.
    Failed(String),
}

/// The figures of one experiment, from its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// T.
    pub threads: u32,
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Share of the operations that succeeded within β, in percent.
    pub within_beta_percent: f64,
    /// The 95th percentile of the response times of successful operations. None if nothing succeeded, and in
    /// documents from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ns: Option<u64>,
    /// The 95th percentile of Γ of the values that were written, where they are registers. None if none was
    /// written, and in documents from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma_p95_ns: Option<u64>,
    /// Reads that were answered.
    pub reads: u64,
    /// Those of them that returned data that no correct store could have returned.
    pub unpredictable_reads: u64,
    /// How far the sum of all money is off, a transaction. None if no closing read tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomaly_score: Option<f64>,
    /// The figure that the benchmark is known by, such as tpmC. None if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Counted>,
    /// What became of the conditions that the data keep. None if the trace set has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<ConditionFigures>,
    /// 95th percentile of the response times, from the due time of the session. None in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns_p95: Option<u64>,
    /// 95th percentile of the service times. None in a closed loop, where they are the response times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns_p95: Option<u64>,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why it is not a pass.
    pub reasons: Vec<String>,
    /// What became of its transactions. None if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionFigures>,
    /// Response times of operations by their names. Empty unless there were transactions, whose cost
    /// they show.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub by_operation: IndexMap<String, OperationTimes>,
}

/// How many sessions of the kind that a benchmark is known by were committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The figure's name, such as `tpmC`.
    pub name: String,
    /// So many a minute.
    pub per_minute: f64,
}

/// Response times of the operations of one name that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationTimes {
    /// How many.
    pub ok: u64,
    /// Mean.
    pub mean_ns: f64,
    /// 95th percentile.
    pub p95_ns: u64,
}

impl Measurement {
    /// The share of unpredictable reads, in percent; None without reads.
    pub fn unpredictable_percent(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.unpredictable_reads as f64 * 100.0 / self.reads as f64)
    }
}

impl From<&Verdict> for Measurement {
    fn from(verdict: &Verdict) -> Measurement {
        Measurement {
            threads: verdict.threads,
            throughput_per_s: verdict.figures.throughput_per_s,
            within_beta_percent: verdict.figures.within_beta_percent,
            p95_ns: Some(verdict.figures.overall.p95_ns).filter(|_| verdict.figures.overall.ok > 0),
            gamma_p95_ns: verdict.figures.consistency.as_ref().map(|found| found.value_gamma_ns.p95),
            reads: verdict.figures.reads,
            unpredictable_reads: verdict.figures.unpredictable_reads,
            anomaly_score: verdict.figures.sum.as_ref().and_then(|sum| sum.score),
            headline: counted(&verdict.figures),
            conditions: verdict.figures.conditions.clone(),
            response_ns_p95: verdict.figures.overall.service.map(|_| verdict.figures.overall.p95_ns),
            service_ns_p95: verdict.figures.overall.service.map(|service| service.p95_ns),
            ruling: verdict.ruling,
            reasons: verdict.reasons.clone(),
            transactions: verdict.figures.transactions,
            by_operation: match verdict.figures.transactions {
                None => IndexMap::new(),
                Some(_) => verdict.figures.by_operation.iter().map(times).collect(),
            },
        }
    }
}

fn counted(figures: &Figures) -> Option<Counted> {
    let headline = figures.headline.as_ref()?;
    let own = figures.by_session.get(&headline.kind)?;
    Some(Counted { name: headline.name.clone(), per_minute: own.per_minute })
}

fn times((name, figures): (&String, &OperationFigures)) -> (String, OperationTimes) {
    let OperationFigures { ok, mean_ns, p95_ns, .. } = *figures;
    (name.clone(), OperationTimes { ok, mean_ns, p95_ns })
}

/// A setting in which the stores differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDifference {
    /// The setting's name.
    pub setting: String,
    /// What it decides.
    pub concern: Concern,
    /// Its value by the store's label. Stores that do not report the setting are omitted.
    pub values: BTreeMap<String, String>,
}

/// What a setting decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// What survives a crash.
    Durability,
    /// What transactions see of each other.
    Isolation,
    /// Anything else, such as the design.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Question, Wanted};
    use crate::verdict::{Headline, ServiceTimes, SessionFigures};

    /// A `comparison.json` from before comparisons could measure. `rating` is always present;
    /// `measure`, `threads` and measured outcomes do not exist.
    const BEFORE_MEASURING: &str = r#"{
      "format_version": 2, "encore_version": "0.1.0", "name": "n", "started_unix_s": 1, "state": "complete",
      "plan": {
        "name": "n", "title": "t", "spec": "w.toml", "sla": "95% < 100ms, 0.1% unpredictable, 10s",
        "search_s": [2.0], "between": "load", "rating": "soar",
        "axis": {"label": "size", "points": [{"label": "a", "set": ["data.members=9"]}]},
        "stores": [{"label": "one", "url": "memory:"}, {"label": "two", "url": "sqlite:"}]
      },
      "host": {"name": "h", "system": "linux x86_64", "cpus": 2},
      "command": ["coord", "compare", "n.toml"],
      "cells": [
        {"point": "a", "store": "one", "run": "a-one", "workload_id": "w", "store_settings": {"synchronous": "full"},
         "outcome": {"rated": {"soar": {"value": 5.0, "threads": 2, "interval": null, "at_least": false,
           "confirmed_by": 3, "rests_on": [3], "rests_on_void": null, "notes": []}, "socialites": null}}},
        {"point": "a", "store": "two", "run": "a-two", "workload_id": "w", "store_settings": {}, "outcome": "missing"}
      ],
      "differences": [{"setting": "synchronous", "concern": "durability", "values": {"one": "full"}}]
    }"#;

    #[test]
    fn documents_from_before_measuring_are_read_and_written_the_same() {
        let document: ComparisonDocument = serde_json::from_str(BEFORE_MEASURING).unwrap();
        assert_eq!(document.plan.question(), Question::Rate(Wanted::Soar));
        assert!(matches!(&document.cells[0].outcome, Outcome::Rated { soar: Some(soar), .. } if soar.value == 5.0));
        let before: serde_json::Value = serde_json::from_str(BEFORE_MEASURING).unwrap();
        assert_eq!(serde_json::to_value(&document).unwrap(), before);
    }

    #[test]
    fn a_measurement_is_what_the_verdict_says() {
        let verdict = Verdict {
            format_version: crate::RUN_FORMAT_VERSION,
            experiment: 1,
            threads: 10,
            rate_per_s: None,
            sla: Default::default(),
            ruling: Ruling::Fail,
            reasons: vec!["because".into()],
            figures: crate::verdict::Figures { reads: 400, unpredictable_reads: 1, ..Default::default() },
            replayers: Vec::new(),
            sealed: Vec::new(),
        };
        let measured = Measurement::from(&verdict);
        assert_eq!(
            (measured.threads, measured.ruling, measured.unpredictable_percent()),
            (10, Ruling::Fail, Some(0.25))
        );
        assert_eq!((measured.response_ns_p95, measured.service_ns_p95), (None, None), "a closed loop");
        let mut open = verdict.clone();
        open.figures.overall.p95_ns = 9;
        open.figures.overall.service = Some(ServiceTimes { p95_ns: 4, ..Default::default() });
        let open = Measurement::from(&open);
        assert_eq!((open.response_ns_p95, open.service_ns_p95), (Some(9), Some(4)));
        let mut counted = verdict.clone();
        counted.figures.headline = Some(Headline { name: "tpmC".into(), kind: "new-order".into() });
        assert_eq!(Measurement::from(&counted).headline, None, "no session of the kind");
        let own = SessionFigures { per_minute: 7.5, ..SessionFigures::default() };
        counted.figures.by_session.insert("new-order".into(), own);
        assert_eq!(Measurement::from(&counted).headline, Some(Counted { name: "tpmC".into(), per_minute: 7.5 }));
        assert_eq!(Measurement { reads: 0, ..measured.clone() }.unpredictable_percent(), None);
        let json = serde_json::to_value(Outcome::Measured(measured)).unwrap();
        assert_eq!(
            (&json["measured"]["ruling"], &json["measured"]["unpredictable_reads"]),
            (&"fail".into(), &1.into())
        );
    }
}
