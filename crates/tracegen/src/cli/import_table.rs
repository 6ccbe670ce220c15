//! `encore trace import table`: a trace set from CSV or Parquet files with documented columns.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use schemas::vocabulary::sql::text::Dialect;

use super::Failure;
use super::import::{name_of, print_written};
use crate::GenerateError;
use crate::sql::tables::{ImportError, ImportOptions, import};

/// Imports tables that any tool can write: statements and operations as CSV or Parquet
///
/// The folder holds statements.csv and operations.csv, and perhaps preload.csv, schema.sql and checks.toml (conditions
/// that the data keep). Each table may be a .parquet file instead.
#[derive(Args)]
#[command(after_help = "\
Columns (those in brackets may be missing):
  statements   statement, text [, parameters]
  operations   process, statement [, parameters, client, kind, due_us, think_us, custom,
               warmup]
  preload      statement [, parameters]

Examples:
  python3 traces/examples/shop.py shop && encore trace import table shop       writes shop.trace
  encore trace import table shop/ -o mine.trace --fragments 4 --closed-loop

Nothing is written if a file is wrong; the error names file and row.")]
pub(super) struct TableArgs {
    /// The folder with the tables
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The folder to write [default: NAME.trace, where NAME is the name of DIR]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The name of the trace set [default: that of the folder to write]
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    name: Option<String>,
    /// The SQL of statements and schema; they are translated for other databases
    #[arg(long, value_name = "DIALECT", default_value = "logical")]
    dialect: DialectArg,
    /// Number of fragments, among which the clients are divided
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    fragments: u32,
    /// Ignore due_us: a thread takes the next process when it is done with one (closed loop)
    #[arg(long)]
    closed_loop: bool,
    /// Log the rows that statements return, besides their number and hash
    #[arg(long)]
    log_results: bool,
    /// Print one JSON object: folder, trace_id, workload_id, sessions, operations, bytes
    #[arg(long)]
    json: bool,
}

/// [`Dialect`], as the command line knows it.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectArg {
    /// No database's own: backticks, and the types of MySQL
    Logical,
    /// MariaDB and MySQL
    Mysql,
    /// PostgreSQL
    Postgres,
    /// SQLite
    Sqlite,
}

impl From<DialectArg> for Dialect {
    fn from(arg: DialectArg) -> Dialect {
        match arg {
            DialectArg::Logical => Dialect::Logical,
            DialectArg::Mysql => Dialect::Mysql,
            DialectArg::Postgres => Dialect::Postgres,
            DialectArg::Sqlite => Dialect::Sqlite,
        }
    }
}

fn plain_name(name: &str) -> Result<String, String> {
    match schemas::files::is_plain_name(name) {
        true => Ok(name.to_string()),
        false => Err("a name has letters, digits and - _ . only, and no blank or slash".into()),
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        let is_input = match &error {
            ImportError::Write(error) => {
                matches!(error, GenerateError::Infeasible(_) | GenerateError::Spec(_) | GenerateError::Occupied { .. })
            }
            ImportError::Table(error) => error.io.is_none_or(schemas::files::is_about_the_name),
            ImportError::File(error) => schemas::files::is_about_the_name(error.source.kind()),
            ImportError::Row { .. } | ImportError::Whole { .. } => true,
        };
        if is_input { Failure::input(error) } else { Failure::tool(error) }
    }
}

/// Runs the command.
pub(super) fn run(args: &TableArgs) -> Result<(), Failure> {
    let own = name_of(&args.folder, args.output.as_deref());
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{own}.trace")));
    let options = ImportOptions {
        name: args.name.clone().unwrap_or(own),
        dialect: args.dialect.into(),
        fragments: args.fragments,
        closed_loop: args.closed_loop,
        log_results: args.log_results,
    };
    let manifest = import(&args.folder, &output, &options)?;
    print_written(&manifest, &output, args.json)
}
