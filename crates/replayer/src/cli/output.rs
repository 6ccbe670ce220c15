//! What the commands print: lines on stdout, a progress bar on stderr.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar. On a terminal only: silent in a pipe.
pub fn progress_bar(template: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}

/// Prints a line.
pub fn print(line: &dyn std::fmt::Display) -> anyhow::Result<()> {
    Ok(schemas::terminal::print(&format!("{line}\n"))?)
}
