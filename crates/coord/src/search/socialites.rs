//! The Socialites search: the highest T that keeps the SLA (`border.rs`).

use super::{Limits, Next, Results, advance, border};

/// The next T to try, or the highest that keeps the SLA.
pub fn next(results: &Results, limits: &Limits) -> Next {
    advance(results, limits, |view| border::search(view, below))
}

/// The highest T that a failed one leaves possible.
pub fn below(failed: u32) -> f64 {
    f64::from(failed) - 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Curve, LIMITS, drive};
    use super::super::{Basis, Found, Interval, Probe, soar};
    use super::*;

    fn check(curve: Curve, limits: &Limits, expect: u32) {
        let (found, results) = drive(next, &curve, limits);
        assert_eq!(found.load, expect, "after {} experiments", results.unique());
        assert_eq!(found.at_least, expect == limits.max_load);
    }

    #[test]
    fn finds_the_last_pass() {
        let exact = Limits { resolution: 0.0, ..LIMITS };
        for last in [1, 2, 3, 31, 32, 33, 100, 255] {
            check(Curve::passing_until(last), &exact, last);
        }
        check(Curve::passing_until(0), &exact, 0);
        check(Curve::passing_until(1000), &exact, 256);
        // A start above the answer, and a limit that is no power of two.
        check(Curve::passing_until(5), &Limits { first_load: 64, ..exact }, 5);
        check(Curve::passing_until(1000), &Limits { max_load: 100, ..exact }, 100);
    }

    #[test]
    fn a_void_bound_is_named() {
        let (found, _) = drive(next, &Curve::passing_until(7).void_from(8), &LIMITS);
        assert_eq!((found.load, found.void_loads), (7, vec![8]));
    }

    #[test]
    fn the_border_lies_within_the_interval() {
        let (found, _) = drive(next, &Curve::passing_until(200), &LIMITS);
        let Interval { low, high, basis } = found.interval;
        assert!(low <= 200.0 && 200.0 <= high && high - low < 0.05 * low, "{found:?}");
        assert_eq!((basis, found.rests_on), (Basis::Border, vec![low as u32, high as u32 + 1]));
    }

    /// What the search finds if the first experiment at one T fails by accident.
    fn with_accident(at: u32, last: u32, limits: &Limits) -> (Found, Results) {
        let mut results = Results::new();
        loop {
            match next(&results, limits) {
                Next::Done(found) => return (found, results),
                Next::Probe { load } => {
                    let is_accident = load == at && results.samples(at).is_empty();
                    let curve = Curve::passing_until(if is_accident { 0 } else { last });
                    results.add(load, curve.probe(load, 0));
                }
            }
        }
    }

    #[test]
    fn one_fail_by_accident_does_not_end_the_search() {
        for at in [1, 2, 4, 8, 32, 100] {
            let (found, results) = with_accident(at, 100, &LIMITS);
            assert!((96..=100).contains(&found.load), "an accident at T = {at} gave {found:?}");
            assert!(results.visited() - results.unique() <= 3);
        }
        // Without noise to expect, the search believes the first result.
        assert_eq!(with_accident(4, 100, &Limits { noise: 0.0, ..LIMITS }).0.load, 3);
    }

    proptest! {
        #[test]
        fn is_exact_in_logarithmically_many_experiments(last in 0u32..3000, first in 1u32..40, max in 40u32..2500) {
            let limits = Limits { first_load: first, max_load: max, resolution: 0.0, ..LIMITS };
            let (found, results) = drive(next, &Curve::passing_until(last), &limits);
            prop_assert_eq!(found.load, last.min(max));
            prop_assert_eq!(found.at_least, last >= max);
            prop_assert!(results.unique() <= 2 * max.ilog2() as usize + 3, "{} experiments", results.unique());
            prop_assert!(results.visited() <= results.unique() + 1, "only the border is repeated");
        }

        #[test]
        fn is_within_its_resolution(last in 0u32..2500) {
            let limits = Limits { max_load: 2500, resolution: 0.05, ..LIMITS };
            let (found, _) = drive(next, &Curve::passing_until(last), &limits);
            prop_assert!(found.load <= last);
            prop_assert!(last - found.load <= (0.05 * last as f64) as u32);
        }

        /// The bold steps of the SoAR search leave results that this search can use, and the
        /// results of this search do not mislead the SoAR search.
        #[test]
        fn either_search_may_begin(last in 0u32..2500, half in 1u32..1500) {
            let limits = Limits { max_load: 2000, ..LIMITS };
            let throughput = move |t: f64| (t - t * t / (4.0 * half as f64)).max(0.0);
            let curve = Curve::new(throughput).failing_from(last + 1);
            let (alone_soar, mut results) = drive(soar::next, &curve, &limits);
            let continued = |search: fn(&Results, &Limits) -> Next, results: &mut Results| loop {
                match search(results, &limits) {
                    Next::Done(found) => return found,
                    Next::Probe { load } => {
                        let probe: Probe = curve.probe(load, results.samples(load).len());
                        results.add(load, probe);
                    }
                }
            };
            let second = continued(next, &mut results);
            prop_assert!(second.load <= last.min(2000));
            prop_assert!(last.min(2000) - second.load <= (0.05 * last as f64) as u32, "{:?}", second);
            let (_, mut results) = drive(next, &curve, &limits);
            let second = continued(soar::next, &mut results);
            let (_, peak) = curve.peak(2000);
            let throughput = |found: &Found| found.throughput_per_s;
            prop_assert!(throughput(&second) >= 0.95 * peak, "{:?} of {}", second, peak);
            prop_assert!(throughput(&alone_soar) >= 0.95 * peak, "{:?} of {}", alone_soar, peak);
        }
    }
}
