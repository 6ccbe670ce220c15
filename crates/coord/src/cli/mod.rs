//! The program: parse, resolve, do, report.

pub mod args;
mod commands;
mod deck;
pub mod environment;
mod next_commands;
pub mod resolve;
mod shell;

use std::ffi::OsString;
use std::process::ExitCode;

use schemas::program;
use schemas::terminal::complain;

use self::args::{Command, CommandLine};
use self::resolve::Invocation;
use crate::terminal;

/// Runs the program with its arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let command = schemas::program::as_typed(args.iter().cloned());
    let line: CommandLine = match program::parse("encore", args) {
        Ok(line) => line,
        Err(code) => return code,
    };
    if line.command.is_quiet() {
        terminal::be_quiet();
    }
    let invocation = Invocation::current(command);
    let result = match line.command {
        Command::Rate(args) => commands::rate_store(&args, &invocation),
        Command::Run(args) => commands::run_once(&args, &invocation),
        Command::Simulate(args) => commands::simulate_store(&args),
        Command::Compare(args) => commands::compare_stores(&args, &invocation),
        Command::Deck(args) => deck::serve(&args),
        Command::Certs(args) => commands::make_certificates(&args),
        Command::Collect(args) => commands::collect_logs(&args),
        Command::Completions(args) => commands::print_completions(&args),
        Command::Man(args) => commands::write_manual(&args),
        Command::Trace(tool) => return tracegen::cli::main(named("tracegen", tool.arguments)),
        Command::Replay(tool) | Command::Replayer(tool) => {
            return replayer::cli::main(named("replayer", tool.arguments));
        }
        Command::Analyze(tool) => return analyzer::cli::main(named("analyzer", tool.arguments)),
    };
    result.and_then(|code| terminal::all_was_said().map(|()| code)).unwrap_or_else(|failure| {
        complain("error", &failure);
        failure.exit_code()
    })
}

/// The arguments of a tool that is called as `name`.
fn named(name: &str, arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from(name)).chain(arguments)
}

#[cfg(test)]
mod tests;
