//! The parts around the data of every chart: title, legend, axes with labels, and the description
//! in words for screen readers.

use std::cell::RefCell;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, IntoTextStyle, RGBColor, ShapeStyle, TextStyle, WHITE,
};

use super::ChartError;
use super::axis::{Axis, tick_label};

/// The colours of Okabe and Ito. Their yellow is too light for a line on white and comes last.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(240, 228, 66),
];

const INK: RGBColor = RGBColor(34, 34, 34);
const GRID: RGBColor = RGBColor(214, 214, 214);

/// The height of the part below the horizontal axis, with one line of names and of the label.
const FOOT: i32 = 56;
const LEGEND_TOP: i32 = 48;
const LEGEND_LINE: i32 = 20;
/// The lines of a legend that have room in the usual height.
const LEGEND_LINES: i32 = 2;
const TITLE_LINE: i32 = 20;
/// The height of a line of names or of a label.
pub const LABEL_LINE: i32 = 17;
/// The width of the numbers and the label of a second vertical axis.
const RIGHT_ROOM: i32 = 68;
/// The most lines of a title, a label or a name.
const LINES_MAX: usize = 3;

/// The shape of a picture. Both have texts of one size, so that a phone need not shrink them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 800 pixels wide: for screens, paper and files.
    Wide,
    /// 360 pixels wide: for phones. It has no tooltips, because a finger cannot hover.
    Narrow,
}

impl Shape {
    /// The width of the picture, in pixels.
    pub const fn width(self) -> i32 {
        match self {
            Shape::Wide => 800,
            Shape::Narrow => 360,
        }
    }

    /// The usual height of the picture, in pixels.
    pub const fn height(self) -> i32 {
        match self {
            Shape::Wide => 480,
            Shape::Narrow => 400,
        }
    }

    /// The size of the names below the axis, of labels and of the legend.
    pub const fn text_size(self) -> i32 {
        match self {
            Shape::Wide => 14,
            Shape::Narrow => 12,
        }
    }

    /// The left and the right edge of the frame.
    const fn edges(self) -> (i32, i32) {
        match self {
            Shape::Wide => (92, 780),
            Shape::Narrow => (76, 344),
        }
    }

    /// The width of the frame.
    pub const fn frame_width(self) -> i32 {
        let (left, right) = self.edges();
        right - left
    }

    /// The minimum height of the frame.
    pub const fn frame_height(self) -> i32 {
        self.height() - FOOT - LEGEND_TOP - LEGEND_LINES * LEGEND_LINE - 8
    }
}

/// The colour of a series.
pub fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// The number of the shapes of markers.
pub const SHAPES: usize = 6;

/// A colour as HTML writes it.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A surface to draw on, in pixels.
pub type Surface<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The result of drawing on a surface.
pub type Drawn = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Draws the sign of a series around a point.
pub type Sign<'a> = dyn Fn(&Surface, usize, (i32, i32)) -> Drawn + 'a;

/// The texts of a chart.
pub struct Words<'a> {
    /// The title, above the chart.
    pub title: &'a str,
    /// The description in words.
    pub description: &'a str,
    /// The label below the horizontal axis.
    pub x_label: &'a str,
    /// The label beside the vertical axis.
    pub y_label: &'a str,
    /// The label beside a second vertical axis on the right, and that axis.
    pub right: Option<(&'a str, Axis)>,
    /// The shape of the picture.
    pub shape: Shape,
    /// The usual height of the picture, in pixels. It grows with long titles, labels and legends.
    pub height: i32,
    /// The room that names below the axis need beyond one line, in pixels.
    pub foot: i32,
    /// The entries of the legend, one per series.
    pub legend: Vec<&'a str>,
    /// Draws the sign of a series around a point, before its name in the legend.
    pub sign: &'a Sign<'a>,
}

/// Where the parts of a picture are.
struct Layout {
    title: Vec<String>,
    title_size: i32,
    legend: Vec<(String, (i32, i32))>,
    x_label: Vec<String>,
    top: i32,
    bottom: i32,
    height: i32,
}

impl Layout {
    fn of(words: &Words) -> Layout {
        let width = words.shape.width() - 40;
        // A long title is written smaller before it takes several lines.
        let title_size = if width_px(words.title, 18) <= width { 18 } else { 15 };
        let title = wrapped(words.title, title_size, width);
        let x_label = wrapped(words.x_label, words.shape.text_size(), words.shape.frame_width());
        let title_px = (title.len() as i32 - 1) * TITLE_LINE;
        let legend = legend_places(&words.legend, words.shape, LEGEND_TOP + title_px);
        let lines = legend.last().map_or(0, |(_, (_, y))| (y - LEGEND_TOP - title_px) / LEGEND_LINE + 1);
        let label_px = (x_label.len() as i32 - 1) * LABEL_LINE;
        let legend_px = (lines - LEGEND_LINES).max(0) * LEGEND_LINE;
        let height = words.height + title_px + legend_px + label_px + words.foot;
        Layout {
            title,
            title_size,
            legend,
            x_label,
            top: LEGEND_TOP + title_px + lines * LEGEND_LINE + 8,
            bottom: height - FOOT - label_px - words.foot,
            height,
        }
    }
}

/// The rectangle in which data is drawn, in pixels, and the vertical axis.
pub struct Frame {
    /// Its left edge.
    pub left: i32,
    /// Its right edge.
    pub right: i32,
    /// Its upper edge.
    pub top: i32,
    /// Its lower edge.
    pub bottom: i32,
    /// The shape of the picture.
    pub shape: Shape,
    y: Axis,
    right_axis: Option<Axis>,
    /// What is drawn on top of everything, as SVG.
    above: RefCell<String>,
}

impl Frame {
    /// Adds a tooltip to a rectangle: an invisible one, whose title a browser shows.
    pub fn tooltip(&self, from: (i32, i32), to: (i32, i32), text: &str) {
        if self.shape == Shape::Narrow {
            return;
        }
        let ((left, top), (right, bottom)) = (from, to);
        let (width, height, text) = (right - left, bottom - top, escaped(text));
        self.above.borrow_mut().push_str(&format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"transparent\"><title>{text}</title></rect>\n"
        ));
    }

    /// Draws many rectangles of one colour as one path, which takes a fifth of the room.
    pub fn rectangles(&self, all: impl Iterator<Item = ((i32, i32), (i32, i32))>, colour: RGBColor) {
        let mut path = String::new();
        for ((left, top), (right, bottom)) in all {
            let (width, height) = (right - left, bottom - top);
            path.push_str(&format!("M{left} {top}h{width}v{height}h-{width}z"));
        }
        if !path.is_empty() {
            let fill = hex(colour).to_uppercase();
            let path = format!("<path shape-rendering=\"crispEdges\" fill=\"{fill}\" d=\"{path}\"/>\n");
            self.above.borrow_mut().push_str(&path);
        }
    }

    /// The vertical position of a value, in pixels.
    pub fn y(&self, value: f64) -> i32 {
        self.y_of(&self.y, value)
    }

    /// The same by the axis on the right, if there is one.
    pub fn y_right(&self, value: f64) -> i32 {
        self.y_of(self.right_axis.as_ref().unwrap_or(&self.y), value)
    }

    fn y_of(&self, axis: &Axis, value: f64) -> i32 {
        self.bottom - (axis.place(value) * f64::from(self.bottom - self.top)).round() as i32
    }
}

/// Draws a chart. This function draws the frame; `data` draws the data and what is below the
/// horizontal axis.
pub fn chart(words: &Words, y: Axis, data: impl FnOnce(&Surface, &Frame) -> Drawn) -> Result<String, ChartError> {
    let mut svg = String::new();
    let layout = Layout::of(words);
    let drawn = {
        let size = (words.shape.width() as u32, layout.height as u32);
        let surface = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&surface, words, layout, y, data).and_then(|above| {
            surface.present()?;
            Ok(above)
        })
    };
    let above = drawn.map_err(|e| ChartError { title: words.title.to_string(), message: e.to_string() })?;
    Ok(with_words(&svg, words, &above))
}

fn draw(
    surface: &Surface,
    words: &Words,
    layout: Layout,
    y: Axis,
    data: impl FnOnce(&Surface, &Frame) -> Drawn,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    surface.fill(&WHITE)?;
    let Layout { title, title_size, legend, x_label, top, bottom, height } = layout;
    let ((left, right), size) = (words.shape.edges(), words.shape.text_size());
    let right = if words.right.is_some() { right - RIGHT_ROOM } else { right };
    let bold = font(title_size).style(FontStyle::Bold).into_text_style(surface).color(&INK);
    for (line, text) in title.iter().enumerate() {
        let at = (words.shape.width() / 2, 24 + line as i32 * TITLE_LINE);
        write(surface, text, at, bold.clone(), HPos::Center)?;
    }
    for (series, (label, (x, y))) in legend.iter().enumerate() {
        (words.sign)(surface, series, (x + 6, *y))?;
        text(surface, label, (x + 18, *y), size, HPos::Left)?;
    }
    let right_axis = words.right.as_ref().map(|(_, axis)| axis.clone());
    let frame = Frame { left, right, top, bottom, shape: words.shape, y, right_axis, above: RefCell::default() };
    for tick in &frame.y.ticks {
        let y = frame.y(*tick);
        line(surface, vec![(left, y), (right, y)], GRID, 1)?;
        text(surface, &tick_label(*tick), (left - 6, y), 12, HPos::Right)?;
    }
    data(surface, &frame)?;
    line(surface, vec![(left, top), (left, bottom), (right, bottom)], INK, 1)?;
    for (line, label) in x_label.iter().rev().enumerate() {
        let at = ((left + right) / 2, height - 16 - line as i32 * LABEL_LINE);
        text(surface, label, at, size, HPos::Center)?;
    }
    let at = (if words.shape == Shape::Wide { 18 } else { 9 }, (top + bottom) / 2);
    text_upwards(surface, &fitted(words.y_label, size, bottom - top), at, size, HPos::Center)?;
    if let Some((label, axis)) = &words.right {
        line(surface, vec![(right, top), (right, bottom)], INK, 1)?;
        for tick in &axis.ticks {
            let y = frame.y_right(*tick);
            line(surface, vec![(right, y), (right + 4, y)], INK, 1)?;
            text(surface, &tick_label(*tick), (right + 8, y), 12, HPos::Left)?;
        }
        let at = (words.shape.width() - 12, (top + bottom) / 2);
        text_upwards(surface, &fitted(label, size, bottom - top), at, size, HPos::Center)?;
    }
    Ok(frame.above.into_inner())
}

/// The positions of the entries of the legend: line by line, as many as fit.
fn legend_places(labels: &[&str], shape: Shape, top: i32) -> Vec<(String, (i32, i32))> {
    let (left, right) = shape.edges();
    // A narrow picture has few pixels to spare.
    let left = if shape == Shape::Wide { left } else { 16 };
    let size = shape.text_size();
    let (mut x, mut y) = (left, top);
    let mut places = Vec::new();
    for label in labels {
        let label = fitted(label, size, right - left - 18);
        let width = 18 + width_px(&label, size) + 18;
        if x > left && x + width > right {
            (x, y) = (left, y + LEGEND_LINE);
        }
        places.push((label, (x, y)));
        x += width;
    }
    places
}

fn font(size: i32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(size) * EM_TO_PLOTTERS, FontStyle::Normal)
}

/// Plotters writes a font of size s as one of s / 1.24 pixels.
const EM_TO_PLOTTERS: f64 = 1.24;

/// Writes a text whose middle is at the height of `at`.
pub fn text(surface: &Surface, text: &str, at: (i32, i32), size: i32, side: HPos) -> Drawn {
    write(surface, text, at, font(size).into_text_style(surface).color(&INK), side)
}

/// Writes an upright text that reads upwards: its beginning (left) or its end (right) is at `at`.
pub fn text_upwards(surface: &Surface, text: &str, at: (i32, i32), size: i32, side: HPos) -> Drawn {
    let style = font(size).transform(FontTransform::Rotate270).into_text_style(surface).color(&INK);
    write(surface, text, at, style, side)
}

/// Draws the tick of the horizontal axis at a position.
pub fn tick(surface: &Surface, frame: &Frame, at: i32) -> Drawn {
    line(surface, vec![(at, frame.bottom), (at, frame.bottom + 4)], INK, 1)
}

fn write(surface: &Surface, text: &str, at: (i32, i32), style: TextStyle, side: HPos) -> Drawn {
    let style = style.pos(Pos::new(side, VPos::Center));
    Ok(surface.draw(&Text::new(printable(text), at, style))?)
}

/// Draws a filled rectangle.
pub fn rectangle(surface: &Surface, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
    Ok(surface.draw(&plotters::element::Rectangle::new([from, to], colour.filled()))?)
}

/// Draws a line through points.
pub fn line(surface: &Surface, points: Vec<(i32, i32)>, colour: RGBColor, width_px: u32) -> Drawn {
    let style: ShapeStyle = colour.stroke_width(width_px);
    Ok(surface.draw(&PathElement::new(points, style))?)
}

/// Draws the interval around a value: a line with a bar at each end.
pub fn interval(surface: &Surface, x: i32, (low, high): (i32, i32)) -> Drawn {
    line(surface, vec![(x, low), (x, high)], INK, 2)?;
    line(surface, vec![(x - 6, low), (x + 6, low)], INK, 2)?;
    line(surface, vec![(x - 6, high), (x + 6, high)], INK, 2)
}

/// Draws a pale band across the frame.
pub fn band(surface: &Surface, frame: &Frame, (low, high): (i32, i32), colour: RGBColor) -> Drawn {
    let pale = colour.mix(0.15).filled();
    Ok(surface.draw(&plotters::element::Rectangle::new([(frame.left, high), (frame.right, low)], pale))?)
}

/// Draws a dashed horizontal line.
pub fn dashes(surface: &Surface, (from, to): (i32, i32), y: i32) -> Drawn {
    for x in (from..to).step_by(10) {
        line(surface, vec![(x, y), ((x + 6).min(to), y)], INK, 1)?;
    }
    Ok(())
}

/// The approximate width of a text; the viewer's font decides.
pub fn width_px(text: &str, size: i32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * 0.58).ceil() as i32
}

/// The text, or as much of it as fits, with an ellipsis.
pub fn fitted(text: &str, size: i32, width: i32) -> String {
    if width_px(text, size) <= width {
        return text.to_string();
    }
    let room = (f64::from(width) / (f64::from(size) * 0.58)).floor().max(2.0) as usize - 1;
    let kept: String = text.chars().take(room).collect();
    format!("{}…", kept.trim_end())
}

/// The text in lines that fit, broken at spaces. Only a word that is too long, or a text of too many
/// lines, gets an ellipsis.
pub fn wrapped(text: &str, size: i32, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let is_last = lines.len() == LINES_MAX;
        let Some(line) = lines.last_mut() else { break };
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if line.is_empty() || is_last || width_px(&longer, size) <= width {
            *line = longer;
        } else {
            lines.push(word.to_string());
        }
    }
    lines.iter().map(|line| fitted(line, size, width)).collect()
}

/// XML cannot contain most control characters, not even escaped.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { '\u{FFFD}' } else { c }).collect()
}

/// Adds the title and the description in words to the picture, and what is on top of everything.
fn with_words(svg: &str, words: &Words, above: &str) -> String {
    // Every picture of the backend begins with its only opening tag.
    let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let title = escaped(words.title);
    let description = escaped(words.description);
    let rest = rest.replacen("</svg>", &format!("{above}</svg>"), 1);
    format!(
        "{tag} role=\"img\" aria-labelledby=\"title description\" font-family=\"sans-serif\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>{rest}"
    )
}

fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(printable).collect();
    let text = lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;")
}
