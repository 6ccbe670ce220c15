//! The consistency of registers: how stale reads were, how far histories are from linearizable, and which
//! session guarantees held.

use serde::{Deserialize, Serialize};

use super::Freshness;

/// The consistency of the registers of an experiment. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConsistencyFigures {
    /// Registers that were written.
    pub registers: u64,
    /// Those of them that are linearizable.
    pub linearizable: u64,
    /// Registers by k: 1, 2, and more than 2.
    pub k: [u64; 3],
    /// Registers of which a read ended before its write started. Their Δ is not defined.
    pub from_the_future: u64,
    /// Writes of these registers.
    pub writes: u64,
    /// Those of them whose fate is unknown.
    pub unknown_writes: u64,
    /// Reads of these registers whose value is known.
    pub reads: u64,
    /// Reads of which nothing is concluded, since no write of the register is known to have written what
    /// they saw.
    pub unattributed_reads: u64,
    /// Reads of values that had been overwritten so long ago that the analysis had forgotten them. Nothing is
    /// concluded from them.
    #[serde(default)]
    pub forgotten_reads: u64,
    /// Stale reads.
    pub stale_reads: u64,
    /// Γ of the registers.
    pub gamma_ns: Spread,
    /// Γ of the values.
    pub value_gamma_ns: Spread,
    /// Values whose Γ is within the limit of the SLA; null without such a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_within: Option<u64>,
    /// Δ of the registers that have one.
    pub delta_ns: Spread,
    /// k-staleness of the reads.
    pub k_staleness: Spread,
    /// t-staleness of the reads.
    pub t_staleness_ns: Spread,
    /// t-visibility of the writes.
    pub t_visibility_ns: Spread,
    /// Fresh reads by the time since the last write of the register.
    pub freshness: Vec<Freshness>,
    /// Session guarantees of threads.
    pub by_thread: Guarantees,
    /// Session guarantees of actors.
    pub by_actor: Guarantees,
    /// Γ of the values that were written or read last in each slice of the timeline.
    pub over_time: Vec<Spread>,
    /// Percentiles of Γ.
    pub gamma_spectrum: Vec<GammaPercentile>,
    /// The registers with the greatest Γ, at most [`WORST`](ConsistencyFigures::WORST).
    pub worst: Vec<Broken>,
}

impl ConsistencyFigures {
    /// How many registers that are not linearizable a verdict keeps.
    pub const WORST: usize = 10;

    /// The share of the values whose Γ is within the limit, in percent; None without values or limit.
    pub fn within_gamma_percent(&self) -> Option<f64> {
        let all = self.value_gamma_ns.count;
        self.values_within.filter(|_| all > 0).map(|within| within as f64 * 100.0 / all as f64)
    }
}

/// A percentile of Γ, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct GammaPercentile {
    /// The percentile.
    pub percent: f64,
    /// That of the registers.
    pub registers_ns: u64,
    /// That of the values.
    pub values_ns: u64,
}

/// A distribution of times or counts. Percentiles are exact to 0.1%; over time to 0.8%.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// How many are above 0.
    pub above_zero: u64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The greatest one.
    pub max: u64,
}

/// The least k at which a history is k-atomic, as far as it is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum K {
    /// Linearizable.
    #[default]
    #[serde(rename = "1")]
    One,
    /// Each read saw one of the two newest writes.
    #[serde(rename = "2")]
    Two,
    /// More than 2, or there is none, because a read ended before its write started.
    #[serde(rename = "> 2")]
    More,
}

impl K {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            K::One => "1",
            K::Two => "2",
            K::More => "> 2",
        }
    }
}

/// How many reads a guarantee was checked with, and how many of them violate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checked {
    /// Reads that could violate it.
    pub reads: u64,
    /// Reads that do.
    pub violations: u64,
}

impl Checked {
    /// Counts a read.
    pub fn add(&mut self, violates: bool) {
        self.reads += 1;
        self.violations += u64::from(violates);
    }

    fn merge(&mut self, other: Checked) {
        self.reads += other.reads;
        self.violations += other.violations;
    }
}

/// The session guarantees of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Guarantees {
    /// Read your writes.
    pub read_your_writes: Checked,
    /// Monotonic reads.
    pub monotonic_reads: Checked,
    /// Monotonic writes.
    pub monotonic_writes: Checked,
    /// Writes follow reads.
    pub writes_follow_reads: Checked,
}

impl Guarantees {
    /// Adds those of other reads.
    pub fn merge(&mut self, other: &Guarantees) {
        self.read_your_writes.merge(other.read_your_writes);
        self.monotonic_reads.merge(other.monotonic_reads);
        self.monotonic_writes.merge(other.monotonic_writes);
        self.writes_follow_reads.merge(other.writes_follow_reads);
    }

    /// The guarantees with their names.
    pub fn named(&self) -> [(&'static str, Checked); 4] {
        [
            ("read your writes", self.read_your_writes),
            ("monotonic reads", self.monotonic_reads),
            ("monotonic writes", self.monotonic_writes),
            ("writes follow reads", self.writes_follow_reads),
        ]
    }
}

/// Which register it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Register {
    /// The fragment.
    pub fragment: i64,
    /// Whose item it is, such as the number of the record.
    pub owner: u64,
    /// Which of the owner's registers it is, such as the number of the field.
    pub element: u32,
}

/// An operation that proves that a register is not linearizable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Whether it is a write.
    pub is_write: bool,
    /// The value that it wrote or saw.
    pub value: i64,
    /// Its thread.
    pub thread: u32,
    /// Its actor.
    pub actor: u64,
    /// Its start, in nanoseconds from the start of the experiment.
    pub start_ns: i64,
    /// Its end; None for a write of unknown fate.
    pub end_ns: Option<i64>,
}

/// A register that is not linearizable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    /// Which one.
    #[serde(flatten)]
    pub register: Register,
    /// Its Γ, in nanoseconds.
    pub gamma_ns: i64,
    /// Its Δ; null if a read ended before its write started.
    pub delta_ns: Option<i64>,
    /// Its k.
    pub k: K,
    /// Its writes.
    pub writes: u64,
    /// Its reads.
    pub reads: u64,
    /// Those of them that are stale.
    pub stale_reads: u64,
    /// The operations that prove that it is not linearizable.
    pub proof: Vec<Step>,
}
