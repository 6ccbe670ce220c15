//! The `economy` family: YCSB+T's Closed Economy Workload (ycsb-t-2014, section IV-C). It has the records
//! of `kv`, each with a balance, and every session is a transaction that keeps the sum of all money.
//!
//! Money that a delete captures is no longer in the store. Inserts and updates release it again. What
//! was captured and released is in the log, so clients share nothing.

mod check;

use serde::{Deserialize, Serialize};

use super::kv::rules::KvRules;
use super::kv::{KvStatistics, KvWorkload};
use super::{ActorWords, Closing, Workload};
use crate::spec::{Spec, SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::kv::{Kv, Verb};
use crate::words::thousands;

/// What a specification of the family says besides what every one has: the keys of `kv`.
/// [`Data::total_cash`](super::kv::Data::total_cash) always has a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EconomyWorkload(pub KvWorkload);

/// What a record has at first if a specification does not say (ycsb-t-2014: "an initial balance of $1000").
const CASH_EACH: u64 = 1_000;

/// A kind of session. Each is one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A read.
    Read,
    /// A read, then an update of the same record, which adds $1 of what was captured. If nothing is left
    /// of that, it captures $1 of the record.
    Update,
    /// An insert, with money that was captured.
    Insert,
    /// A scan.
    Scan,
    /// A read, then a delete of the same record, which captures its balance.
    Delete,
    /// Reads of two records, then updates of both: $1 goes from the first to the second.
    ReadModifyWrite,
    /// Reads of two records, then an update of the first, as in [`SessionKind::Update`]. Two such
    /// transactions that update what the other has read are a write skew. YCSB+T has no such kind.
    Adjust,
    /// Reads of two records. One that sees only half of a transfer is a read skew. Not in YCSB+T.
    ReadTwo,
    /// A transfer in steps: a read and an update of the first record, the same again, then a read and an update
    /// of the second. What it has written first is never to be seen, and its reads come after writes: only
    /// such transactions show intermediate reads, circular reads and dirty writes. Not in YCSB+T.
    TransferInSteps,
}

impl SessionKind {
    /// Every kind.
    pub const ALL: [SessionKind; 9] = [
        SessionKind::Read,
        SessionKind::Update,
        SessionKind::Insert,
        SessionKind::Scan,
        SessionKind::Delete,
        SessionKind::ReadModifyWrite,
        SessionKind::Adjust,
        SessionKind::ReadTwo,
        SessionKind::TransferInSteps,
    ];

    /// The name in a specification's mix.
    pub const fn name(self) -> &'static str {
        match self {
            SessionKind::Read => "read",
            SessionKind::Update => "update",
            SessionKind::Insert => "insert",
            SessionKind::Scan => "scan",
            SessionKind::Delete => "delete",
            SessionKind::ReadModifyWrite => "read_modify_write",
            SessionKind::Adjust => "adjust",
            SessionKind::ReadTwo => "read_two",
            SessionKind::TransferInSteps => "transfer_in_steps",
        }
    }

    /// The kind with this name; None if there is none.
    pub fn from_name(name: &str) -> Option<SessionKind> {
        SessionKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its sessions do.
    pub const fn verbs(self) -> &'static [Verb] {
        match self {
            SessionKind::Read | SessionKind::ReadTwo => &[Verb::Read],
            SessionKind::Insert => &[Verb::Insert],
            SessionKind::Scan => &[Verb::Scan],
            SessionKind::Delete => &[Verb::Read, Verb::Delete],
            SessionKind::Update | SessionKind::ReadModifyWrite | SessionKind::Adjust | SessionKind::TransferInSteps => {
                &[Verb::Read, Verb::Update]
            }
        }
    }

    /// How many different records its sessions need.
    pub const fn records(self) -> u64 {
        match self {
            SessionKind::Insert => 0,
            SessionKind::ReadModifyWrite
            | SessionKind::Adjust
            | SessionKind::ReadTwo
            | SessionKind::TransferInSteps => 2,
            _ => 1,
        }
    }
}

/// A specification of this family as one of its records.
pub fn of_records(spec: &SpecOf<EconomyWorkload>) -> SpecOf<KvWorkload> {
    SpecOf { common: spec.common.clone(), own: spec.own.0.clone() }
}

impl Workload for EconomyWorkload {
    const FAMILY: &'static str = "economy";
    const KEYS: &'static [&'static str] = KvWorkload::KEYS;
    const ACTORS: ActorWords = KvWorkload::ACTORS;
    type Vocabulary = Kv;
    type Statistics = KvStatistics;

    fn check(spec: &SpecOf<EconomyWorkload>) -> Result<(), Wrong> {
        check::check(&of_records(spec))
    }

    fn rules(
        spec: &SpecOf<EconomyWorkload>,
        statistics: &KvStatistics,
        fragment: u32,
    ) -> Result<Box<dyn Rules<Kv>>, String> {
        let verbs = |name: &str| SessionKind::from_name(name).map_or(&[][..], SessionKind::verbs);
        Ok(Box::new(KvRules::new(&of_records(spec), statistics, fragment, verbs)?))
    }

    fn resolve(&mut self, common: &Spec) {
        self.0.resolve(common);
        self.0.transactions.get_or_insert_default();
        let data = &mut self.0.data;
        data.total_cash.get_or_insert(data.records.saturating_mul(CASH_EACH).min(i64::MAX as u64));
    }

    fn actors(&self) -> u64 {
        self.0.actors()
    }

    fn size(&self) -> String {
        format!("{} with {} of money", self.0.size(), thousands(self.0.data.total_cash.unwrap_or_default()))
    }

    fn closing(spec: &SpecOf<EconomyWorkload>) -> Option<Closing> {
        KvWorkload::closing(&of_records(spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(more: &str, mix: &str) -> SpecOf<EconomyWorkload> {
        let text =
            format!("name = 't'\nfamily = 'economy'\nsessions = 9\n[data]\nrecords = 100\n{more}\n[mix]\n{mix}\n");
        SpecOf::parse(&text, "t.toml").unwrap()
    }

    #[test]
    fn a_record_has_a_thousand_unless_a_specification_says_else() {
        assert_eq!(spec("", "read = 1").own.0.data.total_cash, Some(100_000));
        assert_eq!(spec("total_cash = 77", "read = 1").own.0.data.total_cash, Some(77));
    }

    #[test]
    fn kinds_keep_their_names() {
        for kind in SessionKind::ALL {
            assert_eq!(SessionKind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn inserted_records_are_in_the_closing_read() {
        let grows = |mix| EconomyWorkload::closing(&spec("", mix)).unwrap().grows;
        assert_eq!((grows("insert = 1\ndelete = 1"), grows("read = 1\nadjust = 1")), (true, false));
    }
}
