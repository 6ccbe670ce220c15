//! The fields of the forms, made from the definition of the command line: a new flag is a new field.

use clap::{Arg, ArgAction};

/// A field, for a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The name of the flag, without dashes.
    pub(super) name: String,
    /// How it is filled in.
    pub(super) kind: Kind,
    /// The part of the form.
    pub(super) heading: String,
    /// What the flag does, with its default.
    pub(super) help: String,
    /// The values of a choice.
    pub(super) choices: Vec<String>,
    /// Whether the command needs it.
    pub(super) is_required: bool,
}

/// How a field is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of text.
    Text,
    /// A value in each line.
    Lines,
    /// One of a few values.
    Choice,
    /// Yes or no.
    Check,
}

/// Flags that make no sense in a form: what is printed, and where runs are.
const LEFT_OUT: [&str; 11] =
    ["help", "version", "resume", "runs", "json", "quiet", "monitor", "junit", "fail-below", "deck", "metrics-listen"];

/// The same of `encore trace gen`, whose folder follows from a name.
const LEFT_OUT_OF_TRACE: [&str; 4] = ["properties", "print-spec", "output", "only-fragments"];

/// The fields of a command.
pub(super) fn fields(commands: &clap::Command, kind: &str) -> Vec<Field> {
    let of = |command: &clap::Command, left_out: &[&str]| {
        let arguments = command.get_arguments().filter_map(field);
        arguments.filter(|field| !left_out.contains(&field.name.as_str())).collect::<Vec<_>>()
    };
    if kind != "trace" {
        return commands.find_subcommand(kind).map(|command| of(command, &LEFT_OUT)).unwrap_or_default();
    }
    let name = Field {
        name: "name".into(),
        kind: Kind::Text,
        heading: "Other".into(),
        help: "Name of the trace set, which becomes the folder traces/NAME.trace in that of all runs".into(),
        choices: Vec::new(),
        is_required: true,
    };
    let left_out = [&LEFT_OUT[..], &LEFT_OUT_OF_TRACE].concat();
    let own = tracegen::cli::command().find_subcommand("gen").map(|command| of(command, &left_out));
    std::iter::once(name).chain(own.unwrap_or_default()).collect()
}

fn field(argument: &Arg) -> Option<Field> {
    let name = argument.get_long()?.to_string();
    if argument.is_hide_set() {
        return None;
    }
    let choices: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().into()).collect();
    let kind = match argument.get_action() {
        ArgAction::SetTrue => Kind::Check,
        ArgAction::Append if argument.get_value_delimiter().is_none() => Kind::Lines,
        _ if !choices.is_empty() => Kind::Choice,
        _ => Kind::Text,
    };
    let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let default: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !default.is_empty() && kind != Kind::Check {
        help = format!("{help} [default: {}]", default.join(","));
    }
    let heading = argument.get_help_heading().unwrap_or("Other").to_string();
    let choices = if kind == Kind::Check { Vec::new() } else { choices };
    Some(Field { name, kind, heading, help, choices, is_required: argument.is_required_set() })
}
