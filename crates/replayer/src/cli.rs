//! The command line of `replayer`.

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::oplog::LogCompression;
use schemas::plan::{Limit, Warmup};
use schemas::run::EndReason;
use schemas::sla::{nanoseconds, short_time};
use schemas::terminal::{complain, hangup_is_ignored};

use crate::experiment::{Control, Experiment, ExperimentError, Part, Snapshot};
use crate::recording;
use crate::service::{self, Access, Misuse, Shares, Token};
use crate::source::Source;
use crate::stores::{self, AnyStore, Blame, StoreError};

const EXAMPLES: &str = "Examples:
  replayer load --trace quickstart.trace --store sqlite:store.db
  replayer run --trace quickstart.trace --store sqlite:store.db -T 8 --duration 10s -o runs/first
  replayer run --trace quickstart.trace --store sqlite:store.db -T 8 --duration 10s \\
      --continue --warmup 500000ops -o runs/first
  replayer digest --trace quickstart.trace --store sqlite:store.db

Stores:
  sqlite:PATH   one file; journal=wal|delete, synchronous=full|normal|off, busy_ms=N
  postgres://USER:PASSWORD@HOST:PORT/DATABASE
                synchronous_commit=on|off|…, isolation=…, reset=template|reload
  mysql://USER:PASSWORD@HOST:PORT/DATABASE
                MariaDB or MySQL; isolation=…, reset=copy|reload
  mongodb://HOST:PORT/DATABASE
                comments=embedded|collection, transactions=off|on, reset=copy|reload,
                w=…, journal=…, readConcernLevel=…, readPreference=…
  casql+…       one of the first three with memcached in front: memcached=HOST:PORT,
                consistency=invalidate|ttl|lease, ttl_s=N, compress=off|on
  All relational ones choose their tables by friendship=two-row|one-row,
  images=inline|table|none, counts=computed|stored, indexes=on|off; all on servers
  take timeout_ms=N and connections=N. A load overwrites what Encore has loaded there,
  makes a database that is missing, and empties the memcached of casql+.
  memory:       this process, for reference; stale=P, lost=P, error=P, unknown=P,
                latency_us=N, stall_ms=N, seed=N make it lie in a known way
  null:         answers at once; measures the replayer

Two experiments in a row: the second either loads the store again (--load) or takes
the trace up where the first one stopped (--continue).

Exit codes: 0 success, 2 wrong usage or input, 3 the replayer or the store failed.";

#[derive(Parser)]
#[command(name = "replayer", version, about = "Replays a trace set against a data store and logs every operation", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put the trace set's data set into the store, in place of what Encore loaded before
    Load(Target),
    /// Run one experiment and write its operation log into a run folder
    Run(RunArgs),
    /// Print the digest of the state that the store holds
    ///
    /// `tracegen digest` prints the one that the trace must leave.
    Digest(Target),
    /// Wait for a coordinator
    Serve(ServeArgs),
}

#[derive(Args)]
struct Target {
    /// The trace set's folder
    #[arg(long, value_name = "DIR")]
    trace: PathBuf,
    /// The store's URL
    #[arg(long, value_name = "URL")]
    store: String,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    target: Target,
    /// Streams of sessions at the same time, each with its own connection
    #[arg(long, short = 'T', value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    threads: u32,
    /// End after this time, e.g. 30s (without --duration and --sessions: the whole trace)
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, conflicts_with = "sessions")]
    duration: Option<u64>,
    /// End after this many sessions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sessions: Option<u64>,
    /// Replay so much before the measured part, which then begins for all threads at once
    ///
    /// A number of sessions (20000), a share of the trace set's sessions (10%), or a number of
    /// operations (500000ops) and the rest of the session that has the last of them. The warm-up is logged like all else, but no part of the figures, and
    /// --duration and --sessions count from its end.
    #[arg(long, value_name = "N|N%|Nops")]
    warmup: Option<Warmup>,
    /// Start where the store says that it stands, in place of the beginning of the trace
    ///
    /// The store must have been left there by an experiment with the same trace set, or a shorter
    /// or longer one of the same workload, all writes of which succeeded.
    #[arg(long = "continue", conflicts_with = "load")]
    continued: bool,
    /// The run folder; an existing one gets a further experiment
    #[arg(long, short = 'o', value_name = "RUN")]
    output: PathBuf,
    /// Operating-system threads that drive the threads; useful up to the number of fragments
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,
    /// Let several threads act for one socialite at the same time
    #[arg(long)]
    shared_socialites: bool,
    /// Load the data set first (a store in this process is always loaded)
    #[arg(long)]
    load: bool,
    /// Print the digest of the store's state afterwards
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

#[derive(Args)]
#[command(after_help = "\
Examples:
  replayer serve                                                    this machine alone
  replayer serve --listen 127.0.0.2:7070 --work /data/encore
  replayer serve --listen 10.0.0.5:7070 --certs certs               other machines, by certificate
  replayer serve --listen 10.0.0.5:7070 --certs certs --token-file token
  replayer serve --share /mnt/encore                                traces and runs on shared storage

A coordinator takes it with `coord rate --replayer HOST:PORT`. Trace sets that it sends
are kept, and are not sent again; logs are kept until you remove them. Other addresses
than loopback need certificates, which `coord certs` makes.")]
struct ServeArgs {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Folder for trace sets that are sent and for logs; nothing that a coordinator asks for leaves it
    #[arg(long, value_name = "DIR", default_value = "replayer-work")]
    work: PathBuf,
    /// A folder that the coordinator sees under the same path: trace sets and runs in it are used where they are; may be given several times
    #[arg(long, value_name = "DIR")]
    share: Vec<PathBuf>,
    /// Refuse trace sets of more bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40)]
    trace_bytes_max: u64,
    /// Folder with ca.pem, replayer.pem and replayer.key, as `coord certs` makes it: TLS, for clients with a certificate of that authority
    #[arg(long, value_name = "DIR")]
    certs: Option<PathBuf>,
    /// File with a secret of at least 16 characters that every call has to name; with --certs, clients need no certificate then
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the secret from the first line of standard input, and end when that ends, as it does when the parent process dies
    #[arg(long, hide = true, conflicts_with = "token_file")]
    exit_with_stdin: bool,
}

/// Runs the command line; the exit codes are those of the help text.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match execute(cli.command) {
        Ok(code) => code,
        Err(error) => {
            // Every error says all in one message; its sources would say it again.
            complain("error", &error);
            ExitCode::from(if is_usage(&error) { 2 } else { 3 })
        }
    }
}

fn is_usage(error: &anyhow::Error) -> bool {
    if error.is::<Misuse>() {
        return true;
    }
    error.downcast_ref::<ExperimentError>().is_some_and(ExperimentError::is_usage)
        || error.downcast_ref::<StoreError>().is_some_and(|e| e.blame != Blame::Store)
        || error.downcast_ref::<schemas::manifest::TraceSetError>().is_some()
        || error.downcast_ref::<recording::RecordingError>().is_some_and(recording::RecordingError::is_usage)
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Load(target) => load(&target),
        Command::Run(args) => run(&args),
        Command::Digest(target) => digest(&target),
        Command::Serve(args) => serve(&args),
    }
}

fn load(target: &Target) -> anyhow::Result<ExitCode> {
    let source = Source::verified(&target.trace)?;
    let store = stores::open(&target.store)?;
    load_into(store.as_ref(), &source)?;
    let rows = source.rows_total();
    if target.json {
        print(&serde_json::json!({ "workload_id": source.manifest.workload_id, "rows": rows }))?;
    } else {
        print(&format_args!("loaded {rows} rows of workload {}", source.manifest.workload_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn load_into(store: &dyn AnyStore, source: &Source) -> Result<(), StoreError> {
    let bar = progress_bar("loading [{bar:30}] {pos} of {len} rows");
    bar.set_length(source.rows_total());
    let result = store.load(source, &|rows, _| bar.set_position(rows));
    bar.finish_and_clear();
    result
}

/// On a terminal only: silent in a pipe.
fn progress_bar(template: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}

fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let source = Source::verified(&args.target.trace)?;
    let store = stores::open(&args.target.store)?;
    let limit = match (args.duration, args.sessions) {
        (Some(ns), _) => Limit::DurationS(ns as f64 / 1e9),
        (None, Some(sessions)) => Limit::Sessions(sessions),
        (None, None) => Limit::WholeTrace,
    };
    let positions = match args.continued {
        true if store.in_process() => {
            anyhow::bail!(ExperimentError::Plan(
                "--continue: this store lives and dies with this process, so there is nothing to continue".into()
            ))
        }
        true => store.positions(&source)?,
        false => Vec::new(),
    };
    if args.load || store.in_process() {
        load_into(store.as_ref(), &source)?;
    }
    let warmup_sessions = match args.warmup {
        Some(warmup) => warmup.sessions(&source.folder, &source.manifest)?,
        None => 0,
    };
    let request = recording::Request {
        source: &source,
        store_url: &args.target.store,
        threads: args.threads,
        workers: args.workers,
        limit,
        positions: &positions,
        warmup_sessions,
        unique_socialites: !args.shared_socialites,
    };
    let mut recording = recording::Recording::new(&args.output, &request)?;
    let experiment = Experiment::prepare(recording.plan().clone(), recording.experiment_folder())?
        .with_log_compression(args.log_compression.into());
    // Nothing is written before the store has been found to be the right one.
    store.check(&experiment)?;
    recording.begin()?;
    let control = Control::default();
    end_on_ctrl_c(&control);
    let bar = progress_bar("{msg}");
    let result = store.run(&experiment, &control, &mut |snapshot| bar.set_message(line(&snapshot)));
    bar.finish_and_clear();
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            recording.fail(&error.to_string())?;
            return Err(error.into());
        }
    };
    recording.finish(&report)?;
    let state = if args.digest { Some(store.digest(&source)?.to_string()) } else { None };
    if args.target.json {
        let mut value = serde_json::to_value(&report)?;
        value["experiment"] = recording.plan().experiment.into();
        value["digest"] = state.into();
        print(&value)?;
    } else {
        let seconds = report.counted_ns as f64 / 1e9;
        if experiment.has_warmup() {
            let seconds = report.warmup_ns as f64 / 1e9;
            print(&format_args!("warm-up: {} operations in {seconds:.2} s", report.warmup_operations))?;
        }
        print(&format_args!(
            "experiment {}: {} sessions in {seconds:.2} s; operations: {} ok ({:.1}/s), {} failed, {} unknown, {} skipped",
            recording.plan().experiment,
            report.sessions,
            report.ok,
            report.throughput_per_s(),
            report.failed,
            report.unknown,
            report.skipped
        ))?;
        if report.drained_operations > 0 {
            print(&format_args!(
                "{} operations started after that, to end the sessions under way; no figure counts them",
                report.drained_operations
            ))?;
        }
        print(&format_args!("logged in {}", recording.experiment_folder().display()))?;
        if let Some(state) = state {
            print(&format_args!("digest {state}"))?;
        }
    }
    match report.end {
        EndReason::Limit => Ok(ExitCode::SUCCESS),
        EndReason::Interrupted => {
            anyhow::bail!("interrupted; what ran until then is logged in {}", recording.experiment_folder().display())
        }
        EndReason::TraceExhausted { sessions_needed } => Err(ExperimentError::Plan(format!(
            "the trace {} ran out after {} sessions{}; about {sessions_needed} would have been enough (tracegen gen --sessions {sessions_needed})",
            args.target.trace.display(),
            report.sessions,
            if experiment.has_warmup() { " of the measured part" } else { "" }
        ))
        .into()),
    }
}

/// The first Ctrl-C ends the experiment and waits for what is in flight, the second gives
/// that up, the third ends the process at once.
fn end_on_ctrl_c(control: &Control) {
    let (stop, abandon) = (control.stop.clone(), control.abandon.clone());
    let interrupted = move || {
        if !stop.swap(true, Ordering::Relaxed) {
            eprintln!("\ninterrupted: waiting for the operations in flight; press Ctrl-C again to give them up");
        } else if !abandon.swap(true, Ordering::Relaxed) {
            eprintln!("\ninterrupted again: operations in flight end with an unknown fate; the log is being closed");
        } else {
            std::process::exit(130);
        }
    };
    let outlives_terminal = hangup_is_ignored();
    // Where a handler exists already (another tool hosts this one), it keeps its own.
    if ctrlc::set_handler(interrupted).is_ok() && outlives_terminal {
        // SAFETY: the call takes two numbers, and another thread may set a handler at any time.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}

/// Prints a line.
fn print(line: &dyn std::fmt::Display) -> anyhow::Result<()> {
    Ok(schemas::terminal::print(&format!("{line}\n"))?)
}

/// The progress line of a running experiment.
fn line(snapshot: &Snapshot) -> String {
    let seconds = snapshot.elapsed_ns.max(0) as f64 / 1e9;
    let [ok, failed, unknown, skipped] = snapshot.outcomes;
    let part = match snapshot.part {
        Part::WarmUp => "warm-up ",
        Part::Measured => "",
    };
    format!(
        "{part}{seconds:6.1} s  {:8.0} ops/s  p95 {:>9}  p99 {:>9}  errors {}",
        ok as f64 / seconds.max(1e-9),
        short_time(snapshot.response_times.percentile_ns(95.0)),
        short_time(snapshot.response_times.percentile_ns(99.0)),
        failed + unknown + skipped
    )
}

fn digest(target: &Target) -> anyhow::Result<ExitCode> {
    let source = Source::verified(&target.trace)?;
    let digest = stores::open(&target.store)?.digest(&source)?;
    if target.json {
        print(&serde_json::json!({ "digest": digest.to_string(), "facts": digest.facts() }))?;
    } else {
        print(&digest)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = Arc::new(tokio::sync::Notify::new());
    let mut token = args.token_file.as_deref().map(Token::read).transpose()?;
    if args.exit_with_stdin {
        // Other users of this machine reach the port too, but not this pipe.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        token = Some(Token::new(&line)?);
        let ended = ended.clone();
        std::thread::spawn(move || {
            let mut nothing = [0; 64];
            while matches!(std::io::stdin().read(&mut nothing), Ok(n) if n > 0) {}
            ended.notify_one();
        });
    }
    let settings = service::Settings {
        address: args.listen,
        work: std::path::absolute(&args.work)?,
        shares: Shares::new(&args.share)?,
        trace_bytes_max: args.trace_bytes_max,
        access: Access { certificates: args.certs.clone(), token },
    };
    runtime.block_on(service::serve(settings, |address| println!("listening on {address}"), async move {
        tokio::select! {
            () = ended.notified() => {}
            () = told_to_end() => {}
        }
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// Ctrl-C, a request to terminate, or the end of the terminal where it is to end with that.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !hangup_is_ignored() {
        kinds.push(SignalKind::hangup());
    }
    // Without a handler a signal ends the process as it always does.
    let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
    let told: Vec<_> = signals.map(|mut signal| Box::pin(async move { signal.recv().await })).collect();
    if told.is_empty() {
        std::future::pending::<()>().await;
    }
    futures::future::select_all(told).await;
}
