//! `encore rate --resume`: resumes a rating that was interrupted.
//!
//! The search is a function of what its experiments showed. So the coordinator repeats the search
//! from the beginning and answers it from the run folder, until the search asks for an experiment
//! that has not run.

use std::path::Path;

use clap::Parser;
use schemas::manifest::Manifest;
use schemas::plan::redact;
use schemas::run::{RunFolder, RunState};

use super::Invocation;
use super::rate::rating;
use crate::cli::args::{Command, CommandLine, FleetArgs, RateArgs, WorkloadArgs};
use crate::cli::environment;
use crate::failure::Failure;
use crate::rate::Rating;
use crate::run::{lock, resume};
use crate::search::Unit;

/// The rating of a run, with what its experiments showed so far. `now` has the arguments of this
/// call.
pub fn resumed(run: &Path, now: &RateArgs, invocation: &Invocation) -> Result<Rating, Failure> {
    let shown = run.display();
    let folder = RunFolder::new(run);
    let document = folder.read_document().map_err(Failure::usage)?;
    // A coordinator that was killed before it wrote the page has that left to do.
    let has_page = folder.rating().exists() && run.join("report.html").exists();
    if document.state == RunState::Complete && has_page {
        return Err(Failure::usage(format!(
            "--resume {shown}: this run is complete; see encore analyze summary {shown}"
        )));
    }
    // A coordinator that still works on the run would change what is read here.
    drop(lock::claim(&folder)?);
    let then = match CommandLine::try_parse_from(&document.command).map(|line| line.command) {
        Ok(Command::Rate(then)) => then,
        _ => return Err(Failure::usage(format!("--resume {shown}: this run was not made by `encore rate`"))),
    };
    let named = now.workload.store.clone().or(then.workload.store);
    let is_named = named.is_some();
    let typed = named.unwrap_or_else(|| format!("sqlite:{}", run.join("store.db").display()));
    if typed.contains("***") {
        return Err(Failure::usage(format!(
            "--resume {shown}: passwords are not stored in run folders; give --store again with the password ({typed})"
        )));
    }
    // Environment variables in the URL may have changed since.
    let store =
        environment::filled_in(&typed, &invocation.variables).map_err(|e| Failure::usage(format!("--store: {e}")))?;
    if is_named && redact(&store) != document.store {
        return Err(Failure::usage(format!(
            "--resume {shown}: its experiments ran on {}, not on {}; start a new rating for that store",
            document.store,
            redact(&store)
        )));
    }
    let manifest = Manifest::read(&document.trace).map_err(Failure::usage)?;
    if manifest.workload_id != document.workload_id {
        return Err(Failure::usage(format!(
            "--resume {shown}: the workload of {} has changed since the run began; restore the trace set, or \
             start a new rating",
            document.trace.display()
        )));
    }
    let fleet = &now.workload.fleet;
    let fleet = match fleet.replayers.is_empty() {
        true => FleetArgs { retries: fleet.retries, ..then.workload.fleet },
        // The first call decides where the logs of the run stay, and whether to calibrate;
        // `--calibrate` may be added later.
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
        warmup: resume::warmup(&folder)?.or(then.workload.warmup),
        monitor: now.workload.monitor.or(then.workload.monitor),
        fleet,
        name: None,
        runs: run.parent().unwrap_or(Path::new("")).to_path_buf(),
        deck: now.workload.deck,
        metrics_listen: now.workload.metrics_listen,
        json: now.workload.json,
        quiet: now.workload.quiet,
        ..then.workload
    };
    let args = RateArgs { spec: None, sessions: None, resume: None, workload, ..then };
    let mut rating = rating(&args, invocation)?;
    let setting = &mut rating.setting;
    (setting.name, setting.folder) = (document.name, run.to_path_buf());
    (setting.started_unix_s, setting.command) = (document.started_unix_s, document.command);
    setting.past = resume::past(&folder, &setting.sla)?;
    if rating.wanted.unit() == Unit::SessionsPerS {
        // A longer trace may keep more threads busy, and all experiments have the same T.
        rating.threads = rating.threads.or(setting.past.first().map(|trial| trial.verdict.threads));
    }
    Ok(rating)
}
