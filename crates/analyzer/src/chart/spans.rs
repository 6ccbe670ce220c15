//! Spans of time below each other, such as a read and the writes around it.

use plotters::style::text_anchor::HPos;

use super::ChartError;
use super::axis::{Axis, Scale, tick_label};
use super::frame::{self, Drawn, Frame, Surface, Words};

/// A chart of spans.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanChart {
    /// Above it.
    pub title: String,
    /// What it shows, in words, for those who do not see it.
    pub description: String,
    /// Below the horizontal axis, with the unit.
    pub x_label: String,
    /// From above to below.
    pub spans: Vec<Span>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// What it is, written above it.
    pub label: String,
    /// Its beginning, at least 0.
    pub from: f64,
    /// Its end; none when it is open.
    pub to: Option<f64>,
    /// Whether it is the one that the others are about.
    pub is_subject: bool,
}

/// The kinds of spans, as the legend names them.
const LEGEND: [&str; 2] = ["the read", "writes"];

/// How high a row is where there is room, and all that is no row.
const ROW_PX: u32 = 44;
const HEAD_PX: u32 = 132;

/// Draws spans as SVG, 800 pixels wide.
pub fn spans(chart: &SpanChart) -> Result<String, ChartError> {
    // The rows have names, not heights.
    let mut rows = Axis::new(Scale::Linear, [1.0], 0.0);
    rows.ticks.clear();
    let words = Words {
        title: &chart.title,
        description: &chart.description,
        x_label: &chart.x_label,
        y_label: "",
        height: (HEAD_PX + ROW_PX * chart.spans.len() as u32).min(frame::SIZE.1),
        legend: LEGEND.to_vec(),
        sign: |surface, series, (x, y)| frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), colour(series == 0)),
    };
    frame::chart(&words, rows, |surface, frame| draw(chart, surface, frame))
}

fn colour(is_subject: bool) -> plotters::style::RGBColor {
    frame::colour(if is_subject { 3 } else { 0 })
}

fn draw(chart: &SpanChart, surface: &Surface, frame: &Frame) -> Drawn {
    let ends = chart.spans.iter().flat_map(|span| [Some(span.from), span.to]).flatten();
    let x = Axis::new(Scale::Linear, ends, 0.05);
    let across = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
    let row_px = (frame.bottom - frame.top) / (chart.spans.len().max(1) as i32);
    for (row, span) in chart.spans.iter().enumerate() {
        let top = frame.top + row as i32 * row_px;
        let height = (row_px / 3).clamp(4, 14);
        let label = frame::fitted(&span.label, 12, frame.right - frame.left - 12);
        frame::text(surface, &label, (frame.left + 6, top + row_px / 3), 12, HPos::Left)?;
        let (from, middle) = (across(span.from), top + row_px * 3 / 4);
        // An open one ends where the chart does.
        let to = span.to.map_or(frame.right, across).max(from + 2);
        let (from, to) = ((from, middle - height / 2), (to, middle + height / 2));
        frame::rectangle(surface, from, to, colour(span.is_subject))?;
        frame.tell(from, to, &span.label);
    }
    x.ticks.iter().try_for_each(|tick| frame::below(surface, frame, across(*tick), &tick_label(*tick), 12))
}
