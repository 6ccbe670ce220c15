//! What the user types: the command line, before anything is looked up.

mod compare;
mod deck;
mod fleet;
mod rate;
mod run;
mod shell;
mod simulate;
mod workload;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

pub use compare::CompareArgs;
pub use deck::DeckArgs;
pub use fleet::{CertsArgs, CollectArgs, DEFAULT_RETRIES, FleetArgs, SecretArgs};
pub use rate::{BetweenArg, By, RateArgs};
pub use run::RunArgs;
pub use shell::{CompletionsArgs, ManArgs};
pub use simulate::{Curve, SimulateArgs};
pub use workload::WorkloadArgs;

/// Rates data stores: the load they take, and the wrong answers they give.
#[derive(Debug, Parser)]
#[command(
    name = "encore",
    version,
    after_help = "\
Examples:
  encore rate                                  rate SQLite with the quickstart workload
  encore deck                                  do all of this in a browser
  encore rate --sla \"99% < 10ms, 0.01% unpredictable, 30s\"
  encore run traces/quickstart.toml --store memory: --threads 8 --duration 5s
  encore compare traces/figure-4.toml          rate several designs side by side
  encore analyze summary runs/NAME             show the results of a run
  encore simulate --compare                    count a rating's experiments
  encore trace gen SPEC.toml                   generate a trace set

Exit codes: 0 success, 1 the SLA was missed or a violation was found,
2 wrong usage or input, 3 the tool or a store failed, or all experiments of a
rating were void, 130 interrupted."
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search a store's SoAR and Socialites ratings, or its highest arrival rate
    Rate(RateArgs),
    /// Run one experiment and judge it
    Run(RunArgs),
    /// Try the search of a rating on a formula instead of a store
    Simulate(SimulateArgs),
    /// Rate or measure several stores or designs with the same trace sets, side by side
    Compare(CompareArgs),
    /// Configure, start, watch and compare runs in a browser
    Deck(DeckArgs),
    /// Make certificates for replayers on other machines
    Certs(CertsArgs),
    /// Fetch the logs of a run that replayers still have
    Collect(CollectArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Write the manual pages of all commands to a folder
    Man(ManArgs),
    /// Generate and inspect trace sets
    #[command(disable_help_flag = true)]
    Trace(ToolArgs),
    /// Load a store and replay a trace set
    #[command(disable_help_flag = true)]
    Replay(ToolArgs),
    /// Ask questions about runs
    #[command(disable_help_flag = true)]
    Analyze(ToolArgs),
    /// Run as a replayer that the coordinator has started on this machine
    #[command(hide = true, disable_help_flag = true)]
    Replayer(ToolArgs),
}

impl Command {
    /// Whether `--quiet` disables the live progress display.
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
    /// Arguments of the tool, passed on unchanged; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
