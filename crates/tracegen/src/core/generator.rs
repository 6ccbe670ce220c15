//! What a family's generator does.

use std::ops::Range;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::part::Part;
use schemas::run::FragmentPosition;
use schemas::spec::{Spec, SpecError, SpecOf};
use schemas::trace::TraceRow;
use schemas::vocabulary::Vocabulary;
use schemas::workload::Workload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::counts::Counts;
use super::digest::DigestError;
use super::error::GenerateError;
use super::options::GenerateOptions;
use super::parts::AssembleError;
use super::room::Need;
use super::show::Facts;

/// The vocabulary of a generator.
pub type VocabularyOf<G> = <<G as Generator>::Workload as Workload>::Vocabulary;

/// An operation that a generator makes.
pub type OperationOf<G> = <VocabularyOf<G> as Vocabulary>::Operation;

/// The statistics of a generator's trace sets.
pub type StatisticsOf<G> = <<G as Generator>::Workload as Workload>::Statistics;

/// Generates the trace sets of a family: a value is one specification's.
pub trait Generator: Sized + Sync {
    /// The family's part of a specification.
    type Workload: Workload;

    /// What is counted of each fragment for the family's statistics.
    type Tally: Send + Serialize + DeserializeOwned;

    /// The sessions of a fragment.
    type Sessions<'a>: Sessions<OperationOf<Self>>
    where
        Self: 'a;

    /// The least that the trace set of a checked specification takes.
    fn need(spec: &SpecOf<Self::Workload>) -> Need;

    /// Everything that the fragments of a checked specification have in common.
    fn new(spec: SpecOf<Self::Workload>) -> Result<Self, GenerateError>;

    /// Each fragment's share of the sessions; all together 1.
    fn weights(&self) -> &[f64];

    /// How many actors a fragment has.
    fn actors(&self, fragment: u32) -> u64;

    /// Writes what is in the store before the first session.
    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError>;

    /// The file, below the trace set's folder, and the columns of what the family keeps of each session of a fragment
    /// besides its operations. None if it keeps nothing.
    fn notes(_fragment: u32) -> Option<(String, SchemaRef)> {
        None
    }

    /// The sessions of a fragment, from the first one on.
    fn sessions(&self, fragment: u32) -> Self::Sessions<'_>;

    /// Why no actor can do anything of the mix, and what helps.
    const NOTHING_TO_DO: [&'static str; 2];

    /// The statistics of a fragment whose sessions are made.
    fn tally(&self, fragment: u32, sessions: &Self::Sessions<'_>) -> Self::Tally;

    /// How many threads the trace can keep busy, and the statistics of all fragments.
    fn statistics(&self, tallies: Vec<Self::Tally>) -> (u64, StatisticsOf<Self>);

    /// The state that the sessions before a position leave of a fragment.
    fn digest(
        spec: &SpecOf<Self::Workload>,
        manifest: &Manifest,
        folder: &Path,
        position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError>;

    /// What `trace show` says of the family.
    fn facts(manifest: &Manifest) -> Result<Facts, SpecError>;

    /// What the user should know about a new trace set.
    fn remark(_manifest: &Manifest) -> Option<String> {
        None
    }
}

/// The result of drawing an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// The actor has a session.
    Session,
    /// The actor can do nothing of the mix.
    Nothing {
        /// No-operations in a row, including those of actors drawn before this one.
        noops: u32,
    },
    /// No actor can do anything of the mix any more, whatever is drawn.
    Never {
        /// No-operations in a row.
        noops: u32,
    },
}

/// The sessions of a fragment, one after the other.
pub trait Sessions<O> {
    /// What the family keeps of the sessions that were made since the last call. [`Generator::notes`] has its columns.
    fn take_notes(&mut self) -> Option<RecordBatch> {
        None
    }

    /// When the next session is due, in microseconds from the start of the load, if the family decides
    /// that itself. None: as the specification's arrivals say. Due times never decrease.
    fn next_due_us(&mut self) -> Option<u64> {
        None
    }

    /// Draws an actor, and makes the next session if the actor can do anything of the mix. `each`
    /// then gets the operations of the session, at least one.
    fn try_next(&mut self, each: impl FnMut(&TraceRow<O>)) -> Drawn;

    /// What the operations of the session that was made last have of variable length. Where that of an
    /// operation begins counts from the beginning of these bytes.
    fn variable(&self) -> &[u8] {
        &[]
    }

    /// The totals over the sessions so far.
    fn counts(&self) -> &Counts;
}

/// The generator of a family, whichever it is. A family whose trace sets are made elsewhere has one too.
pub(crate) trait AnyGenerator: Sync {
    fn family(&self) -> &'static str;
    /// Whether it makes trace sets at all.
    fn can_generate(&self) -> bool {
        true
    }
    fn generate(&self, spec: &Spec, folder: &Path, options: &GenerateOptions<'_>) -> Result<Manifest, GenerateError>;
    fn generate_parts(
        &self,
        spec: &Spec,
        folder: &Path,
        fragments: Range<u32>,
        options: &GenerateOptions<'_>,
    ) -> Result<Vec<Part>, GenerateError>;
    fn assemble(&self, parts: Vec<Part>) -> Result<Manifest, AssembleError>;
    fn digest(
        &self,
        manifest: &Manifest,
        folder: &Path,
        positions: &[FragmentPosition],
    ) -> Result<StateDigest, DigestError>;
    fn facts(&self, manifest: &Manifest) -> Result<Facts, SpecError>;
    fn remark(&self, manifest: &Manifest) -> Option<String>;
}
