//! Figures by kind of session as text.

use std::fmt::Write;

use schemas::sla::short_time;
use schemas::verdict::{DrawRule, Figures, SessionFigures};
use schemas::words::{rate, short_percent, thousands};

use crate::tables::new_table;

/// One row for each kind of session, and what the benchmark asks of them; empty if there are none.
/// Columns that are 0 in every row are omitted.
pub fn sessions(figures: &Figures) -> String {
    type Count = fn(&SessionFigures) -> u64;
    if figures.by_session.is_empty() {
        return String::new();
    }
    let all = || figures.by_session.values();
    let counts: [(&str, Count); 5] = [
        ("rolled back", |own| own.rolled_back),
        ("aborted", |own| own.aborted),
        ("failed", |own| own.failed),
        ("unknown", |own| own.unknown),
        ("skipped", |own| own.skipped),
    ];
    let shown: Vec<_> = counts.into_iter().filter(|(_, count)| all().any(|own| count(own) > 0)).collect();
    let has_goals = all().any(|own| own.p90_max_ns.is_some() || own.share_min_percent.is_some());
    let mut columns = vec!["session", "committed", "a minute", "% of mix"];
    columns.extend(shown.iter().map(|(name, _)| *name));
    columns.extend(["p50", "p90", "max"]);
    if has_goals {
        columns.extend(["p90 limit", "% least"]);
    }
    let mut table = new_table(&columns, 0);
    for (kind, own) in &figures.by_session {
        let mut row = vec![kind.clone(), thousands(own.committed), rate(own.per_minute)];
        row.push(format!("{:.2}", own.share_percent));
        row.extend(shown.iter().map(|(_, count)| thousands(count(own))));
        row.extend([own.p50_ns, own.p90_ns, own.max_ns].map(short_time));
        if has_goals {
            row.push(goal(own.p90_max_ns.map(short_time), own.is_fast_enough()));
            row.push(goal(
                own.share_min_percent.map(|least| short_percent(least).to_string()),
                own.is_frequent_enough(),
            ));
        }
        table.add_row(row);
    }
    let mut out = format!("{}\n", table.trim_fmt());
    for (kind, own) in &figures.by_session {
        own.misses(kind).iter().for_each(|missed| {
            let _ = writeln!(out, "missed: {missed}");
        });
    }
    if !figures.draw_rules.is_empty() {
        let mut table = new_table(&DrawRule::COLUMNS, 0);
        table.add_rows(figures.draw_rules.iter().map(DrawRule::cells));
        let _ = write!(out, "\n{}\n", table.trim_fmt());
    }
    out
}

/// A limit, and whether it was kept.
pub(crate) fn goal(limit: Option<String>, is_kept: Option<bool>) -> String {
    let Some(limit) = limit else { return "-".to_string() };
    match is_kept {
        Some(true) => format!("{limit} pass"),
        Some(false) => format!("{limit} miss"),
        None => limit,
    }
}

/// The figure that the benchmark is known by, in words; None if it has none.
pub fn headline(figures: &Figures) -> Option<String> {
    let headline = figures.headline.as_ref()?;
    let per_minute = figures.by_session.get(&headline.kind).map_or(0.0, |own| own.per_minute);
    let missed: usize = figures.by_session.iter().map(|(kind, own)| own.misses(kind).len()).sum();
    let missed = match missed {
        0 => String::new(),
        1 => "; 1 constraint of the benchmark is missed".to_string(),
        several => format!("; {several} constraints of the benchmark are missed"),
    };
    Some(headline.in_words(per_minute) + &missed)
}

#[cfg(test)]
mod tests {
    use schemas::verdict::Headline;

    use super::*;

    #[test]
    fn sessions_are_shown_with_what_the_benchmark_asks_of_them() {
        let orders = SessionFigures {
            sessions: 4_510,
            committed: 4_455,
            rolled_back: 45,
            aborted: 10,
            per_minute: 13_365.2,
            share_percent: 45.0,
            p50_ns: 12_345_678,
            p90_ns: 5_200_000_000,
            max_ns: 7_000_000_000,
            p90_max_ns: Some(5_000_000_000),
            ..SessionFigures::default()
        };
        let payments = SessionFigures {
            sessions: 5_500,
            committed: 5_500,
            per_minute: 16_500.0,
            share_percent: 55.0,
            p50_ns: 1_000_000,
            p90_ns: 2_000_000,
            max_ns: 3_000_000,
            p90_max_ns: Some(5_000_000_000),
            share_min_percent: Some(43.0),
            ..SessionFigures::default()
        };
        let mut figures = Figures::default();
        assert_eq!(sessions(&figures), "");
        figures.by_session =
            [("new-order".to_string(), orders), ("payment".to_string(), payments)].into_iter().collect();
        figures.headline = Some(Headline { name: "tpmC".into(), kind: "new-order".into() });
        let (table, headline_of) = (sessions(&figures), headline(&figures).unwrap());
        insta::assert_snapshot!(format!("{table}{headline_of}"));
        figures.by_session.shift_remove("new-order");
        assert_eq!(headline(&figures).as_deref(), Some("tpmC 0.0 (committed new-order sessions a minute)"));
    }
}
