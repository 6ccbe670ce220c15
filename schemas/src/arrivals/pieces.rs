//! A rate that is put together from pieces: steps, ramps, waves and spikes.

use serde::{Deserialize, Serialize};

use super::profile::{Segment, fault};
use crate::sla::nanoseconds;
use crate::words::thousands;

/// A wave is drawn with so many straight lines a period.
const LINES_PER_PERIOD: f64 = 256.0;

/// The most straight lines of all pieces together.
const LINES_MAX: usize = 1 << 20;

/// The shortest piece and the shortest distance of two points, in seconds.
pub(super) const SHORTEST_S: f64 = 1e-3;

/// The shortest period of a wave, in seconds.
const PERIOD_S_MIN: f64 = 0.1;

/// A part of the load with one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// How long it lasts: a number with its unit, such as `30s`.
    #[serde(rename = "for")]
    pub length: String,
    /// Its shape. Without one it is a ramp if `to` is given, and a step otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// The rate at its beginning, or the lowest rate of a sine, in sessions a second.
    pub from: f64,
    /// The rate at the end of a ramp, at the top of a spike, or the highest rate of a wave, in sessions
    /// a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    /// The period of a wave, with its unit. Without one it is the length of the piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
}

/// The shape of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Always `from`.
    Step,
    /// In a straight line from `from` to `to`.
    Ramp,
    /// In a straight line from `from` up to `to` in the middle, and back.
    Spike,
    /// A sine between `from` and `to`. It begins in the middle between them and rises.
    Sine,
    /// A wave between `from` (night) and `to` (day). It begins at night.
    DayNight,
}

impl Shape {
    /// The part of the way from `from` to `to` at a part of the period: 0 to 1.
    fn height(self, phase: f64) -> f64 {
        let turn = 2.0 * std::f64::consts::PI * phase;
        match self {
            Shape::Step => 0.0,
            Shape::Ramp => phase,
            Shape::Spike => 1.0 - libm::fabs(2.0 * phase - 1.0),
            Shape::Sine => (1.0 + libm::sin(turn)) / 2.0,
            Shape::DayNight => (1.0 - libm::cos(turn)) / 2.0,
        }
    }

    fn is_wave(self) -> bool {
        matches!(self, Shape::Sine | Shape::DayNight)
    }

    /// How many straight lines a period has.
    fn lines_per_period(self) -> f64 {
        match self {
            Shape::Step | Shape::Ramp => 1.0,
            Shape::Spike => 2.0,
            Shape::Sine | Shape::DayNight => LINES_PER_PERIOD,
        }
    }
}

/// The segments of all pieces, and the rate at the end. The error has the dotted key below `pieces`.
pub(super) fn segments(pieces: &[Piece]) -> Result<(Vec<Segment>, f64), (String, String)> {
    let (mut segments, mut last) = (Vec::new(), 0.0);
    let mut start_s = 0.0;
    for (index, piece) in pieces.iter().enumerate() {
        let named = |(key, message): (&str, String)| (format!("{index}.{key}"), message);
        let drawn = piece.checked().map_err(named)?;
        if segments.len() as f64 + drawn.lines() > LINES_MAX as f64 {
            let most = thousands(LINES_MAX as u64);
            let message = format!(
                "the pieces have more than {most} straight lines, {LINES_PER_PERIOD} for each period; use longer periods"
            );
            return Err(named(("period", message)));
        }
        last = drawn.append(start_s, &mut segments);
        start_s += drawn.length_s;
    }
    Ok((segments, last))
}

/// A piece with all values.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    shape: Shape,
    length_s: f64,
    period_s: f64,
    from: f64,
    to: f64,
}

impl Piece {
    fn checked(&self) -> Result<Drawn, (&'static str, String)> {
        let shape = self.shape.unwrap_or(if self.to.is_some() { Shape::Ramp } else { Shape::Step });
        let length_s = seconds(&self.length, SHORTEST_S).map_err(|e| ("for", e))?;
        let rate = |key: &'static str, rate: f64| match fault(rate) {
            Some(fault) => Err((key, format!("the rate {rate} {fault}; use a number of at least 0"))),
            None => Ok(rate),
        };
        let from = rate("from", self.from)?;
        let to = match (shape, self.to) {
            (Shape::Step, Some(_)) => {
                return Err(("to", "a step has one rate; remove `to`, or use the shape \"ramp\"".into()));
            }
            (Shape::Step, None) => from,
            (_, Some(to)) => rate("to", to)?,
            (_, None) => return Err(("to", "is missing; only a step has one rate".into())),
        };
        let period_s = match &self.period {
            None => length_s,
            Some(_) if !shape.is_wave() => {
                let message = "only the shapes \"sine\" and \"day_night\" have a period; remove it";
                return Err(("period", message.into()));
            }
            Some(period) => seconds(period, PERIOD_S_MIN).map_err(|e| ("period", e))?,
        };
        Ok(Drawn { shape, length_s, period_s, from, to })
    }
}

impl Drawn {
    /// How many straight lines it has.
    fn lines(&self) -> f64 {
        (self.length_s / self.period_s * self.shape.lines_per_period()).ceil()
    }

    fn rate(&self, phase: f64) -> f64 {
        (self.from + (self.to - self.from) * self.shape.height(phase)).max(0.0)
    }

    /// Adds its segments, which begin at this time; returns the rate at its end.
    fn append(&self, start_s: f64, segments: &mut Vec<Segment>) -> f64 {
        let (lines, per_period) = (self.lines() as u64, self.shape.lines_per_period());
        // Numbers of lines are exact, so each period has the same rates to the bit.
        let node = |line: u64| match line < lines {
            true => {
                let line_of_period = (line % per_period as u64) as f64;
                (line as f64 * self.period_s / per_period, self.rate(line_of_period / per_period))
            }
            false => {
                let periods = self.length_s / self.period_s;
                let whole = periods == libm::floor(periods) && periods > 0.0;
                let phase = if whole { 1.0 } else { periods - libm::floor(periods) };
                (self.length_s, self.rate(phase))
            }
        };
        let mut before = node(0);
        for line in 1..=lines {
            let (at_s, rate) = node(line);
            let (from_s, from) = before;
            if at_s > from_s {
                segments.push(Segment { start_s: start_s + from_s, length_s: at_s - from_s, from, to: rate });
            }
            before = (at_s, rate);
        }
        before.1
    }
}

/// A time in seconds, at least `least`.
fn seconds(text: &str, least: f64) -> Result<f64, String> {
    let seconds = nanoseconds(text)? as f64 / 1e9;
    match seconds >= least {
        true => Ok(seconds),
        false => Err(format!("{text:?} is shorter than {least} s, the shortest time that is possible here")),
    }
}
