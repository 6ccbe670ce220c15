//! The service level agreement: α percent of operations within β, at most τ
//! percent of reads unpredictable, for Δ.
//!
//! ```
//! let sla: schemas::sla::Sla = "95% < 100ms, 0.1% unpredictable, 60s".parse().unwrap();
//! assert_eq!(sla.beta_ns, 100_000_000);
//! assert_eq!(sla.to_string(), "95% < 100ms, 0.1% unpredictable, 60s");
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A service level agreement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sla {
    /// α: this share of operations, in percent, ...
    pub alpha_percent: f64,
    /// β: ... succeeds within this time, ...
    pub beta_ns: u64,
    /// τ: ... with at most this share of reads unpredictable, in percent, ...
    pub tau_percent: f64,
    /// Δ: ... for this long.
    pub delta_s: f64,
}

impl Default for Sla {
    fn default() -> Self {
        Sla { alpha_percent: 95.0, beta_ns: 100_000_000, tau_percent: 0.1, delta_s: 10.0 }
    }
}

/// A text that is no SLA.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("SLA {text:?}: {message}; write it like \"95% < 100ms, 0.1% unpredictable, 60s\"")]
pub struct SlaError {
    text: String,
    message: String,
}

impl FromStr for Sla {
    type Err = SlaError;

    fn from_str(text: &str) -> Result<Sla, SlaError> {
        let wrong = |message: String| SlaError { text: text.into(), message };
        let mut sla = Sla::default();
        let mut parts = text.split(',').map(str::trim);
        let latency = parts.next().unwrap_or_default();
        let (alpha, beta) = latency.split_once('<').ok_or_else(|| wrong(format!("{latency:?} has no '<'")))?;
        sla.alpha_percent = percent(alpha).map_err(wrong)?;
        sla.beta_ns = nanoseconds(beta).map_err(wrong)?;
        for part in parts {
            if let Some(share) = part.strip_suffix("unpredictable") {
                sla.tau_percent = percent(share).map_err(wrong)?;
            } else {
                sla.delta_s = nanoseconds(part).map_err(wrong)? as f64 / 1e9;
            }
        }
        Ok(sla)
    }
}

/// A share from 0 to 100 with its `%`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    number.filter(|n| (0.0..=100.0).contains(n)).ok_or_else(|| format!("{:?} is not a percentage", text.trim()))
}

/// A positive time with its unit: ns, us, ms, s, m or h.
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
        Ok(n) if n > 0.0 && n * scale < 1e18 => Ok((n * scale).round() as u64),
        _ => Err(format!("{text:?} is not a time above 0")),
    }
}

/// A time in the largest unit that keeps it short, to two decimals: `100ms`, `1.5s`.
pub fn short_time(ns: u64) -> String {
    time(ns, |number| (number * 100.0).round() / 100.0)
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
        let beta = time(self.beta_ns, |number| number);
        write!(f, "{}% < {beta}, {}% unpredictable, {}s", self.alpha_percent, self.tau_percent, self.delta_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What is written down or sent to a replayer is the agreement itself.
        #[test]
        fn an_agreement_reads_back_as_it_is(
            alpha_percent in 0.0..=100.0,
            beta_ns in prop_oneof![1u64..10_000_000, 1u64..3_600_000_000_000],
            tau_percent in 0.0..=100.0,
            delta_ms in 1u64..100_000_000,
        ) {
            let sla = Sla { alpha_percent, beta_ns, tau_percent, delta_s: delta_ms as f64 / 1e3 };
            prop_assert_eq!(sla.to_string().parse(), Ok(sla));
        }
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
        check("95% < 100ms, soon", "not a time");
    }
}
