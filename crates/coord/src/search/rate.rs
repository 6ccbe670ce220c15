//! The search for the highest arrival rate that keeps the SLA (`border.rs`).
//!
//! In an open loop the throughput follows the arrival rate until the store is saturated, so it has
//! no peak that could be searched. Beyond saturation the queue grows as long as the experiment
//! lasts: rates there fail whatever the limit of the response time.

use super::{Limits, Next, Results, advance, border};

/// The next rate to try, or the highest that keeps the SLA.
pub fn next(results: &Results, limits: &Limits) -> Next {
    advance(results, limits, |view| border::search(view, below))
}

/// The highest rate that a failed one leaves possible. The true rate need not be a whole number, so
/// it may lie anywhere below the failed one.
pub fn below(failed: u32) -> f64 {
    f64::from(failed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Curve, LIMITS, drive};
    use super::super::{Basis, Interval, socialites};
    use super::*;

    const RATES: Limits = Limits { first_load: 100, max_load: 1_000_000, ..LIMITS };

    #[test]
    fn the_interval_ends_at_the_rate_that_failed() {
        let (found, _) = drive(next, &Curve::passing_until(5_000), &RATES);
        let Interval { low, high, basis } = found.interval;
        assert!(low <= 5_000.0 && high > 5_000.0 && high - low <= 0.05 * low, "{found:?}");
        assert_eq!((found.rests_on, basis), (vec![low as u32, high as u32], Basis::Border));
    }

    #[test]
    fn the_greatest_rate_is_no_bound() {
        let limits = Limits { max_load: 1_500, ..RATES };
        let (found, results) = drive(next, &Curve::passing_until(9_999), &limits);
        assert_eq!((found.load, found.at_least, results.visited()), (1_500, true, 5));
        let (found, _) = drive(next, &Curve::passing_until(0), &limits);
        assert_eq!((found.load, found.interval.low), (0, 0.0));
    }

    proptest! {
        #[test]
        fn is_within_its_resolution(last in 1u32..2_000_000) {
            let (found, results) = drive(next, &Curve::passing_until(last), &RATES);
            let last = last.min(RATES.max_load);
            prop_assert!(found.load <= last && last - found.load <= (0.05 * last as f64) as u32, "{:?}", found);
            prop_assert!(results.unique() <= 22, "{} experiments", results.unique());
        }

        /// Both are the same search; only the interval differs.
        #[test]
        fn asks_for_the_same_loads_as_socialites(last in 0u32..3_000, first in 1u32..200) {
            let limits = Limits { first_load: first, max_load: 2_000, ..LIMITS };
            let (rate, of_rate) = drive(next, &Curve::passing_until(last), &limits);
            let (threads, of_threads) = drive(socialites::next, &Curve::passing_until(last), &limits);
            prop_assert_eq!(of_rate, of_threads);
            prop_assert_eq!((rate.load, rate.at_least), (threads.load, threads.at_least));
        }
    }
}
