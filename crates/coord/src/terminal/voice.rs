//! The lines that a command prints.

use std::io::{ErrorKind, IsTerminal, Write as _};
use std::sync::OnceLock;

use crate::failure::Failure;

/// Where messages for the user go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// To stdout.
    Stdout,
    /// To stderr, because stdout is for JSON.
    Stderr,
    /// Nowhere: stdout is for JSON, and stderr is no terminal.
    Silent,
}

impl Voice {
    /// Stdout without `--json`; with it, stderr if that is a terminal.
    pub fn new(json: bool) -> Voice {
        match (json, std::io::stderr().is_terminal()) {
            (false, _) => Voice::Stdout,
            (true, true) => Voice::Stderr,
            (true, false) => Voice::Silent,
        }
    }

    /// Prints a line. It has colours only on a terminal, and only if `NO_COLOR` is not set. A
    /// reader that closes the pipe does not end the run: its results are in the run folder.
    pub fn say(self, line: &str) {
        match self {
            Voice::Stdout => match writeln!(anstream::stdout(), "{line}") {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    // Only the first error counts.
                    let _ = UNSAID.set(error.to_string());
                }
                _ => {}
            },
            // If stderr is closed, there is no other place for this line.
            Voice::Stderr => drop(writeln!(anstream::stderr(), "{line}")),
            Voice::Silent => {}
        }
    }

    /// Prints a line that the user asked for. Unlike [`say`](Voice::say) it does so even if
    /// stderr is no terminal.
    pub fn report(self, line: &str) {
        match self {
            Voice::Stdout => self.say(line),
            Voice::Stderr | Voice::Silent => Voice::Stderr.say(line),
        }
    }
}

/// Why a line could not be printed, for example a full disk.
static UNSAID: OnceLock<String> = OnceLock::new();

/// Fails if a line of [`Voice::say`] could not be printed. The run itself does not end because of
/// that: its results are in the run folder.
pub fn all_was_said() -> Result<(), Failure> {
    match UNSAID.get() {
        Some(error) => {
            Err(Failure::tool(format!("cannot write to standard output: {error}; all results are in the run folder")))
        }
        None => Ok(()),
    }
}
