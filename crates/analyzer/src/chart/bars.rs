//! Grouped bars: one group for each point of the axis, one bar for each series, with its value.

use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Scale};
use super::below::Names;
use super::frame::{self, Drawn, Frame, Shape, Surface, Words};
use super::{Chart, ChartError, data};

/// A chart of grouped bars.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// The title, above the chart.
    pub title: String,
    /// The description in words, for screen readers.
    pub description: String,
    /// The label below the horizontal axis.
    pub x_label: String,
    /// The label beside the vertical axis, with the unit.
    pub y_label: String,
    /// The names of the groups, in order.
    pub groups: Vec<String>,
    /// The series, in the order of their bars in each group.
    pub series: Vec<BarSeries>,
    /// The scale of the vertical axis.
    pub scale: Scale,
}

/// The bars of one colour.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarSeries {
    /// Its name in the legend.
    pub label: String,
    /// One bar per group, in the order of the groups.
    pub bars: Vec<Bar>,
    /// Where each bar leads to, such as the page of its run; empty for nowhere.
    pub links: Vec<String>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The height. None and 0 draw no bar, but still write the label.
    pub value: Option<f64>,
    /// The text on top of the bar.
    pub label: String,
    /// The ends of the interval around the value, if it has one.
    pub interval: Option<(f64, f64)>,
}

impl Bar {
    /// The upper end of what is drawn.
    fn top(&self) -> Option<f64> {
        self.interval.map_or(self.value, |(_, high)| Some(high))
    }
}

const LABEL_SIZE: i32 = 12;

/// Draws a chart of grouped bars as SVG, 800 pixels wide.
pub fn bars(chart: &BarChart) -> Result<String, ChartError> {
    chart.svg(Shape::Wide)
}

impl Chart for BarChart {
    fn svg(&self, shape: Shape) -> Result<String, ChartError> {
        let layout = Layout::of(self, shape);
        let axis = self.axis(&layout);
        let words = Words {
            title: &self.title,
            description: &self.description,
            x_label: &self.x_label,
            y_label: &self.y_label,
            right: None,
            shape,
            height: shape.height(),
            foot: layout.names.foot,
            legend: self.series.iter().map(|s| s.label.as_str()).collect(),
            sign: &|surface, series, (x, y)| {
                frame::rectangle(surface, (x - 6, y - 6), (x + 6, y + 6), frame::colour(series))
            },
        };
        frame::chart(&words, axis, |surface, frame| draw(self, &layout, surface, frame))
    }

    fn data(&self) -> Option<serde_json::Value> {
        Some(data::bars(self, &self.axis(&Layout::of(self, Shape::Wide))))
    }
}

impl BarChart {
    fn axis(&self, layout: &Layout) -> Axis {
        let bars = self.series.iter().flat_map(|series| &series.bars);
        Axis::new(self.scale, bars.flat_map(|bar| [bar.value, bar.top()]).flatten(), layout.free)
    }
}

/// The sizes of groups, bars and labels.
struct Layout {
    group_px: f64,
    bar_px: f64,
    /// Whether labels are horizontal. They are upright where a bar is too narrow for that.
    is_level: bool,
    /// The share of the axis above the highest bar, which gives its label room.
    free: f64,
    names: Names,
}

impl Layout {
    fn of(chart: &BarChart, shape: Shape) -> Layout {
        let group_px = f64::from(shape.frame_width()) / chart.groups.len().max(1) as f64;
        // Half a bar of space at each side of a group; a single bar does not become too wide.
        let bar_px = (group_px / (chart.series.len() as f64 + 1.0)).min(90.0);
        let labels = chart.series.iter().flat_map(|s| &s.bars).map(|bar| bar.label.as_str());
        let widest = f64::from(labels.map(|label| frame::width_px(label, LABEL_SIZE)).max().unwrap_or(0));
        let is_level = widest <= bar_px;
        let above = if is_level { f64::from(LABEL_SIZE) + 12.0 } else { widest + 8.0 };
        let free = (above / f64::from(shape.frame_height())).min(0.5);
        let names = Names::new(&chart.groups, group_px as i32, shape);
        Layout { group_px, bar_px, is_level, free, names }
    }
}

fn draw(chart: &BarChart, layout: &Layout, surface: &Surface, frame: &Frame) -> Drawn {
    let middle = |group: usize| f64::from(frame.left) + (group as f64 + 0.5) * layout.group_px;
    layout.names.write(surface, frame, (0..chart.groups.len()).map(|group| middle(group).round() as i32))?;
    for group in 0..chart.groups.len() {
        let first = middle(group) - layout.bar_px * chart.series.len() as f64 / 2.0;
        for (order, series) in chart.series.iter().enumerate() {
            let Some(bar) = series.bars.get(group) else { continue };
            let left = first + order as f64 * layout.bar_px;
            let sides = (left.round() as i32 + 1, (left + layout.bar_px).round() as i32 - 1);
            draw_bar(bar, order, sides, layout.is_level, surface, frame)?;
        }
    }
    Ok(())
}

/// Draws a bar with its interval, and writes its label above both.
fn draw_bar(
    bar: &Bar,
    order: usize,
    (left, right): (i32, i32),
    is_level: bool,
    surface: &Surface,
    frame: &Frame,
) -> Drawn {
    let middle = (left + right) / 2;
    let drawn = bar.value.filter(|value| value.is_finite() && *value > 0.0);
    let mut top = frame.bottom;
    if let Some(value) = drawn {
        top = frame.y(value);
        frame::rectangle(surface, (left, top), (right, frame.bottom), frame::colour(order))?;
        if let Some((low, high)) = bar.interval {
            frame::interval(surface, middle, (frame.y(low), frame.y(high)))?;
            top = top.min(frame.y(high));
        }
    }
    if is_level {
        frame::text(surface, &bar.label, (middle, top - 9), LABEL_SIZE, HPos::Center)
    } else {
        frame::text_upwards(surface, &bar.label, (middle, top - 4), LABEL_SIZE, HPos::Left)
    }
}
