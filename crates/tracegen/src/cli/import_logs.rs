//! `encore trace import postgres-log` and `mysql-general-log`: trace sets from the logs of databases.

use std::path::{Path, PathBuf};

use clap::Args;
use schemas::vocabulary::sql::text::Dialect;
use schemas::words::plural;
use serde_json::json;

use super::{Failure, print};
use crate::GenerateError;
use crate::sql::import::postgres_log::{self, Format};
use crate::sql::import::{ImportError, Imported, Limit, SetOptions, Window, mysql_general_log, write};

/// Imports PostgreSQL's logs: stderr, csvlog or jsonlog of versions 13 to 18
///
/// Record with log_statement = 'all' or log_min_duration_statement = 0. Each transaction becomes a session that is due
/// when it began. Statements that differ in their values alone become one statement with parameters.
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace import postgres-log postgresql.csv              writes postgresql.trace
  encore trace import postgres-log log/*.log.gz --log-line-prefix '%m [%p] %q%u@%d ' --database shop -o shop.trace
  encore trace import postgres-log postgresql.json --from '2026-03-01 14:00' --to '2026-03-01 15:00' --dry-run

The report names every reason why entries were not taken, with an example. Nothing is written if the logs are
refused.")]
pub(super) struct PostgresArgs {
    /// The logs, in any order; .gz and .zst too
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The server's log_line_prefix, for logs of stderr [default: PostgreSQL's and other usual ones are tried]
    #[arg(long, value_name = "PREFIX")]
    log_line_prefix: Option<String>,
    /// The form of the files: stderr, csv or json [default: seen from each file]
    #[arg(long, value_name = "FORM")]
    format: Option<Format>,
    /// Only entries of this user; repeat the flag for more users
    #[arg(long = "user", value_name = "NAME")]
    users: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Imports the general log of MySQL or MariaDB
///
/// Record with general_log = ON. Each transaction becomes a session that is due when it began.
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace import mysql-general-log general.log            writes general.trace
  encore trace import mysql-general-log general.log --database shop --dry-run")]
pub(super) struct MysqlArgs {
    /// The logs, in any order; .gz and .zst too
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

/// What both imports have.
#[derive(Args)]
struct CommonArgs {
    /// Only statements in this database; repeat the flag for more databases
    #[arg(long = "database", value_name = "NAME")]
    databases: Vec<String>,
    /// Only transactions that begin at this time or later: 'YYYY-MM-DD HH:MM:SS' in the time of the log
    #[arg(long, value_name = "TIME", value_parser = Limit::parse)]
    from: Option<Limit>,
    /// Only transactions that begin before this time
    #[arg(long, value_name = "TIME", value_parser = Limit::parse)]
    to: Option<Limit>,
    /// Leave out statements that change the schema (DDL) instead of refusing the logs
    #[arg(long)]
    skip_ddl: bool,
    /// The schema that the statements need, as SQL [default: none; the database has it already]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The folder to write [default: NAME.trace, where NAME is the name of the first file]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Number of fragments, among which the sessions of the log are divided
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    fragments: u32,
    /// Ignore the times of the log: a thread takes the next transaction when it is done with one
    #[arg(long)]
    closed_loop: bool,
    /// Log the rows that statements return, besides their number and hash
    #[arg(long)]
    log_results: bool,
    /// Print the report and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object: the report, and folder, trace_id, sessions, operations
    #[arg(long)]
    json: bool,
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Write(
                GenerateError::Infeasible(_) | GenerateError::Spec(_) | GenerateError::Occupied { .. },
            ) => Failure::input(error),
            ImportError::Write(_) => Failure::tool(error),
            _ => Failure::input(error),
        }
    }
}

impl CommonArgs {
    fn window(&self) -> Window {
        Window { from: self.from, to: self.to, skip_ddl: self.skip_ddl }
    }

    /// Where the trace set goes, and its name.
    fn place(&self, files: &[PathBuf]) -> (PathBuf, String) {
        // `app.log.gz` is named `app`.
        let stem = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.split('.').next().unwrap_or_default().to_string()
        };
        let source = PathBuf::from(files.first().map(|first| stem(first)).unwrap_or_default());
        let name = super::import::name_of(&source, self.output.as_deref());
        let place = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.trace")));
        (place, name)
    }

    /// The folder for temporary files: the one of the trace set.
    fn folder(&self, place: &Path) -> PathBuf {
        match place.parent() {
            Some(parent) if parent.is_dir() && !self.dry_run => parent.to_path_buf(),
            Some(parent) if parent.as_os_str().is_empty() && !self.dry_run => PathBuf::from("."),
            _ => std::env::temp_dir(),
        }
    }
}

/// Imports PostgreSQL's logs.
pub(super) fn postgres(args: &PostgresArgs) -> Result<(), Failure> {
    let common = &args.common;
    let (place, name) = common.place(&args.files);
    let options = postgres_log::Options {
        prefix: args.log_line_prefix.clone(),
        format: args.format,
        databases: common.databases.clone(),
        users: args.users.clone(),
        window: common.window(),
    };
    let imported = postgres_log::import(&args.files, &options, &common.folder(&place))?;
    finish(imported, common, &place, name, "postgres-log", Dialect::Postgres)
}

/// Imports the general log of MySQL or MariaDB.
pub(super) fn mysql(args: &MysqlArgs) -> Result<(), Failure> {
    let common = &args.common;
    let (place, name) = common.place(&args.files);
    let (databases, window) = (common.databases.clone(), common.window());
    let imported = mysql_general_log::import(&args.files, &databases, window, &common.folder(&place))?;
    finish(imported, common, &place, name, "mysql-general-log", Dialect::Mysql)
}

/// Writes the trace set and prints the report.
fn finish(
    mut imported: Imported,
    args: &CommonArgs,
    place: &Path,
    name: String,
    source: &'static str,
    dialect: Dialect,
) -> Result<(), Failure> {
    let report = imported.report.clone();
    let mut object = json!({ "report": report });
    if args.dry_run {
        return print(&if args.json { format!("{object}\n") } else { report.to_string() });
    }
    let schema = match &args.schema {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::input(anyhow::anyhow!("--schema {}: {e}", path.display())))?,
        None => String::new(),
    };
    let options = SetOptions {
        name,
        source,
        dialect,
        schema,
        fragments: args.fragments,
        open_loop: !args.closed_loop,
        log_results: args.log_results,
    };
    let manifest = write(&mut imported, place, &options)?;
    let (sessions, operations) = (manifest.sessions(), manifest.operations());
    if args.json {
        object["folder"] = json!(place);
        object["trace_id"] = json!(manifest.trace_id);
        object["sessions"] = json!(sessions);
        object["operations"] = json!(operations);
        return print(&format!("{object}\n"));
    }
    print(&format!(
        "{}: {} in {}, trace {}\n{report}",
        place.display(),
        plural(operations, "operation"),
        plural(sessions, "session"),
        manifest.trace_id
    ))
}
