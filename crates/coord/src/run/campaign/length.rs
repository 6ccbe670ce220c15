//! How long the trace has to be: it is extended before an experiment that is known to need more,
//! and after one that ran out.

use schemas::plan::Limit;
use schemas::verdict::Between;

use super::Campaign;
use crate::failure::Failure;
use crate::run::trial::Demand;
use crate::terminal::thousands;

impl Campaign {
    /// Extends the trace before the experiment runs, if it is known to be too short.
    pub(super) fn make_long_enough(&mut self, demand: Demand, limit: Limit) -> Result<(), Failure> {
        let measured = match limit {
            Limit::Sessions(sessions) => sessions,
            Limit::DurationS(seconds) => {
                self.sessions_due(demand, seconds).unwrap_or_else(|| self.expected_sessions(seconds))
            }
            Limit::WholeTrace => 0,
        };
        let (sessions, before) = (self.trace.manifest.sessions(), self.standing.done());
        let needed = before + self.warmup_sessions + measured;
        if sessions >= needed {
            return Ok(());
        }
        if !tracegen::can_generate(&self.trace.manifest.spec) {
            return Err(Failure::usage(format!(
                "{}: it has {} sessions, and {} are needed; an imported trace set cannot be made longer, so ask for less, such as \
                 --sessions {}",
                self.trace.folder.display(),
                thousands(sessions),
                thousands(needed),
                sessions.saturating_sub(before + self.warmup_sessions).max(1)
            )));
        }
        self.voice.say(&format!(
            "trace extended: it had {} sessions, {} are needed; earlier sessions unchanged",
            thousands(sessions),
            thousands(needed)
        ));
        self.extend(self.standing.extension(before, needed, sessions))
    }

    /// How many sessions an experiment of this duration may need. Without a basis for an estimate
    /// that is one session. With a continued trace the basis is the last experiment, doubled
    /// because this one may have twice the threads.
    fn expected_sessions(&self, seconds: f64) -> u64 {
        let last =
            self.history.trials().last().and_then(|trial| Some((trial.report.as_ref()?, &trial.verdict.figures)));
        match last {
            Some((report, figures)) if self.setting.between == Between::Continue => {
                // Threads may have been idle until the time was over.
                let lasted_ns = report.elapsed_ns.max(figures.counted_ns).max(1);
                let per_s = report.sessions as f64 / (lasted_ns as f64 / 1e9);
                (per_s * seconds * 2.0).ceil() as u64
            }
            _ => 1,
        }
    }

    /// Replaces the trace set by one with this many sessions.
    pub(super) fn extend(&mut self, sessions: u64) -> Result<(), Failure> {
        self.trace = self.trace.extended(sessions, &self.setting.traces, self.voice, &self.driver.interrupt)?;
        self.record.set_trace(&self.trace)
    }
}
