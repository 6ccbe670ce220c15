//! What each command does: resolves its arguments, calls the module that does the work, prints the
//! result, and returns the exit code.

use std::path::Path;
use std::process::ExitCode;

use analyzer::checks::{self, Check};
use schemas::program;
use schemas::run::RunFolder;
use schemas::terminal::complain;
use schemas::verdict::Ruling;

use super::args::{
    CertsArgs, CollectArgs, CompareArgs, CompletionsArgs, FleetArgs, ManArgs, RateArgs, RunArgs, SimulateArgs,
    WorkloadArgs,
};
use super::next_commands::STORE_VARIABLE;
use super::resolve::{self, Invocation, Simulated};
use super::{deck, shell};
use crate::deck::Running;
use crate::failure::Failure;
use crate::fleet::certs;
use crate::run::setting::Setting;
use crate::run::{collect, single};
use crate::simulate::by_rate;
use crate::{compare, live, rate, simulate};

pub(super) fn rate_store(args: &RateArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let rating = match &args.resume {
        Some(run) => resolve::resumed(run, args, invocation)?,
        None => resolve::rating(args, invocation)?,
    };
    let deck = shown(&rating.setting, &args.workload)?;
    let document = match rate::rate(rating) {
        Err(failure) => return failed(&failure, deck),
        Ok(document) => document,
    };
    if args.workload.json {
        print_json(&document)?;
    }
    let required: Vec<Check> = args.fail_below.map(|least| rate::at_least(&document, least)).into_iter().collect();
    if let Some(path) = &args.junit {
        checks::write_junit(path, "encore rate", &required)?;
    }
    let failures = checks::failures(&required, checks::in_github_actions());
    failures.iter().for_each(|failure| eprintln!("{failure}"));
    deck::end(deck)?;
    Ok(match document.exit_code() {
        0 if !failures.is_empty() => ExitCode::from(1),
        code => ExitCode::from(code),
    })
}

/// Starts what shows a run to others while it runs: the deck, and the server of its metrics.
fn shown(setting: &Setting, args: &WorkloadArgs) -> Result<Option<Running>, Failure> {
    if let (Some(address), Some(board)) = (args.metrics_listen, &setting.board) {
        let address = live::listen(address, board.clone())?;
        eprintln!("metrics  http://{address}/metrics");
    }
    let runs = setting.folder.parent().unwrap_or(Path::new(""));
    let deck = deck::beside(args.deck, runs, &setting.name)?;
    deck.iter().for_each(|deck| deck::announce(deck, &setting.name));
    Ok(deck)
}

/// Reports why a run has ended early, and shows it to those who watch the run.
fn failed(failure: &Failure, deck: Option<Running>) -> Result<ExitCode, Failure> {
    let code = match failure {
        Failure::Interrupted { run: Some(_) } => to_be_resumed(failure),
        _ => {
            complain("error", failure);
            failure.exit_code()
        }
    };
    deck.map_or(Ok(()), Running::end_with_failure)?;
    Ok(code)
}

/// Reports an interrupted rating, and the command that resumes it.
fn to_be_resumed(failure: &Failure) -> ExitCode {
    complain("error", failure);
    if let Failure::Interrupted { run: Some(run) } = failure {
        // A typed password is not in the run folder, so the command needs it again; `${VARIABLE}` is.
        let document = RunFolder::new(run).read_document().ok();
        let is_secret = document.iter().flat_map(|document| &document.command).any(|word| word.contains("***"));
        let store = document.map(|document| document.store).unwrap_or_default();
        let (variable, encore) = (STORE_VARIABLE, program::to_type());
        let again = if is_secret {
            eprintln!("export {variable}={}    # replace *** with the password", program::quoted(&store));
            format!(" --store '${{{variable}}}'")
        } else {
            String::new()
        };
        eprintln!("resume with: {encore} rate --resume {}{again}", program::quoted(&run.display().to_string()));
    }
    failure.exit_code()
}

pub(super) fn run_once(args: &RunArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let single = resolve::single(args, invocation)?;
    let deck = shown(&single.setting, &args.workload)?;
    let verdict = match single::run(single) {
        Err(failure) => return failed(&failure, deck),
        Ok(verdict) => verdict,
    };
    if args.workload.json {
        print_json(&verdict)?;
    }
    deck::end(deck)?;
    Ok(ExitCode::from(match verdict.ruling {
        Ruling::Pass => u8::from(verdict.figures.breaks_conditions()),
        Ruling::Fail => 1,
        Ruling::Void => 3,
    }))
}

pub(super) fn make_certificates(args: &CertsArgs) -> Result<ExitCode, Failure> {
    let made = certs::make(&args.folder, &args.hosts)?;
    let names: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    let encore = program::to_type();
    print(&format!(
        "{}\nnext:\n  on each load host, after copying ca.pem, replayer.pem and replayer.key to DIR:\n    \
         {encore} replay serve --listen ADDRESS:7070 --certs DIR\n  on this machine:\n    \
         {encore} rate --replayer HOST:7070 --certs {} --store URL",
        names.join("\n"),
        args.folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn simulate_store(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    let (document, table) = match resolve::simulation(args)? {
        Simulated::Threads(setup) => {
            let simulation = simulate::simulate(&setup);
            (simulate::document(&simulation), simulate::table(&simulation))
        }
        Simulated::Rate(setup) => {
            let simulation = by_rate::simulate(setup);
            (by_rate::document(&simulation), by_rate::table(&simulation))
        }
    };
    if args.json {
        print_json(&document)?
    } else {
        print(&table)?
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn compare_stores(args: &CompareArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let document = compare::compare(&resolve::comparison(args, invocation)?, args.json)?;
    if args.json {
        print_json(&document)?;
    }
    compare::failures(&document).iter().for_each(|failure| complain("error", failure));
    Ok(ExitCode::from(compare::exit_code(&document)))
}

pub(super) fn collect_logs(args: &CollectArgs) -> Result<ExitCode, Failure> {
    let run = RunFolder::new(&args.run);
    let document = run.read_document().map_err(Failure::usage)?;
    let (replayers, secrets) = (args.replayers.clone(), args.secrets.clone());
    let setting = resolve::fleet(&FleetArgs { replayers, secrets, ..FleetArgs::default() })?;
    let fetched = collect::collect(&run, &document.fleet_name(), &setting)?;
    let text = match fetched {
        0 => format!("nothing to fetch: {} has all logs of these replayers", args.run.display()),
        n => {
            let logs = if n == 1 { "log" } else { "logs" };
            format!("fetched {n} {logs}\nnext:\n  {} analyze summary {}", program::to_type(), args.run.display())
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print_completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    print(&shell::completions(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn write_manual(args: &ManArgs) -> Result<ExitCode, Failure> {
    shell::manual(&args.folder)?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::tool)?;
    print(&text)
}

fn print(text: &str) -> Result<(), Failure> {
    schemas::terminal::print(&format!("{text}\n")).map_err(Failure::tool)
}
