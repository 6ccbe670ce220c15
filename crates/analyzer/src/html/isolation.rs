//! Isolation of the transactions: the level, the anomalies by experiment, and the smallest of each class.

use maud::{Markup, html};
use schemas::anomalies::{Anomalies, Class, Counts};
use schemas::verdict::Verdict;

use super::RunData;
use super::layout::{Column, Section, section, statement, table};
use crate::isolation::{SECONDS_SHOWN, is_weaker, promised, sentence, shown, stories, without};
use crate::report::{plural, thousands as grouped};

/// None if the workload has no transactions.
pub(super) fn isolation(data: &RunData<'_>, verdict: &Verdict) -> Option<Section> {
    let has_some = data.verdicts.iter().any(|verdict| verdict.figures.transactions.is_some());
    has_some.then(|| section("Isolation", content(data, verdict)))
}

fn content(data: &RunData<'_>, verdict: &Verdict) -> Markup {
    let (words, level) = promised(data.document);
    let judged: Vec<_> =
        data.verdicts.iter().filter_map(|verdict| Some((verdict, verdict.figures.anomalies.as_ref()?))).collect();
    let columns: Vec<Column> = ["experiment", "T", "committed", "rolled back", "unknown"]
        .into_iter()
        .chain(Class::ALL.into_iter().map(Class::words))
        .map(Column::Number)
        .chain([Column::Words("shows")])
        .collect();
    let rows: Vec<Vec<Markup>> = judged
        .iter()
        .map(|(verdict, found)| {
            let counts = [found.committed, found.aborted, found.unknown].into_iter().chain(found.counts);
            let mut row = vec![html! { (verdict.experiment) }, html! { (verdict.threads) }];
            row.extend(counts.map(|count| html! { (grouped(count)) }));
            row.push(html! {
                (shown(found))
                @if is_weaker(found, level) { span.fail { " weaker than promised" } }
            });
            row
        })
        .collect();
    let sql = format!("SELECT * FROM isolation_anomalies WHERE experiment = {} ORDER BY ALL", verdict.experiment);
    html! {
        p { "The store promises: " (words.unwrap_or("nothing about isolation")) "." }
        @match &verdict.figures.anomalies {
            Some(found) => p { "Experiment " (verdict.experiment) ", " (sentence(found)) "." },
            None => p { "Experiment " (verdict.experiment) ": " (without(&verdict.figures)) "." },
        }
        @if !rows.is_empty() { (table(&columns, &rows)) }
        @if let Some(found) = &verdict.figures.anomalies {
            (by_second(found))
            @for story in stories(found, data.family) { pre { (story) } }
        }
        (statement(&sql))
    }
}

/// Anomalies by the second in which their transaction ended, for the seconds that have some.
fn by_second(found: &Anomalies) -> Markup {
    let shown: Vec<Class> = Class::ALL.into_iter().filter(|class| found.count(*class) > 0).collect();
    if shown.is_empty() {
        return html! {};
    }
    let columns: Vec<Column> =
        std::iter::once("second").chain(shown.iter().map(|class| class.words())).map(Column::Number).collect();
    let seconds = || found.per_second.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0));
    let row = |(second, counts): (usize, &Counts)| {
        let counts = shown.iter().map(|class| html! { (grouped(counts[*class as usize])) });
        std::iter::once(html! { (second) }).chain(counts).collect()
    };
    let rows: Vec<Vec<Markup>> = seconds().take(SECONDS_SHOWN).map(row).collect();
    let more = seconds().count().saturating_sub(SECONDS_SHOWN) as u64;
    html! {
        p { "Anomalies by the second in which their transaction ended:" }
        (table(&columns, &rows))
        @if more > 0 { p.soft { (plural(more, "more second")) " with anomalies: the statement below lists all." } }
    }
}
