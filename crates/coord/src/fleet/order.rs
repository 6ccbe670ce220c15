//! What a fleet is asked to do, and what comes back: its setting, the order for an experiment, and
//! the experiment that ran.

use std::path::PathBuf;

use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::run::{ExperimentFolder, ReplayReport};
use schemas::sla::Sla;
use storage::Url;

use super::address::Address;

/// Which replayers take part, and what they require.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetSetting {
    /// Their addresses; if there are none, processes on this machine take part.
    pub replayers: Vec<Address>,
    /// How many take part, at least one.
    pub count: usize,
    /// Whether their weights are measured.
    pub calibrate: bool,
    /// Whether logs stay where they are written, and only their summaries are transferred.
    pub leave_logs: bool,
    /// A folder with `ca.pem`, `coordinator.pem` and `coordinator.key`, for TLS.
    pub certificates: Option<PathBuf>,
    /// The secret that they require.
    pub token: Option<String>,
}

/// An experiment that ran to its end, or until a replayer was lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it went, over all replayers.
    pub report: ReplayReport,
    /// When it started, in nanoseconds since 1970, after the store was loaded.
    pub start_unix_ns: i64,
    /// Which replayers could not finish their closing read, and why.
    pub unread: Vec<String>,
}

/// What to do with the logs of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Logs {
    /// The coordinator fetches those that are not written to its run folder.
    Fetched,
    /// Replayers summarize those that are not written to the run folder, for this SLA.
    Left(Sla),
    /// There are none: the experiment only measures the replayers.
    Unwritten,
}

/// What to run.
pub struct Order<'a> {
    /// The experiment.
    pub plan: &'a Plan,
    /// Its trace set.
    pub manifest: &'a Manifest,
    /// Where plan, report and logs go.
    pub folder: &'a ExperimentFolder,
    /// What to do with the logs.
    pub logs: Logs,
    /// Where in object storage the trace set is too: replayers that share this place take it from there.
    pub trace_url: Option<&'a Url>,
    /// Where in object storage replayers publish logs that they summarize.
    pub publish_to: Option<&'a Url>,
    /// The name of the run, for the folders of replayers that share none with this machine.
    pub run: &'a str,
}
