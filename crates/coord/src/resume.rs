//! `coord rate --resume`: a rating goes on where it was interrupted.
//!
//! The search is a function of what its experiments showed. So it is done again from
//! the beginning, with what the run folder holds as answers, until it asks for an
//! experiment that has not been run.

use std::path::Path;

use clap::Parser;
use schemas::files::{self, FileError};
use schemas::manifest::Manifest;
use schemas::plan::{Plan, Warmup, redact};
use schemas::run::{EndReason, ReplayReport, RunFolder, RunState, TrialNote};
use schemas::sla::Sla;
use schemas::verdict::Verdict;

use crate::args::{Command, CommandLine, FleetArgs, RateArgs, WorkloadArgs};
use crate::campaign::{self, Trial};
use crate::environment;
use crate::failure::Failure;
use crate::resolve::{self, Rating, Surroundings};
use crate::tools;

/// The rating of a run, with what it has found out so far; `now` is what the user asks
/// for this time.
pub fn rating(run: &Path, now: &RateArgs, around: &Surroundings) -> Result<Rating, Failure> {
    let shown = run.display();
    let folder = RunFolder::new(run);
    let document = folder.read_document().map_err(Failure::usage)?;
    // One that was killed before its page was written has that left to do.
    let has_page = folder.rating().exists() && run.join("report.html").exists();
    if document.state == RunState::Complete && has_page {
        return Err(Failure::usage(format!(
            "--resume {shown}: this run is complete; see ./encore analyze summary {shown}"
        )));
    }
    // Whoever works on it still changes what is read here.
    drop(campaign::claim(&folder)?);
    let then = match CommandLine::try_parse_from(&document.command).map(|line| line.command) {
        Ok(Command::Rate(then)) => then,
        _ => return Err(Failure::usage(format!("--resume {shown}: this run was not made by `coord rate`"))),
    };
    let named = now.workload.store.clone().or(then.workload.store);
    let is_named = named.is_some();
    let typed = named.unwrap_or_else(|| format!("sqlite:{}", run.join("store.db").display()));
    if typed.contains("***") {
        return Err(Failure::usage(format!(
            "--resume {shown}: a run folder holds no secrets; name the store again with --store ({typed})"
        )));
    }
    // Variables in it may have changed too.
    let store =
        environment::filled_in(&typed, &around.variables).map_err(|e| Failure::usage(format!("--store: {e}")))?;
    if is_named && redact(&store) != document.store {
        return Err(Failure::usage(format!(
            "--resume {shown}: its experiments ran on {}, not on {}; rate another store in a run of its own",
            document.store,
            redact(&store)
        )));
    }
    let manifest = Manifest::read(&document.trace).map_err(Failure::usage)?;
    if manifest.workload_id != document.workload_id {
        return Err(Failure::usage(format!(
            "--resume {shown}: {} holds another workload than when the run began; generate it as it was, or rate this one \
             in a run of its own",
            document.trace.display()
        )));
    }
    let fleet = &now.workload.fleet;
    let fleet = match fleet.replayers.is_empty() {
        true => FleetArgs { retries: fleet.retries, ..then.workload.fleet },
        // Where the logs of one run are is asked once, and how its work is dealt.
        false => FleetArgs {
            leave_logs: then.workload.fleet.leave_logs,
            calibrate: fleet.calibrate || then.workload.fleet.calibrate,
            ..fleet.clone()
        },
    };
    let workload = WorkloadArgs {
        trace: Some(document.trace.clone()),
        settings: Vec::new(),
        store: Some(typed),
        sla: document.sla,
        warmup: warmup(&folder)?.or(then.workload.warmup),
        monitor: now.workload.monitor.or(then.workload.monitor),
        fleet,
        name: None,
        runs: run.parent().unwrap_or(Path::new("")).to_path_buf(),
        json: now.workload.json,
        quiet: now.workload.quiet,
        ..then.workload
    };
    let args = RateArgs { spec: None, sessions: None, resume: None, workload, ..then };
    let mut rating = resolve::rating(&args, around)?;
    let setting = &mut rating.setting;
    (setting.name, setting.folder) = (document.name, run.to_path_buf());
    (setting.started_unix_s, setting.command) = (document.started_unix_s, document.command);
    setting.past = past(&folder, &setting.sla)?;
    Ok(rating)
}

/// How many sessions the warm-up of its experiments had.
fn warmup(run: &RunFolder) -> Result<Option<Warmup>, FileError> {
    let Some((_, first)) = run.experiments()?.into_iter().next() else { return Ok(None) };
    let plan: Plan = files::read_json(&first.plan())?;
    Ok(Some(Warmup::Sessions(plan.fragments.iter().map(|fragment| fragment.warmup_sessions).sum())))
}

/// What the experiments showed that came to their end with all replayers there.
fn past(run: &RunFolder, sla: &Sla) -> Result<Vec<Trial>, Failure> {
    let mut past = Vec::new();
    for (number, folder) in run.experiments()? {
        if !folder.trial().exists() {
            continue;
        }
        let TrialNote { purpose, limit, started_unix_s, took_s, lost } = files::read_json(&folder.trial())?;
        let report: Option<ReplayReport> =
            if folder.report().exists() { Some(files::read_json(&folder.report())?) } else { None };
        let stored: Option<Verdict> =
            if folder.verdict().exists() { Some(files::read_json(&folder.verdict())?) } else { None };
        let has_ended =
            report.as_ref().is_some_and(|report| report.end != EndReason::Interrupted && report.faults.is_empty());
        let verdict = match stored {
            Some(stored) if stored.sla == *sla => stored,
            // Nobody will rely on it.
            None if lost.is_some() || !has_ended => continue,
            // Its logs were collected since, which takes a verdict without them away.
            _ => tools::analyze(run, number, sla)?,
        };
        let trial = Trial { purpose, limit, started_unix_s, took_s, report, lost, verdict };
        if trial.lost().is_none() && !trial.was_interrupted() {
            past.push(trial);
        }
    }
    Ok(past)
}
