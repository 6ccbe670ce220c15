//! The `consbench` family: tests that provoke the upper bound of staleness, after the first generator of
//! BenchFoundry (benchfoundry-2016, section 4.2). A test is a write of a record, and a burst of reads of
//! the same record from then on. The records are those of `kv`.
//!
//! Every session has one operation and a due time of its own, which the generator draws. So a specification
//! of this family has no mix and no arrivals: both follow from its tests ([`Workload::provide`]).

mod derive;
mod length;

use serde::{Deserialize, Serialize};

use super::kv::check::check_records;
use super::kv::rules::KvRules;
use super::kv::{Access, Data, Distribution, KvStatistics, KvWorkload};
use super::{ActorWords, Closing, Workload};
use crate::spec::{Spec, SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::kv::{Kv, Verb};

pub use length::Length;

/// What a specification of the family says besides what every one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsbenchWorkload {
    /// What is in the store before the first session: the records of `kv`.
    pub data: Data,
    /// The tests.
    pub consbench: Consbench,
}

/// The tests. A fragment does one after the other, each on its next record. Fragments do not wait for
/// each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consbench {
    /// How many tests all fragments do. A specification that was read has the number of their sessions as
    /// `sessions` instead, so that a longer trace of it is the same workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
    /// How long all tests take. A specification that was read has the interval instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Length>,
    /// The time from one test of a fragment to its next one. Without it and without a duration, it is a
    /// quarter longer than a burst. A specification that was read has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Length>,
    /// How long a record is read after its write is due.
    pub burst: Length,
    /// How many replicas of a record the store is believed to have.
    #[serde(default = "default_replicas")]
    pub replicas: u32,
    /// Within this time each replica is read, with the probability `coverage`. It decides the number of reads.
    /// A specification that was read has that number instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Length>,
    /// The probability that each replica is read within the resolution, if each read goes to any replica
    /// alike.
    #[serde(default = "default_coverage")]
    pub coverage: f64,
    /// How many reads a burst has. A specification that was read has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<u32>,
    /// How many clients there are, over all fragments. Those of a fragment act one after the other. A
    /// specification that was read has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<u32>,
}

fn default_replicas() -> u32 {
    3
}
fn default_coverage() -> f64 {
    0.99
}

/// The tests of a specification that was read, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tests {
    /// From one test of a fragment to its next one.
    pub interval_us: u64,
    /// From the due time of a write to the end of its burst; at most the interval.
    pub burst_us: u64,
    /// Reads of a burst, at least 1 and at most one in a microsecond.
    pub reads: u32,
    /// Clients of all fragments.
    pub readers: u32,
}

impl Tests {
    /// The sessions of a test.
    pub const fn sessions(&self) -> u64 {
        self.reads as u64 + 1
    }
}

impl Consbench {
    /// The tests in numbers.
    ///
    /// # Panics
    ///
    /// If the specification was not read: reading fills in the interval and the number of reads.
    pub fn tests(&self) -> Tests {
        self.known_tests().unwrap_or_else(|wrong| unreachable!("{}: {}", wrong.key, wrong.message))
    }

    /// Within how many microseconds each replica is read with the probability `coverage`.
    pub fn resolution_us(&self) -> f64 {
        let reads = self.reads.unwrap_or(1);
        derive::reads_for(self.replicas, self.coverage) as f64 * self.burst.us() as f64 / f64::from(reads)
    }
}

/// A specification of this family as one of its records.
pub fn of_records(spec: &SpecOf<ConsbenchWorkload>) -> SpecOf<KvWorkload> {
    let own = &spec.own;
    let access = Access {
        distribution: Distribution::Sequential,
        write_all_fields: true,
        clients: own.actors(),
        ..Access::default()
    };
    SpecOf { common: spec.common.clone(), own: KvWorkload { data: own.data.clone(), access, transactions: None } }
}

/// What the sessions of a kind of the mix do.
fn verbs(kind: &str) -> &'static [Verb] {
    match kind {
        derive::READ => &[Verb::Read],
        derive::WRITE => &[Verb::Update],
        _ => &[],
    }
}

impl Workload for ConsbenchWorkload {
    const FAMILY: &'static str = "consbench";
    const KEYS: &'static [&'static str] = &["data", "consbench"];
    const ACTORS: ActorWords = ActorWords { plural: "readers", keys: &["consbench.readers"] };
    type Vocabulary = Kv;
    type Statistics = KvStatistics;

    fn provide(&mut self, common: &mut Spec) -> Result<(), Wrong> {
        self.consbench.provide(common)
    }

    fn check(spec: &SpecOf<ConsbenchWorkload>) -> Result<(), Wrong> {
        spec.own.consbench.check(&spec.common)?;
        if spec.own.data.total_cash.is_some() {
            return Err(Wrong::new("data.total_cash", "records of consbench have no balances; remove it"));
        }
        check_records(&of_records(spec))
    }

    fn rules(
        spec: &SpecOf<ConsbenchWorkload>,
        statistics: &KvStatistics,
        fragment: u32,
    ) -> Result<Box<dyn Rules<Kv>>, String> {
        Ok(Box::new(KvRules::new(&of_records(spec), statistics, fragment, verbs)?))
    }

    fn actors(&self) -> u64 {
        // Reading fills it in, and checks find it missing.
        self.consbench.readers.unwrap_or(1).into()
    }

    fn size(&self) -> String {
        KvWorkload { data: self.data.clone(), access: Access::default(), transactions: None }.size()
    }

    fn unchecked(spec: &SpecOf<ConsbenchWorkload>) -> Option<String> {
        KvWorkload::unchecked(&of_records(spec))
    }

    fn closing(spec: &SpecOf<ConsbenchWorkload>) -> Option<Closing> {
        KvWorkload::closing(&of_records(spec))
    }
}
