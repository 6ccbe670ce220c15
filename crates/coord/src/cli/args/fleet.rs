//! The replayers of a run, `encore certs` and `encore collect`.

use std::path::PathBuf;

use clap::Args;

use crate::fleet::Address;

/// The default of [`FleetArgs::retries`].
pub const DEFAULT_RETRIES: u32 = 2;

/// Which replayers do the work.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetArgs {
    /// Address of a replayer that was started with `encore replay serve`; append *2 for twice the
    /// share of the work; may be repeated [default: a process on this machine]
    #[arg(help_heading = "Replayers", long = "replayer", value_name = "HOST:PORT[*W]")]
    pub replayers: Vec<Address>,
    /// How to connect to them.
    #[command(flatten)]
    pub secrets: SecretArgs,
    /// Use only the first N replayers; without --replayer, start N processes on this machine
    /// [default: every --replayer, or one process]
    #[arg(help_heading = "Replayers", long = "replayers", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: Option<u32>,
    /// Measure the speed of each replayer against a store that answers at once, and split the
    /// work in proportion
    #[arg(help_heading = "Replayers", long)]
    pub calibrate: bool,
    /// Leave the logs with the replayers and transfer only their summaries; `encore collect`
    /// fetches the logs later
    #[arg(help_heading = "Replayers", long)]
    pub leave_logs: bool,
    /// Repeat up to N experiments of the run when a replayer is lost
    #[arg(help_heading = "Replayers", long, value_name = "N", default_value_t = DEFAULT_RETRIES)]
    pub retries: u32,
}

/// How to connect to replayers on other machines: certificates, or a secret.
#[derive(Debug, Clone, Default, Args)]
pub struct SecretArgs {
    /// Folder with ca.pem, coordinator.pem and coordinator.key, made by `encore certs`, for
    /// replayers that were started with --certs
    #[arg(help_heading = "Replayers", long, value_name = "DIR", requires = "replayers")]
    pub certs: Option<PathBuf>,
    /// File with the secret of replayers that were started with --token-file
    #[arg(help_heading = "Replayers", long, value_name = "FILE", requires = "replayers")]
    pub token_file: Option<PathBuf>,
}

/// `encore certs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  encore certs certs --host load1 --host load2      hosts as named in --replayer
  encore certs certs --host 10.0.0.5 --host 10.0.0.6

Creates a private certificate authority and three certificates, valid for ten
years. Copy ca.pem, replayer.pem and replayer.key to each load host and start
`encore replay serve --certs DIR` there; `encore rate --certs DIR` uses ca.pem,
coordinator.pem and coordinator.key; `encore deck --certs DIR` uses deck.pem and
deck.key, and browsers import ca.pem. None needs ca.key: keep it elsewhere.")]
pub struct CertsArgs {
    /// Folder for the eight files
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Name or address by which the coordinator reaches a replayer, or a browser the deck; may
    /// be repeated [default: this machine alone]
    #[arg(long = "host", value_name = "HOST", allow_hyphen_values = true)]
    pub hosts: Vec<String>,
}

/// `encore collect`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  encore collect runs/bg-1 --replayer load1:7070 --replayer load2:7070 --certs certs

Fetches the logs of a run made with --leave-logs, or of one whose coordinator
ended before it had fetched all. Logs that are here already are kept. Afterwards
run `encore analyze summary runs/bg-1`.")]
pub struct CollectArgs {
    /// The run folder
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Address of a replayer that took part in the run; may be repeated
    #[arg(long = "replayer", value_name = "HOST:PORT", required = true)]
    pub replayers: Vec<Address>,
    /// How to connect to them.
    #[command(flatten)]
    pub secrets: SecretArgs,
}
