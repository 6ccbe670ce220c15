//! The command line of `replayer`: one file a command, and what they share.

mod digest;
mod interrupt;
mod load;
mod output;
pub mod pace;
mod report;
mod run;
mod serve;
mod target;
pub mod transactions;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use schemas::program;
use schemas::terminal::complain;

use crate::experiment::ExperimentError;
use crate::recording;
use crate::service::Misuse;
use crate::stores::{Blame, StoreError};
use run::RunArgs;
use serve::ServeArgs;
use target::Target;

const EXAMPLES: &str = "Examples:
  encore replay load --trace quickstart.trace --store sqlite:store.db
  encore replay run --trace quickstart.trace --store sqlite:store.db -T 8 --duration 10s -o runs/first
  encore replay run --trace quickstart.trace --store sqlite:store.db -T 8 --duration 10s \\
      --continue --warmup 500000ops -o runs/first
  encore replay digest --trace quickstart.trace --store sqlite:store.db

Stores:
  sqlite:PATH   one file; journal=wal|delete, synchronous=full|normal|off, busy_ms=N
  postgres://USER:PASSWORD@HOST:PORT/DATABASE
                synchronous_commit=on|off|…, isolation=…, reset=template|reload
  mysql://USER:PASSWORD@HOST:PORT/DATABASE
                MariaDB or MySQL; isolation=…, reset=copy|reload
  mongodb://HOST:PORT/DATABASE
                comments=embedded|collection, transactions=off|on, reset=copy|reload,
                w=…, journal=…, readConcernLevel=…, readPreference=…
  casql+…       one of the first three with memcached in front: memcached=HOST:PORT,
                consistency=invalidate|ttl|lease, ttl_s=N, compress=off|on
  Table design of relational stores: friendship=two-row|one-row,
  images=inline|table|none, counts=computed|stored, indexes=on|off. Their transactions:
  locking=written|none|read. Stores on servers also have timeout_ms=N and connections=N. Encore
  overwrites these databases: `load` creates a missing one, refuses one that contains
  other tables, and empties the memcached of casql+.
  memory:       reference store in this process; stale=P, lost=P, error=P, unknown=P,
                lag_ms=N, invert_ms=N, latency_us=N, stall_ms=N, seed=N inject faults;
                isolation=…, write_locks=…, promise=…
  null:         answers at once; measures the replayer

For a second experiment on the same store, use --load (reset the store) or --continue
(resume the trace where the first experiment stopped).

Exit codes: 0 success, 2 wrong usage or input, 3 the replayer or the store failed.";

#[derive(Parser)]
#[command(name = "replayer", version, about = "Replays a trace set against a data store and logs every operation", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load the trace set's data set into the store; this overwrites what Encore loaded before
    Load(Target),
    /// Run one experiment and write its operation log into a run folder
    Run(RunArgs),
    /// Print the digest of the state that the store holds
    ///
    /// `encore trace digest` prints the digest that the trace must leave.
    Digest(Target),
    /// Serve a coordinator
    Serve(ServeArgs),
}

/// The command line of this tool, as a part of the whole program's.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the command line; the exit codes are those of the help text.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match program::parse("encore replay", args) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match execute(cli.command) {
        Ok(code) => code,
        Err(error) => {
            // Every error has all its text in one message; printing its sources would repeat it.
            complain("error", &error);
            ExitCode::from(if is_usage(&error) { 2 } else { 3 })
        }
    }
}

fn is_usage(error: &anyhow::Error) -> bool {
    if error.is::<Misuse>() {
        return true;
    }
    error.downcast_ref::<ExperimentError>().is_some_and(ExperimentError::is_usage)
        || error.downcast_ref::<StoreError>().is_some_and(|e| e.blame != Blame::Store)
        || error.downcast_ref::<schemas::manifest::TraceSetError>().is_some()
        || error.downcast_ref::<recording::RecordingError>().is_some_and(recording::RecordingError::is_usage)
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Load(target) => load::load(&target),
        Command::Run(args) => run::run(&args),
        Command::Digest(target) => digest::digest(&target),
        Command::Serve(args) => serve::serve(&args),
    }
}
