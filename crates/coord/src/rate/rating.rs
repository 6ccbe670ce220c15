//! What a rating is asked to find, and how.

use std::fmt::Debug;
use std::rc::Rc;

use clap::ValueEnum;
use schemas::verdict::RatingParameters;

use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;
use crate::search::Limits;

/// A rating that is checked and ready to run.
#[derive(Debug, Clone)]
pub struct Rating {
    /// What `encore rate` and `encore run` both need.
    pub setting: Setting,
    /// Which ratings.
    pub wanted: Wanted,
    /// The limits of the search.
    pub limits: Limits,
    /// How long the experiments of a search run.
    pub deltas: Deltas,
    /// How T is searched.
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
    /// The parameters of the search, for `rating.json`. `settled_search_s` is the δ that the
    /// search ended with, `warmup_sessions` the warm-up of each experiment.
    pub fn parameters(&self, settled_search_s: f64, warmup_sessions: u64) -> RatingParameters {
        RatingParameters {
            search_s: self.deltas.search_s.clone(),
            settled_search_s,
            delta_check_percent: self.deltas.check_percent,
            first_threads: self.limits.first_threads,
            max_threads: self.limits.max_threads,
            between: self.setting.between,
            warmup_sessions,
            unique_actors: self.setting.unique_actors,
        }
    }
}

/// How T is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// T grows with the throughput, then the search closes in.
    Heuristic,
    /// Every T.
    Exhaustive,
}

/// The command line of a rating, as the user typed it.
pub trait Typed: Debug {
    /// What to do next: query the run, or repeat it on the same trace set. `setting` and `trace` are
    /// those of the rating as it ran; `program` is the name that the user types
    /// ([`schemas::program::to_type`]).
    fn next_commands(&self, rating: &Rating, setting: &Setting, trace: &TraceSet, program: &str) -> String;
}

/// Which of the two ratings are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Wanted {
    /// The highest throughput
    Soar,
    /// The highest number of threads
    Socialites,
    /// Both ratings, which share their experiments
    #[default]
    Both,
}

impl Wanted {
    /// Whether SoAR is among them.
    pub fn has_soar(self) -> bool {
        self != Wanted::Socialites
    }

    /// Whether Socialites is among them.
    pub fn has_socialites(self) -> bool {
        self != Wanted::Soar
    }

    /// The words for a heading or a column.
    pub const fn name(self) -> &'static str {
        match self {
            Wanted::Soar => "SoAR",
            Wanted::Socialites => "Socialites",
            Wanted::Both => "SoAR and Socialites",
        }
    }
}
