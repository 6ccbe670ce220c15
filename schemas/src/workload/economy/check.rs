//! Which values of a specification are refused, and why.

use super::SessionKind;
use crate::spec::{SpecOf, Wrong};
use crate::workload::kv::KvWorkload;
use crate::workload::kv::check::{check_kinds, check_records};
use crate::workload::kv::values::BALANCE_BYTES;

/// Refuses values from which no trace set can be generated.
pub(super) fn check(spec: &SpecOf<KvWorkload>) -> Result<(), Wrong> {
    check_records(spec)?;
    check_kinds(spec, |name| SessionKind::from_name(name).is_some(), &SessionKind::ALL.map(SessionKind::name))?;
    let data = &spec.own.data;
    if (data.field_bytes as usize) < BALANCE_BYTES {
        let message =
            format!("{} is less than {BALANCE_BYTES}, which the field with the balance needs", data.field_bytes);
        return Err(Wrong::new("data.field_bytes", message));
    }
    if spec.own.access.ordered_writes {
        let message = "transactions order the writes of this family, and a read would not wait; remove it";
        return Err(Wrong::new("access.ordered_writes", message.to_string()));
    }
    let kinds = spec.common.kinds().into_iter().filter_map(|(name, _)| SessionKind::from_name(name));
    let needed = kinds.map(SessionKind::records).max().unwrap_or_default();
    let needed = needed.saturating_mul(spec.common.fragments.into());
    if data.records < needed {
        let message = format!(
            "{} is less than {needed}: a session of this mix needs two records of its fragment; use more records or \
             fewer fragments",
            data.records
        );
        return Err(Wrong::new("data.records", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::spec::SpecOf;
    use crate::workload::economy::EconomyWorkload;
    use crate::workload::kv::KvWorkload;

    fn refused(changes: &str, mix: &str) -> Option<String> {
        let text = format!("name = 't'\nfamily = 'economy'\nsessions = 5\nfragments = 2\n{changes}\n[mix]\n{mix}\n");
        SpecOf::<EconomyWorkload>::parse(&text, "t.toml").err().map(|e| e.to_string())
    }

    #[test]
    fn values_that_contradict_each_other_are_refused() {
        let records = "[data]\nrecords = 10";
        assert_eq!(refused(records, "read = 1\nadjust = 1\nread_modify_write = 1"), None);
        for (changes, mix, expect) in [
            ("[data]\nrecords = 3", "adjust = 1", "data.records: 3 is less than 4"),
            ("[data]\nrecords = 0", "read = 1", "data.records: 0 is not between"),
            ("[data]\nrecords = 9\nfield_bytes = 35", "read = 1", "data.field_bytes: 35 is less than 36"),
            ("[data]\nrecords = 9\n[access]\nordered_writes = true", "read = 1", "access.ordered_writes: transactions"),
            (records, "raed = 1", "mix.raed: is not a kind of session; use one of read, update"),
        ] {
            let error = refused(changes, mix).unwrap_or_default();
            assert!(error.contains(expect), "{changes} {mix}: {error}");
        }
    }

    #[test]
    fn records_of_kv_have_no_money() {
        let text = "name = 't'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 9\ntotal_cash = 9\n[mix]\nread = 1\n";
        let error = SpecOf::<KvWorkload>::parse(text, "t.toml").unwrap_err().to_string();
        assert!(error.contains("data.total_cash: records of kv have no balances"), "{error}");
    }
}
