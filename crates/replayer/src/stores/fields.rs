//! The fields of records, for the stores that serve `kv`: their names, the places of a mask, and
//! what an answer says of them.

use schemas::spec::Spec;
use schemas::vocabulary::kv::{ABSENT, Found, Operation};
use schemas::workload::kv::SessionKind;

use super::kv::KvData;
use super::url::StoreUrl;
use super::{Answer, OperationError, StoreError};
use crate::source::Source;

/// What the name of a field begins with, as in YCSB.
const PREFIX: &str = "field";

/// The records of a trace set, with the names of their fields. Operations ask for no others: the
/// reader of the trace set refuses them.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// The records.
    pub data: KvData,
    names: Vec<String>,
}

impl Fields {
    /// Those of a trace set.
    pub fn of(source: &Source) -> Fields {
        let data = KvData::of(source);
        let names = (0..data.data.fields).map(|field| format!("{PREFIX}{field}")).collect();
        Fields { data, names }
    }

    /// The name of a field.
    pub fn name(&self, field: u32) -> &str {
        &self.names[field as usize]
    }

    /// The names of all fields, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The field with this name; None if records have no such field.
    pub fn place(&self, name: &[u8]) -> Option<u32> {
        let digits = std::str::from_utf8(name).ok()?.strip_prefix(PREFIX)?;
        digits.parse().ok().filter(|field| *field < self.data.data.fields)
    }

    /// Whether an operation asks for every field.
    pub fn are_all(&self, mask: u64) -> bool {
        mask == self.data.data.all_fields()
    }

    /// The key of the record of an operation, in place of what `key` holds.
    pub fn key(&self, operation: &Operation, key: &mut String) {
        self.data.keys.write(self.data.keys.number(operation.key), key);
    }

    /// Puts what an operation writes into a field in place of what `text` holds.
    pub fn written(&self, operation: &Operation, field: u32, text: &mut String) {
        text.clear();
        self.data.values.written(operation.id, operation.amount, field, text);
    }

    /// Adds a record of a scan to an answer: the number in its key. Its fields follow.
    pub fn see_key(&self, key: &[u8], answer: &mut Answer) {
        let number = std::str::from_utf8(key).ok().and_then(|key| self.data.keys.parse(key));
        answer.values.push(number.map_or(-1, |number| number as i64));
    }

    /// Adds the fields of a record to an answer, in ascending order: None is a field without a value.
    pub fn see<'a>(&self, fields: impl Iterator<Item = (u32, Option<&'a [u8]>)>, answer: &mut Answer) {
        let Answer { values, payload_bytes, .. } = answer;
        let numbers = fields.map(|(field, value)| {
            *payload_bytes += value.map_or(0, |value| value.len() as u64);
            (field, value.map_or(ABSENT.into(), |value| self.data.values.seen(field, value)))
        });
        Found::push(values, numbers);
    }
}

/// The fields of a mask, in ascending order.
pub(crate) fn places(mask: u64) -> impl Iterator<Item = u32> + Clone {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let place = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (place < u64::BITS).then_some(place)
    })
}

/// Why an insert did not happen.
pub(crate) fn exists(key: &str) -> OperationError {
    OperationError::Failed(format!("record {key} exists already"))
}

/// Why an update or a delete did not happen.
pub(crate) fn is_missing(key: &str) -> OperationError {
    OperationError::Failed(format!("record {key} does not exist"))
}

/// Why begin, commit and abort cannot be executed like operations on records. The worker calls the methods
/// of the connection for them instead.
pub(crate) const NO_OPERATION_ON_A_RECORD: &str = "is no operation on a record";

/// Why a record cannot be digested or adopted.
pub(crate) fn lacks_field(key: &str, field: &str) -> String {
    format!("record {key} has no {field}")
}

/// Whether the sessions of a trace set scan.
pub(crate) fn has_scans(source: &Source) -> bool {
    asks_for_scans(&source.manifest.spec)
}

/// Whether the sessions of a workload scan.
pub(crate) fn asks_for_scans(spec: &Spec) -> bool {
    spec.kinds().iter().any(|(name, _)| *name == SessionKind::Scan.name())
}

/// Refuses to digest what a trace set leaves if that depends on the order of writes.
pub(crate) fn check_one_state(url: &StoreUrl, source: &Source) -> Result<(), StoreError> {
    let workload = source.records();
    match workload.leaves_one_state(&source.manifest.spec) {
        true => Ok(()),
        false if workload.transactions.is_some() => Err(StoreError::usage(
            url,
            format!(
                "has no single final state to digest: a store may roll transactions of {} back; generate it without \
                 [transactions]",
                source.folder.display()
            ),
        )),
        false => Err(StoreError::usage(
            url,
            format!(
                "has no single final state to digest: writes of one record of {} do not wait for each other; \
                 generate it with access.ordered_writes = true",
                source.folder.display()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn a_mask_names_its_places() {
        for (mask, expect) in [(0, &[][..]), (1, &[0]), (0b1010_0001, &[0, 5, 7]), (1 << 62, &[62])] {
            assert_eq!(places(mask).collect::<Vec<u32>>(), expect);
        }
    }
}
