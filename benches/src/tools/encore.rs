//! Encore's own replayer; it logs every operation.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use schemas::latency::ResponseTimes;
use schemas::oplog::{LogColumns, LogReader, Outcome};
use schemas::run::{ReplayReport, RunFolder};
use schemas::spec::Spec;

use crate::measure;
use crate::sample::Figures;

/// The replayer, and a folder for its output.
pub struct Encore {
    program: PathBuf,
    folder: PathBuf,
}

/// A replay.
pub struct Replay<'a> {
    /// The trace set.
    pub trace: &'a Path,
    /// The store's URL.
    pub store: &'a str,
    /// T.
    pub threads: u32,
    /// The duration; `None` for the whole trace.
    pub seconds: Option<u32>,
    /// Continue the trace where the last run stopped.
    pub continued: bool,
    /// Allow concurrent sessions for the same actor, as other tools do.
    pub shared_actors: bool,
}

impl Encore {
    /// The replayer in the folder of this program.
    pub fn new(folder: &Path) -> anyhow::Result<Encore> {
        let program = std::env::current_exe()?.with_file_name("replayer");
        anyhow::ensure!(
            program.is_file(),
            "{} is missing; start the benches with benches/run, which builds it",
            program.display()
        );
        Ok(Encore { program, folder: folder.to_path_buf() })
    }

    /// Generates a trace set from a specification, with some settings changed.
    pub fn trace(&self, name: &str, spec: &str, settings: &[&str]) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(format!("{name}.trace"));
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        let spec = Spec::parse_with(spec, name, &settings)?;
        tracegen::generate(&spec, &folder, &tracegen::GenerateOptions::default())?;
        Ok(folder)
    }

    /// Loads a trace set's data into a store.
    pub fn load(&self, trace: &Path, store: &str) -> anyhow::Result<()> {
        measure::run(Command::new(&self.program).arg("load").arg("--trace").arg(trace).args(["--store", store]))?;
        Ok(())
    }

    /// Replays, and reads the figures from the log. An operation that fails is an error.
    pub fn replay(&self, replay: &Replay<'_>) -> anyhow::Result<Figures> {
        let (figures, report) = self.replay_with_errors(replay)?;
        let others = figures.errors.unwrap_or_default();
        anyhow::ensure!(
            others == 0.0,
            "{others} operations failed, were skipped or have an unknown outcome: {report:?}"
        );
        Ok(Figures { errors: None, ..figures })
    }

    /// Replays, and reads the figures from the log. Operations that fail, are skipped or have an
    /// unknown outcome are counted.
    pub fn replay_with_errors(&self, replay: &Replay<'_>) -> anyhow::Result<(Figures, ReplayReport)> {
        let run = self.folder.join("run");
        let mut command = Command::new(&self.program);
        command.arg("run").arg("--trace").arg(replay.trace).args(["--store", replay.store, "--json", "-T"]);
        command.arg(replay.threads.to_string()).arg("-o").arg(&run);
        command.args(replay.seconds.map(|s| format!("--duration={s}s")));
        command.args(replay.continued.then_some("--continue"));
        command.args(replay.shared_actors.then_some("--shared-actors"));
        let used = measure::run(&mut command)?;
        let report: ReplayReport = serde_json::from_str(&used.output).context("the replayer's report")?;
        let times = response_times(&run, replay.threads)?;
        // Logs are large, and the next run has the same name.
        std::fs::remove_dir_all(&run)?;
        let us = |ns: f64| Some(ns / 1e3);
        let all = Figures::of(&used, report.ok as f64, report.ok as f64 / (report.elapsed_ns as f64 / 1e9));
        let figures = Figures {
            mean_us: us(times.mean_ns()),
            p50_us: us(times.percentile_ns(50.0) as f64),
            p99_us: us(times.percentile_ns(99.0) as f64),
            errors: Some((report.failed + report.unknown + report.skipped) as f64),
            ..all
        };
        Ok((figures, report))
    }
}

/// Response times of all operations in the only log of a run's only experiment.
fn response_times(run: &Path, threads: u32) -> anyhow::Result<ResponseTimes> {
    let mut times = ResponseTimes::default();
    let log = RunFolder::new(run).experiment(1, threads).log(0);
    for batch in LogReader::open(&log)? {
        let batch = batch?;
        let columns = LogColumns::of(&batch, &log)?;
        let rows = (0..columns.len()).map(|row| columns.row(row)).filter(|row| row.outcome == Outcome::Ok);
        rows.for_each(|row| times.record(row.end_ns - row.start_ns));
    }
    Ok(times)
}
