//! Anomalies of transactions: their classes, and what a check of a history found.
//!
//! `docs/src/reference/metrics.md` defines every class. The check itself is the analyzer's.

use serde::{Deserialize, Serialize};

use crate::isolation::Isolation;

/// A class of anomalies: something that a level of isolation excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// G0: a cycle of overwrites.
    DirtyWrite = 0,
    /// G1a: a read of what was rolled back.
    AbortedRead = 1,
    /// G1b: a read of what its own transaction overwrote later.
    IntermediateRead = 2,
    /// G1c: a cycle of overwrites and reads.
    CircularRead = 3,
    /// A version that several transactions read and overwrote.
    LostUpdate = 4,
    /// An item that changed inside of a transaction, though the transaction did not change it.
    FuzzyRead = 5,
    /// G-single: a cycle in which no anti-dependency follows another.
    ReadSkew = 6,
    /// G2-item: any other cycle.
    WriteSkew = 7,
    /// A cycle only with the order of time: a transaction that saw the past.
    StaleTransaction = 8,
}

impl Class {
    /// Every class, the worst one first.
    pub const ALL: [Class; 9] = [
        Class::DirtyWrite,
        Class::AbortedRead,
        Class::IntermediateRead,
        Class::CircularRead,
        Class::LostUpdate,
        Class::FuzzyRead,
        Class::ReadSkew,
        Class::WriteSkew,
        Class::StaleTransaction,
    ];

    /// How many there are.
    pub const COUNT: usize = Class::ALL.len();

    /// Its name in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Class::DirtyWrite => "dirty_write",
            Class::AbortedRead => "aborted_read",
            Class::IntermediateRead => "intermediate_read",
            Class::CircularRead => "circular_read",
            Class::LostUpdate => "lost_update",
            Class::FuzzyRead => "fuzzy_read",
            Class::ReadSkew => "read_skew",
            Class::WriteSkew => "write_skew",
            Class::StaleTransaction => "stale_transaction",
        }
    }

    /// Its name in texts, with that of the literature.
    pub const fn words(self) -> &'static str {
        match self {
            Class::DirtyWrite => "dirty write (G0)",
            Class::AbortedRead => "aborted read (G1a)",
            Class::IntermediateRead => "intermediate read (G1b)",
            Class::CircularRead => "circular read (G1c)",
            Class::LostUpdate => "lost update",
            Class::FuzzyRead => "fuzzy read",
            Class::ReadSkew => "read skew (G-single)",
            Class::WriteSkew => "write skew (G2-item)",
            Class::StaleTransaction => "stale transaction",
        }
    }

    /// The strongest level that a history with such an anomaly is consistent with. None if even the
    /// weakest level excludes it.
    pub const fn leaves(self) -> Option<Isolation> {
        match self {
            Class::DirtyWrite => None,
            Class::AbortedRead | Class::IntermediateRead | Class::CircularRead => Some(Isolation::ReadUncommitted),
            Class::LostUpdate | Class::FuzzyRead => Some(Isolation::ReadCommitted),
            Class::ReadSkew => Some(Isolation::RepeatableRead),
            Class::WriteSkew => Some(Isolation::Snapshot),
            Class::StaleTransaction => Some(Isolation::Serializable),
        }
    }
}

/// How many anomalies of each class, in the order of [`Class::ALL`].
pub type Counts = [u64; Class::COUNT];

/// The seconds that are counted one by one: twelve days. Later ones count with the last.
const SECONDS_MAX: usize = 1 << 20;

/// What a check of the transactions of an experiment found. The findings of fragments add up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Anomalies {
    /// Transactions that committed.
    pub committed: u64,
    /// Tries that were rolled back.
    pub aborted: u64,
    /// Transactions of unknown fate.
    pub unknown: u64,
    /// Reads and writes of items in transactions.
    pub operations: u64,
    /// Anomalies by class.
    pub counts: Counts,
    /// Anomalies by class in each second from the experiment's start.
    pub per_second: Vec<Counts>,
    /// Writes of items that their transaction had not read: which version they overwrote is not known.
    pub unordered_writes: u64,
    /// Reads whose version is not known, such as of a record that is absent before its insert or after
    /// its delete.
    pub ambiguous_reads: u64,
    /// The smallest anomaly that was found of each class, the worst class first.
    pub witnesses: Vec<Witness>,
}

impl Anomalies {
    /// The strongest level that the history is consistent with; None if it is weaker than all.
    pub fn strongest(&self) -> Option<Isolation> {
        let found = Class::ALL.into_iter().filter(|class| self.count(*class) > 0);
        found.map(Class::leaves).min().unwrap_or(Some(Isolation::StrictSerializable))
    }

    /// The anomalies of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.counts[class as usize]
    }

    /// Whether nothing can be concluded: no operation says which version it has read or written. So it is with
    /// statements of SQL.
    pub fn is_blind(&self) -> bool {
        self.operations == 0 && self.ambiguous_reads > 0
    }

    /// Whether there was a transaction.
    pub fn has_transactions(&self) -> bool {
        self.committed + self.aborted + self.unknown > 0
    }

    /// Counts anomalies of a class at a time since the experiment's start.
    pub fn add(&mut self, class: Class, count: u64, at_ns: i64) {
        if count == 0 {
            return;
        }
        self.counts[class as usize] += count;
        let second = usize::try_from(at_ns.max(0) / 1_000_000_000).unwrap_or(SECONDS_MAX).min(SECONDS_MAX - 1);
        if self.per_second.len() <= second {
            self.per_second.resize(second + 1, Counts::default());
        }
        self.per_second[second][class as usize] += count;
    }

    /// The witness of a class.
    pub fn witness(&self, class: Class) -> Option<&Witness> {
        self.witnesses.iter().find(|witness| witness.class == class)
    }

    /// Keeps the witness if it is the smallest one of its class.
    pub fn keep(&mut self, witness: Witness) {
        match self.witnesses.binary_search_by_key(&witness.class, |known| known.class) {
            Ok(at) if witness.rank() < self.witnesses[at].rank() => self.witnesses[at] = witness,
            Ok(_) => {}
            Err(at) => self.witnesses.insert(at, witness),
        }
    }

    /// Adds what was found in other fragments.
    pub fn merge(&mut self, other: &Anomalies) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self.operations += other.operations;
        self.unordered_writes += other.unordered_writes;
        self.ambiguous_reads += other.ambiguous_reads;
        if self.per_second.len() < other.per_second.len() {
            self.per_second.resize(other.per_second.len(), Counts::default());
        }
        let seconds = self.per_second.iter_mut().zip(&other.per_second);
        for (own, others) in seconds.chain([(&mut self.counts, &other.counts)]) {
            own.iter_mut().zip(others).for_each(|(own, others)| *own += others);
        }
        other.witnesses.iter().for_each(|witness| self.keep(witness.clone()));
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The store confirmed its commit.
    Committed,
    /// It was rolled back: none of its writes happened.
    Aborted,
    /// The answer to its commit is missing. It counts as committed once a committed transaction has seen
    /// a write of it.
    Unknown,
}

/// The transactions of an anomaly, and what holds them together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The class.
    pub class: Class,
    /// The fragment.
    pub fragment: u32,
    /// The transactions, in the order of the cycle.
    pub transactions: Vec<WitnessTransaction>,
    /// Why a transaction comes before another, in the order of the cycle.
    pub links: Vec<WitnessLink>,
}

impl Witness {
    /// Smaller witnesses are easier to check. Of equal ones the first is kept.
    fn rank(&self) -> (usize, usize, i64, u32, u64) {
        let operations = self.transactions.iter().map(|one| one.operations.len()).sum();
        let first = self.transactions.iter().map(|one| (one.start_ns, one.session)).min().unwrap_or_default();
        (self.transactions.len(), operations, first.0, self.fragment, first.1)
    }
}

/// A transaction of a witness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessTransaction {
    /// Its session.
    pub session: u64,
    /// The step of its `begin`.
    pub txn: u16,
    /// Its try, from 0.
    pub try_number: u16,
    /// The thread that ran it.
    pub thread: u32,
    /// When it began, in nanoseconds from the experiment's start.
    pub start_ns: i64,
    /// When it had ended.
    pub end_ns: i64,
    /// How it ended.
    pub fate: Fate,
    /// Its reads and writes of the items of the witness.
    pub operations: Vec<WitnessOperation>,
}

/// An operation of a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessOperation {
    /// Its step.
    pub step: u16,
    /// When it started.
    pub start_ns: i64,
    /// When it had ended.
    pub end_ns: i64,
    /// Whether it is a write.
    pub writes: bool,
    /// What was read or written.
    pub version: Version,
}

/// A version of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Whose item it is.
    pub owner: u64,
    /// Which item of the owner.
    pub element: u32,
    /// The id of the write; 0 for the initial version, -1 for the one that a delete leaves.
    pub write: i64,
}

/// Why a transaction of a witness comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessLink {
    /// The transaction that comes before, as an index.
    pub from: usize,
    /// The transaction that comes after.
    pub to: usize,
    /// Why.
    pub why: Dependency,
    /// The version that both have to do with; null for the order of time.
    pub version: Option<Version>,
}

/// Why a transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    /// ww: the second overwrote what the first had written.
    Overwrote,
    /// wr: the second read what the first had written.
    Read,
    /// rw: the second overwrote what the first had read.
    OverwroteRead,
    /// Both read and overwrote this version; which of them was first is not known.
    OverwroteSame,
    /// The first had ended before the second began.
    EndedBefore,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_the_order_of_the_levels() {
        assert!(Class::ALL.is_sorted() && Class::ALL.map(Class::leaves).is_sorted());
        assert!(Class::ALL.iter().enumerate().all(|(index, class)| *class as usize == index));
    }

    #[test]
    fn fragments_add_up() {
        let mut one = Anomalies { committed: 3, ..Anomalies::default() };
        assert_eq!(one.strongest(), Some(Isolation::StrictSerializable));
        one.add(Class::WriteSkew, 2, 1_500_000_000);
        let mut other = Anomalies { committed: 4, ..Anomalies::default() };
        other.add(Class::WriteSkew, 1, -5);
        other.add(Class::LostUpdate, 1, 2_000_000_000);
        one.merge(&other);
        assert_eq!((one.committed, one.count(Class::WriteSkew), one.per_second.len()), (7, 3, 3));
        let skews: Vec<u64> = one.per_second.iter().map(|second| second[Class::WriteSkew as usize]).collect();
        assert_eq!(skews, [1, 2, 0]);
        assert_eq!(one.strongest(), Some(Isolation::ReadCommitted));
        one.add(Class::DirtyWrite, 1, 0);
        assert_eq!(one.strongest(), None);
    }
}
