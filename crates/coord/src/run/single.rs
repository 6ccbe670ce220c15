//! `encore run`: one experiment, its row and its figures by operation.

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::verdict::Verdict;

use crate::failure::Failure;
use crate::run::campaign::Campaign;
use crate::run::setting::Setting;
use crate::run::trial::{Demand, Trial};
use crate::terminal;

/// A run of one experiment.
#[derive(Debug, Clone)]
pub struct Single {
    /// What `encore rate` and `encore run` both need.
    pub setting: Setting,
    /// T.
    pub threads: u32,
    /// When the experiment ends.
    pub limit: Limit,
}

/// Runs the experiment from beginning to end; prints as it goes.
pub fn run(single: Single) -> Result<Verdict, Failure> {
    let mut campaign = Campaign::open(single.setting)?;
    let sla = campaign.setting().sla;
    if campaign.setting().unique_actors {
        let warning = terminal::busy_at_most(&campaign.trace().manifest, "--threads", single.threads);
        warning.iter().for_each(|warning| campaign.voice().say(warning));
    }
    let result = campaign.experiment(Demand::threads(single.threads), single.limit, &Purpose::Single).map(|trial| {
        if let Some(note) = shortness(&trial, &sla) {
            campaign.voice().say(&note);
        }
        campaign.voice().say(&format!("\n{}", terminal::operations(&trial.verdict.figures)));
        let sessions = analyzer::sessions(&trial.verdict.figures);
        if !sessions.is_empty() {
            campaign.voice().say(&format!("\n{}", sessions.trim_end()));
        }
        let lines = trial.about_transactions().into_iter().chain(trial.about_sessions());
        lines.for_each(|line| campaign.voice().say(&line));
        trial.verdict
    });
    campaign.close(result)
}

/// The note on an experiment that had done its sessions before the SLA's time was over.
fn shortness(trial: &Trial, sla: &Sla) -> Option<String> {
    let is_short = trial.report.is_some() && trial.elapsed_s() < sla.delta_s;
    match trial.limit {
        Limit::Sessions(_) | Limit::WholeTrace if is_short => Some(format!(
            "note: all sessions ended after {:.3} s, before the SLA's {} s; the verdict covers only that time",
            trial.elapsed_s(),
            sla.delta_s
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use schemas::verdict::Ruling;

    use super::*;
    use crate::run::testing::trial;

    #[test]
    fn an_experiment_shorter_than_the_sla_says_so() {
        // Its report says that it took 10 s.
        let by_sessions = Trial { limit: Limit::Sessions(5), ..trial(1, 1, 5.0, Ruling::Pass, Purpose::Single) };
        let sla = |delta_s| Sla { delta_s, ..Sla::default() };
        let note = shortness(&by_sessions, &sla(10.5)).unwrap();
        assert!(note.contains("ended after 10.000 s, before the SLA's 10.5 s"), "{note}");
        assert_eq!(shortness(&by_sessions, &sla(10.0)), None);
        assert_eq!(shortness(&Trial { limit: Limit::DurationS(9.0), ..by_sessions }, &sla(10.5)), None);
    }
}
