//! `coord compare`: rates or measures several stores or designs, each with the same
//! trace set at every point of an axis, and shows what came out side by side.
//!
//! ```text
//!  plan, args ──▶ resolve ──▶ conduct ──▶ rate, or single (a cell: one store at one point)
//!  environment    cells,        │ comparison.json, .md, .svg, .html after each cell
//!                 each a        ▼
//!                 `coord rate`  table ──▶ text, Markdown, chart, page
//!                 or `run`      settings: what each store promises, what is unequal
//! ```

mod chart;
mod conduct;
mod page;
mod resolve;
mod settings;
mod show;
mod table;
#[cfg(test)]
mod tests;

use schemas::comparison::{ComparisonDocument, Outcome, Question};

use self::resolve::Job;
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::render::Voice;
use crate::resolve::Surroundings;
use crate::{rate, single};
use conduct::Finding;

/// Compares from beginning to end; prints as it goes. Cells that fail are in the
/// document and do not end the comparison.
pub fn compare(args: &CompareArgs, around: &Surroundings) -> Result<ComparisonDocument, Failure> {
    let comparison = resolve::comparison(args, around)?;
    let voice = Voice::new(args.json);
    // Each cell listens for Ctrl-C by itself; one that comes between two of
    // them is for the comparison.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Failure::tool(format!("cannot start the coordinator's runtime: {e}")))?;
    let interrupt = runtime
        .block_on(async { Interrupt::listen() })
        .map_err(|e| Failure::tool(format!("cannot listen for Ctrl-C: {e}")))?;
    let mut perform = |job: Job| match (interrupt.has_come(), job) {
        (true, _) => Err(Failure::Interrupted { run: None }),
        (false, Job::Rate(rating)) => rate::rate(rating).map(Finding::Rated),
        (false, Job::Measure(experiment)) => single::run(experiment).map(Finding::Measured),
    };
    conduct::conduct(&comparison, &mut perform, &|line| voice.say(line))
}

/// The exit code of a comparison that has come to its end: 3 when a cell failed or nothing
/// of it could be measured, 1 when stores were rated and one kept the SLA at no point, else 0.
pub fn exit_code(document: &ComparisonDocument) -> u8 {
    let is_failed = |outcome: &Outcome| match outcome {
        Outcome::Failed(_) => true,
        Outcome::Rated { .. } => ratings(outcome).iter().any(|rating| rating.unmeasured),
        Outcome::Missing | Outcome::Measured(_) => false,
    };
    if document.cells.iter().any(|cell| is_failed(&cell.outcome)) {
        return 3;
    }
    if matches!(document.plan.question(), Question::Measure(_)) {
        return 0;
    }
    let kept_somewhere = |store: &str| {
        let of_store = document.cells.iter().filter(|cell| cell.store == store);
        of_store.flat_map(|cell| ratings(&cell.outcome)).any(|rating| rating.value > 0.0)
    };
    if document.plan.stores.iter().all(|store| kept_somewhere(&store.label)) { 0 } else { 1 }
}

/// The cells that failed, a sentence each.
pub fn failures(document: &ComparisonDocument) -> Vec<String> {
    let failed = document.cells.iter().filter_map(|cell| match &cell.outcome {
        Outcome::Failed(message) => Some(format!("{}: {message}", show::cell_name(cell))),
        Outcome::Missing | Outcome::Rated { .. } | Outcome::Measured(_) => None,
    });
    failed.collect()
}

fn ratings(outcome: &Outcome) -> Vec<&schemas::verdict::Rating> {
    match outcome {
        Outcome::Rated { soar, socialites } => [soar, socialites].into_iter().flatten().collect(),
        Outcome::Missing | Outcome::Measured(_) | Outcome::Failed(_) => Vec::new(),
    }
}
