//! What the searches of a rating found, and what becomes of it while it is confirmed.

use schemas::plan::Limit;
use schemas::verdict::{Rating, Ruling};

use crate::rate::voids::Void;
use crate::search::{Found, Interval};

/// A rating with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rated {
    /// The load at which it was reached; 0 when none.
    pub(super) load: u32,
    /// The rating, all but its threads.
    pub(super) rating: Rating,
    /// Where the true value lies, in the rating's own unit.
    pub(super) interval: Interval,
    /// The void experiments that it rests on.
    pub(super) voids: Vec<Void>,
}

impl Rated {
    /// Adds experiments to those that the rating rests on.
    pub(super) fn rest_on(&mut self, experiments: impl IntoIterator<Item = u32>) {
        let rests_on = &mut self.rating.rests_on;
        rests_on.extend(experiments);
        rests_on.sort_unstable();
        rests_on.dedup();
    }

    /// Takes the load itself as the value: that of Socialites and of the arrival rate. A load that
    /// failed in a final experiment moves the border down.
    pub(super) fn value_is_load(&mut self, failed: impl Iterator<Item = u32>, below: fn(u32) -> f64) {
        let load = self.load;
        self.rating.value = f64::from(load);
        self.interval.low = f64::from(load);
        let failed = failed.filter(|failed| *failed > load).map(below);
        self.interval.high = failed.fold(self.interval.high, f64::min);
    }
}

/// An experiment of the search, with what a rating says of it.
pub(super) struct Sample {
    pub(super) experiment: u32,
    pub(super) threads: u32,
    pub(super) ruling: Ruling,
    pub(super) reason: String,
    /// Its planned time.
    pub(super) seconds: f64,
}

/// The planned time of an experiment; 0 if it ends by another limit.
pub(super) fn seconds(limit: &Limit) -> f64 {
    if let Limit::DurationS(seconds) = limit { *seconds } else { 0.0 }
}

/// What the searches of the wanted ratings found.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rate) struct Searched {
    pub(in crate::rate) soar: Option<Found>,
    pub(in crate::rate) socialites: Option<Found>,
    pub(in crate::rate) rate: Option<Found>,
}

/// The wanted ratings.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::rate) struct Ratings {
    pub(in crate::rate) soar: Option<Rating>,
    pub(in crate::rate) socialites: Option<Rating>,
    pub(in crate::rate) rate: Option<Rating>,
}
