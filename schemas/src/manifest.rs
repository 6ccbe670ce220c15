//! `manifest.json`: what a trace set contains, its specification, and the BLAKE3 sum of every
//! file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use crate::files::FileEntry;
use crate::files::{self, FileError};
use crate::spec::{Spec, SpecError};
use crate::table::TableError;
use crate::trace::{DueTimes, Expected, OperationsReader, Rules};
use crate::vocabulary::Vocabulary;
pub use crate::workload::Shares;
use crate::workload::Workload;

/// The name of the manifest in a trace set's folder.
pub const FILE_NAME: &str = "manifest.json";

/// Why a trace set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceSetError {
    /// The folder has no readable manifest.
    #[error("{0}; is this a trace set? Create one with `encore trace gen`")]
    Manifest(#[source] FileError),
    /// Written by another version of the format.
    #[error(
        "{}: trace format version {found}, this Encore reads version {expected}; generate the trace set again from its \
         specification, or use the version of Encore that wrote it",
        path.display()
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// The version it names.
        found: u64,
        /// The version this program reads.
        expected: u32,
    },
    /// A file is missing.
    #[error("{}: missing from the trace set; copy it again from its source", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file is not what the manifest says.
    #[error(
        "{}: {what} is {found}, the manifest has {expected}; copy the trace set again from its source",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Size or BLAKE3 sum.
        what: &'static str,
        /// The value found.
        found: String,
        /// The value in the manifest.
        expected: String,
    },
    /// The manifest's content does not match its ids.
    #[error("{}: {message}; copy the trace set again from its source", path.display())]
    Edited {
        /// The manifest.
        path: PathBuf,
        /// What does not match.
        message: String,
    },
    /// The specification is wrong, or of a family that this version does not know.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The manifest of a trace set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`crate::TRACE_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The version of `tracegen` that wrote it, for information.
    pub generator_version: String,
    /// [`Spec::workload_id`].
    pub workload_id: String,
    /// [`Manifest::id`].
    pub trace_id: String,
    /// The specification, complete with defaults.
    pub spec: Spec,
    /// Each fragment's share.
    pub fragments: Vec<FragmentCounts>,
    /// Share of each kind of session as the spec asks for, adding up to 1.
    pub requested_mix: BTreeMap<String, f64>,
    /// Share of each kind of session among the sessions.
    pub achieved_mix: BTreeMap<String, f64>,
    /// Operations by name, in the vocabulary's order.
    pub operations_by_name: IndexMap<String, u64>,
    /// BG's no-operations by kind: how often a kind was drawn and none of it could be done. The
    /// generator then drew another kind for the same actor, or another actor when there was no
    /// other kind.
    pub noops: BTreeMap<String, u64>,
    /// How many sessions of each kind ended before their last step.
    pub ended_early: BTreeMap<String, u64>,
    /// How many threads the trace can keep busy in steady state, when an actor acts in one session
    /// at a time.
    pub active_threads_max: u64,
    /// The family's statistics of the data set and the trace ([`Workload::Statistics`]).
    pub statistics: serde_json::Map<String, serde_json::Value>,
    /// Every file but the manifest, sorted by path.
    pub files: Vec<FileEntry>,
}

/// What one fragment holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FragmentCounts {
    /// Its number.
    pub fragment: u32,
    /// Share of the sessions that it gets.
    pub weight: f64,
    /// Actors.
    pub actors: u64,
    /// Sessions.
    pub sessions: u64,
    /// Operations.
    pub operations: u64,
}

/// Statistics as a manifest holds them.
pub fn plain(statistics: &impl Serialize) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(statistics) {
        Ok(serde_json::Value::Object(statistics)) => statistics,
        other => unreachable!("statistics are plain data with names: {other:?}"),
    }
}

impl FileEntry {
    /// Whether work on this fragment may need the file: it is of this fragment, or of the whole trace set.
    pub fn is_for(&self, fragment: u32) -> bool {
        let mut named = self.path.split('/').filter_map(|part| part.strip_prefix("fragment="));
        named.all(|number| number.parse() == Ok(fragment))
    }

    /// Checks the size of this file of a trace set in `folder`; None if it is not there.
    pub fn check_size(&self, folder: &Path, found: Option<u64>) -> Result<(), TraceSetError> {
        let path = folder.join(&self.path);
        match found {
            None => Err(TraceSetError::Missing { path }),
            Some(found) if found != self.bytes => {
                let (found, expected) = (found.to_string(), self.bytes.to_string());
                Err(TraceSetError::Changed { path, what: "size", found, expected })
            }
            Some(_) => Ok(()),
        }
    }
}

impl Manifest {
    /// The manifest with its id.
    pub fn identified(self) -> Manifest {
        Manifest { trace_id: self.id(), ..self }
    }

    /// The id of the trace set: BLAKE3 over the manifest without the id itself and the version of
    /// the generator. It covers the sums of the files, the specification (which decides the
    /// payloads) and the statistics (which a verdict uses). Two trace sets with one id are the
    /// same work.
    pub fn id(&self) -> String {
        let named = Manifest { trace_id: String::new(), generator_version: String::new(), ..self.clone() };
        let text = serde_json::to_string(&named).unwrap_or_else(|e| unreachable!("a manifest is plain data: {e}"));
        blake3::hash(text.as_bytes()).to_hex()[..32].to_string()
    }

    /// Checks that both ids match the manifest's content; the error names the one that does not.
    pub fn check_ids(&self) -> Result<(), String> {
        let (found, expected) = (self.spec.workload_id(), &self.workload_id);
        if found != *expected {
            return Err(format!("workload_id is {expected}, but the manifest's specification gives {found}"));
        }
        let (found, expected) = (self.id(), &self.trace_id);
        if found != *expected {
            return Err(format!("trace_id is {expected}, but the manifest's content gives {found}"));
        }
        Ok(())
    }

    /// Reads the manifest of a trace set. Checks that its content matches its ids, and that every
    /// file exists with its size. [`verify`](Manifest::verify) checks the sums of the files too.
    pub fn read(folder: &Path) -> Result<Manifest, TraceSetError> {
        let manifest = Manifest::read_alone(folder)?;
        manifest.check_files(folder)?;
        Ok(manifest)
    }

    /// The same without a look at the other files, of which only some may be here.
    pub fn read_alone(folder: &Path) -> Result<Manifest, TraceSetError> {
        let path = folder.join(FILE_NAME);
        let value: serde_json::Value = files::read_json(&path).map_err(TraceSetError::Manifest)?;
        let found = value["format_version"].as_u64().unwrap_or(0);
        let expected = crate::TRACE_FORMAT_VERSION;
        if found != expected as u64 {
            return Err(TraceSetError::Version { path, found, expected });
        }
        // Read again, because a JSON value does not keep the order of its keys.
        let manifest: Manifest = files::read_json(&path).map_err(TraceSetError::Manifest)?;
        manifest.check_ids().map_err(|message| TraceSetError::Edited { path: path.clone(), message })?;
        manifest.spec.check(&path.display().to_string())?;
        let fits = manifest.spec.family()?.check_statistics(&manifest.statistics);
        fits.map_err(|e| TraceSetError::Edited { path: path.clone(), message: format!("statistics: {e}") })?;
        Ok(manifest)
    }

    /// Checks that every file exists with its size.
    pub fn check_files(&self, folder: &Path) -> Result<(), TraceSetError> {
        self.check_some_files(folder, |_| true)
    }

    /// Checks that each of the wanted files exists with its size.
    pub fn check_some_files(&self, folder: &Path, wanted: impl Fn(&FileEntry) -> bool) -> Result<(), TraceSetError> {
        let size = |entry: &FileEntry| Some(std::fs::metadata(folder.join(&entry.path)).ok()?.len());
        self.files.iter().filter(|entry| wanted(entry)).try_for_each(|entry| entry.check_size(folder, size(entry)))
    }

    /// Checks the sum of every file.
    pub fn verify(&self, folder: &Path) -> Result<(), TraceSetError> {
        for entry in &self.files {
            let path = folder.join(&entry.path);
            let found = files::blake3_of(&path)?;
            if found != entry.blake3 {
                return Err(TraceSetError::Changed { path, what: "BLAKE3 sum", found, expected: entry.blake3.clone() });
            }
        }
        Ok(())
    }

    /// The statistics of a trace set of this family.
    pub fn statistics_of<W: Workload>(&self) -> Result<W::Statistics, serde_json::Error> {
        W::Statistics::deserialize(&self.statistics)
    }

    /// Sessions over all fragments.
    pub fn sessions(&self) -> u64 {
        self.fragments.iter().map(|f| f.sessions).sum()
    }

    /// Operations over all fragments.
    pub fn operations(&self) -> u64 {
        self.fragments.iter().map(|f| f.operations).sum()
    }

    /// How many transactions there are.
    pub fn transactions(&self) -> u64 {
        self.operations_by_name.get("begin").copied().unwrap_or(0)
    }

    /// The weights of the fragments, in their order.
    pub fn weights(&self) -> Vec<f64> {
        self.fragments.iter().map(|f| f.weight).collect()
    }

    /// Reads the operations of a fragment, `batch_rows` rows at a time, and refuses rows that do not
    /// fit the specification.
    pub fn reader<V: Vocabulary>(
        &self,
        folder: &Path,
        fragment: u32,
        batch_rows: usize,
    ) -> Result<OperationsReader<V>, TableError> {
        let wrong = |message: String| TableError::new(&folder.join(FILE_NAME), message);
        let family = self.spec.family().map_err(|e| wrong(e.to_string()))?;
        let actors = family.actors(&self.spec).map_err(|e| wrong(e.to_string()))?;
        let rules = family.rules(&self.spec, &self.statistics, fragment).map_err(wrong)?;
        let rules = rules.downcast::<Box<dyn Rules<V>>>();
        let rules =
            rules.map_err(|_| wrong(format!("has operations of {}, not of {}", family.vocabulary(), V::NAME)))?;
        let due_times = if self.spec.arrivals.is_some() { DueTimes::All } else { DueTimes::None };
        let files = self.operation_files(folder, fragment);
        Ok(OperationsReader::new(fragment, files, batch_rows).checked(Expected { actors, due_times }, *rules))
    }

    /// The operation files of a fragment, in order.
    pub fn operation_files(&self, folder: &Path, fragment: u32) -> Vec<PathBuf> {
        let prefix = format!("operations/fragment={fragment}/");
        self.files.iter().filter(|f| f.path.starts_with(&prefix)).map(|f| folder.join(&f.path)).collect()
    }
}
