//! The `kv` family: records with a key and some fields, as in YCSB.

pub(super) mod check;
pub mod dataset;
mod digest;
pub mod keys;
pub(super) mod rules;
mod statistics;
mod transactions;
pub mod values;

use serde::{Deserialize, Serialize};

use super::{ActorWords, Closing, Workload};
use crate::spec::{Spec, SpecError, SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::kv::{Kv, Verb};
use crate::words::thousands;

pub use keys::{KeyOrder, Keys};
pub use statistics::KvStatistics;
pub use transactions::Transactions;
use values::VERIFIABLE_BYTES;
pub use values::Values;

/// What a specification of the family says besides what every one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvWorkload {
    /// What is in the store before the first session.
    pub data: Data,
    /// How records, fields and lengths are drawn.
    #[serde(default)]
    pub access: Access,
    /// Whether sessions are transactions. Without it, each operation is by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
}

/// The records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// How many records there are (YCSB's `recordcount` less `insertstart`).
    pub records: u64,
    /// The money of all records together, for a family whose records have balances (YCSB+T's
    /// `totalcash`). Each has an equal part of it; what remains goes to the first ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cash: Option<u64>,
    /// The number of the first record (YCSB's `insertstart`).
    #[serde(default)]
    pub first_record: u64,
    /// How many fields a record has (YCSB's `fieldcount`).
    #[serde(default = "default_fields")]
    pub fields: u32,
    /// Length of a value, in bytes; the greatest unless the distribution is constant (YCSB's
    /// `fieldlength`).
    #[serde(default = "default_field_bytes")]
    pub field_bytes: u32,
    /// The least length of a value (YCSB's `minfieldlength`).
    #[serde(default = "default_one")]
    pub field_bytes_min: u32,
    /// How the lengths of values are distributed (YCSB's `fieldlengthdistribution`).
    #[serde(default)]
    pub field_length: LengthDistribution,
    /// The order of the keys (YCSB's `insertorder`).
    #[serde(default)]
    pub key_order: KeyOrder,
    /// The least number of digits of a key (YCSB's `zeropadding`).
    #[serde(default = "default_one")]
    pub key_digits: u32,
}

/// A distribution of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthDistribution {
    /// Always the greatest.
    #[default]
    Constant,
    /// Each length from the least to the greatest is equally likely.
    Uniform,
    /// Short ones are the most likely, by the Zipfian distribution with the constant 0.99.
    Zipfian,
}

/// How records are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All records alike.
    Uniform,
    /// Few records are popular, scattered over all keys; Zipfian with the constant 0.99.
    Zipfian,
    /// The records inserted last are the most popular; Zipfian with the constant 0.99.
    Latest,
    /// One record after the other, from the first one again after the last one.
    Sequential,
    /// The records inserted last are the most popular, by an exponential distribution.
    Exponential,
    /// A few hot records get most of the accesses.
    Hotspot,
}

/// How records, fields and lengths are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// How the records of reads, updates, deletes and scans are drawn (YCSB's
    /// `requestdistribution`).
    pub distribution: Distribution,
    /// `hotspot` only: the share of the records that is hot.
    pub hotspot_data_share: f64,
    /// `hotspot` only: the share of the accesses that goes to them.
    pub hotspot_access_share: f64,
    /// `exponential` only: this percentage of the accesses...
    pub exponential_percentile: f64,
    /// ...goes to this share of the records, those inserted last.
    pub exponential_data_share: f64,
    /// `zipfian` only: over how many records the popular ones are scattered. Only those that exist are
    /// drawn. 0 is YCSB's number: the records, twice the inserts that the sessions are expected to do,
    /// and one. Reading a specification replaces the 0, so that a longer trace of it has the same.
    pub key_space: u64,
    /// Whether reads and scans ask for all fields, or for one that is drawn (YCSB's
    /// `readallfields`).
    pub read_all_fields: bool,
    /// Whether updates write all fields, or one that is drawn (YCSB's `writeallfields`).
    pub write_all_fields: bool,
    /// How the lengths of scans are distributed (YCSB's `scanlengthdistribution`).
    pub scan_length: LengthDistribution,
    /// The least length of a scan (YCSB's `minscanlength`).
    pub scan_length_min: u32,
    /// The greatest length of a scan (YCSB's `maxscanlength`).
    pub scan_length_max: u32,
    /// On behalf of how many clients sessions run, one client after the other. A client acts in one
    /// session at a time, so this is also how many threads can be busy.
    pub clients: u64,
    /// `latest` and `exponential` draw among the records that were inserted at least this many
    /// sessions back. A replay with that many threads then hardly ever waits for an insert.
    pub dependency_window: u64,
    /// Whether a write waits until the last write of the same record is done. A whole replay then
    /// leaves one state, whatever the number of threads. YCSB does not wait.
    pub ordered_writes: bool,
}

impl Default for Access {
    fn default() -> Self {
        Access {
            distribution: Distribution::Uniform,
            hotspot_data_share: 0.2,
            hotspot_access_share: 0.8,
            exponential_percentile: 95.0,
            exponential_data_share: 0.8571428571,
            key_space: 0,
            read_all_fields: true,
            write_all_fields: false,
            scan_length: LengthDistribution::Uniform,
            scan_length_min: 1,
            scan_length_max: 1_000,
            clients: 4_096,
            dependency_window: 512,
            ordered_writes: false,
        }
    }
}

fn default_fields() -> u32 {
    10
}
fn default_field_bytes() -> u32 {
    100
}
fn default_one() -> u32 {
    1
}

/// A kind of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A read.
    Read,
    /// An update.
    Update,
    /// An insert.
    Insert,
    /// A scan.
    Scan,
    /// A delete.
    Delete,
    /// A read, then an update of the same record.
    ReadModifyWrite,
}

impl SessionKind {
    /// Every kind.
    pub const ALL: [SessionKind; 6] = [
        SessionKind::Read,
        SessionKind::Update,
        SessionKind::Insert,
        SessionKind::Scan,
        SessionKind::Delete,
        SessionKind::ReadModifyWrite,
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
        }
    }

    /// The kind with this name; None if there is none.
    pub fn from_name(name: &str) -> Option<SessionKind> {
        SessionKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its sessions do.
    pub const fn verbs(self) -> &'static [Verb] {
        match self {
            SessionKind::Read => &[Verb::Read],
            SessionKind::Update => &[Verb::Update],
            SessionKind::Insert => &[Verb::Insert],
            SessionKind::Scan => &[Verb::Scan],
            SessionKind::Delete => &[Verb::Delete],
            SessionKind::ReadModifyWrite => &[Verb::Read, Verb::Update],
        }
    }

    /// Whether it writes records that exist.
    pub const fn overwrites(self) -> bool {
        matches!(self, SessionKind::Update | SessionKind::Delete | SessionKind::ReadModifyWrite)
    }
}

impl Workload for KvWorkload {
    const FAMILY: &'static str = "kv";
    const KEYS: &'static [&'static str] = &["data", "access", "transactions"];
    const ACTORS: ActorWords = ActorWords { plural: "clients", keys: &["access.clients"] };
    type Vocabulary = Kv;
    type Statistics = KvStatistics;

    fn check(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
        check::check(spec)
    }

    fn rules(
        spec: &SpecOf<KvWorkload>,
        statistics: &KvStatistics,
        fragment: u32,
    ) -> Result<Box<dyn Rules<Kv>>, String> {
        let verbs = |name: &str| SessionKind::from_name(name).map_or(&[][..], SessionKind::verbs);
        Ok(Box::new(rules::KvRules::new(spec, statistics, fragment, verbs)?))
    }

    fn resolve(&mut self, common: &Spec) {
        if self.access.distribution == Distribution::Zipfian && self.access.key_space == 0 {
            self.access.key_space = self.ycsb_key_space(common);
        }
    }

    fn actors(&self) -> u64 {
        self.access.clients
    }

    fn size(&self) -> String {
        format!("{} records", thousands(self.data.records))
    }

    fn unchecked(spec: &SpecOf<KvWorkload>) -> Option<String> {
        let is_checked = Values::new(&spec.common, &spec.own.data).are_verifiable();
        (!is_checked).then(|| {
            format!(
                "values shorter than {VERIFIABLE_BYTES} bytes cannot say which write they come from; reads of them are \
                 not checked (data.field_bytes, data.field_bytes_min)"
            )
        })
    }

    fn closing(spec: &SpecOf<KvWorkload>) -> Option<Closing> {
        let is_insert = |(name, _): (&str, f64)| SessionKind::from_name(name) == Some(SessionKind::Insert);
        Some(Closing {
            parts: spec.own.data.all_fields(),
            items: |folder, fragment| Ok(Box::new(dataset::records(folder, fragment)?)),
            grows: spec.common.kinds().into_iter().any(is_insert),
        })
    }
}

impl Data {
    /// A bit for each field.
    pub fn all_fields(&self) -> u64 {
        (1 << self.fields) - 1
    }
}

impl KvWorkload {
    /// Over how many records YCSB scatters popular ones: the records, twice the inserts that it expects,
    /// and one, because its range of numbers includes the end.
    pub fn ycsb_key_space(&self, common: &Spec) -> u64 {
        // TOML has no larger number.
        const MOST: u64 = i64::MAX as u64;
        let inserts = common.sessions as f64 * share(common, SessionKind::Insert) * 2.0;
        self.data.records.saturating_add(inserts as u64).saturating_add(1).min(MOST)
    }

    /// The workload of a family whose part of a specification has these keys.
    pub fn of(spec: &Spec) -> Result<KvWorkload, SpecError> {
        spec.part()
    }

    /// Whether a whole replay leaves one state, whatever the number of threads. It may not if a store may
    /// roll transactions back.
    pub fn leaves_one_state(&self, common: &Spec) -> bool {
        // A kind of another family is not known here.
        let overwrites = |(name, _): (&str, f64)| SessionKind::from_name(name).is_none_or(SessionKind::overwrites);
        self.transactions.is_none() && (self.access.ordered_writes || !common.kinds().into_iter().any(overwrites))
    }
}

/// The share of a kind among all sessions, from 0 to 1.
fn share(common: &Spec, kind: SessionKind) -> f64 {
    let kinds = common.kinds();
    let total: f64 = kinds.iter().map(|(_, share)| share).sum();
    // The sum of decimal fractions that add up to 1 is not always 1. YCSB takes the share as it is.
    let total = if (total - 1.0).abs() < 1e-9 { 1.0 } else { total };
    kinds.iter().find(|(name, _)| *name == kind.name()).map_or(0.0, |(_, share)| share / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key space was that of the file's sessions and records, whatever the settings changed.
    #[test]
    fn the_key_space_follows_records_sessions_and_mix() {
        let text = "name = 't'\nfamily = 'kv'\nsessions = 1000\n[data]\nrecords = 100\n[access]\n\
                    distribution = 'zipfian'\n[mix]\nscan = 95\ninsert = 5\n";
        let key_space = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
            let spec = SpecOf::<KvWorkload>::parse_with(text, "t.toml", &settings).unwrap();
            spec.own.access.key_space
        };
        assert_eq!(key_space(&[]), 201);
        assert_eq!(key_space(&["sessions=50000", "data.records=200"]), 5_201);
        assert_eq!(key_space(&["mix.insert=0"]), 101);
        assert_eq!(key_space(&["access.key_space=777"]), 777);
        assert_eq!(key_space(&["access.distribution=uniform"]), 0);
        // A longer trace of the same specification is the same workload.
        let spec = Spec::parse(text, "t.toml").unwrap();
        let longer = Spec { sessions: 9_000, ..spec.clone() };
        assert_eq!(Spec::parse(&longer.to_toml().unwrap(), "u.toml").unwrap().workload_id(), spec.workload_id());
    }

    #[test]
    fn one_state_is_left_when_no_record_is_written_twice_at_once() {
        for (mix, ordered, expect) in [
            ("read = 1\ninsert = 1", false, true),
            ("read = 1\nupdate = 1", false, false),
            ("read_modify_write = 1", true, true),
            ("read = 1\ndelete = 0", false, true),
            ("read_modify_write = 1\n[transactions]", true, false),
        ] {
            let text = format!(
                "name = 't'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 9\n[access]\nordered_writes = {ordered}\n\
                 [mix]\n{mix}\n"
            );
            let spec = SpecOf::<KvWorkload>::parse(&text, "t.toml").unwrap();
            assert_eq!(spec.own.leaves_one_state(&spec.common), expect, "{mix}");
        }
    }
}
