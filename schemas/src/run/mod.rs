//! The run folder: its paths, `run.json`, and what an experiment leaves there: a replayer's report
//! (`replay.json`) and what a rating needs to resume (`trial.json`).

mod document;
mod folder;
mod live;
mod report;
mod trial;

pub use crate::pacing::{Pacing, PacingCounts};
pub use crate::position::FragmentPosition;
pub use document::{Host, NOTE, RunDocument, RunState, add_settings, note};
pub(crate) use folder::COMPARISON;
pub use folder::{ExperimentFolder, RunError, RunFolder};
pub use live::{LiveEvent, LiveFigures, LiveLine, LiveReplayer, LiveVerdict};
pub use report::{ClockReading, EndReason, ReplayReport, ReplayerReport};
pub use trial::{Purpose, TrialNote};
