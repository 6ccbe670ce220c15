//! The commands of the analyzer and their flags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use schemas::sla::Sla;

use crate::export;
use crate::sql::Format;

/// Compute metrics, verdicts and unpredictable reads from operation logs.
#[derive(Debug, Parser)]
#[command(
    name = "analyzer",
    version,
    after_help = "\
Examples:
  encore analyze summary runs/NAME
  encore analyze summary s3://bucket/runs/NAME             a run in object storage
  encore analyze validate runs/NAME --experiment 7
  encore analyze isolation runs/NAME
  encore analyze sql runs/NAME \"SELECT operation, count(*) FROM operations GROUP BY ALL\"

Exit codes: 0 success, 1 SLA missed, unpredictable reads found, or isolation weaker than promised,
2 wrong usage or input, 3 the tool itself failed."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Keep files of runs in object storage (s3://, gs://) in this folder while the command runs. [default: the
    /// system's folder for temporary files]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) scratch: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Summary(Summary),
    Validate(Validate),
    Isolation(Isolation),
    Consistency(Consistency),
    Sql(Sql),
    Report(Report),
    Export(Export),
    Compare(Compare),
    Summarize(Summarize),
    Tasks(Tasks),
    Fragment(Fragment),
    Merge(Merge),
    PlanCluster(PlanCluster),
}

impl Command {
    /// The runs that the command reads, or writes to.
    pub(super) fn runs(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Command::Summary(arguments) => vec![&mut arguments.run],
            Command::Validate(arguments) => vec![&mut arguments.run],
            Command::Isolation(arguments) => vec![&mut arguments.run],
            Command::Consistency(arguments) => vec![&mut arguments.run],
            Command::Sql(arguments) => vec![&mut arguments.run],
            Command::Report(arguments) => vec![&mut arguments.run],
            Command::Export(arguments) => vec![&mut arguments.run],
            Command::Compare(arguments) => arguments.runs.iter_mut().collect(),
            // They need only a few files of a run.
            Command::Tasks(_) | Command::Fragment(_) | Command::Merge(_) => Vec::new(),
            // One is for the machine that has the logs, the other needs no run.
            Command::Summarize(_) | Command::PlanCluster(_) => Vec::new(),
        }
    }
}

/// Print the metrics and verdicts of a run; analyze experiments that are not analyzed yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze summary runs/NAME
  encore analyze summary runs/NAME --sla \"99% < 10ms, 0.1% unpredictable\"
  encore analyze summary runs/NAME --experiment 7 --json")]
pub(super) struct Summary {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// Use this SLA for the verdicts. Verdicts that the run already has stay unchanged. [default:
    /// the run's SLA]
    #[arg(long)]
    pub(super) sla: Option<Sla>,
    /// Show the operations of this experiment. [default: the one that the ratings rest on, else the
    /// last]
    #[arg(long)]
    pub(super) experiment: Option<u32>,
    /// Print one JSON object: run, selected (the experiment shown) and verdicts (one per
    /// experiment).
    #[arg(long)]
    pub(super) json: bool,
}

/// Print the unpredictable reads of an experiment and the writes that prove them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze validate runs/NAME
  encore analyze validate runs/NAME --experiment 7 --worst 20")]
pub(super) struct Validate {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// The experiment. [default: the last one]
    #[arg(long)]
    pub(super) experiment: Option<u32>,
    /// How many of the worst unpredictable reads to show.
    #[arg(long, default_value_t = 5)]
    pub(super) worst: usize,
    /// Print one JSON object: experiment, reads, unpredictable_reads, warmup_unpredictable_reads,
    /// missing, closing (what the closing read found) and worst (the worst reads with their writes).
    #[arg(long)]
    pub(super) json: bool,
}

/// Print which isolation the transactions show, and the smallest anomaly of each class.
///
/// Counts anomalies by class and experiment, and by second of one experiment. Compares the strongest
/// level of isolation that the transactions are consistent with to the level that the store promises.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze isolation runs/NAME
  encore analyze isolation runs/NAME --experiment 7 --format json

Exit code 1 if an experiment shows a weaker level than the store promises.")]
pub(super) struct Isolation {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// Only this experiment. [default: all; seconds and anomalies of the last one with anomalies]
    #[arg(long)]
    pub(super) experiment: Option<u32>,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub(super) format: Form,
}

/// Text for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// Tables and sentences.
    Text,
    /// One JSON object: promised (the level), and experiments.
    Json,
}

/// Print how stale reads were, and how far registers are from linearizable.
///
/// Prints Γ, Δ and k of the registers that an experiment wrote, k-staleness and t-staleness of their
/// reads, t-visibility of their writes, the share of fresh reads by the time since the last write, the session
/// guarantees by thread and by actor, and the availability. The registers that are farthest from
/// linearizable come with the operations that prove it. Workloads of the kv family have registers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze consistency runs/NAME
  encore analyze consistency runs/NAME --experiment 7 --worst 10
  encore analyze consistency runs/NAME --json

The reference page on metrics has the definitions.")]
pub(super) struct Consistency {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// The experiment. [default: the last one]
    #[arg(long)]
    pub(super) experiment: Option<u32>,
    /// How many of the registers that are not linearizable to show, at most 10.
    #[arg(long, default_value_t = 3)]
    pub(super) worst: usize,
    /// Print one JSON object: experiment, consistency (the figures of the registers; times in
    /// nanoseconds), within_gamma_percent (with a limit of Γ in the SLA) and availability.
    #[arg(long)]
    pub(super) json: bool,
}

/// Run a SELECT over a run, without changing the run.
///
/// Views: operations (one row per operation), sessions, experiments, timeline (one row per slice
/// of time), spectrum (one row per response time), service_spectrum (open loop: one row per service
/// time), item_updates and item_reads (one row per item that an operation changed or observed),
/// freshness (by time since the last update), register_writes and register_reads (kv: one row per
/// field written or read), read_staleness and register_staleness (by read and by field),
/// register_values and registers (kv: one row per value written and per field), consistency,
/// gamma_over_time, gamma_spectrum and session_guarantees (from the verdict), availability,
/// excused_reads (unpredictable reads that are not too stale for the SLA), closing_reads (one row
/// per item that was read after an experiment), unpredictable (one row per wrong item of a read),
/// isolation_anomalies (one row per second and class of anomalies of transactions). Experiments
/// that are not analyzed yet are analyzed first. For a comparison: cells (one row per store and
/// point).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze sql runs/NAME \"SELECT * FROM experiments\"
  encore analyze sql runs/NAME \"FROM timeline\" --format csv
  encore analyze sql runs/NAME \"SELECT max(response_ns) FROM operations\"
  encore analyze sql runs/NAME \"DESCRIBE operations\"
  encore analyze sql runs/figure-6 \"SELECT point, store, soar FROM cells\"
  encore analyze sql runs/NAME --definitions         the views, for a DuckDB of your own
  encore analyze sql s3://bucket/runs/NAME \"FROM experiments\" --only-documents")]
pub(super) struct Sql {
    /// The run or the comparison: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// One SQL statement that only reads.
    #[arg(allow_hyphen_values = true, required_unless_present = "definitions")]
    pub(super) statement: Option<String>,
    /// Print the statements that define the tables and views, and run none. The tables
    /// `experiments` and `cells` are defined without their rows.
    #[arg(long, conflicts_with_all = ["statement", "format"])]
    pub(super) definitions: bool,
    /// Answer from documents alone: `experiments` and what else comes from verdicts. Views of operations
    /// have no rows, and no rows are fetched from object storage.
    #[arg(long, conflicts_with = "definitions")]
    pub(super) only_documents: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// The memory limit of DuckDB, such as 4GiB. DuckDB writes data above it to the folder for
    /// temporary files. [default: 80% of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory_limit: Option<String>,
    /// Stop after so many rows. [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_rows: Option<u64>,
}

/// Write a run as one HTML page with charts; the page loads nothing from elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze report runs/NAME          writes runs/NAME/report.html

The page shows the SQL statement below each chart.")]
pub(super) struct Report {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
}

/// Write rows, percentiles or metrics in a format of other tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze export runs/NAME --format parquet -o operations.parquet
  encore analyze export runs/NAME --format csv --rows timeline --experiment 7
  encore analyze export runs/NAME --format hgrm --operation view_profile > view_profile.hgrm
  encore analyze export runs/NAME --format hgrm --times service > service.hgrm
  encore analyze export runs/NAME --format openmetrics -o encore.prom")]
pub(super) struct Export {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// The output format.
    #[arg(long, value_enum)]
    pub(super) format: export::Kind,
    /// The rows to write, in formats with rows. [default: operations]
    #[arg(long, value_enum)]
    pub(super) rows: Option<export::Rows>,
    /// Only this experiment. [default: all; for percentiles the last one]
    #[arg(long)]
    pub(super) experiment: Option<u32>,
    /// Only this operation. [default: all]
    #[arg(long)]
    pub(super) operation: Option<String>,
    /// The times of percentiles: they differ in an open loop. [default: response]
    #[arg(long, value_enum)]
    pub(super) times: Option<export::Times>,
    /// Write to this file. [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// Compare runs: their metrics, and whether the differences are more than chance.
///
/// For each run it takes the experiment that the run's ratings rest on, else the last one. Setup
/// differences (durability, isolation, workload, SLA, T, host) are printed first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze compare runs/before runs/after
  encore analyze compare runs/postgres runs/mysql runs/mongodb --html stores.html
  encore analyze compare runs/before runs/after --fail-if-slower 5% --junit compare.xml
  encore analyze compare runs/before runs/after --json

  encore analyze compare --results runs/postgres runs/mysql
  encore analyze compare --recorded runs/shop           a replay of an imported log, beside the log

Exit code 1 if --fail-if-slower finds a slower run, --results a difference, or --recorded a
statement that failed in the log or in the replay alone, or that was not executed.")]
pub(super) struct Compare {
    /// The runs, folders or URLs (s3://, gs://); differences are relative to the first one.
    #[arg(required = true, num_args = 1..)]
    pub(super) runs: Vec<PathBuf>,
    /// Also write the comparison to this file, as an HTML page with charts.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Exit with code 1 if a run is slower than the first one by more than this percentage,
    /// beyond chance: lower throughput or SoAR, or a higher p95.
    #[arg(long, value_name = "PERCENT", value_parser = schemas::sla::percent)]
    pub(super) fail_if_slower: Option<f64>,
    /// Write the results of --fail-if-slower to this file, as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if_slower")]
    pub(super) junit: Option<PathBuf>,
    /// Compare what the statements of two runs returned instead, one by one (family sql): outcomes, numbers of
    /// rows, and hashes of the rows. A statement that ran in one of the runs only is a difference.
    #[arg(long, conflicts_with_all = ["html", "fail_if_slower", "junit"])]
    pub(super) results: bool,
    /// Compare one run with what the log recorded that its trace set was imported from: by statement, how long it took,
    /// and how often it failed.
    #[arg(long, conflicts_with_all = ["results", "html", "fail_if_slower", "junit"])]
    pub(super) recorded: bool,
    /// Print one JSON object: unequal (sentences), figures (one per metric and run), and ratings
    /// (by run). With --results: compared, equal, only_one, by_statement and first (differences).
    /// With --recorded: statements, not_executed, other_outcome and by_statement.
    #[arg(long)]
    pub(super) json: bool,
    /// The names of the runs, as the user wrote them.
    #[arg(skip)]
    pub(super) names: Vec<String>,
}

impl Compare {
    /// The runs, each with its name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.runs.iter().map(PathBuf::as_path).zip(self.names.iter().map(String::as_str))
    }
}

/// Summarize the logs of one experiment on the machine that has them.
///
/// Writes summary.json into the experiment's folder. With `encore rate --leave-logs`, each
/// replayer runs this command and the coordinator fetches the result.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze summarize replayer-work/runs/bg-1-1790000000/experiments/0007-T64
  encore analyze summarize runs/NAME/experiments/0007-T64 --sla \"99% < 10ms\"")]
pub(super) struct Summarize {
    /// The experiment's folder, with plan.json and log/.
    pub(super) experiment: PathBuf,
    /// The SLA; its response time limit decides which operations count as in time. [default: 95%
    /// < 100ms, 0.1% unpredictable, 10s]
    #[arg(long)]
    pub(super) sla: Option<Sla>,
    /// The replay.json of all replayers, which gives the measured part. [default: the
    /// experiment's own]
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

/// Print the fragments that are to be analyzed, a line each: the arguments of one `encore analyze
/// fragment`. Experiments that have a verdict need none.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze tasks runs/NAME
  encore analyze tasks s3://bucket/runs/NAME | \\
      xargs -r -P 8 -L 1 encore analyze fragment s3://bucket/runs/NAME
  encore analyze tasks runs/NAME --experiment 7      again, even if it has a verdict")]
pub(super) struct Tasks {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// Only this experiment, even if it has a verdict. [default: all without a verdict]
    #[arg(long, value_name = "N")]
    pub(super) experiment: Option<u32>,
    /// Print one JSON array instead, of all experiments: experiment, has_verdict, fragments (their
    /// numbers), and sealed (the bytes of each sealed table that the verdict names, by its path).
    #[arg(long)]
    pub(super) json: bool,
}

/// Analyze one fragment of an experiment by itself: seal its tables and write its summary. Fragments
/// can be analyzed on any machine, in any order, and twice; `encore analyze merge` makes the
/// verdict of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze fragment runs/NAME --experiment 7 --fragment 0
  encore analyze fragment /mnt/runs/NAME --experiment 7 --fragment 3 --trace /mnt/NAME.trace
  encore analyze fragment s3://bucket/runs/x --experiment 7 --fragment 3 --trace s3://bucket/x.trace")]
pub(super) struct Fragment {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// The experiment.
    #[arg(long, value_name = "N")]
    pub(super) experiment: u32,
    /// The fragment.
    #[arg(long, value_name = "N")]
    pub(super) fragment: u32,
    /// The trace set, a folder or its URL (s3://, gs://), if it is not where the replayer had it.
    #[arg(long, value_name = "DIR")]
    pub(super) trace: Option<PathBuf>,
    /// The SLA; its limits decide which operations count. [default: the run's SLA]
    #[arg(long)]
    pub(super) sla: Option<Sla>,
}

/// Make the verdicts of experiments whose fragments have been analyzed by themselves. They are the
/// same as those of `encore analyze summary`, to the last digit.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze merge runs/NAME
  encore analyze merge /mnt/runs/NAME --experiment 7 --trace /mnt/NAME.trace --json
  encore analyze merge s3://bucket/runs/NAME --trace s3://bucket/NAME.trace")]
pub(super) struct Merge {
    /// The run: a folder, or its URL (s3://, gs://).
    pub(super) run: PathBuf,
    /// Only this experiment. [default: all]
    #[arg(long, value_name = "N")]
    pub(super) experiment: Option<u32>,
    /// The trace set, a folder or its URL (s3://, gs://), if it is not where the replayer had it.
    #[arg(long, value_name = "DIR")]
    pub(super) trace: Option<PathBuf>,
    /// The SLA that the fragments were analyzed for. [default: the run's SLA]
    #[arg(long)]
    pub(super) sla: Option<Sla>,
    /// Print one JSON array: the verdicts.
    #[arg(long)]
    pub(super) json: bool,
    /// The sizes of files of the run that are not on this machine.
    #[arg(skip)]
    pub(super) elsewhere: BTreeMap<PathBuf, u64>,
}

/// Print how many hosts, how long and how many bytes a large run takes on a cluster, from what a
/// task and an operation cost on one machine (`benches/run cluster` measures that).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze plan-cluster
  encore analyze plan-cluster --operations 50000000000 --cores 32 --within 30m
  encore analyze plan-cluster --measured benches/cluster.json --json")]
pub(super) struct PlanCluster {
    /// The number of operations; repeat the flag for more values.
    #[arg(long, value_name = "N", default_values_t = [10_000_000_000, 1_000_000_000_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) operations: Vec<u64>,
    /// Processors of a host.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cores: u32,
    /// How long each step may take.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = within)]
    pub(super) within: Duration,
    /// The report of `benches/run cluster` on your machine. [default: the one that Encore has]
    #[arg(long, value_name = "FILE")]
    pub(super) measured: Option<PathBuf>,
    /// Print one JSON array: the plans.
    #[arg(long)]
    pub(super) json: bool,
}

/// A time of at least a second.
fn within(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|e| format!("{e}; write a time such as 30m or 2h"))?;
    if time < Duration::from_secs(1) { Err("is less than a second".into()) } else { Ok(time) }
}
