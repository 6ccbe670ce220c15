//! A heat map: how many values are in each cell of a grid, such as response times by their length
//! and the time of the experiment.

use plotters::style::RGBColor;

use super::axis::{Axis, Scale, tick_label};
use super::frame::{self, Drawn, Frame, Shape, Surface, Words};
use super::{Chart, ChartError, below, data};

/// A heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// The title, above the chart.
    pub title: String,
    /// The description in words, for screen readers.
    pub description: String,
    /// The label below the horizontal axis, with the unit.
    pub x_label: String,
    /// The label beside the vertical axis, with the unit. The axis is logarithmic.
    pub y_label: String,
    /// The cells that are not empty.
    pub cells: Vec<HeatCell>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatCell {
    /// Its left and right end.
    pub x: (f64, f64),
    /// Its lower and upper end, above 0.
    pub y: (f64, f64),
    /// How many values are in it, more than 0.
    pub count: u64,
}

/// The colours from a single value to the fullest cell, as an SVG names them. A page may replace
/// them by others. The steps between look equal to the eye, and the hue has no meaning.
pub const HEAT_COLOURS: [&str; 8] =
    ["#C6DBEF", "#ABC6DF", "#90B1CF", "#749CBF", "#5987AE", "#3E729E", "#235D8E", "#08306B"];

/// Colours are logarithmic, so rare values are visible too.
impl Chart for HeatMap {
    fn svg(&self, shape: Shape) -> Result<String, ChartError> {
        let (y, most) = (self.y_axis(), self.most());
        let (labels, steps) = legend(most);
        let words = Words {
            title: &self.title,
            description: &self.description,
            x_label: &self.x_label,
            y_label: &self.y_label,
            right: None,
            shape,
            height: shape.height(),
            foot: 0,
            legend: labels.iter().map(String::as_str).collect(),
            sign: &|surface, series, (x, y)| {
                let step = steps.get(series).copied().unwrap_or(0);
                frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), colour(step))
            },
        };
        frame::chart(&words, y, |surface, frame| draw(self, most, surface, frame))
    }

    fn data(&self) -> Option<serde_json::Value> {
        let most = self.most();
        Some(data::heat(self, &self.x_axis(), &self.y_axis(), |count| step(count, most)))
    }
}

impl HeatMap {
    fn x_axis(&self) -> Axis {
        Axis::new(Scale::Linear, self.cells.iter().map(|cell| cell.x.1), 0.0)
    }

    fn y_axis(&self) -> Axis {
        Axis::new(Scale::Log, self.cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]), 0.0)
    }

    /// The count of the fullest cell.
    fn most(&self) -> u64 {
        self.cells.iter().map(|cell| cell.count).max().unwrap_or(1)
    }
}

/// The labels of the legend, and the step of the colours that each belongs to: of one value, of
/// the most, and of a count between them.
fn legend(most: u64) -> (Vec<String>, Vec<usize>) {
    let middle = (most as f64).sqrt().round() as u64;
    let mut counts = vec![1, middle, most];
    counts.dedup();
    let label = |count: &u64| match count {
        1 => "1 operation".to_string(),
        count => format!("{} operations", tick_label(*count as f64)),
    };
    (counts.iter().map(label).collect(), counts.iter().map(|count| step(*count, most)).collect())
}

/// The step of the colours for a count.
fn step(count: u64, most: u64) -> usize {
    let last = HEAT_COLOURS.len() - 1;
    let share = if most > 1 { (count as f64).ln() / (most as f64).ln() } else { 1.0 };
    ((share * last as f64).round() as usize).min(last)
}

fn colour(step: usize) -> RGBColor {
    let digits = HEAT_COLOURS[step].trim_start_matches('#');
    let part = |from: usize| u8::from_str_radix(&digits[from..from + 2], 16).unwrap_or_default();
    RGBColor(part(0), part(2), part(4))
}

fn draw(chart: &HeatMap, most: u64, surface: &Surface, frame: &Frame) -> Drawn {
    let x = chart.x_axis();
    let across = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
    let place = |cell: &HeatCell| {
        let from = (across(cell.x.0), frame.y(cell.y.1));
        (from, (across(cell.x.1).max(from.0 + 1), frame.y(cell.y.0).max(from.1 + 1)))
    };
    for own in 0..HEAT_COLOURS.len() {
        let cells = chart.cells.iter().filter(|cell| step(cell.count, most) == own);
        frame.rectangles(cells.map(place), colour(own));
    }
    below::ticks(surface, frame, x.ticks.iter().map(|tick| (across(*tick), *tick)))
}
