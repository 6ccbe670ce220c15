//! `encore trace physical`: the collections that a trace set of SQL needs in a store of documents.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use schemas::files::write_atomically;
use schemas::manifest::Manifest;
use schemas::vocabulary::sql::physical::{Design, Mapping, recommend};
use schemas::vocabulary::sql::read_statements;
use schemas::words::plural;
use schemas::workload::sql::dataset::read_schema;
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::{Failure, print};

/// Prints the collections that a trace set of SQL needs in a store of documents, as TOML
///
/// A table becomes a collection. Each further set of columns that its queries compare with = becomes a collection of
/// the columns that these queries need. Edit the file, and give it to the store: mongodb://HOST/DB?physical=FILE
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace physical tpcc.trace --for mongodb
  encore trace physical tpcc.trace --for mongodb -o tpcc-mongodb.toml
  encore trace physical tpcc.trace --for mongodb --check tpcc-mongodb.toml     after an edit

Exit code 2 if a statement of the sessions cannot be mapped; each is named with its reason.")]
pub(super) struct PhysicalArgs {
    /// The trace set
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The store
    #[arg(long = "for", value_name = "STORE")]
    store: For,
    /// Check this file instead of recommending one
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// The file to write [default: print it]
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    output: Option<PathBuf>,
}

/// The stores that have a mapping.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum For {
    /// MongoDB
    Mongodb,
}

/// Runs the command.
pub(super) fn run(args: &PhysicalArgs) -> Result<(), Failure> {
    let For::Mongodb = args.store;
    let trace = args.trace.display();
    let wrong = |why: String| Failure::input(anyhow::anyhow!("{trace}: {why}"));
    let manifest = Manifest::read(&args.trace)?;
    let set = manifest.spec.family().and_then(|family| family.sql(&manifest.spec)).map_err(Failure::input)?;
    let set = set.ok_or_else(|| wrong("has no statements of SQL; only those are mapped".into()))?;
    let schema = read_schema(&args.trace).map_err(Failure::input)?;
    let statements = read_statements(&args.trace).map_err(Failure::input)?;
    let design = match &args.check {
        None => recommend(&schema, set.dialect, &statements).map_err(wrong)?,
        Some(file) => {
            let of_file = |why: String| Failure::input(anyhow::anyhow!("{}: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| of_file(error.to_string()))?;
            Design::parse(&text).map_err(of_file)?
        }
    };
    let mapping = Mapping::new(&schema, set.dialect, &statements, &design).map_err(wrong)?;
    // The statistics of each family of this vocabulary have those of its statements.
    let uses = manifest.statistics_of::<SqlWorkload>().unwrap_or_else(|_| SqlStatistics::default()).uses;
    let refused = mapping.refused(&statements, |number| uses.get(number).is_none_or(|uses| *uses > 0));
    if !refused.is_empty() {
        let count = plural(refused.len() as u64, "statement");
        return Err(wrong(format!("{count} cannot be mapped\n  {}", refused.join("\n  "))));
    }
    let writes = mapping.plans.iter().flatten().map(|plan| plan.writes()).max().unwrap_or(0);
    let tables = plural(mapping.tables.0.len() as u64, "table");
    let collections = plural(mapping.collections.len() as u64, "collection");
    let text = format!(
        "# The collections of MongoDB for the trace set {}: {tables}, {collections}.\n\
         # A query reads one collection. A change goes to all that hold a column of it, at most {writes} here.\n\
         # The first collection of a table has all its columns, and the primary key as _id. Each path is an index.\n\
         # Use it after an edit: mongodb://HOST/DATABASE?physical=FILE\n\n{}",
        manifest.spec.name,
        design.text()
    );
    match (&args.check, &args.output) {
        (Some(file), _) => print(&format!("{}: ok, {tables}, {collections}\n", file.display())),
        (None, Some(file)) => {
            write_atomically(file, text.as_bytes()).map_err(Failure::tool)?;
            print(&format!("{}: {tables}, {collections}\n", file.display()))
        }
        (None, None) => print(&text),
    }
}
