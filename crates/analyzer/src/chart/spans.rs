//! Spans of time, one below the other, such as a read and the writes around it.

use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Scale};
use super::frame::{self, Drawn, Frame, Shape, Surface, Words};
use super::{Chart, ChartError, below};

/// A chart of spans.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanChart {
    /// The title, above the chart.
    pub title: String,
    /// The description in words, for screen readers.
    pub description: String,
    /// The label below the horizontal axis, with the unit.
    pub x_label: String,
    /// The spans, from top to bottom.
    pub spans: Vec<Span>,
}

/// A span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its label, written above it.
    pub label: String,
    /// Its beginning, at least 0.
    pub from: f64,
    /// Its end; None if it is open.
    pub to: Option<f64>,
    /// Whether it is the read that the other spans relate to.
    pub is_subject: bool,
}

/// The kinds of spans, as the legend names them.
const LEGEND: [&str; 2] = ["the read", "writes"];

/// The height of a row with a label of one line, of each further line, and of everything else.
const ROW_PX: i32 = 44;
const LINE_PX: i32 = 16;
const HEAD_PX: i32 = 132;
const LABEL_SIZE: i32 = 12;

impl Chart for SpanChart {
    fn svg(&self, shape: Shape) -> Result<String, ChartError> {
        // The rows have labels and no values.
        let mut rows = Axis::new(Scale::Linear, [1.0], 0.0);
        rows.ticks.clear();
        let labels: Vec<Vec<String>> = self.spans.iter().map(|span| label(span, shape)).collect();
        let lines = labels.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let row_px = ROW_PX + (lines - 1) * LINE_PX;
        let words = Words {
            title: &self.title,
            description: &self.description,
            x_label: &self.x_label,
            y_label: "",
            right: None,
            shape,
            height: HEAD_PX + row_px * self.spans.len() as i32,
            foot: 0,
            legend: LEGEND.to_vec(),
            sign: &|surface, series, (x, y)| {
                frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), colour(series == 0))
            },
        };
        frame::chart(&words, rows, |surface, frame| draw(self, &labels, surface, frame))
    }
}

fn label(span: &Span, shape: Shape) -> Vec<String> {
    frame::wrapped(&span.label, LABEL_SIZE, shape.frame_width() - 12)
}

fn colour(is_subject: bool) -> plotters::style::RGBColor {
    frame::colour(if is_subject { 3 } else { 0 })
}

fn draw(chart: &SpanChart, labels: &[Vec<String>], surface: &Surface, frame: &Frame) -> Drawn {
    const HEIGHT: i32 = 14;
    let ends = chart.spans.iter().flat_map(|span| [Some(span.from), span.to]).flatten();
    let x = Axis::new(Scale::Linear, ends, 0.05);
    let across = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
    let row_px = (frame.bottom - frame.top) / (chart.spans.len().max(1) as i32);
    for (row, (span, lines)) in chart.spans.iter().zip(labels).enumerate() {
        let top = frame.top + row as i32 * row_px;
        for (line, text) in lines.iter().enumerate() {
            let at = (frame.left + 6, top + 12 + line as i32 * LINE_PX);
            frame::text(surface, text, at, LABEL_SIZE, HPos::Left)?;
        }
        let middle = top + row_px - 12;
        // An open span ends at the right edge.
        let from = across(span.from);
        let to = span.to.map_or(frame.right, across).max(from + 2);
        let (from, to) = ((from, middle - HEIGHT / 2), (to, middle + HEIGHT / 2));
        frame::rectangle(surface, from, to, colour(span.is_subject))?;
        frame.tooltip(from, to, &span.label);
    }
    below::ticks(surface, frame, x.ticks.iter().map(|tick| (across(*tick), *tick)))
}
