//! The verdict on an experiment (pass, fail or void) and its reasons, from figures and reports
//! alone.

mod conditions;
mod missed;
mod open_loop;
mod sum;
mod void;

use schemas::RUN_FORMAT_VERSION;
use schemas::anomalies::Anomalies;
use schemas::run::ReplayReport;
use schemas::sla::{Sla, short_time};
use schemas::verdict::{Figures, ReplayerFigures, Ruling, Verdict};

use self::missed::{issued, missed_clauses, without_gamma};
use self::open_loop::{never_started, stopped_early};
pub(crate) use self::sum::broken_promise;
pub use self::void::TraceLimits;
use self::void::void_reasons;

/// The figures of a replayer, from those of its fragments.
pub fn of_replayer(name: String, threads: u32, figures: &Figures, sla: &Sla) -> ReplayerFigures {
    ReplayerFigures {
        name,
        threads,
        throughput_per_s: figures.throughput_per_s,
        within_beta_percent: figures.within_beta_percent,
        unpredictable_percent: figures.unpredictable_percent,
        missed: if issued(figures) == 0 { Vec::new() } else { missed_clauses(figures, sla) },
    }
}

/// Decides the verdict on an experiment. Without a report it is void. If several replayers took
/// part, every one of them has to meet the SLA by itself.
pub fn rule(
    figures: &Figures,
    each: &[ReplayerFigures],
    report: Option<&ReplayReport>,
    sla: &Sla,
    trace: TraceLimits,
) -> (Ruling, Vec<String>) {
    let void = void_reasons(figures, report, sla, trace);
    if !void.is_empty() {
        return (Ruling::Void, void);
    }
    if let (Some(level), None) = (sla.isolation, &figures.anomalies) {
        let reason = format!(
            "the SLA asks for {} transactions, and the store ran none; use a trace with transactions, a store that has \
             them, and --transactions on, or remove the clause",
            level.name()
        );
        return (Ruling::Void, vec![reason]);
    }
    if let (Some(level), Some(true)) = (sla.isolation, figures.anomalies.as_ref().map(Anomalies::is_blind)) {
        let reason = format!(
            "the SLA asks for {} transactions, and what this workload reads does not say who wrote it; remove the clause",
            level.name()
        );
        return (Ruling::Void, vec![reason]);
    }
    if let Some(reason) = without_gamma(figures, sla) {
        return (Ruling::Void, vec![reason]);
    }
    let mut missed = missed_clauses(figures, sla);
    for replayer in each {
        missed.extend(replayer.missed.iter().map(|clause| format!("replayer {}: {clause}", replayer.name)));
    }
    missed.extend(report.and_then(|report| never_started(figures, report, sla)));
    missed.extend(report.and_then(stopped_early));
    missed.extend(broken_promise(figures, report));
    missed.extend(conditions::broken_promise(figures, report));
    if !missed.is_empty() {
        return (Ruling::Fail, missed);
    }
    if figures.throughput_per_s == 0.0 {
        let counted = short_time(figures.counted_ns);
        let reason = format!(
            "no operation succeeded within the counted time ({counted}); use longer experiments (--search-s, or a \
             longer SLA)"
        );
        return (Ruling::Void, vec![reason]);
    }
    (Ruling::Pass, missed)
}

/// The verdict on an experiment that could not be run, for instance because the
/// store was not in the expected state: void, for these reasons, without figures.
pub fn void_verdict(experiment: u32, threads: u32, sla: Sla, reasons: Vec<String>) -> Verdict {
    let (format_version, ruling, figures) = (RUN_FORMAT_VERSION, Ruling::Void, Figures::default());
    Verdict {
        format_version,
        experiment,
        threads,
        rate_per_s: None,
        sla,
        ruling,
        reasons,
        figures,
        replayers: Vec::new(),
        sealed: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
