//! The service level agreement: α percent of operations within β, at most τ
//! percent of reads unpredictable, for Δ. It may limit Γ and ask for a level of isolation too.
//!
//! ```
//! let sla: schemas::sla::Sla = "95% < 100ms, 0.1% unpredictable, 60s".parse().unwrap();
//! assert_eq!(sla.beta_ns, 100_000_000);
//! assert_eq!(sla.to_string(), "95% < 100ms, 0.1% unpredictable, 60s");
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::isolation::Isolation;

/// A service level agreement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sla {
    /// α: the share of operations, in percent, that must succeed within β.
    pub alpha_percent: f64,
    /// β: the limit of the response time, in nanoseconds.
    pub beta_ns: u64,
    /// τ: the largest share of unpredictable reads, in percent.
    pub tau_percent: f64,
    /// Δ: the duration, in seconds.
    pub delta_s: f64,
    /// The limit of Γ; null if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<GammaLimit>,
    /// The weakest level of isolation that the transactions may show; null if any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

/// The share of the values, in percent, whose Γ must be within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GammaLimit {
    /// The share, in percent.
    pub percent: f64,
    /// The limit, in nanoseconds.
    pub limit_ns: u64,
}

impl Default for Sla {
    fn default() -> Self {
        Sla { alpha_percent: 95.0, beta_ns: 100_000_000, tau_percent: 0.1, delta_s: 10.0, gamma: None, isolation: None }
    }
}

/// A text that is not a valid SLA.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{message}; write it like \"95% < 100ms, 0.1% unpredictable, 60s\"")]
pub struct SlaError {
    message: String,
}

impl FromStr for Sla {
    type Err = SlaError;

    fn from_str(text: &str) -> Result<Sla, SlaError> {
        let wrong = |message: String| SlaError { message };
        let mut sla = Sla::default();
        let mut parts = text.split(',').map(str::trim);
        let latency = parts.next().unwrap_or_default();
        let (alpha, beta) = latency.split_once('<').ok_or_else(|| wrong(format!("{latency:?} has no '<'")))?;
        sla.alpha_percent = percent(alpha).map_err(wrong)?;
        sla.beta_ns = nanoseconds(beta).map_err(wrong)?;
        for part in parts {
            if let Some(share) = part.strip_suffix("unpredictable") {
                sla.tau_percent = percent(share).map_err(wrong)?;
            } else if let Some((left, limit)) = part.split_once('<') {
                let share = gamma_share(left).ok_or_else(|| {
                    wrong(format!("{part:?} is not a limit of Γ, such as \"95% Γ < 10ms\"; the limit of the response time comes first"))
                })?;
                let (percent, limit_ns) = (percent(share).map_err(wrong)?, nanoseconds(limit).map_err(wrong)?);
                sla.gamma = Some(GammaLimit { percent, limit_ns });
            } else if let Some(level) = Isolation::from_name(part) {
                sla.isolation = Some(level);
            } else {
                sla.delta_s = nanoseconds(part).map_err(wrong)? as f64 / 1e9;
            }
        }
        Ok(sla)
    }
}

/// The share of a limit of Γ: what is before its name.
fn gamma_share(left: &str) -> Option<&str> {
    let left = left.trim();
    // Γ also has a code point of its own as a sign of mathematics (ℾ), which is not accepted.
    ["Γ", "gamma", "Gamma", "GAMMA"].iter().find_map(|name| left.strip_suffix(name))
}

/// Parses a share from 0 to 100 with its `%`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    number.filter(|n| (0.0..=100.0).contains(n)).ok_or_else(|| format!("{:?} is not a percentage", text.trim()))
}

/// The longest time in nanoseconds. Beyond it, seconds as a floating-point number are not exact to the
/// nanosecond, and an agreement would not read back as it was written.
const LONGEST_NS: f64 = 1e15;

/// Parses a positive time with its unit: ns, us, ms, s, m or h.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(format!("{text:?} is not a time with its unit (ns, us, ms, s, m or h)")),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n * scale >= LONGEST_NS => Err(format!("{text:?} is longer than 11 days")),
        // Less than half a nanosecond would be no time at all.
        Ok(n) if (n * scale).round() >= 1.0 => Ok((n * scale).round() as u64),
        _ => Err(format!("{text:?} is not a time above 0")),
    }
}

/// A time in its largest suitable unit, rounded to two decimals: `100ms`, `1.5s`.
pub fn short_time(ns: u64) -> String {
    time(ns, |number| (number * 100.0).round() / 100.0)
}

/// A time in its largest suitable unit, with all its digits: `145.840981ms`.
pub fn exact_time(ns: u64) -> String {
    time(ns, |number| number)
}

fn time(ns: u64, rounded: fn(f64) -> f64) -> String {
    let (scale, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{}{unit}", rounded(ns as f64 / scale))
}

impl fmt::Display for Sla {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beta = exact_time(self.beta_ns);
        write!(f, "{}% < {beta}, {}% unpredictable", self.alpha_percent, self.tau_percent)?;
        if let Some(GammaLimit { percent, limit_ns }) = self.gamma {
            write!(f, ", {percent}% Γ < {}", exact_time(limit_ns))?;
        }
        if let Some(level) = self.isolation {
            write!(f, ", {}", level.name())?;
        }
        write!(f, ", {}s", self.delta_s)
    }
}

/// An SLA that may be missing from a document, as text and as on the command line.
pub mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Sla;

    /// Writes it.
    pub fn serialize<S: Serializer>(sla: &Option<Sla>, serializer: S) -> Result<S::Ok, S::Error> {
        match sla {
            Some(sla) => serializer.collect_str(sla),
            None => serializer.serialize_none(),
        }
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Sla>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Some).map_err(|e| serde::de::Error::custom(format!("sla: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// An SLA that is written to a file or sent to a replayer reads back unchanged.
        #[test]
        fn an_agreement_reads_back_as_it_is(
            alpha_percent in 0.0..=100.0,
            beta_ns in prop_oneof![1u64..10_000_000, 1u64..3_600_000_000_000],
            tau_percent in 0.0..=100.0,
            delta_ms in 1u64..100_000_000,
            gamma in proptest::option::of((0.0..=100.0, 1u64..3_600_000_000_000)),
            level in 0..=Isolation::ALL.len(),
        ) {
            let gamma = gamma.map(|(percent, limit_ns)| GammaLimit { percent, limit_ns });
            let (delta_s, isolation) = (delta_ms as f64 / 1e3, Isolation::ALL.get(level).copied());
            let sla = Sla { alpha_percent, beta_ns, tau_percent, delta_s, gamma, isolation };
            prop_assert_eq!(sla.to_string().parse(), Ok(sla));
        }
    }

    #[test]
    fn a_time_of_weeks_is_refused() {
        let error = "95% < 5ms, 4444495445ms".parse::<Sla>().unwrap_err().to_string();
        assert!(error.contains("longer than 11 days"), "{error}");
        assert!("95% < 5ms, 240h".parse::<Sla>().is_ok());
    }

    #[test]
    fn parts_may_be_left_out() {
        let sla: Sla = "99.9% < 1.5ms".parse().unwrap();
        assert_eq!((sla.alpha_percent, sla.beta_ns, sla.tau_percent), (99.9, 1_500_000, 0.1));
        assert_eq!("90%<1s,2m".parse::<Sla>().unwrap().delta_s, 120.0);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let check = |text: &str, expect: &str| {
            let error = text.parse::<Sla>().unwrap_err().to_string();
            assert!(error.contains(expect) && error.contains("write it like"), "{error}");
        };
        check("", "has no '<'");
        check("95 < 100ms", "\"95\" is not a percentage");
        check("195% < 100ms", "\"195%\" is not a percentage");
        check("95% < 100", "not a time with its unit");
        check("95% < 0ms", "not a time above 0");
        check("95% < 0.18ns", "not a time above 0");
        check("95% < 100ms, soon", "not a time");
        check("95% < 100ms, chaos", "not a time");
        check("95% < 100ms, 95% < 10ms", "not a limit of Γ");
        check("95% < 100ms, Γ < 10ms", "\"\" is not a percentage");
        check("95% < 100ms, 95% Γ < 10", "not a time with its unit");
        check("95% < 100ms, 101% gamma < 10ms", "not a percentage");
    }

    #[test]
    fn a_limit_of_gamma_is_a_clause() {
        let expect = Sla {
            alpha_percent: 95.0,
            beta_ns: 300_000_000,
            gamma: Some(GammaLimit { percent: 95.0, limit_ns: 10_000_000 }),
            ..Sla::default()
        };
        for text in ["95% < 300ms, 95% Γ < 10ms", "95%<300ms,95%Γ<10ms", "95% < 300ms, 95% gamma < 10ms"] {
            assert_eq!(text.parse(), Ok(expect), "{text}");
        }
        assert_eq!(expect.to_string(), "95% < 300ms, 0.1% unpredictable, 95% Γ < 10ms, 10s");
    }

    #[test]
    fn a_level_of_isolation_is_a_clause() {
        let sla: Sla = "95% < 100ms, serializable".parse().unwrap();
        assert_eq!(sla, Sla { isolation: Some(Isolation::Serializable), ..Sla::default() });
        assert_eq!(sla.to_string(), "95% < 100ms, 0.1% unpredictable, serializable, 10s");
        let sla: Sla = "95% < 100ms, read-committed, 60s".parse().unwrap();
        assert_eq!((sla.isolation, sla.delta_s), (Some(Isolation::ReadCommitted), 60.0));
    }
}
