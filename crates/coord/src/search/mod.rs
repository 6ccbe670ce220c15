//! The rating search: which number of threads T to try next, as a pure function
//! of the results so far.
//!
//! A search holds no state of its own. It is asked again after each experiment
//! with all results by T, and answers with a T that is missing or with what it
//! found. So no T runs twice, both ratings share their experiments, and a search
//! can be taken up from stored results (bg-2013 section G).

pub mod exhaustive;
pub mod soar;
pub mod socialites;

use std::collections::BTreeMap;

use schemas::verdict::Ruling;

/// The results so far, by number of threads.
pub type Results = BTreeMap<u32, Probe>;

/// What an experiment with some T showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Successful operations a second.
    pub throughput_per_s: f64,
    /// Pass, fail or void; void counts as a fail and is reported.
    pub ruling: Ruling,
}

impl Probe {
    /// Whether the SLA was kept.
    pub fn passed(&self) -> bool {
        self.ruling == Ruling::Pass
    }
}

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
    /// Doubling goes on while the throughput falls by no more than this share
    /// of the highest: short experiments differ by as much without a reason.
    pub noise: f64,
}

impl Limits {
    /// How far apart two T's around `threads` may stay.
    fn gap(&self, threads: u32) -> u32 {
        ((threads as f64 * self.resolution) as u32).max(1)
    }

    /// The T after `threads` when doubling; None at the limit.
    fn doubled(&self, threads: u32) -> Option<u32> {
        (threads < self.max_threads).then(|| threads.saturating_mul(2).min(self.max_threads))
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Run an experiment with this many threads.
    Probe {
        /// T, which is not among the results.
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
    /// Its throughput; 0 when no T passed.
    pub throughput_per_s: f64,
    /// The search ended at the highest T allowed: a higher one may do better.
    pub at_least: bool,
    /// The T's whose void experiments the search took for fails.
    pub void_threads: Vec<u32>,
}

/// The T that a search cannot go on without.
struct Missing(u32);

/// The results as a search sees them; notes which void ones it met.
struct Lookup<'a> {
    results: &'a Results,
    void_threads: Vec<u32>,
}

impl Lookup<'_> {
    fn at(&mut self, threads: u32) -> Result<Probe, Missing> {
        let probe = *self.results.get(&threads).ok_or(Missing(threads))?;
        if probe.ruling == Ruling::Void && !self.void_threads.contains(&threads) {
            self.void_threads.push(threads);
        }
        Ok(probe)
    }

    /// The answer for a search that ended at `threads` (0: none passed).
    fn found(self, threads: u32, limits: &Limits) -> Found {
        let throughput_per_s = self.results.get(&threads).map_or(0.0, |p| p.throughput_per_s);
        let at_least = threads >= limits.max_threads;
        Found { threads, throughput_per_s, at_least, void_threads: self.void_threads }
    }
}

/// Runs a search from its beginning until it is done or meets a T without result.
fn advance(results: &Results, search: impl FnOnce(Lookup) -> Result<Found, Missing>) -> Next {
    match search(Lookup { results, void_threads: Vec::new() }) {
        Ok(found) => Next::Done(found),
        Err(Missing(threads)) => Next::Probe { threads },
    }
}

#[cfg(test)]
mod testing;
