//! The generator of the `kv` family: records, and sessions that read and write them as YCSB does.

mod dataset;
mod digest;
pub(crate) mod draw;
mod popularity;
pub(crate) mod sessions;
pub(crate) mod show;
mod space;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::share::sessions_by_fragment;
use schemas::spec::{SpecError, SpecOf};
use schemas::vocabulary::kv::WriteId;
use schemas::words::plural;
use schemas::workload::kv::{KvStatistics, KvWorkload};

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::Generator;
use crate::core::room::{Need, ROW_BYTES};
use crate::core::show::Facts;
use sessions::Sessions;
use space::Space;
use statistics::Tally;

/// The records of a specification.
pub(crate) struct Kv {
    spec: SpecOf<KvWorkload>,
    space: Space,
}

impl Kv {
    /// The specification.
    pub(crate) fn spec(&self) -> &SpecOf<KvWorkload> {
        &self.spec
    }

    /// The records.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }
}

/// The least number of bytes of memory for a record: its places in two orders (4 each), its popularity
/// and its weight among the records of its fragment (8 each).
const RECORD_BYTES: f64 = 24.0;

impl Generator for Kv {
    type Workload = KvWorkload;
    type Tally = Tally;
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = [
        "sessions deleted all records, and no session inserts one",
        "raise data.records, lower mix.delete, or add mix.insert with access.distribution = \"latest\"",
    ];

    fn need(spec: &SpecOf<KvWorkload>) -> Need {
        let (records, sessions) = (spec.own.data.records as f64, spec.common.sessions as f64);
        Need {
            disk_bytes: (records + sessions) * ROW_BYTES,
            memory_bytes: records * RECORD_BYTES,
            what: format!("{} on {}", plural(spec.common.sessions, "session"), plural(spec.own.data.records, "record")),
        }
    }

    fn new(spec: SpecOf<KvWorkload>) -> Result<Kv, GenerateError> {
        let space = Space::new(&spec)?;
        // Fragments with popular records have more sessions than the others.
        let most = sessions_by_fragment(&space.weights, spec.common.sessions).into_iter().max().unwrap_or(0);
        if most > WriteId::SESSIONS_MAX {
            return Err(GenerateError::Infeasible(format!(
                "sessions: a fragment would have {most} of them, and ids of writes tell only {} apart; use more fragments",
                WriteId::SESSIONS_MAX
            )));
        }
        Ok(Kv { spec, space })
    }

    fn weights(&self) -> &[f64] {
        &self.space.weights
    }

    fn actors(&self, fragment: u32) -> u64 {
        let clients = sessions::clients(&self.spec, fragment);
        clients.end - clients.start
    }

    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        dataset::write(&self.space, fragment, folder)
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        Sessions::new(&self.spec, &self.space, fragment)
    }

    fn tally(&self, _fragment: u32, sessions: &Sessions<'_>) -> Tally {
        sessions.tally()
    }

    fn statistics(&self, tallies: Vec<Tally>) -> (u64, KvStatistics) {
        (self.spec.own.access.clients, statistics::statistics(self.spec.common.fragments, &self.space, &tallies))
    }

    fn digest(
        spec: &SpecOf<KvWorkload>,
        manifest: &Manifest,
        folder: &Path,
        position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        digest::digest(spec, manifest, folder, position)
    }

    fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
        show::facts(manifest)
    }

    fn remark(manifest: &Manifest) -> Option<String> {
        manifest.spec.unchecked()
    }
}
