//! The workload specification (TOML), from which a trace set is generated.
//!
//! ```
//! let spec = schemas::spec::Spec::parse(r#"
//!     name = "small"
//!     sessions = 1000
//!     [data]
//!     members = 100
//!     friends_per_member = 10
//!     [mix]
//!     view_profile = 90
//!     invite_friend = 10
//! "#, "small.toml").unwrap();
//! assert_eq!(spec.fragments, 1);
//! ```
//!
//! Here is what every family has. [`crate::workload`] has the families; it reads a specification together
//! with the part of its family.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::files::{FileError, is_plain_name};
use crate::sla::Sla;
pub use crate::wrong::Wrong;

/// An error in a specification: the file, the key, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, an unknown key or a value of the wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, column and reason.
        message: String,
    },
    /// An invalid value.
    #[error("{file}: {key}: {message}")]
    Value {
        /// The file.
        file: String,
        /// The dotted key.
        key: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A workload: what every family has, and the keys of its own family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The name of the trace set's folder.
    pub name: String,
    /// The workload family: the [`Workload`](crate::workload::Workload) that reads the family's own keys.
    #[serde(default = "default_family")]
    pub family: String,
    /// The seed of all random numbers.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How many sessions over all fragments. A family may provide it.
    #[serde(default)]
    pub sessions: u64,
    /// The SLA that a rating of this workload uses if the user gives no other. It decides nothing
    /// in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::sla::as_text")]
    pub sla: Option<Sla>,
    /// Number of disjoint shares of the data set; replayers work on whole fragments.
    #[serde(default = "default_fragments")]
    pub fragments: u32,
    /// The share of all draws that falls on each fragment, in any unit, for replayers of unequal
    /// speed; one weight per fragment. Empty: equal shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragment_weights: Vec<f64>,
    /// How long a thread waits between two operations of a session.
    #[serde(default)]
    pub think_time: Delay,
    /// How long a thread waits between two sessions.
    #[serde(default)]
    pub inter_arrival_time: Delay,
    /// When sessions arrive (open loop). Without it, a thread takes the next session when it is done
    /// with one (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The share of each kind of session, in any unit: only the proportions count. The family says
    /// which kinds there are, or provides the mix.
    #[serde(default)]
    pub mix: BTreeMap<String, f64>,
    /// The family's own keys, complete with defaults. [`Spec::workload`] reads them.
    #[serde(flatten)]
    pub own: toml::Table,
}

/// A specification together with its family's own part.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecOf<W> {
    /// What every family has.
    pub common: Spec,
    /// What this family has.
    pub own: W,
}

/// A waiting time, drawn by the generator and fixed in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delay {
    /// Its mean, in microseconds; 0 for none.
    pub mean_us: u32,
    /// How it is distributed.
    pub distribution: DelayDistribution,
}

/// How a waiting time is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayDistribution {
    /// Always the mean.
    #[default]
    Constant,
    /// Exponentially, as between the events of a Poisson process.
    Exponential,
}

/// The family of a specification that names none.
pub(crate) const DEFAULT_FAMILY: &str = "social";

/// The most kinds of sessions: files number them in one byte.
const KINDS_MAX: usize = 100;

impl Wrong {
    /// The error of the specification in this file.
    pub(crate) fn of(self, file: &str) -> SpecError {
        SpecError::Value { file: file.into(), key: self.key, message: self.message }
    }
}

fn default_family() -> String {
    DEFAULT_FAMILY.to_string()
}
pub(crate) fn default_seed() -> u64 {
    1
}
pub(crate) fn default_fragments() -> u32 {
    1
}

impl Spec {
    /// The specification as the text of a file, with every default written out.
    ///
    /// Fails for values that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, SpecError> {
        toml::to_string(self).map_err(|e| SpecError::Syntax { file: self.name.clone(), message: e.to_string() })
    }

    /// Checks what every family has.
    pub(crate) fn check_common(&self) -> Result<(), Wrong> {
        let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
        if !is_plain_name(&self.name) {
            return wrong("name", format!("{:?} is not a name of letters, digits, '-', '_' and '.'", self.name));
        }
        if self.sessions == 0 {
            return wrong("sessions", "must be at least 1".into());
        }
        if self.fragments == 0 || self.fragments > 65_536 {
            return wrong("fragments", format!("{} is not between 1 and 65,536", self.fragments));
        }
        self.check_weights()?;
        if let Some(arrivals) = &self.arrivals {
            if self.inter_arrival_time.mean_us > 0 {
                return wrong(
                    "inter_arrival_time",
                    "arrivals and inter_arrival_time exclude each other; remove one".into(),
                );
            }
            arrivals.check(self.sessions)?;
        }
        for (name, share) in &self.mix {
            if !share.is_finite() || *share < 0.0 {
                return wrong(&format!("mix.{name}"), format!("{share} is not a share; use a number of at least 0"));
            }
        }
        match self.kinds().len() {
            0 => wrong("mix", "is empty: give at least one kind of session a share above 0".into()),
            kinds if kinds > KINDS_MAX => {
                wrong("mix", format!("has {kinds} kinds of sessions, at most {KINDS_MAX} are possible"))
            }
            _ => Ok(()),
        }
    }

    fn check_weights(&self) -> Result<(), Wrong> {
        let wrong = |message: String| Err(Wrong::new("fragment_weights", message));
        if self.fragment_weights.is_empty() {
            return Ok(());
        }
        if self.fragment_weights.len() != self.fragments as usize {
            return wrong(format!(
                "the number of weights is {}, fragments is {}; give one weight per fragment, or none",
                self.fragment_weights.len(),
                self.fragments
            ));
        }
        match self.fragment_weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            Some(weight) => wrong(format!("{weight} is not a number above 0")),
            None => Ok(()),
        }
    }

    /// The kinds of sessions with a share above 0, by name, with their shares. Files number them in
    /// this order.
    pub fn kinds(&self) -> Vec<(&str, f64)> {
        let wanted = self.mix.iter().filter(|(_, share)| **share > 0.0);
        wanted.map(|(name, share)| (name.as_str(), *share)).collect()
    }

    /// The id that all trace sets of this workload share, whatever their length: BLAKE3 over the
    /// format version and the specification without `sessions`, `sla` and `name`. Two trace sets with
    /// one workload id have the same data set, and the shorter one's sessions are a prefix of the
    /// longer one's.
    pub fn workload_id(&self) -> String {
        let mut same = self.clone();
        same.sessions = 0;
        same.sla = None;
        same.name.clear();
        same.mix.retain(|_, share| *share > 0.0);
        let text = serde_json::to_string(&same).unwrap_or_else(|e| unreachable!("a spec is plain data: {e}"));
        let mut hasher = blake3::Hasher::new();
        hasher.update(&crate::TRACE_FORMAT_VERSION.to_le_bytes());
        hasher.update(text.as_bytes());
        hasher.finalize().to_hex()[..32].to_string()
    }
}
