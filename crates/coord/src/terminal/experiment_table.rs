//! The table of experiments: a row for each, below one heading.

use schemas::manifest::Manifest;
use schemas::run::{Purpose, ReplayReport};
use schemas::sla::{Sla, short_time};
use schemas::verdict::{ClosingFigures, ConditionFigures, Verdict};
use schemas::words::thousands;

use super::ruling::{coloured, percent};
use crate::search::Unit;

/// The table of a run's experiments, of which each row is printed when its experiment has ended.
pub struct ExperimentTable {
    sla: Sla,
    unit: Unit,
    throughput: Throughput,
}

/// Which throughputs a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Throughput {
    /// Every session is one operation, so the two are the same.
    Operations,
    /// Sessions have several operations.
    OperationsAndSessions,
}

impl ExperimentTable {
    /// The table of a run against this SLA with this trace set.
    pub fn new(sla: &Sla, manifest: &Manifest) -> ExperimentTable {
        let throughput = match manifest.operations() > manifest.sessions() {
            true => Throughput::OperationsAndSessions,
            false => Throughput::Operations,
        };
        ExperimentTable { sla: *sla, unit: Unit::Threads, throughput }
    }

    /// The same table with the load in this unit: the arrival rate instead of T in an open loop.
    pub fn in_unit(self, unit: Unit) -> ExperimentTable {
        ExperimentTable { unit, ..self }
    }

    /// A row of texts: number, load, operations/s, sessions/s, p95, p99, maximum, share within β, and
    /// share of unpredictable reads. A row of 80 columns has room for both throughputs if all other
    /// columns are narrow.
    fn line(&self, [number, load, operations, sessions, p95, p99, max, within, unpredictable]: [&str; 9]) -> String {
        let load = match (self.unit, self.throughput) {
            (Unit::Threads, Throughput::Operations) => format!("{load:>5} {operations:>11}"),
            (Unit::Threads, Throughput::OperationsAndSessions) => format!("{load:>4} {operations:>9} {sessions:>10}"),
            // An arrival rate has up to seven digits.
            (Unit::SessionsPerS, Throughput::Operations) => format!("{load:>8} {operations:>8}"),
            (Unit::SessionsPerS, Throughput::OperationsAndSessions) => {
                format!("{load:>7} {operations:>8} {sessions:>8}")
            }
        };
        match self.throughput {
            Throughput::Operations => {
                format!("{number:>3} {load} {p95:>9} {p99:>9} {max:>9} {within:>8} {unpredictable:>8}  ")
            }
            Throughput::OperationsAndSessions => {
                format!("{number:>3} {load} {p95:>8} {p99:>8} {max:>8} {within:>7} {unpredictable:>7} ")
            }
        }
    }

    /// The heading.
    pub fn heading(&self) -> String {
        let within = format!("<{}", short_time(self.sla.beta_ns));
        let (load, sessions) = match self.unit {
            Unit::Threads => ("T", "sessions/s"),
            Unit::SessionsPerS => ("due/s", "ended/s"),
        };
        self.line(["#", load, "ops/s", sessions, "p95", "p99", "max", &within, "unpred."]) + "verdict"
    }

    /// The load of an experiment, in the table's unit. In a closed loop no session is due.
    fn load(&self, verdict: &Verdict) -> String {
        match self.unit {
            Unit::Threads => verdict.threads.to_string(),
            Unit::SessionsPerS => verdict.rate_per_s.map_or("-".to_string(), |rate| thousands(rate.round() as u64)),
        }
    }

    /// The row of an experiment that has ended. It has no report if it did not run.
    pub fn row(&self, purpose: &Purpose, report: Option<&ReplayReport>, verdict: &Verdict) -> String {
        let figures = &verdict.figures;
        let times = &figures.overall;
        // Without an operation nothing was measured, and 0 would say that something was.
        let measured = |text: String| if times.operations() > 0 { text } else { "-".to_string() };
        let per_s = |value: f64| measured(thousands(value.round() as u64));
        let time = |ns: u64| measured(short_time(ns));
        let share = |value: f64| measured(percent(value));
        let texts = [
            verdict.experiment.to_string(),
            self.load(verdict),
            per_s(figures.throughput_per_s),
            per_s(figures.sessions_per_s),
            time(times.p95_ns),
            time(times.p99_ns),
            time(times.max_ns),
            share(figures.within_beta_percent),
            share(figures.unpredictable_percent),
        ];
        let mut out = self.line(texts.each_ref().map(String::as_str)) + &coloured(verdict.ruling);
        // What else there is to say stands below: the row itself fits a terminal of 80 columns.
        let idle = report.map_or(0.0, |report| idle_percent(report, verdict.threads));
        let is_final = match purpose {
            Purpose::Final(of) => Some(format!("final: {of}")),
            Purpose::Single | Purpose::Search => None,
        };
        let service = times.service.map(|service| {
            let [p95, p99, max] = [service.p95_ns, service.p99_ns, service.max_ns].map(short_time);
            format!("service time: p95 {p95}, p99 {p99}, max {max}")
        });
        let idle = (idle >= 0.1).then(|| format!("threads idle {idle:.1}%"));
        let closing = figures.closing.as_ref().filter(|closing| closing.is_notable()).map(ClosingFigures::in_words);
        let conditions = figures.conditions.iter().filter(|conditions| conditions.is_notable());
        let conditions = conditions.flat_map(ConditionFigures::lines);
        let notes = is_final.into_iter().chain(service).chain(idle).chain(verdict.reasons.iter().cloned());
        let notes: Vec<String> = notes.chain(closing).chain(conditions).collect();
        if !notes.is_empty() {
            out.push_str(&format!("\n          {}", notes.join("; ")));
        }
        out
    }
}

/// The percentage of their time in which threads had no session to run, because actors were
/// busy.
fn idle_percent(report: &ReplayReport, threads: u32) -> f64 {
    let thread_ns = report.counted_ns as f64 * f64::from(threads);
    if thread_ns > 0.0 { report.idle_ns as f64 * 100.0 / thread_ns } else { 0.0 }
}
