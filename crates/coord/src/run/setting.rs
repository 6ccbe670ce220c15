//! What a run is asked to do.

use std::path::PathBuf;
use std::sync::Arc;

use schemas::manifest::Manifest;
use schemas::pace_request::PaceRequest;
use schemas::plan::{Transactions, Warmup};
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Between;
use storage::Url;

use super::trial::Trial;
use crate::fleet::FleetSetting;
use crate::live::Board;

/// Where the trace set comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Generated from a spec, or reused if it was generated before.
    Spec(Box<Spec>),
    /// A trace set that the user names; it is never changed.
    Given {
        /// Its folder.
        folder: PathBuf,
        /// Its manifest.
        manifest: Box<Manifest>,
        /// Where in object storage it was fetched from.
        url: Option<Url>,
    },
}

impl Source {
    /// The workload.
    pub fn spec(&self) -> &Spec {
        match self {
            Source::Spec(spec) => spec,
            Source::Given { manifest, .. } => &manifest.spec,
        }
    }
}

/// What `encore rate` and `encore run` both need, resolved.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The run's name.
    pub name: String,
    /// Its folder, which does not exist yet.
    pub folder: PathBuf,
    /// Where generated trace sets are kept.
    pub traces: PathBuf,
    /// Where in object storage the run is published, under its name.
    pub publish: Option<Url>,
    /// The trace set.
    pub source: Source,
    /// The store's URL, with its secrets.
    pub store: String,
    /// The SLA.
    pub sla: Sla,
    /// What is replayed before each experiment is measured.
    pub warmup: Warmup,
    /// When sessions start: what the user asked for.
    pub pace: PaceRequest,
    /// Whether a rating searches the arrival rate.
    pub by_rate: bool,
    /// Seconds between two lines with the figures of a running experiment.
    pub monitor_s: Option<f64>,
    /// Whether an actor acts in at most one thread at a time.
    pub unique_actors: bool,
    /// How transactions are run.
    pub transactions: Transactions,
    /// Whether experiments end with a closing read: [`Setting::ends_with_closing_read`] says which.
    pub closing_read: bool,
    /// Whether the closing read checks conditions of the data.
    pub has_conditions: bool,
    /// What happens to the store between two experiments.
    pub between: Between,
    /// Whether the records in the store stay as another tool has loaded them.
    pub keep_data: bool,
    /// Operating-system threads of a replayer.
    pub workers: u32,
    /// Which replayers do the work.
    pub fleet: FleetSetting,
    /// How many experiments may be repeated because a replayer was lost.
    pub retries: u32,
    /// What the earlier experiments showed, if the run is resumed.
    pub past: Vec<Trial>,
    /// Whether stdout is for one JSON object alone.
    pub json: bool,
    /// Where the figures of running experiments are shown, besides the run's own feed.
    pub board: Option<Arc<Board>>,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The command line without secrets.
    pub command: Vec<String>,
}

impl Setting {
    /// Whether an experiment for this purpose ends with a closing read. One of a search has none unless
    /// the next experiment begins with it, or it is a check of conditions: no verdict depends on it, and reading
    /// every item may take longer than the experiment.
    pub fn ends_with_closing_read(&self, purpose: &Purpose) -> bool {
        self.closing_read && (*purpose != Purpose::Search || self.between == Between::Continue || self.has_conditions)
    }
}
