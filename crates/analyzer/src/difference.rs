//! Tests whether two runs differ, from a series of each. Slices of time are not independent of
//! each other, so the usual t-test would report differences that do not exist.
//!
//! The variance of a mean is estimated with its autocorrelation (Newey and West, Bartlett
//! weights). The slices then count as fewer independent values. Two means are compared with
//! Welch's test, with as many degrees of freedom as these values give. For short series with a
//! long memory the intervals are still too narrow: with 60 slices that each take over half of the
//! one before, one pair in ten is reported as different instead of one in twenty.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The share of intervals that contain the true difference.
const CONFIDENCE: f64 = 0.95;
/// Fewer slices than this do not show their variance.
const FEWEST: usize = 5;

/// The mean of a series, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The standard error of the mean, autocorrelation included.
    pub error: f64,
    /// The number of independent values that the series counts as.
    pub worth: f64,
}

impl Mean {
    /// The mean of a series; None if it is too short or has values that are not finite.
    pub fn of(series: &[f64]) -> Option<Mean> {
        let n = series.len();
        if n < FEWEST || series.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = n as f64;
        let value = series.iter().sum::<f64>() / count;
        let covariance = |lag: usize| {
            let pairs = series.iter().zip(&series[lag..]);
            pairs.map(|(a, b)| (a - value) * (b - value)).sum::<f64>() / count
        };
        let variance = covariance(0);
        if variance == 0.0 {
            return Some(Mean { value, error: 0.0, worth: count });
        }
        // More lags than the usual rule: an interval that is a little too wide does less harm.
        let lags = (count.sqrt().ceil() as usize).min(n / 3);
        let weighted = (1..=lags).map(|lag| (1.0 - lag as f64 / (lags as f64 + 1.0)) * covariance(lag));
        // With negative correlation a short series would count as more values than it has.
        let long_run = (variance + 2.0 * weighted.sum::<f64>()).max(variance);
        let worth = (count * variance / long_run).max(2.0);
        // The deviations are from the series' own mean, which costs one degree of freedom.
        Some(Mean { value, error: (long_run / (count - 1.0)).sqrt(), worth })
    }

    /// Its confidence interval.
    pub fn interval(&self) -> (f64, f64) {
        let half = quantile(self.worth - 1.0) * self.error;
        (self.value - half, self.value + half)
    }
}

/// The difference between two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// How much higher the second mean is.
    pub value: f64,
    /// The lower end of the confidence interval.
    pub low: f64,
    /// The upper end of the confidence interval.
    pub high: f64,
}

impl Difference {
    /// The difference of `other` from `base`.
    pub fn of(base: &Mean, other: &Mean) -> Difference {
        let value = other.value - base.value;
        let parts = [base, other].map(|mean| (mean.error.powi(2), mean.worth - 1.0));
        let variance = parts[0].0 + parts[1].0;
        let freedom = match variance > 0.0 {
            true => variance.powi(2) / parts.iter().map(|(v, df)| v.powi(2) / df.max(1.0)).sum::<f64>(),
            false => 1.0,
        };
        let half = quantile(freedom) * variance.sqrt();
        Difference { value, low: value - half, high: value + half }
    }

    /// Whether its interval does not contain 0.
    pub fn is_shown(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Half of the width of a confidence interval, in standard errors.
fn quantile(freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom.max(1.0));
    distribution.map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers between -1 and 1, the same every time.
    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }

        /// A series in which each value takes over a share of the one before.
        fn series(&mut self, memory: f64, length: usize) -> Vec<f64> {
            let mut value = 0.0;
            let mut step = || {
                value = memory * value + self.next();
                value
            };
            (0..50).for_each(|_| {
                step();
            });
            (0..length).map(|_| 100.0 + step()).collect()
        }
    }

    /// How many of 1,000 pairs of series of the same kind are reported as different.
    fn false_alarms(memory: f64, length: usize) -> usize {
        let mut chance = Chance(7);
        let differ = |_: &usize| {
            let [a, b] = [(); 2].map(|()| Mean::of(&chance.series(memory, length)).unwrap());
            Difference::of(&a, &b).is_shown()
        };
        (0..1000).filter(differ).count()
    }

    #[test]
    fn what_is_alike_is_seldom_said_to_differ() {
        // 5% are intended. Strong autocorrelation is hard to judge from 60 slices, but a test
        // that takes slices as independent would be wrong four times in ten.
        assert!((20..80).contains(&false_alarms(0.0, 60)), "{}", false_alarms(0.0, 60));
        assert!(false_alarms(0.5, 60) < 140, "{}", false_alarms(0.5, 60));
        assert!(false_alarms(0.8, 60) < 240, "{}", false_alarms(0.8, 60));
        assert!(false_alarms(0.8, 600) < 130, "{}", false_alarms(0.8, 600));
    }

    #[test]
    fn what_differs_is_said_to() {
        let mut chance = Chance(3);
        let a = Mean::of(&chance.series(0.5, 60)).unwrap();
        let b = Mean::of(&chance.series(0.5, 60).iter().map(|v| v + 2.0).collect::<Vec<_>>()).unwrap();
        let difference = Difference::of(&a, &b);
        assert!(difference.is_shown() && difference.low < 2.0 && difference.high > 1.0, "{difference:?}");
        let (low, high) = a.interval();
        assert!(low < 100.0 + 1.0 && high > 100.0 - 1.0 && low < a.value && a.value < high, "{a:?}");
    }

    #[test]
    fn few_or_equal_values_are_no_trouble() {
        assert_eq!(Mean::of(&[1.0; 4]), None);
        let even = Mean::of(&[3.0; 9]).unwrap();
        assert_eq!((even.value, even.error, even.interval()), (3.0, 0.0, (3.0, 3.0)));
        assert!(!Difference::of(&even, &even).is_shown());
        assert!(Mean::of(&[1.0, f64::NAN, 1.0, 1.0, 1.0]).is_none());
    }
}
