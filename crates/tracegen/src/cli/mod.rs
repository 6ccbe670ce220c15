//! The command line of `tracegen`.

mod import;
mod import_logs;
mod import_table;
mod parts;
mod physical;
mod remote;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::manifest::{Manifest, TraceSetError};
use schemas::program;
use schemas::run::ReplayReport;
use schemas::spec::Spec;
use schemas::terminal::complain;
use schemas::words::plural;
use serde_json::json;

use self::remote::{Source, Target, is_remote};
use crate::families;
use crate::properties::{self, PropertiesError};
use crate::{DigestError, GenerateError, GenerateOptions, Overview, Ran, digest, generate, generate_parts};

/// Wrong usage or input.
const EXIT_INPUT: u8 = 2;
/// The tool failed, for example at a disk or file system.
const EXIT_TOOL: u8 = 3;

/// Generates trace sets from workload specifications, and inspects them.
#[derive(Parser)]
#[command(
    name = "tracegen",
    version,
    after_help = "\
Examples:
  encore trace gen traces/quickstart.toml                    writes quickstart.trace
  encore trace gen traces/quickstart.toml --sessions 20000000 -o long.trace
  encore trace gen traces/quickstart.toml --set data.members=100000 --fragments 8
  encore trace gen quickstart.trace --sessions 5000000 -o quickstart.trace     make it longer
  encore trace gen traces/quickstart.toml --only-fragments 0..2   a part, for several machines
  encore trace assemble quickstart.trace                     the trace set of all parts
  encore trace gen --properties populateDB_10000 --properties SymmetricHighUpdateActions
  encore trace import benchfoundry tpcc/                     writes tpcc.trace
  encore trace physical tpcc.trace --for mongodb             collections for its tables
  encore trace gen traces/quickstart.toml -o s3://bucket/quickstart.trace      to object storage
  encore trace show quickstart.trace
  encore trace verify quickstart.trace
  encore trace digest quickstart.trace --sessions 1000
  encore trace digest quickstart.trace --after runs/mine/experiments/0001-T8/replay.json

Exit codes: 0 success, 2 wrong usage or input, 3 the tool failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Gen(GenArgs),
    Assemble(parts::AssembleArgs),
    Import(import::ImportArgs),
    Physical(physical::PhysicalArgs),
    /// Prints what a trace set holds: its spec, sizes, mix and fragments
    Show {
        /// The trace set: a folder, or a URL s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
        dir: PathBuf,
        /// Print one JSON object: the manifest, and totals over its fragments and files
        #[arg(long)]
        json: bool,
    },
    /// Checks every file of a trace set against its manifest
    Verify {
        /// The trace set: a folder, or a URL s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
        dir: PathBuf,
    },
    /// Prints the digest of the state that a trace must leave in a store
    Digest {
        /// The trace set: a folder, or a URL s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
        dir: PathBuf,
        /// Digest of the state after the first N sessions [default: all sessions]
        #[arg(long, value_name = "N", conflicts_with = "after")]
        sessions: Option<u64>,
        /// Digest of the state that an experiment left: the path of its replay.json
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
  encore trace gen traces/quickstart.toml
  encore trace gen traces/quickstart.toml --set access.distribution=uniform -o flat.trace
  encore trace gen traces/quickstart.toml --set mix.invite_friend=3 --sessions 500000
  encore trace gen traces/quickstart.toml -o s3://bucket/quickstart.trace
  encore trace gen --properties populateDB_10000 --properties SymmetricHighUpdateActions \\
      --set data.resources_per_member=10                 convert BG's files (data, mix)
  encore trace gen --properties workloada --print-spec       print YCSB's file as a specification
  encore trace gen big.toml -o /mnt/big.trace --only-fragments 8..16     on one of several machines

The new trace set replaces a trace set of the same workload in the output folder,
unless that one is longer. gen refuses to overwrite anything else.")]
struct GenArgs {
    /// The specification: a TOML file, or a trace set that was generated from one
    #[arg(value_name = "SPEC.toml|TRACE", required_unless_present = "properties", conflicts_with = "properties")]
    spec: Option<PathBuf>,
    /// Read the workload from a property file of BG or YCSB instead; repeat the flag for more files
    #[arg(long, value_name = "FILE")]
    properties: Vec<PathBuf>,
    /// Print the resulting specification as TOML, and generate nothing
    #[arg(long)]
    print_spec: bool,
    /// The folder to write, or s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; credentials come from the environment
    /// [default: NAME.trace, where NAME is the specification's name]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Set a value of the specification: a dotted key and a TOML value; repeat the flag for more values
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Number of sessions [default: the specification's]
    #[arg(long, value_name = "N")]
    sessions: Option<u64>,
    /// Number of fragments [default: the specification's]
    #[arg(long, value_name = "N")]
    fragments: Option<u32>,
    /// Generate only the fragments A to B-1, as a part of the trace set; `encore trace assemble` makes the trace
    /// set when all parts are there
    #[arg(long, value_name = "A..B", value_parser = parts::range)]
    only_fragments: Option<Range<u32>>,
    /// Number of threads; each works on one fragment at a time [default: one per processor]
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Print one JSON object: folder, trace_id, workload_id, sessions, operations, bytes, elapsed_s; of a part,
    /// fragments in place of trace_id
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

/// The command line of this tool, as a part of the whole program's.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the tool with its arguments (the first is the program's name).
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match program::parse("encore trace", args) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let done = match cli.command {
        Command::Gen(args) => run_gen(&args),
        Command::Assemble(args) => parts::assemble(&args),
        Command::Import(args) => import::run(&args),
        Command::Physical(args) => physical::run(&args),
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

/// The message with its causes, except causes whose text the message already contains.
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

/// The specification that the arguments ask for, and the name of its source.
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
    if path.is_dir() || is_remote(path) {
        let spec = Source::manifest(path).map_err(|failure| Failure { code: EXIT_INPUT, ..failure })?.spec;
        let text = spec.to_toml().map_err(Failure::input)?;
        return Ok((Spec::parse_with(&text, &file, &settings).map_err(Failure::input)?, file));
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{file}: cannot read the specification"))
        .map_err(Failure::input)?;
    let spec = Spec::parse_with(&text, &file, &settings).map_err(Failure::input)?;
    Ok((spec, file))
}

/// The specification that property files ask for. It prints a note on what the files leave open or
/// say without effect.
fn read_properties(files: &[PathBuf], settings: &[String]) -> Result<Spec, PropertiesError> {
    let converted = properties::read(files)?;
    let spec = converted.spec(settings)?;
    for note in &converted.notes {
        complain("note", note);
    }
    if !converted.unknown.is_empty() {
        // The warning shows no values: some are passwords.
        let keys: Vec<String> = converted
            .unknown
            .iter()
            .map(|property| format!("{} ({}:{})", property.key, property.file, property.line))
            .collect();
        complain("warning", format_args!("ignored unknown keys: {}", keys.join(", ")));
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
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    // A program that hosts the tool may have set its own handler, which then stays.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    let target = Target::new(&folder, &interrupted)?;
    let bar = progress_bar(spec.sessions);
    let progress = |done| bar.set_position(done);
    let options = GenerateOptions { threads: args.threads, progress: Some(&progress), interrupted: Some(&interrupted) };
    if let Some(fragments) = &args.only_fragments {
        let parts = generate_parts(&spec, target.folder(), fragments.clone(), &options);
        bar.finish_and_clear();
        let parts = parts.map_err(|e| target.named(of_generation(e, source)))?;
        target.publish_parts(&parts)?;
        return parts::print_parts(&folder, &parts, started.elapsed().as_secs_f64(), args.json);
    }
    let generated = generate(&spec, target.folder(), &options);
    bar.finish_and_clear();
    let manifest = generated.map_err(|e| target.named(of_generation(e, source)))?;
    target.publish(&manifest)?;
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
        "{}: {} in {}, {}, trace {}, {elapsed_s:.1} s\n",
        folder.display(),
        plural(operations, "operation"),
        plural(sessions, "session"),
        plural(bytes, "byte"),
        manifest.trace_id
    ))?;
    families::remark(&manifest).map_or(Ok(()), |remark| print(&format!("{remark}\n")))
}

/// Whose fault it is that nothing was generated. `source` names the specification.
fn of_generation(error: GenerateError, source: String) -> Failure {
    match error {
        GenerateError::Infeasible(_) | GenerateError::UnequalShare { .. } | GenerateError::OnlyNoops { .. } => {
            Failure::input(anyhow::Error::new(error).context(source))
        }
        GenerateError::Spec(_) | GenerateError::Occupied { .. } | GenerateError::NoRoom { .. } => Failure::input(error),
        GenerateError::Interrupted => Failure { code: program::INTERRUPTED, error: error.into() },
        _ => Failure::tool(error),
    }
}

/// A progress bar on a terminal, nothing elsewhere.
fn progress_bar(sessions: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} sessions, {per_sec}, {eta} left")
        .unwrap_or_else(|e| unreachable!("the template is a constant: {e}"));
    ProgressBar::new(sessions).with_style(style)
}

fn run_show(dir: &Path, json: bool) -> Result<(), Failure> {
    let manifest = Source::manifest(dir)?;
    let overview = Overview::new(&manifest).map_err(Failure::input)?;
    if json {
        let text = serde_json::to_string(&overview).map_err(Failure::tool)?;
        return print(&format!("{text}\n"));
    }
    print(&overview.to_string())
}

fn run_verify(dir: &Path) -> Result<(), Failure> {
    let source = Source::whole(dir)?;
    let read = Manifest::read(source.folder());
    let verified = read.and_then(|manifest| manifest.verify(source.folder()).map(|()| manifest));
    let manifest = verified.map_err(|error| source.named(error.into()))?;
    let files = plural(manifest.files.len() as u64, "file");
    print(&format!("{}: ok, {files}, trace {}\n", dir.display(), manifest.trace_id))
}

fn run_digest(dir: &Path, sessions: Option<u64>, after: Option<&Path>) -> Result<(), Failure> {
    let report: Option<ReplayReport> =
        after.map(schemas::files::read_json).transpose().map_err(|e| Failure::input(anyhow::anyhow!("--after {e}")))?;
    let ran = match (&report, sessions) {
        (Some(report), _) => Ran::Positions(&report.positions),
        (None, Some(sessions)) => Ran::First(sessions),
        (None, None) => Ran::All,
    };
    let source = Source::whole(dir)?;
    let found = digest(source.folder(), ran).map_err(|e| {
        source.named(match e {
            DigestError::TraceSet(e) => Failure::from(e),
            e => Failure::input(e),
        })
    })?;
    print(&format!("{found}\n"))
}
