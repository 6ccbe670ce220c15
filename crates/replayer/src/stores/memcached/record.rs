//! A record as an item: the JSON object that YCSB's binding stores, `{"field0": "…", …}`.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

use schemas::vocabulary::kv::Operation;
use serde::{Deserialize, Serialize};

use crate::stores::fields::{Fields, places};

/// What the key of an item begins with: YCSB's name of the table.
const TABLE: &str = "usertable-";

/// The key of a record's item, in place of what `key` holds.
pub fn item_key(record: &str, key: &mut String) {
    key.clear();
    key.push_str(TABLE);
    key.push_str(record);
}

/// The key of the record of an item; None if the item is no record's.
pub fn record_key(key: &str) -> Option<&str> {
    key.strip_prefix(TABLE)
}

/// A text that borrows from the item, if it can.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The fields of a record by their names.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record<'a>(#[serde(borrow)] BTreeMap<Text<'a>, Text<'a>>);

impl<'a> Record<'a> {
    /// The record in an item.
    pub fn parse(item: &'a [u8]) -> Result<Record<'a>, String> {
        serde_json::from_slice(item).map_err(|error| format!("an item is not the JSON object of a record: {error}"))
    }

    /// The record as an item.
    pub fn item(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|error| unreachable!("texts are JSON: {error}"))
    }

    /// The values of some fields; None for a field that is not there.
    pub fn values(&self, mask: u64, fields: &Fields) -> impl Iterator<Item = (u32, Option<&[u8]>)> {
        places(mask).map(|field| (field, self.0.get(fields.name(field)).map(|text| text.0.as_bytes())))
    }

    /// Replaces the values that an operation writes.
    pub fn write(&mut self, operation: &Operation, fields: &'a Fields) {
        for field in places(operation.fields) {
            let mut value = String::new();
            fields.written(operation, field, &mut value);
            self.0.insert(Text(Cow::Borrowed(fields.name(field))), Text(Cow::Owned(value)));
        }
    }
}

/// The item of a record with all fields. `value` puts a field's value, which needs no escapes, in
/// place of what the text holds.
pub fn whole(fields: &Fields, mut value: impl FnMut(u32, &mut String)) -> Vec<u8> {
    let (mut item, mut text) = (String::from("{"), String::new());
    for (field, name) in (0..).zip(fields.names()) {
        value(field, &mut text);
        let comma = if field == 0 { "" } else { "," };
        item.extend([comma, "\"", name, "\":\"", &text, "\""]);
    }
    item.push('}');
    item.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_ycsb_come_back_as_they_were() {
        let item = br#"{"field0":"a \"quote\" \\ and \u0001","field1":"plain"}"#;
        let record = Record::parse(item).unwrap();
        assert_eq!(record.item(), item);
        assert_eq!(record.0["field0"].0, "a \"quote\" \\ and \u{1}");
        for wrong in [&b"[]"[..], b"{\"field0\": 7}", b"{", b""] {
            assert!(Record::parse(wrong).unwrap_err().contains("not the JSON object"), "{wrong:?}");
        }
    }
}
