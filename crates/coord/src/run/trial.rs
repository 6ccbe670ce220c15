//! An experiment with its verdict, as the search, the rows and the documents use it.

use schemas::plan::Limit;
use schemas::run::{EndReason, Purpose, ReplayReport, TrialNote};
use schemas::verdict::{RatedExperiment, Verdict};

/// An experiment that has ended and was analyzed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was for.
    pub purpose: Purpose,
    /// When it was meant to end.
    pub limit: Limit,
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
        let Trial { purpose, limit, started_unix_s, took_s, lost, .. } = self.clone();
        TrialNote { purpose, limit, started_unix_s, took_s, lost }
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
            duration_s,
            is_final: matches!(self.purpose, Purpose::Final(_)),
            ruling: self.verdict.ruling,
            reasons: self.verdict.reasons.clone(),
            throughput_per_s: self.verdict.figures.throughput_per_s,
            sessions_per_s: self.verdict.figures.sessions_per_s,
            within_beta_percent: self.verdict.figures.within_beta_percent,
            unpredictable_percent: self.verdict.figures.unpredictable_percent,
        }
    }
}
