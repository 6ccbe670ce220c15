//! The SoAR search: the T with the highest throughput among those that keep the SLA.
//!
//! T is doubled while the throughput grows and the SLA is kept. The peak may
//! lie on either side of the best T then known, so the search closes in on it
//! from both: each step tries a T in the wider gap beside the best.

use super::{Found, Limits, Lookup, Missing, Next, Results, advance};

/// The next T to try, or the one with the highest throughput.
pub fn next(results: &Results, limits: &Limits) -> Next {
    advance(results, |lookup| search(lookup, limits))
}

fn search(mut lookup: Lookup, limits: &Limits) -> Result<Found, Missing> {
    double(&mut lookup, limits)?;
    halve(&mut lookup, limits)?;
    climb(lookup, limits)
}

/// Asks for the doubled T's up to the first that fails or falls behind.
fn double(lookup: &mut Lookup, limits: &Limits) -> Result<(), Missing> {
    let mut threads = limits.first_threads;
    let mut highest = 0.0_f64;
    loop {
        let probe = lookup.at(threads)?;
        if !probe.passed() || probe.throughput_per_s < highest * (1.0 - limits.noise) {
            return Ok(());
        }
        highest = highest.max(probe.throughput_per_s);
        match limits.doubled(threads) {
            Some(doubled) => threads = doubled,
            None => return Ok(()),
        }
    }
}

/// Asks for T's below the first one while the peak may lie below them.
fn halve(lookup: &mut Lookup, limits: &Limits) -> Result<(), Missing> {
    let mut threads = limits.first_threads;
    while threads > 1 && best(lookup.results).is_none_or(|best| best <= threads) {
        threads /= 2;
        lookup.at(threads)?;
    }
    Ok(())
}

/// Closes in on the peak. It lies between the neighbours of the best T known,
/// whoever asked for those: results that another search asked for count too.
fn climb(mut lookup: Lookup, limits: &Limits) -> Result<Found, Missing> {
    let Some(best) = best(lookup.results) else { return Ok(lookup.found(0, limits)) };
    let below = lookup.results.range(..best).next_back().map_or(0, |(threads, _)| *threads);
    let above = lookup.results.range(best + 1..).next().map_or(limits.max_threads + 1, |(threads, _)| *threads);
    let (gap_below, gap_above) = (best - below, above - best);
    if gap_below.max(gap_above) > limits.gap(best) {
        let step = |gap: u32| (gap / 2).max(1);
        let threads = if gap_above >= gap_below { best + step(gap_above) } else { best - step(gap_below) };
        return Err(Missing(threads));
    }
    // The neighbours bound the peak: a void one has to be named.
    for neighbour in [below, above] {
        if lookup.results.contains_key(&neighbour) {
            lookup.at(neighbour)?;
        }
    }
    Ok(lookup.found(best, limits))
}

/// The lowest T of the highest throughput that keeps the SLA.
fn best(results: &Results) -> Option<u32> {
    let mut best: Option<(u32, f64)> = None;
    for (threads, probe) in results {
        if probe.passed() && best.is_none_or(|(_, highest)| probe.throughput_per_s > highest) {
            best = Some((*threads, probe.throughput_per_s));
        }
    }
    best.map(|(threads, _)| threads)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Curve, LIMITS, drive};
    use super::*;

    /// The search must find the best T of the curve, exactly.
    fn check(curve: Curve, limits: &Limits) -> usize {
        let (found, probes) = drive(next, &curve, limits);
        let (threads, throughput_per_s) = curve.peak(limits.max_threads);
        assert_eq!((found.threads, found.throughput_per_s), (threads, throughput_per_s), "after {probes} experiments");
        probes
    }

    #[test]
    fn finds_the_vertex_of_quadratic_curves() {
        let exact = Limits { resolution: 0.0, noise: 0.0, ..LIMITS };
        // -T² + bT peaks at b/2, on either side of a power of two.
        for b in [2, 4, 10, 30, 62, 66, 90, 130, 200, 380, 508] {
            check(Curve::new(move |t| (t * (b as f64 - t)).max(0.0)), &exact);
        }
        check(Curve::new(|t| (t * (20.0 - t)).max(0.0)), &Limits { first_threads: 64, ..exact });
    }

    #[test]
    fn stays_small_for_large_peaks() {
        // bg-2013 Figure 13 models ratings of up to 100 million with T up to 10,000.
        let exact = Limits { max_threads: 1 << 20, resolution: 0.0, noise: 0.0, ..LIMITS };
        let probes = check(Curve::new(|t| (t * (20_000.0 - t)).max(0.0)), &exact);
        assert!(probes <= 45, "{probes} experiments");
        let (_, coarse) =
            drive(next, &Curve::new(|t| (t * (20_000.0 - t)).max(0.0)), &Limits { resolution: 0.05, ..exact });
        assert!(coarse <= 25, "{coarse} experiments");
    }

    #[test]
    fn the_sla_cuts_a_growing_curve() {
        let exact = Limits { resolution: 0.0, ..LIMITS };
        for last in [1, 3, 50, 129, 255] {
            check(Curve::new(f64::sqrt).failing_from(last + 1), &exact);
        }
    }

    #[test]
    fn the_limit_is_said_when_throughput_still_grows() {
        let (found, probes) = drive(next, &Curve::new(f64::sqrt), &LIMITS);
        assert_eq!((found.threads, found.at_least), (256, true));
        assert!(probes <= 14, "{probes} experiments");
        // All pass, but the peak is well below the limit.
        let (found, _) = drive(next, &Curve::new(|t| t * (40.0 - t).max(0.0)), &LIMITS);
        assert_eq!((found.threads, found.at_least), (20, false));
    }

    #[test]
    fn nothing_passes() {
        let (found, probes) = drive(next, &Curve::new(|t| t).failing_from(1), &LIMITS);
        assert_eq!((found, probes), (Found::default(), 1));
        let (found, _) = drive(next, &Curve::new(|t| t).failing_from(1), &Limits { first_threads: 9, ..LIMITS });
        assert_eq!(found.threads, 0);
    }

    #[test]
    fn a_flat_and_noisy_curve_ends_near_its_top() {
        const NOISE: [f64; 7] = [0.99, 1.01, 0.97, 1.0, 1.02, 0.98, 1.015];
        let (found, probes) = drive(next, &Curve::new(|t| 1000.0 * NOISE[t as usize % NOISE.len()]), &LIMITS);
        assert!(found.throughput_per_s >= 1000.0, "{found:?}");
        assert!(probes <= 20, "{probes} experiments");
    }

    #[test]
    fn a_void_neighbour_is_named() {
        let (found, _) = drive(next, &Curve::new(f64::sqrt).void_from(4), &LIMITS);
        assert_eq!((found.threads, found.void_threads), (3, vec![4]));
    }

    proptest! {
        /// Concave curves from 0: grows, may saturate, may fall, may be cut by the SLA.
        #[test]
        fn is_within_five_percent_on_concave_curves(
            power in 0.05f64..1.0, fall in 0.0f64..0.1, cut in 1u32..2000, first in 1u32..9,
        ) {
            let limits = Limits { first_threads: first, max_threads: 1024, resolution: 0.05, noise: 0.05 };
            let curve = Curve::new(move |t| 1000.0 * t.powf(power) - 1000.0 * fall * t * t.sqrt()).failing_from(cut);
            let (_, truth) = curve.peak(limits.max_threads);
            let (found, probes) = drive(next, &curve, &limits);
            prop_assert!(found.throughput_per_s >= 0.95 * truth, "{:?} of {}", found, truth);
            prop_assert!(probes <= 26, "{} experiments", probes);
        }
    }
}
