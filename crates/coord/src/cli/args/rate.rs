//! `encore rate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use schemas::pace::Overload;
use schemas::verdict::Between;

use super::WorkloadArgs;
use crate::rate::Wanted;

/// The arguments that a resumed rating takes from its run.
const FROM_THE_RUN: [&str; 28] = [
    "spec",
    "trace",
    "settings",
    "sla",
    "warmup",
    "shared_actors",
    "transactions",
    "tries",
    "no_closing_read",
    "workers",
    "leave_logs",
    "name",
    "runs",
    "publish",
    "sessions",
    "by",
    "rating",
    "search_s",
    "delta_check",
    "between",
    "keep_data",
    "max_threads",
    "first_threads",
    "exhaustive",
    "max_rate",
    "first_rate",
    "threads",
    "overload",
];

/// `encore rate`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  encore rate                                              SQLite, quickstart workload
  encore rate --store \"postgres://me@localhost/encore\"     overwrites that database
  encore rate --store memory: --max-threads 64
  encore rate my.toml --sla \"99% < 10ms, 0.01% unpredictable, 60s\" --search-s 5
  encore rate --set data.members=100000 --set access.distribution=uniform
  encore rate my.toml --rating soar --search-s 1,2,4 --between continue --warmup 500000ops
  encore rate my.toml --delta-check 10 --monitor 1
  encore rate my.toml --by rate --sla \"99% < 50ms, 30s\"     sessions arrive, whatever the store
  encore rate my.toml --by rate --threads 32 --first-rate 1000 --max-rate 20000
  encore rate my.toml --set fragments=8 --store postgres://me@db/x \\
      --replayer load1:7070 --replayer \"load2:7070*2\" --certs certs
  encore rate my.toml --store redis://h:6379/1 --keep-data  records that YCSB has loaded
  encore rate traces/transactions.toml --store postgres://me@h/x --tries 5
  encore rate my.toml --publish s3://bucket/runs           a copy in object storage
  encore rate --resume runs/bg-1                           resume after Ctrl-C

SoAR is the highest throughput that keeps the SLA; Socialites is the highest
number of threads that keeps it. With --by rate, sessions arrive at a given rate
(open loop), and the rating is the highest arrival rate that keeps the SLA; a
response time then counts from the time at which the session was due. Without
[arrivals] in the spec, sessions arrive evenly spaced; with it, the rate follows
its course over time, scaled as a whole.

Exit code 1 when no load keeps the SLA, a confirmed rating leaves data that
violate a condition, or the rating misses --fail-below; 3 when nothing could be
measured because every experiment was void.

With several values of --search-s, the search runs with each, shortest first. A
note reports if the two longest give different ratings.")]
pub struct RateArgs {
    /// Workload specification [default: the built-in traces/quickstart.toml]
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// Number of sessions to generate [default: the spec's]
    #[arg(help_heading = "Workload", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sessions: Option<u64>,
    /// What to vary: the number of threads, or the arrival rate
    #[arg(help_heading = "Search", long, value_enum, default_value_t = By::Threads)]
    pub by: By,
    /// Which ratings to search for by threads
    #[arg(help_heading = "Search", long, value_enum, default_value_t = Wanted::Both)]
    pub rating: Wanted,
    /// Duration of each search experiment in seconds; with several values, separated by commas,
    /// the search is done with each [default: 1.5, at most the SLA's time]
    #[arg(help_heading = "Search", long, value_name = "SECONDS", value_delimiter = ',')]
    pub search_s: Vec<f64>,
    /// The highest number of threads to try [default: 256]
    #[arg(help_heading = "Search", long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_threads: Option<u32>,
    /// The number of threads to begin with [default: 1]
    #[arg(help_heading = "Search", long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub first_threads: Option<u32>,
    /// With --by rate: the highest arrival rate to try, in sessions per second [default: 1000000]
    #[arg(help_heading = "Search", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub max_rate: Option<u32>,
    /// With --by rate: the arrival rate to begin with, in sessions per second [default: 100]
    #[arg(help_heading = "Search", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub first_rate: Option<u32>,
    /// With --by rate: number of threads, and so of connections; a session that arrives when all are
    /// busy waits for one [default: 64, at most what the trace keeps busy]
    #[arg(help_heading = "Search", long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub threads: Option<u32>,
    /// With --by rate: what happens to a session that arrives when all threads are busy: queue (it
    /// waits), skip (it is not started, and misses the SLA) or stop (the experiment ends, and
    /// fails) [default: queue]
    #[arg(help_heading = "Search", long, value_name = "CHOICE")]
    pub overload: Option<Overload>,
    /// Try every number of threads from 1 until the first that fails
    #[arg(help_heading = "Search", long)]
    pub exhaustive: bool,
    /// Search again with experiments twice as long when the throughput of a final experiment
    /// differs from the search by more than PERCENT [default: no check]
    #[arg(help_heading = "Search", long, value_name = "PERCENT")]
    pub delta_check: Option<f64>,
    /// What to do with the store between two experiments [default: load; continue with --keep-data]
    #[arg(help_heading = "Store and SLA", long, value_enum)]
    pub between: Option<BetweenArg>,
    /// The flags that `encore rate` and `encore run` share.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Resume a rating that was interrupted or failed; finished experiments are not repeated. All
    /// settings come from the run, except --store (give it again if its URL contains a password),
    /// --replayer (with --replayers, --certs, --token-file and --calibrate), --retries,
    /// --fail-below, --junit, --monitor, --deck, --metrics-listen, --json and --quiet
    #[arg(help_heading = "Run", long, value_name = "RUN", conflicts_with_all = FROM_THE_RUN)]
    pub resume: Option<PathBuf>,
    /// Exit with code 1 when SoAR is not confirmed, or below this many operations per second; with
    /// --by rate, the arrival rate and sessions per second
    #[arg(help_heading = "Output", long, value_name = "N_PER_S")]
    pub fail_below: Option<u64>,
    /// Write the result of --fail-below to FILE as JUnit XML
    #[arg(help_heading = "Output", long, value_name = "FILE", requires = "fail_below")]
    pub junit: Option<PathBuf>,
}

/// The values of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum By {
    /// The number of threads; each starts its next session when the last one has ended (closed loop)
    #[default]
    Threads,
    /// The arrival rate: sessions start at their due times, whether or not the store keeps up (open
    /// loop)
    Rate,
}

/// The values of `--between`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BetweenArg {
    /// Restore the data set, and start the trace from its beginning
    Load,
    /// Continue the trace where the last experiment stopped
    Continue,
}

impl From<BetweenArg> for Between {
    fn from(between: BetweenArg) -> Between {
        match between {
            BetweenArg::Load => Between::Load,
            BetweenArg::Continue => Between::Continue,
        }
    }
}
