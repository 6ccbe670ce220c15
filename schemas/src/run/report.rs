//! The report of a replayer at the end of an experiment (`replay.json`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::Host;
use crate::pacing::Pacing;
use crate::position::FragmentPosition;

/// `replay.json`: a replayer's report of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// Why it ended.
    pub end: EndReason,
    /// When the warm-up ended and the measured part began, from the start; 0 without warm-up.
    pub warmup_ns: u64,
    /// Operations of the warm-up, whatever their outcome. The counts below are of the measured
    /// part alone.
    pub warmup_operations: u64,
    /// From the beginning of the measured part to the end of its last operation.
    pub elapsed_ns: u64,
    /// The time that rates are measured over: the planned time, or all of `elapsed_ns` if no time
    /// was planned or the experiment ended early.
    pub counted_ns: u64,
    /// Operations that succeeded and ended within `counted_ns`.
    pub ok_counted: u64,
    /// Operations that started after the planned time: later steps of sessions that were under
    /// way. They are in none of the counts below and in no figure.
    pub drained_operations: u64,
    /// Sessions that ended, over all fragments.
    pub sessions: u64,
    /// The position of each fragment: which sessions have been run.
    pub positions: Vec<FragmentPosition>,
    /// Operations by outcome.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Writes of unknown fate.
    pub unknown: u64,
    /// Operations not issued.
    pub skipped: u64,
    /// Operations of transactions that the store, or the replayer after an error, has rolled back.
    #[serde(default)]
    pub aborted: u64,
    /// Begins, commits and aborts of transactions, whatever became of them. No other count has them.
    #[serde(default)]
    pub of_transactions: u64,
    /// CPU time over wall time of the busiest worker thread, 0 to 1.
    pub worker_cpu_share: f64,
    /// The scheduling delay: how late a worker notices that an event has happened. The worker
    /// measures it with a kernel timer, which it waits for as it waits for answers. This is the
    /// mean.
    pub dispatch_lag_ns_mean: f64,
    /// The 99th percentile of the scheduling delay.
    pub dispatch_lag_ns_p99: u64,
    /// The longest scheduling delay.
    pub dispatch_lag_ns_max: u64,
    /// Share of the measured part, 0 to 1, in which the most delayed worker thread was ready to
    /// run and waited for a processor. The kernel counts it; null where it does not.
    pub run_delay_share: Option<f64>,
    /// Time that threads were idle because every session that could come next belongs to a busy
    /// actor, summed over all threads.
    pub idle_ns: u64,
    /// Mean number of sessions under way in the measured part.
    pub sessions_in_flight: f64,
    /// Time that workers were blocked because the log could not be written fast enough.
    pub log_stall_ns: u64,
    /// Time that workers were blocked because the trace could not be read fast enough.
    pub trace_stall_ns: u64,
    /// The settings that the store itself reported when the experiment began.
    pub store_settings: BTreeMap<String, String>,
    /// The store's own counters for the experiment, warm-up included, such as cache hits and
    /// misses. Empty if the store counts nothing.
    #[serde(default)]
    pub store_counters: BTreeMap<String, u64>,
    /// Writes that did not succeed, warm-up included; one more if a cache could not be notified
    /// of some writes.
    #[serde(default)]
    pub writes_not_ok: u64,
    /// The [closing read](crate::plan::Plan::closing_read) that saw the state from which the
    /// experiment started, by its name. None if it started from a load, or there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<String>,
    /// How sessions kept their due times. None in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// What each replayer did; only a coordinator fills this in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayers: Vec<ReplayerReport>,
    /// Which replayers failed, and how. Any entry makes the experiment void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

impl ReplayReport {
    /// Successful operations a second: the one definition that all tools print.
    pub fn throughput_per_s(&self) -> f64 {
        if self.counted_ns == 0 { 0.0 } else { self.ok_counted as f64 * 1e9 / self.counted_ns as f64 }
    }
}

/// The report of a replay that ended at once, without operations and without errors.
impl Default for ReplayReport {
    fn default() -> ReplayReport {
        ReplayReport {
            format_version: crate::RUN_FORMAT_VERSION,
            end: EndReason::Limit,
            warmup_ns: 0,
            warmup_operations: 0,
            elapsed_ns: 0,
            counted_ns: 0,
            ok_counted: 0,
            drained_operations: 0,
            sessions: 0,
            positions: Vec::new(),
            ok: 0,
            failed: 0,
            unknown: 0,
            skipped: 0,
            aborted: 0,
            of_transactions: 0,
            worker_cpu_share: 0.0,
            dispatch_lag_ns_mean: 0.0,
            dispatch_lag_ns_p99: 0,
            dispatch_lag_ns_max: 0,
            run_delay_share: None,
            idle_ns: 0,
            sessions_in_flight: 0.0,
            log_stall_ns: 0,
            trace_stall_ns: 0,
            store_settings: BTreeMap::new(),
            store_counters: BTreeMap::new(),
            writes_not_ok: 0,
            began_with: None,
            pacing: None,
            replayers: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// One replayer's part in an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayerReport {
    /// Where the coordinator reached it, `HOST:PORT`.
    pub name: String,
    /// Its machine.
    pub host: Host,
    /// The fragments that it replayed.
    pub fragments: Vec<u32>,
    /// Its share of T.
    pub threads: u32,
    /// Its operations that succeeded.
    pub ok: u64,
    /// Its operations that did not succeed.
    pub errors: u64,
    /// CPU time over wall time of its busiest worker thread, 0 to 1.
    pub worker_cpu_share: f64,
    /// [`ReplayReport::dispatch_lag_ns_mean`].
    pub dispatch_lag_ns_mean: f64,
    /// [`ReplayReport::dispatch_lag_ns_p99`].
    pub dispatch_lag_ns_p99: u64,
    /// [`ReplayReport::run_delay_share`].
    pub run_delay_share: Option<f64>,
    /// [`ReplayReport::idle_ns`].
    pub idle_ns: u64,
    /// Whether a session had to queue on it, and the experiment ended on all replayers for that
    /// reason ([`EndReason::Overloaded`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overloaded: bool,
    /// Its clock before the experiment, and after it.
    pub clock: [ClockReading; 2],
}

/// How a replayer's clock differs from the coordinator's. No validation depends on it, as each
/// fragment belongs to one replayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockReading {
    /// The replayer's clock minus the coordinator's.
    pub offset_ns: i64,
    /// From the request to the answer. The error of the offset is at most half of this.
    pub round_trip_ns: i64,
}

/// Why an experiment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its time was over, or its sessions were done.
    Limit,
    /// The trace ran out before its time.
    TraceExhausted {
        /// How many sessions (over all fragments) would have been enough.
        sessions_needed: u64,
    },
    /// It was interrupted.
    Interrupted,
    /// A session had to queue, and the plan ends the experiment then
    /// ([`Overload::Stop`](crate::pace::Overload::Stop)).
    Overloaded,
}
