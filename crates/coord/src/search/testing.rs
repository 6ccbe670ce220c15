//! Stores that are formulas: what the tests of the searches measure.

use schemas::verdict::Ruling;

use super::{Found, Limits, Next, Probe, Results};

/// The limits that most tests use.
pub const LIMITS: Limits = Limits { first_threads: 1, max_threads: 256, resolution: 0.05, noise: 0.05 };

/// A store: throughput as a function of T, and where it stops keeping the SLA.
pub struct Curve {
    throughput: Box<dyn Fn(f64) -> f64>,
    first_fail: u32,
    first_void: u32,
}

impl Curve {
    /// A store that always keeps the SLA.
    pub fn new(throughput: impl Fn(f64) -> f64 + 'static) -> Curve {
        Curve { throughput: Box::new(throughput), first_fail: u32::MAX, first_void: u32::MAX }
    }

    /// One that keeps it up to this T.
    pub fn passing_until(last: u32) -> Curve {
        Curve::new(|t| t).failing_from(last + 1)
    }

    /// The same, missing the SLA from this T on.
    pub fn failing_from(self, first_fail: u32) -> Curve {
        Curve { first_fail, ..self }
    }

    /// The same, with void experiments from this T on.
    pub fn void_from(self, first_void: u32) -> Curve {
        Curve { first_void, ..self }
    }

    /// The experiment with T threads.
    pub fn probe(&self, threads: u32) -> Probe {
        let ruling = match threads {
            t if t >= self.first_void => Ruling::Void,
            t if t >= self.first_fail => Ruling::Fail,
            _ => Ruling::Pass,
        };
        Probe { throughput_per_s: (self.throughput)(threads as f64), ruling }
    }

    /// The true best T up to a limit, and its throughput; (0, 0) when none passes.
    pub fn peak(&self, max_threads: u32) -> (u32, f64) {
        let mut peak = (0, 0.0);
        for threads in 1..=max_threads {
            let probe = self.probe(threads);
            if probe.passed() && probe.throughput_per_s > peak.1 {
                peak = (threads, probe.throughput_per_s);
            }
        }
        peak
    }
}

/// Runs a search to its end; also counts the experiments. No T is asked for
/// twice or outside the limits.
pub fn drive(next: impl Fn(&Results, &Limits) -> Next, curve: &Curve, limits: &Limits) -> (Found, usize) {
    let mut results = Results::new();
    loop {
        match next(&results, limits) {
            Next::Done(found) => return (found, results.len()),
            Next::Probe { threads } => {
                assert!((1..=limits.max_threads).contains(&threads), "T = {threads} is outside {limits:?}");
                assert!(results.insert(threads, curve.probe(threads)).is_none(), "T = {threads} was asked for again");
            }
        }
    }
}
