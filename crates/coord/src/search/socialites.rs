//! The Socialites search: the highest T that keeps the SLA.
//!
//! T is doubled until an experiment fails; the highest T that passes is then
//! found by bisection between the last pass and the first fail. Exact when
//! every T below one that passes passes too.

use super::{Found, Limits, Lookup, Missing, Next, Results, advance};

/// The next T to try, or the highest that keeps the SLA.
pub fn next(results: &Results, limits: &Limits) -> Next {
    advance(results, |lookup| search(lookup, limits))
}

fn search(mut lookup: Lookup, limits: &Limits) -> Result<Found, Missing> {
    // No thread at all always passes.
    let mut pass = 0;
    let mut fail = limits.first_threads;
    while lookup.at(fail)?.passed() {
        pass = fail;
        match limits.doubled(pass) {
            Some(doubled) => fail = doubled,
            None => return Ok(lookup.found(pass, limits)),
        }
    }
    while fail - pass > limits.gap(pass) {
        let middle = pass + (fail - pass) / 2;
        if lookup.at(middle)?.passed() {
            pass = middle;
        } else {
            fail = middle;
        }
    }
    Ok(lookup.found(pass, limits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Curve, LIMITS, drive};
    use super::*;

    fn check(curve: Curve, limits: &Limits, expect: u32) {
        let (found, probes) = drive(next, &curve, limits);
        assert_eq!(found.threads, expect, "after {probes} experiments");
        assert_eq!(found.at_least, expect == limits.max_threads);
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
        check(Curve::passing_until(5), &Limits { first_threads: 64, ..exact }, 5);
        check(Curve::passing_until(1000), &Limits { max_threads: 100, ..exact }, 100);
    }

    #[test]
    fn a_void_bound_is_named() {
        let (found, _) = drive(next, &Curve::passing_until(7).void_from(8), &LIMITS);
        assert_eq!((found.threads, found.void_threads), (7, vec![8]));
    }

    proptest! {
        #[test]
        fn is_exact_in_logarithmically_many_experiments(last in 0u32..3000, first in 1u32..40, max in 40u32..2500) {
            let limits = Limits { first_threads: first, max_threads: max, resolution: 0.0, ..LIMITS };
            let (found, probes) = drive(next, &Curve::passing_until(last), &limits);
            prop_assert_eq!(found.threads, last.min(max));
            prop_assert_eq!(found.at_least, last >= max);
            prop_assert!(probes <= 2 * max.ilog2() as usize + 3, "{} experiments", probes);
        }

        #[test]
        fn is_within_its_resolution(last in 0u32..2500) {
            let limits = Limits { max_threads: 2500, resolution: 0.05, ..LIMITS };
            let (found, _) = drive(next, &Curve::passing_until(last), &limits);
            prop_assert!(found.threads <= last);
            prop_assert!(last - found.threads <= (0.05 * last as f64) as u32);
        }
    }
}
