//! The name by which the user calls the program.
//!
//! Every text says `encore trace gen`, as a user of the whole program types it. A user who
//! installed the tools separately types `tracegen gen`. [`as_called`] and [`parse`] translate
//! what a tool prints.

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Parser};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::terminal::complain;

/// The parts of the program, and the separate tool for each.
const TOOLS: [(&str, &str); 4] =
    [("encore trace", "tracegen"), ("encore replay", "replayer"), ("encore analyze", "analyzer"), ("encore", "coord")];

/// The subcommands of the whole program. [`as_called`] recognizes a command in a text by them.
const SUBCOMMANDS: [&str; 11] =
    ["trace", "replay", "analyze", "rate", "run", "compare", "certs", "collect", "simulate", "completions", "man"];

/// The environment variable in which a launcher says how it can be called from every folder.
const CALLED_AS: &str = "ENCORE_CALLED_AS";

static IS_ONE_TOOL: AtomicBool = AtomicBool::new(false);

/// Records that this process is a tool that was installed separately. The tool's `main` calls
/// this first.
pub fn is_one_tool() {
    IS_ONE_TOOL.store(true, Ordering::Relaxed);
}

fn is_whole() -> bool {
    !IS_ONE_TOOL.load(Ordering::Relaxed)
}

/// The exit code after Ctrl-C or a request to terminate.
pub const INTERRUPTED: u8 = 130;

/// Every command needs at least this many open files.
const OPEN_FILES_MIN: u64 = 64;

/// Raises the limit of open files to the maximum that the system allows. Refuses to start with
/// too few open files, because a later failure would depend on chance.
fn raise_open_files() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    // If the system does not allow a higher limit, the current one stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < OPEN_FILES_MIN => Err(format!(
            "the limit of open files is {most}, and at least {OPEN_FILES_MIN} are needed; raise it (ulimit -n)"
        )),
        _ => Ok(()),
    }
}

/// The program as the user can call it from every folder: its name if the shell finds it by name,
/// otherwise its path.
pub fn to_type() -> String {
    if let Ok(called) = std::env::var(CALLED_AS) {
        return called;
    }
    let Some(own) = std::env::args_os().next() else { return "encore".to_string() };
    let is_name = !own.to_string_lossy().contains('/');
    let path = if is_name { PathBuf::from(own) } else { std::path::absolute(&own).unwrap_or(own.into()) };
    path.display().to_string()
}

/// A word of a command, quoted for a shell if needed.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The name of a part of the program, such as `encore trace`.
fn name_of(part: &'static str) -> &'static str {
    let alone = TOOLS.iter().find(|(whole, _)| *whole == part && !is_whole());
    alone.map_or(part, |(_, alone)| alone)
}

/// The text with its commands as the user types them.
pub fn as_called(text: &str) -> Cow<'_, str> {
    if is_whole() { text.into() } else { for_tools(text).into() }
}

/// The text with the commands of separately installed tools.
fn for_tools(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("encore ") {
        let (before, found) = rest.split_at(at);
        let after = &found["encore ".len()..];
        out.push_str(before);
        // Another word, such as the name of a database, may end in the same letters.
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "/_-.:@".contains(c));
        let is_word = |word: &&str| {
            let behind = after.strip_prefix(*word);
            behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
        };
        let subcommand = SUBCOMMANDS.into_iter().find(is_word).filter(|_| begins);
        let tool = TOOLS.iter().find(|(part, _)| part.strip_prefix("encore ") == subcommand);
        rest = match (subcommand, tool) {
            (Some(word), Some((_, alone))) => {
                out.push_str(alone);
                &after[word.len()..]
            }
            (Some(_), None) => {
                out.push_str("coord ");
                after
            }
            (None, _) => {
                out.push_str("encore ");
                after
            }
        };
    }
    out.push_str(rest);
    out
}

/// Lets flags take negative numbers. A flag then refuses one with its bounds, and clap does not
/// report an unknown flag.
fn taking_negative_numbers(command: Command) -> Command {
    let of_values = |argument: Arg| match argument.get_action().takes_values() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    };
    command.mut_args(of_values).mut_subcommands(taking_negative_numbers)
}

/// Replaces "invalid digit found in string", Rust's message for a value that is not a number.
fn plainer(error: clap::Error, command: &mut Command, args: &[OsString]) -> clap::Error {
    let (Some(ContextValue::String(value)), Some(ContextValue::String(argument))) =
        (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    let Some(why) = not_the_number(&error, value) else { return error };
    let message = format!("invalid value '{value}' for '{argument}': {why}");
    command.build();
    subcommand(command, args.get(1..).unwrap_or_default()).error(ErrorKind::ValueValidation, message)
}

/// Why a value is not the number that a flag takes; None if the error is not about a number.
fn not_the_number(error: &clap::Error, value: &str) -> Option<String> {
    let source = error.source()?;
    if source.is::<ParseFloatError>() {
        return Some("not a number".into());
    }
    if *source.downcast_ref::<ParseIntError>()?.kind() == IntErrorKind::PosOverflow {
        return Some("too large".into());
    }
    let whole = value.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    Some(match whole {
        Some(number) if number < 0.0 => "must not be negative".into(),
        Some(number) => format!("not a whole number; write it as {number:.0}"),
        None => "not a whole number".into(),
    })
}

/// The subcommand that these arguments begin with, at any depth.
fn subcommand<'a>(command: &'a mut Command, args: &[OsString]) -> &'a mut Command {
    match args.split_first() {
        Some((name, rest)) if command.find_subcommand(name).is_some() => match command.find_subcommand_mut(name) {
            Some(found) => subcommand(found, rest),
            None => unreachable!("it was found just now"),
        },
        _ => command,
    }
}

/// Parses the arguments of a part of the program, the first of which is its name. On help or an
/// error it prints the text and returns the exit code.
pub fn parse<C: Parser>(part: &'static str, args: impl IntoIterator<Item = OsString>) -> Result<C, ExitCode> {
    if let Err(refused) = raise_open_files() {
        complain("error", refused);
        return Err(ExitCode::from(3));
    }
    let name = name_of(part);
    let mut command = taking_negative_numbers(C::command().bin_name(name).display_name(name));
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = command.try_get_matches_from_mut(&args).and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let error = plainer(error, &mut command, &args).format(&mut command);
        let text = error.render().ansi().to_string();
        let text = as_called(&text);
        // A closed pipe is not an error. If standard error is closed, the message is lost.
        let _ = match error.use_stderr() {
            true => write!(anstream::stderr(), "{text}"),
            false => write!(anstream::stdout(), "{text}"),
        };
        ExitCode::from(error.exit_code() as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, for_each_tool: &str) {
        assert_eq!(for_tools(text), for_each_tool);
    }

    #[test]
    fn wrong_numbers_are_refused_in_plain_words() {
        let number = |name: &'static str| Arg::new(name).long(name);
        let generate = Command::new("gen")
            .arg(number("sessions").value_parser(clap::value_parser!(u64)))
            .arg(number("seconds").value_parser(clap::value_parser!(f64)));
        let whole = taking_negative_numbers(Command::new("encore").subcommand(generate));
        let check = |flag: &str, expect: &str| {
            let args = ["encore", "gen", flag].map(OsString::from);
            let mut command = whole.clone();
            let error = command.try_get_matches_from_mut(&args).unwrap_err();
            let text = plainer(error, &mut command, &args).to_string();
            assert!(text.contains(expect) && text.contains("Usage: encore gen"), "{text}");
        };
        check("--sessions=-5", "'-5' for '--sessions <sessions>': must not be negative");
        check("--sessions=1e3", "not a whole number; write it as 1000");
        check("--sessions=many", "not a whole number\n");
        check("--sessions=99999999999999999999", "too large");
        check("--seconds=long", "'long' for '--seconds <seconds>': not a number");
    }

    #[test]
    fn tools_that_were_installed_apart_have_their_own_names() {
        check("Create one with `encore trace gen`", "Create one with `tracegen gen`");
        check("encore rate --resume runs/a\n  encore replay serve", "coord rate --resume runs/a\n  replayer serve");
        check("encore analyze sql r", "analyzer sql r");
        for plain in ["encore", "postgres://me@db/encore rate", "encore traces", "an encore of it", "Encore rate", ""] {
            check(plain, plain);
        }
    }
}
