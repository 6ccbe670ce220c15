//! A store of any kind, for callers that do not care which: the list of all stores, what can be done
//! with one ([`AnyStore`]), and what it does with a trace set ([`Serving`]).
//!
//! The choice of a store and of a vocabulary is made here, once for each experiment. Everything
//! that runs below is compiled for one store and one vocabulary. A program can add a store of its own
//! with [`add`].

#[cfg(not(test))]
mod kinds;

use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::run::{FragmentPosition, ReplayReport};
use schemas::spec::{Spec, SpecError};
use schemas::vocabulary::Vocabulary;

use crate::experiment::{Control, Experiment, ExperimentError, Snapshot};
use crate::run;
use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{Blame, LoadProgress, Serves, Store, StoreError, block_on, check_workload, this_process};
#[cfg(not(test))]
use kinds::KINDS;

/// A kind of store.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The schemes of its URLs.
    pub schemes: &'static [&'static str],
    /// One of its URLs.
    pub example: &'static str,
    /// Opens a store with all vocabularies that it serves. Nothing is created or changed yet.
    pub open: fn(StoreUrl) -> Result<Box<dyn AnyStore>, StoreError>,
}

/// Unit tests have no table of stores: with it, all of them would be compiled a second time, which takes minutes. Tests that open
/// a store by its URL are in `tests/`.
#[cfg(test)]
const KINDS: [Kind; 0] = [];

/// The kinds of stores that a program has added.
static ADDED: RwLock<Vec<Kind>> = RwLock::new(Vec::new());

/// Adds a kind of store to those of Encore, for a program that has one of its own.
pub fn add(kind: Kind) {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(kind);
}

/// Every kind of store, with those that the program has added.
pub fn kinds() -> Vec<Kind> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    KINDS.iter().chain(added.iter()).copied().collect()
}

/// Opens the store of a URL. Nothing is created or changed yet.
pub fn open(url: &str) -> Result<Box<dyn AnyStore>, StoreError> {
    let url = StoreUrl::parse(url)?;
    match kinds().iter().find(|kind| kind.schemes.contains(&url.scheme())) {
        Some(kind) => (kind.open)(url),
        None => {
            let all = kinds().iter().map(|kind| kind.example).collect::<Vec<_>>().join(", ");
            let message = format!("unknown store {:?}; use one of {all}", url.scheme());
            Err(StoreError::usage(&url, message))
        }
    }
}

/// Whether experiments of a workload on this store can end with a closing read: the family has one or
/// conditions to check, and the store keeps something.
pub fn has_closing_read(store: &dyn AnyStore, spec: &Spec) -> Result<bool, SpecError> {
    let family = spec.family()?;
    Ok(store.keeps_state() && (family.closing(spec)?.is_some() || family.has_conditions(spec)?))
}

/// A name for the closing read of an experiment of this process, for its plan. No other closing read
/// has it.
pub fn closing_read_name(experiment: u32) -> String {
    format!("{}-{experiment}", this_process())
}

/// The kinds of stores that serve a vocabulary, as examples of URLs.
fn that_serve(vocabulary: &str) -> Vec<&'static str> {
    let serves = |kind: &Kind| {
        let opened = StoreUrl::parse(kind.example).and_then(kind.open);
        opened.is_ok_and(|store| store.vocabularies().contains(&vocabulary))
    };
    kinds().into_iter().filter(serves).map(|kind| kind.example).collect()
}

/// What a store does with a trace set. Methods block until they are done.
pub trait Serving: Send + Sync {
    /// [`Serves::load`]. Refuses to overwrite records that another tool has loaded ([`Serving::adopt`]). The first
    /// load of a trace set also checks its statements and the conditions of its data; later ones bring back the same state. Returns how
    /// many conditions were checked and hold.
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<u64, StoreError>;
    /// [`Serves::adopt`]. Returns how far each fragment has been replayed on the records.
    fn adopt(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError>;
    /// How far each fragment of the trace set has been replayed on the store, for an experiment that
    /// continues there. Refuses a store that is not loaded with the trace set, or in an unknown state.
    fn positions(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError>;
    /// [`Serves::digest`], of a store that holds the trace set's workload.
    fn digest(&self, source: &Source) -> Result<StateDigest, StoreError>;
    /// Refuses a store that does not hold the state that the experiment starts from.
    fn check(&self, experiment: &Experiment) -> Result<(), StoreError>;
    /// Runs an experiment, after [`Serving::check`]; `progress` is called several times a second.
    fn run(
        &self,
        experiment: &Experiment,
        control: &Control,
        progress: &mut dyn FnMut(Snapshot),
    ) -> Result<ReplayReport, ExperimentError>;
    /// Reads every item of the experiment's fragments after [`Serving::run`], if its plan has a
    /// closing read, checks the conditions of the data, and writes what it saw beside the logs. `positions` are those after the
    /// experiment. `progress` is called several times a second with the items so far and those of the
    /// data set. Returns false if nothing was read, for example because `stop` was set.
    fn closing_read(
        &self,
        experiment: &Experiment,
        positions: &[FragmentPosition],
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<bool, ExperimentError>;
}

/// A store of any kind. What it does with a trace set ([`Serving`]), it does in the vocabulary of that trace
/// set, and refuses what [`AnyStore::accepts`] refuses.
pub trait AnyStore: Serving {
    /// The names of the vocabularies that it serves.
    fn vocabularies(&self) -> Vec<&'static str>;
    /// [`Store::in_process`].
    fn in_process(&self) -> bool;
    /// [`Store::file`].
    fn file(&self) -> Option<&Path>;
    /// Refuses a workload whose vocabulary the store does not serve, or that asks for what the store does
    /// not have ([`Serves::accepts`]). `file` holds the specification, for the error.
    fn accepts(&self, spec: &Spec, file: &Path) -> Result<(), StoreError>;
    /// The isolation that the store promises to the transactions of a workload ([`Serves::transactions`]); None
    /// if it has none.
    fn transactions(&self, spec: &Spec) -> Option<Isolation>;
    /// Checks that the server answers; a store without a server always does.
    fn reach(&self) -> Result<(), StoreError>;
    /// Whether another tool has loaded the store's records ([`Serving::adopt`]), so that [`Serving::load`]
    /// refuses.
    fn is_adopted(&self) -> Result<bool, StoreError>;
    /// Whether the store keeps anything, so that reading it after an experiment says something.
    fn keeps_state(&self) -> bool;
    /// Records in the store where it stands after an experiment that this replayer led, and how
    /// many writes of the experiment did not succeed.
    fn settle(&self, experiment: u32, positions: &[FragmentPosition], writes_not_ok: u64) -> Result<(), StoreError>;
}

/// An opened store, with the vocabularies that it serves.
pub struct Opened<S> {
    store: Arc<S>,
    spoken: Vec<Spoken<S>>,
}

/// A vocabulary that a store serves.
struct Spoken<S> {
    name: &'static str,
    /// [`Serves::accepts`].
    accepts: fn(&S, &Spec, &Path) -> Result<(), StoreError>,
    /// [`Serves::transactions`].
    transactions: fn(&S) -> Option<Isolation>,
    serving: Box<dyn Serving>,
}

impl<S: Store> Opened<S> {
    /// A store, with no vocabulary yet.
    pub fn new(store: S) -> Opened<S> {
        Opened { store: Arc::new(store), spoken: Vec::new() }
    }

    /// The store, with one vocabulary more.
    pub fn serving<V: Vocabulary>(mut self) -> Opened<S>
    where
        S: Serves<V>,
    {
        let serving =
            Box::new(With::<V, S> { store: self.store.clone(), vocabulary: PhantomData, checked: Mutex::default() });
        let (accepts, transactions) = (<S as Serves<V>>::accepts, <S as Serves<V>>::transactions);
        self.spoken.push(Spoken { name: V::NAME, accepts, transactions, serving });
        self
    }

    /// The store, as one of any kind.
    pub fn boxed(self) -> Box<dyn AnyStore> {
        Box::new(self)
    }

    /// The store itself.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store with the vocabulary of a trace set.
    fn on(&self, source: &Source) -> Result<&dyn Serving, StoreError> {
        self.accepting(&source.manifest.spec, &source.folder)
    }

    /// The store with the vocabulary of a workload that it accepts.
    fn accepting(&self, spec: &Spec, file: &Path) -> Result<&dyn Serving, StoreError> {
        let family = spec.family().map_err(|error| StoreError::usage(self.store.url(), error))?;
        let wanted = family.vocabulary();
        let Some(spoken) = self.spoken.iter().find(|spoken| spoken.name == wanted) else {
            let message = format!(
                "has no operations of {wanted}, which {} asks for (family = {:?}); use one of {}",
                file.display(),
                family.family(),
                that_serve(wanted).join(", ")
            );
            return Err(StoreError::usage(self.store.url(), message));
        };
        (spoken.accepts)(&self.store, spec, file)?;
        Ok(&*spoken.serving)
    }
}

impl<S: Store> AnyStore for Opened<S> {
    fn vocabularies(&self) -> Vec<&'static str> {
        self.spoken.iter().map(|spoken| spoken.name).collect()
    }

    fn in_process(&self) -> bool {
        self.store.in_process()
    }

    fn file(&self) -> Option<&Path> {
        self.store.file()
    }

    fn accepts(&self, spec: &Spec, file: &Path) -> Result<(), StoreError> {
        self.accepting(spec, file).map(drop)
    }

    fn transactions(&self, spec: &Spec) -> Option<Isolation> {
        let wanted = spec.family().ok()?.vocabulary();
        let spoken = self.spoken.iter().find(|spoken| spoken.name == wanted)?;
        (spoken.transactions)(&self.store)
    }

    fn reach(&self) -> Result<(), StoreError> {
        if self.store.in_process() || self.store.file().is_some() {
            return Ok(());
        }
        match block_on(self.store.url(), self.store.held()) {
            // A database that is missing or not loaded is no hindrance: a load mends that.
            Err(error) if error.blame == Blame::Store => Err(error),
            _ => Ok(()),
        }
    }

    fn is_adopted(&self) -> Result<bool, StoreError> {
        is_adopted(&*self.store)
    }

    fn keeps_state(&self) -> bool {
        self.store.keeps_state()
    }

    fn settle(&self, experiment: u32, positions: &[FragmentPosition], writes_not_ok: u64) -> Result<(), StoreError> {
        run::settle(&*self.store, experiment, positions, writes_not_ok)
    }
}

/// [`AnyStore::is_adopted`].
fn is_adopted(store: &impl Store) -> Result<bool, StoreError> {
    match block_on(store.url(), store.held()) {
        Ok(held) => Ok(held.is_some_and(|held| held.adopted)),
        Err(error) if error.blame == Blame::Store => Err(error),
        // A load refuses by itself what Encore has not marked.
        Err(_) => Ok(false),
    }
}

/// Each call goes on in the vocabulary of its trace set.
impl<S: Store> Serving for Opened<S> {
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<u64, StoreError> {
        self.on(source)?.load(source, progress)
    }

    fn adopt(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
        self.on(source)?.adopt(source)
    }

    fn positions(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
        self.on(source)?.positions(source)
    }

    fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        self.on(source)?.digest(source)
    }

    fn check(&self, experiment: &Experiment) -> Result<(), StoreError> {
        self.on(experiment.source())?.check(experiment)
    }

    fn run(
        &self,
        experiment: &Experiment,
        control: &Control,
        progress: &mut dyn FnMut(Snapshot),
    ) -> Result<ReplayReport, ExperimentError> {
        self.on(experiment.source())?.run(experiment, control, progress)
    }

    fn closing_read(
        &self,
        experiment: &Experiment,
        positions: &[FragmentPosition],
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<bool, ExperimentError> {
        self.on(experiment.source())?.closing_read(experiment, positions, stop, progress)
    }
}

/// A store in one of its vocabularies.
struct With<V, S> {
    store: Arc<S>,
    vocabulary: PhantomData<V>,
    /// The trace set whose statements and conditions were checked after a load.
    checked: Mutex<Option<String>>,
}

impl<V: Vocabulary, S: Serves<V>> Serving for With<V, S> {
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<u64, StoreError> {
        if is_adopted(&*self.store)? {
            let message = "contains records that another tool has loaded and --keep-data has kept, so Encore does not \
                           overwrite them; remove them yourself, with Encore's marker (the table or collection \
                           encore_state, or the key encore:held or encore-held), or choose another database";
            return Err(StoreError::usage(self.store.url(), message));
        }
        block_on(self.store.url(), self.store.load(source, progress))?;
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.store.keeps_state() || checked.as_ref() == Some(&source.manifest.trace_id) {
            return Ok(0);
        }
        let conditions = block_on(self.store.url(), async {
            self.store.check_statements(source).await?;
            match source.has_conditions() {
                true => run::check_conditions_of_load::<V, S>(&self.store, source).await,
                false => Ok(0),
            }
        })?;
        *checked = Some(source.manifest.trace_id.clone());
        Ok(conditions)
    }

    fn adopt(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
        if self.store.in_process() || !self.store.keeps_state() {
            let message = "keeps no data of another tool; remove --keep-data";
            return Err(StoreError::usage(self.store.url(), message));
        }
        block_on(self.store.url(), async {
            self.store.adopt(source).await?;
            run::positions::<V, S>(&*self.store, source).await
        })
    }

    fn positions(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
        block_on(self.store.url(), run::positions::<V, S>(&*self.store, source))
    }

    fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let url = self.store.url();
        block_on(url, async {
            // Only a store that keeps something has a digest; the others return an error.
            if self.store.keeps_state() {
                let held = check_workload(url, self.store.held().await?, source)?;
                self.store.check_design(&held)?;
            }
            self.store.digest(source).await
        })
    }

    fn check(&self, experiment: &Experiment) -> Result<(), StoreError> {
        block_on(self.store.url(), async {
            run::check_state(&*self.store, experiment).await?;
            if self.store.keeps_state() {
                self.store.check_statements(experiment.source()).await?;
            }
            run::prepare_cache(&*self.store).await
        })
    }

    fn run(
        &self,
        experiment: &Experiment,
        control: &Control,
        progress: &mut dyn FnMut(Snapshot),
    ) -> Result<ReplayReport, ExperimentError> {
        run::run(&*self.store, experiment, control, progress)
    }

    fn closing_read(
        &self,
        experiment: &Experiment,
        positions: &[FragmentPosition],
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<bool, ExperimentError> {
        run::closing_read(&*self.store, experiment, positions, stop, progress)
    }
}
