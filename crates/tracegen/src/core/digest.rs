//! Which sessions of a trace set have run, for the digest of the state that they leave in a store.

use std::path::PathBuf;

use schemas::manifest::{Manifest, TraceSetError};
use schemas::run::FragmentPosition;
use schemas::share::sessions_by_fragment;
use schemas::spec::SpecError;
use schemas::table::TableError;

/// A digest that could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The trace set cannot be used.
    #[error(transparent)]
    TraceSet(#[from] TraceSetError),
    /// The trace set is of another family.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// One of its tables cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The sessions do not leave one state whatever their order.
    #[error("the sessions leave no single state: {what}")]
    Undetermined {
        /// Why, and what helps.
        what: &'static str,
    },
    /// The trace set has fewer sessions than asked for.
    #[error(
        "{}: the trace set has {has} sessions, {asked} were requested; request fewer, or generate a longer trace",
        folder.display()
    )]
    Short {
        /// The trace set.
        folder: PathBuf,
        /// How many sessions it has.
        has: u64,
        /// How many sessions were asked for.
        asked: u64,
    },
}

/// Which sessions of a trace set have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran<'a> {
    /// All of them.
    All,
    /// The first N in the global order of [`schemas::share`].
    First(u64),
    /// The sessions that an experiment reports, without those that were given back.
    Positions(&'a [FragmentPosition]),
}

impl Ran<'_> {
    /// How far each fragment has run.
    pub fn positions(self, manifest: &Manifest) -> Vec<FragmentPosition> {
        let fragments = manifest.fragments.iter();
        match self {
            Ran::All => fragments.map(|f| FragmentPosition::at(f.fragment, f.sessions)).collect(),
            Ran::First(sessions) => {
                let shares = sessions_by_fragment(&manifest.weights(), sessions);
                fragments.zip(shares).map(|(f, sessions)| FragmentPosition::at(f.fragment, sessions)).collect()
            }
            Ran::Positions(positions) => {
                let of = |fragment| positions.iter().find(|position| position.fragment == fragment).cloned();
                fragments.map(|f| of(f.fragment).unwrap_or_else(|| FragmentPosition::at(f.fragment, 0))).collect()
            }
        }
    }
}
