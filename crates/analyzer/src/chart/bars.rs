//! Grouped bars: a group a point of the axis, a bar a series, its value on it.

use plotters::style::text_anchor::HPos;

use super::ChartError;
use super::axis::{Axis, Scale};
use super::frame::{self, Drawn, Frame, Surface, Words};

/// A chart of grouped bars.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// Above it.
    pub title: String,
    /// What it shows, in words, for those who do not see it.
    pub description: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Beside the vertical axis, with the unit.
    pub y_label: String,
    /// The names of the groups, in order.
    pub groups: Vec<String>,
    /// The series, in the order of their bars in each group.
    pub series: Vec<BarSeries>,
    /// How values are spread.
    pub scale: Scale,
}

/// The bars of one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend.
    pub label: String,
    /// One bar a group, in the order of the groups.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// How high; none, and 0 too, draws no bar but still writes the label.
    pub value: Option<f64>,
    /// What is written on top of it.
    pub label: String,
}

const LABEL_SIZE: i32 = 12;

/// Draws a chart of grouped bars as SVG, 800 pixels wide.
pub fn bars(chart: &BarChart) -> Result<String, ChartError> {
    let values = chart.series.iter().flat_map(|s| s.bars.iter().filter_map(|b| b.value));
    let axis = Axis::new(chart.scale, values, Layout::of(chart).free);
    let words = Words {
        title: &chart.title,
        description: &chart.description,
        x_label: &chart.x_label,
        y_label: &chart.y_label,
        height: frame::SIZE.1,
        legend: chart.series.iter().map(|s| s.label.as_str()).collect(),
        sign: |surface, series, (x, y)| {
            frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), frame::colour(series))
        },
    };
    frame::chart(&words, axis, |surface, frame| draw(chart, surface, frame))
}

/// How much room groups, bars and labels take.
struct Layout {
    group_px: f64,
    bar_px: f64,
    /// Labels stand level; upright where a bar is too narrow for that.
    is_level: bool,
    /// What share of the axis is above the highest bar, so that its label has room.
    free: f64,
}

impl Layout {
    fn of(chart: &BarChart) -> Layout {
        let group_px = f64::from(Frame::WIDTH) / chart.groups.len().max(1) as f64;
        // Half a bar of space at each side of a group; a single bar is no wall.
        let bar_px = (group_px / (chart.series.len() as f64 + 1.0)).min(90.0);
        let labels = chart.series.iter().flat_map(|s| &s.bars).map(|bar| bar.label.as_str());
        let widest = f64::from(labels.map(|label| frame::width_px(label, LABEL_SIZE)).max().unwrap_or(0));
        let is_level = widest <= bar_px;
        let above = if is_level { f64::from(LABEL_SIZE) + 12.0 } else { widest + 8.0 };
        let free = (above / f64::from(Frame::HEIGHT_MIN)).min(0.5);
        Layout { group_px, bar_px, is_level, free }
    }
}

fn draw(chart: &BarChart, surface: &Surface, frame: &Frame) -> Drawn {
    let Layout { group_px, bar_px, is_level, .. } = Layout::of(chart);
    for (place, group) in chart.groups.iter().enumerate() {
        let middle = f64::from(frame.left) + (place as f64 + 0.5) * group_px;
        let label = frame::fitted(group, 14, group_px as i32 - 4);
        frame::text(surface, &label, (middle.round() as i32, frame.bottom + 18), 14, HPos::Center)?;
        let first = middle - bar_px * chart.series.len() as f64 / 2.0;
        for (order, series) in chart.series.iter().enumerate() {
            let Some(bar) = series.bars.get(place) else { continue };
            let left = first + order as f64 * bar_px;
            let (left, right) = (left.round() as i32 + 1, (left + bar_px).round() as i32 - 1);
            let value = bar.value.filter(|value| value.is_finite() && *value > 0.0);
            let top = value.map_or(frame.bottom, |value| frame.y(value));
            if value.is_some() {
                frame::rectangle(surface, (left, top), (right, frame.bottom), frame::colour(order))?;
            }
            let middle = (left + right) / 2;
            if is_level {
                frame::text(surface, &bar.label, (middle, top - 9), LABEL_SIZE, HPos::Center)?;
            } else {
                frame::text_upwards(surface, &bar.label, (middle, top - 4), LABEL_SIZE)?;
            }
        }
    }
    Ok(())
}
