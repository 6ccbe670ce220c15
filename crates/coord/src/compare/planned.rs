//! A comparison before it runs: its cells, and what to do for each.

use std::path::PathBuf;

use schemas::comparison::{ComparisonFolder, ComparisonPlan};

use crate::rate::Rating;
use crate::run::setting::Setting;
use crate::run::single::Single;

/// A comparison that is checked and ready to run.
#[derive(Debug)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: ComparisonFolder,
    /// The plan, with the overrides of the command line and with environment variables replaced
    /// in its URLs.
    pub plan: ComparisonPlan,
    /// The cells, point by point, and store by store in each point.
    pub cells: Vec<PlannedCell>,
    /// Whether to resume a comparison that was begun before.
    pub resume: bool,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The command line without secrets.
    pub command: Vec<String>,
}

/// One store at one point, to be rated or measured.
#[derive(Debug)]
pub struct PlannedCell {
    /// The point's label; empty without an axis.
    pub point: String,
    /// The store's label.
    pub store: String,
    /// The name of its run folder.
    pub run: String,
    /// The file in the run folder of an embedded store whose URL has no path.
    pub own_file: Option<PathBuf>,
    /// What to do.
    pub job: Job,
}

/// What to do for a cell.
#[derive(Debug, Clone)]
pub enum Job {
    /// A search for ratings.
    Rate(Rating),
    /// One experiment.
    Measure(Single),
}

impl Job {
    /// The workload, the store, and where results go.
    pub fn setting(&self) -> &Setting {
        match self {
            Job::Rate(rating) => &rating.setting,
            Job::Measure(single) => &single.setting,
        }
    }

    /// The same, to name the cell's folder.
    pub fn setting_mut(&mut self) -> &mut Setting {
        match self {
            Job::Rate(rating) => &mut rating.setting,
            Job::Measure(single) => &mut single.setting,
        }
    }
}
