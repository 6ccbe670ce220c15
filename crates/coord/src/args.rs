//! What the user types: the command line, before anything is looked up.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use schemas::plan::Warmup;
use schemas::sla::Sla;
use schemas::verdict::Between;

use crate::fleet::Address;
use crate::simulate::Form;

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
  coord simulate --compare                    how few experiments a rating needs
  coord trace gen SPEC.toml                   the generator alone

Exit codes: 0 success, 1 the SLA was missed or a violation was found,
2 wrong usage or input, 3 the tool or a store failed, or a rating measured nothing."
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
    /// Try the search of a rating on a formula instead of a store
    Simulate(SimulateArgs),
    /// Rate or measure several stores or designs with the same trace sets, side by side
    Compare(CompareArgs),
    /// Make certificates for replayers on other machines
    Certs(CertsArgs),
    /// Fetch the logs of a run that replayers still have
    Collect(CollectArgs),
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

impl Command {
    /// Whether nothing is to move on the terminal.
    pub fn is_quiet(&self) -> bool {
        match self {
            Command::Rate(args) => args.workload.quiet,
            Command::Run(args) => args.workload.quiet,
            Command::Compare(args) => args.quiet,
            _ => false,
        }
    }
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
    /// Store to run against; '${NAME}' stands for a variable of the environment, so that a
    /// password is in no list of processes [default: sqlite:RUNS/NAME/store.db]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Service level agreement [default: "95% < 100ms, 0.1% unpredictable, 10s"]
    #[arg(long, value_name = "SLA")]
    pub sla: Option<Sla>,
    /// Replay this much of the trace before each experiment is measured: sessions
    /// (500), a share of the trace (10%) or operations (500000ops)
    #[arg(long, value_name = "N|N%|Nops")]
    pub warmup: Option<Warmup>,
    /// While an experiment runs, print a line with its figures every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub monitor: Option<u32>,
    /// Let two threads act for one socialite at the same time
    #[arg(long)]
    pub shared_socialites: bool,
    /// Operating-system threads of a replayer (at most one a fragment)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Which replayers do the work.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Name of the run [default: the spec's name and the time]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Plain lines alone, on a terminal too
    #[arg(long)]
    pub quiet: bool,
}

/// [`FleetArgs::retries`] unless told otherwise.
pub const DEFAULT_RETRIES: u32 = 2;

/// Which replayers do the work.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArgs {
    /// A replayer that waits there (`replayer serve`), with *2 behind it for twice the
    /// share of others; may be given several times [default: a process on this machine]
    #[arg(long = "replayer", value_name = "HOST:PORT[*W]")]
    pub replayers: Vec<Address>,
    /// How to speak to them.
    #[command(flatten)]
    pub secrets: SecretArgs,
    /// Take only the first N of them; without --replayer, start N processes on this machine
    #[arg(long = "replayers", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: Option<u32>,
    /// Measure how fast each replayer is, against a store that answers at once, and deal the
    /// work by that
    #[arg(long)]
    pub calibrate: bool,
    /// Leave the logs with their replayers: each summarizes its own where it is, and only
    /// that travels; `coord collect` fetches them later
    #[arg(long)]
    pub leave_logs: bool,
    /// How many experiments may be repeated because a replayer was lost
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RETRIES)]
    pub retries: u32,
}

/// How to speak to replayers on other machines.
#[derive(Debug, Clone, Default, Args)]
pub struct SecretArgs {
    /// Folder with ca.pem, coordinator.pem and coordinator.key, as `coord certs` makes
    /// it, for replayers that were started with --certs
    #[arg(long, value_name = "DIR", requires = "replayers")]
    pub certs: Option<PathBuf>,
    /// File with the secret of replayers that were started with --token-file
    #[arg(long, value_name = "FILE", requires = "replayers")]
    pub token_file: Option<PathBuf>,
}

/// `coord rate`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord rate                                              SQLite, quickstart workload
  coord rate --store \"postgres://me@localhost/encore\"     overwrites that database
  coord rate --store memory: --max-threads 64
  coord rate my.toml --sla \"99% < 10ms, 0.01% unpredictable, 60s\" --search-s 5
  coord rate --set data.members=100000 --set access.distribution=uniform
  coord rate my.toml --rating soar --search-s 1,2,4 --between continue --warmup 500000ops
  coord rate my.toml --delta-check 10 --monitor 1
  coord rate my.toml --set fragments=8 --store postgres://me@db/x \\
      --replayer load1:7070 --replayer \"load2:7070*2\" --certs certs
  coord rate --resume runs/bg-1                           after Ctrl-C, or a lost machine

SoAR is the highest throughput that keeps the SLA, Socialites the highest number
of simultaneous threads that does. Exit code 1 when no number of threads keeps it,
3 when nothing could be measured because every experiment was void.

With several values of --search-s the search is done with the shortest first, then
with the next; the two largest have to give the same ratings, or the rating says so.")]
pub struct RateArgs {
    /// Workload specification [default: traces/quickstart.toml]
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// Go on with a rating that was interrupted or failed; what its experiments showed is
    /// not measured again. All else is as it was, but for --store (whose secrets no run
    /// folder holds), --replayer with --replayers, --certs and --token-file, --retries,
    /// --monitor, --json and --quiet
    #[arg(long, value_name = "RUN", conflicts_with = "spec")]
    pub resume: Option<PathBuf>,
    /// What both kinds of run need.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Sessions to generate, instead of what the spec says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sessions: Option<u64>,
    /// Which ratings
    #[arg(long, value_enum, default_value_t = Wanted::Both)]
    pub rating: Wanted,
    /// Seconds of each experiment of the search, one value or several [default: 1.5,
    /// at most the SLA's time]
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub search_s: Vec<f64>,
    /// Search again with experiments twice as long when a final one differs from
    /// the search by more than this in throughput
    #[arg(long, value_name = "PERCENT")]
    pub delta_check: Option<f64>,
    /// What happens to the store between two experiments
    #[arg(long, value_enum, default_value_t = BetweenArg::Load)]
    pub between: BetweenArg,
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

/// Which of the two ratings are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Wanted {
    /// The highest throughput
    Soar,
    /// The highest number of threads
    Socialites,
    /// The two of them, which share their experiments
    #[default]
    Both,
}

impl Wanted {
    /// Whether SoAR is among them.
    pub fn has_soar(self) -> bool {
        self != Wanted::Socialites
    }

    /// Whether Socialites is among them.
    pub fn has_socialites(self) -> bool {
        self != Wanted::Soar
    }

    /// The words for a heading or a column.
    pub const fn name(self) -> &'static str {
        match self {
            Wanted::Soar => "SoAR",
            Wanted::Socialites => "Socialites",
            Wanted::Both => "SoAR and Socialites",
        }
    }
}

/// What happens to the store between two experiments, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BetweenArg {
    /// It is brought back to the data set, and the trace begins anew
    #[default]
    Load,
    /// The trace is taken up where the last experiment stopped
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

/// `coord run`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord run traces/quickstart.toml --store sqlite:/tmp/a.db --threads 8
  coord run my.toml --store \"memory:?stale=0.01\" --threads 64 --duration 5s
  coord run my.toml --threads 1 --sessions 10000
  coord run my.toml --threads 16 --warmup 10% --monitor 1

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

/// `coord certs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  coord certs certs --host load1 --host load2      names that the coordinator will use
  coord certs certs --host 10.0.0.5 --host 10.0.0.6

Makes an authority of your own and two certificates of it, valid for ten years. Copy
ca.pem, replayer.pem and replayer.key to each load host and start `replayer serve
--certs DIR` there; `coord rate --certs DIR` uses ca.pem, coordinator.pem and
coordinator.key. ca.key is needed by neither: keep it away from both.")]
pub struct CertsArgs {
    /// Folder for the six files
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Name or address by which the coordinator reaches replayers; several times for
    /// several [default: this machine alone]
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
}

/// `coord collect`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  coord collect runs/bg-1 --replayer load1:7070 --replayer load2:7070 --certs certs

For a run that was made with --leave-logs, or whose coordinator was gone before it had
fetched everything. What is there already is left alone; then `coord analyze summary
runs/bg-1` takes all into account.")]
pub struct CollectArgs {
    /// The run folder
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// A replayer that took part in it; may be given several times
    #[arg(long = "replayer", value_name = "HOST:PORT", required = true)]
    pub replayers: Vec<Address>,
    /// How to speak to them.
    #[command(flatten)]
    pub secrets: SecretArgs,
}

/// `coord simulate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  coord simulate                                  the SoARs of bg-2013 Figure 13
  coord simulate --compare                        beside doubling and hill climbing
  coord simulate --noise 2 --seed 7               a store whose results scatter
  coord simulate --peaks 5000 --sla-until 3000    the SLA ends before the peak
  coord simulate --curve square-root --json

A store stands for its throughput over the number of threads T; the search is the
one of `coord rate`. Nothing is run.")]
pub struct SimulateArgs {
    /// The form of throughput over T
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Quadratic, hide_possible_values = true,
          help = "quadratic, square-root or saturating")]
    pub curve: Form,
    /// The peaks of the curve, in actions a second [default: 500 to 100000000]
    #[arg(long, visible_alias = "peak", value_name = "N,N...", value_delimiter = ',')]
    pub peaks: Vec<f64>,
    /// Standard deviation of experiments with the same T, in percent of their mean
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub noise: f64,
    /// Chooses the noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The SLA is missed with more threads than this [default: never for quadratic, else twice the peak]
    #[arg(long, value_name = "T")]
    pub sla_until: Option<u32>,
    /// An interval narrower than this share of T, in percent, is not divided further [default: 5]
    #[arg(long, value_name = "PERCENT")]
    pub resolution: Option<f64>,
    /// The number of threads to begin with
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub first_threads: u32,
    /// The highest number of threads to try
    #[arg(long, value_name = "T", default_value_t = 1_000_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub max_threads: u32,
    /// Show doubling and hill climbing, the paper's own search, beside it
    #[arg(long)]
    pub compare: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

/// `coord compare`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  coord compare traces/figure-4.toml                      designs of SQLite by friends per member
  coord compare traces/figure-3.toml --set data.members=1000 --name images-small
  coord compare traces/figure-6.toml --resume             what is missing or failed
  ENCORE_POSTGRES=postgres://me:hush@db/x coord compare traces/figure-6-stores.toml
  coord compare my.toml --json > comparison.json

A plan names stores and, along an axis, workloads; every store is rated at every
point, and all stores of a point get the same trace set (schemas/README.md has the
keys). RUNS/NAME/ then holds comparison.md, .svg, .html and .json, and a
run folder for each store at each point, which `coord analyze` reads.

A plan with the key `measure` searches nothing: each store runs one experiment at
each point, with the point's `threads`, for the time of the SLA, as `coord run` does
(traces/figure-11.toml measures unpredictable reads). ${NAME} and ${NAME:-default} in
the URLs of a plan stand for variables of the environment.

Mind the disk: 10,000 members with images of 500 KB are 5 GB, and SQLite keeps them
twice while it is rated. Take fewer: --set data.members=1000. The file of a store
that the plan gives no path is removed when it is done.

Exit code 3 when a store failed or could not be measured at some point; when stores are
rated, 1 when one keeps the SLA at no point.")]
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
    /// Which replayers do the work.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Continue a comparison: do what is missing or failed
    #[arg(long)]
    pub resume: bool,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Plain lines alone, on a terminal too
    #[arg(long)]
    pub quiet: bool,
}
