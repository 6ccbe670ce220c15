//! The consistency of an experiment in a sentence: what its registers show, and its availability.

use std::fmt::Write;

use schemas::sla::short_time;
use schemas::verdict::{ConsistencyFigures, Verdict};
use schemas::words::{plural, thousands};

use crate::consistency::availability::Availability;
use crate::shares::percent;

/// What the registers show, in one sentence.
pub(crate) fn sentence(figures: &ConsistencyFigures) -> String {
    let (gamma, stale) = (figures.value_gamma_ns, figures.t_staleness_ns);
    let mut out = format!(
        "{}% of {} linearizable; Γ of values: p95 {}, max {}; {} of {} stale, by {} and {} at most",
        share(figures.linearizable, figures.registers),
        plural(figures.registers, "register"),
        short_time(gamma.p95),
        short_time(gamma.max),
        thousands(figures.stale_reads),
        plural(figures.reads, "read"),
        plural(figures.k_staleness.max, "write"),
        short_time(stale.max),
    );
    if figures.forgotten_reads > 0 {
        let _ =
            write!(out, "; {} of values that the analysis had forgotten", plural(figures.forgotten_reads, "more read"));
    }
    out
}

/// A share in percent, rounded down: 100 means all.
fn share(part: u64, of: u64) -> String {
    format!("{}", (percent(part, of) * 100.0).floor() / 100.0)
}

/// The availability of an experiment.
pub(crate) fn availability(verdict: &Verdict) -> Availability {
    let timeline = &verdict.figures.timeline;
    Availability::of(timeline.slice_s, timeline.slices.iter().map(|slice| (slice.ok, slice.errors)))
}

/// The share of the operations that succeeded, and the outages.
pub(crate) fn availability_in_words(verdict: &Verdict) -> String {
    let overall = &verdict.figures.overall;
    let ok = share(overall.ok, overall.operations());
    format!("{ok}% of the operations succeeded, {}", outages(&availability(verdict)))
}

/// Outages, their distances and how long they lasted.
pub(crate) fn outages(availability: &Availability) -> String {
    match (availability.between_failures_s(), availability.to_repair_s()) {
        (Some(between), Some(repair)) => format!(
            "{}: {} between failures, {} to repair (means)",
            plural(availability.outages, "outage"),
            short_time((between * 1e9) as u64),
            short_time((repair * 1e9) as u64)
        ),
        _ => "no outage".to_string(),
    }
}
