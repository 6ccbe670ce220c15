//! The chart of M and of the load, on one time axis.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::Verdict;

use super::RunData;
use super::figures::{Answer, FULL, over_time, rounded, series_over_time, time_chart};
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
    /// How stale a read may be that counts, if the SLA says so.
    stale_max_ns: Option<u64>,
}

/// M over time, and in the same picture the rate at which sessions were due and the rate that was
/// achieved. In a closed loop no session is due. None if no slice counts.
pub(super) fn met_and_load(data: &RunData<'_>, verdict: &Verdict) -> Result<Option<Load>, AnalyzeError> {
    let is_open_loop = is_open_loop(verdict);
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
    let sql = of_slices(verdict, columns);
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
    let stale_max_ns = verdict.sla.gamma.map(|limit| limit.limit_ns);
    Ok(Some(Load { chart, is_open_loop, sql, stale_max_ns }))
}

/// The picture with its explanation.
pub(super) fn on_page(load: Option<&Load>) -> Result<Markup, AnalyzeError> {
    let Some(Load { chart, sql, stale_max_ns, .. }) = load else { return Ok(html! {}) };
    let picture = figure(chart, &chart.title, "", sql)?;
    Ok(html! {
        (picture)
        p.soft {
            "M is the share of operations that succeeded within the response time of the SLA and returned "
            @match stale_max_ns {
                Some(limit_ns) => { "nothing wrong, and nothing more stale than " (short_time(*limit_ns)) }
                None => "no unpredictable data"
            }
            " (left axis). The rates belong to the right axis."
        }
    })
}

/// The rate at which sessions were due, in an open loop, and the rate that was achieved, for a chart of
/// something else over the same time.
pub(super) fn rates(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let (title, columns, names) = match is_open_loop(verdict) {
        true => (
            "Wanted and achieved rate",
            "due_per_s, sessions / (to_s - from_s) AS achieved_per_s",
            &[("wanted", true), ("achieved", true)][..],
        ),
        false => ("Achieved rate", "sessions / (to_s - from_s) AS achieved_per_s", &[("achieved", true)][..]),
    };
    let sql = of_slices(verdict, columns);
    over_time(data, &sql, title, "sessions/s", names, Scale::Linear, Vec::new(), |value, name, s| {
        format!("{name} {} sessions/s at {s:.2} s", rounded(value))
    })
}

fn is_open_loop(verdict: &Verdict) -> bool {
    verdict.figures.timeline.slices.iter().any(|slice| slice.due_per_s.is_some())
}

/// A statement for columns of the slices that count, after the seconds.
fn of_slices(verdict: &Verdict, columns: &str) -> String {
    format!(
        "SELECT from_s, {columns}\nFROM timeline WHERE experiment = {} AND {FULL} ORDER BY slice",
        verdict.experiment
    )
}
