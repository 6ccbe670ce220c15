//! `encore deck`, and the flag `--deck`: what the deck needs of the command line, and the browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command as Process, ExitCode, Stdio};

use clap::CommandFactory;
use replayer::service::Token;
use schemas::program;

use super::args::{Command, CommandLine, DeckArgs};
use super::resolve::{self, Invocation};
use crate::deck::{self, Beside, Entrance, Running, Setup};
use crate::failure::Failure;

/// Serves the deck until Ctrl-C.
pub(super) fn serve(args: &DeckArgs) -> Result<ExitCode, Failure> {
    let token = args.token_file.as_deref().map(Token::read).transpose().map_err(Failure::usage)?;
    let DeckArgs { listen, certs, hosts, .. } = args.clone();
    deck::serve(setup(&args.folder, Entrance { listen, certs, hosts, token }, None), |url| {
        // Who starts the deck from a script reads this line.
        let _ = schemas::terminal::print(&format!("deck   {url}\nPress Ctrl-C to end it; runs go on.\n"));
        if !args.no_open {
            open(url);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The deck beside a run that the terminal starts, if it is asked for.
pub(super) fn beside(asked: bool, runs: &Path, run: &str) -> Result<Option<Running>, Failure> {
    if !asked {
        return Ok(None);
    }
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    deck::start(setup(runs, Entrance::loopback(free), Some(Beside::of(run)))).map(Some)
}

/// Ends it when the run has ended.
pub(super) fn end(beside: Option<Running>) -> Result<(), Failure> {
    let Some(running) = beside else { return Ok(()) };
    running.end_with_run(|url| eprintln!("deck   {url}\nPress Ctrl-C to end it."))
}

/// Says where the deck shows a run, and opens it.
pub(super) fn announce(running: &Running, run: &str) {
    let url = running.url_of(&format!("/runs/{run}?show=live"));
    eprintln!("deck   {url}");
    open(&url);
}

fn setup(folder: &Path, entrance: Entrance, beside: Option<Beside>) -> Setup {
    let mut commands = CommandLine::command();
    commands.build();
    Setup { folder: folder.to_path_buf(), entrance, beside, commands, quickstart: resolve::QUICKSTART, check }
}

/// Checks a command as [`super::main`] does before it runs one.
fn check(words: &[String]) -> Result<(), String> {
    let line: CommandLine = program::parsed("encore", words.iter().map(Into::into))?;
    let invocation = Invocation::current(words.to_vec());
    let resolved = match &line.command {
        Command::Rate(args) => match &args.resume {
            Some(run) => resolve::resumed(run, args, &invocation).map(drop),
            None => resolve::rating(args, &invocation).map(drop),
        },
        Command::Run(args) => resolve::single(args, &invocation).map(drop),
        Command::Compare(args) => resolve::comparison(args, &invocation).map(drop),
        Command::Trace(_) => return tried(words, "--print-spec"),
        _ => Err(Failure::usage("the deck starts rate, run, compare and trace gen")),
    };
    resolved.map_err(|failure| failure.to_string())
}

/// Runs a command of another tool with a flag that keeps it from doing its work.
fn tried(words: &[String], flag: &str) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut command = Process::new(program);
    command.args(words.iter().skip(1)).arg(flag).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("cannot start this program: {e}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Opens a URL in the user's browser, if there is a desktop. Its key is in a private file, since process lists show
/// arguments to all users.
fn open(url: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if !has_desktop && !cfg!(target_os = "macos") {
        return;
    }
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">");
    let path = std::env::temp_dir().join(format!("encore-deck-{}.html", std::process::id()));
    if schemas::files::write_privately(&path, page.as_bytes()).is_err() {
        return;
    }
    // Without a browser the user opens the URL that was printed.
    let _ = Process::new(program).arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_checked_and_not_run() {
        let check = |line: &str| check(&line.split(' ').map(String::from).collect::<Vec<_>>());
        assert_eq!(check("encore rate --store=memory:"), Ok(()));
        for (line, expect) in [
            ("encore rate --sla=fast", "for '--sla"),
            ("encore rate --store=null:", "cannot be rated"),
            ("encore run --store=memory:", "--threads"),
            ("encore rate nowhere.toml", "nowhere.toml"),
            ("encore certs x", "rate, run, compare"),
        ] {
            let error = check(line).unwrap_err();
            assert!(error.contains(expect), "{line}: {error}");
        }
    }
}
