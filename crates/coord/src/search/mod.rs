//! The rating search: which number of threads T to try next, as a pure function of the results so
//! far.
//!
//! A search holds no state. After each experiment the coordinator calls it again with all results
//! by T. The search answers with a T that it needs, or with what it found. So both ratings share
//! their experiments, and a search can be resumed from stored results (bg-2013 section G).
//!
//! A search asks for a T again only if its samples could mislead: when results differ by less
//! than their spread, when their rulings disagree, or when the answer rests on a single sample.
//! It asks for at most [`MOST_SAMPLES`] samples of a T.

mod bracket;
mod concave;
pub mod doubling;
pub mod exhaustive;
pub mod noise;
mod results;
pub mod soar;
pub mod socialites;

use schemas::verdict::{self, Ruling};

pub use results::{MOST_REPEATS, MOST_SAMPLES, Mean, Point, Probe, Results, Spread};

/// The resolution of a search, as a share of T. Below 40 threads it is a single thread.
pub const RESOLUTION: f64 = 0.05;

/// The standard deviation that is assumed between short experiments with the same T, as a share
/// of their mean, until repeats have shown the real one.
pub const NOISE: f64 = 0.05;

/// The SoARs of bg-2013 Figure 13, in operations a second.
pub const FIGURE_13: [f64; 7] = [500.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The first T, at least 1.
    pub first_threads: u32,
    /// The highest T.
    pub max_threads: u32,
    /// An interval narrower than this share of T is not divided further; 0 divides down to single
    /// threads.
    pub resolution: f64,
    /// The standard deviation that is assumed between experiments with the same T, as a share of
    /// their mean, until repeats have shown the real one. With 0 the first result is believed and
    /// nothing is repeated.
    pub noise: f64,
}

impl Limits {
    /// How far apart two T's around `threads` may stay.
    fn gap(&self, threads: u32) -> u32 {
        ((threads as f64 * self.resolution) as u32).max(1)
    }

    /// How far below `threads` a T may stay to be near enough.
    fn gap_below(&self, threads: u32) -> u32 {
        ((threads as f64 * self.resolution / (1.0 + self.resolution)) as u32).max(1)
    }

    /// The T that is `factor` times as high, within the limit.
    fn times(&self, threads: u32, factor: u32) -> u32 {
        threads.saturating_mul(factor).min(self.max_threads)
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Run an experiment with this many threads.
    Probe {
        /// T; a repeat if it has results already.
        threads: u32,
    },
    /// The search is over.
    Done(Found),
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The T of the rating; 0 when no T passed.
    pub threads: u32,
    /// Its throughput, the mean of its samples; 0 when no T passed.
    pub throughput_per_s: f64,
    /// Whether the search ended at the highest T allowed: a higher one may do better. For SoAR,
    /// throughput also has to rise up to that T by more than its spread.
    pub at_least: bool,
    /// Where the true rating lies.
    pub interval: Interval,
    /// The T's whose results the answer rests on: its own and those that bound it.
    pub rests_on: Vec<u32>,
    /// The T's whose void experiments the search treated as fails.
    pub void_threads: Vec<u32>,
}

/// Where the true rating lies, in the rating's own unit: operations a second for
/// SoAR, threads for Socialites.
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
    /// The interval as `rating.json` has it.
    pub fn to_document(&self) -> verdict::Interval {
        let basis = match self.basis {
            Basis::Nothing => "no interval: no number of threads kept the SLA",
            Basis::Repeats => "95% interval of the throughput at this T (Student's t, repeated search experiments)",
            Basis::Prior => {
                "95% interval of the throughput at this T, from the assumed spread (no experiment was repeated)"
            }
            Basis::Border => "from the last T that passed to the T before the first that failed",
        };
        verdict::Interval { low: self.low, high: self.high, basis: basis.to_string() }
    }
}

/// What an interval was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// Nothing, because no T passed.
    #[default]
    Nothing,
    /// The throughput at the T found: 95% by Student's t, with the spread of the search's repeats
    /// and [`Limits::noise`] together.
    Repeats,
    /// The throughput at the T found: 95% of the normal distribution, with the spread of
    /// [`Limits::noise`], because there were too few repeats to learn another.
    Prior,
    /// The last T that passed, and the one before the first that failed.
    Border,
}

/// A T that the search needs before it can continue.
struct Missing(u32);

/// The results as a search sees them. It records which void ones the search met.
struct View<'a> {
    results: &'a Results,
    limits: &'a Limits,
    spread: Spread,
    void_threads: Vec<u32>,
}

impl View<'_> {
    /// What a T showed. Asks for a sample if T has none, or if one more has to decide.
    fn at(&mut self, threads: u32) -> Result<Point, Missing> {
        let point = self.results.point(threads).filter(|point| !point.is_tied).ok_or(Missing(threads))?;
        if point.ruling == Ruling::Void && !self.void_threads.contains(&threads) {
            self.void_threads.push(threads);
        }
        Ok(point)
    }

    /// Whether the search ended at the highest T allowed while throughput still rose. That T has
    /// to pass and to be as good as the best, as far as resolution and spread tell. The best has
    /// to lie above every T of at most half as many threads by more than their spread. If none of
    /// these passed, nothing says that throughput has stopped rising.
    fn rises_to_the_limit(&self, best: &Point) -> bool {
        let Some(last) = self.results.point(self.limits.max_threads).filter(Point::passed) else { return false };
        let is_near = last.threads.saturating_sub(best.threads) <= self.limits.gap(best.threads);
        let mut lower = self.results.points().filter(|point| point.passed() && point.threads <= best.threads / 2);
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
                Err(Missing(point.threads))
            }
            _ => Ok(()),
        }
    }
}

/// Runs a search from its beginning until it is done or needs a T.
fn advance(results: &Results, limits: &Limits, search: impl FnOnce(View) -> Result<Found, Missing>) -> Next {
    let spread = Spread::of(results, limits);
    match search(View { results, limits, spread, void_threads: Vec::new() }) {
        Ok(found) => Next::Done(found),
        Err(Missing(threads)) => Next::Probe { threads },
    }
}

#[cfg(test)]
mod testing;
