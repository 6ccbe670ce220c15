//! The view `operations`, and what SQL cannot know of an open loop: which replayer ran a fragment, and
//! which arrival rate was asked for.

use schemas::run::{ExperimentFolder, RunFolder};
use schemas::verdict::Verdict;

use crate::error::AnalyzeError;
use crate::fragments::{read_plan, read_report};

/// The statements that define the view and its tables, with their rows.
pub(super) fn definitions(run: &RunFolder, verdicts: &[Verdict]) -> Result<String, AnalyzeError> {
    let mut out = table("due_rates (experiment BIGINT, slice BIGINT, due_per_s DOUBLE)", &due_rates(verdicts));
    let mut is_open_loop = false;
    let mut replayers = Vec::new();
    for verdict in verdicts {
        let folder = run.existing_experiment(verdict.experiment, verdict.threads);
        if folder.plan().exists() && read_plan(&folder)?.open_loop.is_some() {
            is_open_loop = true;
            replayers.extend(replayers_of(verdict.experiment, &folder)?);
        }
    }
    if !is_open_loop {
        return Ok(out + include_str!("closed_loop.sql"));
    }
    out += &table("replayers (experiment BIGINT, fragment BIGINT, replayer BIGINT)", &replayers);
    Ok(out + include_str!("open_loop.sql"))
}

/// A row for each slice of an open loop.
fn due_rates(verdicts: &[Verdict]) -> Vec<String> {
    let of = |verdict: &Verdict| {
        let experiment = verdict.experiment;
        let slices = verdict.figures.timeline.slices.iter().enumerate();
        let row = |(place, due): (usize, f64)| format!("({experiment}, {place}, {due:e})");
        slices.filter_map(|(place, slice)| Some((place, slice.due_per_s?))).map(row).collect::<Vec<_>>()
    };
    verdicts.iter().flat_map(of).collect()
}

/// A row for each fragment, with the place of its replayer. None if there was one replayer.
fn replayers_of(experiment: u32, folder: &ExperimentFolder) -> Result<Vec<String>, AnalyzeError> {
    let parts = read_report(folder)?.map_or(Vec::new(), |report| report.replayers);
    let each = parts.iter().enumerate();
    let rows = each.flat_map(|(place, part)| part.fragments.iter().map(move |fragment| (fragment, place)));
    Ok(rows.map(|(fragment, place)| format!("({experiment}, {fragment}, {place})")).collect())
}

/// The statements that make a table with these rows.
fn table(columns: &str, rows: &[String]) -> String {
    let name = columns.split(' ').next().unwrap_or_default();
    let insert = match rows {
        [] => String::new(),
        rows => format!("INSERT INTO {name} VALUES {};\n", rows.join(", ")),
    };
    format!("CREATE TABLE {columns};\n{insert}")
}
