//! The analysis of one experiment: its fragments in parallel, their summaries
//! merged, the ruling, `verdict.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::RUN_FORMAT_VERSION;
use schemas::files::{self, FileError};
use schemas::manifest::Manifest;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::{EndReason, ExperimentFolder, FragmentPosition, ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::trace::TableError;
use schemas::verdict::{Figures, ReplayerFigures, Ruling, Verdict};

use crate::error::AnalyzeError;
use crate::figures::Summary;
use crate::fragment::FragmentInput;
use crate::log::Survey;
use crate::ruling::{TraceLimits, of_replayer, rule};
use crate::seal::Sealed;
use crate::summarize;
use crate::timeline::Measured;

/// What an analysis leaves in the run folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The sealed tables and the verdict.
    All,
    /// Nothing: the verdict is for the caller alone.
    Nothing,
}

/// Analyzes an experiment: seals its tables, writes `verdict.json` and returns
/// it. Without an SLA the run's own counts, or the default when it has none.
pub fn analyze(run: &RunFolder, experiment: u32, sla: Option<&Sla>) -> Result<Verdict, AnalyzeError> {
    analyze_with(run, experiment, sla, Keep::All, &|_| {})
}

/// [`analyze`], with a choice of what is kept; `progress` is told of each batch
/// of rows, from several threads.
pub fn analyze_with(
    run: &RunFolder,
    experiment: u32,
    sla: Option<&Sla>,
    keep: Keep,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Verdict, AnalyzeError> {
    let folder = find(run, experiment)?;
    let plan = read_plan(&folder)?;
    let sla = match sla {
        Some(sla) => *sla,
        None => run.read_document()?.sla.unwrap_or_default(),
    };
    if let Some(verdict) = void_without_log(&folder, &plan)? {
        return Ok(Verdict { sla, ..verdict });
    }
    let report = read_report(&folder)?;
    let manifest = Manifest::read(&plan.trace)?;
    // Trace sets of one workload are prefixes of each other. One that has become
    // longer will do; sessions that one has not are found missing by the join.
    let is_extended = || run.read_document().is_ok_and(|d| d.workload_id == manifest.workload_id);
    if manifest.trace_id != plan.trace_id && !is_extended() {
        let (found, expected) = (manifest.trace_id, plan.trace_id);
        return Err(AnalyzeError::OtherTrace { folder: plan.trace, experiment, found, expected });
    }
    let left_behind = summarize::left_behind(&folder)?;
    let is_here = |fragment: u32| !left_behind.contains(&fragment);
    let inputs: Vec<FragmentInput<'_>> = plan
        .fragments
        .iter()
        .filter(|fragment| is_here(fragment.fragment))
        .map(|fragment| FragmentInput {
            experiment,
            plan: fragment.clone(),
            log: folder.log(fragment.fragment),
            trace: &plan.trace,
            manifest: &manifest,
            beta_ns: sla.beta_ns,
            has_report: report
                .as_ref()
                .is_some_and(|report| tells_of(report, fragment, &folder.log(fragment.fragment))),
            given_back: given_back(report.as_ref(), fragment.fragment),
            sealed: (keep == Keep::All).then(|| sealed_paths(run, experiment, fragment.fragment)),
            progress,
        })
        .collect();
    let parts = report.as_ref().map_or(&[][..], |report| &report.replayers);
    let fragments: Vec<&[u32]> = parts.iter().map(|part| part.fragments.as_slice()).collect();
    let Analyzed { each, measured, sealed } =
        analyze_fragments(&inputs, sla.beta_ns, plan.limit, report.as_ref(), &fragments)?;
    let mut whole = Summary::new(sla.beta_ns, measured);
    // What a single one did is what all did.
    let mut of_each = vec![Figures::default(); if parts.len() > 1 { parts.len() } else { 0 }];
    let mut take_in = |own: usize, summary: &Summary| {
        if let Some(figures) = of_each.get_mut(own) {
            *figures = summary.figures();
        }
        whole.merge(summary);
    };
    for (own, summary) in each {
        take_in(own, &summary);
    }
    // A summary takes megabytes, and there may be a thousand: one at a time.
    for path in summarize::paths(&folder)? {
        let kept = summarize::read(&path)?;
        if kept.fragments.iter().all(|fragment| left_behind.contains(fragment)) {
            kept.check((sla.beta_ns, measured), &folder)?;
            take_in(replayer_of(&fragments, kept.fragments.first().copied()), &kept.summary);
        }
    }
    let figures = whole.figures();
    let parts = parts.iter().zip(&of_each);
    let replayers: Vec<ReplayerFigures> =
        parts.map(|(part, figures)| of_replayer(part.name.clone(), part.threads, figures, &sla)).collect();
    let trace = TraceLimits {
        threads: plan.threads,
        active_threads_max: plan.unique_socialites.then_some(manifest.statistics.socialites.active_threads_max),
    };
    let (ruling, reasons) = rule(&figures, &replayers, report.as_ref(), &sla, trace);
    let threads = plan.threads;
    let format_version = RUN_FORMAT_VERSION;
    let verdict = Verdict { format_version, experiment, threads, sla, ruling, reasons, figures, replayers };
    // Nothing gets its name before everything is there: a log that turns out to be
    // damaged leaves the run as it was.
    sealed.into_iter().try_for_each(Sealed::place).map_err(AnalyzeError::Write)?;
    if keep == Keep::All {
        write_verdict(&folder, &verdict)?;
    }
    Ok(verdict)
}

/// Writes the `verdict.json` of an experiment that could not be run, made by
/// [`void_verdict`](crate::void_verdict), beside its `plan.json`. Such an experiment
/// has no log; from then on its verdict counts as [stored](stored_verdict).
pub fn record_void(run: &RunFolder, verdict: &Verdict) -> Result<(), AnalyzeError> {
    write_verdict(&run.experiment(verdict.experiment, verdict.threads), verdict)
}

fn write_verdict(folder: &ExperimentFolder, verdict: &Verdict) -> Result<(), AnalyzeError> {
    let path = folder.verdict();
    files::write_json(&path, verdict).map_err(|e| AnalyzeError::Write(TableError::new(&path, e.source)))
}

/// The verdict of an experiment that was recorded as void without ever running.
fn void_without_log(folder: &ExperimentFolder, plan: &Plan) -> Result<Option<Verdict>, AnalyzeError> {
    if folder.report().exists() || plan.fragments.iter().any(|fragment| folder.log(fragment.fragment).exists()) {
        return Ok(None);
    }
    Ok(read_verdict(folder)?.filter(|verdict| verdict.ruling == Ruling::Void))
}

/// None when there is none, or one of another version.
fn read_verdict(folder: &ExperimentFolder) -> Result<Option<Verdict>, AnalyzeError> {
    let path = folder.verdict();
    if !path.exists() {
        return Ok(None);
    }
    let value: serde_json::Value = files::read_json(&path)?;
    if value["format_version"] != RUN_FORMAT_VERSION {
        return Ok(None);
    }
    let verdict = serde_json::from_value(value).map_err(|e| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, e);
        FileError { path, source }
    })?;
    Ok(Some(verdict))
}

/// The verdict of an experiment that has been analyzed and sealed before, or that
/// was recorded as void without a log.
pub fn stored_verdict(run: &RunFolder, experiment: u32) -> Result<Option<Verdict>, AnalyzeError> {
    let folder = find(run, experiment)?;
    let plan = read_plan(&folder)?;
    let left_behind = summarize::left_behind(&folder)?;
    let is_sealed = plan.fragments.iter().all(|fragment| {
        let (operations, unpredictable) = sealed_paths(run, experiment, fragment.fragment);
        let is_here = operations.exists() && unpredictable.exists();
        is_here || left_behind.contains(&fragment.fragment)
    });
    if is_sealed { read_verdict(&folder) } else { void_without_log(&folder, &plan) }
}

fn sealed_paths(run: &RunFolder, experiment: u32, fragment: u32) -> (PathBuf, PathBuf) {
    (run.sealed_operations(experiment, fragment), run.unpredictable(experiment, fragment))
}

/// The folder of an experiment; the error says which there are.
fn find(run: &RunFolder, experiment: u32) -> Result<ExperimentFolder, AnalyzeError> {
    let all = run.experiments()?;
    let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
    let found = all.into_iter().find(|(number, _)| *number == experiment);
    found.map(|(_, folder)| folder).ok_or_else(|| {
        let known = if numbers.is_empty() { "it has none".into() } else { format!("it has {}", numbers.join(", ")) };
        AnalyzeError::NoExperiment { run: run.root().to_path_buf(), experiment, known }
    })
}

pub(crate) fn read_plan(folder: &ExperimentFolder) -> Result<Plan, AnalyzeError> {
    let path = folder.plan();
    let plan: Plan = files::read_json(&path)?;
    if plan.format_version != RUN_FORMAT_VERSION {
        let found = plan.format_version as u64;
        return Err(schemas::run::RunError::Version { path, found }.into());
    }
    Ok(plan)
}

/// A replayer that was killed leaves no report.
pub(crate) fn read_report(folder: &ExperimentFolder) -> Result<Option<ReplayReport>, AnalyzeError> {
    let path = folder.report();
    Ok(if path.exists() { Some(files::read_json(&path)?) } else { None })
}

/// What came of the fragments of an experiment.
pub(crate) struct Analyzed {
    /// By the place of their replayer; of those that have fragments here.
    pub(crate) each: BTreeMap<usize, Summary>,
    /// The measured part.
    pub(crate) measured: Measured,
    sealed: Vec<Sealed>,
}

/// Whether a report is that of the replayer which had this fragment too: one that was
/// lost has left none, or has left its log where nobody could fetch it.
pub(crate) fn tells_of(report: &ReplayReport, fragment: &FragmentPlan, log: &Path) -> bool {
    let position = report.positions.iter().find(|position| position.fragment == fragment.fragment);
    if log.exists() {
        return report.faults.is_empty() || position.is_some();
    }
    // One that was stopped before it began has reported so, and has no log.
    let has_begun = |position: &FragmentPosition| {
        position.next_session > fragment.first_session || position.given_back != fragment.given_back
    };
    report.faults.is_empty() && position.is_none_or(has_begun)
}

/// The sessions of a fragment that were given back, where the report tells.
pub(crate) fn given_back(report: Option<&ReplayReport>, fragment: u32) -> Option<&[u64]> {
    let position = report?.positions.iter().find(|position| position.fragment == fragment)?;
    Some(&position.given_back)
}

/// The place of the replayer that has a fragment. Those of one that was lost count with
/// the first one's: such an experiment is void in any case.
fn replayer_of(fragments: &[&[u32]], fragment: Option<u32>) -> usize {
    let has = |own: &&[u32]| fragment.is_some_and(|fragment| own.contains(&fragment));
    fragments.iter().position(has).unwrap_or(0)
}

/// Analyzes fragments in parallel, after a first look at all of their logs. `fragments`
/// are those of each replayer.
pub(crate) fn analyze_fragments(
    inputs: &[FragmentInput<'_>],
    beta_ns: u64,
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
        let (summary, sealed) = input.analyze(survey.as_ref(), measured)?;
        let own = replayer_of(fragments, Some(input.plan.fragment));
        let mut merged = merged.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        merged.entry(own).or_insert_with(|| Summary::new(beta_ns, measured)).merge(&summary);
        Ok(sealed)
    });
    let sealed = sealed.into_iter().collect::<Result<Vec<_>, AnalyzeError>>()?;
    let each = merged.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(Analyzed { each, measured, sealed: sealed.into_iter().flatten().collect() })
}

/// The measured part: as the replayer reports it, else from the first start to the last end in it.
fn measured<'a>(limit: Limit, report: Option<&ReplayReport>, surveys: impl Iterator<Item = &'a Survey>) -> Measured {
    let is_over = report.is_some_and(|report| report.end == EndReason::Limit);
    let of = |from_ns, elapsed_ns: u64| {
        let planned_ns = match limit {
            Limit::DurationS(seconds) => Some((seconds * 1e9) as u64),
            Limit::Sessions(_) | Limit::WholeTrace => None,
        };
        let counted_ns = match planned_ns {
            // Threads may have rested until the time was over.
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

/// Calls `work` for each item, on as many threads as there are processors; the
/// results come in the order of the items.
fn in_parallel<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).zip(results.get(index))
                } {
                    let found = work(item);
                    *result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(found);
                }
            });
        }
    });
    let taken = results.into_iter().map(|result| result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()));
    taken.map(|result| result.unwrap_or_else(|| unreachable!("the scope ends when every item is done"))).collect()
}
