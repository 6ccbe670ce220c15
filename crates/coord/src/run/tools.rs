//! Calls of this crate to the generator and the analyzer.

use std::path::{Path, PathBuf};

use analyzer::AnalyzeError;
use schemas::manifest::Manifest;
use schemas::run::RunFolder;
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Verdict;
use tracegen::{GenerateError, GenerateOptions};

use crate::failure::Failure;
use crate::terminal::{Interrupt, Live};

/// Generates a trace set, and shows the progress on the terminal.
pub fn generate(spec: &Spec, folder: &Path, interrupt: &Interrupt) -> Result<Manifest, Failure> {
    let live = Live::start();
    let progress = |sessions: u64| live.generating(sessions, spec.sessions);
    let options = GenerateOptions {
        progress: Some(&progress),
        interrupted: Some(interrupt.flag()),
        ..GenerateOptions::default()
    };
    tracegen::generate(spec, folder, &options).map_err(|error| match error {
        GenerateError::Interrupted => Failure::Interrupted { run: None },
        GenerateError::File(_) | GenerateError::Table(_) => Failure::tool(error),
        _ => Failure::usage(error),
    })
}

/// Writes the page of a run and returns its path.
pub fn report(run: &RunFolder) -> Result<PathBuf, AnalyzeError> {
    let mut verdicts = Vec::new();
    for (experiment, _) in run.experiments()? {
        // An experiment that was interrupted before its verdict has nothing to show.
        verdicts.extend(analyzer::stored_verdict(run, experiment)?);
    }
    analyzer::html::write_report(run, &verdicts)
}

/// Seals an experiment and returns its verdict.
pub fn analyze(run: &RunFolder, experiment: u32, sla: &Sla) -> Result<Verdict, Failure> {
    analyzer::analyze(run, experiment, Some(sla))
        .map_err(|error| Failure::tool(format!("experiment {experiment} cannot be analyzed: {error}")))
}
