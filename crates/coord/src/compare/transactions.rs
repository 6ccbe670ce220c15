//! What transactions cost: throughput with and without them, response times of operations, of begin,
//! commit and abort, and how many tries were rolled back. Only comparisons that measure a workload with
//! transactions show this.

use analyzer::chart::{Across, LineChart, LinePoint, LineSeries, Mark as PointMark, Scale};
use schemas::comparison::{Cell, ComparisonDocument, Measurement, Outcome, Use};
use schemas::sla::short_time;

use super::show::axis_label;
use super::table::label;
use crate::terminal::percent;

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTable {
    /// Its title.
    pub title: &'static str,
    /// The names of its columns.
    pub header: Vec<String>,
    /// Its rows, as wide as the header.
    pub rows: Vec<Vec<String>>,
}

/// The title of the table and the chart of what transactions cost.
const SHARES: &str = "Throughput with transactions, of that without them";

/// What stands where nothing was measured.
const NOTHING: &str = "-";

/// The tables about transactions; none if no cell has any.
pub fn tables(document: &ComparisonDocument) -> Vec<TextTable> {
    if document.cells.iter().all(|cell| measured(cell).is_none_or(|measured| measured.transactions.is_none())) {
        return Vec::new();
    }
    let all = [shares(document), times(document), rolled_back(document)];
    all.into_iter().filter(|table| table.header.len() > 1 && !table.rows.is_empty()).collect()
}

fn measured(cell: &Cell) -> Option<&Measurement> {
    match &cell.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Missing | Outcome::Rated { .. } | Outcome::Failed(_) => None,
    }
}

/// The cells of each point, store by store.
fn points(document: &ComparisonDocument) -> impl Iterator<Item = &[Cell]> {
    document.cells.chunks(document.plan.stores.len().max(1))
}

/// The stores that are measured with and without transactions, as indexes into the plan's stores.
fn pairs(document: &ComparisonDocument) -> Vec<(usize, usize)> {
    let stores = &document.plan.stores;
    let is_off = |index: usize| stores[index].transactions.or(document.plan.transactions) == Some(Use::Off);
    let mut pairs = Vec::new();
    for with in (0..stores.len()).filter(|index| !is_off(*index)) {
        let urls = |index: usize| (&stores[index].url, &stores[index].from);
        let same = |other: &usize| is_off(*other) && urls(*other) == urls(with);
        pairs.extend((0..stores.len()).find(same).map(|without| (with, without)));
    }
    pairs
}

/// The throughput with transactions in percent of that without them.
fn share(cells: &[Cell], (with, without): (usize, usize)) -> Option<f64> {
    let throughput = |index: usize| measured(cells.get(index)?).map(|measured| measured.throughput_per_s);
    let (with, without) = (throughput(with)?, throughput(without)?);
    (without > 0.0).then(|| (with * 1000.0 / without).round() / 10.0)
}

/// The chart of the throughput with transactions, of that without them, over the points of the comparison; None if no
/// store is measured in both modes.
pub fn chart_of_shares(document: &ComparisonDocument) -> Option<LineChart> {
    let pairs = pairs(document);
    let has_transactions = !tables(document).is_empty();
    if pairs.is_empty() || !has_transactions {
        return None;
    }
    let stores = &document.plan.stores;
    let line = |pair: &(usize, usize)| LineSeries {
        label: label(document, &stores[pair.0].label),
        points: points(document)
            .enumerate()
            .map(|(x, cells)| LinePoint {
                x: x as f64,
                y: share(cells, *pair).unwrap_or(f64::NAN),
                mark: PointMark::Filled,
            })
            .collect(),
        ..LineSeries::default()
    };
    let table = shares(document);
    let lines = table.rows.iter().map(|row| {
        let shares = table.header.iter().zip(row).skip(1).map(|(store, share)| format!("{store} {share}"));
        format!("{}: {}", row[0], shares.collect::<Vec<_>>().join(", "))
    });
    Some(LineChart {
        title: SHARES.to_string(),
        description: format!("{SHARES}. {}.", lines.collect::<Vec<_>>().join("; ")),
        x_label: axis_label(document).to_string(),
        y_label: "% of the throughput without transactions".to_string(),
        across: Across::Points(points(document).map(|cells| cells[0].point.clone()).collect()),
        y_scale: Scale::Linear,
        series: pairs.iter().map(line).collect(),
        rules: Vec::new(),
    })
}

fn shares(document: &ComparisonDocument) -> TextTable {
    let pairs = pairs(document);
    let row = |cells: &[Cell]| {
        let shares = pairs.iter().map(|pair| share(cells, *pair).map_or(NOTHING.to_string(), percent));
        std::iter::once(cells[0].point.clone()).chain(shares).collect()
    };
    let stores = &document.plan.stores;
    TextTable {
        title: SHARES,
        header: header(document, pairs.iter().map(|(with, _)| label(document, &stores[*with].label))),
        rows: points(document).map(row).collect(),
    }
}

fn times(document: &ComparisonDocument) -> TextTable {
    let mut rows = Vec::new();
    for cells in points(document) {
        let mut names: Vec<&String> = Vec::new();
        for name in cells.iter().filter_map(measured).flat_map(|measured| measured.by_operation.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let times = |cell: &Cell| {
                let times = measured(cell).and_then(|measured| measured.by_operation.get(name));
                let times = times.filter(|times| times.ok > 0);
                times.map_or(NOTHING.to_string(), |times| {
                    format!("{} / {}", short_time(times.mean_ns.round() as u64), short_time(times.p95_ns))
                })
            };
            rows.push([cells[0].point.clone(), name.clone()].into_iter().chain(cells.iter().map(times)).collect());
        }
    }
    let stores = document.plan.stores.iter().map(|store| label(document, &store.label));
    TextTable {
        title: "Response times (mean / 95th percentile)",
        header: header(document, std::iter::once("operation".to_string()).chain(stores)),
        rows,
    }
}

fn rolled_back(document: &ComparisonDocument) -> TextTable {
    let share = |cell: &Cell| {
        let figures = measured(cell).and_then(|measured| measured.transactions);
        figures.map_or(NOTHING.to_string(), |figures| match figures.tries {
            tries if tries == figures.best_effort => "best effort".to_string(),
            tries => percent((figures.aborted as f64 * 1000.0 / tries as f64).round() / 10.0),
        })
    };
    let row = |cells: &[Cell]| std::iter::once(cells[0].point.clone()).chain(cells.iter().map(share)).collect();
    let stores = document.plan.stores.iter().map(|store| label(document, &store.label));
    TextTable {
        title: "Tries of transactions that the store rolled back",
        header: header(document, stores),
        rows: points(document).map(row).collect(),
    }
}

fn header(document: &ComparisonDocument, columns: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(axis_label(document).to_string()).chain(columns).collect()
}
