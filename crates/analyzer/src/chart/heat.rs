//! A heat map: how many of something fell into each cell of a grid, such as response
//! times by their length and the time of the experiment.

use plotters::style::RGBColor;

use super::ChartError;
use super::axis::{Axis, Scale, tick_label};
use super::frame::{self, Drawn, Frame, Surface, Words};

/// A heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// Above it.
    pub title: String,
    /// What it shows, in words, for those who do not see it.
    pub description: String,
    /// Below the horizontal axis, with the unit.
    pub x_label: String,
    /// Beside the vertical axis, with the unit; it is logarithmic.
    pub y_label: String,
    /// Cells with something in them.
    pub cells: Vec<HeatCell>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatCell {
    /// Its left and right end.
    pub x: (f64, f64),
    /// Its lower and upper end, above 0.
    pub y: (f64, f64),
    /// How many fell into it, more than 0.
    pub count: u64,
    /// What is told of it to who points at it.
    pub told: String,
}

/// The colours of one thing and of the most of them, with equal steps for the eye
/// between: nothing is told by hue.
const FEW: (f64, f64, f64) = (222.0, 235.0, 247.0);
const MOST: (f64, f64, f64) = (8.0, 48.0, 107.0);

/// Draws a heat map as SVG, 800 pixels wide. Colours are logarithmic: what is rare shows too.
pub fn heat(chart: &HeatMap) -> Result<String, ChartError> {
    let y = Axis::new(Scale::Log, chart.cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]), 0.0);
    let most = chart.cells.iter().map(|cell| cell.count).max().unwrap_or(1);
    let few_label = "1".to_string();
    let most_label = tick_label(most as f64);
    let words = Words {
        title: &chart.title,
        description: &chart.description,
        x_label: &chart.x_label,
        y_label: &chart.y_label,
        height: frame::SIZE.1,
        legend: vec![&few_label, &most_label],
        sign: |surface, series, (x, y)| {
            frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), colour(series as f64))
        },
    };
    frame::chart(&words, y, |surface, frame| draw(chart, most, surface, frame))
}

fn colour(share: f64) -> RGBColor {
    let between = |few: f64, most: f64| (few + (most - few) * share.clamp(0.0, 1.0)).round() as u8;
    RGBColor(between(FEW.0, MOST.0), between(FEW.1, MOST.1), between(FEW.2, MOST.2))
}

fn draw(chart: &HeatMap, most: u64, surface: &Surface, frame: &Frame) -> Drawn {
    let x = Axis::new(Scale::Linear, chart.cells.iter().map(|cell| cell.x.1), 0.0);
    let across = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
    for cell in &chart.cells {
        let from = (across(cell.x.0), frame.y(cell.y.1));
        let to = (across(cell.x.1).max(from.0 + 1), frame.y(cell.y.0).max(from.1 + 1));
        let share = if most > 1 { (cell.count as f64).ln() / (most as f64).ln() } else { 1.0 };
        frame::rectangle(surface, from, to, colour(share))?;
        frame.tell(from, to, &cell.told);
    }
    x.ticks.iter().try_for_each(|tick| frame::below(surface, frame, across(*tick), &tick_label(*tick), 12))
}
