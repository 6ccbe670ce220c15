//! An experiment that the search asks for: it is remembered from an earlier call, or attempted
//! until the trace is long enough and no replayer is lost.

use schemas::plan::Limit;
use schemas::run::Purpose;

use super::Campaign;
use crate::failure::Failure;
use crate::run::standing::Extensions;
use crate::run::trial::{Demand, Trial};
use crate::terminal::thousands;

impl Campaign {
    /// Runs an experiment and prints its row. When the trace runs out before the experiment's
    /// time, a longer trace replaces it and the experiment runs again, as long as that helps.
    pub fn experiment(&mut self, demand: Demand, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        self.make_long_enough(demand, limit)?;
        let mut extensions = Extensions::default();
        loop {
            let before = self.standing.done();
            let remembered = self.remembered(demand, limit, purpose);
            let is_remembered = remembered.is_some();
            let trial = remembered.map_or_else(|| self.with_all_replayers(demand, limit, purpose), Ok)?;
            let Some(needed) = trial.sessions_needed() else { return Ok(trial) };
            let (sessions, replayed) = (self.trace.manifest.sessions(), trial.replayed_until());
            if !tracegen::can_generate(&self.trace.manifest.spec) {
                self.voice.say(&format!(
                    "trace too short: {} sessions, {} needed; an imported trace set cannot be made longer, so ask for less, \
                     such as --sessions",
                    thousands(sessions),
                    thousands(needed)
                ));
                return Ok(trial);
            }
            if !extensions.once_more(replayed, needed) {
                let spec = &self.trace.manifest.spec;
                let actors = spec.family().and_then(|family| Ok((family.actors(spec)?, family.actor_words()))).ok();
                let unique = actors.filter(|_| self.setting.unique_actors);
                self.voice.say(&extensions.given_up(demand, sessions, unique));
                return Ok(trial);
            }
            if is_remembered && sessions >= needed + self.warmup_sessions && sessions > replayed {
                // The trace was extended before the run was interrupted.
                continue;
            }
            let longer = self.standing.extension(before, needed, sessions) + self.warmup_sessions;
            self.voice.say(&format!(
                "trace too short: {} sessions{}; extended to {} (earlier sessions unchanged), {} runs again",
                thousands(sessions),
                // An estimate that the trace has met already says nothing.
                if needed > replayed { format!(", {} needed", thousands(needed)) } else { String::new() },
                thousands(longer),
                demand.named()
            ));
            self.extend(longer)?;
        }
    }

    /// Runs an experiment until no replayer is lost in it. Each attempt that loses one is
    /// recorded as void; the next attempt waits for all replayers and starts with a load.
    fn with_all_replayers(&mut self, demand: Demand, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        loop {
            let trial = self.once(demand, limit, purpose)?;
            let Some(why) = trial.lost() else { return Ok(trial) };
            let experiment = trial.verdict.experiment;
            if self.retries_left == 0 {
                return Err(Failure::tool(format!(
                    "experiment {experiment} is void, and no retries are left (--retries): {why}"
                )));
            }
            self.retries_left -= 1;
            self.voice.say(&format!(
                "experiment {experiment} is void: {why}\n\
                 {} runs again when all replayers are back ({} {} left)",
                demand.named(),
                self.retries_left,
                if self.retries_left == 1 { "retry" } else { "retries" }
            ));
            self.driver.recover().map_err(|failure| match failure {
                Failure::Lost(why) => Failure::tool(format!("the replayer did not come back: {why}")),
                other => other,
            })?;
        }
    }

    /// What an experiment of an earlier call showed, if the search asks for that experiment next.
    fn remembered(&mut self, demand: Demand, limit: Limit, purpose: &Purpose) -> Option<Trial> {
        let trial = self.history.remembered(demand, limit, purpose)?;
        if let Some(report) = &trial.report {
            self.record.set_store_settings(report);
        }
        self.keep(&trial);
        // Records that are kept have said themselves how far they are.
        if !self.setting.keep_data {
            self.leave(&trial);
        }
        Some(trial)
    }

    /// Prints the row of an experiment, and adds it to the run.
    pub(super) fn keep(&mut self, trial: &Trial) {
        if self.history.trials().is_empty() {
            self.voice.say(&self.table.heading());
        }
        self.voice.say(&self.table.row(&trial.purpose, trial.report.as_ref(), &trial.verdict));
        self.history.add(trial.clone());
    }

    /// Takes up where an experiment has left the store.
    pub(super) fn leave(&mut self, trial: &Trial) {
        if let Some(note) = self.standing.after(trial) {
            self.voice.say(&note);
        }
    }
}
