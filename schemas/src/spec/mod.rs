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

mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::files::{FileError, at, is_plain_name};
use crate::sla::Sla;
use crate::workload::{self, AnyWorkload, Workload};
use settings::{apply_setting, plain};

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
    /// The workload family: the [`Workload`] that reads the family's own keys.
    #[serde(default = "default_family")]
    pub family: String,
    /// The seed of all random numbers.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How many sessions over all fragments.
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
    /// which kinds there are.
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

/// The most kinds of sessions: files number them in one byte.
const KINDS_MAX: usize = 100;

/// A wrong value: the key, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The dotted key.
    pub key: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Wrong {
    /// A wrong value.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Wrong {
        Wrong { key: key.into(), message: message.into() }
    }

    fn of(self, file: &str) -> SpecError {
        SpecError::Value { file: file.into(), key: self.key, message: self.message }
    }
}

impl<W: Workload> SpecOf<W> {
    /// A specification without a name, sessions and mix.
    pub fn new(own: W) -> SpecOf<W> {
        let common = Spec {
            name: String::new(),
            family: W::FAMILY.to_string(),
            seed: default_seed(),
            sessions: 0,
            sla: None,
            fragments: default_fragments(),
            fragment_weights: Vec::new(),
            think_time: Delay::default(),
            inter_arrival_time: Delay::default(),
            arrivals: None,
            mix: BTreeMap::new(),
            own: toml::Table::new(),
        };
        SpecOf { common, own }
    }

    /// Reads and checks a text; errors name `file`.
    pub fn parse(text: &str, file: &str) -> Result<SpecOf<W>, SpecError> {
        SpecOf::parse_with(text, file, &[])
    }

    /// Like [`Spec::parse_with`].
    pub fn parse_with(text: &str, file: &str, settings: &[String]) -> Result<SpecOf<W>, SpecError> {
        Spec::parse_with(text, file, settings)?.of()
    }

    /// Both parts as one specification.
    pub fn whole(&self) -> Spec {
        Spec { own: workload::written(&self.own), ..self.common.clone() }
    }
}

fn default_family() -> String {
    crate::workload::DEFAULT.to_string()
}
fn default_seed() -> u64 {
    1
}
fn default_fragments() -> u32 {
    1
}

impl Spec {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Spec, SpecError> {
        let text = std::fs::read_to_string(path).map_err(at(path))?;
        Spec::parse(&text, &path.display().to_string())
    }

    /// Reads and checks a text; errors name `file`.
    pub fn parse(text: &str, file: &str) -> Result<Spec, SpecError> {
        Spec::parse_with(text, file, &[])
    }

    /// Like [`Spec::parse`], with `key=value` settings (dotted keys, TOML
    /// values) that replace or add to what the text says.
    pub fn parse_with(text: &str, file: &str, settings: &[String]) -> Result<Spec, SpecError> {
        let spec = Spec::parse_unchecked(text, file, settings)?;
        spec.check(file)?;
        Ok(spec)
    }

    /// Like [`Spec::parse_with`] without [`Spec::check`].
    pub fn parse_unchecked(text: &str, file: &str, settings: &[String]) -> Result<Spec, SpecError> {
        let syntax = |message: String| SpecError::Syntax { file: file.into(), message: message.trim_end().into() };
        // Without settings the text is parsed as it is, so that errors keep line and column.
        if settings.is_empty() {
            let mut spec: Spec = toml::from_str(text).map_err(|e| syntax(plain(&e.to_string())))?;
            let family = spec.family_in(file)?;
            spec.check_keys(family).map_err(|wrong| wrong.of(file))?;
            spec.own =
                family.complete_text(text, &spec).map_err(|e| syntax(plain(&e.to_string()) + &spec.other_family()))?;
            return spec.with_files(file);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(|e| syntax(e.to_string()))?;
        let was_good = Spec::of_table(&table, file).is_ok();
        for setting in settings {
            let wrong = |message: String| syntax(format!("--set {setting}: {message}"));
            apply_setting(&mut table, setting).map_err(wrong)?;
            if was_good {
                Spec::of_table(&table, file).map_err(|error| match error {
                    SpecError::Syntax { message, .. } => wrong(message),
                    SpecError::Value { key, message, .. } => wrong(format!("{key}: {message}")),
                    other => other,
                })?;
            }
        }
        Spec::of_table(&table, file)?.with_files(file)
    }

    /// The specification with the content of the files that it names, so that it stands alone.
    fn with_files(mut self, file: &str) -> Result<Spec, SpecError> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let inlined = self.arrivals.as_mut().map_or(Ok(()), |arrivals| arrivals.inline(folder));
        inlined.map_err(|wrong| wrong.of(file)).map(|()| self)
    }

    /// The specification of a parsed text, complete with the family's defaults.
    fn of_table(table: &toml::Table, file: &str) -> Result<Spec, SpecError> {
        let syntax = |e: toml::de::Error| SpecError::Syntax { file: file.into(), message: plain(&e.to_string()) };
        let mut spec: Spec = table.clone().try_into().map_err(syntax)?;
        let family = spec.family_in(file)?;
        spec.check_keys(family).map_err(|wrong| wrong.of(file))?;
        spec.own = family.complete(&spec).map_err(|e| SpecError::Syntax {
            file: file.into(),
            message: plain(&e.to_string()) + &spec.other_family(),
        })?;
        Ok(spec)
    }

    /// The family, by its name.
    fn family_in(&self, file: &str) -> Result<&'static dyn AnyWorkload, SpecError> {
        workload::family(&self.family).ok_or_else(|| {
            let known = workload::families().iter().map(|family| family.family()).collect::<Vec<_>>().join(", ");
            Wrong::new("family", format!("{:?} is unknown; use one of {known}", self.family)).of(file)
        })
    }

    /// A hint if the keys, which the family does not take, are those of another one.
    fn other_family(&self) -> String {
        let fits = |family: &&'static dyn AnyWorkload| {
            self.own.keys().all(|key| family.keys().contains(&key.as_str())) && family.complete(self).is_ok()
        };
        workload::families().into_iter().find(fits).map_or(String::new(), |other| {
            let (own, other) = (&self.family, other.family());
            format!("\nthe family is {own:?}, and the keys are those of {other:?}; set family = {other:?}")
        })
    }

    /// Refuses keys that the family does not have.
    fn check_keys(&self, family: &dyn AnyWorkload) -> Result<(), Wrong> {
        match self.own.keys().find(|key| !family.keys().contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let (name, own) = (family.family(), family.keys().join(", "));
                let common = "name, family, seed, sessions, sla, fragments, fragment_weights, think_time, \
                              inter_arrival_time, arrivals, mix";
                Err(Wrong::new(key, format!("unknown key; a workload of the family {name} has {common}, {own}")))
            }
        }
    }

    /// The family. A specification that was parsed or checked has one.
    pub fn family(&self) -> Result<&'static dyn AnyWorkload, SpecError> {
        self.family_in(&self.name)
    }

    /// What a run cannot check about the reads, in a sentence without a period; None if it checks them
    /// all.
    pub fn unchecked(&self) -> Option<String> {
        self.family().ok()?.unchecked(self)
    }

    /// The family's own part.
    pub fn workload<W: Workload>(&self) -> Result<W, SpecError> {
        if self.family != W::FAMILY {
            let message = format!("is {:?}, and {:?} is needed here", self.family, W::FAMILY);
            return Err(Wrong::new("family", message).of(&self.name));
        }
        let wrong = |e: toml::de::Error| SpecError::Syntax { file: self.name.clone(), message: plain(&e.to_string()) };
        self.own.clone().try_into().map_err(wrong)
    }

    /// The specification together with the family's own part.
    pub fn of<W: Workload>(&self) -> Result<SpecOf<W>, SpecError> {
        Ok(SpecOf { common: self.clone(), own: self.workload()? })
    }

    /// The specification as the text of a file, with every default written out.
    ///
    /// Fails for values that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, SpecError> {
        toml::to_string(self).map_err(|e| SpecError::Syntax { file: self.name.clone(), message: e.to_string() })
    }

    /// Refuses values from which no trace set can be generated.
    pub fn check(&self, file: &str) -> Result<(), SpecError> {
        let family = self.family_in(file)?;
        self.check_common().and_then(|()| family.check(self)).map_err(|wrong| wrong.of(file))
    }

    /// Checks what every family has.
    fn check_common(&self) -> Result<(), Wrong> {
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
        self.arrivals.as_ref().map_or(Ok(()), |arrivals| arrivals.check(self))?;
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

#[cfg(test)]
mod tests;
