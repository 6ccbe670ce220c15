//! Families of workloads: what a specification says besides what every specification has
//! ([`crate::spec`]), and how both are read.
//!
//! A family is one file or folder here, and one line in the list. A program can add families of its
//! own with [`add`].

pub mod consbench;
pub mod economy;
mod goals;
pub mod kv;
mod read;
mod shares;
pub mod social;
pub mod sql;
pub mod tpcc;

use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spec::{Spec, SpecError, SpecOf, Wrong};
use crate::table::TableError;
use crate::trace::{NoRules, Rules};
use crate::vocabulary::Vocabulary;
pub use goals::{KindGoal, SessionGoals};
pub use shares::Shares;

/// What the actors of a family are called in sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorWords {
    /// Several of them, such as `members`.
    pub plural: &'static str,
    /// The keys of a specification that let more of them act at the same time, such as `data.members`.
    pub keys: &'static [&'static str],
}

impl ActorWords {
    /// What to do so that a trace keeps more threads busy: `raise this key or that`.
    pub fn remedy(&self) -> String {
        format!("raise {}", self.keys.join(" or "))
    }
}

/// The part of a specification that only one family has.
pub trait Workload: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The family's name.
    const FAMILY: &'static str;

    /// Its keys in a specification.
    const KEYS: &'static [&'static str];

    /// What its actors are called.
    const ACTORS: ActorWords;

    /// Its operations.
    type Vocabulary: Vocabulary;

    /// What the manifest of a trace set says of its data set and its draws.
    type Statistics: Debug + Serialize + DeserializeOwned;

    /// Refuses values from which no trace set can be generated. What every family has is checked.
    fn check(spec: &SpecOf<Self>) -> Result<(), Wrong>;

    /// What is expected of the operations of a fragment, so that a trace set from elsewhere is
    /// refused before its rows reach a store. Fails if the statistics contradict the specification.
    fn rules(
        _spec: &SpecOf<Self>,
        _statistics: &Self::Statistics,
        _fragment: u32,
    ) -> Result<Box<dyn Rules<Self::Vocabulary>>, String> {
        Ok(Box::new(NoRules))
    }

    /// Fills in what a specification leaves out because it follows from other keys. It gets all keys
    /// as the files and the settings have them.
    fn resolve(&mut self, _common: &Spec) {}

    /// Fills in what every specification has, where it follows from the family's own keys, after
    /// [`Workload::resolve`]. A specification that was read and is written out has to be read the same.
    fn provide(&mut self, _common: &mut Spec) -> Result<(), Wrong> {
        Ok(())
    }

    /// How many actors there are. A session runs on behalf of one of them.
    fn actors(&self) -> u64;

    /// The size of the data set in a few words, such as `10,000 members`.
    fn size(&self) -> String;

    /// What a run cannot check about the reads, in a sentence without a period; None if it checks
    /// them all.
    fn unchecked(_spec: &SpecOf<Self>) -> Option<String> {
        None
    }

    /// What a store needs to know of statements and schema; None if the vocabulary is not SQL.
    fn sql(&self) -> Option<sql::SqlSet> {
        None
    }

    /// What is read after an experiment. None if the family has no closing read, because its trace
    /// sets alone say what they leave.
    fn closing(_spec: &SpecOf<Self>) -> Option<Closing> {
        None
    }

    /// Whether a trace set has conditions that its data keep ([`sql::checks`]). They are checked after a load, and
    /// with the closing read after an experiment.
    fn has_conditions(_spec: &SpecOf<Self>) -> bool {
        false
    }

    /// How many of the first sessions of a trace set are its warm-up. A replay leaves them out of its figures, unless it
    /// is told otherwise.
    fn warmup_sessions(_spec: &SpecOf<Self>) -> u64 {
        0
    }

    /// What the benchmark asks of its kinds of sessions, and the figure that it is known by. Its vocabulary has
    /// [figures of sessions](Vocabulary::HAS_SESSION_FIGURES).
    fn session_goals(_spec: &SpecOf<Self>) -> SessionGoals {
        SessionGoals::default()
    }
}

/// The closing read of a family: after an experiment, every item is read through the store's
/// adapter, with [`Vocabulary::read_whole`]. Where writes race, only this tells which of the possible
/// states they have left.
#[derive(Clone, Copy)]
pub struct Closing {
    /// The parts of an item: a bit each.
    pub parts: u64,
    /// The items of a fragment's data set. The folder is that of the trace set.
    pub items: fn(&Path, u32) -> Result<ItemChunks, TableError>,
    /// Whether sessions add items to these ([`Operation::adds`](crate::vocabulary::Operation::adds)).
    pub grows: bool,
}

/// Numbers of items, some thousands at a time.
pub type ItemChunks = Box<dyn Iterator<Item = Result<Vec<u64>, TableError>>>;

/// A family of any kind.
pub trait AnyWorkload: Send + Sync {
    /// [`Workload::FAMILY`].
    fn family(&self) -> &'static str;
    /// [`Workload::KEYS`].
    fn keys(&self) -> &'static [&'static str];
    /// [`Workload::ACTORS`].
    fn actor_words(&self) -> ActorWords;
    /// The name of its vocabulary.
    fn vocabulary(&self) -> &'static str;
    /// The family's own keys in the text of a specification, complete with defaults and resolved
    /// ([`Workload::resolve`]). `common` has what every family has. Errors have line and column.
    fn complete_text(&self, text: &str, common: &Spec) -> Result<toml::Table, toml::de::Error>;
    /// The same for keys that were parsed before, which `common` holds.
    fn complete(&self, common: &Spec) -> Result<toml::Table, toml::de::Error>;
    /// [`Workload::provide`], for a specification whose own keys are complete.
    fn provide(&self, spec: &mut Spec) -> Result<(), Wrong>;
    /// [`Workload::check`].
    fn check(&self, spec: &Spec) -> Result<(), Wrong>;
    /// [`Workload::rules`]: a `Box<dyn Rules<V>>` for the family's vocabulary, whose type a family of
    /// any kind cannot name.
    fn rules(
        &self,
        spec: &Spec,
        statistics: &serde_json::Map<String, serde_json::Value>,
        fragment: u32,
    ) -> Result<Box<dyn Any>, String>;
    /// [`Workload::actors`].
    fn actors(&self, spec: &Spec) -> Result<u64, SpecError>;
    /// [`Workload::size`].
    fn size(&self, spec: &Spec) -> Result<String, SpecError>;
    /// [`Workload::unchecked`].
    fn unchecked(&self, spec: &Spec) -> Option<String>;
    /// [`Workload::sql`].
    fn sql(&self, spec: &Spec) -> Result<Option<sql::SqlSet>, SpecError>;
    /// [`Workload::closing`].
    fn closing(&self, spec: &Spec) -> Result<Option<Closing>, SpecError>;
    /// [`Workload::has_conditions`].
    fn has_conditions(&self, spec: &Spec) -> Result<bool, SpecError>;
    /// [`Workload::warmup_sessions`].
    fn warmup_sessions(&self, spec: &Spec) -> Result<u64, SpecError>;
    /// [`Workload::session_goals`].
    fn session_goals(&self, spec: &Spec) -> Result<SessionGoals, SpecError>;
    /// Refuses statistics of a manifest that are not [`Workload::Statistics`].
    fn check_statistics(
        &self,
        statistics: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), serde_json::Error>;
}

/// A family as one of any kind.
struct Of<W>(PhantomData<W>);

impl<W: Workload> AnyWorkload for Of<W> {
    fn family(&self) -> &'static str {
        W::FAMILY
    }

    fn keys(&self) -> &'static [&'static str] {
        W::KEYS
    }

    fn actor_words(&self) -> ActorWords {
        W::ACTORS
    }

    fn vocabulary(&self) -> &'static str {
        W::Vocabulary::NAME
    }

    fn complete_text(&self, text: &str, common: &Spec) -> Result<toml::Table, toml::de::Error> {
        toml::from_str::<W>(text).map(|own| resolved(own, common))
    }

    fn complete(&self, common: &Spec) -> Result<toml::Table, toml::de::Error> {
        common.own.clone().try_into::<W>().map(|own| resolved(own, common))
    }

    fn provide(&self, spec: &mut Spec) -> Result<(), Wrong> {
        let mut own: W = spec.workload().map_err(|error| Wrong::new("family", error.to_string()))?;
        own.provide(spec)?;
        spec.own = written(&own);
        Ok(())
    }

    fn check(&self, spec: &Spec) -> Result<(), Wrong> {
        // Only a document that was edited can fail here.
        let spec = spec.of::<W>().map_err(|error| Wrong::new("family", error.to_string()))?;
        W::check(&spec)
    }

    fn rules(
        &self,
        spec: &Spec,
        statistics: &serde_json::Map<String, serde_json::Value>,
        fragment: u32,
    ) -> Result<Box<dyn Any>, String> {
        let spec = spec.of::<W>().map_err(|e| e.to_string())?;
        let statistics = W::Statistics::deserialize(statistics).map_err(|e| format!("statistics: {e}"))?;
        Ok(Box::new(W::rules(&spec, &statistics, fragment)?))
    }

    fn actors(&self, spec: &Spec) -> Result<u64, SpecError> {
        spec.workload::<W>().map(|own| own.actors())
    }

    fn size(&self, spec: &Spec) -> Result<String, SpecError> {
        spec.workload::<W>().map(|own| own.size())
    }

    fn unchecked(&self, spec: &Spec) -> Option<String> {
        W::unchecked(&spec.of::<W>().ok()?)
    }

    fn sql(&self, spec: &Spec) -> Result<Option<sql::SqlSet>, SpecError> {
        spec.workload::<W>().map(|own| own.sql())
    }

    fn closing(&self, spec: &Spec) -> Result<Option<Closing>, SpecError> {
        spec.of::<W>().map(|spec| W::closing(&spec))
    }

    fn has_conditions(&self, spec: &Spec) -> Result<bool, SpecError> {
        spec.of::<W>().map(|spec| W::has_conditions(&spec))
    }

    fn warmup_sessions(&self, spec: &Spec) -> Result<u64, SpecError> {
        spec.of::<W>().map(|spec| W::warmup_sessions(&spec))
    }

    fn session_goals(&self, spec: &Spec) -> Result<SessionGoals, SpecError> {
        spec.of::<W>().map(|spec| W::session_goals(&spec))
    }

    fn check_statistics(
        &self,
        statistics: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), serde_json::Error> {
        W::Statistics::deserialize(statistics).map(drop)
    }
}

/// The keys of a family, with every default and everything that follows from other keys.
fn resolved<W: Workload>(mut own: W, common: &Spec) -> toml::Table {
    own.resolve(common);
    written(&own)
}

/// The keys of a family, with every default.
fn written<W: Workload>(own: &W) -> toml::Table {
    toml::Table::try_from(own).unwrap_or_else(|e| unreachable!("a workload is plain data: {e}"))
}

/// The families of Encore.
static FAMILIES: [&dyn AnyWorkload; 6] = [
    &Of::<social::SocialWorkload>(PhantomData),
    &Of::<kv::KvWorkload>(PhantomData),
    &Of::<economy::EconomyWorkload>(PhantomData),
    &Of::<consbench::ConsbenchWorkload>(PhantomData),
    &Of::<sql::SqlWorkload>(PhantomData),
    &Of::<tpcc::TpccWorkload>(PhantomData),
];

/// The families that a program has added.
static ADDED: RwLock<Vec<&'static dyn AnyWorkload>> = RwLock::new(Vec::new());

/// Adds a family to those of Encore, for a program that has one of its own. Call it before anything
/// reads a specification.
pub fn add<W: Workload>() {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(&Of::<W>(PhantomData));
}

/// Every family.
pub fn families() -> Vec<&'static dyn AnyWorkload> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    FAMILIES.iter().chain(added.iter()).copied().collect()
}

/// The family with this name; None if there is none.
pub fn family(name: &str) -> Option<&'static dyn AnyWorkload> {
    families().into_iter().find(|family| family.family() == name)
}

#[cfg(test)]
mod tests {
    use super::social::SocialWorkload;
    use super::*;
    use crate::spec::DEFAULT_FAMILY;

    #[test]
    fn the_family_of_a_specification_that_names_none_exists() {
        assert!(family(DEFAULT_FAMILY).is_some());
    }

    /// A key that is not in the list would be refused as unknown.
    #[test]
    fn the_keys_of_a_family_are_those_of_its_part() {
        let text = "[data]\nmembers = 9\n[session.browse]\nsteps = [\"view_profile\"]\n";
        let own: SocialWorkload = toml::from_str(text).unwrap();
        let mut keys: Vec<String> = written(&own).keys().cloned().collect();
        keys.sort();
        let mut expect = SocialWorkload::KEYS.to_vec();
        expect.sort();
        assert_eq!(keys, expect);
    }
}
