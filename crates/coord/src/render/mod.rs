//! What people read: the header, a row an experiment, the ratings in words.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use comfy_table::{CellAlignment, Table, presets};
use schemas::plan::redact;
use schemas::sla::{Sla, short_time};
use schemas::verdict::{ActionFigures, Figures, Rating, RatingDocument};

use crate::campaign::{Purpose, Trial};
use crate::resolve::{Method, Setting};
use crate::trace_set::TraceSet;

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

    /// Prints a line. A reader that went away does not end the run: its results
    /// are in the run folder.
    pub fn say(self, line: &str) {
        let _ = match self {
            Voice::Stdout => writeln!(std::io::stdout(), "{line}"),
            Voice::Stderr => writeln!(std::io::stderr(), "{line}"),
            Voice::Silent => Ok(()),
        };
    }
}

/// A number with a comma after each three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The SLA as a sentence.
pub fn sla_in_words(sla: &Sla) -> String {
    format!(
        "{}% of actions within {}, at most {}% of reads unpredictable, for {} s",
        sla.alpha_percent,
        short_time(sla.beta_ns),
        sla.tau_percent,
        sla.delta_s
    )
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

/// The heading of the rows.
pub fn columns(sla: &Sla) -> String {
    let within = format!("<{}", short_time(sla.beta_ns));
    format!(
        "{:>3} {:>5} {:>11} {:>9} {:>9} {:>9} {:>9} {within:>8} {:>8}  verdict",
        "#", "T", "actions/s", "p50", "p95", "p99", "max", "unpred."
    )
}

/// An experiment that has ended, below [`columns`].
pub fn row(trial: &Trial) -> String {
    let verdict = &trial.verdict;
    let figures = &verdict.figures;
    let times = &figures.overall;
    let mut out = format!(
        "{:>3} {:>5} {:>11} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}  {}",
        verdict.experiment,
        verdict.threads,
        thousands(figures.throughput_per_s.round() as u64),
        short_time(times.p50_ns),
        short_time(times.p95_ns),
        short_time(times.p99_ns),
        short_time(times.max_ns),
        percent(figures.within_beta_percent),
        percent(figures.unpredictable_percent),
        verdict.ruling.name(),
    );
    if let Purpose::Final(of) = &trial.purpose {
        out.push_str(&format!(" [final: {of}]"));
    }
    if !verdict.reasons.is_empty() {
        out.push_str(&format!(": {}", verdict.reasons.join("; ")));
    }
    out
}

/// Up to three decimals, never rounded up to 100% or down to 0%.
fn percent(value: f64) -> String {
    let thousandths = value * 1000.0;
    let kept = if value > 99.0 { thousandths.floor() } else { thousandths.ceil() };
    // A whole number of thousandths may come out of the product a little above itself.
    let kept = if (thousandths - thousandths.round()).abs() < 1e-6 { thousandths.round() } else { kept };
    format!("{}%", kept / 1000.0)
}

/// The two ratings in words, with what a reader has to know of them.
pub fn ratings(document: &RatingDocument) -> String {
    let mut out = String::new();
    if let Some(rating) = &document.soar {
        let line = match rating.threads {
            0 => "SoAR        0: no number of threads kept the SLA".to_string(),
            threads => {
                let value = thousands(rating.value.round() as u64);
                format!("SoAR        {} actions/s at T={threads}", bound(rating, value))
            }
        };
        push_rating(&mut out, &line, rating);
    }
    if let Some(rating) = &document.socialites {
        let line = match rating.threads {
            0 => "Socialites  0: no number of threads kept the SLA".to_string(),
            threads => format!("Socialites  {} threads", bound(rating, thousands(threads as u64))),
        };
        push_rating(&mut out, &line, rating);
    }
    out
}

fn push_rating(out: &mut String, line: &str, rating: &Rating) {
    let _ = writeln!(out, "{line}{}", confirmed(rating));
    for note in &rating.notes {
        let _ = writeln!(out, "            note: {note}");
    }
}

fn bound(rating: &Rating, value: String) -> String {
    if rating.at_least { format!("at least {value}") } else { value }
}

fn confirmed(rating: &Rating) -> String {
    match rating.confirmed_by {
        Some(experiment) => format!(" (confirmed by experiment {experiment})"),
        None if rating.threads > 0 => " (not confirmed)".to_string(),
        None => String::new(),
    }
}

/// What to do next: look into the run, or repeat it on the same trace set.
pub fn next_commands(setting: &Setting, trace: &TraceSet, repeat: &[String]) -> String {
    let run = quoted(&setting.folder.display().to_string());
    let mut again = format!("./encore {} --trace {}", repeat.join(" "), quoted(&trace.folder.display().to_string()));
    // The default store lies in the run's own folder: the repetition makes its own.
    if setting.store != format!("sqlite:{}", setting.folder.join("store.db").display()) {
        again.push_str(&format!(" --store {}", quoted(&redact(&setting.store))));
    }
    again.push_str(&format!(" --sla {}", quoted(&setting.sla.to_string())));
    let runs = setting.folder.parent().map_or(String::new(), |runs| runs.display().to_string());
    if runs != "runs" {
        again.push_str(&format!(" --runs {}", quoted(if runs.is_empty() { "." } else { &runs })));
    }
    if setting.workers != 1 {
        again.push_str(&format!(" --workers {}", setting.workers));
    }
    format!(
        "next:\n  ./encore analyze sql {run} \"SELECT action, count(*) AS operations, \
         round(quantile_disc(response_ns, 0.95) / 1e6, 3) AS p95_ms FROM operations WHERE outcome = 'ok' GROUP BY action \
         ORDER BY action\"\n  \
         ./encore analyze summary {run}\n  {again}"
    )
}

/// The words of `coord rate` that repeat a search.
pub fn repeat_rate(rating: &crate::resolve::Rating) -> Vec<String> {
    let limits = &rating.limits;
    let mut words = vec!["rate".to_string()];
    words.extend(["--search-s".to_string(), rating.search_s.to_string()]);
    words.extend(["--max-threads".to_string(), limits.max_threads.to_string()]);
    if limits.first_threads != 1 {
        words.extend(["--first-threads".to_string(), limits.first_threads.to_string()]);
    }
    if rating.method == Method::Exhaustive {
        words.push("--exhaustive".to_string());
    }
    words
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
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
