//! What a resumed run takes from its folder: the experiments that have ended, and their warm-up.

use schemas::files;
use schemas::plan::{Plan, Warmup};
use schemas::run::{EndReason, ReplayReport, RunFolder, TrialNote};
use schemas::sla::Sla;
use schemas::verdict::Verdict;

use super::tools;
use super::trial::Trial;
use crate::failure::Failure;

/// How many sessions of warm-up the experiments of the run had.
pub fn warmup(run: &RunFolder) -> Result<Option<Warmup>, Failure> {
    let Some((_, first)) = run.experiments()?.into_iter().next() else { return Ok(None) };
    let plan: Plan = files::read_json(&first.plan())?;
    Ok(Some(Warmup::Sessions(plan.fragments.iter().map(|fragment| fragment.warmup_sessions).sum())))
}

/// What the experiments showed that ended with all replayers present.
pub fn past(run: &RunFolder, sla: &Sla) -> Result<Vec<Trial>, Failure> {
    let mut past = Vec::new();
    for (number, folder) in run.experiments()? {
        if !folder.trial().exists() {
            continue;
        }
        let TrialNote { purpose, limit, rate_per_s, started_unix_s, took_s, lost } = files::read_json(&folder.trial())?;
        let report: Option<ReplayReport> =
            if folder.report().exists() { Some(files::read_json(&folder.report())?) } else { None };
        let stored: Option<Verdict> =
            if folder.verdict().exists() { Some(files::read_json(&folder.verdict())?) } else { None };
        let has_ended =
            report.as_ref().is_some_and(|report| report.end != EndReason::Interrupted && report.faults.is_empty());
        let verdict = match stored {
            Some(stored) if stored.sla == *sla => stored,
            // The experiment was interrupted or lost a replayer, so the search does not use it.
            None if lost.is_some() || !has_ended => continue,
            // Either the verdict is for another SLA, or `encore collect` has removed it: that
            // verdict was made without the logs that are here now.
            _ => tools::analyze(run, number, sla)?,
        };
        let trial = Trial { purpose, limit, rate_per_s, started_unix_s, took_s, report, lost, verdict };
        if trial.lost().is_none() && !trial.was_interrupted() {
            past.push(trial);
        }
    }
    Ok(past)
}
