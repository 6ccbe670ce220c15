//! A formula in place of a store, and the loop of a rating: ask the search for a load, then measure
//! it.

use schemas::verdict::Ruling;

use super::noise::standard_normal;
use super::{Found, Limits, MOST_SAMPLES, Next, Probe, Results};

/// The limits that most tests use.
pub const LIMITS: Limits = Limits { first_load: 1, max_load: 256, resolution: 0.05, noise: 0.05 };

/// A store: throughput as a function of the load, and where it stops keeping the SLA.
pub struct Curve {
    throughput: Box<dyn Fn(f64) -> f64>,
    first_fail: u32,
    first_void: u32,
    noise: f64,
    seed: u64,
}

impl Curve {
    /// A store that always keeps the SLA.
    pub fn new(throughput: impl Fn(f64) -> f64 + 'static) -> Curve {
        let throughput = Box::new(throughput);
        Curve { throughput, first_fail: u32::MAX, first_void: u32::MAX, noise: 0.0, seed: 0 }
    }

    /// A store that keeps the SLA up to this load.
    pub fn passing_until(last: u32) -> Curve {
        Curve::new(|t| t).failing_from(last + 1)
    }

    /// The same, missing the SLA from this load on.
    pub fn failing_from(self, first_fail: u32) -> Curve {
        Curve { first_fail, ..self }
    }

    /// The same, with void experiments from this load on.
    pub fn void_from(self, first_void: u32) -> Curve {
        Curve { first_void, ..self }
    }

    /// The same, with normal noise of this relative standard deviation.
    pub fn noisy(self, noise: f64, seed: u64) -> Curve {
        Curve { noise, seed, ..self }
    }

    /// The true throughput.
    pub fn truth(&self, load: u32) -> f64 {
        (self.throughput)(load as f64)
    }

    /// An experiment with this load that follows `sample` others with it.
    pub fn probe(&self, load: u32, sample: usize) -> Probe {
        let ruling = match load {
            t if t >= self.first_void => Ruling::Void,
            t if t >= self.first_fail => Ruling::Fail,
            _ => Ruling::Pass,
        };
        let factor = match self.noise {
            0.0 => 1.0,
            noise => 1.0 + noise * standard_normal(self.seed, load, sample),
        };
        Probe { throughput_per_s: (self.truth(load) * factor).max(0.0), ruling }
    }

    /// The true best load up to a limit, and its throughput; (0, 0) when none passes.
    pub fn peak(&self, max_load: u32) -> (u32, f64) {
        let mut peak = (0, 0.0);
        for load in 1..=max_load.min(self.first_fail.min(self.first_void) - 1) {
            if self.truth(load) > peak.1 {
                peak = (load, self.truth(load));
            }
        }
        peak
    }
}

/// Runs a search to its end. Checks that it asks for no load outside the limits, and for none more
/// often than is allowed.
pub fn drive(next: impl Fn(&Results, &Limits) -> Next, curve: &Curve, limits: &Limits) -> (Found, Results) {
    let mut results = Results::new();
    loop {
        match next(&results, limits) {
            Next::Done(found) => return (found, results),
            Next::Probe { load } => {
                assert!((1..=limits.max_load).contains(&load), "T = {load} is outside {limits:?}");
                let sample = results.samples(load).len();
                assert!(sample < MOST_SAMPLES, "T = {load} was asked for once too often");
                assert!(sample == 0 || limits.noise > 0.0, "T = {load} was repeated without noise");
                results.add(load, curve.probe(load, sample));
            }
        }
    }
}
