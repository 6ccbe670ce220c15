//! What the user types: the command line, before anything is looked up.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use schemas::sla::Sla;

/// Rates data stores under social-network load.
#[derive(Debug, Parser)]
#[command(
    name = "coord",
    version,
    after_help = "\
Examples:
  coord rate                                  rate SQLite with the quickstart workload
  coord rate --sla \"99% < 10ms, 0.01% unpredictable, 30s\"
  coord run traces/quickstart.toml --store memory: --threads 8 --duration 5s
  coord compare traces/figure-4.toml          rate several designs side by side
  coord analyze summary runs/NAME             what a run showed
  coord trace gen SPEC.toml                   the generator alone

Exit codes: 0 success, 1 the SLA was missed or a violation was found,
2 wrong usage or input, 3 the tool or a store failed."
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search a store's SoAR and Socialites ratings
    Rate(RateArgs),
    /// Run one experiment and judge it
    Run(RunArgs),
    /// Rate several stores or designs with the same trace sets, side by side
    Compare(CompareArgs),
    /// Generate and inspect trace sets (the `tracegen` tool)
    #[command(disable_help_flag = true)]
    Trace(ToolArgs),
    /// Load a store and replay a trace set (the `replayer` tool)
    #[command(disable_help_flag = true)]
    Replay(ToolArgs),
    /// Ask questions about runs (the `analyzer` tool)
    #[command(disable_help_flag = true)]
    Analyze(ToolArgs),
    /// What the coordinator starts its local replayers as
    #[command(hide = true, disable_help_flag = true)]
    Replayer(ToolArgs),
}

/// The arguments of another tool.
#[derive(Debug, Args)]
pub struct ToolArgs {
    /// Handed to the tool as they are; --help shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// What both kinds of run need: the workload, the store, where results go.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkloadArgs {
    /// Use this trace set as it is, instead of the one generated from the spec
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Replace a value of the spec, by its dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Store to run against [default: sqlite:RUNS/NAME/store.db]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Service level agreement [default: "95% < 100ms, 0.1% unpredictable, 10s"]
    #[arg(long, value_name = "SLA")]
    pub sla: Option<Sla>,
    /// Operating-system threads of a replayer (at most one a fragment)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Name of the run [default: the spec's name and the time]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub json: bool,
}

/// `coord rate`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord rate                                              SQLite, quickstart workload
  coord rate --store memory: --max-threads 64
  coord rate my.toml --sla \"99% < 10ms, 0.01% unpredictable, 60s\" --search-s 5
  coord rate --set data.members=100000 --set access.distribution=uniform

SoAR is the highest throughput that keeps the SLA, Socialites the highest number
of simultaneous threads that does. Exit code 1 when no number of threads keeps it.")]
pub struct RateArgs {
    /// Workload specification [default: traces/quickstart.toml]
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// What both kinds of run need.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Sessions to generate, instead of what the spec says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sessions: Option<u64>,
    /// Seconds of each experiment of the search [default: 1.5, at most the SLA's time]
    #[arg(long, value_name = "SECONDS")]
    pub search_s: Option<f64>,
    /// The highest number of threads to try
    #[arg(long, value_name = "T", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_threads: u32,
    /// The number of threads to begin with
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub first_threads: u32,
    /// Try every number of threads from 1 until the first that fails
    #[arg(long)]
    pub exhaustive: bool,
}

/// `coord run`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord run traces/quickstart.toml --store sqlite:/tmp/a.db --threads 8
  coord run my.toml --store memory:?stale=0.01 --threads 64 --duration 5s
  coord run my.toml --threads 1 --sessions 10000

Exit code 1 when the SLA is missed or the experiment says nothing about the store.")]
pub struct RunArgs {
    /// Workload specification [default: traces/quickstart.toml]
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// What both kinds of run need.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Simultaneous threads
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub threads: u32,
    /// How long it runs [default: the SLA's time]
    #[arg(long, value_name = "TIME", value_parser = schemas::sla::nanoseconds, conflicts_with = "sessions")]
    pub duration: Option<u64>,
    /// End after this many sessions instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sessions: Option<u64>,
}

/// `coord compare`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord compare traces/figure-4.toml                      designs of SQLite by friends per member
  coord compare traces/figure-3.toml --set data.members=1000 --name images-small
  coord compare traces/figure-6.toml --resume             what is missing or failed
  coord compare my.toml --json > comparison.json

A plan names stores and, along an axis, workloads; every store is rated at every
point, and all stores of a point get the same trace set (schemas/README.md has the
keys). RUNS/NAME/ then holds comparison.md, comparison.svg, comparison.json, and a
run folder a rating, which `coord analyze` reads.

Mind the disk: 10,000 members with images of 500 KB are 5 GB, and SQLite keeps them
twice while it is rated. Take fewer: --set data.members=1000. The file of a store
that the plan gives no path is removed when its rating is done.

Exit code 1 when a store keeps the SLA at no point, 3 when a rating failed.")]
pub struct CompareArgs {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    pub plan: PathBuf,
    /// Replace a value of the spec at every point, by its dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Name of the comparison [default: the plan's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Continue a comparison: rate what is missing or failed
    #[arg(long)]
    pub resume: bool,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub json: bool,
}
