//! The verdict on isolation in tables and sentences.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemas::anomalies::{Anomalies, Class};
use schemas::isolation::{Isolation, TRANSACTIONS_SETTING};
use schemas::run::RunDocument;
use schemas::verdict::{Figures, SumFigures, Verdict};
use schemas::words::{plural, thousands};

use crate::consistency::isolation::story::{self, Names};
use crate::families::AnyFamily;
use crate::tables::new_table;

/// The seconds that are shown.
pub(crate) const SECONDS_SHOWN: usize = 30;

/// The level that the store says it runs at, in its own words, and as a level if it is one.
pub(crate) fn promised(document: &RunDocument) -> (Option<&str>, Option<Isolation>) {
    let settings = &document.store_settings;
    (settings.get(TRANSACTIONS_SETTING).map(String::as_str), Isolation::promised(settings))
}

/// Whether the transactions show a weaker level than this.
pub(crate) fn is_weaker(anomalies: &Anomalies, promised: Option<Isolation>) -> bool {
    promised.is_some_and(|promised| anomalies.strongest() < Some(promised))
}

/// The name of a level; None is weaker than all.
pub(crate) fn name(level: Option<Isolation>) -> &'static str {
    level.map_or("none", Isolation::name)
}

/// The strongest level that the transactions are consistent with, in words.
pub(crate) fn shown(anomalies: &Anomalies) -> &'static str {
    if anomalies.is_blind() { "not known" } else { name(anomalies.strongest()) }
}

/// The counts of the classes that were found.
pub(crate) fn in_words(anomalies: &Anomalies) -> String {
    let found = Class::ALL.into_iter().filter(|class| anomalies.count(*class) > 0);
    let counts: Vec<String> =
        found.map(|class| format!("{} {}", thousands(anomalies.count(class)), class.words())).collect();
    if counts.is_empty() { "no anomaly".into() } else { counts.join(", ") }
}

/// What the transactions show, in one sentence.
pub fn sentence(anomalies: &Anomalies) -> String {
    if anomalies.is_blind() {
        return "isolation: not known, since what was read does not say who wrote it".to_string();
    }
    let level = name(anomalies.strongest());
    let mut out = format!("isolation: consistent with {level}; {}", in_words(anomalies));
    if anomalies.unordered_writes > 0 {
        let _ = write!(
            out,
            "; {} of an item that its transaction had not read (their order is not known)",
            plural(anomalies.unordered_writes, "write")
        );
    }
    if anomalies.ambiguous_reads > 0 {
        let _ = write!(out, "; {} of an unknown version", plural(anomalies.ambiguous_reads, "read"));
    }
    out
}

/// What an experiment says of its transactions, a sentence each: the sum that they keep with its score, and the
/// isolation that they show beside the one that the store's settings promise. Empty without transactions.
pub fn transactions(figures: &Figures, settings: &BTreeMap<String, String>) -> Vec<String> {
    let mut out: Vec<String> = figures.sum.iter().map(SumFigures::in_words).collect();
    let Some(found) = &figures.anomalies else {
        out.extend(figures.transactions.map(|_| format!("isolation: {}", without(figures))));
        return out;
    };
    let promised = Isolation::promised(settings);
    let words = settings.get(TRANSACTIONS_SETTING).map_or("nothing about isolation", String::as_str);
    let mark = if is_weaker(found, promised) { "weaker than promised: " } else { "" };
    out.push(format!("{}; {mark}the store promises {words}", sentence(found)));
    out
}

/// A sentence for an experiment without transactions that can be judged.
pub(crate) fn without(figures: &Figures) -> &'static str {
    match figures.transactions {
        None => "no transactions: the trace has none, so there is no isolation to judge",
        Some(_) => {
            "no transactions: the store has none, or the plan does not use them, so each operation was by itself"
        }
    }
}

/// Names of items by a family.
struct OfFamily<'a>(&'a dyn AnyFamily);

impl Names for OfFamily<'_> {
    fn item(&self, owner: u64, element: u32) -> String {
        self.0.item_in_history(owner, element)
    }

    fn writer(&self, write: i64) -> Option<(i64, i64)> {
        self.0.writer(write).map(|place| (place.session, place.step))
    }
}

/// The stories of the witnesses, the worst class first.
pub(crate) fn stories(anomalies: &Anomalies, family: &dyn AnyFamily) -> Vec<String> {
    anomalies.witnesses.iter().map(|witness| story::tell(witness, &OfFamily(family))).collect()
}

/// What the transactions of an experiment show, with the story of the worst class.
pub(crate) fn verdict_in_words(figures: &Figures, family: &dyn AnyFamily) -> String {
    let Some(anomalies) = &figures.anomalies else { return format!("{}\n", without(figures)) };
    let worst = stories(anomalies, family).into_iter().next().unwrap_or_default();
    format!("{}\n{worst}", sentence(anomalies))
}

/// One row for each experiment: counts by class, the level, and whether that is what was promised.
pub(crate) fn table(verdicts: &[&Verdict], promised: Option<Isolation>) -> String {
    let judged = || verdicts.iter().filter_map(|verdict| Some((verdict, verdict.figures.anomalies.as_ref()?)));
    let classes: Vec<Class> =
        Class::ALL.into_iter().filter(|class| judged().any(|(_, found)| found.count(*class) > 0)).collect();
    let mut columns = vec!["#", "T", "committed", "aborted", "unknown"];
    columns.extend(classes.iter().map(|class| class.words()));
    columns.push("shows");
    let mut table = new_table(&columns, columns.len() - 1);
    for (verdict, found) in judged() {
        let mut row = vec![verdict.experiment.to_string(), verdict.threads.to_string()];
        row.extend([found.committed, found.aborted, found.unknown].map(thousands));
        row.extend(classes.iter().map(|class| thousands(found.count(*class))));
        let mark = if is_weaker(found, promised) { " (weaker than promised)" } else { "" };
        row.push(format!("{}{mark}", shown(found)));
        table.add_row(row);
    }
    let mut out = if judged().next().is_none() { String::new() } else { format!("{}\n", table.trim_fmt()) };
    for verdict in verdicts.iter().filter(|verdict| verdict.figures.anomalies.is_none()) {
        let _ = writeln!(out, "# {} {}", verdict.experiment, without(&verdict.figures));
    }
    out
}

/// Anomalies by second, for the seconds that have some.
pub(crate) fn by_second(anomalies: &Anomalies) -> String {
    let shown: Vec<Class> = Class::ALL.into_iter().filter(|class| anomalies.count(*class) > 0).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut table =
        new_table(&std::iter::once("second").chain(shown.iter().map(|class| class.words())).collect::<Vec<_>>(), 0);
    let seconds =
        || anomalies.per_second.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
    for (second, counts) in seconds().take(SECONDS_SHOWN) {
        let counts = shown.iter().map(|class| thousands(counts[*class as usize]));
        table.add_row(std::iter::once(second.to_string()).chain(counts));
    }
    let more = seconds().count().saturating_sub(SECONDS_SHOWN) as u64;
    let note = match more {
        0 => String::new(),
        more => format!("and {}: SELECT * FROM isolation_anomalies\n", plural(more, "more second")),
    };
    format!("{}\n{note}", table.trim_fmt())
}
