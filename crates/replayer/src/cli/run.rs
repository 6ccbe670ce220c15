//! The command `run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use schemas::oplog::LogCompression;
use schemas::plan::{Limit, Warmup};
use schemas::program;
use schemas::run::{EndReason, FragmentPosition, ReplayReport};
use schemas::sla::{nanoseconds, short_time};
use schemas::terminal::complain;
use schemas::verdict::all_hold;

use super::interrupt::end_on_ctrl_c;
use super::load::load_into;
use super::output::progress_bar;
use super::pace::PaceArgs;
use super::report::{print_json, print_text};
use super::target::{Target, check_local};
use super::transactions::TransactionArgs;
use crate::any_store::{self, AnyStore, has_closing_read};
use crate::experiment::{Control, Experiment, ExperimentError, Part, Snapshot, extension};
use crate::recording::{Recording, Request};
use crate::source::Source;

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    target: Target,
    /// Threads (T): concurrent streams of sessions, each with its own connection
    #[arg(long, short = 'T', value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    threads: u32,
    /// End after this time, e.g. 30s; default: the whole trace, unless --sessions is given
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, conflicts_with = "sessions")]
    duration: Option<u64>,
    /// End after this many sessions; default: the whole trace, unless --duration is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sessions: Option<u64>,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    transactions: TransactionArgs,
    /// Warm up with this many sessions or operations before the measured part; default: the warm-up
    /// that an imported trace set has, else none
    ///
    /// A number of sessions (20000), a share of the trace set's sessions (10%), or a number of
    /// operations (500000ops), which is rounded up to the end of a session. The measured part
    /// begins for all threads at once when the warm-up has ended. The warm-up is logged, but is not
    /// part of the figures. --duration and --sessions count from its end.
    #[arg(long, value_name = "N|N%|Nops")]
    warmup: Option<Warmup>,
    /// Continue where the last experiment on this store stopped; default: start at the beginning of
    /// the trace
    ///
    /// That experiment must have replayed the same trace set, or a shorter or longer one of the
    /// same workload, and all its writes must have succeeded.
    #[arg(long = "continue", conflicts_with = "load")]
    continued: bool,
    /// Run on what is in the store: records that YCSB or go-ycsb has loaded, or a copy of the database that an imported
    /// trace set needs; Encore never loads over it
    ///
    /// The first experiment checks their number and reads some of them. Every later one continues
    /// the trace where the last one stopped.
    #[arg(long, conflicts_with_all = ["load", "continued"])]
    keep_data: bool,
    /// The run folder; an existing run gets one more experiment
    #[arg(long, short = 'o', value_name = "RUN")]
    output: PathBuf,
    /// Operating-system threads that run the T threads; at most one for each fragment is used
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,
    /// Allow concurrent sessions for the same actor
    #[arg(long)]
    shared_actors: bool,
    /// Do not read all items after the experiment, and check no conditions of the data; the default reads
    /// them for workloads whose final state depends on races (key-value workloads), and checks the conditions
    /// that a trace set of SQL statements has
    #[arg(long)]
    no_closing_read: bool,
    /// Load the data set first (memory: and null: are always loaded)
    #[arg(long)]
    load: bool,
    /// Print the digest of the store's state after the experiment
    #[arg(long)]
    digest: bool,
    /// Compress the operation log, for long experiments on a small disk
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Compression::None)]
    log_compression: Compression,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

impl From<Compression> for LogCompression {
    fn from(compression: Compression) -> LogCompression {
        match compression {
            Compression::None => LogCompression::None,
            Compression::Lz4 => LogCompression::Lz4,
            Compression::Zstd => LogCompression::Zstd,
        }
    }
}

/// Runs one experiment, and records it in a run folder.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let instead = "write to a folder, and copy it with a tool of the store, or use `encore run --publish URL`";
    check_local("-o", &args.output, instead)?;
    let source = args.target.source()?;
    let store = any_store::open(&args.target.store)?;
    let mut recording = plan(args, &source, store.as_ref())?;
    let experiment = Experiment::prepare(recording.plan().clone(), recording.experiment_folder())?
        .with_log_compression(args.log_compression.into());
    experiment.check_sessions()?;
    if args.load || store.in_process() {
        let conditions = load_into(store.as_ref(), &source)?;
        if conditions > 0 {
            complain("note", format!("{} after the load", all_hold(conditions)));
        }
    }
    // Nothing is written before the store's state has been checked.
    store.check(&experiment)?;
    recording.begin()?;
    if let Some(unchecked) = source.manifest.spec.unchecked() {
        complain("note", unchecked);
    }
    let control = Control::default();
    end_on_ctrl_c(&control);
    let report = replay(store.as_ref(), &experiment, &control, &mut recording)?;
    close(store.as_ref(), &experiment, &control, &report);
    recording.finish(&report)?;
    let digest = if args.digest { Some(store.digest(&source)?.to_string()) } else { None };
    match args.target.json {
        true => print_json(&recording, &report, digest)?,
        false => print_text(&recording, &experiment, &report, digest)?,
    }
    exit_code(&args.target.trace, &recording, &experiment, &report)
}

/// Plans the experiment as the next one of the run folder.
fn plan(args: &RunArgs, source: &Source, store: &dyn AnyStore) -> anyhow::Result<Recording> {
    let limit = match (args.duration, args.sessions) {
        (Some(ns), _) => Limit::DurationS(ns as f64 / 1e9),
        (None, Some(sessions)) => Limit::Sessions(sessions),
        (None, None) => Limit::WholeTrace,
    };
    let positions = positions(args, source, store)?;
    let warmup_sessions = match args.warmup {
        Some(warmup) => warmup.sessions(&source.folder, &source.manifest)?,
        // The warm-up of the trace set is behind an experiment that continues.
        None if args.continued => 0,
        None => source.warmup_sessions(),
    };
    let request = Request {
        source,
        store_url: &args.target.store,
        threads: args.threads,
        workers: args.workers,
        limit,
        positions: &positions,
        warmup_sessions,
        pace: args.pace.request(),
        transactions: args.transactions.request(),
        unique_actors: !args.shared_actors,
        closing_read: !args.no_closing_read && has_closing_read(store, &source.manifest.spec)?,
    };
    Ok(Recording::new(&args.output, &request)?)
}

/// Where each fragment starts; none for the beginning of the trace.
fn positions(args: &RunArgs, source: &Source, store: &dyn AnyStore) -> anyhow::Result<Vec<FragmentPosition>> {
    if args.keep_data {
        return Ok(store.adopt(source)?);
    }
    match args.continued {
        true if store.in_process() => {
            anyhow::bail!(ExperimentError::Plan(
                "--continue: this store exists only while the process runs; remove --continue".into()
            ))
        }
        true => Ok(store.positions(source)?),
        false => Ok(Vec::new()),
    }
}

/// Replays the experiment with a progress line. If it fails, the run folder says why.
fn replay(
    store: &dyn AnyStore,
    experiment: &Experiment,
    control: &Control,
    recording: &mut Recording,
) -> anyhow::Result<ReplayReport> {
    let bar = progress_bar("{msg}");
    let result = store.run(experiment, control, &mut |snapshot| bar.set_message(line(&snapshot)));
    bar.finish_and_clear();
    match result {
        Ok(report) => Ok(report),
        Err(error) => {
            recording.fail(&error.to_string())?;
            Err(error.into())
        }
    }
}

/// Reads all items after the experiment, with a progress line. The experiment counts even if they
/// cannot be read.
fn close(store: &dyn AnyStore, experiment: &Experiment, control: &Control, report: &ReplayReport) {
    let bar = progress_bar("closing read: {pos} of {len}");
    let read = store.closing_read(experiment, &report.positions, &control.stop, &mut |items, total| {
        bar.set_length(total.max(items));
        bar.set_position(items);
    });
    bar.finish_and_clear();
    if let Err(error) = read {
        complain("warning", format_args!("no closing read: {error}"));
    }
}

/// Success if the experiment reached its limit. Else says why it ended before.
fn exit_code(
    trace: &Path,
    recording: &Recording,
    experiment: &Experiment,
    report: &ReplayReport,
) -> anyhow::Result<ExitCode> {
    match report.end {
        EndReason::Limit => Ok(ExitCode::SUCCESS),
        EndReason::Interrupted => {
            let folder = recording.experiment_folder();
            complain("error", format_args!("interrupted; the log until then is in {}", folder.display()));
            Ok(ExitCode::from(program::INTERRUPTED))
        }
        EndReason::Overloaded => {
            let message = "stopped early: a session was due and all threads were busy (--overload stop); use more \
                           threads or a lower rate";
            complain(
                "error",
                format_args!("{message}; the log until then is in {}", recording.experiment_folder().display()),
            );
            Ok(ExitCode::from(3))
        }
        EndReason::TraceExhausted { sessions_needed } => Err(ExperimentError::Plan(format!(
            "the trace {} ran out after {} sessions{}; extend it with {}",
            trace.display(),
            report.sessions,
            if experiment.has_warmup() { " of the measured part" } else { "" },
            extension(trace, Some(sessions_needed))
        ))
        .into()),
    }
}

/// The progress line of a running experiment.
fn line(snapshot: &Snapshot) -> String {
    let seconds = snapshot.elapsed_ns.max(0) as f64 / 1e9;
    let [ok, failed, unknown, skipped, _] = snapshot.outcomes;
    let part = match snapshot.part {
        Part::WarmUp => "warm-up ",
        Part::Measured => "",
    };
    let service = snapshot
        .service_times
        .as_ref()
        .map_or(String::new(), |times| format!("  service p99 {:>9}", short_time(times.percentile_ns(99.0))));
    format!(
        "{part}{seconds:6.1} s  {:8.0} ops/s  p95 {:>9}  p99 {:>9}{service}  errors {}",
        ok as f64 / seconds.max(1e-9),
        short_time(snapshot.response_times.percentile_ns(95.0)),
        short_time(snapshot.response_times.percentile_ns(99.0)),
        failed + unknown + skipped
    )
}

#[cfg(test)]
mod tests {
    use schemas::latency::ResponseTimes;

    use super::*;

    #[test]
    fn the_progress_line_of_an_open_loop_has_service_times_too() {
        let times = |ns: i64| {
            let mut times = ResponseTimes::default();
            times.record(ns);
            times
        };
        let snapshot = |service: Option<i64>| Snapshot {
            elapsed_ns: 2_000_000_000,
            outcomes: [1_000, 1, 2, 3, 4],
            response_times: times(1_000_000_000),
            service_times: service.map(times),
            ..Snapshot::of(Part::Measured, service.is_some())
        };
        let shown = line(&snapshot(Some(1_000_000)));
        let (before, service) = shown.split_once("  service p99 ").expect("service times");
        assert!(before.starts_with("   2.0 s") && before.contains("500 ops/s"), "{shown}");
        assert!(service.contains("ms") && service.ends_with("errors 6"), "{shown}");
        let closed = line(&Snapshot { part: Part::WarmUp, ..snapshot(None) });
        assert!(closed.starts_with("warm-up ") && !closed.contains("service"), "{closed}");
    }
}
