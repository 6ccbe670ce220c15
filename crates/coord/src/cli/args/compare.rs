//! `encore compare`.

use std::path::PathBuf;

use clap::Args;
use schemas::sla::Sla;

use super::FleetArgs;

/// `encore compare`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  encore compare traces/figure-4.toml           two designs by number of friends
  encore compare traces/figure-3.toml --set data.members=1000 --name images-small
  encore compare traces/figure-6.toml --resume  run missing and failed cells
  ENCORE_POSTGRES=postgres://me:hush@db/x encore compare traces/figure-6-stores.toml
  encore compare my.toml --json > comparison.json

A plan lists stores, and workloads along an axis. Every store is rated at every
point; all stores of a point use the same trace set. The documentation has all
keys of a plan (docs/src/reference/plans.md).
RUNS/NAME/ then holds comparison.md, .svg, .html and .json, and a run folder for
each store at each point, which `encore analyze` reads.

With `rating = \"rate\"`, stores are compared by the highest arrival rate that
keeps the SLA, as in `encore rate --by rate`.
With the key `measure`, each store runs one experiment per point instead of a
search, with the point's `threads`, for the time of the SLA, as in `encore run`
(traces/figure-11.toml measures unpredictable reads). ${NAME} and
${NAME:-default} in the URLs of a plan are replaced by environment variables.

Disk space: 10,000 members with images of 500 KB need 5 GB, and SQLite stores
them twice during a rating. Use --set data.members=1000 for less. The file of an
embedded store without a path in the plan is removed after its cell.

Exit code 3 when a store failed or could not be measured at some point; in a
rating, 1 when a store keeps the SLA at no point.")]
pub struct CompareArgs {
    /// The plan of the comparison
    #[arg(value_name = "PLAN.toml")]
    pub plan: PathBuf,
    /// Override a value of the spec at every point, named by its dotted key; may be repeated
    #[arg(help_heading = "Workload", long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Do not read all items after each experiment, and check no conditions, whatever the plan says
    #[arg(help_heading = "Workload", long)]
    pub no_closing_read: bool,
    /// Use this service level agreement instead of the plan's
    #[arg(help_heading = "Store and SLA", long, value_name = "SLA")]
    pub sla: Option<Sla>,
    /// Use these durations of search experiments instead of the plan's
    #[arg(help_heading = "Search", long, value_name = "SECONDS", value_delimiter = ',')]
    pub search_s: Vec<f64>,
    /// Use this highest number of threads instead of the plan's
    #[arg(help_heading = "Search", long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_threads: Option<u32>,
    /// Use this highest arrival rate, in sessions per second, instead of the plan's
    #[arg(help_heading = "Search", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub max_rate: Option<u32>,
    /// Name of the comparison [default: the plan's name]
    #[arg(help_heading = "Run", long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(help_heading = "Run", long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Which replayers do the work.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Resume a comparison: run the cells that are missing or failed
    #[arg(help_heading = "Run", long)]
    pub resume: bool,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Disable the live progress display
    #[arg(help_heading = "Output", long)]
    pub quiet: bool,
}
