//! The analysis of one experiment on one machine: analyzes its fragments in parallel, merges their summaries,
//! decides the verdict and writes `verdict.json`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemas::RUN_FORMAT_VERSION;
use schemas::files;
use schemas::plan::{Limit, Plan};
use schemas::run::{ExperimentFolder, RunFolder};
use schemas::sla::Sla;
use schemas::table::TableError;
use schemas::verdict::{ConditionFigures, Figures, ReplayerFigures, Ruling, Verdict};
use schemas::vocabulary::OperationKind;

use crate::error::AnalyzeError;
use crate::families;
use crate::figures::Summary;
use crate::fragment::{FragmentInput, SealedPaths};
use crate::fragments::{Analyzed, analyze_fragments, read_plan, replayer_of};
use crate::ruling::{TraceLimits, of_replayer, rule};
use crate::seal::Sealed;
use crate::subject::{Needs, Subject, sealed_paths};
use crate::summarize;
use crate::timeline::{Measured, add_due_rates};
use crate::verify;

/// What an analysis leaves in the run folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The sealed tables and the verdict.
    All,
    /// Nothing: only the caller gets the verdict.
    Nothing,
}

/// Analyzes an experiment: seals its tables, writes `verdict.json` and returns the verdict.
/// Without an SLA it uses the run's own.
pub fn analyze(run: &RunFolder, experiment: u32, sla: Option<&Sla>) -> Result<Verdict, AnalyzeError> {
    analyze_with(run, experiment, sla, Keep::All, &|_| {})
}

/// Like [`analyze`], with a choice of what is kept. Several threads call `progress` with the
/// number of rows of each batch.
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
        None => run.read_document()?.sla(),
    };
    if let Some(verdict) = void_without_log(&folder, &plan)? {
        return Ok(Verdict { sla, ..verdict });
    }
    let subject = Subject::new(run, folder, plan, None, Needs::All)?;
    let family = families::of(&subject.manifest.spec)?;
    let left_behind = summarize::left_behind(&subject.folder)?;
    let is_here = |fragment: u32| !left_behind.contains(&fragment);
    let here = subject.plan.fragments.iter().filter(|fragment| is_here(fragment.fragment));
    let inputs: Vec<FragmentInput<'_>> =
        here.map(|fragment| subject.input(fragment, &sla, keep == Keep::All, progress)).collect();
    let analyzed = analyze_fragments(
        family,
        &inputs,
        (&sla).into(),
        subject.plan.limit,
        subject.report.as_ref(),
        &subject.by_replayer(),
    )?;
    let Analyzed { mut each, measured, sealed } = analyzed;
    // A summary takes megabytes, and there may be a thousand: read one at a time.
    for path in summarize::paths(&subject.folder.summaries())? {
        let kept = summarize::read(&path)?;
        if kept.fragments.iter().all(|fragment| left_behind.contains(fragment)) {
            kept.check(((&sla).into(), measured), &subject.folder)?;
            let own = replayer_of(&subject.by_replayer(), kept.fragments.first().copied());
            merge_into(&mut each, own, kept.summary);
        }
    }
    // Where the logs stayed with their replayer, its summary has what was found.
    let conditions = match subject.manifest.fragments.first().is_none_or(|first| is_here(first.fragment)) {
        true => subject.conditions()?,
        false => None,
    };
    let verdict = conclude(&subject, &sla, family.kinds(), Merged { each, measured, conditions })?;
    // The files get their names only when all of them are complete: a damaged log leaves the run
    // unchanged.
    let sealed = sealed.into_iter().map(Sealed::place).collect::<Result<_, _>>().map_err(AnalyzeError::Write)?;
    let verdict = Verdict { sealed, ..verdict };
    if keep == Keep::All {
        write_verdict(&subject.folder, &verdict)?;
        verify::written(run, &verdict)?;
    }
    Ok(verdict)
}

/// The summaries of all fragments, merged by replayer.
pub(crate) struct Merged {
    /// By the index of the replayer.
    pub(crate) each: BTreeMap<usize, Summary>,
    pub(crate) measured: Measured,
    /// What was found of the conditions of the data, if no summary has it.
    pub(crate) conditions: Option<ConditionFigures>,
}

/// Adds the summary of fragments of a replayer to its others.
pub(crate) fn merge_into(each: &mut BTreeMap<usize, Summary>, own: usize, summary: Summary) {
    match each.entry(own) {
        Entry::Vacant(entry) => {
            entry.insert(summary);
        }
        Entry::Occupied(mut entry) => entry.get_mut().merge(&summary),
    }
}

/// The verdict that the summaries of all fragments give, without sealed tables.
pub(crate) fn conclude(
    subject: &Subject<'_>,
    sla: &Sla,
    kinds: &[OperationKind],
    merged: Merged,
) -> Result<Verdict, AnalyzeError> {
    let Subject { plan, report, manifest, .. } = subject;
    let Merged { each, measured, conditions } = merged;
    let parts = report.as_ref().map_or(&[][..], |report| &report.replayers);
    // The figures of a single replayer are those of the experiment.
    let mut of_each = vec![Figures::default(); if parts.len() > 1 { parts.len() } else { 0 }];
    let mut whole = Summary::new(kinds, sla, measured);
    for (own, summary) in each {
        if let Some(figures) = of_each.get_mut(own) {
            *figures = summary.figures();
        }
        whole.merge(&summary);
    }
    whole.add_conditions(conditions);
    let mut figures = whole.figures();
    manifest.spec.family()?.session_goals(&manifest.spec)?.put_into(&mut figures);
    if let Some(open) = &plan.open_loop {
        add_due_rates(&mut figures.timeline, open, &manifest.spec);
    }
    let parts = parts.iter().zip(&of_each);
    let replayers: Vec<ReplayerFigures> =
        parts.map(|(part, figures)| of_replayer(part.name.clone(), part.threads, figures, sla)).collect();
    let trace = TraceLimits {
        threads: plan.threads,
        active_threads_max: plan.unique_actors.then_some(manifest.active_threads_max),
        actors: manifest.spec.family()?.actor_words(),
    };
    let (ruling, reasons) = rule(&figures, &replayers, report.as_ref(), sla, trace);
    Ok(Verdict {
        format_version: RUN_FORMAT_VERSION,
        experiment: subject.experiment(),
        threads: plan.threads,
        rate_per_s: plan.open_loop.and_then(|open| open.mean_rate(&manifest.spec, planned_s(plan, &figures))),
        sla: *sla,
        ruling,
        reasons,
        figures,
        replayers,
        sealed: Vec::new(),
    })
}

/// How long the measured part is: the planned time, or the time that it took.
fn planned_s(plan: &Plan, figures: &Figures) -> f64 {
    match plan.limit {
        Limit::DurationS(seconds) => seconds,
        Limit::Sessions(_) | Limit::WholeTrace => figures.counted_ns as f64 / 1e9,
    }
}

/// Writes the `verdict.json` of an experiment that could not be run, beside its `plan.json`.
/// [`void_verdict`](crate::void_verdict) makes such a verdict. The experiment has no log; from
/// then on its verdict counts as [stored](stored_verdict).
pub fn record_void(run: &RunFolder, verdict: &Verdict) -> Result<(), AnalyzeError> {
    write_verdict(&run.existing_experiment(verdict.experiment, verdict.threads), verdict)
}

pub(crate) fn write_verdict(folder: &ExperimentFolder, verdict: &Verdict) -> Result<(), AnalyzeError> {
    let path = folder.verdict();
    files::write_json(&path, verdict).map_err(|e| AnalyzeError::Write(TableError::new(&path, e.source)))
}

/// The verdict of an experiment that was recorded as void without being run.
pub(crate) fn void_without_log(folder: &ExperimentFolder, plan: &Plan) -> Result<Option<Verdict>, AnalyzeError> {
    if folder.report().exists() || plan.fragments.iter().any(|fragment| folder.log(fragment.fragment).exists()) {
        return Ok(None);
    }
    Ok(read_verdict(folder)?.filter(|verdict| verdict.ruling == Ruling::Void))
}

/// None if there is no verdict, or one of another version.
pub(crate) fn read_verdict(folder: &ExperimentFolder) -> Result<Option<Verdict>, AnalyzeError> {
    let path = folder.verdict();
    if !path.exists() {
        return Ok(None);
    }
    let value: serde_json::Value = files::read_json(&path)?;
    if value["format_version"] != RUN_FORMAT_VERSION {
        return Ok(None);
    }
    // Read again, because a JSON value does not keep the order of its keys.
    Ok(Some(files::read_json(&path)?))
}

/// The verdict of an experiment that has been analyzed and sealed before, or that
/// was recorded as void without a log.
pub fn stored_verdict(run: &RunFolder, experiment: u32) -> Result<Option<Verdict>, AnalyzeError> {
    let folder = find(run, experiment)?;
    let plan = read_plan(&folder)?;
    let left_behind = summarize::left_behind(&folder)?;
    let is_sealed = plan.fragments.iter().all(|fragment| {
        let SealedPaths { operations, unpredictable, closing_reads } = sealed_paths(run, experiment, fragment.fragment);
        let has_closed = closing_reads.exists() || !folder.audit(fragment.fragment).exists();
        let is_here = operations.exists() && unpredictable.exists() && has_closed;
        is_here || left_behind.contains(&fragment.fragment)
    });
    if is_sealed { read_verdict(&folder) } else { void_without_log(&folder, &plan) }
}

/// The folder of an experiment; the error lists the experiments that exist.
pub(crate) fn find(run: &RunFolder, experiment: u32) -> Result<ExperimentFolder, AnalyzeError> {
    let all = run.experiments()?;
    let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
    let found = all.into_iter().find(|(number, _)| *number == experiment);
    found.map(|(_, folder)| folder).ok_or_else(|| {
        let known = if numbers.is_empty() { "it has none".into() } else { format!("it has {}", numbers.join(", ")) };
        AnalyzeError::NoExperiment { run: run.root().to_path_buf(), experiment, known }
    })
}
