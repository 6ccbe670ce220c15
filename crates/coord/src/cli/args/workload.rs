//! What a run works on, for `encore rate` and `encore run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use replayer::cli::transactions::TransactionArgs;
use schemas::plan::Warmup;
use schemas::sla::Sla;

use super::FleetArgs;

/// The flags that `encore rate` and `encore run` share: workload, store, replayers and output.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkloadArgs {
    /// Use this trace set as it is, instead of the one generated from the spec: a folder, or a URL
    /// (s3://, gs://), which is fetched into RUNS/traces
    #[arg(help_heading = "Workload", long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Override a value of the spec, named by its dotted key; may be repeated
    #[arg(help_heading = "Workload", long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Warm-up before each experiment is measured: a number of sessions (500), a share of the
    /// trace (10%) or operations (500000ops) [default: the warm-up of an imported trace set, else 0]
    #[arg(help_heading = "Workload", long, value_name = "N|N%|Nops")]
    pub warmup: Option<Warmup>,
    /// Allow concurrent sessions for the same actor
    #[arg(help_heading = "Workload", long)]
    pub shared_actors: bool,
    /// How transactions are run.
    #[command(flatten, next_help_heading = "Workload")]
    pub transactions: TransactionArgs,
    /// Do not read all items after an experiment, and check no conditions of the data. The default reads
    /// them if the final state depends on races (key-value workloads), and checks the conditions that a
    /// trace set of SQL statements has; in a search only with --between continue
    #[arg(help_heading = "Workload", long)]
    pub no_closing_read: bool,
    /// URL of the store; '${VARIABLE}' is replaced by an environment variable, which keeps a
    /// password out of process lists [default: sqlite:RUNS/NAME/store.db]
    #[arg(help_heading = "Store and SLA", long, value_name = "URL")]
    pub store: Option<String>,
    /// Run on the records that YCSB or go-ycsb has loaded into the store; Encore never overwrites them.
    /// Experiments continue the trace. This machine must reach the store
    #[arg(help_heading = "Store and SLA", long, requires = "store")]
    pub keep_data: bool,
    /// Service level agreement [default: the spec's "sla", else "95% < 100ms, 0.1% unpredictable,
    /// 10s"]
    #[arg(help_heading = "Store and SLA", long, value_name = "SLA")]
    pub sla: Option<Sla>,
    /// Operating-system threads per replayer, at most one per fragment
    #[arg(help_heading = "Replayers", long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Which replayers do the work.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Name of the run [default: the spec's name and the time]
    #[arg(help_heading = "Run", long, value_name = "NAME")]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(help_heading = "Run", long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Publish the run in object storage too, as URL/NAME (s3://BUCKET/PREFIX, gs://), after each
    /// experiment. With --leave-logs, replayers that were started with --share URL publish their logs
    /// themselves, and verdicts are left to `encore analyze fragment` and `merge` [default: nowhere]
    #[arg(help_heading = "Run", long, value_name = "URL", value_parser = publish_to)]
    pub publish: Option<storage::Url>,
    /// Print a line with the figures of the running experiment every SECONDS seconds, 0.5 or more
    /// [default: none]
    #[arg(help_heading = "Output", long, value_name = "SECONDS", value_parser = monitor_interval)]
    pub monitor: Option<f64>,
    /// Show the run live in a browser, on a free port of this machine, until the run ends; if a browser
    /// shows it, a terminal waits for Ctrl-C
    #[arg(help_heading = "Output", long)]
    pub deck: bool,
    /// Serve the figures of the run at http://ADDR/metrics for Prometheus (OpenMetrics text), on a
    /// loopback address; port 0 picks a free port [default: none]
    #[arg(help_heading = "Output", long, value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,
    /// Print one JSON object on stdout, and nothing else there
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Disable the live progress display
    #[arg(help_heading = "Output", long)]
    pub quiet: bool,
}

/// A place in object storage.
fn publish_to(text: &str) -> Result<storage::Url, String> {
    match storage::Place::parse(text) {
        Ok(storage::Place::Remote(url)) => Ok(url),
        Ok(storage::Place::Local(_)) => {
            Err("a run is in its folder anyway; give s3://BUCKET/PREFIX or gs://BUCKET/PREFIX".into())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The shortest interval between two lines of `--monitor`: replayers report twice a second.
const MONITOR_S_MIN: f64 = 0.5;

fn monitor_interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= MONITOR_S_MIN);
    seconds.ok_or_else(|| format!("use a number of seconds, at least {MONITOR_S_MIN}"))
}
