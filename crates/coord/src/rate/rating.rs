//! What a rating is asked to find, and how.

use std::fmt::Debug;
use std::rc::Rc;

use clap::ValueEnum;
use schemas::verdict::{RateLimits, RatingParameters};

use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;
use crate::run::trial::Demand;
use crate::search::{Limits, Unit};

/// A rating that is checked and ready to run.
#[derive(Debug, Clone)]
pub struct Rating {
    /// What `encore rate` and `encore run` both need.
    pub setting: Setting,
    /// Which ratings.
    pub wanted: Wanted,
    /// The limits of the search.
    pub limits: Limits,
    /// T of every experiment of a rating by arrival rate; none if the trace set decides.
    pub threads: Option<u32>,
    /// How long the experiments of a search run.
    pub deltas: Deltas,
    /// How the load is searched.
    pub method: Method,
    /// The arguments as typed, which know the commands that come next.
    pub typed: Rc<dyn Typed>,
}

/// How long the experiments of a search run (bg-2013 section G: δ).
#[derive(Debug, Clone, PartialEq)]
pub struct Deltas {
    /// In seconds: at least one, in rising order, without duplicates.
    pub search_s: Vec<f64>,
    /// The search is repeated with a longer δ when a final experiment differs from it by more
    /// than this, in percent.
    pub check_percent: Option<f64>,
}

impl Rating {
    /// What an experiment with a load of the search asks for. `threads` are those of a rating by
    /// arrival rate.
    pub fn demand(&self, load: u32, threads: u32) -> Demand {
        match self.wanted.unit() {
            Unit::Threads => Demand { threads: load, rate_per_s: None },
            Unit::SessionsPerS => Demand { threads, rate_per_s: Some(load) },
        }
    }

    /// The parameters of the search, for `rating.json`. `settled_search_s` is the δ that the
    /// search ended with, `warmup_sessions` the warm-up of each experiment, and `threads` are those
    /// of a rating by arrival rate.
    pub fn parameters(&self, settled_search_s: f64, warmup_sessions: u64, threads: u32) -> RatingParameters {
        let (first, max) = (self.limits.first_load, self.limits.max_load);
        let (first_threads, max_threads) = (self.demand(first, threads).threads, self.demand(max, threads).threads);
        let by_rate = self.wanted.unit() == Unit::SessionsPerS;
        RatingParameters {
            search_s: self.deltas.search_s.clone(),
            settled_search_s,
            delta_check_percent: self.deltas.check_percent,
            first_threads,
            max_threads,
            rates: by_rate.then_some(RateLimits { first_per_s: first, max_per_s: max }),
            between: self.setting.between,
            warmup_sessions,
            unique_actors: self.setting.unique_actors,
        }
    }
}

/// How the load is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The load grows with the throughput, then the search closes in.
    Heuristic,
    /// Every load.
    Exhaustive,
}

/// The command line of a rating, as the user typed it.
pub trait Typed: Debug {
    /// What to do next: query the run, or repeat it on the same trace set. `setting` and `trace` are
    /// those of the rating as it ran; `program` is the name that the user types
    /// ([`schemas::program::to_type`]).
    fn next_commands(&self, rating: &Rating, setting: &Setting, trace: &TraceSet, program: &str) -> String;
}

/// Which ratings are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Wanted {
    /// The highest throughput
    Soar,
    /// The highest number of threads
    Socialites,
    /// Both ratings, which share their experiments
    #[default]
    Both,
    /// The highest arrival rate. `--by rate` chooses it, not `--rating`
    #[value(skip)]
    Rate,
}

impl Wanted {
    /// Whether SoAR is among them.
    pub fn has_soar(self) -> bool {
        matches!(self, Wanted::Soar | Wanted::Both)
    }

    /// Whether Socialites is among them.
    pub fn has_socialites(self) -> bool {
        matches!(self, Wanted::Socialites | Wanted::Both)
    }

    /// Whether the arrival rate is among them.
    pub fn has_rate(self) -> bool {
        self == Wanted::Rate
    }

    /// The unit of the loads that are searched.
    pub fn unit(self) -> Unit {
        match self {
            Wanted::Soar | Wanted::Socialites | Wanted::Both => Unit::Threads,
            Wanted::Rate => Unit::SessionsPerS,
        }
    }

    /// The words for a heading or a column.
    pub const fn name(self) -> &'static str {
        match self {
            Wanted::Soar => "SoAR",
            Wanted::Socialites => "Socialites",
            Wanted::Both => "SoAR and Socialites",
            Wanted::Rate => "arrival rate",
        }
    }
}
