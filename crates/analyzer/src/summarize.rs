//! `encore analyze summarize`: analyzes logs on the machine of their replayer, so that only the
//! summary is sent.
//!
//! The document is the merged [`Summary`] of the replayer's fragments. The coordinator puts it
//! into the experiment's `summaries/`. There [`analyze`](crate::analyze) uses it instead of logs
//! that are missing. If the logs are there, it uses the logs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemas::RUN_FORMAT_VERSION;
use schemas::files::{self, FileError};
use schemas::manifest::Manifest;
use schemas::run::{ExperimentFolder, ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::verdict::SealedFragment;
use serde::{Deserialize, Serialize};

use crate::error::AnalyzeError;
use crate::families;
use crate::figures::{Limits, Summary};
use crate::fragment::FragmentInput;
use crate::fragments::{analyze_fragments, closing, conditions, given_back, read_plan, read_report, tells_of};
use crate::timeline::Measured;

/// The summary of the logs of a replayer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryDocument {
    /// [`RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The version of Encore.
    pub encore_version: String,
    /// The experiment.
    pub experiment: u32,
    /// The trace set.
    pub trace_id: String,
    /// The fragments whose logs were read.
    pub fragments: Vec<u32>,
    /// The BLAKE3 sum of the `replay.json` that was known; None if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The sealed tables that were written with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<SealedFragment>,
    /// Their merged summary.
    pub summary: Summary,
}

impl SummaryDocument {
    /// Refuses a summary that was made for another SLA or another measured part.
    pub(crate) fn check(&self, basis: (Limits, Measured), folder: &ExperimentFolder) -> Result<(), AnalyzeError> {
        let (limits, measured) = self.summary.basis();
        if (limits, measured) == basis {
            return Ok(());
        }
        let (folder, experiment) = (folder.root().to_path_buf(), self.experiment);
        let beta_ms = limits.beta_ns as f64 / 1e6;
        Err(AnalyzeError::SummarizedForAnother { folder, experiment, beta_ms })
    }
}

/// Analyzes the logs in an experiment's folder, and writes `summary.json` there. `fleet` is the
/// report of all replayers, which has the measured part. Without it, the folder's own report is
/// used.
pub fn summarize(folder: &Path, fleet: Option<&Path>, sla: &Sla) -> Result<(SummaryDocument, PathBuf), AnalyzeError> {
    let folder = ExperimentFolder::new(folder);
    let (plan, own) = (read_plan(&folder)?, read_report(&folder)?);
    let manifest = Manifest::read(&plan.trace)?;
    if manifest.trace_id != plan.trace_id {
        let (found, expected, experiment) = (manifest.trace_id, plan.trace_id, plan.experiment);
        return Err(AnalyzeError::OtherTrace { folder: plan.trace, experiment, found, expected });
    }
    let fleet: Option<ReplayReport> = fleet.map(files::read_json).transpose()?;
    // The folder of an experiment is two levels below that of its run.
    let run = RunFolder::new(folder.root().ancestors().nth(2).unwrap_or(folder.root()));
    let closing = closing(&run, &folder, &plan, &manifest, fleet.as_ref().or(own.as_ref()))?;
    let inputs = plan.fragments.iter().map(|fragment| FragmentInput {
        experiment: plan.experiment,
        plan: fragment.clone(),
        log: folder.log(fragment.fragment),
        trace: &plan.trace,
        manifest: &manifest,
        limits: sla.into(),
        has_report: own.as_ref().is_some_and(|report| tells_of(report, fragment, &folder.log(fragment.fragment))),
        given_back: given_back(own.as_ref(), fragment.fragment),
        closing: closing.clone(),
        sealed: None,
        progress: &|_| {},
    });
    let inputs: Vec<FragmentInput<'_>> = inputs.collect();
    let family = families::of(&manifest.spec)?;
    let analyzed = analyze_fragments(family, &inputs, sla.into(), plan.limit, fleet.as_ref().or(own.as_ref()), &[])?;
    let mut summary = Summary::new(family.kinds(), sla, analyzed.measured);
    analyzed.each.values().for_each(|own| summary.merge(own));
    let first = manifest.fragments.first().map(|first| first.fragment);
    if plan.fragments.iter().any(|own| Some(own.fragment) == first) {
        summary.add_conditions(conditions(&folder, &plan, &manifest, fleet.as_ref().or(own.as_ref()))?);
    }
    let document = SummaryDocument {
        format_version: RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        experiment: plan.experiment,
        trace_id: plan.trace_id,
        fragments: plan.fragments.iter().map(|fragment| fragment.fragment).collect(),
        report: None,
        sealed: Vec::new(),
        summary,
    };
    let path = folder.summary();
    files::write_json(&path, &document)?;
    Ok((document, path))
}

/// The fragments of an experiment whose logs are with their replayers: all fragments of each
/// summary of which a log is not here. A summary counts for all its fragments or for none.
pub(crate) fn left_behind(folder: &ExperimentFolder) -> Result<BTreeSet<u32>, AnalyzeError> {
    let mut left = BTreeSet::new();
    for path in paths(&folder.summaries())? {
        let fragments = read(&path)?.fragments;
        if fragments.iter().any(|fragment| !folder.log(*fragment).exists()) {
            left.extend(fragments);
        }
    }
    Ok(left)
}

/// The summaries in a folder, which need not exist.
pub(crate) fn paths(folder: &Path) -> Result<Vec<PathBuf>, AnalyzeError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(files::at(folder)(e).into()),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(files::at(folder))?.path();
        // Other files are still being written.
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads a summary from another machine, and trusts only its figures.
pub(crate) fn read(path: &Path) -> Result<SummaryDocument, AnalyzeError> {
    let value: serde_json::Value = files::read_json(path)?;
    if value["format_version"] != RUN_FORMAT_VERSION {
        let found = value["format_version"].as_u64().unwrap_or(0);
        return Err(schemas::run::RunError::Version { path: path.to_path_buf(), found }.into());
    }
    serde_json::from_value(value).map_err(|e| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, e);
        FileError { path: path.to_path_buf(), source }.into()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schemas::vocabulary::Vocabulary;

    use super::*;
    use crate::fixtures::read_row;
    use crate::validate::Findings;

    fn document() -> SummaryDocument {
        let measured = Measured { from_ns: 0, elapsed_ns: 3_000_000_000, counted_ns: 3_000_000_000, planned_ns: None };
        let mut summary = Summary::new(schemas::social::Social::KINDS, 100_000_000, measured);
        for n in 0..300 {
            summary.add(&read_row(n, n as i64 * 10_000_000, n as i64 * 10_000_000 + 777_777), &Findings::default());
        }
        summary.note_missing(3, "fragment 3: torn".into());
        SummaryDocument {
            format_version: RUN_FORMAT_VERSION,
            encore_version: "0".into(),
            experiment: 1,
            trace_id: "t".into(),
            fragments: vec![3],
            report: None,
            sealed: Vec::new(),
            summary,
        }
    }

    #[test]
    fn a_summary_comes_back_as_it_was_written() {
        let document = document();
        let text = serde_json::to_string(&document).unwrap();
        let read: SummaryDocument = serde_json::from_str(&text).unwrap();
        assert_eq!(read, document);
        assert_eq!(read.summary.figures(), document.summary.figures());
    }

    proptest! {
        /// A summary comes over the network. It is read or refused, and one that was read can be
        /// merged.
        #[test]
        fn damaged_summaries_never_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), "[0-9\\[\\]{},\":a-f-]"), 1..8),
        ) {
            let whole = document();
            let mut text: Vec<char> = serde_json::to_string(&whole).unwrap().chars().collect();
            for (at, put) in &damage {
                let at = at.index(text.len());
                text.splice(at..=at, put.chars());
            }
            let read = serde_json::from_str::<SummaryDocument>(&text.into_iter().collect::<String>());
            if let Ok(read) = read && read.summary.basis() == whole.summary.basis() {
                let mut merged = whole.summary.clone();
                merged.merge(&read.summary);
                let _ = merged.figures();
                let _ = read.summary.figures();
            }
        }
    }
}
