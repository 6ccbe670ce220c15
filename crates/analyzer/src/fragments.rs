//! The fragments of an experiment: what the replayers say of them, and their analysis in parallel.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::RUN_FORMAT_VERSION;
use schemas::conditions;
use schemas::files;
use schemas::manifest::Manifest;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::{EndReason, ExperimentFolder, FragmentPosition, ReplayReport, RunFolder};
use schemas::verdict::ConditionFigures;

use crate::closing::ClosingPlan;
use crate::error::AnalyzeError;
use crate::families::AnyFamily;
use crate::figures::{Limits, Summary};
use crate::fragment::FragmentInput;
use crate::log::Survey;
use crate::seal::Sealed;
use crate::timeline::Measured;

pub(crate) fn read_plan(folder: &ExperimentFolder) -> Result<Plan, AnalyzeError> {
    let path = folder.plan();
    let plan: Plan = files::read_json(&path)?;
    if plan.format_version != RUN_FORMAT_VERSION {
        let found = plan.format_version as u64;
        return Err(schemas::run::RunError::Version { path, found }.into());
    }
    Ok(plan)
}

/// Reads the replayer's report; None if the replayer was killed and left none.
pub(crate) fn read_report(folder: &ExperimentFolder) -> Result<Option<ReplayReport>, AnalyzeError> {
    let path = folder.report();
    Ok(if path.exists() { Some(files::read_json(&path)?) } else { None })
}

/// The closing reads that an experiment began with and ended with. None follows an experiment that was
/// interrupted, or that lost a replayer.
pub(crate) fn closing(
    run: &RunFolder,
    folder: &ExperimentFolder,
    plan: &Plan,
    manifest: &Manifest,
    report: Option<&ReplayReport>,
) -> Result<ClosingPlan, AnalyzeError> {
    let family = manifest.spec.family()?;
    let (Some(closing), Some(report)) = (family.closing(&manifest.spec)?, report) else {
        return Ok(ClosingPlan::default());
    };
    let is_read = is_read(plan, Some(report));
    let before = match &report.began_with {
        Some(name) => experiment_with(run, plan.experiment, name)?,
        None => None,
    };
    Ok(ClosingPlan { parts: closing.parts, after: is_read.then(|| folder.clone()), before })
}

/// What was found of the conditions of the data after an experiment. None if the trace set has none, or none were
/// to be checked.
pub(crate) fn conditions(
    folder: &ExperimentFolder,
    plan: &Plan,
    manifest: &Manifest,
    report: Option<&ReplayReport>,
) -> Result<Option<ConditionFigures>, AnalyzeError> {
    if !is_read(plan, report) || !manifest.spec.family()?.has_conditions(&manifest.spec)? {
        return Ok(None);
    }
    let path = folder.checks();
    Ok(Some(match path.exists() {
        false => ConditionFigures::missing(format!("no file {}; the closing read was not completed", path.display())),
        // An experiment counts without its closing read.
        true => match conditions::read(&path) {
            Ok(all) => ConditionFigures::of(&all),
            Err(error) => ConditionFigures::missing(error.to_string()),
        },
    }))
}

/// Whether a closing read follows an experiment: none follows one that was interrupted, or that lost a replayer.
fn is_read(plan: &Plan, report: Option<&ReplayReport>) -> bool {
    let has_ended = |report: &ReplayReport| report.faults.is_empty() && report.end != EndReason::Interrupted;
    plan.closing_read.is_some() && report.is_some_and(has_ended)
}

/// The experiment whose closing read saw the state that this one started from.
pub(crate) fn began_from(
    run: &RunFolder,
    experiment: u32,
    folder: &ExperimentFolder,
) -> Result<Option<ExperimentFolder>, AnalyzeError> {
    let began_with = read_report(folder)?.and_then(|report| report.began_with);
    let before = began_with.map(|name| experiment_with(run, experiment, &name)).transpose()?;
    Ok(before.flatten().map(|(_, folder)| folder))
}

/// The experiment before this one that ended with the closing read of this name. None if it is in
/// another run folder.
fn experiment_with(run: &RunFolder, before: u32, name: &str) -> Result<Option<(u32, ExperimentFolder)>, AnalyzeError> {
    for (number, folder) in run.experiments()?.into_iter().rev().filter(|(number, _)| *number < before) {
        if folder.plan().exists() && read_plan(&folder)?.closing_read.as_deref() == Some(name) {
            return Ok(Some((number, folder)));
        }
    }
    Ok(None)
}

/// The results of the fragments of an experiment.
pub(crate) struct Analyzed {
    /// The summaries by the index of their replayer; only replayers that have fragments here.
    pub(crate) each: BTreeMap<usize, Summary>,
    /// The measured part.
    pub(crate) measured: Measured,
    /// The sealed tables, under temporary names.
    pub(crate) sealed: Vec<Sealed>,
}

/// Whether the report also covers the replayer of this fragment. A lost replayer has left no
/// report, or its log could not be fetched.
pub(crate) fn tells_of(report: &ReplayReport, fragment: &FragmentPlan, log: &Path) -> bool {
    let position = report.positions.iter().find(|position| position.fragment == fragment.fragment);
    if log.exists() {
        return report.faults.is_empty() || position.is_some();
    }
    // A replayer that was stopped before it began has a report, but no log.
    let has_begun = |position: &FragmentPosition| {
        position.next_session > fragment.first_session || position.given_back != fragment.given_back
    };
    report.faults.is_empty() && position.is_none_or(has_begun)
}

/// The sessions of a fragment that were given back; None if the report does not say.
pub(crate) fn given_back(report: Option<&ReplayReport>, fragment: u32) -> Option<&[u64]> {
    let position = report?.positions.iter().find(|position| position.fragment == fragment)?;
    Some(&position.given_back)
}

/// The index of the replayer of a fragment. The fragments of a lost replayer count with those of
/// the first one: such an experiment is void in any case.
pub(crate) fn replayer_of(fragments: &[&[u32]], fragment: Option<u32>) -> usize {
    let has = |own: &&[u32]| fragment.is_some_and(|fragment| own.contains(&fragment));
    fragments.iter().position(has).unwrap_or(0)
}

/// Analyzes fragments in parallel, after a survey of all their logs. `fragments` has the
/// fragments of each replayer.
pub(crate) fn analyze_fragments(
    family: &dyn AnyFamily,
    inputs: &[FragmentInput<'_>],
    limits: Limits,
    limit: Limit,
    report: Option<&ReplayReport>,
    fragments: &[&[u32]],
) -> Result<Analyzed, AnalyzeError> {
    let surveys = in_parallel(inputs, FragmentInput::survey).into_iter().collect::<Result<Vec<_>, _>>()?;
    let measured = measured(limit, report, surveys.iter().flatten());
    let surveyed: Vec<_> = inputs.iter().zip(&surveys).collect();
    // A summary takes megabytes, so each is merged at once; their order does not matter.
    let merged: Mutex<BTreeMap<usize, Summary>> = Mutex::default();
    let sealed = in_parallel(&surveyed, |(input, survey)| {
        let (summary, sealed) = family.analyze(input, survey.as_ref(), measured)?;
        let own = replayer_of(fragments, Some(input.plan.fragment));
        let mut merged = merged.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        merged.entry(own).or_insert_with(|| Summary::new(family.kinds(), limits, measured)).merge(&summary);
        Ok(sealed)
    });
    let sealed = sealed.into_iter().collect::<Result<Vec<_>, AnalyzeError>>()?;
    let each = merged.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(Analyzed { each, measured, sealed: sealed.into_iter().flatten().collect() })
}

/// The measured part, when only one fragment is analyzed. Without a report it depends on the logs of all fragments.
pub(crate) fn measured_for(
    inputs: &[FragmentInput<'_>],
    limit: Limit,
    report: Option<&ReplayReport>,
) -> Result<Measured, AnalyzeError> {
    if report.is_some() {
        return Ok(measured(limit, report, std::iter::empty()));
    }
    let surveys = in_parallel(inputs, FragmentInput::survey).into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(measured(limit, report, surveys.iter().flatten()))
}

/// The measured part: as the replayer reports it, else from the first start to the last end in
/// it.
fn measured<'a>(limit: Limit, report: Option<&ReplayReport>, surveys: impl Iterator<Item = &'a Survey>) -> Measured {
    let is_over = report.is_some_and(|report| report.end == EndReason::Limit);
    let of = |from_ns, elapsed_ns: u64| {
        let planned_ns = match limit {
            Limit::DurationS(seconds) => Some((seconds * 1e9) as u64),
            Limit::Sessions(_) | Limit::WholeTrace => None,
        };
        let counted_ns = match planned_ns {
            // All threads may have been waiting at the end of the planned time.
            Some(planned_ns) if is_over => planned_ns,
            Some(planned_ns) => elapsed_ns.min(planned_ns),
            None => elapsed_ns,
        };
        Measured { from_ns, elapsed_ns, counted_ns, planned_ns }
    };
    if let Some(report) = report {
        return of(report.warmup_ns as i64, report.elapsed_ns);
    }
    let parts = surveys.filter_map(|survey| survey.measured);
    let (first, last) = parts.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    of(first, last.abs_diff(first))
}

/// Calls `work` for each item, on as many threads as there are processors. The results are in the
/// order of the items.
fn in_parallel<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(items.len());
    let work_on = || {
        while let Some((item, result)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).zip(results.get(index))
        } {
            let found = work(item);
            *result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // If the system refuses more threads, fewer threads do the work.
            if std::thread::Builder::new().spawn_scoped(scope, work_on).is_err() {
                break;
            }
        }
        work_on();
    });
    let taken = results.into_iter().map(|result| result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()));
    taken.map(|result| result.unwrap_or_else(|| unreachable!("the scope ends when every item is done"))).collect()
}
