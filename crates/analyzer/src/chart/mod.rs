//! Charts as SVG text, drawn from numbers and labels. A viewer needs no fonts, no scripts and no
//! network.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can distinguish.
//! Colour alone never carries a meaning: bars are in the order of the legend and have their
//! values, and lines have markers of different shapes. The picture also describes itself in words
//! (`<title>` and `<desc>`).
//!
//! ```
//! use analyzer::chart::{Bar, BarChart, BarSeries, Scale, bars};
//!
//! let bar = |value: f64| Bar { value: Some(value), label: value.to_string(), interval: None };
//! let svg = bars(&BarChart {
//!     title: "View Profile".into(),
//!     description: "a: 100, b: 3,000 operations/s".into(),
//!     x_label: "profile image".into(),
//!     y_label: "SoAR (operations/s)".into(),
//!     groups: vec!["none".into()],
//!     series: vec![
//!         BarSeries { label: "a".into(), bars: vec![bar(100.0)], ..BarSeries::default() },
//!         BarSeries { label: "b".into(), bars: vec![bar(3000.0)], ..BarSeries::default() },
//!     ],
//!     scale: Scale::suited_to([100.0, 3000.0]),
//! })
//! .unwrap();
//! assert!(svg.starts_with("<svg") && svg.contains("<title"));
//! ```

mod axis;
mod bars;
mod below;
mod data;
mod frame;
mod heat;
mod lines;
mod spans;
#[cfg(test)]
mod tests;
mod thin;

pub use axis::Scale;
pub use bars::{Bar, BarChart, BarSeries, bars};
pub use frame::Shape;
pub use heat::{HEAT_COLOURS, HeatCell, HeatMap};
pub use lines::{Across, LineChart, LinePoint, LineSeries, Mark, Rule, Stroke, lines};
pub use spans::{Span, SpanChart};

/// A chart of any kind.
pub trait Chart {
    /// Draws it as SVG.
    fn svg(&self, shape: Shape) -> Result<String, ChartError>;

    /// The same chart as JSON, for the script of a page; None if the picture is all there is.
    fn data(&self) -> Option<serde_json::Value> {
        None
    }

    /// What a reader has to know about points that are not drawn; None if all are.
    fn left_out(&self) -> Option<String> {
        None
    }
}

/// A chart that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the chart {title:?} cannot be drawn: {message}")]
pub struct ChartError {
    /// The chart's title.
    pub title: String,
    /// The error of the drawing library.
    pub message: String,
}
