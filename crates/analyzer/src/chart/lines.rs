//! Lines with a marker at each point, such as throughput against T, over numbers
//! or over named points.

use std::borrow::Cow;

use plotters::element::{Circle, Polygon};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, WHITE};

use super::axis::{Axis, Scale, tick_label};
use super::below::{self, Names};
use super::frame::{self, Drawn, Frame, Shape, Surface, Words};
use super::{Chart, ChartError, data, thin};

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// The title, above the chart.
    pub title: String,
    /// The description in words, for screen readers.
    pub description: String,
    /// The label below the horizontal axis, with the unit.
    pub x_label: String,
    /// The label beside the vertical axis, with the unit.
    pub y_label: String,
    /// What the horizontal axis shows.
    pub across: Across,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// The lines.
    pub series: Vec<LineSeries>,
    /// Horizontal lines at values with a meaning of their own, such as a limit.
    pub rules: Vec<Rule>,
}

/// A horizontal line across the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its value on the vertical axis.
    pub y: f64,
    /// Its meaning, written beside it.
    pub label: String,
    /// The ends of the interval around the value, drawn as a band.
    pub band: Option<(f64, f64)>,
}

impl Rule {
    /// A line without a band.
    pub fn at(y: f64, label: String) -> Rule {
        Rule { y, label, band: None }
    }
}

/// What the horizontal axis shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Across {
    /// Numbers, with this scale.
    Numbers(Scale),
    /// Points with these names, at equal distances; x is the index of a name, from 0.
    Points(Vec<String>),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineSeries {
    /// Its name in the legend.
    pub label: String,
    /// Its points, ascending by x. A point that is not finite interrupts the line.
    pub points: Vec<LinePoint>,
    /// The tooltip of each point; empty for none.
    pub tooltips: Vec<String>,
    /// The text beside each point, as far as there is room; empty for none.
    pub names: Vec<String>,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Its values belong to a second vertical axis on the right, with this label and its unit; None for
    /// the axis on the left.
    pub on_right: Option<String>,
    /// Where each point leads to, such as the row of its experiment; empty for nowhere.
    pub links: Vec<String>,
    /// Only the legend of a page has it, until a reader asks for it.
    pub is_off: bool,
    /// Which colour and marker it has; None for those of its place among the series.
    pub look: Option<usize>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// With a marker at each point.
    #[default]
    Marked,
    /// Without markers: there are so many points that they would hide the line.
    Plain,
    /// Markers alone: the values between them are not known.
    Scattered,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinePoint {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position.
    pub y: f64,
    /// How it is marked.
    pub mark: Mark,
}

/// How a point is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A normal point.
    Filled,
    /// A point that differs from the others; the legend or the description says how.
    Hollow,
    /// A ring around another mark.
    Ring,
}

/// The most pixels between the markers of two series at the same named point. The markers are
/// side by side, so that equal values do not hide each other.
const ASIDE_PX: f64 = 13.0;

/// The colour of the band around a rule.
pub(super) const BAND_LOOK: usize = 2;

/// The font size of the label of a rule.
const RULE_SIZE: i32 = 12;

/// Draws a chart of lines as SVG, 800 pixels wide.
pub fn lines(chart: &LineChart) -> Result<String, ChartError> {
    chart.svg(Shape::Wide)
}

impl Chart for LineChart {
    fn svg(&self, shape: Shape) -> Result<String, ChartError> {
        self.drawn().picture(shape)
    }

    fn data(&self) -> Option<serde_json::Value> {
        let thin = self.thinned();
        Some(data::lines(&thin, thin.x_axis().as_ref(), &thin.y_axis()))
    }

    fn left_out(&self) -> Option<String> {
        let count = |series: &[LineSeries]| series.iter().map(|series| series.points.len()).sum::<usize>() as f64;
        let (all, drawn) = (count(&self.series), count(&self.thinned().series));
        let words = || {
            let (all, drawn) = (tick_label(all), tick_label(drawn));
            format!("Drawn are {drawn} of {all} points: the highest and the lowest of each short stretch.")
        };
        (drawn < all).then(words)
    }
}

impl LineChart {
    /// The chart without points that the eye cannot tell.
    fn thinned(&self) -> Cow<'_, LineChart> {
        if self.series.iter().all(|series| series.points.len() <= thin::POINTS_MAX) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(LineChart { series: self.series.iter().map(thin::thinned).collect(), ..self.clone() })
    }

    /// The chart that a picture shows: thinned, without the lines that only the legend of a page has.
    fn drawn(&self) -> Cow<'_, LineChart> {
        let mut chart = self.thinned();
        if self.series.iter().any(|series| series.is_off) {
            chart.to_mut().series.retain(|series| !series.is_off);
        }
        chart
    }

    fn picture(&self, shape: Shape) -> Result<String, ChartError> {
        let names = match &self.across {
            Across::Points(names) => Names::new(names, shape.frame_width() / names.len().max(1) as i32, shape),
            Across::Numbers(_) => Names::new(&[], 0, shape),
        };
        let words = Words {
            title: &self.title,
            description: &self.description,
            x_label: &self.x_label,
            y_label: &self.y_label,
            right: self.right_axis(),
            shape,
            height: shape.height(),
            foot: names.foot,
            legend: self.series.iter().map(|s| s.label.as_str()).collect(),
            sign: &|surface, series, at| self.sign(surface, series, at),
        };
        frame::chart(&words, self.y_axis(), |surface, frame| self.draw(&names, surface, frame))
    }

    /// The axis across; None where points have names.
    fn x_axis(&self) -> Option<Axis> {
        let Across::Numbers(scale) = &self.across else { return None };
        Some(Axis::across(*scale, self.series.iter().flat_map(|s| &s.points).map(|point| point.x)))
    }

    /// A marker may be half above the frame: there is no free space, so that 100% can be the upper
    /// end.
    fn y_axis(&self) -> Axis {
        let own = self.series.iter().filter(|series| series.on_right.is_none());
        let points = own.flat_map(|series| &series.points).map(|point| point.y);
        let bands = self.rules.iter().filter_map(|rule| rule.band).flat_map(|(low, high)| [low, high]);
        Axis::new(self.y_scale, points.chain(self.rules.iter().map(|rule| rule.y)).chain(bands), 0.0)
    }

    /// The second vertical axis, if any series needs it: from 0 on.
    pub(super) fn right_axis(&self) -> Option<(&str, Axis)> {
        let own = || self.series.iter().filter(|series| series.on_right.is_some());
        let label = own().find_map(|series| series.on_right.as_deref())?;
        let points = own().flat_map(|series| &series.points).map(|point| point.y);
        Some((label, Axis::new(Scale::Linear, points, 0.0)))
    }

    pub(super) fn look(&self, order: usize) -> usize {
        self.series.get(order).and_then(|series| series.look).unwrap_or(order)
    }

    /// The sign of a series in the legend: as its first point is drawn.
    fn sign(&self, surface: &Surface, order: usize, (x, y): (i32, i32)) -> Drawn {
        let (look, series) = (self.look(order), &self.series[order]);
        match series.stroke {
            Stroke::Plain => frame::line(surface, vec![(x - 7, y), (x + 7, y)], frame::colour(look), 3),
            Stroke::Marked => marker(surface, look, (x, y), Mark::Filled),
            Stroke::Scattered => {
                let mark = series.points.first().map_or(Mark::Filled, |point| point.mark);
                marker(surface, look, (x, y), mark)
            }
        }
    }

    fn draw(&self, names: &Names, surface: &Surface, frame: &Frame) -> Drawn {
        match &self.across {
            Across::Numbers(scale) => {
                let x = Axis::across(*scale, self.series.iter().flat_map(|s| &s.points).map(|point| point.x));
                let width = f64::from(frame.right - frame.left);
                let at = |value: f64| frame.left + (x.place(value) * width).round() as i32;
                below::ticks(surface, frame, x.ticks.iter().map(|tick| (at(*tick), *tick)))?;
                draw(self, surface, frame, |_, x| at(x))
            }
            Across::Points(points) => {
                let slot_px = f64::from(frame.right - frame.left) / points.len().max(1) as f64;
                let middle = |x: f64| f64::from(frame.left) + (x + 0.5) * slot_px;
                names.write(surface, frame, (0..points.len()).map(|place| middle(place as f64).round() as i32))?;
                let count = self.series.len() as f64;
                let aside_px = (slot_px / 2.0 / count.max(1.0)).min(ASIDE_PX);
                let aside = |order: usize| (order as f64 - (count - 1.0) / 2.0) * aside_px;
                draw(self, surface, frame, |order, x| (middle(x) + aside(order)).round() as i32)
            }
        }
    }
}

/// Draws the lines, then all markers above them. `across` gives the position of an x of a series.
fn draw(chart: &LineChart, surface: &Surface, frame: &Frame, across: impl Fn(usize, f64) -> i32) -> Drawn {
    let is_there = |point: &LinePoint| point.x.is_finite() && point.y.is_finite();
    let height = |series: &LineSeries, y| if series.on_right.is_some() { frame.y_right(y) } else { frame.y(y) };
    for (low, high) in chart.rules.iter().filter_map(|rule| rule.band) {
        frame::band(surface, frame, (frame.y(low), frame.y(high)), frame::colour(BAND_LOOK))?;
    }
    for rule in &chart.rules {
        let y = frame.y(rule.y);
        frame::dashes(surface, (frame.left, frame.right), y)?;
        frame::text(surface, &rule.label, (frame.left + 6, label_y(frame, y)), RULE_SIZE, HPos::Left)?;
    }
    for (order, series) in chart.series.iter().enumerate().filter(|(_, s)| s.stroke != Stroke::Scattered) {
        for run in series.points.split(|point| !is_there(point)).filter(|run| run.len() > 1) {
            let places = run.iter().map(|p| (across(order, p.x), height(series, p.y))).collect();
            frame::line(surface, places, frame::colour(chart.look(order)), 2)?;
        }
    }
    for (order, series) in chart.series.iter().enumerate() {
        for (place, point) in series.points.iter().enumerate().filter(|(_, point)| is_there(point)) {
            let at = (across(order, point.x), height(series, point.y));
            if series.stroke != Stroke::Plain {
                marker(surface, chart.look(order), at, point.mark)?;
            }
            if let Some(tooltip) = series.tooltips.get(place) {
                frame.tooltip((at.0 - 9, at.1 - 9), (at.0 + 9, at.1 + 9), tooltip);
            }
        }
    }
    names(chart, surface, frame, across)
}

/// The position of the label of a rule: below the rule, or above it at the foot of the frame.
fn label_y(frame: &Frame, y: i32) -> i32 {
    if y + 16 > frame.bottom { y - 9 } else { y + 9 }
}

/// Writes the names of the points, each where it hides no marker and no other name. A name
/// without room is omitted; the tooltip of its point has it.
fn names(chart: &LineChart, surface: &Surface, frame: &Frame, across: impl Fn(usize, f64) -> i32) -> Drawn {
    const SIZE: i32 = 11;
    if chart.series.iter().all(|series| series.names.is_empty()) {
        return Ok(());
    }
    // The places of rules and their labels.
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

/// A circle, square, triangle, diamond, inverted triangle or plus, by the order of the series.
fn marker(surface: &Surface, order: usize, (x, y): (i32, i32), mark: Mark) -> Drawn {
    let colour = frame::colour(order);
    let inside = match mark {
        Mark::Filled => colour,
        Mark::Hollow => WHITE,
        Mark::Ring => return Ok(surface.draw(&Circle::new((x, y), 9, colour.stroke_width(2)))?),
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
