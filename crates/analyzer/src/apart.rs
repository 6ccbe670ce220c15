//! Fragments that are analyzed by themselves, on any machine and in any order, and the verdict of all of them:
//! `encore analyze fragment` and `encore analyze merge`.
//!
//! The document of a fragment is a [`SummaryDocument`] in the experiment's `fragments/`, written after the sealed
//! tables that it lists. What is made twice is the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemas::RUN_FORMAT_VERSION;
use schemas::files::{self, FileError};
use schemas::run::RunFolder;
use schemas::sla::Sla;
use schemas::verdict::{Checksum, SealedFragment, Verdict};

use crate::error::AnalyzeError;
use crate::experiment::{Merged, conclude, find, merge_into, void_without_log, write_verdict};
use crate::families;
use crate::figures::Summary;
use crate::fragments::{measured_for, read_plan, replayer_of};
use crate::seal::Sealed;
use crate::subject::{Needs, Subject, sealed_paths};
use crate::summarize::{self, SummaryDocument};
use crate::timeline::Measured;

/// Analyzes one fragment of an experiment: seals its tables, and writes its summary into the experiment's folder. The
/// trace set is in `trace`, or where the plan says. Without an SLA it uses the run's own.
pub fn analyze_fragment(
    run: &RunFolder,
    (experiment, fragment): (u32, u32),
    trace: Option<&Path>,
    sla: Option<&Sla>,
) -> Result<PathBuf, AnalyzeError> {
    let folder = find(run, experiment)?;
    let subject = Subject::new(run, folder.clone(), read_plan(&folder)?, trace, Needs::Fragment(fragment))?;
    let sla = sla.copied().map_or_else(|| run.read_document().map(|document| document.sla()), Ok)?;
    let of = |plan| subject.input(plan, &sla, true, &|_| {});
    let Some(own) = subject.plan.fragments.iter().find(|plan| plan.fragment == fragment) else {
        let known: Vec<u32> = subject.plan.fragments.iter().map(|plan| plan.fragment).collect();
        return Err(AnalyzeError::NoFragment { experiment, fragment, known: ranges(&known) });
    };
    let all: Vec<_> = subject.plan.fragments.iter().map(of).collect();
    let measured = measured_for(&all, subject.plan.limit, subject.report.as_ref())?;
    let input = of(own);
    let family = families::of(&subject.manifest.spec)?;
    let (mut summary, sealed) = family.analyze(&input, input.survey()?.as_ref(), measured)?;
    if subject.is_first(fragment) {
        summary.add_conditions(subject.conditions()?);
    }
    let sealed = sealed.map(Sealed::place).transpose().map_err(AnalyzeError::Write)?;
    let document = SummaryDocument {
        format_version: RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        experiment,
        trace_id: subject.manifest.trace_id.clone(),
        fragments: vec![fragment],
        report: report_sum(&subject)?,
        sealed: sealed.into_iter().collect(),
        summary,
    };
    let path = subject.folder.fragment(fragment);
    files::write_json(&path, &document)?;
    Ok(path)
}

/// The sum of the replayer's report. A summary that was made of another report is of another replay.
fn report_sum(subject: &Subject<'_>) -> Result<Option<String>, FileError> {
    let path = subject.folder.report();
    if path.exists() { files::blake3_of(&path).map(Some) } else { Ok(None) }
}

/// Makes the verdict of an experiment whose fragments have all been analyzed by themselves, and writes it.
pub fn merge(
    run: &RunFolder,
    experiment: u32,
    trace: Option<&Path>,
    sla: Option<&Sla>,
) -> Result<Verdict, AnalyzeError> {
    merge_with(run, experiment, trace, sla, &size_here)
}

/// The size of a sealed table.
pub(crate) type SizeOf<'a> = &'a dyn Fn(&Path) -> Result<u64, FileError>;

/// The size of a file that is on this machine.
pub(crate) fn size_here(path: &Path) -> Result<u64, FileError> {
    Ok(std::fs::metadata(path).map_err(files::at(path))?.len())
}

/// The same where sealed tables may be elsewhere; `size_of` knows their sizes.
pub(crate) fn merge_with(
    run: &RunFolder,
    experiment: u32,
    trace: Option<&Path>,
    sla: Option<&Sla>,
    size_of: SizeOf<'_>,
) -> Result<Verdict, AnalyzeError> {
    let folder = find(run, experiment)?;
    let plan = read_plan(&folder)?;
    let sla = sla.copied().map_or_else(|| run.read_document().map(|document| document.sla()), Ok)?;
    if let Some(verdict) = void_without_log(&folder, &plan)? {
        return Ok(Verdict { sla, ..verdict });
    }
    check_complete(run, &folder.fragments(), experiment, plan.fragments.iter().map(|plan| plan.fragment))?;
    let subject = Subject::new(run, folder, plan, trace, Needs::Nothing)?;
    let report = report_sum(&subject)?;
    let by_replayer = subject.by_replayer();
    let mut each: BTreeMap<usize, Summary> = BTreeMap::new();
    let (mut sealed, mut measured): (Vec<SealedFragment>, Option<Measured>) = Default::default();
    // A summary takes megabytes, and there may be a thousand: read one at a time.
    for fragment in subject.plan.fragments.iter().map(|plan| plan.fragment) {
        let path = subject.folder.fragment(fragment);
        let SummaryDocument {
            format_version: _,
            encore_version,
            experiment: of,
            trace_id,
            fragments,
            report: made_of,
            sealed: tables,
            summary,
        } = summarize::read(&path)?;
        let differs = |what: &'static str| AnalyzeError::OtherFragment { path: path.clone(), what };
        if encore_version != env!("CARGO_PKG_VERSION") {
            return Err(differs("was made by another version of Encore"));
        }
        if of != experiment || fragments != [fragment] {
            return Err(differs("is of another experiment or fragment"));
        }
        if trace_id != subject.manifest.trace_id {
            return Err(differs("was made with another trace set"));
        }
        if made_of != report {
            return Err(differs("was made before replay.json was as it is now"));
        }
        let (limits, own_measured) = summary.basis();
        if limits != (&sla).into() {
            return Err(differs("was made for another SLA"));
        }
        if *measured.get_or_insert(own_measured) != own_measured {
            return Err(differs("has another measured part than the first fragment's"));
        }
        for (path, Checksum { bytes, .. }) in tables.iter().flat_map(|own| sealed_tables(run, experiment, own)) {
            // Their content is verified when they are queried.
            if size_of(&path)? != *bytes {
                return Err(AnalyzeError::OtherFragment { path, what: "is not as long as its summary says" });
            }
        }
        sealed.extend(tables);
        merge_into(&mut each, replayer_of(&by_replayer, Some(fragment)), summary);
    }
    let measured = measured.unwrap_or(measured_for(&[], subject.plan.limit, subject.report.as_ref())?);
    let kinds = families::of(&subject.manifest.spec)?.kinds();
    let verdict = conclude(&subject, &sla, kinds, Merged { each, measured, conditions: None })?;
    let verdict = Verdict { sealed, ..verdict };
    write_verdict(&subject.folder, &verdict)?;
    Ok(verdict)
}

/// Refuses an experiment of which a fragment has not been analyzed.
fn check_complete(
    run: &RunFolder,
    folder: &Path,
    experiment: u32,
    fragments: impl Iterator<Item = u32>,
) -> Result<(), AnalyzeError> {
    let missing: Vec<u32> =
        fragments.filter(|fragment| !folder.join(format!("fragment-{fragment}.json")).exists()).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let (run, first, count) = (run.root().to_path_buf(), *first, missing.len() as u64);
    Err(AnalyzeError::NotAnalyzed { run, experiment, first, count, missing: ranges(&missing) })
}

/// The sealed tables of a fragment, and what identifies their contents.
pub(crate) fn sealed_tables<'a>(
    run: &RunFolder,
    experiment: u32,
    sealed: &'a SealedFragment,
) -> impl Iterator<Item = (PathBuf, &'a Checksum)> + use<'a> {
    let paths = sealed_paths(run, experiment, sealed.fragment);
    let closing_reads = sealed.closing_reads.as_ref().map(|checksum| (paths.closing_reads, checksum));
    let tables = [(paths.operations, &sealed.operations), (paths.unpredictable, &sealed.unpredictable)];
    tables.into_iter().chain(closing_reads)
}

/// Ascending numbers in few words: `0, 3 to 7`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}
