//! What every chart has around its data: title, legend, axes with labels, and
//! the text for those who do not see it.

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

/// Width and usual height, in pixels.
pub const SIZE: (u32, u32) = (800, 480);

/// The colours of Okabe and Ito; their yellow is too light for a line on white
/// and comes last.
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

const LEFT: i32 = 92;
const RIGHT: i32 = 780;
/// What is below the horizontal axis.
const FOOT: i32 = 56;
const BOTTOM: i32 = SIZE.1 as i32 - FOOT;
const LEGEND_TOP: i32 = 48;
const LEGEND_LINE: i32 = 20;

/// The colour of a series.
pub fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// A surface to draw on, in pixels.
pub type Surface<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What drawing on it may end in.
pub type Drawn = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// The words of a chart.
pub struct Words<'a> {
    /// Above it.
    pub title: &'a str,
    /// What it shows, in words.
    pub description: &'a str,
    /// Below the horizontal axis.
    pub x_label: &'a str,
    /// Beside the vertical axis.
    pub y_label: &'a str,
    /// How high the picture is, in pixels.
    pub height: u32,
    /// One a series.
    pub legend: Vec<&'a str>,
    /// Draws the sign of a series before its name in the legend, around a point.
    pub sign: fn(&Surface, usize, (i32, i32)) -> Drawn,
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
    y: Axis,
    told: RefCell<Vec<Told>>,
}

/// What is told to who points at a place.
struct Told {
    from: (i32, i32),
    to: (i32, i32),
    text: String,
}

impl Frame {
    /// How wide every frame is.
    pub const WIDTH: i32 = RIGHT - LEFT;

    /// How high a frame is at the least, below a legend of two lines.
    pub const HEIGHT_MIN: i32 = BOTTOM - LEGEND_TOP - 2 * LEGEND_LINE - 8;

    /// Tells a text to who points at a rectangle.
    pub fn tell(&self, from: (i32, i32), to: (i32, i32), text: &str) {
        self.told.borrow_mut().push(Told { from, to, text: text.to_string() });
    }

    /// The height of a value.
    pub fn y(&self, value: f64) -> i32 {
        self.bottom - (self.y.place(value) * f64::from(self.bottom - self.top)).round() as i32
    }
}

/// Draws a chart: the frame here, the data and what stands below the horizontal
/// axis by `data`.
pub fn chart(words: &Words, y: Axis, data: impl FnOnce(&Surface, &Frame) -> Drawn) -> Result<String, ChartError> {
    let mut svg = String::new();
    let drawn = {
        let surface = SVGBackend::with_string(&mut svg, (SIZE.0, words.height)).into_drawing_area();
        draw(&surface, words, y, data).and_then(|told| {
            surface.present()?;
            Ok(told)
        })
    };
    let told = drawn.map_err(|e| ChartError { title: words.title.to_string(), message: e.to_string() })?;
    Ok(with_words(&svg, words, &told))
}

fn draw(
    surface: &Surface,
    words: &Words,
    y: Axis,
    data: impl FnOnce(&Surface, &Frame) -> Drawn,
) -> Result<Vec<Told>, Box<dyn std::error::Error + Send + Sync>> {
    surface.fill(&WHITE)?;
    let bottom = words.height as i32 - FOOT;
    let middle = (LEFT + RIGHT) / 2;
    // A long title is written smaller before it is cut.
    let size = if width_px(words.title, 18) <= RIGHT - 20 { 18 } else { 15 };
    let title = font(size).style(FontStyle::Bold).into_text_style(surface).color(&INK);
    write(surface, &fitted(words.title, size, RIGHT - 20), (SIZE.0 as i32 / 2, 24), title, HPos::Center)?;
    let places = legend_places(&words.legend);
    for (series, (label, at)) in places.iter().enumerate() {
        let (x, y) = *at;
        (words.sign)(surface, series, (x + 6, y))?;
        text(surface, label, (x + 18, y), 14, HPos::Left)?;
    }
    let lines = places.last().map_or(0, |(_, (_, y))| (y - LEGEND_TOP) / LEGEND_LINE + 1);
    let top = LEGEND_TOP + lines * LEGEND_LINE + 8;
    let frame = Frame { left: LEFT, right: RIGHT, top, bottom, y, told: RefCell::default() };
    for tick in &frame.y.ticks {
        let y = frame.y(*tick);
        line(surface, vec![(LEFT, y), (RIGHT, y)], GRID, 1)?;
        text(surface, &tick_label(*tick), (LEFT - 6, y), 12, HPos::Right)?;
    }
    data(surface, &frame)?;
    line(surface, vec![(LEFT, top), (LEFT, bottom), (RIGHT, bottom)], INK, 1)?;
    text(surface, &fitted(words.x_label, 14, RIGHT - LEFT), (middle, words.height as i32 - 16), 14, HPos::Center)?;
    let upright = font(14).transform(FontTransform::Rotate270).into_text_style(surface).color(&INK);
    write(surface, &fitted(words.y_label, 14, bottom - top), (18, (top + bottom) / 2), upright, HPos::Center)?;
    Ok(frame.told.into_inner())
}

/// Where the entries of the legend stand: line by line, as many as have room.
fn legend_places(labels: &[&str]) -> Vec<(String, (i32, i32))> {
    let (mut x, mut y) = (LEFT, LEGEND_TOP);
    let mut places = Vec::new();
    for label in labels {
        let label = fitted(label, 14, RIGHT - LEFT - 18);
        let width = 18 + width_px(&label, 14) + 18;
        if x > LEFT && x + width > RIGHT {
            (x, y) = (LEFT, y + LEGEND_LINE);
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

/// Writes a text upwards that begins at `at`.
pub fn text_upwards(surface: &Surface, text: &str, at: (i32, i32), size: i32) -> Drawn {
    let style = font(size).transform(FontTransform::Rotate270).into_text_style(surface).color(&INK);
    write(surface, text, at, style, HPos::Left)
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

/// Writes a text below the horizontal axis, with a tick.
pub fn below(surface: &Surface, frame: &Frame, at: i32, label: &str, size: i32) -> Drawn {
    line(surface, vec![(at, frame.bottom), (at, frame.bottom + 4)], INK, 1)?;
    text(surface, label, (at, frame.bottom + 17), size, HPos::Center)
}

/// Draws a dashed level line.
pub fn dashes(surface: &Surface, (from, to): (i32, i32), y: i32) -> Drawn {
    for x in (from..to).step_by(10) {
        line(surface, vec![(x, y), ((x + 6).min(to), y)], INK, 1)?;
    }
    Ok(())
}

/// About how wide a text is; the viewer's font decides.
pub fn width_px(text: &str, size: i32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * 0.58).ceil() as i32
}

/// The text, or as much of it as has room, with an ellipsis.
pub fn fitted(text: &str, size: i32, width: i32) -> String {
    if width_px(text, size) <= width {
        return text.to_string();
    }
    let room = (f64::from(width) / (f64::from(size) * 0.58)).floor().max(2.0) as usize - 1;
    let kept: String = text.chars().take(room).collect();
    format!("{}…", kept.trim_end())
}

/// XML has no place for most control characters, not even escaped.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { '\u{FFFD}' } else { c }).collect()
}

/// Puts the title and the description in words into the picture, and what is told of
/// places above all else.
fn with_words(svg: &str, words: &Words, told: &[Told]) -> String {
    // The backend begins every picture with its one opening tag.
    let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let title = escaped(words.title);
    let description = escaped(words.description);
    let rest = match told {
        [] => rest.to_string(),
        told => rest.replacen("</svg>", &format!("{}</svg>", told.iter().map(Told::svg).collect::<String>()), 1),
    };
    format!(
        "{tag} role=\"img\" aria-labelledby=\"title description\" font-family=\"sans-serif\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>{rest}"
    )
}

impl Told {
    /// A rectangle that is not seen, and whose title a browser shows.
    fn svg(&self) -> String {
        let ((left, top), (right, bottom)) = (self.from, self.to);
        let (width, height, text) = (right - left, bottom - top, escaped(&self.text));
        format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"transparent\"><title>{text}</title></rect>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(printable).collect();
    let text = lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;")
}
