//! Isolation of the transactions: the level, the anomalies by experiment, and the smallest of each class.

use maud::{Markup, html};
use schemas::anomalies::Class;
use schemas::verdict::Verdict;

use super::RunData;
use super::layout::{Column, Section, section, statement, table};
use crate::isolation::{is_weaker, name, promised, sentence, stories, without};
use crate::report::thousands as grouped;

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
                (name(found.strongest()))
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
            @for story in stories(found, data.family) { pre { (story) } }
        }
        (statement(&sql))
    }
}
