//! The verdicts that a command works with: those of a run, which are stored or made now.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use schemas::run::RunFolder;
use schemas::sla::Sla;
use schemas::terminal::complain;
use schemas::verdict::{RatingDocument, Verdict};

use crate::error::AnalyzeError;
use crate::{Keep, analyze_with, html, stored_verdict, summarize};

/// The numbers of a run's experiments, without one that its coordinator still works on: its log is not whole, and an analysis
/// would take processor time from it. A note names it.
pub(super) fn ended(run: &RunFolder) -> Result<Vec<u32>, AnalyzeError> {
    let is_locked = run.is_locked();
    let mut numbers = Vec::new();
    for (experiment, _) in run.experiments()? {
        if is_locked && stored_verdict(run, experiment)?.is_none() {
            complain("note", format_args!("experiment {experiment} is under way, so it is left out"));
        } else {
            numbers.push(experiment);
        }
    }
    Ok(numbers)
}

/// A run and the verdicts of all its experiments that have ended; analyzes those that are not analyzed yet.
pub(super) fn whole(run: &Path) -> Result<(RunFolder, Vec<Verdict>), AnalyzeError> {
    let run = RunFolder::new(run);
    run.read_document()?;
    let mut verdicts = Vec::new();
    for experiment in ended(&run)? {
        verdicts.push(verdict(&run, experiment, None)?);
    }
    note_left_behind(&run)?;
    Ok((run, verdicts))
}

/// Prints a note that names the experiments whose rows are not here, and says how to fetch them.
pub(super) fn note_left_behind(run: &RunFolder) -> Result<(), AnalyzeError> {
    let mut numbers = Vec::new();
    for (number, folder) in run.experiments()? {
        if !summarize::left_behind(&folder)?.is_empty() {
            numbers.push(number.to_string());
        }
    }
    if !numbers.is_empty() {
        let noun = if numbers.len() == 1 { "experiment" } else { "experiments" };
        let (numbers, run) = (numbers.join(", "), run.root().display());
        complain(
            "note",
            format_args!(
                "the logs of {noun} {numbers} are on their replayers' machines, so their rows are missing here; fetch \
                 them with `encore collect {run}`"
            ),
        );
    }
    Ok(())
}

/// The verdict of an experiment: the stored one, or a new one. A verdict against another SLA than
/// the run's own is not stored.
pub(super) fn verdict(run: &RunFolder, experiment: u32, sla: Option<&Sla>) -> Result<Verdict, AnalyzeError> {
    let stored = stored_verdict(run, experiment)?;
    let is_its_own = match sla {
        Some(sla) => *sla == run.read_document()?.sla(),
        None => true,
    };
    let keep = if stored.is_none() && is_its_own { Keep::All } else { Keep::Nothing };
    match stored {
        Some(stored) if sla.is_none_or(|sla| *sla == stored.sla) => Ok(stored),
        _ => analyze_with_progress(run, experiment, sla, keep),
    }
}

fn analyze_with_progress(
    run: &RunFolder,
    experiment: u32,
    sla: Option<&Sla>,
    keep: Keep,
) -> Result<Verdict, AnalyzeError> {
    // Progress goes to standard error, and only if that is a terminal.
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    let rows = AtomicU64::new(0);
    let verdict = analyze_with(run, experiment, sla, keep, &|more| {
        let rows = rows.fetch_add(more, Ordering::Relaxed) + more;
        bar.set_message(format!("analyzing experiment {experiment}: {rows} operations"));
        bar.tick();
    });
    bar.finish_and_clear();
    verdict
}

/// The requested experiment, else the one that represents the run.
pub(super) fn select<'a>(
    run: &RunFolder,
    experiment: Option<u32>,
    rating: Option<&RatingDocument>,
    verdicts: &'a [Verdict],
) -> Result<Option<&'a Verdict>, AnalyzeError> {
    let Some(experiment) = experiment else { return Ok(html::representative(rating, verdicts)) };
    let found = verdicts.iter().find(|verdict| verdict.experiment == experiment);
    found.map(Some).ok_or_else(|| {
        let numbers: Vec<String> = verdicts.iter().map(|verdict| verdict.experiment.to_string()).collect();
        let known = if numbers.is_empty() { "it has none".into() } else { format!("it has {}", numbers.join(", ")) };
        AnalyzeError::NoExperiment { run: run.root().to_path_buf(), experiment, known }
    })
}
