//! A run as one page (`report.html`), or several side by side, that opens anywhere and asks
//! nothing of anybody; and what such a page is made of, for the page of a comparison.
//!
//! Every picture is made of the answer to a statement that stands below it, so that
//! whoever doubts it can ask `analyzer sql` the same. The page has no script, and forbids
//! itself to load anything; all text goes through `maud`, which escapes it.

pub(crate) mod comparison;
mod figures;
mod page;

use std::path::PathBuf;

use maud::{Markup, html};
pub use page::{command_line, figure, page, quoted, section};
use schemas::files;
use schemas::run::{ReplayReport, RunFolder};
use schemas::verdict::{RatingDocument, Verdict};

use crate::error::AnalyzeError;
use crate::experiment::read_report;
use crate::sql::Database;
use crate::witness;

/// The name of the page in a run's folder.
const FILE_NAME: &str = "report.html";

/// How many unpredictable reads are told as stories.
const STORIES: usize = 5;

/// What a report is made of.
pub(crate) struct Told<'a> {
    pub(crate) document: &'a schemas::run::RunDocument,
    pub(crate) rating: Option<&'a RatingDocument>,
    pub(crate) verdicts: &'a [Verdict],
    /// Of the experiment that is told in detail, unless its replayer was killed.
    pub(crate) report: Option<&'a ReplayReport>,
    pub(crate) database: &'a Database,
}

/// Writes `report.html` of a run whose experiments have these verdicts.
pub fn write_report(run: &RunFolder, verdicts: &[Verdict]) -> Result<PathBuf, AnalyzeError> {
    let document = run.read_document()?;
    let rating = rating(run)?;
    let database = Database::open(run, verdicts, None)?;
    let report = match representative(rating.as_ref(), verdicts) {
        None => None,
        Some(verdict) => read_report(&run.experiment(verdict.experiment, verdict.threads))?,
    };
    let told =
        Told { document: &document, rating: rating.as_ref(), verdicts, report: report.as_ref(), database: &database };
    let page = page(&document.name, &body(&told)?);
    let path = run.root().join(FILE_NAME);
    files::write_atomically(&path, page.as_bytes())?;
    Ok(path)
}

/// The ratings of a run, where there are some.
pub(crate) fn rating(run: &RunFolder) -> Result<Option<RatingDocument>, AnalyzeError> {
    let path = run.rating();
    Ok(if path.exists() { Some(files::read_json(&path)?) } else { None })
}

fn body(told: &Told<'_>) -> Result<Markup, AnalyzeError> {
    let detailed = detailed(told);
    let mut parts = vec![page::head(told), page::ratings(told)];
    if !told.verdicts.is_empty() {
        parts.push(page::section("Throughput and agreement by threads", &figures::by_threads(told)?));
    }
    parts.push(page::experiments(told));
    if let Some(verdict) = detailed {
        let experiment = verdict.experiment;
        let heading = format!("Experiment {experiment}, {} threads", verdict.threads);
        parts.push(html! {
            h2 { (heading) }
            p.soft { (why_detailed(told, verdict)) }
        });
        parts.push(page::actions(verdict));
        for part in [
            figures::spectrum(told, verdict)?,
            figures::heat_map(told, verdict)?,
            figures::course(told, verdict)?,
            figures::times_in_course(told, verdict)?,
            figures::freshness(told, verdict)?,
            figures::mix(told, verdict)?,
            figures::popularity(told, verdict)?,
        ] {
            parts.push(part);
        }
        let offenders = witness::worst_offenders(told.database, experiment, STORIES)?;
        parts.push(page::section("Unpredictable reads", &figures::stories(verdict, &offenders)?));
    }
    if let (Some(verdict), Some(report)) = (detailed, told.report) {
        parts.push(page::replayers(verdict, report));
    }
    parts.push(page::circumstances(told));
    Ok(html! { @for part in &parts { (part) } })
}

fn detailed<'a>(told: &Told<'a>) -> Option<&'a Verdict> {
    representative(told.rating, told.verdicts)
}

/// The experiment that stands for a run: the one that its ratings rest on, else the last
/// one that says anything.
pub(crate) fn representative<'a>(rating: Option<&RatingDocument>, verdicts: &'a [Verdict]) -> Option<&'a Verdict> {
    let rested_on = rating.and_then(|rating| {
        let confirmed = [&rating.soar, &rating.socialites].into_iter().flatten();
        confirmed.filter_map(|rated| rated.confirmed_by).next()
    });
    let has_rows = |verdict: &&Verdict| verdict.figures.overall.ok + verdict.figures.overall.failed > 0;
    let confirmed = verdicts.iter().find(|verdict| Some(verdict.experiment) == rested_on);
    confirmed.or_else(|| verdicts.iter().rfind(has_rows)).or(verdicts.last())
}

fn why_detailed(told: &Told<'_>, verdict: &Verdict) -> String {
    match told.rating {
        Some(rating) => {
            let rests = |rated: &Option<schemas::verdict::Rating>| {
                rated.as_ref().is_some_and(|rated| rated.confirmed_by == Some(verdict.experiment))
            };
            match (rests(&rating.soar), rests(&rating.socialites)) {
                (true, true) => "Both ratings rest on it.".to_string(),
                (true, false) => "SoAR rests on it.".to_string(),
                (false, true) => "Socialites rests on it.".to_string(),
                (false, false) => "The last one with rows.".to_string(),
            }
        }
        None => "The last one.".to_string(),
    }
}
