//! Verdicts and witnesses as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemas::conditions::Condition;
use schemas::oplog::Outcome;
use schemas::run::{NOTE, RunDocument};
use schemas::sla::{Sla, exact_time, short_time};
use schemas::verdict::{ConditionFigures, Figures, OperationFigures, Ruling, Verdict};
pub(crate) use schemas::words::plural;
pub use schemas::words::thousands;
use schemas::words::{rate, short_percent};

use crate::consistency_words::availability_in_words;
use crate::families::AnyFamily;
use crate::family::{ItemIs, ItemWords, WritePlace};
use crate::isolation;
use crate::over_time;
use crate::sessions_text::{headline, sessions};
use crate::shares::percent;
use crate::tables::new_table;
use crate::witness::{Offender, Witness};

/// The SLA as a sentence.
pub fn sla_in_words(sla: &Sla) -> String {
    let isolation = sla.isolation.map_or(String::new(), |level| format!(" {} transactions,", level.name()));
    let gamma = sla.gamma.map_or(String::new(), |gamma| {
        format!(" {}% of values with a Γ within {},", gamma.percent, short_time(gamma.limit_ns))
    });
    format!(
        "{}% of operations within {}, at most {}% unpredictable reads,{gamma}{isolation} for {} s",
        sla.alpha_percent,
        short_time(sla.beta_ns),
        sla.tau_percent,
        sla.delta_s
    )
}

/// The run, its store, its trace set and its host.
pub(crate) fn header(document: &RunDocument) -> String {
    let host = &document.host;
    let mut out = String::new();
    let _ = writeln!(out, "run    {} (Encore {})", document.name, document.encore_version);
    let _ = writeln!(out, "store  {}", document.store);
    for (name, value) in document.store_settings.iter().filter(|(name, _)| *name != NOTE) {
        let _ = writeln!(out, "       {name} = {value}");
    }
    let _ = writeln!(out, "trace  {} ({})", document.trace.display(), document.trace_id);
    let _ = writeln!(out, "host   {}, {}, {}", host.name, host.system, plural(host.cpus.into(), "processor"));
    for note in document.notes() {
        let _ = writeln!(out, "note   {note}");
    }
    out
}

/// The store's own counters for an experiment, one per line; empty if it counts nothing.
pub(crate) fn counted(counters: &BTreeMap<String, u64>) -> String {
    if counters.is_empty() {
        return String::new();
    }
    let width = counters.keys().map(String::len).max().unwrap_or(0);
    let lines = counters.iter().map(|(name, count)| format!("  {name:<width$}  {}\n", thousands(*count)));
    format!("\nstore counters\n{}", lines.collect::<String>())
}

/// One row per experiment, then the reasons of those that did not pass, and closing reads that found
/// something.
pub(crate) fn experiments(verdicts: &[Verdict]) -> String {
    let is_open_loop = verdicts.iter().any(|verdict| verdict.rate_per_s.is_some());
    let mut columns = vec!["#", "T", "ops/s", "p95", "p99", "% within", "% unpred.", "verdict"];
    if is_open_loop {
        // With more of them the table is wider than a terminal.
        columns.insert(5, "service\np95");
        columns.insert(2, "due/s");
    }
    let mut table = new_table(&columns, columns.len() - 1);
    for verdict in verdicts {
        let (figures, overall) = (&verdict.figures, &verdict.figures.overall);
        let mut measured = vec![
            thousands(figures.throughput_per_s.round() as u64),
            short_time(overall.p95_ns),
            short_time(overall.p99_ns),
        ];
        if is_open_loop {
            measured.push(overall.service.map_or("-".to_string(), |service| short_time(service.p95_ns)));
        }
        measured.extend([
            short_percent(figures.within_beta_percent).to_string(),
            short_percent(figures.unpredictable_percent).to_string(),
        ]);
        // Without an operation nothing was measured, and 0 would say that something was.
        if overall.operations() == 0 {
            measured.fill("-".to_string());
        }
        let mut row = vec![verdict.experiment.to_string(), verdict.threads.to_string()];
        let due = |rate: f64| thousands(rate.round() as u64);
        row.extend(is_open_loop.then(|| verdict.rate_per_s.map_or("-".to_string(), due)));
        row.extend(measured);
        row.push(verdict.ruling.name().to_string());
        table.add_row(row);
    }
    let mut out = format!("{}\n", table.trim_fmt());
    for verdict in verdicts.iter().filter(|verdict| !verdict.reasons.is_empty()) {
        let _ = writeln!(out, "# {} {}: {}", verdict.experiment, verdict.ruling.name(), verdict.reasons.join("; "));
    }
    for verdict in verdicts {
        if let Some(closing) = verdict.figures.closing.as_ref().filter(|closing| closing.is_notable()) {
            let _ = writeln!(out, "# {} {}", verdict.experiment, closing.in_words());
        }
        if let Some(sum) = &verdict.figures.sum {
            let _ = writeln!(out, "# {} {}", verdict.experiment, sum.in_words());
        }
        for line in verdict.figures.conditions.iter().filter(|own| own.is_notable()).flat_map(ConditionFigures::lines) {
            let _ = writeln!(out, "# {} {line}", verdict.experiment);
        }
    }
    out
}

/// The figures of one experiment: by operation, over time, and the freshness of reads.
pub(crate) fn experiment(verdict: &Verdict) -> String {
    let figures = &verdict.figures;
    let mut out = format!(
        "experiment {}, T={}{}, {}, SLA {}{}\n{}\n",
        verdict.experiment,
        verdict.threads,
        verdict.rate_per_s.map_or(String::new(), |rate| format!(", {} sessions/s due", thousands(rate.round() as u64))),
        short_time(figures.elapsed_ns),
        verdict.sla,
        shorter_than_asked(verdict),
        operations(&verdict.figures)
    );
    for missing in &verdict.figures.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    if let Some(transactions) = &figures.transactions {
        let _ = writeln!(out, "{}", transactions.in_words());
    }
    if let Some(anomalies) = &figures.anomalies {
        let _ = writeln!(out, "{}", isolation::sentence(anomalies));
    }
    out += &closing(figures);
    for line in figures.conditions.iter().flat_map(ConditionFigures::lines) {
        let _ = writeln!(out, "{line}");
    }
    let by_session = sessions(figures);
    if !by_session.is_empty() {
        let _ = write!(out, "\n{by_session}");
        headline(figures).iter().for_each(|headline| {
            let _ = writeln!(out, "{headline}");
        });
    }
    if !verdict.replayers.is_empty() {
        let mut table = new_table(&["replayer", "T", "throughput/s", "% within", "% unpred.", "missed"], 0);
        for replayer in &verdict.replayers {
            table.add_row([
                replayer.name.clone(),
                replayer.threads.to_string(),
                rate(replayer.throughput_per_s),
                short_percent(replayer.within_beta_percent).to_string(),
                short_percent(replayer.unpredictable_percent).to_string(),
                replayer.missed.join("; "),
            ]);
        }
        let _ = writeln!(out, "\n{}", table.trim_fmt());
    }
    let parts = [
        over_time::throughput(figures) + &over_time::met(figures, &verdict.sla),
        over_time::timeline(figures),
        over_time::consistency(figures) + &available(verdict),
        over_time::freshness(&figures.freshness),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let _ = write!(out, "\n{part}");
    }
    out
}

/// How available the store was; empty if all operations succeeded.
fn available(verdict: &Verdict) -> String {
    let overall = &verdict.figures.overall;
    if overall.ok == overall.operations() {
        return String::new();
    }
    format!("availability     {}\n", availability_in_words(verdict))
}

/// What the closing read found, and the sum that follows from it; empty if there was none.
fn closing(figures: &Figures) -> String {
    let Some(closing) = &figures.closing else { return String::new() };
    let mut out = format!("{}\n", closing.in_words());
    if let Some(sum) = &figures.sum {
        let _ = writeln!(out, "{}", sum.in_words());
    }
    for missing in &closing.missing {
        let _ = writeln!(out, "missing of the closing read: {missing}");
    }
    out
}

/// The time that was judged, if it is shorter than the SLA asks for: in a search, or if the user
/// made the experiment short.
fn shorter_than_asked(verdict: &Verdict) -> String {
    let counted_s = verdict.figures.counted_ns as f64 / 1e9;
    if counted_s >= verdict.sla.delta_s * 0.999 {
        return String::new();
    }
    format!(", judged over {} of its {} s", short_time(verdict.figures.counted_ns), verdict.sla.delta_s)
}

/// A line for each experiment that passed but was shorter than the SLA asks for.
pub(crate) fn short_ones(verdicts: &[Verdict]) -> String {
    let passed = verdicts.iter().filter(|verdict| verdict.ruling == Ruling::Pass);
    let lines = passed.filter(|verdict| !shorter_than_asked(verdict).is_empty()).map(|verdict| {
        let (counted, asked) = (short_time(verdict.figures.counted_ns), verdict.sla.delta_s);
        format!("# {} pass, but only over {counted} of the SLA's {asked} s\n", verdict.experiment)
    });
    lines.collect()
}

/// One row for each operation of the vocabulary. Columns that are 0 in every row are omitted: with
/// them the table is wider than a terminal.
pub fn operations(figures: &Figures) -> String {
    type Count = fn(&OperationFigures) -> u64;
    let overall = &figures.overall;
    let counts: [(&str, Count); 5] = [
        ("failed", |figures| figures.failed),
        ("unknown", |figures| figures.unknown),
        ("skipped", |figures| figures.skipped),
        ("aborted", |figures| figures.aborted),
        ("unpredictable", |figures| figures.unpredictable),
    ];
    // Begin, commit and abort are not among all operations.
    let occurs = |count: Count| count(overall) > 0 || figures.by_operation.values().any(|own| count(own) > 0);
    let shown = || counts.into_iter().filter(|(_, count)| occurs(*count));
    let columns: Vec<&str> = ["operation", "ok"]
        .into_iter()
        .chain(shown().map(|(name, _)| name))
        .chain(["p50", "p95", "p99", "max", "% within"])
        .collect();
    let mut table = new_table(&columns, 0);
    let rows = figures.by_operation.iter().map(|(operation, figures)| (operation.as_str(), figures));
    for (name, figures) in rows.chain([("all", overall)]) {
        let issued = figures.ok + figures.failed + figures.unknown;
        let mut row = vec![name.to_string(), thousands(figures.ok)];
        row.extend(shown().map(|(_, count)| thousands(count(figures))));
        row.extend([figures.p50_ns, figures.p95_ns, figures.p99_ns, figures.max_ns].map(short_time));
        row.push(format!("{:.2}", percent(figures.within_beta, issued)));
        table.add_row(row);
    }
    // Without transactions nothing could be rolled back.
    let is_possible = |name: &str| name != "aborted" || figures.transactions.is_some();
    let none = counts.into_iter().filter(|(name, count)| !occurs(*count) && is_possible(name));
    let none: Vec<&str> = none.map(|(name, _)| name).collect();
    let note = if none.is_empty() { String::new() } else { format!("\nnone: {}", none.join(", ")) };
    format!("{}{note}{}", table.trim_fmt(), service_times(figures))
}

/// The service times of an open loop, one row for each operation; empty in a closed loop.
fn service_times(figures: &Figures) -> String {
    if figures.overall.service.is_none() {
        return String::new();
    }
    let mut table = new_table(&["service time", "mean", "p50", "p95", "p99", "max"], 0);
    let rows = figures.by_operation.iter().map(|(operation, figures)| (operation.as_str(), figures));
    for (name, figures) in rows.chain([("all", &figures.overall)]) {
        let Some(service) = figures.service else { continue };
        let times = [service.mean_ns as u64, service.p50_ns, service.p95_ns, service.p99_ns, service.max_ns];
        table.add_row(std::iter::once(name.to_string()).chain(times.map(short_time)));
    }
    format!(
        "\n\nThe times above are response times, from when a session was due. Service times are from the start of an \
         operation:\n{}",
        table.trim_fmt()
    )
}

/// How many reads were checked, and the worst unpredictable reads with their witnesses.
pub(crate) fn validation(
    family: &dyn AnyFamily,
    verdict: &Verdict,
    in_warmup: i64,
    offenders: &[Offender],
    conditions: &[Condition],
) -> String {
    let figures = &verdict.figures;
    let mut out = format!(
        "experiment {}, {}: {} checked, {} unpredictable ({}%)\n",
        verdict.experiment,
        plural(verdict.threads.into(), "thread"),
        plural(figures.reads, "read"),
        thousands(figures.unpredictable_reads),
        short_percent(figures.unpredictable_percent)
    );
    if in_warmup > 0 {
        let reads = plural(in_warmup.unsigned_abs(), "more unpredictable read");
        let _ = writeln!(out, "outside the measured part: {reads} (not counted)");
    }
    for missing in &figures.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    out += &closing(figures);
    out += &conditions_with_rows(figures, conditions);
    if figures.transactions.is_some() {
        let _ = write!(out, "\n{}", isolation::verdict_in_words(figures, family));
    }
    for (index, offender) in offenders.iter().enumerate() {
        let _ = write!(out, "\n{}. {}", index + 1, offense(family, offender));
    }
    out
}

/// The conditions that are violated or could not be checked, with the rows that are known here; a line if all hold.
fn conditions_with_rows(figures: &Figures, found: &[Condition]) -> String {
    let broken: Vec<String> = found.iter().filter_map(Condition::with_rows).collect();
    let lines = match broken.is_empty() {
        true => figures.conditions.iter().flat_map(ConditionFigures::lines).collect(),
        false => broken,
    };
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// An unpredictable read, described in sentences.
pub(crate) struct Story {
    /// The read: operation, session, step and fragment.
    pub(crate) heading: String,
    /// What the read returned, and what it could have returned.
    pub(crate) sentence: String,
    /// Which writes prove it.
    pub(crate) because: String,
}

/// Describes an unpredictable read.
pub(crate) fn story(family: &dyn AnyFamily, offender: &Offender) -> Story {
    let Offender { item, owner, observed, low, high, .. } = offender;
    let range = if low == high { format!("{low}") } else { format!("{low} to {high}") };
    let sentence = match family.words(item) {
        Some(ItemWords { owner: noun, is: ItemIs::Count(counted) }) => {
            format!("This read returned {observed} as the number of {counted} of {noun} {owner}; correct: {range}")
        }
        _ => format!("This read returned a wrong value: {}", what_is_wrong(family, offender)),
    };
    let because = match (offender.writes.len(), offender.earlier_writes) {
        (0, 0) => "No write of this item before the end of the read.".to_string(),
        (1, 0) => "Evidence: this operation.".to_string(),
        (n, 0) => format!("Evidence: these {n} operations."),
        (n, more) => format!("Evidence: these {n} operations and {more} earlier ones."),
    };
    Story { heading: heading(offender), sentence: format!("{sentence}."), because }
}

/// The read: its operation, session, step and fragment.
fn heading(offender: &Offender) -> String {
    let Offender { operation, fragment, .. } = offender;
    match (offender.session, offender.step) {
        (Some(session), Some(step)) => format!("{operation} by session {session} step {step} of fragment {fragment}"),
        _ => format!("{operation} by the closing read of fragment {fragment}"),
    }
}

fn offense(family: &dyn AnyFamily, offender: &Offender) -> String {
    let mut out = format!(
        "{}, from {} to {}\n   {}\n",
        heading(offender),
        time(offender.start_ns),
        time(offender.end_ns),
        what_is_wrong(family, offender)
    );
    match family.words(&offender.item).map(|words| words.is) {
        Some(ItemIs::Count(_) | ItemIs::List(_) | ItemIs::Register { .. } | ItemIs::Existence) => {}
        Some(ItemIs::Constant(_) | ItemIs::Place(_) | ItemIs::Answer(_)) | None => {
            return out + "   no write changes this item\n";
        }
    }
    if offender.writes.is_empty() {
        return out + "   no write of this item before the end of the read\n";
    }
    out.push_str("   writes before and during the read (times relative to its start):\n");
    for write in &offender.writes {
        let _ = writeln!(out, "     {}", write_line(family, write, offender));
    }
    if offender.earlier_writes > 0 {
        let _ = writeln!(out, "     and {}", plural(offender.earlier_writes as u64, "earlier write"));
    }
    out
}

fn what_is_wrong(family: &dyn AnyFamily, offender: &Offender) -> String {
    let Offender { item, owner, observed, low, high, .. } = offender;
    let element = offender.element.unwrap_or(-1);
    let state = |times: i64| match times {
        0 => "absent".to_string(),
        1 => "present".to_string(),
        n => format!("listed {n} times"),
    };
    let range = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let Some(words) = family.words(item) else {
        return format!("the answer about {owner} has the wrong number of values: {observed} instead of {range}");
    };
    let noun = words.owner;
    match words.is {
        ItemIs::List(element_noun) => {
            let should = if low == high { state(*low) } else { "absent or present, once".to_string() };
            let was = state(*observed);
            format!("{item} of {noun} {owner}: {element_noun} {element} was {was}, should have been {should}")
        }
        ItemIs::Place(what) => {
            format!("{item} of {noun} {owner}, place {element}: {what} {observed}, should have been {range}")
        }
        ItemIs::Count(_) | ItemIs::Constant(_) => {
            format!("{item} of {noun} {owner}: {observed}, should have been {range}")
        }
        ItemIs::Register { noun: register, absent } if *observed == absent => {
            format!("{register} {element} of {noun} {owner} has no value, although every write of it leaves one")
        }
        ItemIs::Register { noun: register, .. } => {
            format!("{register} {element} of {noun} {owner} had {}", value_of_another_write(family, offender))
        }
        ItemIs::Existence if *observed == 0 => format!("{noun} {owner} was not found, although it existed"),
        ItemIs::Existence => format!("{noun} {owner} was found, although it did not exist"),
        ItemIs::Answer(wrong) => {
            format!("the answer about {noun} {owner} has {observed} values ({range} expected), or {wrong}")
        }
    }
}

/// Whose value was read of a register, and why no correct store returns it.
fn value_of_another_write(family: &dyn AnyFamily, offender: &Offender) -> String {
    let write_of = |id: i64| {
        let WritePlace { fragment, session, step } = family.writer(id)?;
        let elsewhere = if fragment == offender.fragment { "" } else { &format!(" of fragment {fragment}") };
        Some(format!("session {session} step {step}{elsewhere}"))
    };
    // The newest write that the read had to see, or a later one.
    match (write_of(offender.observed), write_of(offender.low)) {
        (None, None) => "a value that no session wrote, and it has no initial value".to_string(),
        (None, Some(newest)) => format!("its initial value, which {newest} had overwritten before the read began"),
        (Some(seen), None) => format!("the value of {seen}, which had not written it before the read ended"),
        (Some(seen), Some(newest)) if offender.saw_write => {
            format!("the value of {seen}, which {newest} had overwritten before the read began")
        }
        (Some(seen), Some(newest)) => format!("the value of {seen} instead of that of {newest} or a later write"),
    }
}

pub(crate) fn write_line(family: &dyn AnyFamily, write: &Witness, offender: &Offender) -> String {
    let change = match (family.words(&offender.item).map(|words| words.is), write.change) {
        (Some(ItemIs::Register { .. }), _) => "writes".to_string(),
        (Some(ItemIs::Existence), 1) => "inserts".to_string(),
        (Some(ItemIs::Existence), _) => "deletes".to_string(),
        (Some(ItemIs::List(_)), 1) => "adds".to_string(),
        (Some(ItemIs::List(_)), _) => "removes".to_string(),
        (_, delta) => format!("{delta:+}"),
    };
    let start = relative(write.start_ns - offender.start_ns);
    let time = match write.outcome {
        Outcome::Unknown => format!("from {start} on (outcome unknown)"),
        _ => format!("{start} to {}", relative(write.end_ns - offender.start_ns)),
    };
    let Witness { session, step, operation, .. } = write;
    format!("{change:<7} {operation}, session {session} step {step}: {time}")
}

fn relative(ns: i64) -> String {
    if ns < 0 { time(ns) } else { format!("+{}", time(ns)) }
}

/// A time with all its digits: reads and writes are often less than a microsecond apart.
fn time(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "-" } else { "" }, exact_time(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_without_operations_shows_no_figures() {
        let mut verdict = crate::void_verdict(3, 8, Sla::default(), vec!["lost".into()]);
        let row = |verdict: &Verdict| {
            let text = experiments(std::slice::from_ref(verdict));
            text.lines().nth(2).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row(&verdict), "3 8 - - - - - void");
        verdict.figures.overall.failed = 1;
        assert_eq!(row(&verdict), "3 8 0 0ns 0ns 0 0 void");
    }

    #[test]
    fn times_of_reads_and_writes_have_all_their_digits() {
        assert_eq!([145_840_981, -63, 0].map(time), ["145.840981ms", "-63ns", "0ns"]);
        assert_eq!([20_500, -63].map(relative), ["+20.5us", "-63ns"]);
    }
}
