//! The command line of `tracegen`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::manifest::{Manifest, TraceSetError};
use schemas::run::ReplayReport;
use schemas::spec::Spec;
use schemas::terminal::complain;
use serde_json::json;

use crate::properties::{self, PropertiesError};
use crate::show::{active_threads, is_capped};
use crate::{DigestError, GenerateError, GenerateOptions, Overview, Ran, digest, generate};

/// Wrong usage or input.
const EXIT_INPUT: u8 = 2;
/// The tool failed: a disk, a file system.
const EXIT_TOOL: u8 = 3;

/// Generates trace sets from workload specifications, and looks into them.
#[derive(Parser)]
#[command(
    name = "tracegen",
    version,
    after_help = "\
Examples:
  tracegen gen traces/quickstart.toml                    writes quickstart.trace
  tracegen gen traces/quickstart.toml --sessions 20000000 -o long.trace
  tracegen gen traces/quickstart.toml --set data.members=100000 --fragments 8
  tracegen gen --properties populateDB_10000 --properties SymmetricHighUpdateActions
  tracegen show quickstart.trace
  tracegen verify quickstart.trace
  tracegen digest quickstart.trace --sessions 1000
  tracegen digest quickstart.trace --after runs/mine/experiments/0001-T8/replay.json

Exit codes: 0 success, 2 wrong usage or input, 3 the tool failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Gen(GenArgs),
    /// Prints what a trace set holds: its spec, sizes, mix and fragments
    Show {
        /// The trace set
        dir: PathBuf,
        /// Print one JSON object: the manifest and the sums over it
        #[arg(long)]
        json: bool,
    },
    /// Checks that every file of a trace set is what its manifest says
    Verify {
        /// The trace set
        dir: PathBuf,
    },
    /// Prints the digest of the state that a trace must leave in a store
    Digest {
        /// The trace set
        dir: PathBuf,
        /// After the first N sessions only
        #[arg(long, value_name = "N", conflicts_with = "after")]
        sessions: Option<u64>,
        /// After the sessions that an experiment has run: its replay.json
        #[arg(long, value_name = "FILE")]
        after: Option<PathBuf>,
    },
}

/// Generates a trace set
///
/// The same specification gives the same bytes on any machine and with any -j.
/// A longer trace starts with the shorter one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tracegen gen traces/quickstart.toml
  tracegen gen traces/quickstart.toml --set access.distribution=uniform -o flat.trace
  tracegen gen traces/quickstart.toml --set mix.invite_friend=3 --sessions 500000
  tracegen gen --properties populateDB_10000 --properties SymmetricHighUpdateActions \\
      --set data.resources_per_member=10                 BG's files: data and mix
  tracegen gen --properties workloada --print-spec       what YCSB's file comes to

A folder that holds a trace set of the same workload is replaced once the new
one is complete. A folder that holds anything else is left alone.")]
struct GenArgs {
    /// The specification, a TOML file
    #[arg(value_name = "SPEC.toml", required_unless_present = "properties", conflicts_with = "properties")]
    spec: Option<PathBuf>,
    /// Take the workload from a property file of BG or YCSB instead; give it again for further files
    #[arg(long, value_name = "FILE")]
    properties: Vec<PathBuf>,
    /// Print the resulting specification as TOML, and generate nothing
    #[arg(long)]
    print_spec: bool,
    /// The trace set's folder [default: NAME.trace, with the spec's name]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace a value of the specification, or add one (dotted key, TOML value)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// How many sessions, instead of what the specification says
    #[arg(long, value_name = "N")]
    sessions: Option<u64>,
    /// How many fragments, instead of what the specification says
    #[arg(long, value_name = "N")]
    fragments: Option<u32>,
    /// How many threads; each works on one fragment at a time [default: all processors]
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Print one JSON object: folder, trace_id, workload_id, sessions, operations, bytes, elapsed_s
    #[arg(long)]
    json: bool,
}

/// An error and the exit code that it means.
struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    fn input(error: impl Into<anyhow::Error>) -> Failure {
        Failure { code: EXIT_INPUT, error: error.into() }
    }

    fn tool(error: impl Into<anyhow::Error>) -> Failure {
        Failure { code: EXIT_TOOL, error: error.into() }
    }
}

impl From<TraceSetError> for Failure {
    fn from(error: TraceSetError) -> Failure {
        match error {
            TraceSetError::File(_) => Failure::tool(error),
            _ => Failure::input(error),
        }
    }
}

/// Runs the tool with its arguments (the first is the program's name).
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Nobody is left to tell when even this cannot be printed.
            let _ = e.print();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    let done = match cli.command {
        Command::Gen(args) => run_gen(&args),
        Command::Show { dir, json } => run_show(&dir, json),
        Command::Verify { dir } => run_verify(&dir),
        Command::Digest { dir, sessions, after } => run_digest(&dir, sessions, after.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, error }) => {
            complain("error", with_causes(&error));
            ExitCode::from(code)
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    schemas::terminal::print(text).map_err(Failure::tool)
}

/// The message with its causes, but for those that it names itself.
fn with_causes(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(|cause| cause.to_string()) {
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

/// The specification that the arguments come to, and the name of what it is from.
fn read_spec(args: &GenArgs) -> Result<(Spec, String), Failure> {
    let mut settings = args.settings.clone();
    settings.extend(args.sessions.map(|n| format!("sessions={n}")));
    settings.extend(args.fragments.map(|n| format!("fragments={n}")));
    let Some(path) = &args.spec else {
        let spec = read_properties(&args.properties, &settings).map_err(Failure::input)?;
        let name = spec.name.clone();
        return Ok((spec, name));
    };
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{file}: cannot read the specification"))
        .map_err(Failure::input)?;
    let spec = Spec::parse_with(&text, &file, &settings).map_err(Failure::input)?;
    Ok((spec, file))
}

/// The specification that property files come to; what they leave open or say in
/// vain is told.
fn read_properties(files: &[PathBuf], settings: &[String]) -> Result<Spec, PropertiesError> {
    let converted = properties::read(files)?;
    let spec = converted.spec(settings)?;
    for note in &converted.notes {
        complain("note", note);
    }
    if !converted.unknown.is_empty() {
        // Without values: some are passwords.
        let keys: Vec<String> =
            converted.unknown.iter().map(|place| format!("{} ({}:{})", place.key, place.file, place.line)).collect();
        complain("warning", format_args!("unknown keys are left out: {}", keys.join(", ")));
    }
    Ok(spec)
}

fn run_gen(args: &GenArgs) -> Result<(), Failure> {
    #[expect(clippy::disallowed_methods, reason = "tells the user how long it took; no byte depends on it")]
    let started = Instant::now();
    let (spec, source) = read_spec(args)?;
    if args.print_spec {
        return print(&spec.to_toml().map_err(Failure::input)?);
    }
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.trace", spec.name)));
    let bar = progress_bar(spec.sessions);
    let progress = |done| bar.set_position(done);
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    // A program that hosts the tool may have its own handler, which then stays.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    let options = GenerateOptions { threads: args.threads, progress: Some(&progress), interrupted: Some(&interrupted) };
    let generated = generate(&spec, &folder, &options);
    bar.finish_and_clear();
    let manifest = generated.map_err(|e| match e {
        GenerateError::FewMembers { .. } | GenerateError::UnequalShare { .. } | GenerateError::OnlyNoops { .. } => {
            Failure::input(anyhow::Error::new(e).context(source))
        }
        GenerateError::Spec(_) | GenerateError::Occupied { .. } => Failure::input(e),
        _ => Failure::tool(e),
    })?;

    let elapsed_s = started.elapsed().as_secs_f64();
    let bytes: u64 = manifest.files.iter().map(|f| f.bytes).sum();
    let (sessions, operations) = (manifest.sessions(), manifest.operations());
    if args.json {
        let object = json!({
            "folder": folder,
            "trace_id": manifest.trace_id,
            "workload_id": manifest.workload_id,
            "sessions": sessions,
            "operations": operations,
            "bytes": bytes,
            "elapsed_s": elapsed_s,
        });
        return print(&format!("{object}\n"));
    }
    print(&format!(
        "{}: {operations} operations in {sessions} sessions, {bytes} bytes, trace {}, {elapsed_s:.1} s\n",
        folder.display(),
        manifest.trace_id
    ))?;
    let socialites = &manifest.statistics.socialites;
    if is_capped(socialites) { print(&format!("{}\n", active_threads(socialites))) } else { Ok(()) }
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(sessions: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} sessions, {per_sec}, {eta} left")
        .unwrap_or_else(|e| unreachable!("the template is a constant: {e}"));
    ProgressBar::new(sessions).with_style(style)
}

fn run_show(dir: &Path, json: bool) -> Result<(), Failure> {
    let manifest = Manifest::read(dir)?;
    let overview = Overview::new(&manifest);
    if json {
        let text = serde_json::to_string(&overview).map_err(Failure::tool)?;
        return print(&format!("{text}\n"));
    }
    print(&overview.to_string())
}

fn run_verify(dir: &Path) -> Result<(), Failure> {
    let manifest = Manifest::read(dir)?;
    manifest.verify(dir)?;
    print(&format!("{}: ok, {} files, trace {}\n", dir.display(), manifest.files.len(), manifest.trace_id))
}

fn run_digest(dir: &Path, sessions: Option<u64>, after: Option<&Path>) -> Result<(), Failure> {
    let report: Option<ReplayReport> =
        after.map(schemas::files::read_json).transpose().map_err(|e| Failure::input(anyhow::anyhow!("--after {e}")))?;
    let ran = match (&report, sessions) {
        (Some(report), _) => Ran::Positions(&report.positions),
        (None, Some(sessions)) => Ran::First(sessions),
        (None, None) => Ran::All,
    };
    let found = digest(dir, ran).map_err(|e| match e {
        DigestError::TraceSet(e) => Failure::from(e),
        e => Failure::input(e),
    })?;
    print(&format!("{found}\n"))
}
