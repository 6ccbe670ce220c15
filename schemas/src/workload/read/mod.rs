//! Reads and checks a specification: what every family has, and the part of its own family.

mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::{AnyWorkload, Workload, families, family, written};
use crate::files::at;
use crate::spec::{Delay, Spec, SpecError, SpecOf, Wrong, default_fragments, default_seed};
use settings::{apply_setting, plain};

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
            family.provide(&mut spec).map_err(|wrong| wrong.of(file))?;
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
        family.provide(&mut spec).map_err(|wrong| wrong.of(file))?;
        Ok(spec)
    }

    /// The family, by its name.
    fn family_in(&self, file: &str) -> Result<&'static dyn AnyWorkload, SpecError> {
        family(&self.family).ok_or_else(|| {
            let known = families().iter().map(|family| family.family()).collect::<Vec<_>>().join(", ");
            Wrong::new("family", format!("{:?} is unknown; use one of {known}", self.family)).of(file)
        })
    }

    /// A hint if the keys, which the family does not take, are those of another one.
    fn other_family(&self) -> String {
        let fits = |family: &&'static dyn AnyWorkload| {
            self.own.keys().all(|key| family.keys().contains(&key.as_str())) && family.complete(self).is_ok()
        };
        families().into_iter().find(fits).map_or(String::new(), |other| {
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
        self.part()
    }

    /// Some of the family's own keys, for families that have them in common.
    pub(super) fn part<X: DeserializeOwned>(&self) -> Result<X, SpecError> {
        let wrong = |e: toml::de::Error| SpecError::Syntax { file: self.name.clone(), message: plain(&e.to_string()) };
        self.own.clone().try_into().map_err(wrong)
    }

    /// The specification together with the family's own part.
    pub fn of<W: Workload>(&self) -> Result<SpecOf<W>, SpecError> {
        Ok(SpecOf { common: self.clone(), own: self.workload()? })
    }

    /// Refuses values from which no trace set can be generated.
    pub fn check(&self, file: &str) -> Result<(), SpecError> {
        let family = self.family_in(file)?;
        self.check_common().and_then(|()| family.check(self)).map_err(|wrong| wrong.of(file))
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
        Spec { own: written(&self.own), ..self.common.clone() }
    }
}

#[cfg(test)]
mod tests;
