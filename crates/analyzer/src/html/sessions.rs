//! Sessions by their kinds: how they ended, how long they took, and what the benchmark asks of them.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::{DrawRule, SessionFigures, Verdict};
use schemas::words::{rate, short_percent};

use super::layout::{Column, Section, section, statement, table};
use crate::report::thousands as grouped;
use crate::sessions_text::{goal, headline};

/// None if the vocabulary has no figures of sessions.
pub(super) fn sessions(verdict: &Verdict) -> Option<Section> {
    let figures = &verdict.figures;
    if figures.by_session.is_empty() {
        return None;
    }
    let columns: Vec<Column> = std::iter::once(Column::Words("session"))
        .chain(
            ["committed", "a minute", "% of mix", "at least", "rolled back", "aborted", "failed"].map(Column::Number),
        )
        .chain(["unknown", "skipped", "p50", "p90", "at most", "max"].map(Column::Number))
        .collect();
    let row = |(kind, own): (&String, &SessionFigures)| {
        let least = goal(own.share_min_percent.map(|least| short_percent(least).to_string()), own.is_frequent_enough());
        let most = goal(own.p90_max_ns.map(short_time), own.is_fast_enough());
        let share = format!("{:.2}", own.share_percent);
        let mut row = vec![kind.clone(), grouped(own.committed), rate(own.per_minute), share, least];
        row.extend([own.rolled_back, own.aborted, own.failed, own.unknown, own.skipped].map(grouped));
        row.extend([short_time(own.p50_ns), short_time(own.p90_ns), most, short_time(own.max_ns)]);
        row.into_iter().map(|text| html! { (text) }).collect()
    };
    let rows: Vec<Vec<Markup>> = figures.by_session.iter().map(row).collect();
    let missed = figures.by_session.iter().flat_map(|(kind, own)| own.misses(kind));
    let sql = format!("SELECT * FROM session_kinds WHERE experiment = {} ORDER BY kind", verdict.experiment);
    let [name, clause, of, achieved, allowed, holds] = DrawRule::COLUMNS;
    let rules = [
        Column::Words(name),
        Column::Words(clause),
        Column::Number(of),
        Column::Number(achieved),
        Column::Words(allowed),
        Column::Words(holds),
    ];
    let cells = |rule: &DrawRule| rule.cells().into_iter().map(|text| html! { (text) }).collect();
    let drawn: Vec<Vec<Markup>> = figures.draw_rules.iter().map(cells).collect();
    let content = html! {
        @if let Some(headline) = headline(figures) { p { (headline) "." } }
        @for sentence in missed { p.fail { (sentence) "." } }
        (table(&columns, &rows))
        p.soft {
            "Response times are of sessions that were committed or rolled back as the trace asks, from when they were due \
             or, in a closed loop, started."
        }
        (statement(&sql))
        @if !figures.draw_rules.is_empty() {
            p { "What the sessions of the measured part have drawn, and what the benchmark allows:" }
            (table(&rules, &drawn))
        }
    };
    Some(section("Sessions", content))
}
