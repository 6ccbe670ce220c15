//! Prints to the terminal. Names, paths and messages come from other machines and from stores, so
//! they must not control it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::called::as_called;

/// Prints to standard output; to a terminal without control characters. A closed pipe (`| head`)
/// is not an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    // Output to a file or to another program is data and stays unchanged.
    let text = if out.is_terminal() { printable(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(e.kind(), format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints an error, a warning or a note to standard error, without control characters.
pub fn complain(kind: &str, what: impl Display) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "{kind}: {}", printable(&as_called(&what.to_string())));
}

/// Whether the process was started to outlive its terminal (`nohup`). SIGHUP is then not a
/// request to end.
pub fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signals count from 1, and SIGHUP is the first.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The text with control characters escaped, except line breaks, tabs and the sequences that set
/// a colour or weight.
///
/// ```
/// use schemas::terminal::printable;
/// assert_eq!(printable("\u{1b}[1mbold\u{1b}[0m\n"), "\u{1b}[1mbold\u{1b}[0m\n");
/// assert_eq!(printable("title\u{1b}]0;pwned\u{7}\r"), "title\\u{1b}]0;pwned\\u{7}\\r");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = style_bytes(rest).unwrap_or(c.len_utf8());
        if length > c.len_utf8() || is_plain(c) {
            out.push_str(&rest[..length]);
        } else {
            out.extend(c.escape_default());
        }
        rest = &rest[length..];
    }
    out.into()
}

/// The length of the style sequence at the beginning of a text; None if there is none.
fn style_bytes(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    parameters[length..].starts_with('m').then_some("\u{1b}[".len() + length + 1)
}
