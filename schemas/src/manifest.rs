//! `manifest.json`: what a trace set is, where it came from, and the BLAKE3 sum
//! of every file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};
use crate::social::Action;
use crate::spec::Spec;

/// The name of the manifest in a trace set's folder.
pub const FILE_NAME: &str = "manifest.json";

/// A trace set that cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum TraceSetError {
    /// The folder has no readable manifest.
    #[error("{0}; is this a trace set? `tracegen gen` makes one")]
    Manifest(#[source] FileError),
    /// Written by another version of the format.
    #[error("{}: trace format version {found}, this Encore reads version {expected}; generate it again from its spec with this `tracegen`, or use the Encore that wrote it", path.display())]
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
    #[error("{}: {what} differs from the manifest ({found}, should be {expected}); copy the trace set again from its source", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Size or BLAKE3 sum.
        what: &'static str,
        /// As found.
        found: String,
        /// As the manifest says.
        expected: String,
    },
    /// The manifest is not the one that its id names.
    #[error("{}: {message}; copy the trace set again from its source", path.display())]
    Edited {
        /// The manifest.
        path: PathBuf,
        /// What does not fit.
        message: String,
    },
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
    /// Operations by action.
    pub operations_by_action: BTreeMap<Action, u64>,
    /// BG's no-operations by kind: how often it was drawn and nothing of it
    /// could be done, so that another kind was drawn for the same socialite, or
    /// another socialite when there was no other kind.
    pub noops: BTreeMap<String, u64>,
    /// How many sessions of each kind ended before their last step.
    pub ended_early: BTreeMap<String, u64>,
    /// What the data set and the trace look like.
    pub statistics: Statistics,
    /// Every file but the manifest, sorted by path.
    pub files: Vec<FileEntry>,
}

/// What a data set and a trace look like, over all fragments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Confirmed friends of the members before the first session.
    pub friends: Histogram,
    /// Invitations that wait for the members before the first session.
    pub pending: Histogram,
    /// Resources on the members' walls.
    pub wall_resources: Histogram,
    /// Who acts.
    pub socialites: SocialiteStatistics,
    /// Who is drawn to be acted upon: members, strangers, owners of resources.
    pub targets: TargetStatistics,
    /// Share of all confirmed friendships (each counted for both sides) that
    /// the fifth of the members with the most friends has; 0 to 1.
    pub friends_of_top_fifth: f64,
}

/// How often which socialites act.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocialiteStatistics {
    /// `access.unique_window` of the specification, in sessions of the whole trace.
    pub unique_window_asked: u64,
    /// The window in effect, in sessions of the whole trace: the asked one, or
    /// less where half of a fragment's members are fewer than its share of it.
    /// No socialite acts twice within so many consecutive sessions of the
    /// global order; with several fragments, which round for themselves, within
    /// as many sessions less as there are fragments besides hers.
    pub unique_window: u64,
    /// Share of the sessions of the socialite who acts most often.
    pub most_active: Shares,
    /// Share of the sessions of the fifth of the members who rank highest in
    /// the access distribution.
    pub top_fifth: Shares,
    /// How many threads the trace can keep busy in steady state, when a member
    /// acts in one session at a time: the sessions from one of the most active
    /// socialite to her next (1 / `most_active.expected`), and at least
    /// `unique_window` and 1.
    pub active_threads_max: u64,
}

/// How often which members are drawn to be acted upon.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TargetStatistics {
    /// Share of the draws that go to the fifth of the members who rank highest
    /// in the access distribution, which is what is expected of them.
    pub top_fifth: Shares,
}

/// A share by the access distribution, by what else the specification asks for,
/// and as it came out; 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Shares {
    /// What the access distribution alone would give.
    pub distribution: f64,
    /// What a model of the distribution with `access.unique_window` gives.
    pub expected: f64,
    /// What this trace has.
    pub achieved: f64,
}

/// How many members have how many of something.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub max: u64,
    /// By rising number; ranges without members are left out.
    pub buckets: Vec<Bucket>,
}

/// Members with a number in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The lowest number of the range, ...
    pub from: u64,
    /// ... and the highest.
    pub to: u64,
    /// How many members have such a number.
    pub members: u64,
}

/// What one fragment holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FragmentCounts {
    /// Its number.
    pub fragment: u32,
    /// Share of all draws that fall on its members.
    pub weight: f64,
    /// Members.
    pub members: u64,
    /// Sessions.
    pub sessions: u64,
    /// Operations.
    pub operations: u64,
}

/// One file of a trace set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path below the trace set's folder, with '/'.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// BLAKE3 sum, hex.
    pub blake3: String,
}

impl Manifest {
    /// The manifest with its id.
    pub fn identified(self) -> Manifest {
        Manifest { trace_id: self.id(), ..self }
    }

    /// The id of the trace set: BLAKE3 over all that the manifest says but the id itself and
    /// the version of the generator. The sums of the files are in it, and so are the
    /// specification, which decides what the payloads are, and what a verdict takes from
    /// the statistics: two sets with one id are the same work.
    pub fn id(&self) -> String {
        let named = Manifest { trace_id: String::new(), generator_version: String::new(), ..self.clone() };
        let text = serde_json::to_string(&named).unwrap_or_else(|e| unreachable!("a manifest is plain data: {e}"));
        blake3::hash(text.as_bytes()).to_hex()[..32].to_string()
    }

    /// Whether the ids are those of what the manifest says; the error says what is not.
    pub fn check_ids(&self) -> Result<(), String> {
        let (found, expected) = (self.spec.workload_id(), &self.workload_id);
        if found != *expected {
            return Err(format!("the specification has the workload_id {found}, the manifest says {expected}"));
        }
        let (found, expected) = (self.id(), &self.trace_id);
        if found != *expected {
            return Err(format!("the manifest's content has the trace_id {found}, it says {expected}"));
        }
        Ok(())
    }

    /// Reads the manifest of a trace set and checks that it is the one that its id names,
    /// and that every file is there with its size. [`verify`](Manifest::verify) checks the
    /// sums of the files too.
    pub fn read(folder: &Path) -> Result<Manifest, TraceSetError> {
        let path = folder.join(FILE_NAME);
        let value: serde_json::Value = files::read_json(&path).map_err(TraceSetError::Manifest)?;
        let found = value["format_version"].as_u64().unwrap_or(0);
        let expected = crate::TRACE_FORMAT_VERSION;
        if found != expected as u64 {
            return Err(TraceSetError::Version { path, found, expected });
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|e| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, e);
            TraceSetError::Manifest(FileError { path: path.clone(), source })
        })?;
        manifest.check_ids().map_err(|message| TraceSetError::Edited { path, message })?;
        for entry in &manifest.files {
            let path = folder.join(&entry.path);
            let Ok(metadata) = std::fs::metadata(&path) else {
                return Err(TraceSetError::Missing { path });
            };
            if metadata.len() != entry.bytes {
                let (found, expected) = (metadata.len().to_string(), entry.bytes.to_string());
                return Err(TraceSetError::Changed { path, what: "its size", found, expected });
            }
        }
        Ok(manifest)
    }

    /// Checks the sum of every file.
    pub fn verify(&self, folder: &Path) -> Result<(), TraceSetError> {
        for entry in &self.files {
            let path = folder.join(&entry.path);
            let found = files::blake3_of(&path)?;
            if found != entry.blake3 {
                return Err(TraceSetError::Changed {
                    path,
                    what: "its BLAKE3 sum",
                    found,
                    expected: entry.blake3.clone(),
                });
            }
        }
        Ok(())
    }

    /// Sessions over all fragments.
    pub fn sessions(&self) -> u64 {
        self.fragments.iter().map(|f| f.sessions).sum()
    }

    /// Operations over all fragments.
    pub fn operations(&self) -> u64 {
        self.fragments.iter().map(|f| f.operations).sum()
    }

    /// The weights of the fragments, in their order.
    pub fn weights(&self) -> Vec<f64> {
        self.fragments.iter().map(|f| f.weight).collect()
    }

    /// The operation files of a fragment, in order.
    pub fn operation_files(&self, folder: &Path, fragment: u32) -> Vec<PathBuf> {
        let prefix = format!("operations/fragment={fragment}/");
        self.files.iter().filter(|f| f.path.starts_with(&prefix)).map(|f| folder.join(&f.path)).collect()
    }
}
