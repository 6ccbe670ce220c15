//! `encore compare`: rates or measures several stores or designs, each with the same trace set at
//! every point of an axis, and shows the results side by side.
//!
//! ```text
//!  plan, args ──▶ planned ──▶ conduct ──▶ rate, or single (a cell: one store at one point)
//!  (resolved by   cells,        │ comparison.json, .md, .svg, .html after each cell
//!  the command    each a        ▼
//!  line)          `encore rate`  table ──▶ text, Markdown, chart, page
//!                 or `run`      settings: what each store promises, what is unequal
//! ```

mod chart;
mod conduct;
mod outcome;
mod page;
mod planned;
mod settings;
mod show;
mod table;
#[cfg(test)]
mod tests;
mod transactions;

use schemas::comparison::ComparisonDocument;

use crate::failure::Failure;
use crate::rate;
use crate::run::{runtime, single};
use crate::terminal::Voice;
use conduct::Finding;
pub use outcome::{exit_code, failures};
pub use planned::{Comparison, Job, PlannedCell};

/// Compares from beginning to end; prints as it goes. The document contains the cells that fail,
/// and they do not end the comparison.
/// `json` says whether stdout is for one JSON object alone.
pub fn compare(comparison: &Comparison, json: bool) -> Result<ComparisonDocument, Failure> {
    let voice = Voice::new(json);
    // Each cell listens for Ctrl-C by itself. An interrupt between two cells is handled here.
    let runtime = runtime::start()?;
    let interrupt = runtime::listen(&runtime)?;
    let mut perform = |job: Job| match (interrupt.has_come(), job) {
        (true, _) => Err(Failure::Interrupted { run: None }),
        (false, Job::Rate(rating)) => rate::rate(rating).map(Box::new).map(Finding::Rated),
        (false, Job::Measure(experiment)) => single::run(experiment).map(Box::new).map(Finding::Measured),
    };
    conduct::conduct(comparison, &mut perform, &|line| voice.say(line))
}
