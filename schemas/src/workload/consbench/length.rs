//! Times of a specification: texts such as `200ms`, in whole microseconds.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::sla::{exact_time, nanoseconds};

/// A time of at least one microsecond, in whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(u64);

impl Length {
    /// So many microseconds, at least 1.
    pub(super) const fn of_us(us: u64) -> Length {
        Length(if us == 0 { 1 } else { us })
    }

    /// In microseconds.
    pub const fn us(self) -> u64 {
        self.0
    }

    fn parse(text: &str) -> Result<Length, String> {
        match nanoseconds(text)? {
            ns if ns % 1_000 == 0 => Ok(Length(ns / 1_000)),
            _ => Err(format!("{text:?} is not a whole number of microseconds")),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&exact_time(self.0.saturating_mul(1_000)))
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time with its unit in quotes, such as \"200ms\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Length, E> {
                Length::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::Length;

    #[test]
    fn a_time_reads_back_as_it_is_written() {
        for us in [1, 999, 1_000, 1_001, 12_345_678, 86_400_000_001, 999_999_999_999] {
            assert_eq!(Length::parse(&Length::of_us(us).to_string()), Ok(Length::of_us(us)));
        }
        assert_eq!(Length::parse("1.5ms"), Ok(Length::of_us(1_500)));
        for wrong in ["1.5us", "100ns", "0s", "5", "fast", "12000h"] {
            assert!(Length::parse(wrong).is_err(), "{wrong}");
        }
    }
}
