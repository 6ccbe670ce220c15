//! Verdicts and witnesses as text for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use schemas::oplog::Outcome;
use schemas::run::RunDocument;
use schemas::sla::{Sla, short_time};
use schemas::verdict::{ActionFigures, Verdict};

use crate::course;
use crate::figures::percent;
use crate::witness::{Offender, Witness};

/// Nothing but a line under the names of the columns.
pub(crate) const PLAIN: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// A number with its thousands apart.
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

/// What was run, where and against what.
pub(crate) fn header(document: &RunDocument) -> String {
    let host = &document.host;
    let mut out = String::new();
    let _ = writeln!(out, "run    {} (Encore {})", document.name, document.encore_version);
    let _ = writeln!(out, "store  {}", document.store);
    for (name, value) in &document.store_settings {
        let _ = writeln!(out, "       {name} = {value}");
    }
    let _ = writeln!(out, "trace  {} ({})", document.trace.display(), document.trace_id);
    let _ = writeln!(out, "host   {}, {}, {} processors", host.name, host.system, host.cpus);
    out
}

/// What the store has counted in an experiment, a line each; nothing where it counts nothing.
pub(crate) fn counted(counters: &BTreeMap<String, u64>) -> String {
    if counters.is_empty() {
        return String::new();
    }
    let width = counters.keys().map(String::len).max().unwrap_or(0);
    let lines = counters.iter().map(|(name, count)| format!("  {name:<width$}  {count}\n"));
    format!("\ncounted by the store\n{}", lines.collect::<String>())
}

/// One row an experiment.
pub(crate) fn experiments(verdicts: &[Verdict]) -> String {
    let mut table = new_table(
        &["experiment", "T", "throughput/s", "p50", "p95", "p99", "max", "% within", "% unpredictable", "ruling"],
        9,
    );
    for verdict in verdicts {
        let (figures, overall) = (&verdict.figures, &verdict.figures.overall);
        table.add_row([
            verdict.experiment.to_string(),
            verdict.threads.to_string(),
            format!("{:.1}", figures.throughput_per_s),
            short_time(overall.p50_ns),
            short_time(overall.p95_ns),
            short_time(overall.p99_ns),
            short_time(overall.max_ns),
            format!("{:.2}", figures.within_beta_percent),
            format!("{:.3}", figures.unpredictable_percent),
            ruling(verdict),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

/// The ruling and its reasons.
fn ruling(verdict: &Verdict) -> String {
    if verdict.reasons.is_empty() {
        verdict.ruling.name().to_string()
    } else {
        format!("{}: {}", verdict.ruling.name(), verdict.reasons.join("; "))
    }
}

/// The figures of one experiment: by action, in the course of time, and by the age of what was read.
pub(crate) fn experiment(verdict: &Verdict) -> String {
    let mut table = new_table(
        &[
            "action",
            "ok",
            "failed",
            "unknown",
            "skipped",
            "mean",
            "p50",
            "p95",
            "p99",
            "max",
            "% within",
            "unpredictable",
        ],
        0,
    );
    let all = [("all", &verdict.figures.overall)];
    for (name, figures) in verdict.figures.by_action.iter().map(|(action, f)| (action.name(), f)).chain(all) {
        table.add_row(action_row(name, figures));
    }
    let mut out = format!(
        "experiment {}, {} threads, {}, SLA {}\n{}\n",
        verdict.experiment,
        verdict.threads,
        short_time(verdict.figures.elapsed_ns),
        verdict.sla,
        table.trim_fmt()
    );
    for missing in &verdict.figures.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    if !verdict.replayers.is_empty() {
        let mut table = new_table(&["replayer", "T", "throughput/s", "% within", "% unpredictable", "missed"], 0);
        for replayer in &verdict.replayers {
            table.add_row([
                replayer.name.clone(),
                replayer.threads.to_string(),
                format!("{:.1}", replayer.throughput_per_s),
                format!("{:.2}", replayer.within_beta_percent),
                format!("{:.3}", replayer.unpredictable_percent),
                replayer.missed.join("; "),
            ]);
        }
        let _ = writeln!(out, "\n{}", table.trim_fmt());
    }
    let figures = &verdict.figures;
    let parts = [course::throughput(figures), course::timeline(figures), course::freshness(&figures.freshness)];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let _ = write!(out, "\n{part}");
    }
    out
}

fn action_row(name: &str, figures: &ActionFigures) -> Vec<String> {
    let issued = figures.ok + figures.failed + figures.unknown;
    vec![
        name.to_string(),
        figures.ok.to_string(),
        figures.failed.to_string(),
        figures.unknown.to_string(),
        figures.skipped.to_string(),
        short_time(figures.mean_ns as u64),
        short_time(figures.p50_ns),
        short_time(figures.p95_ns),
        short_time(figures.p99_ns),
        short_time(figures.max_ns),
        format!("{:.2}", percent(figures.within_beta, issued)),
        figures.unpredictable.to_string(),
    ]
}

/// A table of numbers but for one column of words.
pub(crate) fn new_table(columns: &[&str], words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(PLAIN).set_header(columns);
    for index in (0..columns.len()).filter(|index| *index != words) {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// How many reads were checked, and the worst offenders with their witnesses.
pub(crate) fn validation(verdict: &Verdict, in_warmup: i64, offenders: &[Offender]) -> String {
    let figures = &verdict.figures;
    let mut out = format!(
        "experiment {}, {} threads: {} reads checked, {} unpredictable ({:.3}%)\n",
        verdict.experiment, verdict.threads, figures.reads, figures.unpredictable_reads, figures.unpredictable_percent
    );
    if in_warmup > 0 {
        let _ = writeln!(out, "outside the measured part: {in_warmup} more reads unpredictable; they do not count");
    }
    for missing in &figures.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    for (index, offender) in offenders.iter().enumerate() {
        let _ = write!(out, "\n{}. {}", index + 1, offense(offender));
    }
    out
}

/// An unpredictable read as a short story.
pub(crate) struct Story {
    /// Who read.
    pub(crate) heading: String,
    /// What was returned, and what could have been.
    pub(crate) told: String,
    /// Why that is certain.
    pub(crate) because: String,
}

/// Tells an unpredictable read to people.
pub(crate) fn story(offender: &Offender) -> Story {
    let Offender { action, session, step, fragment, item, owner, observed, low, high, .. } = offender;
    let range = if low == high { format!("{low}") } else { format!("{low} to {high}") };
    let counted =
        |noun: &str| format!("This read returned {observed} {noun} of member {owner}; it could only have seen {range}");
    let told = match item.as_str() {
        "friend_count" => counted("friends"),
        "pending_count" => counted("invitations"),
        _ => format!("This read returned what it could not have seen: {}", what_is_wrong(offender)),
    };
    let because = match (offender.writes.len(), offender.earlier_writes) {
        (0, 0) => "Nothing wrote that before the end of the read.".to_string(),
        (1, 0) => "Because of this one operation.".to_string(),
        (n, 0) => format!("Because of these {n} operations."),
        (n, more) => format!("Because of these {n} operations and {more} before them."),
    };
    let heading = format!("{} by session {session} step {step} of fragment {fragment}", action.name());
    Story { heading, told: format!("{told}."), because }
}

fn offense(offender: &Offender) -> String {
    let mut out = format!(
        "{} by session {} step {} of fragment {}, from {} ns to {} ns\n   {}\n",
        offender.action.name(),
        offender.session,
        offender.step,
        offender.fragment,
        offender.start_ns,
        offender.end_ns,
        what_is_wrong(offender)
    );
    if matches!(offender.item.as_str(), "resource_count" | "top_k" | "shape") {
        return out + "   no write changes that\n";
    }
    if offender.writes.is_empty() {
        return out + "   nothing wrote that before the end of the read\n";
    }
    out.push_str("   writes before and during the read (times from its start):\n");
    for write in &offender.writes {
        let _ = writeln!(out, "     {}", write_line(write, offender));
    }
    if offender.earlier_writes > 0 {
        let _ = writeln!(out, "     and {} earlier", offender.earlier_writes);
    }
    out
}

fn what_is_wrong(offender: &Offender) -> String {
    let Offender { item, owner, observed, low, high, .. } = offender;
    let element = offender.element.unwrap_or(-1);
    let state = |times: i64| match times {
        0 => "absent".to_string(),
        1 => "present".to_string(),
        n => format!("listed {n} times"),
    };
    let range = if low == high { low.to_string() } else { format!("{low} to {high}") };
    match item.as_str() {
        "friends" | "pending" | "comments" => {
            let should = if low == high { state(*low) } else { "absent or present, once".to_string() };
            let (noun, element_noun) = if item == "comments" { ("resource", "comment") } else { ("member", "member") };
            format!(
                "{item} of {noun} {owner}: {element_noun} {element} was {}, should have been {should}",
                state(*observed)
            )
        }
        "top_k" => format!("top_k of member {owner}, place {element}: resource {observed}, should have been {range}"),
        "shape" => format!("the answer about {owner} has {observed} values, should have had {range}"),
        _ => format!("{item} of member {owner}: {observed}, should have been {range}"),
    }
}

pub(crate) fn write_line(write: &Witness, offender: &Offender) -> String {
    let change = match (offender.element, write.change) {
        (Some(_), 1) => "adds".to_string(),
        (Some(_), _) => "removes".to_string(),
        (None, delta) => format!("{delta:+}"),
    };
    let start = relative(write.start_ns - offender.start_ns);
    let end = match write.outcome {
        Outcome::Unknown => "unknown, open for ever".to_string(),
        _ => relative(write.end_ns - offender.start_ns),
    };
    let (session, step, action) = (write.session, write.step, write.action.name());
    format!("{change:<7} {action}, session {session} step {step}: {start} to {end}")
}

fn relative(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    format!("{sign}{}", short_time(ns.unsigned_abs()))
}
