//! The program: parse, resolve, do, report.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use schemas::terminal::complain;
use schemas::verdict::{RatingDocument, Ruling};

use crate::args::{CertsArgs, Command, CommandLine, CompareArgs, RateArgs, RunArgs, SimulateArgs};
use crate::failure::Failure;
use crate::resolve::{self, Surroundings};
use crate::{certs, collect, compare, live, rate, resume, simulate, single};

/// Runs the program with its arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let command = args.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let line = match CommandLine::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            // A closed terminal cannot be told either.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if line.command.is_quiet() {
        live::be_quiet();
    }
    let around = Surroundings::current(command);
    let result = match line.command {
        Command::Rate(args) => rate_store(&args, &around),
        Command::Run(args) => run_once(&args, &around),
        Command::Simulate(args) => simulate_store(&args),
        Command::Compare(args) => compare_stores(&args, &around),
        Command::Certs(args) => make_certificates(&args),
        Command::Collect(args) => collect::collect(&args).and_then(|told| print(&told).map(|()| ExitCode::SUCCESS)),
        Command::Trace(tool) => return tracegen::cli::main(named("tracegen", tool.arguments)),
        Command::Replay(tool) | Command::Replayer(tool) => {
            return replayer::cli::main(named("replayer", tool.arguments));
        }
        Command::Analyze(tool) => return analyzer::cli::main(named("analyzer", tool.arguments)),
    };
    result.unwrap_or_else(|failure| {
        complain("error", &failure);
        failure.exit_code()
    })
}

/// The arguments of a tool that is called as `name`.
fn named(name: &str, arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from(name)).chain(arguments)
}

fn rate_store(args: &RateArgs, around: &Surroundings) -> Result<ExitCode, Failure> {
    let rating = match &args.resume {
        Some(run) => resume::rating(run, args, around)?,
        None => resolve::rating(args, around)?,
    };
    let document = rate::rate(rating)?;
    if args.workload.json {
        print_json(&document)?;
    }
    Ok(ExitCode::from(exit_code_of(&document)))
}

/// 3 when nothing could be measured, 1 when no number of threads keeps the SLA, else 0.
fn exit_code_of(document: &RatingDocument) -> u8 {
    let ratings = || [&document.soar, &document.socialites].into_iter().flatten();
    match () {
        () if ratings().any(|rating| rating.unmeasured) => 3,
        () if ratings().any(|rating| rating.value <= 0.0) => 1,
        () => 0,
    }
}

fn run_once(args: &RunArgs, around: &Surroundings) -> Result<ExitCode, Failure> {
    let verdict = single::run(resolve::single(args, around)?)?;
    if args.workload.json {
        print_json(&verdict)?;
    }
    Ok(if verdict.ruling == Ruling::Pass { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn make_certificates(args: &CertsArgs) -> Result<ExitCode, Failure> {
    let made = certs::make(&args.folder, &args.hosts)?;
    let names: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    print(&format!(
        "{}\nnext:\n  ./encore replay serve --listen ADDRESS:7070 --certs DIR    on each load host, with ca.pem, replayer.pem and replayer.key there\n  \
         ./encore rate --replayer HOST:7070 --certs {} --store URL",
        names.join("\n"),
        args.folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn simulate_store(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    let simulation = simulate::simulate(args)?;
    if args.json {
        print_json(&simulate::document(&simulation))?;
    } else {
        print(&simulate::table(&simulation))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare_stores(args: &CompareArgs, around: &Surroundings) -> Result<ExitCode, Failure> {
    let document = compare::compare(args, around)?;
    if args.json {
        print_json(&document)?;
    }
    compare::failures(&document).iter().for_each(|failure| complain("error", failure));
    Ok(ExitCode::from(compare::exit_code(&document)))
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::tool)?;
    print(&text)
}

fn print(text: &str) -> Result<(), Failure> {
    schemas::terminal::print(&format!("{text}\n")).map_err(Failure::tool)
}
