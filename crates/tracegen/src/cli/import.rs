//! `encore trace import`: trace sets from the files of other tools.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use schemas::files::is_plain_name;
use schemas::manifest::Manifest;
use schemas::words::plural;
use serde_json::json;

use super::import_logs::{self, MysqlArgs, PostgresArgs};
use super::import_table::{self, TableArgs};
use super::{Failure, print};
use crate::GenerateError;
use crate::sql::benchfoundry::{ImportError, ImportOptions, import};

/// Makes a trace set from the files of another tool
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace import benchfoundry tpcc/                     writes tpcc.trace
  encore trace import benchfoundry tpcc/ -o mine.trace --fragments 4 --log-results
  encore trace import postgres-log postgresql.csv            writes postgresql.trace
  encore trace import mysql-general-log general.log          writes general.trace
  encore trace import table shop/                            writes shop.trace

Nothing is written if a file is wrong; the error names file and line.")]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    source: Source,
}

#[derive(Subcommand)]
enum Source {
    Benchfoundry(BenchfoundryArgs),
    PostgresLog(PostgresArgs),
    MysqlGeneralLog(MysqlArgs),
    Table(TableArgs),
}

/// Imports BenchFoundry's input files: NAME_schema, NAME_operation, NAME_param, NAME_cparam, NAME_load, NAME_warm,
/// NAME_run
#[derive(Args)]
struct BenchfoundryArgs {
    /// The folder with the files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The folder to write [default: NAME.trace, where NAME is the name of DIR]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Number of fragments, among which the processes are divided
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    fragments: u32,
    /// Start processes at their times (open loop) [default: if any starts later than 0 ms]
    #[arg(long, conflicts_with = "closed_loop")]
    open_loop: bool,
    /// Ignore the times: a thread takes the next process when it is done with one (closed loop)
    #[arg(long)]
    closed_loop: bool,
    /// Log the rows that statements return, besides their number and hash
    #[arg(long)]
    log_results: bool,
    /// Print one JSON object: folder, trace_id, workload_id, sessions, operations, bytes
    #[arg(long)]
    json: bool,
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Write(
                GenerateError::Infeasible(_) | GenerateError::Spec(_) | GenerateError::Occupied { .. },
            )
            | ImportError::Line { .. }
            | ImportError::Folder { .. }
            | ImportError::File(_) => Failure::input(error),
            ImportError::Write(_) => Failure::tool(error),
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &ImportArgs) -> Result<(), Failure> {
    match &args.source {
        Source::Benchfoundry(args) => benchfoundry(args),
        Source::PostgresLog(args) => import_logs::postgres(args),
        Source::MysqlGeneralLog(args) => import_logs::mysql(args),
        Source::Table(args) => import_table::run(args),
    }
}

fn benchfoundry(args: &BenchfoundryArgs) -> Result<(), Failure> {
    let name = name_of(&args.folder, args.output.as_deref());
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.trace")));
    let options = ImportOptions {
        name,
        fragments: args.fragments,
        open_loop: if args.open_loop { Some(true) } else { args.closed_loop.then_some(false) },
        log_results: args.log_results,
    };
    let manifest = import(&args.folder, &output, &options)?;
    print_written(&manifest, &output, args.json)
}

/// Says what was written, as a text or as JSON.
pub(super) fn print_written(manifest: &Manifest, output: &Path, json: bool) -> Result<(), Failure> {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let (sessions, operations) = (manifest.sessions(), manifest.operations());
    if json {
        let object = json!({
            "folder": output,
            "trace_id": manifest.trace_id,
            "workload_id": manifest.workload_id,
            "sessions": sessions,
            "operations": operations,
            "bytes": bytes,
        });
        return print(&format!("{object}\n"));
    }
    let size = manifest.spec.family().and_then(|family| family.size(&manifest.spec)).map_err(Failure::input)?;
    let how = if manifest.spec.arrivals.is_some() { "open loop" } else { "closed loop" };
    print(&format!(
        "{}: {} in {} ({how}), {size}, trace {}\n",
        output.display(),
        plural(operations, "operation"),
        plural(sessions, "session"),
        manifest.trace_id
    ))?;
    crate::families::remark(manifest).map_or(Ok(()), |remark| print(&format!("{remark}\n")))
}

/// The name of the trace set: that of the output, else that of the source.
pub(super) fn name_of(source: &Path, output: Option<&Path>) -> String {
    let stem = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    // `.` and `..` have no name.
    let source = std::path::absolute(source).ok();
    let name = output.and_then(stem).or_else(|| source.as_deref().and_then(stem)).unwrap_or_default();
    let plain: String =
        name.chars().map(|one| if one.is_ascii_alphanumeric() || "-_.".contains(one) { one } else { '-' }).collect();
    if is_plain_name(&plain) { plain } else { "imported".to_string() }
}
