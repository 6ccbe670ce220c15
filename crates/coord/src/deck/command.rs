//! A command of this program, as a form asks for it: what is shown is what runs.

use std::collections::BTreeMap;

use schemas::plan::{has_secret, redact_typed};
use schemas::program::{quoted, to_type};

use super::Setup;
use super::fields::{Field, Kind};
use super::form::Form;

/// A command without the name of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed(pub(super) Vec<String>);

impl Typed {
    /// A command of these words.
    pub(super) fn of<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Typed {
        Typed(words.into_iter().map(Into::into).collect())
    }

    /// As a user types it.
    pub(super) fn text(&self) -> String {
        let words = std::iter::once(to_type()).chain(self.0.iter().cloned());
        words.map(|word| quoted(&shown(&word))).collect::<Vec<_>>().join(" ")
    }
}

/// A text as a page may show it: without a password.
pub(super) fn shown(text: &str) -> String {
    redact_typed(text)
}

/// What is wrong with a form: by the names of its fields. What belongs to no field has the empty name.
pub(super) type Errors = BTreeMap<String, String>;

/// The command that a form asks for: `rate`, `run` or `compare`, the file of the specification or plan if it is not
/// the built-in one, and the flags.
pub(super) fn of_form(kind: &str, file: Option<&str>, fields: &[Field], form: &Form, runs: &str) -> Typed {
    let mut words = vec![kind.to_string()];
    words.extend(file.map(String::from));
    for field in fields {
        words.extend(arguments(field, form));
    }
    if runs != "runs" {
        words.push(format!("--runs={runs}"));
    }
    Typed(words)
}

/// The arguments that a field stands for; none if it is empty.
fn arguments(field: &Field, form: &Form) -> Vec<String> {
    let flag = &field.name;
    match field.kind {
        Kind::Check => form.get(flag).map(|_| format!("--{flag}")).into_iter().collect(),
        Kind::Lines => {
            let lines = form.trimmed(flag).lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(|line| format!("--{flag}={line}")).collect()
        }
        Kind::Text | Kind::Choice => match form.trimmed(flag) {
            "" => Vec::new(),
            value => vec![format!("--{flag}={value}")],
        },
    }
}

/// The command that generates a trace set, as a form asks for it.
pub(super) fn of_trace(file: Option<&str>, fields: &[Field], form: &Form, folder: &str) -> Typed {
    let mut words = GENERATE.map(String::from).to_vec();
    words.extend(file.map(String::from));
    words.extend(fields.iter().filter(|field| field.name != "name").flat_map(|field| arguments(field, form)));
    words.push(format!("--output={folder}"));
    Typed(words)
}

/// The words of the command that generates a trace set.
const GENERATE: [&str; 2] = ["trace", "gen"];

/// Checks a form with the checks of the command line. Values that cannot be read are all found at once; what is
/// wrong with the command as a whole comes after that.
pub(super) fn check(setup: &Setup, typed: &Typed, file: Option<&str>, fields: &[Field], form: &Form) -> Errors {
    let mut errors = Errors::new();
    if form.get("store").is_some_and(has_secret) {
        let advice = "contains a password, which process lists would show; set an environment variable before \
                      `encore deck`, and write ${VARIABLE} in its place";
        errors.insert("store".into(), advice.into());
    }
    let is_trace = typed.0.starts_with(&GENERATE.map(String::from));
    let begin = typed.0.get(..if is_trace { GENERATE.len() } else { 1 }).unwrap_or_default();
    let checked = |words: Vec<String>| {
        let words: Vec<String> = std::iter::once("encore".to_string()).chain(words).collect();
        (setup.check)(&words).err().map(|message| plain(&message))
    };
    // The name of a trace set is a part of its folder, and no flag.
    for field in fields.iter().filter(|field| !is_trace || field.name != "name") {
        for argument in arguments(field, form) {
            let own = checked([begin, &[argument]].concat()).filter(|message| is_about(message, &field.name));
            if let Some(message) = own {
                errors.entry(field.name.clone()).or_insert(message);
            }
        }
    }
    if errors.is_empty()
        && let Some(message) = checked(typed.0.clone())
    {
        let field = place(&message, fields).or_else(|| file.filter(|file| message.contains(*file)).map(|_| "spec"));
        errors.insert(field.unwrap_or_default().to_string(), message);
    }
    errors
}

/// Whether the parser of the command line refuses the value of this flag.
fn is_about(message: &str, flag: &str) -> bool {
    [' ', '\''].iter().any(|end| message.contains(&format!("for '--{flag}{end}")))
}

/// The field whose flag comes first in a message.
fn place<'a>(message: &str, fields: &'a [Field]) -> Option<&'a str> {
    let mut rest = message;
    while let Some(at) = rest.find("--") {
        rest = &rest[at + 2..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        if let Some(field) = fields.iter().find(|field| field.name == rest[..end]) {
            return Some(&field.name);
        }
    }
    None
}

/// A message without what only a terminal needs.
fn plain(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\nUsage:").into_iter().chain(message.find("\n\nFor more information")).min();
    message[..end.unwrap_or(message.len())].trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_seen_and_variables_are_none() {
        for url in ["postgres://me:hush@db/x", "postgres://me:hu${X}sh@db/x", "mongodb://me:hush@h/x?w=1"] {
            assert!(has_secret(url) && !shown(url).contains("hu"), "{url}");
        }
        for url in ["postgres://me:${PG}@db/x", "${PG}", "${PG:-sqlite:}?a=b", "sqlite:a.db", "postgres://me@db/x"] {
            assert!(!has_secret(url), "{url}");
        }
    }

    #[test]
    fn a_message_belongs_to_the_first_flag_that_is_a_field() {
        let field = |name: &str| Field {
            name: name.into(),
            kind: Kind::Text,
            heading: String::new(),
            help: String::new(),
            choices: Vec::new(),
            is_required: false,
        };
        let fields = [field("sla"), field("search-s")];
        assert_eq!(place("--resume and --search-s 20 exceed --sla", &fields), Some("search-s"));
        assert_eq!(place("a -- b", &fields), None);
        assert_eq!(plain("error: a\n\nUsage: encore rate\n"), "a");
    }
}
