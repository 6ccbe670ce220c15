//! Encore's replayer against `null:` without its log, to measure the cost of the log. No command
//! offers this: without a log nothing can be analyzed.

use std::path::Path;
use std::process::Command;

use replayer::any_store;
use replayer::experiment::{Control, Experiment};
use replayer::source::Source;
use schemas::plan::{Limit, Plan};
use schemas::run::ReplayReport;

use crate::measure;
use crate::sample::Figures;

/// Starts the replay in a separate process.
pub fn run(trace: &Path, threads: u32) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    let used = measure::run(command.arg("unlogged").arg(trace).arg(threads.to_string()))?;
    let report: ReplayReport = serde_json::from_str(&used.output)?;
    Ok(Figures::of(&used, report.ok as f64, report.ok as f64 / (report.elapsed_ns as f64 / 1e9)))
}

/// The separate process: prints the replayer's report as JSON.
pub fn main(trace: &Path, threads: u32) -> anyhow::Result<()> {
    let source = Source::verified(trace)?;
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: trace.to_path_buf(),
        trace_id: source.manifest.trace_id.clone(),
        store: "null:".into(),
        threads,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: schemas::plan::fragments(&source.manifest, &[], 0),
        unique_actors: true,
        closing_read: None,
        open_loop: None,
        target_per_s: None,
        threads_over_time: Vec::new(),
        transactions: Default::default(),
    };
    let experiment = Experiment::prepare(plan, folder.path().to_path_buf())?.without_log();
    let report = any_store::open("null:")?.run(&experiment, &Control::default(), &mut |_| {})?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
