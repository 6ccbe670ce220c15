//! The chart of a comparison: bars for ratings, lines for what was measured along an axis.

use std::fmt::Write as _;
use std::path::Path;

use analyzer::chart::{
    Across, Bar, BarChart, BarSeries, Chart as Drawn, ChartError, LineChart, LinePoint, LineSeries, Mark as PointMark,
    Scale, Shape,
};
use schemas::comparison::{Cell, ComparisonDocument, Outcome, Question};

use super::show::{axis_label, difference_in_words, unequal};
use super::table::{Entry, Mark, Metric, Table};
use crate::terminal::sla_in_words;

/// A chart to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Of ratings.
    Bars(BarChart),
    /// Of what was measured.
    Lines(LineChart),
}

impl Chart {
    /// The same chart with another title.
    pub fn titled(mut self, title: &str) -> Chart {
        match &mut self {
            Chart::Bars(bars) => bars.title = title.to_string(),
            Chart::Lines(lines) => lines.title = title.to_string(),
        }
        self
    }

    /// The same chart, whose points lead to the pages of their cells.
    pub fn linked(mut self, document: &ComparisonDocument, folder: &Path) -> Chart {
        let stores = document.plan.stores.len().max(1);
        let link = |cell: &Cell| page_of(cell, folder).unwrap_or_default();
        let of_store = |index: usize| document.cells.iter().skip(index).step_by(stores).map(link).collect();
        match &mut self {
            Chart::Bars(bars) => {
                bars.series.iter_mut().enumerate().for_each(|(index, series)| series.links = of_store(index))
            }
            Chart::Lines(lines) => {
                lines.series.iter_mut().enumerate().for_each(|(index, series)| series.links = of_store(index))
            }
        }
        self
    }
}

/// The page of a cell, relative to the folder of the comparison. A failed cell has one too, if it got as far as
/// running.
pub fn page_of(cell: &Cell, folder: &Path) -> Option<String> {
    let page = format!("{}/report.html", cell.run);
    (!matches!(cell.outcome, Outcome::Missing) && folder.join(&page).exists()).then_some(page)
}

impl Drawn for Chart {
    fn svg(&self, shape: Shape) -> Result<String, ChartError> {
        match self {
            Chart::Bars(bars) => bars.svg(shape),
            Chart::Lines(lines) => lines.svg(shape),
        }
    }

    fn data(&self) -> Option<serde_json::Value> {
        match self {
            Chart::Bars(bars) => bars.data(),
            Chart::Lines(lines) => lines.data(),
        }
    }

    fn left_out(&self) -> Option<String> {
        match self {
            Chart::Bars(bars) => bars.left_out(),
            Chart::Lines(lines) => lines.left_out(),
        }
    }
}

/// The chart of the comparison's main number; of the two ratings that is SoAR.
pub fn of(document: &ComparisonDocument) -> Chart {
    let metric = Metric::of(document.plan.question()).first().copied().unwrap_or(Metric::Soar);
    of_table(document, &Table::new(document, metric))
}

/// The chart of one number of every cell.
pub fn of_table(document: &ComparisonDocument, table: &Table) -> Chart {
    match document.plan.question() {
        Question::Rate(_) => Chart::Bars(bars(document, table)),
        Question::Measure(_) => Chart::Lines(lines(document, table)),
    }
}

fn bars(document: &ComparisonDocument, table: &Table) -> BarChart {
    // The highest bar is visible without a mark.
    let bar = |entry: &Entry| Bar {
        value: entry.value,
        label: entry.text().trim_end_matches(" *").into(),
        interval: entry.bounds(),
    };
    let series = table.stores.iter().enumerate().map(|(index, store)| BarSeries {
        label: store.clone(),
        bars: table.rows.iter().map(|(_, row)| bar(&row[index])).collect(),
        links: Vec::new(),
    });
    BarChart {
        title: document.plan.title.clone(),
        description: description(document, table),
        x_label: x_label(document, &[]),
        y_label: table.metric.title().to_string(),
        groups: points(table),
        series: series.collect(),
        scale: Scale::suited_to(values(table)),
    }
}

fn lines(document: &ComparisonDocument, table: &Table) -> LineChart {
    let point = |(x, entry): (usize, &Entry)| LinePoint {
        x: x as f64,
        y: entry.value.unwrap_or(f64::NAN),
        mark: if entry.has(Mark::Void) { PointMark::Hollow } else { PointMark::Filled },
    };
    let series = table.stores.iter().enumerate().map(|(index, store)| LineSeries {
        label: store.clone(),
        points: table.rows.iter().map(|(_, row)| &row[index]).enumerate().map(point).collect(),
        ..LineSeries::default()
    });
    let has_void =
        table.rows.iter().flat_map(|(_, row)| row).any(|entry| entry.value.is_some() && entry.has(Mark::Void));
    LineChart {
        title: document.plan.title.clone(),
        description: description(document, table),
        x_label: x_label(document, if has_void { &["hollow: void"] } else { &[] }),
        y_label: table.metric.title().to_string(),
        across: Across::Points(points(table)),
        // A share of 0 is a value like any other, but a logarithmic axis has no place for it.
        y_scale: match table.metric {
            Metric::WithinBeta => Scale::Near,
            Metric::Unpredictable
            | Metric::AnomalyScore
            | Metric::Conditions
            | Metric::Gamma
            | Metric::Response
            | Metric::Service => Scale::Linear,
            Metric::ResponseTime
            | Metric::Throughput
            | Metric::PerMinute
            | Metric::Soar
            | Metric::Socialites
            | Metric::Rate => Scale::suited_to(values(table)),
        },
        series: series.collect(),
        rules: Vec::new(),
    }
}

fn points(table: &Table) -> Vec<String> {
    table.rows.iter().map(|(point, _)| point.clone()).collect()
}

fn values(table: &Table) -> impl Iterator<Item = f64> {
    table.rows.iter().flat_map(|(_, row)| row.iter().filter_map(|entry| entry.value))
}

/// What the axis varies, and what the signs in the chart mean.
fn x_label(document: &ComparisonDocument, signs: &[&str]) -> String {
    let unequal = unequal(document).next().map(|_| "! unequal durability or isolation");
    let signs: Vec<&str> = unequal.into_iter().chain(signs.iter().copied()).collect();
    match signs.is_empty() {
        true => axis_label(document).to_string(),
        false => format!("{} ({})", axis_label(document), signs.join("; ")).trim().to_string(),
    }
}

/// Everything that the chart shows, in words.
fn description(document: &ComparisonDocument, table: &Table) -> String {
    let mut out = format!("{}, {}.", table.metric.title(), sla_in_words(&document.plan.sla()));
    for (point, entries) in &table.rows {
        let values: Vec<String> = table.stores.iter().zip(entries).map(|(s, e)| format!("{s} {}", e.text())).collect();
        let point = if point.is_empty() { String::new() } else { format!("{point}: ") };
        let _ = write!(out, "\n{point}{}.", values.join(", "));
    }
    for line in unequal(document).map(difference_in_words) {
        let _ = write!(out, "\nDifference: {line}.");
    }
    out
}
