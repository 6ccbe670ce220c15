//! HTML pages: of one run (`report.html`), or of several runs compared. They open anywhere and
//! load nothing. Also the parts of such a page, for the page of a comparison of stores.
//!
//! Every chart draws the answer to a SQL statement that is shown below it, so readers can check
//! it with `encore analyze sql`. The page has one script, of Encore and uPlot; its policy allows that one alone, by its
//! hash, and forbids loading anything. Without scripts the page shows static charts.
//! All text goes through `maud`, which escapes it.

mod by_load;
pub(crate) mod comparison;
mod conclusion;
mod conditions;
mod consistency;
mod figures;
mod isolation;
mod layout;
mod load;
mod numbers;
mod page;
mod reads;
mod sessions;

use std::path::PathBuf;

pub use layout::{
    Column, SCRIPT, SCRIPT_HASH, Section, command_line, figure, page, picture, policy, quoted, section, shell,
    statement, style, table,
};
use maud::html;
pub use numbers::spaced;
use schemas::files;
use schemas::run::{ReplayReport, RunFolder};
use schemas::verdict::{RatingDocument, Verdict};

use crate::chart::{Chart, Shape};
use crate::error::AnalyzeError;
use crate::families::{self, AnyFamily};
use crate::fragments::read_report;
use crate::report::{plural, thousands};
use crate::sql::Database;
use crate::witness;

/// The name of the page in a run's folder.
const FILE_NAME: &str = "report.html";

/// The name of the picture of M and of the load beside it, which is written for open loops.
const LOAD_NAME: &str = "load.svg";

/// How many unpredictable reads are shown in detail.
const WORST: usize = 5;

/// The data of a report.
pub(crate) struct RunData<'a> {
    pub(crate) document: &'a schemas::run::RunDocument,
    /// The family of its workload.
    pub(crate) family: &'static dyn AnyFamily,
    pub(crate) rating: Option<&'a RatingDocument>,
    pub(crate) verdicts: &'a [Verdict],
    /// The replayer's report of the experiment shown in detail; None if the replayer was killed.
    pub(crate) report: Option<&'a ReplayReport>,
    pub(crate) database: &'a Database,
}

/// Writes `report.html`, and `load.svg` of an open loop, of a run whose experiments have these verdicts.
pub fn write_report(run: &RunFolder, verdicts: &[Verdict]) -> Result<PathBuf, AnalyzeError> {
    let document = run.read_document()?;
    let rating = rating(run)?;
    let database = Database::open(run, verdicts, None)?;
    let shown = representative(rating.as_ref(), verdicts);
    let report = match shown {
        None => None,
        Some(verdict) => read_report(&run.existing_experiment(verdict.experiment, verdict.threads))?,
    };
    let data = RunData {
        document: &document,
        family: families::of(&document.spec)?,
        rating: rating.as_ref(),
        verdicts,
        report: report.as_ref(),
        database: &database,
    };
    let page = page(&document.name, &page::head(&data), &sections(&data)?);
    let path = run.root().join(FILE_NAME);
    files::write_atomically(&path, page.as_bytes())?;
    let load = shown.map_or(Ok(None), |verdict| load::met_and_load(&data, verdict))?;
    if let Some(load) = load.filter(|load| load.is_open_loop) {
        files::write_atomically(&run.root().join(LOAD_NAME), load.chart.svg(Shape::Wide)?.as_bytes())?;
    }
    Ok(path)
}

/// The ratings of a run; None if it has none.
pub(crate) fn rating(run: &RunFolder) -> Result<Option<RatingDocument>, AnalyzeError> {
    let path = run.rating();
    Ok(if path.exists() { Some(files::read_json(&path)?) } else { None })
}

impl RunData<'_> {
    /// The experiment that is shown in detail.
    fn detailed(&self) -> Option<&Verdict> {
        representative(self.rating, self.verdicts)
    }

    /// Whether an experiment is one of a rating's final ones.
    fn is_final(&self, experiment: u32) -> bool {
        let rated = self.rating.map_or(&[][..], |rating| &rating.experiments);
        rated.iter().any(|own| own.is_final && own.experiment == experiment)
    }
}

fn sections(data: &RunData<'_>) -> Result<Vec<Section>, AnalyzeError> {
    let mut sections = Vec::new();
    if !data.verdicts.is_empty() {
        let heading = format!("Throughput and SLA by {}", by_load::Axis::of(data).noun);
        sections.push(section(&heading, by_load::by_load(data)?));
    }
    sections.push(page::experiments(data));
    if let Some(verdict) = data.detailed() {
        sections.extend(details(data, verdict)?);
        sections.extend(consistency::consistency(data, verdict)?);
        sections.extend(isolation::isolation(data, verdict));
        sections.extend(sessions::sessions(verdict));
        sections.extend(conditions::conditions(data, verdict)?);
        sections.extend(data.report.map(|report| page::replayers(verdict, report)));
    }
    sections.push(page::setup(data));
    Ok(sections)
}

/// The sections about one experiment.
fn details(data: &RunData<'_>, verdict: &Verdict) -> Result<[Section; 6], AnalyzeError> {
    let experiment = verdict.experiment;
    let load = match verdict.rate_per_s {
        Some(rate) => format!("{} sessions/s", thousands(rate.round() as u64)),
        None => plural(verdict.threads.into(), "thread"),
    };
    let heading = format!("Experiment {experiment}, {load}");
    let operations = html! {
        p.soft { (why_detailed(data, verdict)) " All sections up to \"Unpredictable reads\" are about it." }
        h3 { "Operations" }
        (page::operations(verdict))
    };
    let shown = figures::Times::of(verdict);
    let times = html! {
        @for times in shown { (figures::spectra(data, verdict, *times)?) (figures::heat_map(data, verdict, *times)?) }
    };
    let course = html! {
        (load::on_page(load::met_and_load(data, verdict)?.as_ref())?)
        (figures::course(data, verdict)?)
        @for times in shown { (figures::times_in_course(data, verdict, *times)?) }
        (consistency::availability(verdict))
    };
    let mix = html! { (figures::mix(data, verdict)?) (figures::popularity(data)) };
    let offenders = witness::worst_offenders(data.database, data.family, experiment, WORST)?;
    Ok([
        section(&heading, operations),
        section(if shown.len() > 1 { "Response and service times" } else { "Response times" }, times),
        section("Over time", course),
        section("Freshness", figures::freshness(data, verdict)?),
        section("Mix", mix),
        section("Unpredictable reads", reads::unpredictable_reads(data, verdict, &offenders)?),
    ])
}

/// The experiment that represents a run: the one that its ratings rest on, else the last one with
/// rows.
pub(crate) fn representative<'a>(rating: Option<&RatingDocument>, verdicts: &'a [Verdict]) -> Option<&'a Verdict> {
    let rested_on = rating.and_then(|rating| {
        let confirmed = [&rating.soar, &rating.socialites, &rating.rate].into_iter().flatten();
        confirmed.filter_map(|rated| rated.confirmed_by).next()
    });
    let has_rows = |verdict: &&Verdict| verdict.figures.overall.ok + verdict.figures.overall.failed > 0;
    let confirmed = verdicts.iter().find(|verdict| Some(verdict.experiment) == rested_on);
    confirmed.or_else(|| verdicts.iter().rfind(has_rows)).or(verdicts.last())
}

fn why_detailed(data: &RunData<'_>, verdict: &Verdict) -> String {
    match data.rating {
        Some(rating) => {
            let rests = |rated: &Option<schemas::verdict::Rating>| {
                rated.as_ref().is_some_and(|rated| rated.confirmed_by == Some(verdict.experiment))
            };
            match (rests(&rating.soar), rests(&rating.socialites)) {
                (true, true) => "Both ratings rest on this experiment.".to_string(),
                (true, false) => "SoAR rests on this experiment.".to_string(),
                (false, true) => "Socialites rests on this experiment.".to_string(),
                (false, false) if rests(&rating.rate) => "The arrival rate rests on this experiment.".to_string(),
                (false, false) => "The last experiment with operations.".to_string(),
            }
        }
        None => "The last experiment.".to_string(),
    }
}
