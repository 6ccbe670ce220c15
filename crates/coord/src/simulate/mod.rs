//! `encore simulate`: drives the search of a rating with a formula in place of a store. It
//! reports what the search found, how far off that is, and after how many experiments (bg-2013
//! Figure 13).

pub mod by_rate;
mod mmc;
mod show;

use schemas::verdict::Ruling;

use crate::search::{Found, Limits, Next, Probe, Results, doubling, noise, soar, socialites};

pub use show::{document, table};

/// The form of the curve of throughput over T. Each form except the square root begins with one
/// operation per second and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// T - T^2 / (4 PEAK): bg-2013's model, PEAK at T = 2 PEAK.
    Quadratic,
    /// sqrt(T PEAK / 2): PEAK at T = 2 PEAK, where the SLA ends by default.
    SquareRoot,
    /// PEAK (1 - exp(-T / PEAK)): 86% of PEAK at T = 2 PEAK, where the SLA ends by default.
    Saturating,
}

impl Form {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Form::Quadratic => "quadratic",
            Form::SquareRoot => "square-root",
            Form::Saturating => "saturating",
        }
    }
}

/// A simulated store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Store {
    /// The form of its curve.
    pub form: Form,
    /// The PEAK of the form, in operations a second.
    pub peak_per_s: f64,
    /// The highest T with which it keeps the SLA; None when it always does.
    pub sla_until: Option<u32>,
    /// The standard deviation of experiments with one T, as a share of their mean.
    pub noise: f64,
    /// The seed of the noise.
    pub seed: u64,
}

impl Store {
    /// The throughput without noise, in operations a second.
    pub fn throughput_per_s(&self, threads: u32) -> f64 {
        let (t, peak) = (f64::from(threads), self.peak_per_s);
        match self.form {
            Form::Quadratic => (t - t * t / (4.0 * peak)).max(0.0),
            Form::SquareRoot => (t * peak / 2.0).sqrt(),
            Form::Saturating => -peak * (-t / peak).exp_m1(),
        }
    }

    /// An experiment with T threads that follows `sample` others with the same T.
    pub fn experiment(&self, threads: u32, sample: usize) -> Probe {
        let factor = match self.noise {
            0.0 => 1.0,
            noise => (1.0 + noise * noise::standard_normal(self.seed, threads, sample)).max(0.0),
        };
        let passes = self.sla_until.is_none_or(|last| threads <= last);
        let ruling = if passes { Ruling::Pass } else { Ruling::Fail };
        Probe { throughput_per_s: self.throughput_per_s(threads) * factor, ruling }
    }

    /// The highest T that keeps the SLA, within the limits.
    pub fn last_threads(&self, limits: &Limits) -> u32 {
        self.sla_until.map_or(limits.max_load, |last| last.min(limits.max_load))
    }

    /// The T with the highest throughput among those that keep the SLA.
    pub fn best_threads(&self, limits: &Limits) -> u32 {
        let last = self.last_threads(limits);
        match self.form {
            Form::Quadratic => ((2.0 * self.peak_per_s).round() as u32).clamp(1, last.max(1)).min(last),
            Form::SquareRoot | Form::Saturating => last,
        }
    }
}

/// What a search did with a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Driven {
    /// What it found.
    pub found: Found,
    /// The different loads that it tried.
    pub unique: usize,
    /// All experiments, with repeats.
    pub visited: usize,
}

/// One of the searches.
type Search = fn(&Results, &Limits) -> Next;

/// Runs a search to its end. `experiment` gives the result of an experiment with a load that follows
/// so many others with it.
pub fn drive(search: Search, experiment: impl Fn(u32, usize) -> Probe, limits: &Limits) -> Driven {
    let mut results = Results::new();
    loop {
        match search(&results, limits) {
            Next::Done(found) => return Driven { found, unique: results.unique(), visited: results.visited() },
            Next::Probe { load } => {
                let sample = results.samples(load).len();
                results.add(load, experiment(load, sample));
            }
        }
    }
}

/// What the searches did with one store.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The store.
    pub store: Store,
    /// The SoAR search.
    pub soar: Driven,
    /// The Socialites search; None when the store keeps the SLA with every T.
    pub socialites: Option<Driven>,
    /// Doubling and hill climbing as in bg-2013 section G, if `--compare` is given.
    pub doubling: Option<Driven>,
}

/// A simulation: several stores, one set of limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// The limits of the searches.
    pub limits: Limits,
    /// One case per store.
    pub cases: Vec<Case>,
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The limits of the searches.
    pub limits: Limits,
    /// The stores.
    pub stores: Vec<Store>,
    /// Whether doubling and hill climbing run too.
    pub with_doubling: bool,
}

/// Runs the searches with every store.
pub fn simulate(setup: &Setup) -> Simulation {
    let Setup { limits, stores, with_doubling } = setup;
    let case = |store: &Store| {
        let experiment = |threads, sample| store.experiment(threads, sample);
        Case {
            store: *store,
            soar: drive(soar::next, experiment, limits),
            socialites: store.sla_until.map(|_| drive(socialites::next, experiment, limits)),
            doubling: with_doubling.then(|| drive(doubling::next, experiment, limits)),
        }
    };
    Simulation { limits: *limits, cases: stores.iter().map(case).collect() }
}

#[cfg(test)]
mod tests;
