//! The rating search: which load to try next, as a pure function of the results so far.
//!
//! A load is an integer with a [`Unit`]: a number of threads (T), or an arrival rate in sessions a
//! second. A search knows its loads as numbers; only words about it name the unit.
//!
//! A search holds no state. After each experiment the coordinator calls it again with all results
//! by load. The search answers with a load that it needs, or with what it found. So ratings with
//! the same unit share their experiments, and a search can be resumed from stored results (bg-2013
//! section G).
//!
//! A search asks for a load again only if its samples could mislead: when results differ by less
//! than their spread, when their rulings disagree, or when the answer rests on a single sample.
//! It asks for at most [`MOST_SAMPLES`] samples of a load.

mod border;
mod bracket;
mod concave;
pub mod doubling;
pub mod exhaustive;
pub mod noise;
pub mod rate;
mod results;
pub mod soar;
pub mod socialites;
mod unit;

use schemas::verdict::{self, Ruling};

pub use results::{MOST_REPEATS, MOST_SAMPLES, Mean, Point, Probe, Results, Spread};
pub use unit::Unit;

/// The resolution of a search, as a share of the load. Below a load of 40 it is a single thread, or
/// one session a second.
pub const RESOLUTION: f64 = 0.05;

/// The standard deviation that is assumed between short experiments with the same load, as a share
/// of their mean, until repeats have shown the real one.
pub const NOISE: f64 = 0.05;

/// The SoARs of bg-2013 Figure 13, in operations a second.
pub const FIGURE_13: [f64; 7] = [500.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The first load, at least 1.
    pub first_load: u32,
    /// The highest load.
    pub max_load: u32,
    /// An interval narrower than this share of the load is not divided further; 0 divides down to
    /// neighbouring loads.
    pub resolution: f64,
    /// The standard deviation that is assumed between experiments with the same load, as a share of
    /// their mean, until repeats have shown the real one. With 0 the first result is believed and
    /// nothing is repeated.
    pub noise: f64,
}

impl Limits {
    /// How far apart two loads around `load` may stay.
    fn gap(&self, load: u32) -> u32 {
        ((load as f64 * self.resolution) as u32).max(1)
    }

    /// How far below `load` another may stay to be near enough.
    fn gap_below(&self, load: u32) -> u32 {
        ((load as f64 * self.resolution / (1.0 + self.resolution)) as u32).max(1)
    }

    /// The load that is `factor` times as high, within the limit.
    fn times(&self, load: u32, factor: u32) -> u32 {
        load.saturating_mul(factor).min(self.max_load)
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Run an experiment with this load.
    Probe {
        /// The load; a repeat if it has results already.
        load: u32,
    },
    /// The search is over.
    Done(Found),
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The load of the rating; 0 when no load passed.
    pub load: u32,
    /// Its throughput, the mean of its samples; 0 when no load passed.
    pub throughput_per_s: f64,
    /// Whether the search ended at the highest load allowed: a higher one may do better. For SoAR,
    /// throughput also has to rise up to that load by more than its spread.
    pub at_least: bool,
    /// Where the true rating lies.
    pub interval: Interval,
    /// The loads whose results the answer rests on: its own and those that bound it.
    pub rests_on: Vec<u32>,
    /// The loads whose void experiments the search treated as fails.
    pub void_loads: Vec<u32>,
}

/// Where the true rating lies, in the rating's own unit: operations a second for SoAR, threads for
/// Socialites, sessions a second for the arrival rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// The lowest value.
    pub low: f64,
    /// The highest value.
    pub high: f64,
    /// What it was computed from.
    pub basis: Basis,
}

impl Interval {
    /// The interval as `rating.json` has it, from a search over loads of this unit.
    pub fn to_document(&self, unit: Unit) -> verdict::Interval {
        let basis = match self.basis {
            Basis::Nothing => format!("no interval: no {} kept the SLA", unit.quantity()),
            Basis::Repeats => format!(
                "95% interval of the throughput at this {} (Student's t, repeated search experiments)",
                unit.brief()
            ),
            Basis::Prior => format!(
                "95% interval of the throughput at this {}, from the assumed spread (no experiment was repeated)",
                unit.brief()
            ),
            Basis::Border => unit.border().to_string(),
        };
        verdict::Interval { low: self.low, high: self.high, basis }
    }
}

/// What an interval was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// Nothing, because no load passed.
    #[default]
    Nothing,
    /// The throughput at the load found: 95% by Student's t, with the spread of the search's repeats
    /// and [`Limits::noise`] together.
    Repeats,
    /// The throughput at the load found: 95% of the normal distribution, with the spread of
    /// [`Limits::noise`], because there were too few repeats to learn another.
    Prior,
    /// The last load that passed, and the one before the first that failed.
    Border,
}

/// A load that the search needs before it can continue.
struct Missing(u32);

/// The results as a search sees them. It records which void ones the search met.
struct View<'a> {
    results: &'a Results,
    limits: &'a Limits,
    spread: Spread,
    void_loads: Vec<u32>,
}

impl View<'_> {
    /// What a load showed. Asks for a sample if it has none, or if one more has to decide.
    fn at(&mut self, load: u32) -> Result<Point, Missing> {
        let point = self.results.point(load).filter(|point| !point.is_tied).ok_or(Missing(load))?;
        if point.ruling == Ruling::Void && !self.void_loads.contains(&load) {
            self.void_loads.push(load);
        }
        Ok(point)
    }

    /// Whether the search ended at the highest load allowed while throughput still rose. That load
    /// has to pass and to be as good as the best, as far as resolution and spread tell. The best has
    /// to lie above every load of at most half of it by more than their spread. If none of these
    /// passed, nothing says that throughput has stopped rising.
    fn rises_to_the_limit(&self, best: &Point) -> bool {
        let Some(last) = self.results.point(self.limits.max_load).filter(Point::passed) else { return false };
        let is_near = last.load.saturating_sub(best.load) <= self.limits.gap(best.load);
        let mut lower = self.results.points().filter(|point| point.passed() && point.load <= best.load / 2);
        is_near && !self.spread.is_clear(&last, best) && lower.all(|lower| self.spread.is_clear(&lower, best))
    }

    /// Asks for a second sample of a fail that the answer rests on: nothing else would show that
    /// it was an accident.
    fn confirm_fail(&mut self, fail: u32) -> Result<(), Missing> {
        let point = self.at(fail)?;
        if self.limits.noise > 0.0 && point.ruling == Ruling::Fail && point.ruled < 2 && point.samples < MOST_SAMPLES {
            Err(Missing(fail))
        } else {
            Ok(())
        }
    }

    /// Asks for one more sample of the point that has the fewest, unless all have enough or the
    /// search has repeated enough.
    fn repeat<const N: usize>(&self, points: [&Point; N]) -> Result<(), Missing> {
        let repeats: usize = self.results.points().filter(Point::passed).map(|point| point.samples - 1).sum();
        let fewest = points.into_iter().min_by_key(|point| point.samples);
        match fewest {
            Some(point) if self.limits.noise > 0.0 && point.samples < MOST_SAMPLES && repeats < MOST_REPEATS => {
                Err(Missing(point.load))
            }
            _ => Ok(()),
        }
    }
}

/// Runs a search from its beginning until it is done or needs a load.
fn advance(results: &Results, limits: &Limits, search: impl FnOnce(View) -> Result<Found, Missing>) -> Next {
    let spread = Spread::of(results, limits);
    match search(View { results, limits, spread, void_loads: Vec::new() }) {
        Ok(found) => Next::Done(found),
        Err(Missing(load)) => Next::Probe { load },
    }
}

#[cfg(test)]
mod testing;
