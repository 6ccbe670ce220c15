//! A verdict in words: its ruling in colour, its figures, its percentages.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use schemas::sla::short_time;
use schemas::verdict::{ConditionFigures, Ruling, Verdict};
use schemas::words::{plural, short_percent, thousands};

/// A ruling in its colour. [`Voice`](super::Voice) removes colours where they are not wanted.
pub(super) fn coloured(ruling: Ruling) -> String {
    let style = match ruling {
        Ruling::Pass => AnsiColor::Green.on_default(),
        Ruling::Fail => AnsiColor::Yellow.on_default(),
        Ruling::Void => Style::new().dimmed(),
    };
    format!("{style}{}{style:#}", ruling.name())
}

/// What one experiment showed, in three lines.
pub fn measured(verdict: &Verdict) -> String {
    let figures = &verdict.figures;
    let mut out = format!(
        "{} operations/s, {} within {}\n{} of {} unpredictable ({})\n{}",
        thousands(figures.throughput_per_s.round() as u64),
        percent(figures.within_beta_percent),
        short_time(verdict.sla.beta_ns),
        thousands(figures.unpredictable_reads),
        plural(figures.reads, "read"),
        percent(figures.unpredictable_percent),
        coloured(verdict.ruling),
    );
    if !verdict.reasons.is_empty() {
        let _ = write!(out, ": {}", verdict.reasons.join("; "));
    }
    if let Some(closing) = figures.closing.as_ref().filter(|closing| closing.is_notable()) {
        let _ = write!(out, "\n{}", closing.in_words());
    }
    if let Some(sum) = &figures.sum {
        let _ = write!(out, "\n{}", sum.in_words());
    }
    if let Some(headline) = analyzer::headline(figures) {
        let _ = write!(out, "\n{headline}");
    }
    for line in figures.conditions.iter().flat_map(ConditionFigures::lines_with_rows) {
        let _ = write!(out, "\n{line}");
    }
    if let Some(found) = &figures.anomalies {
        let _ = write!(out, "\n{}", analyzer::isolation_in_words(found));
    }
    out
}

/// A percentage with up to three decimals, never rounded up to 100% or down to 0%.
pub fn percent(value: f64) -> String {
    format!("{}%", short_percent(value))
}
