//! What people read: the header, a row an experiment, the ratings in words.

mod commands;
mod ratings;
mod rows;
mod sketch;

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

pub use analyzer::{sla_in_words, thousands};
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};
use schemas::manifest::Manifest;
use schemas::plan::redact;
use schemas::sla::short_time;
use schemas::verdict::{ActionFigures, Figures, Ruling, Verdict};

use crate::resolve::Setting;
use crate::trace_set::TraceSet;

pub use commands::next_commands;
pub use ratings::ratings;
pub use rows::{Rows, percent};
pub use sketch::sketch;

/// Where lines for people go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// To stdout.
    Stdout,
    /// To stderr, because stdout is for JSON.
    Stderr,
    /// Nowhere: stdout is for JSON, and nobody watches stderr.
    Silent,
}

impl Voice {
    /// The right one.
    pub fn new(json: bool) -> Voice {
        match (json, std::io::stderr().is_terminal()) {
            (false, _) => Voice::Stdout,
            (true, true) => Voice::Stderr,
            (true, false) => Voice::Silent,
        }
    }

    /// Prints a line, with its colours where a terminal shows them and nobody has set
    /// `NO_COLOR`. A reader that went away does not end the run: its results are in
    /// the run folder.
    pub fn say(self, line: &str) {
        let _ = match self {
            Voice::Stdout => writeln!(anstream::stdout(), "{line}"),
            Voice::Stderr => writeln!(anstream::stderr(), "{line}"),
            Voice::Silent => Ok(()),
        };
    }

    /// Prints a line that was asked for: unlike [`say`](Voice::say) also where
    /// nobody seems to watch.
    pub fn report(self, line: &str) {
        match self {
            Voice::Stdout => self.say(line),
            Voice::Stderr | Voice::Silent => Voice::Stderr.say(line),
        }
    }
}

/// A ruling in its colour, for [`Voice`], which takes colours away where they are not wanted.
fn coloured(ruling: Ruling) -> String {
    let style = match ruling {
        Ruling::Pass => AnsiColor::Green.on_default(),
        Ruling::Fail => AnsiColor::Yellow.on_default(),
        Ruling::Void => Style::new().dimmed(),
    };
    format!("{style}{}{style:#}", ruling.name())
}

/// What is about to be done to which store.
pub fn header(setting: &Setting, trace: &TraceSet) -> String {
    let manifest = &trace.manifest;
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<6} {text}");
    };
    line("store", &redact(&setting.store));
    line(
        "trace",
        &format!(
            "{} ({} members, {} sessions, id {})",
            trace.folder.display(),
            thousands(manifest.spec.data.members),
            thousands(manifest.sessions()),
            manifest.trace_id.get(..8).unwrap_or(&manifest.trace_id)
        ),
    );
    line("SLA", &sla_in_words(&setting.sla));
    line("run", &setting.folder.display().to_string());
    out
}

/// A warning where the search may come to more threads than the trace keeps busy: each member
/// acts in one session at a time.
pub fn busy_at_most(manifest: &Manifest, max_threads: u32) -> Option<String> {
    let most = manifest.statistics.socialites.active_threads_max;
    (u64::from(max_threads) > most).then(|| {
        format!(
            "warning: this trace keeps at most {} threads busy, and the search may go to {max_threads} (--max-threads); \
             experiments with more will be void. A larger access.unique_window or more members keep more threads \
             busy, --shared-socialites lifts the limit\n",
            thousands(most)
        )
    })
}

/// What one experiment showed, in three lines.
pub fn measured(verdict: &Verdict) -> String {
    let figures = &verdict.figures;
    let mut out = format!(
        "{} actions/s, {} within {}\n{} of {} reads unpredictable ({})\n{}",
        thousands(figures.throughput_per_s.round() as u64),
        percent(figures.within_beta_percent),
        short_time(verdict.sla.beta_ns),
        thousands(figures.unpredictable_reads),
        thousands(figures.reads),
        percent(figures.unpredictable_percent),
        coloured(verdict.ruling),
    );
    if !verdict.reasons.is_empty() {
        let _ = write!(out, ": {}", verdict.reasons.join("; "));
    }
    out
}

/// The figures of an experiment by action.
pub fn by_action(figures: &Figures) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["action", "ok", "failed", "unknown", "skipped", "mean", "p50", "p95", "p99", "max", "unpred."]);
    for (action, counts) in &figures.by_action {
        table.add_row(cells(action.name(), counts));
    }
    table.add_row(cells("all", &figures.overall));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

fn cells(name: &str, figures: &ActionFigures) -> Vec<String> {
    let counts = [figures.ok, figures.failed, figures.unknown, figures.skipped].map(thousands);
    let mean_ns = figures.mean_ns.round() as u64;
    let times = [mean_ns, figures.p50_ns, figures.p95_ns, figures.p99_ns, figures.max_ns].map(short_time);
    let mut cells = vec![name.to_string()];
    cells.extend(counts);
    cells.extend(times);
    cells.push(thousands(figures.unpredictable));
    cells
}

#[cfg(test)]
pub mod testing;

#[cfg(test)]
mod tests;
