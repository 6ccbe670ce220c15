//! The generator of the `economy` family: the records of `kv` with balances, and transactions that keep
//! the sum of all money, as in YCSB+T's Closed Economy Workload.

mod sessions;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::spec::{SpecError, SpecOf};
use schemas::workload::economy::{EconomyWorkload, of_records};
use schemas::workload::kv::{KvStatistics, KvWorkload};

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::Generator;
use crate::core::room::Need;
use crate::core::show::{Facts, grouped};
use crate::kv::Kv;
use crate::kv::show;
use crate::kv::statistics::Tally;
use sessions::Sessions;

/// The accounts of a specification.
pub(crate) struct Economy {
    records: Kv,
}

impl Generator for Economy {
    type Workload = EconomyWorkload;
    type Tally = Tally;
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = [
        "sessions deleted all records but one, or draw always the same one, and no session inserts one",
        "raise data.records, lower mix.delete, or use another access.distribution",
    ];

    fn need(spec: &SpecOf<EconomyWorkload>) -> Need {
        Kv::need(&of_records(spec))
    }

    fn new(spec: SpecOf<EconomyWorkload>) -> Result<Economy, GenerateError> {
        Ok(Economy { records: Kv::new(of_records(&spec))? })
    }

    fn weights(&self) -> &[f64] {
        self.records.weights()
    }

    fn actors(&self, fragment: u32) -> u64 {
        self.records.actors(fragment)
    }

    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        self.records.write_dataset(fragment, folder)
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        Sessions::new(&self.records, fragment)
    }

    fn tally(&self, _fragment: u32, sessions: &Sessions<'_>) -> Tally {
        sessions.tally()
    }

    fn statistics(&self, tallies: Vec<Tally>) -> (u64, KvStatistics) {
        self.records.statistics(tallies)
    }

    fn digest(
        _spec: &SpecOf<EconomyWorkload>,
        _manifest: &Manifest,
        _folder: &Path,
        _position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        Err(DigestError::Undetermined { what: "transactions may be replayed in any order, which changes the balances" })
    }

    fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
        let workload = KvWorkload::of(&manifest.spec)?;
        let mut facts = show::facts(manifest)?;
        let total = workload.data.total_cash.unwrap_or_default();
        facts.about.push(("money", format!("{} over all records; every session is a transaction", grouped(total))));
        Ok(facts)
    }
}
