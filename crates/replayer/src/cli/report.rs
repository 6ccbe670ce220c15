//! Prints the result of an experiment.

use schemas::run::ReplayReport;
use schemas::words::{plural, rate, thousands};

use super::output::print;
use crate::experiment::Experiment;
use crate::recording::Recording;

/// Prints it as one JSON object.
pub fn print_json(recording: &Recording, report: &ReplayReport, digest: Option<String>) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(report)?;
    value["experiment"] = recording.plan().experiment.into();
    value["digest"] = digest.into();
    print(&value)
}

/// Prints it as lines of text.
pub fn print_text(
    recording: &Recording,
    experiment: &Experiment,
    report: &ReplayReport,
    digest: Option<String>,
) -> anyhow::Result<()> {
    let seconds = report.counted_ns as f64 / 1e9;
    if experiment.has_warmup() {
        let seconds = report.warmup_ns as f64 / 1e9;
        print(&format_args!("warm-up: {} in {seconds:.2} s", plural(report.warmup_operations, "operation")))?;
    }
    print(&format_args!(
        "experiment {}: {} in {seconds:.2} s; operations: {} ok ({}/s), {} failed, {} unknown, {} skipped",
        recording.plan().experiment,
        plural(report.sessions, "session"),
        thousands(report.ok),
        rate(report.throughput_per_s()),
        thousands(report.failed),
        thousands(report.unknown),
        thousands(report.skipped)
    ))?;
    if report.drained_operations > 0 {
        print(&format_args!(
            "{} ended the sessions under way after the planned time; no result includes them",
            plural(report.drained_operations, "more operation")
        ))?;
    }
    print(&format_args!("logged in {}", recording.experiment_folder().display()))?;
    if let Some(digest) = digest {
        print(&format_args!("digest {digest}"))?;
    }
    Ok(())
}
