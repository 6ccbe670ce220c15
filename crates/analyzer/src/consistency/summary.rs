//! The metrics of all registers of one or more fragments: counts, distributions, and the registers that are
//! farthest from linearizable. Summaries of fragments merge to that of the whole.

use schemas::latency::ResponseTimes;
use schemas::verdict::{Broken, ConsistencyFigures, GammaPercentile, Guarantees, Spread};
use serde::{Deserialize, Serialize};

use crate::freshness::FreshnessSummary;
use crate::timeline::{CoarseTimes, Measured};

/// Numbers of which a [`Spread`] is wanted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Numbers {
    numbers: ResponseTimes,
    above_zero: u64,
    max: u64,
}

impl Numbers {
    #[inline]
    pub(super) fn add(&mut self, number: i64) {
        self.add_n(number, 1);
    }

    pub(super) fn add_n(&mut self, number: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.numbers.record_n(number, count);
        if number > 0 {
            self.above_zero += count;
            self.max = self.max.max(number.unsigned_abs());
        }
    }

    fn merge(&mut self, other: &Numbers) {
        self.numbers.merge(&other.numbers);
        self.above_zero = self.above_zero.saturating_add(other.above_zero);
        self.max = self.max.max(other.max);
    }

    fn at(&self, percent: f64) -> u64 {
        // A percentile is the upper end of a range of numbers.
        self.numbers.percentile_ns(percent).min(self.max)
    }

    fn spread(&self) -> Spread {
        let at = |percent| self.at(percent);
        let count = self.numbers.count();
        Spread { count, above_zero: self.above_zero, p50: at(50.0), p95: at(95.0), max: self.max }
    }
}

/// The percentiles of Γ that figures have.
const PERCENTS: [f64; 9] = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// Γ of the values of a slice of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Slice {
    gamma: CoarseTimes,
    above_zero: u64,
}

/// The consistency of the registers of one or more fragments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsistencySummary {
    measured: Measured,
    /// The limit of Γ in the SLA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit_ns: Option<u64>,
    pub(super) registers: u64,
    /// By k.
    pub(super) k: [u64; 3],
    pub(super) from_the_future: u64,
    pub(super) writes: u64,
    pub(super) unknown_writes: u64,
    pub(super) reads: u64,
    pub(super) unattributed_reads: u64,
    pub(super) forgotten_reads: u64,
    pub(super) stale_reads: u64,
    values_within: u64,
    pub(super) gamma: Numbers,
    value_gamma: Numbers,
    pub(super) delta: Numbers,
    pub(super) k_staleness: Numbers,
    pub(super) t_staleness: Numbers,
    pub(super) t_visibility: Numbers,
    pub(super) freshness: FreshnessSummary,
    pub(super) by_thread: Guarantees,
    pub(super) by_actor: Guarantees,
    /// By the slice of the timeline.
    over_time: Vec<Slice>,
    worst: Vec<Broken>,
}

impl ConsistencySummary {
    /// An empty summary. `limit_ns` is the limit of Γ in the SLA.
    pub fn new(measured: Measured, limit_ns: Option<u64>) -> ConsistencySummary {
        ConsistencySummary {
            measured,
            limit_ns,
            registers: 0,
            k: [0; 3],
            from_the_future: 0,
            writes: 0,
            unknown_writes: 0,
            reads: 0,
            unattributed_reads: 0,
            forgotten_reads: 0,
            stale_reads: 0,
            values_within: 0,
            gamma: Numbers::default(),
            value_gamma: Numbers::default(),
            delta: Numbers::default(),
            k_staleness: Numbers::default(),
            t_staleness: Numbers::default(),
            t_visibility: Numbers::default(),
            freshness: FreshnessSummary::default(),
            by_thread: Guarantees::default(),
            by_actor: Guarantees::default(),
            over_time: Vec::new(),
            worst: Vec::new(),
        }
    }

    /// Adds a value that was written or read last at this time.
    pub(super) fn add_value(&mut self, gamma: i64, last_start: i64) {
        self.value_gamma.add(gamma);
        self.values_within += u64::from(self.limit_ns.is_some_and(|limit| gamma.unsigned_abs() <= limit));
        let slice = self.measured.slice_at(last_start);
        if slice >= self.over_time.len() {
            self.over_time.resize_with(slice + 1, Slice::default);
        }
        self.over_time[slice].gamma.record(gamma);
        self.over_time[slice].above_zero += u64::from(gamma > 0);
    }

    /// The least Γ of a register that would be kept.
    pub(super) fn worst_from(&self) -> i64 {
        match self.worst.get(ConsistencyFigures::WORST - 1) {
            Some(last) => last.gamma_ns,
            None => 0,
        }
    }

    /// Keeps a register if it is one of the worst. What was known of the same one before is replaced.
    pub(super) fn keep_worst(&mut self, broken: Broken) {
        let same = self.worst.iter().position(|other| other.register == broken.register);
        if let Some(same) = same {
            if self.worst[same].gamma_ns > broken.gamma_ns {
                return;
            }
            self.worst.remove(same);
        }
        // Equal ones are in the order of their names, whatever the order in which they come.
        let before = |other: &Broken| (-other.gamma_ns, &other.register) < (-broken.gamma_ns, &broken.register);
        let at = self.worst.partition_point(before);
        self.worst.insert(at, broken);
        self.worst.truncate(ConsistencyFigures::WORST);
    }

    /// Completes what is known of one of the worst registers.
    pub(super) fn complete_worst(&mut self, register: &schemas::verdict::Register, complete: impl FnOnce(&mut Broken)) {
        if let Some(broken) = self.worst.iter_mut().find(|broken| broken.register == *register) {
            complete(broken);
        }
    }

    /// Adds the summary of other fragments.
    pub(crate) fn merge(&mut self, other: &ConsistencySummary) {
        let counts = [
            (&mut self.registers, other.registers),
            (&mut self.from_the_future, other.from_the_future),
            (&mut self.writes, other.writes),
            (&mut self.unknown_writes, other.unknown_writes),
            (&mut self.reads, other.reads),
            (&mut self.unattributed_reads, other.unattributed_reads),
            (&mut self.forgotten_reads, other.forgotten_reads),
            (&mut self.stale_reads, other.stale_reads),
            (&mut self.values_within, other.values_within),
        ];
        for (mine, theirs) in counts {
            *mine += theirs;
        }
        self.k.iter_mut().zip(other.k).for_each(|(mine, theirs)| *mine += theirs);
        self.gamma.merge(&other.gamma);
        self.value_gamma.merge(&other.value_gamma);
        self.delta.merge(&other.delta);
        self.k_staleness.merge(&other.k_staleness);
        self.t_staleness.merge(&other.t_staleness);
        self.t_visibility.merge(&other.t_visibility);
        self.freshness.merge(&other.freshness);
        self.by_thread.merge(&other.by_thread);
        self.by_actor.merge(&other.by_actor);
        if self.over_time.len() < other.over_time.len() {
            self.over_time.resize_with(other.over_time.len(), Slice::default);
        }
        for (mine, theirs) in self.over_time.iter_mut().zip(&other.over_time) {
            mine.gamma.merge(&theirs.gamma);
            mine.above_zero += theirs.above_zero;
        }
        other.worst.iter().for_each(|broken| self.keep_worst(broken.clone()));
    }

    /// The figures of the registers; None if none was written.
    pub fn figures(&self) -> Option<ConsistencyFigures> {
        if self.registers == 0 {
            return None;
        }
        let slice = |slice: &Slice| Spread {
            count: slice.gamma.count(),
            above_zero: slice.above_zero,
            p50: slice.gamma.percentile_ns(50.0),
            p95: slice.gamma.percentile_ns(95.0),
            max: slice.gamma.max_ns(),
        };
        let percentile = |percent| GammaPercentile {
            percent,
            registers_ns: self.gamma.at(percent),
            values_ns: self.value_gamma.at(percent),
        };
        Some(ConsistencyFigures {
            registers: self.registers,
            linearizable: self.k[0],
            k: self.k,
            from_the_future: self.from_the_future,
            writes: self.writes,
            unknown_writes: self.unknown_writes,
            reads: self.reads,
            unattributed_reads: self.unattributed_reads,
            forgotten_reads: self.forgotten_reads,
            stale_reads: self.stale_reads,
            gamma_ns: self.gamma.spread(),
            value_gamma_ns: self.value_gamma.spread(),
            values_within: self.limit_ns.map(|_| self.values_within),
            delta_ns: self.delta.spread(),
            k_staleness: self.k_staleness.spread(),
            t_staleness_ns: self.t_staleness.spread(),
            t_visibility_ns: self.t_visibility.spread(),
            freshness: self.freshness.figures(),
            by_thread: self.by_thread,
            by_actor: self.by_actor,
            over_time: self.over_time.iter().map(slice).collect(),
            gamma_spectrum: PERCENTS.map(percentile).into(),
            worst: self.worst.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All percentiles were those of numbers up to 2, since the histogram did not grow.
    #[test]
    fn percentiles_are_those_of_large_numbers() {
        let mut numbers = Numbers::default();
        (0..=100).for_each(|number| numbers.add(number * 1_000_000));
        let spread = numbers.spread();
        assert_eq!((spread.count, spread.above_zero, spread.max), (101, 100, 100_000_000));
        let is_about = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 500;
        assert!(is_about(spread.p50, 50_000_000) && is_about(spread.p95, 95_000_000), "{spread:?}");
        numbers.add(i64::MAX);
        assert_eq!(numbers.spread().max, i64::MAX as u64);
    }
}
