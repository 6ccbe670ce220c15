//! The name by which the user calls the program.
//!
//! Every text says `encore trace gen`, as a user of the whole program types it. A user who
//! installed the tools separately types `tracegen gen`. [`as_called`] translates what a tool prints.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The parts of the program, and the separate tool for each.
const TOOLS: [(&str, &str); 4] =
    [("encore trace", "tracegen"), ("encore replay", "replayer"), ("encore analyze", "analyzer"), ("encore", "coord")];

/// The subcommands of the whole program. [`as_called`] recognizes a command in a text by them.
const SUBCOMMANDS: [&str; 12] = [
    "trace",
    "replay",
    "analyze",
    "rate",
    "run",
    "compare",
    "deck",
    "certs",
    "collect",
    "simulate",
    "completions",
    "man",
];

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

/// The words of a command, as a user types it again: with the launcher that called the program, if there was one.
pub fn as_typed(arguments: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut words: Vec<String> =
        arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let (Some(program), Ok(called)) = (words.first_mut(), std::env::var(CALLED_AS)) {
        *program = called;
    }
    words
}

/// The name of a part of the program, such as `encore trace`.
pub(crate) fn name_of(part: &'static str) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, for_each_tool: &str) {
        assert_eq!(for_tools(text), for_each_tool);
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
