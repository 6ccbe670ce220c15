//! The results of the experiments so far, sample by sample, and how far results with the same load
//! lie apart.

use std::collections::BTreeMap;

use schemas::verdict::Ruling;

use super::{Basis, Interval, Limits};

/// The most samples of one load: more teach a search little.
pub const MOST_SAMPLES: usize = 3;

/// The most repeats that one search may ask for because results lie too close together. It may
/// also repeat what its answer rests on.
pub const MOST_REPEATS: usize = 8;

/// Deviations below this share are rounding errors.
const ROUNDING: f64 = 1e-12;

/// The prior spread counts as this many repeats: a few repeats that lie close together by chance
/// must not make the search too sure of itself.
const PRIOR_REPEATS: usize = 2;

/// After this many repeats that agree to the last digit, only equal results are expected: those
/// of a formula.
const EQUAL_REPEATS: usize = 2;

/// The results so far. A load that ran several times has several samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    by_load: BTreeMap<u32, Vec<Probe>>,
}

/// What one experiment with some load showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Pass, fail or void.
    pub ruling: Ruling,
}

impl Results {
    /// No results yet.
    pub fn new() -> Results {
        Results::default()
    }

    /// Adds the result of one more experiment.
    pub fn add(&mut self, load: u32, probe: Probe) {
        self.by_load.entry(load).or_default().push(probe);
    }

    /// The samples of a load, in the order in which they came.
    pub fn samples(&self, load: u32) -> &[Probe] {
        self.by_load.get(&load).map_or(&[], Vec::as_slice)
    }

    /// How many different loads ran: the unique experiments of bg-2013 Figure 13.
    pub fn unique(&self) -> usize {
        self.by_load.len()
    }

    /// How many experiments ran: unique ones and repeats.
    pub fn visited(&self) -> usize {
        self.by_load.values().map(Vec::len).sum()
    }

    /// What each load showed, in rising order.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = Point> {
        self.by_load.iter().map(|(load, samples)| Point::of(*load, samples))
    }

    /// What a load showed; None when it did not run.
    pub fn point(&self, load: u32) -> Option<Point> {
        self.by_load.get(&load).map(|samples| Point::of(load, samples))
    }
}

/// The samples of one load taken together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The load.
    pub load: u32,
    /// The mean of the samples that have the ruling of the majority, in successful operations a
    /// second.
    pub throughput_per_s: f64,
    /// The ruling of the majority. As many passes as fails are a fail. A void sample has no vote.
    /// A load with only void samples is void, which bounds a search as a fail does and is reported.
    pub ruling: Ruling,
    /// How many samples there are.
    pub samples: usize,
    /// How many of them are not void.
    pub ruled: usize,
    /// Whether one more sample has to decide: there are as many passes as fails, or a single void
    /// sample.
    pub is_tied: bool,
    /// How many samples are in the mean.
    pub agreeing: usize,
    /// The sum of the squared deviations of these samples from the mean, relative to the mean.
    squares: f64,
}

impl Point {
    fn of(load: u32, samples: &[Probe]) -> Point {
        let count = |ruling: Ruling| samples.iter().filter(|probe| probe.ruling == ruling).count();
        let (passes, fails) = (count(Ruling::Pass), count(Ruling::Fail));
        let ruling = match passes + fails {
            0 => Ruling::Void,
            _ if passes > fails => Ruling::Pass,
            _ => Ruling::Fail,
        };
        let agreeing = || samples.iter().filter(|probe| probe.ruling == ruling).map(|probe| probe.throughput_per_s);
        let number = agreeing().count();
        let mean = agreeing().sum::<f64>() / number as f64;
        let squares = if mean > 0.0 { agreeing().map(|value| (value / mean - 1.0).powi(2)).sum() } else { 0.0 };
        let is_tied = match ruling {
            Ruling::Void => samples.len() < 2,
            _ => passes == fails && samples.len() < MOST_SAMPLES,
        };
        let (samples, ruled) = (samples.len(), passes + fails);
        Point { load, throughput_per_s: mean, ruling, samples, ruled, is_tied, agreeing: number, squares }
    }

    /// Whether the SLA was kept.
    pub fn passed(&self) -> bool {
        self.ruling == Ruling::Pass
    }

    /// Its throughput, with the number of samples in it.
    pub fn mean(&self) -> Mean {
        Mean { per_s: self.throughput_per_s, samples: self.agreeing }
    }
}

/// A throughput that is the mean of several experiments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Operations a second.
    pub per_s: f64,
    /// How many experiments are in it, at least one.
    pub samples: usize,
}

/// How far two samples of one load lie apart by chance, as a share of their mean. It is one figure
/// for all loads, because every load has few samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The standard deviation.
    pub share: f64,
    /// How many repeats it comes from; 0 if it is the prior one.
    pub repeats: usize,
}

impl Spread {
    /// The pooled spread of all repeats and the prior one together.
    pub fn of(results: &Results, limits: &Limits) -> Spread {
        let mut repeats = 0;
        let mut squares = 0.0;
        for point in results.points().filter(|point| point.ruling != Ruling::Void) {
            repeats += point.agreeing - 1;
            squares += point.squares;
        }
        // The mean of equal samples may differ from them in the last digit.
        let are_equal = squares.sqrt() < ROUNDING;
        if are_equal && repeats < EQUAL_REPEATS {
            return Spread { share: limits.noise, repeats: 0 };
        }
        if are_equal {
            return Spread { share: 0.0, repeats };
        }
        let prior = PRIOR_REPEATS as f64 * limits.noise.powi(2);
        Spread { share: ((prior + squares) / (PRIOR_REPEATS + repeats) as f64).sqrt(), repeats }
    }

    /// Whether `lower` lies below `higher` by more than their spread explains.
    pub fn is_clear(&self, lower: &Point, higher: &Point) -> bool {
        self.is_below(lower.mean(), higher.mean())
    }

    /// The same for two throughputs, which need not come from the search.
    pub fn is_below(&self, lower: Mean, higher: Mean) -> bool {
        let error = (1.0 / lower.samples as f64 + 1.0 / higher.samples as f64).sqrt();
        higher.per_s - lower.per_s > self.factor() * self.share * error * higher.per_s
    }

    fn factor(&self) -> f64 {
        if self.repeats == 0 { NORMAL } else { student(PRIOR_REPEATS + self.repeats) }
    }

    /// The 95% interval of the throughput at one load, around a value that rests on this many
    /// samples.
    pub fn interval(&self, value: f64, samples: usize) -> Interval {
        let margin = self.factor() * self.share * value / (samples.max(1) as f64).sqrt();
        let basis = if self.repeats == 0 { Basis::Prior } else { Basis::Repeats };
        Interval { low: (value - margin).max(0.0), high: value + margin, basis }
    }
}

/// The 97.5% quantile of the normal distribution.
const NORMAL: f64 = 1.96;

/// The 97.5% quantile of Student's t with this many degrees of freedom.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 12] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];
    // Beyond the table, the first term of Cornish and Fisher's expansion is exact to 0.01.
    let beyond = || NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * degrees as f64);
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or_else(beyond)
}
