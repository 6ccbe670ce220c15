//! `encore run`.

use std::path::PathBuf;

use clap::Args;
use replayer::cli::pace::PaceArgs;

use super::WorkloadArgs;

/// `encore run`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  encore run traces/quickstart.toml --store sqlite:/tmp/a.db --threads 8
  encore run my.toml --store \"memory:?stale=0.01\" --threads 64 --duration 5s
  encore run my.toml --threads 1 --sessions 10000
  encore run my.toml --threads 16 --warmup 10% --monitor 1
  encore run my.toml --threads 64 --rate 500                 500 sessions/s arrive (open loop)
  encore run rising.toml --threads 64 --rate-factor 1.5      a spec with [arrivals]
  encore run my.toml --threads 100 --threads-over-time 0s:10,30s:100,60s:10 --duration 90s
  encore run traces/transactions.toml --store postgres://me@h/x --threads 16 --tries 5
  encore run traces/ycsb-a.toml --threads 16 --store mysql://me@h/ycsb --keep-data    loaded by YCSB

Exit code 1 when the SLA is missed or the data violate a condition, 3 when the
experiment is void: it says nothing about the store.")]
pub struct RunArgs {
    /// Workload specification [default: the built-in traces/quickstart.toml]
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// The flags that `encore rate` and `encore run` share.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Number of simultaneous threads
    #[arg(help_heading = "Experiment", long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub threads: u32,
    /// How fast sessions start.
    #[command(flatten, next_help_heading = "Experiment")]
    pub pace: PaceArgs,
    /// Duration of the experiment, for example 5s [default: the SLA's time]
    #[arg(help_heading = "Experiment", long, value_name = "TIME", value_parser = schemas::sla::nanoseconds, conflicts_with = "sessions")]
    pub duration: Option<u64>,
    /// End the experiment after this many sessions, not after a time
    #[arg(help_heading = "Experiment", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sessions: Option<u64>,
}
