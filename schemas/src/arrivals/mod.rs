//! When sessions arrive: the section `[arrivals]` of a specification.
//!
//! A specification with arrivals is replayed in an open loop. Each session has a due time, which the
//! generator draws from the rate f(t) of arrivals and writes to the trace.
//!
//! ```
//! let spec = schemas::spec::Spec::parse(r#"
//!     name = "rising"
//!     sessions = 1000
//!     [arrivals]
//!     pieces = [{ for = "10s", from = 0, to = 100 }]
//!     [data]
//!     members = 100
//!     [mix]
//!     view_profile = 1
//! "#, "rising.toml").unwrap();
//! let profile = spec.arrivals.unwrap().profile();
//! assert_eq!((profile.rate_at(5.0), profile.arrivals_until(5.0), profile.mean_rate(5.0)), (50.0, 125.0, 25.0));
//! // The last rate goes on.
//! assert_eq!(profile.rate_at(60.0), 100.0);
//! ```

mod expression;
mod pieces;
mod points;
mod profile;

use std::fmt;
use std::path::Path;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::words::thousands;
use crate::wrong::Wrong;
use expression::Expression;
pub use pieces::{Piece, Shape};
pub use points::Point;
pub use profile::{Cursor, DUE_S_MAX, NeverDue, Profile, RATE_MAX};

/// The latest due time of a session, in microseconds from the start of the load: some 12.7 days.
pub const DUE_US_MAX: u64 = 1 << 40;

/// The greatest resolution of due times, in microseconds: a minute.
const RESOLUTION_US_MAX: u32 = 60_000_000;

/// When sessions arrive: one of `rate`, `pieces`, `points` and `file` says at which rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// The rate in sessions a second: a number, or an expression over the time `t` in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A CSV file with the header `seconds,rate`, relative to the specification's folder. A
    /// specification that was read has its content as `points` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether pieces or points repeat. Otherwise the last rate goes on.
    #[serde(default)]
    pub repeat: bool,
    /// How arrivals are spaced.
    #[serde(default)]
    pub spacing: Spacing,
    /// Due times are rounded down to a multiple of this, in microseconds.
    #[serde(default = "default_resolution_us")]
    pub resolution_us: u32,
    /// The rate at some points in time; linear between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// The rate in pieces, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
}

/// A rate in sessions a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rate {
    /// Always the same.
    Constant(f64),
    /// An expression over the time `t` in seconds.
    Expression(String),
}

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// As a Poisson process: sessions arrive independently of each other.
    #[default]
    Poisson,
    /// Evenly: at a constant rate all sessions of a fragment have the same distance.
    Even,
}

fn default_resolution_us() -> u32 {
    1
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = Rate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or an expression over t in quotes")
            }
            fn visit_f64<E>(self, rate: f64) -> Result<Rate, E> {
                Ok(Rate::Constant(rate))
            }
            fn visit_i64<E>(self, rate: i64) -> Result<Rate, E> {
                Ok(Rate::Constant(rate as f64))
            }
            fn visit_u64<E>(self, rate: u64) -> Result<Rate, E> {
                Ok(Rate::Constant(rate as f64))
            }
            fn visit_str<E>(self, text: &str) -> Result<Rate, E> {
                Ok(Rate::Expression(text.into()))
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

impl Arrivals {
    /// The rate over time.
    ///
    /// # Panics
    ///
    /// If the arrivals were not checked. Those of a specification that was read are.
    pub fn profile(&self) -> Profile {
        self.checked_profile().unwrap_or_else(|wrong| unreachable!("{}: {}", wrong.key, wrong.message))
    }

    /// Replaces the file by its content.
    pub(crate) fn inline(&mut self, folder: &Path) -> Result<(), Wrong> {
        self.check_sources()?;
        if let Some(file) = self.file.take() {
            self.points = points::read_csv(&folder.join(file)).map_err(|message| wrong("file", message))?;
        }
        Ok(())
    }

    /// Refuses arrivals from which so many sessions cannot get due times.
    pub(crate) fn check(&self, sessions: u64) -> Result<(), Wrong> {
        let profile = self.checked_profile()?;
        if self.resolution_us == 0 || self.resolution_us > RESOLUTION_US_MAX {
            let message =
                format!("{} is not between 1 and {}", self.resolution_us, thousands(RESOLUTION_US_MAX.into()));
            return Err(wrong("resolution_us", message));
        }
        let never = |never: NeverDue| wrong(self.source(), never.words(sessions));
        profile.time_of(sessions as f64).map(drop).map_err(never)
    }

    /// The keys that say at which rate sessions arrive, and whether each is given.
    fn sources(&self) -> [(&'static str, bool); 4] {
        [
            ("rate", self.rate.is_some()),
            ("pieces", !self.pieces.is_empty()),
            ("points", !self.points.is_empty()),
            ("file", self.file.is_some()),
        ]
    }

    /// The first of these keys that is given.
    fn source(&self) -> &'static str {
        self.sources().into_iter().find(|(_, is_given)| *is_given).map_or("rate", |(key, _)| key)
    }

    fn check_sources(&self) -> Result<(), Wrong> {
        let given: Vec<&str> = self.sources().into_iter().filter(|(_, is)| *is).map(|(key, _)| key).collect();
        match given[..] {
            [_] => Ok(()),
            [] => Err(Wrong::new("arrivals", "has no rate; give one of rate, pieces, points and file")),
            [..] => {
                Err(Wrong::new("arrivals", format!("{} exclude each other; keep one of them", given.join(" and "))))
            }
        }
    }

    fn checked_profile(&self) -> Result<Profile, Wrong> {
        self.check_sources()?;
        if self.file.is_some() {
            let message = "is only possible in the file of a specification; give its content as points";
            return Err(wrong("file", message.into()));
        }
        if let Some(rate) = &self.rate {
            return self.profile_of_rate(rate);
        }
        let (segments, last) = match self.points.is_empty() {
            true => {
                pieces::segments(&self.pieces).map_err(|(key, message)| wrong(&format!("pieces.{key}"), message))?
            }
            false => {
                let named = |(index, message)| wrong(&format!("points.{index}"), message);
                points::check(&self.points).map_err(named)?;
                points::segments(&self.points)
            }
        };
        match self.repeat {
            true if segments.is_empty() => Err(wrong("repeat", "one point has no length; give at least two".into())),
            true => Ok(Profile::repeated(segments)),
            false => Ok(Profile::of_segments(segments, last)),
        }
    }

    fn profile_of_rate(&self, rate: &Rate) -> Result<Profile, Wrong> {
        if self.repeat {
            return Err(wrong("repeat", "only pieces and points repeat; remove it".into()));
        }
        match rate {
            Rate::Constant(rate) => match profile::fault(*rate) {
                Some(fault) => Err(wrong("rate", format!("{rate} {fault}; use a number above 0"))),
                None => Ok(Profile::constant(*rate)),
            },
            Rate::Expression(text) => {
                Expression::parse(text).map(Profile::of_expression).map_err(|message| wrong("rate", message))
            }
        }
    }
}

impl NeverDue {
    /// Says why not all of these sessions have a due time, and what to do.
    pub fn words(&self, sessions: u64) -> String {
        match self {
            NeverDue::Beyond { arrivals } if *arrivals == 0.0 => "is 0 at all times; use a rate above 0".into(),
            NeverDue::Beyond { arrivals } => format!(
                "only {} of {} sessions are due in the first 2^40 µs (12.7 days), the longest time that a trace can \
                 take; use a greater rate or fewer sessions",
                thousands(arrivals.max(0.0) as u64),
                thousands(sessions)
            ),
            NeverDue::NoRate { at_s, value, fault } => {
                format!("the rate at t = {at_s} s is {value}, which {fault}; use max(..., 0), or another expression")
            }
        }
    }
}

fn wrong(key: &str, message: String) -> Wrong {
    Wrong::new(format!("arrivals.{key}"), message)
}

#[cfg(test)]
mod tests;
