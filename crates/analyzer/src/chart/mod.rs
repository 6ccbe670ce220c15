//! Charts as SVG text: from numbers and labels to a picture that needs no
//! fonts, no scripts and no network to be looked at.
//!
//! Colours are those of Okabe and Ito, which people with any colour vision can
//! tell apart, and nothing is told by colour alone: bars stand in the order of
//! the legend and carry their values, lines have markers of different shapes. The
//! picture says in words what it shows (`<title>` and `<desc>`).
//!
//! ```
//! use analyzer::chart::{Bar, BarChart, BarSeries, Scale, bars};
//!
//! let bar = |value: f64| Bar { value: Some(value), label: value.to_string() };
//! let svg = bars(&BarChart {
//!     title: "View Profile".into(),
//!     description: "a: 100, b: 3,000 actions/s".into(),
//!     x_label: "profile image".into(),
//!     y_label: "SoAR (actions/s)".into(),
//!     groups: vec!["none".into()],
//!     series: vec![
//!         BarSeries { label: "a".into(), bars: vec![bar(100.0)] },
//!         BarSeries { label: "b".into(), bars: vec![bar(3000.0)] },
//!     ],
//!     scale: Scale::suited_to([100.0, 3000.0]),
//! })
//! .unwrap();
//! assert!(svg.starts_with("<svg") && svg.contains("<title"));
//! ```

mod axis;
mod bars;
mod frame;
mod heat;
mod lines;
mod spans;
#[cfg(test)]
mod tests;

pub use axis::Scale;
pub use bars::{Bar, BarChart, BarSeries, bars};
pub use heat::{HeatCell, HeatMap, heat};
pub use lines::{Across, LineChart, LinePoint, LineSeries, Mark, Rule, Stroke, lines};
pub use spans::{Span, SpanChart, spans};

/// A chart that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the chart {title:?} cannot be drawn: {message}")]
pub struct ChartError {
    /// The chart's title.
    pub title: String,
    /// What the drawing library said.
    pub message: String,
}
