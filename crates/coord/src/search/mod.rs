//! The rating search: which number of threads T to try next, as a pure function
//! of the results so far.
//!
//! A search holds no state of its own. It is asked again after each experiment
//! with all results by T, and answers with a T that it needs or with what it
//! found. So both ratings share their experiments, and a search can be taken up
//! from stored results (bg-2013 section G).
//!
//! A T is asked for again only where its samples could mislead: when results
//! differ by less than their spread, when their rulings disagree, and where the
//! answer rests on a single sample. At most [`MOST_SAMPLES`] samples a T.

mod bracket;
mod concave;
pub mod doubling;
pub mod exhaustive;
mod results;
pub mod soar;
pub mod socialites;

use schemas::verdict::{self, Ruling};

pub use results::{MOST_REPEATS, MOST_SAMPLES, Mean, Point, Probe, Results, Spread};

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The first T, at least 1.
    pub first_threads: u32,
    /// The highest T.
    pub max_threads: u32,
    /// An interval narrower than this share of T is not divided further; 0 goes
    /// down to single threads.
    pub resolution: f64,
    /// The standard deviation of experiments with one T, as a share of their
    /// mean, that is taken for granted until repeats have shown the real one.
    /// With 0 the first result is believed and nothing is repeated.
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
        /// T; a repeat when it is among the results.
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
    /// The search ended at the highest T allowed: a higher one may do better. For SoAR
    /// throughput has to rise up to there by more than its spread.
    pub at_least: bool,
    /// Where the true rating lies.
    pub interval: Interval,
    /// The T's whose results the answer rests on: its own and those that bound it.
    pub rests_on: Vec<u32>,
    /// The T's whose void experiments the search took for fails.
    pub void_threads: Vec<u32>,
}

/// Where the true rating lies, in the rating's own unit: actions a second for
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
    pub fn told(&self) -> verdict::Interval {
        let basis = match self.basis {
            Basis::Nothing => "nothing: no number of threads kept the SLA",
            Basis::Repeats => {
                "95% of the throughput at this T, by Student's t over the repeated experiments of the search"
            }
            Basis::Prior => {
                "95% of the throughput at this T, from the spread taken for granted between experiments: none was repeated"
            }
            Basis::Border => "from the last T that passed to the one before the first that did not",
        };
        verdict::Interval { low: self.low, high: self.high, basis: basis.to_string() }
    }
}

/// What an interval was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// There is nothing to say: no T passed.
    #[default]
    Nothing,
    /// 95% by Student's t, with the spread of the search's repeats and
    /// [`Limits::noise`] together, of the throughput at the T found.
    Repeats,
    /// 95% of the normal distribution, with the spread of [`Limits::noise`]:
    /// there were too few repeats to learn another.
    Prior,
    /// The last T that passed, and the one before the first that failed.
    Border,
}

/// The T that a search cannot go on without.
struct Missing(u32);

/// The results as a search sees them; notes which void ones it met.
struct View<'a> {
    results: &'a Results,
    limits: &'a Limits,
    spread: Spread,
    void_threads: Vec<u32>,
}

impl View<'_> {
    /// What a T showed. When as many samples passed as did not, one more decides.
    fn at(&mut self, threads: u32) -> Result<Point, Missing> {
        let point = self.results.point(threads).filter(|point| !point.is_tied).ok_or(Missing(threads))?;
        if point.ruling == Ruling::Void && !self.void_threads.contains(&threads) {
            self.void_threads.push(threads);
        }
        Ok(point)
    }

    /// Whether the search ended at the highest T allowed while throughput still rose: that T
    /// passed and is as good as the best, as far as resolution and spread tell, and the best
    /// lies above every T of at most half as many threads by more than their spread. Where
    /// none of these passed, nothing says that throughput has stopped to rise.
    fn rises_to_the_limit(&self, best: &Point) -> bool {
        let Some(last) = self.results.point(self.limits.max_threads).filter(Point::passed) else { return false };
        let is_near = last.threads.saturating_sub(best.threads) <= self.limits.gap(best.threads);
        let mut lower = self.results.points().filter(|point| point.passed() && point.threads <= best.threads / 2);
        is_near && !self.spread.is_clear(&last, best) && lower.all(|lower| self.spread.is_clear(&lower, best))
    }

    /// Asks for a second opinion on a fail that the answer rests on: nothing
    /// else would ever show that it was an accident.
    fn confirm_fail(&mut self, fail: u32) -> Result<(), Missing> {
        let point = self.at(fail)?;
        if self.limits.noise > 0.0 && point.ruling == Ruling::Fail && point.ruled < 2 && point.samples < MOST_SAMPLES {
            Err(Missing(fail))
        } else {
            Ok(())
        }
    }

    /// Asks for one more sample of one of these, the one with the fewest, unless
    /// all have enough or the search has repeated enough.
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
