//! The chart of M and of the load, on one time axis.

use maud::{Markup, html};
use schemas::verdict::Verdict;

use super::RunData;
use super::figures::{Answer, FULL, rounded, series_over_time, time_chart};
use super::layout::figure;
use crate::chart::{LineChart, Scale};
use crate::error::AnalyzeError;

/// The line whose axis is on the left.
const MET: &str = "M";

/// A picture of the page, the statement that it draws, and whether its experiment is an open loop.
pub(super) struct Load {
    pub(super) chart: LineChart,
    pub(super) is_open_loop: bool,
    sql: String,
}

/// M over time, and in the same picture the rate at which sessions were due and the rate that was
/// achieved. In a closed loop no session is due. None if no slice counts.
pub(super) fn met_and_load(data: &RunData<'_>, verdict: &Verdict) -> Result<Option<Load>, AnalyzeError> {
    let is_open_loop = verdict.figures.timeline.slices.iter().any(|slice| slice.due_per_s.is_some());
    let (title, columns, names) = match is_open_loop {
        true => (
            "Operations that met both limits (M). Wanted and achieved rate",
            "met_percent, due_per_s, sessions / (to_s - from_s) AS achieved_per_s",
            &[(MET, true), ("wanted", true), ("achieved", true)][..],
        ),
        false => (
            "Operations that met both limits (M). Achieved rate",
            "met_percent, sessions / (to_s - from_s) AS achieved_per_s",
            &[(MET, true), ("achieved", true)][..],
        ),
    };
    let sql = format!(
        "SELECT from_s, {columns}\nFROM timeline WHERE experiment = {} AND {FULL} ORDER BY slice",
        verdict.experiment
    );
    let answer = Answer::to(data.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(None);
    }
    let mut series = series_over_time(&answer, names, |value, name, s| match name {
        MET => format!("{name} {value:.2}% at {s:.2} s"),
        _ => format!("{name} {} sessions/s at {s:.2} s", rounded(value)),
    });
    for rate in series.iter_mut().filter(|series| series.label != MET) {
        rate.on_right = Some("sessions/s".into());
    }
    let chart = time_chart(title, "M (% of operations)", Scale::Linear, Vec::new(), series);
    Ok(Some(Load { chart, is_open_loop, sql }))
}

/// The picture with its explanation.
pub(super) fn on_page(load: Option<&Load>) -> Result<Markup, AnalyzeError> {
    let Some(Load { chart, sql, .. }) = load else { return Ok(html! {}) };
    let picture = figure(chart, &chart.title, "", sql)?;
    Ok(html! {
        (picture)
        p.soft {
            "M is the share of operations that succeeded within the response time of the SLA and returned no \
             unpredictable data (left axis). The rates belong to the right axis."
        }
    })
}
