//! Lines with a marker at each point, such as throughput against T.

use plotters::element::{Circle, Polygon};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor, WHITE};

use super::ChartError;
use super::axis::{Axis, Scale, tick_label};
use super::frame::{self, Drawn, Frame, Surface, Words};

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// Above it.
    pub title: String,
    /// What it shows, in words, for those who do not see it.
    pub description: String,
    /// Below the horizontal axis, with the unit.
    pub x_label: String,
    /// Beside the vertical axis, with the unit.
    pub y_label: String,
    /// How x is spread.
    pub x_scale: Scale,
    /// How y is spread.
    pub y_scale: Scale,
    /// The lines.
    pub series: Vec<LineSeries>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSeries {
    /// Its name in the legend.
    pub label: String,
    /// Its points, ascending by x.
    pub points: Vec<LinePoint>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinePoint {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// How it is marked.
    pub mark: Mark,
}

/// How a point is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Filled,
    /// Something was wrong with it, which the description tells.
    Hollow,
}

/// Space above the highest point.
const HEADROOM: f64 = 1.02;

/// Draws a chart of lines as SVG, 800 pixels wide.
pub fn lines(chart: &LineChart) -> Result<String, ChartError> {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let x = Axis::new(chart.x_scale, points().map(|p| p.x), 1.0);
    let y = Axis::new(chart.y_scale, points().map(|p| p.y), HEADROOM);
    let words = Words {
        title: &chart.title,
        description: &chart.description,
        x_label: &chart.x_label,
        y_label: &chart.y_label,
        legend: chart.series.iter().map(|s| s.label.as_str()).collect(),
        sign: |surface, series, at| marker(surface, series, at, Mark::Filled),
    };
    frame::chart(&words, y, |surface, frame| draw(chart, &x, surface, frame))
}

fn draw(chart: &LineChart, x: &Axis, surface: &Surface, frame: &Frame) -> Drawn {
    let across = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
    for tick in &x.ticks {
        let at = across(*tick);
        frame::line(surface, vec![(at, frame.bottom), (at, frame.bottom + 4)], RGBColor(34, 34, 34), 1)?;
        frame::text(surface, &tick_label(*tick), (at, frame.bottom + 16), 12, HPos::Center)?;
    }
    for (order, series) in chart.series.iter().enumerate() {
        let points: Vec<(i32, i32, Mark)> = series
            .points
            .iter()
            .filter(|p| p.x.is_finite() && p.y.is_finite())
            .map(|p| (across(p.x), frame.y(p.y), p.mark))
            .collect();
        frame::line(surface, points.iter().map(|(x, y, _)| (*x, *y)).collect(), frame::colour(order), 2)?;
        for (x, y, mark) in points {
            marker(surface, order, (x, y), mark)?;
        }
    }
    Ok(())
}

/// A circle, square, triangle or diamond, by the order of the series.
fn marker(surface: &Surface, order: usize, (x, y): (i32, i32), mark: Mark) -> Drawn {
    let colour = frame::colour(order);
    let inside = match mark {
        Mark::Filled => colour,
        Mark::Hollow => WHITE,
    };
    let corners = match order % 4 {
        0 => {
            surface.draw(&Circle::new((x, y), 5, inside.filled()))?;
            return Ok(surface.draw(&Circle::new((x, y), 5, colour.stroke_width(2)))?);
        }
        1 => vec![(x - 5, y - 5), (x + 5, y - 5), (x + 5, y + 5), (x - 5, y + 5)],
        2 => vec![(x, y - 6), (x + 6, y + 5), (x - 6, y + 5)],
        _ => vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
    };
    surface.draw(&Polygon::new(corners.clone(), inside.filled()))?;
    let outline = corners.iter().copied().chain(corners.first().copied()).collect();
    frame::line(surface, outline, colour, 2)
}
