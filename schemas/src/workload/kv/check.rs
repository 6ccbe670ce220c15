//! Which values of a specification are refused, and why.

use super::{Access, Distribution, KeyOrder, KvWorkload, SessionKind, Transactions, share};
use crate::spec::{SpecOf, Wrong};
use crate::vocabulary::kv::{FIELDS_MAX, WriteId};
use crate::words::thousands;

/// No key has more digits.
const KEY_DIGITS_MAX: u32 = 200;

/// The most bytes of a value.
const FIELD_BYTES_MAX: u32 = 16 << 20;

/// The most records that a scan may ask for.
const SCAN_LENGTH_MAX: u32 = 1_000_000;

/// Refuses values from which no trace set can be generated.
pub(super) fn check(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    check_records(spec)?;
    check_kinds(spec, |name| SessionKind::from_name(name).is_some(), &SessionKind::ALL.map(SessionKind::name))?;
    if spec.own.data.total_cash.is_some() {
        let message = "records of kv have no balances; remove it, or use family = \"economy\"";
        return Err(Wrong::new("data.total_cash", message.to_string()));
    }
    Ok(())
}

/// Refuses what no family on records can have.
pub(in crate::workload) fn check_records(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    check_data(spec)?;
    check_access(&spec.own.access)?;
    check_key_space(&spec.own)?;
    Transactions::check(&spec.own)?;
    check_fragments(spec)?;
    check_deletes(spec)
}

/// Refuses kinds of sessions that the family has not.
pub(in crate::workload) fn check_kinds(
    spec: &SpecOf<KvWorkload>,
    is_known: impl Fn(&str) -> bool,
    known: &[&str],
) -> Result<(), Wrong> {
    match spec.common.mix.keys().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("is not a kind of session; use one of {}", known.join(", "));
            Err(Wrong::new(format!("mix.{name}"), message))
        }
    }
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
    let (sessions, fragments) = (spec.common.sessions, u64::from(spec.common.fragments));
    if sessions.div_ceil(fragments.max(1)) > WriteId::SESSIONS_MAX {
        let message =
            format!("{sessions} is more than {} for each fragment; use more fragments", WriteId::SESSIONS_MAX);
        return wrong("sessions", message);
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

fn check_fragments(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    let wrong = |key: &str, message: String| Err(Wrong::new(key, message));
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
            ("[transactions]\nabort_share = 1.5", "read = 1", "transactions.abort_share"),
            ("[transactions]\naborts = 1", "read = 1", "aborts"),
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
}
