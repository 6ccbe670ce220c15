//! `coord run`: one experiment, its row and its figures by action.

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::verdict::Verdict;

use crate::campaign::{Campaign, Trial};
use crate::failure::Failure;
use crate::render;
use crate::resolve::Single;

/// Runs the experiment from beginning to end; prints as it goes.
pub fn run(single: Single) -> Result<Verdict, Failure> {
    let mut campaign = Campaign::open(single.setting)?;
    let sla = campaign.setting().sla;
    let result = campaign.experiment(single.threads, single.limit, &Purpose::Single).map(|trial| {
        if let Some(note) = shortness(&trial, &sla) {
            campaign.voice().say(&note);
        }
        campaign.voice().say(&format!("\n{}", render::by_action(&trial.verdict.figures)));
        trial.verdict
    });
    campaign.close(result)
}

/// What to say of an experiment that ended with its sessions, before the SLA's time.
fn shortness(trial: &Trial, sla: &Sla) -> Option<String> {
    let is_short = trial.report.is_some() && trial.elapsed_s() < sla.delta_s;
    match trial.limit {
        Limit::Sessions(_) | Limit::WholeTrace if is_short => Some(format!(
            "note: the sessions were done after {:.3} s; the SLA is about {} s, so the verdict is on a part of its time",
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
    use crate::render::testing::trial;

    #[test]
    fn an_experiment_shorter_than_the_sla_says_so() {
        // It took 10 s, as its report says.
        let by_sessions = Trial { limit: Limit::Sessions(5), ..trial(1, 1, 5.0, Ruling::Pass, Purpose::Single) };
        let sla = |delta_s| Sla { delta_s, ..Sla::default() };
        let note = shortness(&by_sessions, &sla(10.5)).unwrap();
        assert!(note.contains("done after 10.000 s; the SLA is about 10.5 s"), "{note}");
        assert_eq!(shortness(&by_sessions, &sla(10.0)), None);
        assert_eq!(shortness(&Trial { limit: Limit::DurationS(9.0), ..by_sessions }, &sla(10.5)), None);
    }
}
