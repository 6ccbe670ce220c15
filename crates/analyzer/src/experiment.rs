//! The analysis of one experiment: its fragments in parallel, their summaries
//! merged, the ruling, `verdict.json`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::RUN_FORMAT_VERSION;
use schemas::files;
use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::run::{ExperimentFolder, ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::trace::TableError;
use schemas::verdict::Verdict;

use crate::error::AnalyzeError;
use crate::figures::Summary;
use crate::fragment::FragmentInput;
use crate::ruling::rule;
use crate::seal::Sealed;

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
    let report = read_report(&folder)?;
    let manifest = Manifest::read(&plan.trace)?;
    // Trace sets of one workload are prefixes of each other. One that has become
    // longer will do; sessions that one has not are found missing by the join.
    let is_extended = || run.read_document().is_ok_and(|d| d.workload_id == manifest.workload_id);
    if manifest.trace_id != plan.trace_id && !is_extended() {
        let (found, expected) = (manifest.trace_id, plan.trace_id);
        return Err(AnalyzeError::OtherTrace { folder: plan.trace, experiment, found, expected });
    }
    let inputs: Vec<FragmentInput<'_>> = plan
        .fragments
        .iter()
        .map(|fragment| FragmentInput {
            experiment,
            plan: *fragment,
            log: folder.log(fragment.fragment),
            trace: &plan.trace,
            manifest: &manifest,
            beta_ns: sla.beta_ns,
            has_report: report.is_some(),
            sealed: (keep == Keep::All).then(|| sealed_paths(run, experiment, fragment.fragment)),
            progress,
        })
        .collect();
    let (summary, sealed) = analyze_fragments(&inputs, sla.beta_ns)?;
    let figures = summary.figures(report.as_ref().map(|r| r.elapsed_ns));
    let (ruling, reasons) = rule(&figures, report.as_ref(), &sla);
    let threads = plan.threads;
    let verdict = Verdict { format_version: RUN_FORMAT_VERSION, experiment, threads, sla, ruling, reasons, figures };
    // Nothing gets its name before everything is there: a log that turns out to be
    // damaged leaves the run as it was.
    sealed.into_iter().try_for_each(Sealed::place).map_err(AnalyzeError::Write)?;
    if keep == Keep::All {
        let path = folder.verdict();
        files::write_json(&path, &verdict).map_err(|e| AnalyzeError::Write(TableError::new(&path, e.source)))?;
    }
    Ok(verdict)
}

/// The verdict of an experiment that has been analyzed and sealed before.
pub fn stored_verdict(run: &RunFolder, experiment: u32) -> Result<Option<Verdict>, AnalyzeError> {
    let folder = find(run, experiment)?;
    let plan = read_plan(&folder)?;
    let is_sealed = plan.fragments.iter().all(|fragment| {
        let (operations, unpredictable) = sealed_paths(run, experiment, fragment.fragment);
        operations.exists() && unpredictable.exists()
    });
    let path = folder.verdict();
    if !is_sealed || !path.exists() {
        return Ok(None);
    }
    let verdict: Verdict = files::read_json(&path)?;
    if verdict.format_version != RUN_FORMAT_VERSION {
        return Ok(None);
    }
    Ok(Some(verdict))
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

fn read_plan(folder: &ExperimentFolder) -> Result<Plan, AnalyzeError> {
    let path = folder.plan();
    let plan: Plan = files::read_json(&path)?;
    if plan.format_version != RUN_FORMAT_VERSION {
        let found = plan.format_version as u64;
        return Err(schemas::run::RunError::Version { path, found }.into());
    }
    Ok(plan)
}

/// A replayer that was killed leaves no report.
fn read_report(folder: &ExperimentFolder) -> Result<Option<ReplayReport>, AnalyzeError> {
    let path = folder.report();
    Ok(if path.exists() { Some(files::read_json(&path)?) } else { None })
}

/// Analyzes the fragments on as many threads as there are processors. The
/// summaries are merged in the order of the fragments.
fn analyze_fragments(inputs: &[FragmentInput<'_>], beta_ns: u64) -> Result<(Summary, Vec<Sealed>), AnalyzeError> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<_, AnalyzeError>>>> = inputs.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(inputs.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((input, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    inputs.get(index).zip(results.get(index))
                } {
                    let found = input.analyze();
                    *result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(found);
                }
            });
        }
    });
    let mut merged = Summary::new(beta_ns);
    let mut all_sealed = Vec::new();
    for result in results {
        let result = result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (summary, sealed) = result.unwrap_or_else(|| unreachable!("the scope ends when every fragment is done"))?;
        merged.merge(&summary);
        all_sealed.extend(sealed);
    }
    Ok((merged, all_sealed))
}
