//! The generator of the `consbench` family: on the records of `kv`, writes that are each followed by a burst of
//! reads, as in BenchFoundry's first generator.

mod sessions;
mod show;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::spec::{SpecError, SpecOf};
use schemas::workload::consbench::{ConsbenchWorkload, Tests, of_records};
use schemas::workload::kv::KvStatistics;

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::Generator;
use crate::core::room::Need;
use crate::core::show::Facts;
use crate::kv::Kv;
use crate::kv::statistics::Tally;
use sessions::Sessions;

/// The tests of a specification.
pub(crate) struct Consbench {
    records: Kv,
    tests: Tests,
    /// Every fragment does as many tests, however many records it has.
    weights: Vec<f64>,
}

impl Generator for Consbench {
    type Workload = ConsbenchWorkload;
    type Tally = Tally;
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = ["a fragment has no record", "raise data.records"];

    fn need(spec: &SpecOf<ConsbenchWorkload>) -> Need {
        Kv::need(&of_records(spec))
    }

    fn new(spec: SpecOf<ConsbenchWorkload>) -> Result<Consbench, GenerateError> {
        // With twelve decimals every JSON reader gets exactly the same number.
        let each = (1e12 / f64::from(spec.common.fragments)).round() / 1e12;
        let weights = vec![each; spec.common.fragments as usize];
        Ok(Consbench { records: Kv::new(of_records(&spec))?, tests: spec.own.consbench.tests(), weights })
    }

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn actors(&self, fragment: u32) -> u64 {
        self.records.actors(fragment)
    }

    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        self.records.write_dataset(fragment, folder)
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        Sessions::new(&self.records, self.tests, fragment)
    }

    fn tally(&self, _fragment: u32, sessions: &Sessions<'_>) -> Tally {
        sessions.tally()
    }

    fn statistics(&self, tallies: Vec<Tally>) -> (u64, KvStatistics) {
        self.records.statistics(tallies)
    }

    fn digest(
        _spec: &SpecOf<ConsbenchWorkload>,
        _manifest: &Manifest,
        _folder: &Path,
        _position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        Err(DigestError::Undetermined { what: "writes of a record do not wait for each other" })
    }

    fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
        show::facts(manifest)
    }

    fn remark(manifest: &Manifest) -> Option<String> {
        manifest.spec.unchecked()
    }
}
