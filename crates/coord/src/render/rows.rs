//! A row for each experiment, below one heading.

use schemas::manifest::Manifest;
use schemas::run::Purpose;
use schemas::sla::{Sla, short_time};

use super::{coloured, thousands};
use crate::campaign::Trial;

/// The rows of a run.
pub struct Rows {
    sla: Sla,
    throughput: Throughput,
}

/// Which throughputs a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Throughput {
    /// Every session is one action: the two are the same.
    Actions,
    /// Sessions have several actions.
    ActionsAndSessions,
}

impl Rows {
    /// The rows of a run against this SLA with this trace set.
    pub fn new(sla: &Sla, manifest: &Manifest) -> Rows {
        let throughput = match manifest.operations() > manifest.sessions() {
            true => Throughput::ActionsAndSessions,
            false => Throughput::Actions,
        };
        Rows { sla: *sla, throughput }
    }

    /// Throughput in its one or two columns.
    fn throughput(&self, actions: &str, sessions: &str) -> String {
        match self.throughput {
            Throughput::Actions => format!("{actions:>11}"),
            Throughput::ActionsAndSessions => format!("{actions:>11} {sessions:>11}"),
        }
    }

    /// The heading.
    pub fn heading(&self) -> String {
        let within = format!("<{}", short_time(self.sla.beta_ns));
        let throughput = self.throughput("actions/s", "sessions/s");
        format!(
            "{:>3} {:>5} {throughput} {:>9} {:>9} {:>9} {:>9} {within:>8} {:>8}  verdict",
            "#", "T", "p50", "p95", "p99", "max", "unpred."
        )
    }

    /// An experiment that has ended.
    pub fn row(&self, trial: &Trial) -> String {
        let verdict = &trial.verdict;
        let figures = &verdict.figures;
        let times = &figures.overall;
        let per_s = |value: f64| thousands(value.round() as u64);
        let mut out = format!(
            "{:>3} {:>5} {} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}  {}",
            verdict.experiment,
            verdict.threads,
            self.throughput(&per_s(figures.throughput_per_s), &per_s(figures.sessions_per_s)),
            short_time(times.p50_ns),
            short_time(times.p95_ns),
            short_time(times.p99_ns),
            short_time(times.max_ns),
            percent(figures.within_beta_percent),
            percent(figures.unpredictable_percent),
            coloured(verdict.ruling),
        );
        let idle = idle_percent(trial);
        if idle >= 0.1 {
            out.push_str(&format!(" (threads idle {idle:.1}%)"));
        }
        if let Purpose::Final(of) = &trial.purpose {
            out.push_str(&format!(" [final: {of}]"));
        }
        if !verdict.reasons.is_empty() {
            out.push_str(&format!(": {}", verdict.reasons.join("; ")));
        }
        out
    }
}

/// For which share of their time threads had no session to run, because of busy socialites.
fn idle_percent(trial: &Trial) -> f64 {
    let Some(report) = &trial.report else { return 0.0 };
    let thread_ns = report.counted_ns as f64 * f64::from(trial.verdict.threads);
    if thread_ns > 0.0 { report.idle_ns as f64 * 100.0 / thread_ns } else { 0.0 }
}

/// Up to three decimals, never rounded up to 100% or down to 0%.
pub fn percent(value: f64) -> String {
    let thousandths = value * 1000.0;
    let kept = if value > 99.0 { thousandths.floor() } else { thousandths.ceil() };
    // A whole number of thousandths may come out of the product a little above itself.
    let kept = if (thousandths - thousandths.round()).abs() < 1e-6 { thousandths.round() } else { kept };
    format!("{}%", kept / 1000.0)
}
