//! Which clauses of the SLA the figures of an experiment miss.

use schemas::isolation::Isolation;
use schemas::sla::{Sla, short_time};
use schemas::verdict::Figures;
use schemas::words::{plural, short_percent};

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
    if let (Some(limit), Some(within)) = (sla.gamma, within_gamma(figures))
        && within < limit.percent
    {
        let found = apart(within, limit.percent);
        let gamma = short_time(limit.limit_ns);
        missed.push(format!("{found}% of the values have a Γ within {gamma}, needs {}%", limit.percent));
    }
    if let (Some(level), Some(anomalies)) = (sla.isolation, &figures.anomalies)
        && anomalies.strongest() < Some(level)
    {
        let found = anomalies.strongest().map_or("no level of isolation", Isolation::name);
        missed.push(format!("transactions show {found} ({}), needs {}", in_words(anomalies), level.name()));
    }
    missed
}

fn within_gamma(figures: &Figures) -> Option<f64> {
    figures.consistency.as_ref()?.within_gamma_percent()
}

/// Why the limit of Γ cannot be judged; None if it can, or if there is none.
pub(super) fn without_gamma(figures: &Figures, sla: &Sla) -> Option<String> {
    sla.gamma?;
    let why = match &figures.consistency {
        None => "no register was written".to_string(),
        Some(found) if found.reads == 0 => match &figures.transactions {
            Some(transactions) if transactions.best_effort < transactions.tries => {
                "all reads of registers are in transactions, which are judged by their isolation".to_string()
            }
            _ => "no register that was written was read".to_string(),
        },
        Some(found) if found.forgotten_reads > 0 && within_gamma(figures) >= sla.gamma.map(|limit| limit.percent) => {
            let reads = plural(found.forgotten_reads, "read");
            return Some(format!(
                "the SLA limits Γ, which is longer than what can be computed: {reads} saw values that had been \
                 overwritten so long before that the analysis had forgotten them"
            ));
        }
        Some(_) => return None,
    };
    Some(format!(
        "the SLA limits Γ, which cannot be computed: {why}; use a workload of the family kv with reads and updates, or \
         remove the clause"
    ))
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
