//! The `kv` family: records with a key and some fields, as in YCSB.

pub mod dataset;
mod digest;
pub mod keys;
mod rules;
mod statistics;
pub mod values;

use serde::{Deserialize, Serialize};

use super::{ActorWords, Closing, Workload};
use crate::spec::{Spec, SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::kv::{FIELDS_MAX, Kv, Verb, WriteId};
use crate::words::thousands;

pub use keys::{KeyOrder, Keys};
pub use statistics::KvStatistics;
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
}

/// The records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// How many records there are (YCSB's `recordcount` less `insertstart`).
    pub records: u64,
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

/// No key has more digits.
const KEY_DIGITS_MAX: u32 = 200;

/// The most bytes of a value.
const FIELD_BYTES_MAX: u32 = 16 << 20;

/// The most records that a scan may ask for.
const SCAN_LENGTH_MAX: u32 = 1_000_000;

impl Workload for KvWorkload {
    const FAMILY: &'static str = "kv";
    const KEYS: &'static [&'static str] = &["data", "access"];
    const ACTORS: ActorWords = ActorWords { plural: "clients", keys: &["access.clients"] };
    type Vocabulary = Kv;
    type Statistics = KvStatistics;

    fn check(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
        check_data(spec)?;
        check_access(&spec.own.access)?;
        check_key_space(&spec.own)?;
        check_mix(spec)?;
        check_deletes(spec)
    }

    fn rules(
        spec: &SpecOf<KvWorkload>,
        statistics: &KvStatistics,
        fragment: u32,
    ) -> Result<Box<dyn Rules<Kv>>, String> {
        Ok(Box::new(rules::KvRules::new(spec, statistics, fragment)?))
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

    /// Whether a whole replay leaves one state, whatever the number of threads.
    pub fn leaves_one_state(common: &Spec, access: &Access) -> bool {
        let overwrites = |(name, _): (&str, f64)| SessionKind::from_name(name).is_some_and(SessionKind::overwrites);
        access.ordered_writes || !common.kinds().into_iter().any(overwrites)
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

fn check_data(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
    let data = &spec.own.data;
    if data.records == 0 || data.records > u32::MAX as u64 {
        return wrong("data.records", format!("{} is not between 1 and {}", data.records, u32::MAX));
    }
    if spec.common.fragments as u64 > data.records || spec.common.fragments > WriteId::FRAGMENTS_MAX {
        let message = format!(
            "{} is more than data.records ({}) or {}; every fragment needs a record",
            spec.common.fragments,
            data.records,
            WriteId::FRAGMENTS_MAX
        );
        return wrong("fragments", message);
    }
    if spec.common.sessions > WriteId::SESSIONS_MAX {
        return wrong("sessions", format!("{} is more than {}", spec.common.sessions, WriteId::SESSIONS_MAX));
    }
    if data.first_record > i64::MAX as u64 / 2 {
        return wrong("data.first_record", format!("{} is more than {}", data.first_record, i64::MAX / 2));
    }
    if data.fields == 0 || data.fields > FIELDS_MAX {
        return wrong("data.fields", format!("{} is not between 1 and {FIELDS_MAX}", data.fields));
    }
    if data.field_bytes == 0 || data.field_bytes > FIELD_BYTES_MAX {
        return wrong("data.field_bytes", format!("{} is not between 1 and {FIELD_BYTES_MAX}", data.field_bytes));
    }
    if data.field_bytes_min == 0 || data.field_bytes_min > data.field_bytes {
        let message = format!("{} is not between 1 and data.field_bytes ({})", data.field_bytes_min, data.field_bytes);
        return wrong("data.field_bytes_min", message);
    }
    if data.key_digits == 0 || data.key_digits > KEY_DIGITS_MAX {
        return wrong("data.key_digits", format!("{} is not between 1 and {KEY_DIGITS_MAX}", data.key_digits));
    }
    Ok(())
}

fn check_access(access: &Access) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
    for (key, share) in [
        ("access.hotspot_data_share", access.hotspot_data_share),
        ("access.hotspot_access_share", access.hotspot_access_share),
    ] {
        if !(0.0..=1.0).contains(&share) {
            return wrong(key, format!("{share} is not between 0 and 1"));
        }
    }
    if !(access.exponential_percentile > 0.0 && access.exponential_percentile < 100.0) {
        let message = format!("{} is not more than 0 and less than 100", access.exponential_percentile);
        return wrong("access.exponential_percentile", message);
    }
    if !(access.exponential_data_share > 0.0 && access.exponential_data_share <= 1.0) {
        let message = format!("{} is not in (0, 1]", access.exponential_data_share);
        return wrong("access.exponential_data_share", message);
    }
    if access.scan_length_max == 0 || access.scan_length_max > SCAN_LENGTH_MAX {
        let message = format!("{} is not between 1 and {SCAN_LENGTH_MAX}", access.scan_length_max);
        return wrong("access.scan_length_max", message);
    }
    if access.scan_length_min == 0 || access.scan_length_min > access.scan_length_max {
        let (least, most) = (access.scan_length_min, access.scan_length_max);
        let message = format!("{least} is not between 1 and access.scan_length_max ({most})");
        return wrong("access.scan_length_min", message);
    }
    if access.clients == 0 || access.clients > u32::MAX as u64 {
        return wrong("access.clients", format!("{} is not between 1 and {}", access.clients, u32::MAX));
    }
    Ok(())
}

fn check_key_space(own: &KvWorkload) -> Result<(), Wrong> {
    let (space, records) = (own.access.key_space, own.data.records);
    if own.access.distribution == Distribution::Zipfian && space != 0 && space < records {
        let message = format!(
            "{space} is less than data.records ({records}), so that some records would never be drawn; use more, or 0 \
             for the number that YCSB takes"
        );
        return Err(Wrong::new("access.key_space", message));
    }
    Ok(())
}

fn check_mix(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
    for name in spec.common.mix.keys() {
        if SessionKind::from_name(name).is_none() {
            let known = SessionKind::ALL.map(SessionKind::name).join(", ");
            return wrong(&format!("mix.{name}"), format!("is not a kind of session; use one of {known}"));
        }
    }
    let asks_for = |kind: SessionKind| spec.common.kinds().iter().any(|(name, _)| *name == kind.name());
    if asks_for(SessionKind::Insert) && spec.own.data.key_order == KeyOrder::Ordered && spec.common.fragments > 1 {
        let message = "new records have the highest keys, so they would all be in the last fragment; use 1 fragment, \
                       or data.key_order = \"hashed\"";
        return wrong("fragments", message.into());
    }
    if spec.own.access.clients < spec.common.fragments as u64 {
        let message = format!("{} is less than fragments ({})", spec.own.access.clients, spec.common.fragments);
        return wrong("access.clients", message);
    }
    Ok(())
}

/// Refuses a mix whose deletes leave no record that a session could draw.
fn check_deletes(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    let sessions = spec.common.sessions as f64;
    let of = |kind: SessionKind| sessions * share(&spec.common, kind);
    let (inserts, deletes) = (of(SessionKind::Insert), of(SessionKind::Delete));
    let draws_inserted = !matches!(
        spec.own.access.distribution,
        Distribution::Uniform | Distribution::Sequential | Distribution::Hotspot
    );
    let records = spec.own.data.records as f64 + if draws_inserted { inserts } else { 0.0 };
    // The numbers are drawn, so they may differ by some deviations. Generation finds the rest.
    if deletes - 6.0 * (deletes + inserts).sqrt() <= records {
        return Ok(());
    }
    let hint = match draws_inserted {
        true => "raise data.records, lower mix.delete, raise mix.insert, or generate fewer sessions",
        false => {
            "raise data.records, lower mix.delete, generate fewer sessions, or use mix.insert with \
             access.distribution = \"latest\", which draws inserted records too"
        }
    };
    let message = format!(
        "some {} of {} sessions delete a record, and only {} can be drawn; {hint}",
        thousands(deletes as u64),
        thousands(spec.common.sessions),
        thousands(records as u64)
    );
    Err(Wrong::new("mix.delete", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(changes: &str, mix: &str) -> Option<String> {
        let text = format!("name = 't'\nfamily = 'kv'\nsessions = 5\nfragments = 2\n{changes}\n[mix]\n{mix}\n");
        SpecOf::<KvWorkload>::parse(&text, "t.toml").err().map(|e| e.to_string())
    }

    #[test]
    fn values_that_contradict_each_other_are_refused_by_key() {
        let data = "[data]\nrecords = 100\n";
        assert_eq!(refused(data, "read = 1"), None);
        for (more, mix, key) in [
            ("", "", "mix"),
            ("", "view_profile = 1", "mix.view_profile"),
            ("fields = 64", "read = 1", "data.fields"),
            ("fields = 0", "read = 1", "data.fields"),
            ("field_bytes_min = 101", "read = 1", "data.field_bytes_min"),
            ("members = 3", "read = 1", "members"),
            ("key_order = 'ordered'", "insert = 1", "fragments"),
            ("[access]\nscan_length_min = 1001", "scan = 1", "access.scan_length_min"),
            ("[access]\ndistribution = 'zipfian'\nkey_space = 99", "read = 1", "access.key_space"),
            ("[access]\nclients = 1", "read = 1", "access.clients"),
            ("[access]\nhotspot_data_share = 1.5", "read = 1", "access.hotspot_data_share"),
            ("[access]\ndistribution = 'zipf'", "read = 1", "distribution"),
        ] {
            let error = refused(&format!("{data}{more}"), mix).unwrap_or_else(|| panic!("{more} {mix} is accepted"));
            assert!(error.contains("t.toml") && error.contains(key), "{more} {mix}: {error}");
        }
        let few = refused("[data]\nrecords = 1", "read = 1").unwrap();
        assert!(few.contains("fragments: 2 is more than data.records (1)"), "{few}");
    }

    /// Generation took minutes until it found that no record was left.
    #[test]
    fn deletes_of_more_records_than_there_are_are_refused() {
        let refused = |mix: &str, distribution: &str| {
            let text = format!(
                "name = 't'\nfamily = 'kv'\nsessions = 1000\n[data]\nrecords = 100\n[access]\n\
                 distribution = '{distribution}'\n[mix]\n{mix}\n"
            );
            SpecOf::<KvWorkload>::parse(&text, "t.toml").err().map(|error| error.to_string())
        };
        assert_eq!(
            refused("delete = 1", "zipfian").unwrap(),
            "t.toml: mix.delete: some 1,000 of 1,000 sessions delete a record, and only 100 can be drawn; raise \
             data.records, lower mix.delete, raise mix.insert, or generate fewer sessions"
        );
        let error = refused("delete = 1\ninsert = 1", "uniform").unwrap();
        assert!(error.contains("only 100 can be drawn") && error.contains("\"latest\""), "{error}");
        assert_eq!(refused("delete = 1\ninsert = 1", "latest"), None);
        assert_eq!(refused("delete = 8\nread = 92", "uniform"), None);
    }

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
        ] {
            let text = format!(
                "name = 't'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 9\n[access]\nordered_writes = {ordered}\n\
                 [mix]\n{mix}\n"
            );
            let spec = SpecOf::<KvWorkload>::parse(&text, "t.toml").unwrap();
            assert_eq!(KvWorkload::leaves_one_state(&spec.common, &spec.own.access), expect, "{mix}");
        }
    }
}
