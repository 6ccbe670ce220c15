//! `encore trace physical`: the physical schema that a trace set of SQL needs in a store without SQL.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use schemas::files::write_atomically;
use schemas::manifest::Manifest;
use schemas::vocabulary::sql::physical::{MODELS, Work, listed};
use schemas::vocabulary::sql::read_statements;
use schemas::words::plural;
use schemas::workload::sql::dataset::{preloaded, read_schema};
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::{Failure, print};

/// Prints the physical schema that a trace set of SQL needs in a store without SQL, as TOML
///
/// A table becomes a collection or a table of the store. Each further set of columns that its queries compare with = becomes
/// another one, with the columns that these queries need. Edit the file, and name it in the URL of the store:
/// mongodb://HOST/DATABASE?physical=FILE
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace physical tpcc.trace --for mongodb
  encore trace physical tpcc.trace --for cassandra -o tpcc-cassandra.toml
  encore trace physical tpcc.trace --for cassandra --check tpcc-cassandra.toml     after an edit

Exit code 2 if a statement of the sessions or of the load cannot be mapped; each is named with its reason.")]
pub(super) struct PhysicalArgs {
    /// The trace set
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The store
    #[arg(long = "for", value_name = "STORE", value_parser = PossibleValuesParser::new(MODELS.map(|model| model.store)))]
    store: String,
    /// Check this file instead of recommending one
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// The file to write [default: print it]
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &PhysicalArgs) -> Result<(), Failure> {
    let trace = args.trace.display();
    let wrong = |why: String| Failure::input(anyhow::anyhow!("{trace}: {why}"));
    let model = MODELS.iter().find(|model| model.store == args.store);
    let model = model.ok_or_else(|| wrong(format!("--for {}: is unknown", args.store)))?;
    let manifest = Manifest::read(&args.trace)?;
    let set = manifest.spec.family().and_then(|family| family.sql(&manifest.spec)).map_err(Failure::input)?;
    let set = set.ok_or_else(|| wrong("has no statements of SQL; only those are mapped".into()))?;
    let schema = read_schema(&args.trace).map_err(Failure::input)?;
    let statements = read_statements(&args.trace).map_err(Failure::input)?;
    let loads = preloaded(&args.trace, statements.len()).map_err(Failure::input)?;
    // The statistics of each family of this vocabulary have those of its statements.
    let uses = manifest.statistics_of::<SqlWorkload>().unwrap_or_else(|_| SqlStatistics::default()).uses;
    let work = Work { schema: &schema, dialect: set.dialect, statements: &statements, uses: &uses, loads: &loads };
    let name = &manifest.spec.name;
    let outline = match &args.check {
        None => (model.outline)(&work, None, name).map_err(wrong)?,
        Some(file) => {
            let of_file = |why: String| Failure::input(anyhow::anyhow!("{}: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| of_file(error.to_string()))?;
            (model.outline)(&work, Some(&text), name).map_err(of_file)?
        }
    };
    if !outline.refused.is_empty() {
        let count = plural(outline.refused.len() as u64, "statement");
        return Err(wrong(format!("{count} cannot be mapped to {}\n  {}", model.store, listed(&outline.refused))));
    }
    match (&args.check, &args.output) {
        (Some(file), _) => print(&format!("{}: ok, {}\n", file.display(), outline.size)),
        (None, Some(file)) => {
            write_atomically(file, outline.text.as_bytes()).map_err(Failure::tool)?;
            print(&format!("{}: {}\n", file.display(), outline.size))
        }
        (None, None) => print(&outline.text),
    }
}
