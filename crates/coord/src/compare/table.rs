//! The ratings of a comparison as rows and columns, with their marks: what the
//! text, the Markdown and the chart show alike.

use schemas::comparison::{Cell, ComparisonDocument, Concern, Outcome, Wanted};
use schemas::verdict::Rating;

use crate::render::thousands;

/// Which of the two ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Actions a second.
    Soar,
    /// Threads.
    Socialites,
}

impl Metric {
    /// Its name with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Soar => "SoAR (actions/s)",
            Metric::Socialites => "Socialites (threads)",
        }
    }

    /// Those that a comparison searches.
    pub fn of(wanted: Wanted) -> &'static [Metric] {
        match wanted {
            Wanted::Both => &[Metric::Soar, Metric::Socialites],
            Wanted::Soar => &[Metric::Soar],
            Wanted::Socialites => &[Metric::Socialites],
        }
    }

    fn rating(self, cell: &Cell) -> Option<&Rating> {
        match (&cell.outcome, self) {
            (Outcome::Rated { soar, .. }, Metric::Soar) => soar.as_ref(),
            (Outcome::Rated { socialites, .. }, Metric::Socialites) => socialites.as_ref(),
            (Outcome::Missing | Outcome::Failed(_), _) => None,
        }
    }
}

/// What a reader has to know of a number; the sign is beside it, its meaning
/// below the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The highest of its row, clearly.
    Best,
    /// The search ended at its upper limit.
    AtLeast,
    /// No final experiment confirmed it.
    Unconfirmed,
    /// It rests on a void experiment.
    Void,
    /// The SLA was kept with no number of threads.
    Zero,
    /// The rating ended with an error.
    Failed,
    /// It has not been rated yet.
    Missing,
    /// The store promises something else than another one of the table.
    Unequal,
}

impl Mark {
    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Mark::Best => "*       highest of its row, and no other one's interval reaches it",
            Mark::AtLeast => "≥       at least: the search ended at its highest number of threads",
            Mark::Unconfirmed => "?       not confirmed by a final experiment",
            Mark::Void => "void    rests on an experiment that says nothing about the store",
            Mark::Zero => "(0)     the SLA was kept with no number of threads",
            Mark::Failed => "failed  the rating ended with an error",
            Mark::Missing => "-       not rated yet",
            Mark::Unequal => "!       durability or isolation is not that of every other store here",
        }
    }
}

/// One number of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The rating; none when there is none.
    pub value: Option<f64>,
    /// The ends of its interval; the rating itself where it has none.
    pub interval: (f64, f64),
    /// What a reader has to know of it.
    pub marks: Vec<Mark>,
}

impl Entry {
    fn of(cell: &Cell, metric: Metric) -> Entry {
        let mut marks = Vec::new();
        let Some(rating) = metric.rating(cell) else {
            let is_failed = matches!(cell.outcome, Outcome::Failed(_));
            return Entry {
                value: None,
                interval: (0.0, 0.0),
                marks: vec![if is_failed { Mark::Failed } else { Mark::Missing }],
            };
        };
        if rating.value <= 0.0 {
            marks.push(Mark::Zero);
        } else if rating.confirmed_by.is_none() {
            marks.push(Mark::Unconfirmed);
        }
        if rating.at_least {
            marks.push(Mark::AtLeast);
        }
        if rating.rests_on_void.is_some() {
            marks.push(Mark::Void);
        }
        let interval = rating.interval.as_ref().map_or((rating.value, rating.value), |i| (i.low, i.high));
        Entry { value: Some(rating.value), interval, marks }
    }

    fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// The number with its marks.
    pub fn text(&self) -> String {
        let mut out = match self.value {
            _ if self.has(Mark::Failed) => "failed".to_string(),
            None => "-".to_string(),
            Some(_) if self.has(Mark::Zero) => "(0)".to_string(),
            // Below ten a whole number says too little.
            Some(value) if value < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
            Some(value) => thousands(value.round() as u64),
        };
        if self.has(Mark::AtLeast) {
            out.insert_str(0, "≥ ");
        }
        for (mark, sign) in [(Mark::Unconfirmed, "?"), (Mark::Void, " void"), (Mark::Best, " *")] {
            if self.has(mark) {
                out.push_str(sign);
            }
        }
        out
    }
}

/// One rating of every cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Which rating.
    pub metric: Metric,
    /// The stores, each with a mark when it promises something else than another.
    pub stores: Vec<String>,
    /// The points, each with an entry a store.
    pub rows: Vec<(String, Vec<Entry>)>,
}

impl Table {
    /// The table of a rating.
    pub fn new(document: &ComparisonDocument, metric: Metric) -> Table {
        let stores = &document.plan.stores;
        let mut rows = Vec::new();
        for cells in document.cells.chunks(stores.len().max(1)) {
            let mut entries: Vec<Entry> = cells.iter().map(|cell| Entry::of(cell, metric)).collect();
            mark_best(&mut entries);
            let point = cells.first().map_or(String::new(), |cell| cell.point.clone());
            rows.push((point, entries));
        }
        let unequal = unequal_stores(document);
        let label =
            |label: &String| if unequal.contains(&label.as_str()) { format!("{label} !") } else { label.clone() };
        Table { metric, stores: stores.iter().map(|store| label(&store.label)).collect(), rows }
    }

    /// The marks that occur, in the order in which they are explained.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> =
            self.rows.iter().flat_map(|(_, row)| row.iter().flat_map(|e| e.marks.clone())).collect();
        if self.stores.iter().any(|store| store.ends_with(" !")) {
            marks.push(Mark::Unequal);
        }
        marks.sort();
        marks.dedup();
        marks
    }
}

/// Marks the highest above 0 where there is something to choose from, every
/// rating says something about its store, and the choice is clear.
fn mark_best(row: &mut [Entry]) {
    let rated = || row.iter().enumerate().filter_map(|(place, entry)| Some((place, entry.value?)));
    let Some((best, value)) = rated().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let low = row[best].interval.0;
    let is_clear = rated().all(|(place, _)| place == best || row[place].interval.1 < low);
    if value > 0.0 && rated().count() > 1 && is_clear && !row.iter().any(|entry| entry.has(Mark::Void)) {
        row[best].marks.push(Mark::Best);
    }
}

/// The stores whose durability or isolation differs from that of another; all
/// that are known, when any two differ.
fn unequal_stores(document: &ComparisonDocument) -> Vec<&str> {
    let is_promise = |concern| matches!(concern, Concern::Durability | Concern::Isolation);
    if !document.differences.iter().any(|difference| is_promise(difference.concern)) {
        return Vec::new();
    }
    let known = document.cells.iter().filter(|cell| !cell.store_settings.is_empty());
    known.map(|cell| cell.store.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_marked_only_where_it_is_clear() {
        let check = |row: &[(f64, f64, f64, &[Mark])], expect: Option<usize>| {
            let entry = |(value, low, high, marks): &(f64, f64, f64, &[Mark])| Entry {
                value: Some(*value),
                interval: (*low, *high),
                marks: marks.to_vec(),
            };
            let mut row: Vec<Entry> = row.iter().map(entry).collect();
            mark_best(&mut row);
            let marked: Vec<usize> = (0..row.len()).filter(|place| row[*place].has(Mark::Best)).collect();
            assert_eq!(marked, expect.into_iter().collect::<Vec<_>>());
        };
        check(&[(100.0, 90.0, 110.0, &[]), (120.0, 111.0, 130.0, &[])], Some(1));
        check(&[(100.0, 90.0, 112.0, &[]), (120.0, 111.0, 130.0, &[])], None);
        check(&[(100.0, 100.0, 100.0, &[]), (100.0, 100.0, 100.0, &[])], None);
        check(&[(10.0, 10.0, 10.0, &[Mark::Void]), (120.0, 111.0, 130.0, &[])], None);
        check(&[(0.0, 0.0, 0.0, &[Mark::Zero]), (1.0, 1.0, 1.0, &[])], Some(1));
        check(&[(0.0, 0.0, 0.0, &[Mark::Zero]), (0.0, 0.0, 0.0, &[Mark::Zero])], None);
        check(&[(5.0, 5.0, 5.0, &[])], None);
    }
}
