//! An experiment with its verdict, as the search, the rows and the documents use it.

use schemas::plan::Limit;
use schemas::run::{EndReason, ExperimentFolder, Purpose, ReplayReport, RunFolder, TrialNote};
use schemas::verdict::{ConditionFigures, RatedExperiment, Verdict};

use crate::search::Unit;

/// What an experiment asks of the store: what tells the experiments of a search apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// T.
    pub threads: u32,
    /// The mean arrival rate in sessions a second, if a rating searches it. Otherwise the setting of
    /// the run and its trace set say when sessions start.
    pub rate_per_s: Option<u32>,
}

impl Demand {
    /// T threads, with no arrival rate of its own.
    pub fn threads(threads: u32) -> Demand {
        Demand { threads, rate_per_s: None }
    }

    /// The load, in the unit that the search varies.
    pub fn load(&self, unit: Unit) -> u32 {
        match unit {
            Unit::Threads => self.threads,
            Unit::SessionsPerS => self.rate_per_s.unwrap_or(0),
        }
    }

    /// The unit that the search varies: threads, unless there is a rate.
    pub fn unit(&self) -> Unit {
        if self.rate_per_s.is_some() { Unit::SessionsPerS } else { Unit::Threads }
    }

    /// The folder of an experiment of a run that asks for it.
    pub fn folder(&self, run: &RunFolder, experiment: u32) -> ExperimentFolder {
        match self.rate_per_s {
            Some(rate_per_s) => run.experiment_at_rate(experiment, self.threads, rate_per_s),
            None => run.experiment(experiment, self.threads),
        }
    }

    /// What less of it is, as advice.
    pub fn less(&self) -> &'static str {
        match self.unit() {
            Unit::Threads => "fewer threads",
            Unit::SessionsPerS => "a lower rate",
        }
    }

    /// The load as messages name it: `T=64`, `500 sessions/s`.
    pub fn named(&self) -> String {
        self.unit().named(self.load(self.unit()))
    }
}

/// An experiment that has ended and was analyzed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was for.
    pub purpose: Purpose,
    /// When it was meant to end.
    pub limit: Limit,
    /// The arrival rate that the search asked for, in sessions a second; none in a search over
    /// threads.
    pub rate_per_s: Option<u32>,
    /// When it started, in seconds since 1970, after the store was loaded.
    pub started_unix_s: u64,
    /// From its start to its verdict, in seconds: warm-up, measured part and validation.
    pub took_s: f64,
    /// What the replayers reported. None if it did not run, because the store was not in the
    /// state that it starts from, or because a replayer was lost.
    pub report: Option<ReplayReport>,
    /// Which replayer was lost before it began, and how.
    pub lost: Option<String>,
    /// Its verdict.
    pub verdict: Verdict,
}

impl Trial {
    /// What it says of its transactions: the anomaly score, and the isolation beside the promised one.
    pub fn about_transactions(&self) -> Vec<String> {
        let figures = &self.verdict.figures;
        let settings = self.report.as_ref().map(|report| &report.store_settings);
        settings.map_or(Vec::new(), |settings| analyzer::transactions_in_words(figures, settings))
    }

    /// What it says of its sessions and of the data that they have left: the figure that the benchmark is known by, and
    /// the conditions.
    pub fn about_sessions(&self) -> Vec<String> {
        let figures = &self.verdict.figures;
        let conditions = figures.conditions.iter().flat_map(ConditionFigures::lines_with_rows);
        analyzer::headline(figures).into_iter().chain(conditions).collect()
    }

    /// What it asked of the store.
    pub fn demand(&self) -> Demand {
        Demand { threads: self.verdict.threads, rate_per_s: self.rate_per_s }
    }

    /// Its load, in the unit that the search varies.
    pub fn load(&self, unit: Unit) -> u32 {
        self.demand().load(unit)
    }

    /// How long its measured part took, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.report.as_ref().map_or(0.0, |report| report.elapsed_ns as f64 / 1e9)
    }

    /// Which replayers were lost, before it began or later, and how.
    pub fn lost(&self) -> Option<String> {
        let faults = self.report.as_ref().map(|report| &report.faults).filter(|faults| !faults.is_empty());
        self.lost.clone().or_else(|| Some(faults?.join("; ")))
    }

    /// Whether an interrupt ended it early.
    pub fn was_interrupted(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.end == EndReason::Interrupted)
    }

    /// What `trial.json` says of it.
    pub(super) fn note(&self) -> TrialNote {
        let Trial { purpose, limit, rate_per_s, started_unix_s, took_s, lost, .. } = self.clone();
        TrialNote { purpose, limit, rate_per_s, started_unix_s, took_s, lost }
    }

    /// How many sessions the trace should have had, if it ran out.
    pub(super) fn sessions_needed(&self) -> Option<u64> {
        match self.report.as_ref()?.end {
            EndReason::TraceExhausted { sessions_needed } => Some(sessions_needed),
            EndReason::Limit | EndReason::Interrupted | EndReason::Overloaded => None,
        }
    }

    /// How many sessions of the trace were done in all when it ended.
    pub(super) fn replayed_until(&self) -> u64 {
        let positions = self.report.iter().flat_map(|report| &report.positions);
        positions.map(|position| position.next_session).sum()
    }

    /// The trial as a rating lists it.
    pub fn rated(&self) -> RatedExperiment {
        let duration_s = match self.limit {
            Limit::DurationS(seconds) => seconds,
            Limit::Sessions(_) | Limit::WholeTrace => self.elapsed_s(),
        };
        RatedExperiment {
            experiment: self.verdict.experiment,
            started_unix_s: self.started_unix_s,
            threads: self.verdict.threads,
            rate_per_s: self.verdict.rate_per_s,
            duration_s,
            is_final: matches!(self.purpose, Purpose::Final(_)),
            ruling: self.verdict.ruling,
            reasons: self.verdict.reasons.clone(),
            throughput_per_s: self.verdict.figures.throughput_per_s,
            sessions_per_s: self.verdict.figures.sessions_per_s,
            within_beta_percent: self.verdict.figures.within_beta_percent,
            unpredictable_percent: self.verdict.figures.unpredictable_percent,
            breaks_conditions: self.verdict.figures.breaks_conditions(),
        }
    }
}
