//! `live.jsonl`: what a running experiment shows, one JSON object a line and about one line a second. It is for
//! viewers only: no figure of a result comes from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::verdict::Ruling;

/// A line of `live.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveLine {
    /// When it was written, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The number of the experiment.
    pub experiment: u32,
    /// Its load: `T=64`, `500 sessions/s`.
    pub load: String,
    /// The phase of the rating, and why it runs this load; empty outside of a rating.
    pub why: String,
    /// Its planned time in seconds, if it has one.
    pub planned_s: Option<f64>,
    /// What happens.
    #[serde(flatten)]
    pub event: LiveEvent,
}

/// What happens in an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum LiveEvent {
    /// The trace set is being sent to replayers: bytes.
    Sending {
        /// So far.
        done: u64,
        /// In all.
        total: u64,
    },
    /// The store is brought to its initial state: rows.
    Loading {
        /// So far.
        done: u64,
        /// In all.
        total: u64,
    },
    /// The experiment runs.
    Running(LiveFigures),
    /// Every item is being read after the experiment: items.
    Closing {
        /// So far.
        done: u64,
        /// At least so many.
        total: u64,
    },
    /// The logs are being fetched.
    Collecting,
    /// The log is being validated.
    Validating,
    /// The experiment has its verdict.
    Ended(LiveVerdict),
}

/// The figures of a running experiment. Times and rates are of the time since the last line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LiveFigures {
    /// Whether this is the warm-up. The measured part counts from 0 again.
    pub is_warmup: bool,
    /// Seconds since the part began.
    pub elapsed_s: f64,
    /// Successful operations a second.
    pub ok_per_s: f64,
    /// Operations a second that are due, on average; none in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_per_s: Option<f64>,
    /// Operations that failed, are of unknown fate or were not issued, since the part began.
    pub errors: u64,
    /// Operations of transactions that were rolled back, since the part began.
    pub aborted: u64,
    /// Median of the response times, in nanoseconds.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
    /// 99th percentile of the service times; none in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_p99_ns: Option<u64>,
    /// Share of the operations that succeeded within the SLA's limit, in percent; none if none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_percent: Option<f64>,
    /// Each replayer.
    pub replayers: Vec<LiveReplayer>,
    /// What the store has counted itself since the experiment began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub store_counters: BTreeMap<String, u64>,
}

/// What a replayer reports of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LiveReplayer {
    /// Its name.
    pub name: String,
    /// Successful operations a second since the part began.
    pub ok_per_s: f64,
    /// 99th percentile of its response times since the part began, in nanoseconds.
    pub p99_ns: u64,
    /// Processors that its process uses.
    pub cpus_used: f64,
    /// How late a worker has taken up work at most, in nanoseconds.
    pub lag_ns_max: u64,
}

/// What came of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveVerdict {
    /// T.
    pub threads: u32,
    /// The arrival rate, in sessions a second, in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Whether it confirms a rating.
    pub is_final: bool,
    /// Pass, fail or void.
    pub ruling: Ruling,
    /// Why it is not a pass.
    pub reasons: Vec<String>,
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// 95th percentile of the response times, in nanoseconds.
    pub p95_ns: u64,
    /// Share of the operations within the SLA's limit, in percent.
    pub within_percent: f64,
    /// Reads that returned what no correct store could have returned.
    pub unpredictable_reads: u64,
    /// Their share of all reads, in percent.
    pub unpredictable_percent: f64,
    /// What the store has counted itself.
    pub store_counters: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        let line = LiveLine {
            unix_ms: 5,
            experiment: 2,
            load: "T=8".into(),
            why: String::new(),
            planned_s: Some(1.5),
            event: LiveEvent::Loading { done: 3, total: 9 },
        };
        let text = serde_json::to_string(&line).unwrap();
        let expect = r#"{"unix_ms":5,"experiment":2,"load":"T=8","why":"","planned_s":1.5,"stage":"loading","done":3,"total":9}"#;
        assert_eq!(text, expect);
        assert_eq!(serde_json::from_str::<LiveLine>(&text).unwrap(), line);
        let running = LiveLine { event: LiveEvent::Running(LiveFigures::default()), ..line };
        let text = serde_json::to_string(&running).unwrap();
        assert_eq!(serde_json::from_str::<LiveLine>(&text).unwrap(), running);
    }
}
