//! Lines with a marker at each point, such as throughput against T, over numbers
//! or over named points.

use plotters::element::{Circle, Polygon};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, WHITE};

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
    /// What x is.
    pub across: Across,
    /// How y is spread.
    pub y_scale: Scale,
    /// The lines.
    pub series: Vec<LineSeries>,
    /// Heights that mean something by themselves, such as a limit.
    pub rules: Vec<Rule>,
}

/// A level line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its height.
    pub y: f64,
    /// What it means, written beside it.
    pub label: String,
}

/// What stands along the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Across {
    /// Numbers, spread like this.
    Numbers(Scale),
    /// Points with these names, at equal distances: x counts them from 0.
    Points(Vec<String>),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineSeries {
    /// Its name in the legend.
    pub label: String,
    /// Its points, ascending by x. One that is not finite interrupts the line.
    pub points: Vec<LinePoint>,
    /// What is told of each point to who points at it; empty for nothing.
    pub told: Vec<String>,
    /// What is written beside each point, as far as there is room; empty for nothing.
    pub names: Vec<String>,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// With a marker at each point.
    #[default]
    Marked,
    /// Without markers: there are so many points that they would hide the line.
    Plain,
    /// Markers alone: what lies between them is not known.
    Scattered,
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

/// The most pixels between the markers of two series at the same named point:
/// side by side, so that equal values do not hide each other.
const ASIDE_PX: f64 = 13.0;

/// The size of what is written below a rule.
const RULE_SIZE: i32 = 12;

/// Draws a chart of lines as SVG, 800 pixels wide.
pub fn lines(chart: &LineChart) -> Result<String, ChartError> {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    // A marker may stand half above the frame: no headroom, so that 100% can be the upper end.
    let y = Axis::new(chart.y_scale, points().map(|p| p.y).chain(chart.rules.iter().map(|r| r.y)), 0.0);
    let words = Words {
        title: &chart.title,
        description: &chart.description,
        x_label: &chart.x_label,
        y_label: &chart.y_label,
        height: frame::SIZE.1,
        legend: chart.series.iter().map(|s| s.label.as_str()).collect(),
        sign: |surface, series, at| marker(surface, series, at, Mark::Filled),
    };
    frame::chart(&words, y, |surface, frame| match &chart.across {
        Across::Numbers(scale) => {
            let x = Axis::across(*scale, points().map(|p| p.x));
            let at = |value: f64| frame.left + (x.place(value) * f64::from(frame.right - frame.left)).round() as i32;
            for tick in &x.ticks {
                frame::below(surface, frame, at(*tick), &tick_label(*tick), 12)?;
            }
            draw(chart, surface, frame, |_, x| at(x))
        }
        Across::Points(names) => {
            let slot_px = f64::from(frame.right - frame.left) / names.len().max(1) as f64;
            let middle = |x: f64| f64::from(frame.left) + (x + 0.5) * slot_px;
            for (place, name) in names.iter().enumerate() {
                let name = frame::fitted(name, 14, slot_px as i32 - 4);
                frame::below(surface, frame, middle(place as f64).round() as i32, &name, 14)?;
            }
            let count = chart.series.len() as f64;
            let aside_px = (slot_px / 2.0 / count.max(1.0)).min(ASIDE_PX);
            let aside = |order: usize| (order as f64 - (count - 1.0) / 2.0) * aside_px;
            draw(chart, surface, frame, |order, x| (middle(x) + aside(order)).round() as i32)
        }
    })
}

/// Draws the lines, all markers above them; `across` is where an x of a series stands.
fn draw(chart: &LineChart, surface: &Surface, frame: &Frame, across: impl Fn(usize, f64) -> i32) -> Drawn {
    let is_there = |point: &LinePoint| point.x.is_finite() && point.y.is_finite();
    for rule in &chart.rules {
        let y = frame.y(rule.y);
        frame::dashes(surface, (frame.left, frame.right), y)?;
        frame::text(surface, &rule.label, (frame.left + 6, label_y(frame, y)), RULE_SIZE, HPos::Left)?;
    }
    for (order, series) in chart.series.iter().enumerate().filter(|(_, s)| s.stroke != Stroke::Scattered) {
        for run in series.points.split(|point| !is_there(point)).filter(|run| run.len() > 1) {
            let places = run.iter().map(|p| (across(order, p.x), frame.y(p.y))).collect();
            frame::line(surface, places, frame::colour(order), 2)?;
        }
    }
    for (order, series) in chart.series.iter().enumerate() {
        for (place, point) in series.points.iter().enumerate().filter(|(_, point)| is_there(point)) {
            let at = (across(order, point.x), frame.y(point.y));
            if series.stroke != Stroke::Plain {
                marker(surface, order, at, point.mark)?;
            }
            if let Some(told) = series.told.get(place) {
                frame.tell((at.0 - 9, at.1 - 9), (at.0 + 9, at.1 + 9), told);
            }
        }
    }
    names(chart, surface, frame, across)
}

/// Where the label of a rule stands: below it, and above it at the foot of the frame.
fn label_y(frame: &Frame, y: i32) -> i32 {
    if y + 16 > frame.bottom { y - 9 } else { y + 9 }
}

/// Writes the names of the points, each where it hides no marker and no other name; a
/// name for which there is no room is left out, and told by its point.
fn names(chart: &LineChart, surface: &Surface, frame: &Frame, across: impl Fn(usize, f64) -> i32) -> Drawn {
    const SIZE: i32 = 11;
    if chart.series.iter().all(|series| series.names.is_empty()) {
        return Ok(());
    }
    // Where rules and their labels are.
    let rule = |rule: &Rule| {
        let (y, end) = (frame.y(rule.y), frame.left + 6 + frame::width_px(&rule.label, RULE_SIZE));
        let middle = label_y(frame, y);
        [[frame.left, y, frame.right, y], [frame.left, middle - 6, end, middle + 6]]
    };
    let mut taken: Vec<[i32; 4]> = chart.rules.iter().flat_map(rule).collect();
    let mut named = Vec::new();
    for (order, series) in chart.series.iter().enumerate() {
        for (place, point) in series.points.iter().enumerate().filter(|(_, p)| p.x.is_finite() && p.y.is_finite()) {
            let (x, y) = (across(order, point.x), frame.y(point.y));
            taken.push([x - 6, y - 6, x + 6, y + 6]);
            named.extend(series.names.get(place).map(|name| (name, x, y)));
        }
    }
    for (name, x, y) in named {
        let (width, half) = (frame::width_px(name, SIZE), SIZE / 2);
        let (right, left) = (x + 8, x - 8 - width);
        // Above it, below it, and beside it on either side.
        let places = [
            (x - width / 2, y - 14),
            (x - width / 2, y + 14),
            (right, y),
            (left, y),
            (right, y - 11),
            (left, y - 11),
            (right, y + 11),
            (left, y + 11),
        ];
        let free = places.into_iter().map(|(x, y)| [x, y - half, x + width, y + half]).find(|own| {
            let inside =
                own[0] >= frame.left && own[2] <= frame.right && own[1] >= frame.top - 8 && own[3] <= frame.bottom;
            inside
                && taken
                    .iter()
                    .all(|other| own[2] < other[0] || own[0] > other[2] || own[3] < other[1] || own[1] > other[3])
        });
        if let Some(own) = free {
            frame::text(surface, name, (own[0], own[1] + half), SIZE, HPos::Left)?;
            taken.push(own);
        }
    }
    Ok(())
}

/// A circle, square, triangle, diamond, triangle on its tip or plus, by the order of
/// the series.
fn marker(surface: &Surface, order: usize, (x, y): (i32, i32), mark: Mark) -> Drawn {
    let colour = frame::colour(order);
    let inside = match mark {
        Mark::Filled => colour,
        Mark::Hollow => WHITE,
    };
    let corners = match order % 6 {
        0 => {
            surface.draw(&Circle::new((x, y), 5, inside.filled()))?;
            return Ok(surface.draw(&Circle::new((x, y), 5, colour.stroke_width(2)))?);
        }
        1 => vec![(x - 5, y - 5), (x + 5, y - 5), (x + 5, y + 5), (x - 5, y + 5)],
        2 => vec![(x, y - 6), (x + 6, y + 5), (x - 6, y + 5)],
        3 => vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
        4 => vec![(x - 6, y - 5), (x + 6, y - 5), (x, y + 6)],
        _ => {
            let quarter = [(2, -2), (6, -2), (6, 2)];
            let turned = |turn: usize, (a, b): (i32, i32)| [(a, b), (-b, a), (-a, -b), (b, -a)][turn];
            let corners = (0..4).flat_map(|turn| quarter.map(|corner| turned(turn, corner)));
            corners.map(|(a, b)| (x + a, y + b)).collect()
        }
    };
    surface.draw(&Polygon::new(corners.clone(), inside.filled()))?;
    let outline = corners.iter().copied().chain(corners.first().copied()).collect();
    frame::line(surface, outline, colour, 2)
}
