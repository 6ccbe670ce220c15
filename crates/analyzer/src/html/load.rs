//! The charts of M and of the load, on one time axis.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::Verdict;

use super::RunData;
use super::figures::{FULL, over_time, rounded};
use crate::chart::Scale;
use crate::error::AnalyzeError;

/// M over time; below it the rate at which sessions were due and the rate that was achieved. In a
/// closed loop no session is due.
pub(super) fn met_and_load(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let met = over_time(
        data,
        &of_slices(verdict, "met_percent"),
        "Operations that met both limits (M)",
        "% of operations",
        &[("M", true)],
        Scale::Linear,
        Vec::new(),
        |value, name, s| format!("{name} {value:.2}% at {s:.2} s"),
    )?;
    Ok(html! {
        (met)
        @if !met.0.is_empty() {
            p.soft {
                "M is the share of operations that succeeded within the response time of the SLA and returned "
                @match verdict.sla.gamma {
                    Some(limit) => { "nothing wrong, and nothing more stale than " (short_time(limit.limit_ns)) "." }
                    None => "no unpredictable data."
                }
            }
        }
        (rates(data, verdict)?)
    })
}

/// The rate at which sessions were due, in an open loop, and the rate that was achieved.
pub(super) fn rates(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let is_open_loop = verdict.figures.timeline.slices.iter().any(|slice| slice.due_per_s.is_some());
    let (title, columns, names) = match is_open_loop {
        true => (
            "Wanted and achieved rate",
            "due_per_s, sessions / (to_s - from_s) AS achieved_per_s",
            &[("wanted", true), ("achieved", true)][..],
        ),
        false => ("Achieved rate", "sessions / (to_s - from_s) AS achieved_per_s", &[("achieved", true)][..]),
    };
    over_time(
        data,
        &of_slices(verdict, columns),
        title,
        "sessions/s",
        names,
        Scale::Linear,
        Vec::new(),
        |value, name, s| format!("{name} {} sessions/s at {s:.2} s", rounded(value)),
    )
}

/// Columns of the slices that count, after the seconds.
fn of_slices(verdict: &Verdict, columns: &str) -> String {
    format!(
        "SELECT from_s, {columns}\nFROM timeline WHERE experiment = {} AND {FULL} ORDER BY slice",
        verdict.experiment
    )
}
