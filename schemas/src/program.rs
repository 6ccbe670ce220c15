//! The command line of the program, whichever of its parts is called, and whether it is installed as
//! a whole or as separate tools.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Parser};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::called::name_of;
pub use crate::called::{as_called, as_typed, is_one_tool, to_type};
use crate::terminal::complain;

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

/// A word of a command, quoted for a shell if needed.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
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
    parsed_or(part, args).map_err(|error| {
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

/// The same, but returns the text of an error.
pub fn parsed<C: Parser>(part: &'static str, args: impl IntoIterator<Item = OsString>) -> Result<C, String> {
    parsed_or(part, args).map_err(|error| as_called(&error.render().to_string()).into_owned())
}

fn parsed_or<C: Parser>(part: &'static str, args: impl IntoIterator<Item = OsString>) -> Result<C, clap::Error> {
    let name = name_of(part);
    let mut command = taking_negative_numbers(C::command().bin_name(name).display_name(name));
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = command.try_get_matches_from_mut(&args).and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| plainer(error, &mut command, &args).format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
