//! `coord simulate`: drives the search of a rating with a formula in place of a
//! store, and says what it found, how far off, and after how many experiments
//! (bg-2013 Figure 13).

pub mod noise;
mod render;

use schemas::verdict::Ruling;

use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::resolve::{NOISE, RESOLUTION};
use crate::search::{Found, Limits, Next, Probe, Results, doubling, soar, socialites};

pub use render::{document, table};

/// The SoARs of bg-2013 Figure 13, in actions a second.
pub const FIGURE_13: [f64; 7] = [500.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// The form of the curve of throughput over T. Each begins with one action a
/// second and thread, except the square root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// T - T^2 / (4 PEAK): bg-2013's model, PEAK at T = 2 PEAK
    Quadratic,
    /// sqrt(T PEAK / 2): PEAK at T = 2 PEAK, where the SLA ends unless told otherwise
    SquareRoot,
    /// PEAK (1 - exp(-T / PEAK)): 86% of PEAK at T = 2 PEAK, where the SLA ends unless told otherwise
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
    /// The PEAK of the form, in actions a second.
    pub peak_per_s: f64,
    /// The highest T with which it keeps the SLA; None when it always does.
    pub sla_until: Option<u32>,
    /// The standard deviation of experiments with one T, as a share of their mean.
    pub noise: f64,
    /// Chooses the noise.
    pub seed: u64,
}

impl Store {
    /// The throughput without noise, in actions a second.
    pub fn throughput_per_s(&self, threads: u32) -> f64 {
        let (t, peak) = (f64::from(threads), self.peak_per_s);
        match self.form {
            Form::Quadratic => (t - t * t / (4.0 * peak)).max(0.0),
            Form::SquareRoot => (t * peak / 2.0).sqrt(),
            Form::Saturating => -peak * (-t / peak).exp_m1(),
        }
    }

    /// An experiment with T threads, after `sample` others with the same T.
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
        self.sla_until.map_or(limits.max_threads, |last| last.min(limits.max_threads))
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
pub struct Outcome {
    /// What it found.
    pub found: Found,
    /// The different T's that it tried.
    pub unique: usize,
    /// All experiments, with repeats.
    pub visited: usize,
}

/// One of the searches.
type Search = fn(&Results, &Limits) -> Next;

/// Runs a search to its end.
pub fn drive(search: Search, store: &Store, limits: &Limits) -> Outcome {
    let mut results = Results::new();
    loop {
        match search(&results, limits) {
            Next::Done(found) => return Outcome { found, unique: results.unique(), visited: results.visited() },
            Next::Probe { threads } => {
                let sample = results.samples(threads).len();
                results.add(threads, store.experiment(threads, sample));
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
    pub soar: Outcome,
    /// The Socialites search; None when the store keeps the SLA with every T.
    pub socialites: Option<Outcome>,
    /// Doubling and hill climbing as in bg-2013 section G, when asked for.
    pub doubling: Option<Outcome>,
}

/// A simulation: some stores, one set of limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// The limits of the searches.
    pub limits: Limits,
    /// A case a store.
    pub cases: Vec<Case>,
}

/// Runs what the arguments ask for.
pub fn simulate(args: &SimulateArgs) -> Result<Simulation, Failure> {
    if args.first_threads > args.max_threads {
        let (first, max) = (args.first_threads, args.max_threads);
        return Err(Failure::usage(format!("--first-threads {first} is above --max-threads {max}")));
    }
    let percent = |flag: &str, value: f64, most: f64| {
        let is_known = value >= 0.0 && value <= most;
        let wrong = || Failure::usage(format!("--{flag} {value} is not a percentage from 0 to {most}"));
        if is_known { Ok(value / 100.0) } else { Err(wrong()) }
    };
    let noise = percent("noise", args.noise, 50.0)?;
    let resolution = args.resolution.map_or(Ok(RESOLUTION), |value| percent("resolution", value, 50.0))?;
    let (first_threads, max_threads) = (args.first_threads, args.max_threads);
    let limits = Limits { first_threads, max_threads, resolution, noise: NOISE };
    let peaks = if args.peaks.is_empty() { &FIGURE_13[..] } else { &args.peaks };
    if let Some(peak) = peaks.iter().find(|peak| !(**peak >= 1.0 && **peak <= 1e9)) {
        return Err(Failure::usage(format!("--peaks {peak} is not a throughput from 1 to 1,000,000,000 actions/s")));
    }
    let case = |peak_per_s: &f64| {
        let ends_at = match args.curve {
            Form::Quadratic => None,
            Form::SquareRoot | Form::Saturating => Some((2.0 * peak_per_s).round() as u32),
        };
        let sla_until = args.sla_until.or(ends_at);
        let store = Store { form: args.curve, peak_per_s: *peak_per_s, sla_until, noise, seed: args.seed };
        Case {
            store,
            soar: drive(soar::next, &store, &limits),
            socialites: sla_until.map(|_| drive(socialites::next, &store, &limits)),
            doubling: args.compare.then(|| drive(doubling::next, &store, &limits)),
        }
    };
    Ok(Simulation { limits, cases: peaks.iter().map(case).collect() })
}

#[cfg(test)]
mod tests;
