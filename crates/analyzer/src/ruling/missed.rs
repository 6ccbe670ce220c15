//! Which clauses of the SLA the figures of an experiment miss.

use schemas::isolation::Isolation;
use schemas::sla::{Sla, short_time};
use schemas::verdict::Figures;
use schemas::words::short_percent;

use crate::isolation::in_words;

/// Operations that were sent to the store. If there are none, no clause is met or missed: one of
/// many replayers may have had nothing left to do.
pub(super) fn issued(figures: &Figures) -> u64 {
    let overall = &figures.overall;
    overall.ok + overall.failed + overall.unknown
}

/// The clauses that are missed, in words.
pub(super) fn missed_clauses(figures: &Figures, sla: &Sla) -> Vec<String> {
    let mut missed = Vec::new();
    if figures.within_beta_percent < sla.alpha_percent {
        let within = apart(figures.within_beta_percent, sla.alpha_percent);
        missed.push(format!("{within}% within {}, needs {}%", short_time(sla.beta_ns), sla.alpha_percent));
    }
    if figures.unpredictable_percent > sla.tau_percent {
        let found = apart(figures.unpredictable_percent, sla.tau_percent);
        missed.push(format!("{found}% of reads unpredictable, at most {}% allowed", sla.tau_percent));
    }
    if let (Some(level), Some(anomalies)) = (sla.isolation, &figures.anomalies)
        && anomalies.strongest() < Some(level)
    {
        let found = anomalies.strongest().map_or("no level of isolation", Isolation::name);
        missed.push(format!("transactions show {found} ({}), needs {}", in_words(anomalies), level.name()));
    }
    missed
}

/// A share that misses its bound, with the digits of the tables, or more if it has to differ from
/// the bound.
pub(super) fn apart(share: f64, bound: f64) -> String {
    let more = (4..15).map(|digits| {
        let scale = 10f64.powi(digits);
        (share * scale).round() / scale
    });
    let mut rounded = std::iter::once(short_percent(share)).chain(more);
    rounded.find(|rounded| *rounded != bound).unwrap_or(share).to_string()
}
