//! Prints the result of an experiment.

use schemas::run::{Pacing, ReplayReport};
use schemas::sla::short_time;
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
    if report.of_transactions > 0 {
        let how = report.store_settings.get("transactions").map_or("", String::as_str);
        print(&format_args!(
            "transactions: {how}; {} rolled back, {} of begin, commit and abort",
            plural(report.aborted, "operation"),
            plural(report.of_transactions, "row")
        ))?;
    }
    if report.drained_operations > 0 {
        print(&format_args!(
            "{} ended the sessions under way after the planned time; no result includes them",
            plural(report.drained_operations, "more operation")
        ))?;
    }
    if let Some(pacing) = &report.pacing {
        print(&on_time(pacing))?;
    }
    print(&format_args!("logged in {}", recording.experiment_folder().display()))?;
    if let Some(digest) = digest {
        print(&format_args!("digest {digest}"))?;
    }
    Ok(())
}

/// How sessions kept their due times, in a sentence.
fn on_time(pacing: &Pacing) -> String {
    format!(
        "due: {}; {} queued (p99 {}, longest {}), {} skipped, {} not started; the replayer was late by {} (median), \
         {} (p99), {} (longest)",
        plural(pacing.sessions_due, "session"),
        thousands(pacing.sessions_queued),
        short_time(pacing.queued_ns_p99),
        short_time(pacing.queued_ns_max),
        thousands(pacing.sessions_skipped),
        thousands(pacing.sessions_unstarted),
        short_time(pacing.late_ns_p50),
        short_time(pacing.late_ns_p99),
        short_time(pacing.late_ns_max),
    )
}
