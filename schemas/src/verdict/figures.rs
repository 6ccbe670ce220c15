//! The figures of a verdict: counts, times and shares, over the whole and over time.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::anomalies::Anomalies;
use crate::words::{plural, thousands};

use super::conditions::ConditionFigures;
use super::consistency::ConsistencyFigures;
use super::rules::DrawRule;
use super::sessions::{Headline, SessionFigures};
use super::sum::SumFigures;

/// The figures of an experiment's measured part, over all its fragments. They cover the
/// operations that started in it. Operations in flight at the end of the planned time count for
/// all figures except the rates: without them the slowest answers would be missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// From the beginning of the measured part to the end of its last operation.
    pub elapsed_ns: u64,
    /// The time that rates are measured over: the planned time, or all of `elapsed_ns` if no time
    /// was planned or the experiment ended early.
    pub counted_ns: u64,
    /// Operations of the warm-up.
    pub warmup_operations: u64,
    /// Operations that started after the planned time, to end sessions that were under way. No
    /// other figure counts them.
    #[serde(default)]
    pub drained_operations: u64,
    /// Sessions with at least one row in the log.
    pub sessions: u64,
    /// BG's no-operations: sessions that were drawn and of which nothing could be done.
    pub noops: u64,
    /// All operations.
    pub overall: OperationFigures,
    /// Operations by their names, in the family's order.
    pub by_operation: IndexMap<String, OperationFigures>,
    /// Successful operations per second that ended within `counted_ns`.
    pub throughput_per_s: f64,
    /// Sessions per second whose first operation ended within `counted_ns`. As in BG,
    /// no-operations count as sessions.
    pub sessions_per_s: f64,
    /// Share of the operations (failed ones count, skipped ones do not) that
    /// succeeded within β.
    pub within_beta_percent: f64,
    /// Time spent in operations that failed or are of unknown fate, within the time that counts,
    /// summed over all threads. A few such operations take much time if each lasts until a time
    /// limit.
    #[serde(default)]
    pub error_ns: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Those of them that returned data that no correct store could have returned.
    pub unpredictable_reads: u64,
    /// The share of unpredictable reads among `reads`, in percent; 0 without reads.
    pub unpredictable_percent: f64,
    /// What is missing from the log of a killed replayer, one sentence per fragment.
    pub missing: Vec<String>,
    /// M: share of all operations that met both limits of the SLA, in percent. Null without
    /// operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_percent: Option<f64>,
    /// The measured part in slices of equal length.
    pub timeline: Timeline,
    /// How often reads see all completed updates, by the time since the last one.
    pub freshness: Vec<Freshness>,
    /// Transactions; null if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionFigures>,
    /// The anomalies of the transactions, warm-up included; null if there were none that were committed,
    /// rolled back or are of unknown fate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomalies: Option<Anomalies>,
    /// Consistency of the registers, warm-up writes included; null if the family has none, or if no register
    /// was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<ConsistencyFigures>,
    /// What the closing read found; null if none was planned. No other figure counts its reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<ClosingFigures>,
    /// The sum that every transaction keeps, by the closing read; null if the family has none, or if no
    /// closing read was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<SumFigures>,
    /// The conditions that the data keep; null if the trace set has none, or if no closing read was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<ConditionFigures>,
    /// Sessions by their kinds; empty if the vocabulary has no figures of them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub by_session: IndexMap<String, SessionFigures>,
    /// The figure that the benchmark is known by; null if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// What the benchmark asks of what the measured sessions have drawn; empty if it asks for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draw_rules: Vec<DrawRule>,
}

impl Figures {
    /// Whether the experiment left data that violate a condition, or whose condition could not be checked.
    pub fn breaks_conditions(&self) -> bool {
        self.conditions.as_ref().is_some_and(|conditions| !conditions.broken.is_empty())
    }
}

/// What became of the transactions of the measured part. All but the first two numbers count tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TransactionFigures {
    /// Transactions.
    pub transactions: u64,
    /// Begins, commits and aborts, whatever became of them. No other figure counts them.
    pub rows: u64,
    /// Tries of transactions.
    pub tries: u64,
    /// Those that were committed.
    pub committed: u64,
    /// Those that were aborted because the trace asks for it.
    pub aborts: u64,
    /// Those that the store rolled back because of others.
    pub aborted: u64,
    /// Those that an error ended.
    pub failed: u64,
    /// Those that may have been committed or not.
    pub unknown: u64,
    /// Those that were not begun.
    pub skipped: u64,
    /// Those that the store was not asked for: each operation was by itself.
    pub best_effort: u64,
}

impl TransactionFigures {
    /// Adds those of other fragments.
    pub fn merge(&mut self, other: &TransactionFigures) {
        self.transactions += other.transactions;
        self.rows += other.rows;
        self.tries += other.tries;
        self.committed += other.committed;
        self.aborts += other.aborts;
        self.aborted += other.aborted;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.best_effort += other.best_effort;
    }

    /// The figures in words.
    ///
    /// ```
    /// use schemas::verdict::TransactionFigures;
    /// let figures =
    ///     TransactionFigures { transactions: 1000, tries: 1250, committed: 1000, aborted: 250, ..Default::default() };
    /// assert_eq!(
    ///     figures.in_words(),
    ///     "1,000 transactions: 1,000 committed, 250 aborted (20% of the tries), 1.25 tries a transaction"
    /// );
    /// ```
    pub fn in_words(&self) -> String {
        let mut out = format!("{}: ", plural(self.transactions, "transaction"));
        if self.best_effort == self.tries {
            return out + "best effort, begin, commit and abort do nothing";
        }
        out += &format!("{} committed", thousands(self.committed));
        let tries = self.tries.max(1) as f64;
        let share = |count: u64| (count as f64 * 1000.0 / tries).round() / 10.0;
        out += &format!(", {} aborted ({}% of the tries)", thousands(self.aborted), share(self.aborted));
        let others = [
            ("aborted as the trace asks", self.aborts),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("skipped", self.skipped),
            ("best effort", self.best_effort),
        ];
        for (what, count) in others.into_iter().filter(|(_, count)| *count > 0) {
            out += &format!(", {} {what}", thousands(count));
        }
        let each = self.tries as f64 / self.transactions.max(1) as f64;
        out + &format!(", {} tries a transaction", (each * 1000.0).round() / 1000.0)
    }
}

/// What the closing read of an experiment found: every item was read once, after all operations had
/// ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClosingFigures {
    /// Items whose read was answered.
    pub items: u64,
    /// Items whose read failed: their final state is not known.
    pub failed: u64,
    /// Of the answered reads, those that returned data that no correct store could have returned.
    pub unpredictable: u64,
    /// What is missing of the closing read, one sentence per fragment.
    pub missing: Vec<String>,
}

impl ClosingFigures {
    /// The figures in words.
    ///
    /// ```
    /// use schemas::verdict::ClosingFigures;
    /// let closing = ClosingFigures { items: 1000, unpredictable: 3, ..ClosingFigures::default() };
    /// assert_eq!(closing.in_words(), "closing read: 1,000 items, 3 unpredictable");
    /// ```
    pub fn in_words(&self) -> String {
        let mut out = format!("closing read: {}, ", plural(self.items, "item"));
        out += &match self.unpredictable {
            0 => "none unpredictable".to_string(),
            count => format!("{} unpredictable", thousands(count)),
        };
        if self.failed > 0 {
            out += &format!(", {} failed", thousands(self.failed));
        }
        if !self.missing.is_empty() {
            out += ", incomplete";
        }
        out
    }

    /// Whether a user should look at it: an item is unpredictable or unknown, or some are missing.
    pub fn is_notable(&self) -> bool {
        self.unpredictable > 0 || self.failed > 0 || !self.missing.is_empty()
    }
}

/// The measured part of an experiment in slices of equal length.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// The length of a slice, in seconds.
    pub slice_s: f64,
    /// The slices in order, the first from the beginning of the measured part.
    /// The last one may not be full.
    pub slices: Vec<Slice>,
}

/// The operations that ended within one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, are of unknown fate or were skipped.
    pub errors: u64,
    /// Reads that returned data that no correct store could have returned.
    pub unpredictable: u64,
    /// Operations that met both limits: they succeeded within β and returned no unpredictable data.
    #[serde(default)]
    pub met: u64,
    /// Sessions whose first operation was issued, and ended in the slice.
    #[serde(default)]
    pub sessions: u64,
    /// Open loop: the mean arrival rate that was asked for, in sessions a second. Null in a closed
    /// loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_per_s: Option<f64>,
    /// Median response time of the successful operations.
    pub p50_ns: u64,
    /// 95th percentile of the response times.
    pub p95_ns: u64,
    /// 99th percentile of the response times.
    pub p99_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
    /// Open loop: service times of the successful operations. Null in a closed loop, where they are
    /// the response times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<SliceServiceTimes>,
}

/// The [service times](ServiceTimes) of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SliceServiceTimes {
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl Slice {
    /// Its service times. In a closed loop these are its response times.
    pub fn service_times(&self) -> SliceServiceTimes {
        let Slice { p50_ns, p95_ns, p99_ns, max_ns, .. } = *self;
        self.service.unwrap_or(SliceServiceTimes { p50_ns, p95_ns, p99_ns, max_ns })
    }

    /// M of the slice, in percent; None without operations.
    pub fn met_percent(&self) -> Option<f64> {
        let all = self.ok + self.errors;
        (all > 0).then(|| self.met as f64 * 100.0 / all as f64)
    }
}

/// BG's freshness confidence for one range of times since an item's last completed update: how
/// many of the items read then showed all updates completed before the read. What counts as
/// one item is the family's: a count or a whole list (`social`), a field or a record's existence (`kv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// Lower end of the range, inclusive: from the end of the item's last completed update to the
    /// start of the read.
    pub from_us: u64,
    /// Upper end of the range, exclusive.
    pub to_us: u64,
    /// Items read.
    pub reads: u64,
    /// Those that showed all updates completed before the read.
    pub fresh: u64,
}

/// Counts and response times of one operation of the vocabulary, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationFigures {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Writes of unknown fate.
    pub unknown: u64,
    /// Operations not issued.
    pub skipped: u64,
    /// Operations of transactions that the store, or the replayer after an error, has rolled back. No other
    /// figure counts them.
    #[serde(default)]
    pub aborted: u64,
    /// Operations that succeeded within β.
    pub within_beta: u64,
    /// Reads that returned data that no correct store could have returned.
    pub unpredictable: u64,
    /// Operations that met both limits: they succeeded within β and returned no unpredictable data.
    #[serde(default)]
    pub met: u64,
    /// Mean response time of the successful operations.
    pub mean_ns: f64,
    /// Median response time.
    pub p50_ns: u64,
    /// 95th percentile of the response times.
    pub p95_ns: u64,
    /// 99th percentile of the response times.
    pub p99_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
    /// Open loop: service times of the successful operations. Null in a closed loop, where they are
    /// the response times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceTimes>,
}

/// How long operations took from their start. Unlike a response time, a service time leaves out how
/// long a session waited for its start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ServiceTimes {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl OperationFigures {
    /// All operations, whatever became of them, except those that were rolled back.
    pub fn operations(&self) -> u64 {
        self.ok + self.failed + self.unknown + self.skipped
    }
}
