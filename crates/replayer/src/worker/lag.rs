//! The scheduling delay: how late a worker handles what has happened.

use schemas::latency::ResponseTimes;

/// How late a worker handles what has happened.
#[derive(Debug, Clone, Default)]
pub struct Lag {
    /// The distribution, whose 99th percentile is compared with response times.
    pub times: ResponseTimes,
    /// The exact sum, since a histogram of few values has a coarse mean.
    pub sum_ns: i64,
    /// How many measurements.
    pub count: u64,
    /// The longest.
    pub max_ns: i64,
}

impl Lag {
    /// Records one measurement.
    pub(super) fn record(&mut self, late_ns: i64) {
        self.times.record(late_ns);
        self.sum_ns += late_ns;
        self.count += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Adds that of another worker.
    pub fn merge(&mut self, other: &Lag) {
        self.times.merge(&other.times);
        self.sum_ns += other.sum_ns;
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean, in nanoseconds; 0 without measurements.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }
}
