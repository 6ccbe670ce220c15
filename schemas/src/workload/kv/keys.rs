//! The keys of records: YCSB's, so that a table that YCSB has loaded holds the same records.

use serde::{Deserialize, Serialize};

use super::Data;

/// How the number in a key follows from the number of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOrder {
    /// The hash of the record's number: records that follow each other are far apart.
    #[default]
    Hashed,
    /// The same for go-ycsb, which hashes the bytes of the number from the highest one on. So its tables
    /// have other keys than YCSB's.
    HashedGo,
    /// The record's number itself.
    Ordered,
}

/// What every key begins with.
const PREFIX: &str = "user";

/// The keys of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    order: KeyOrder,
    digits: usize,
}

impl Keys {
    /// The keys of a data set.
    pub fn new(data: &Data) -> Keys {
        Keys { order: data.key_order, digits: data.key_digits as usize }
    }

    /// The number in the key of a record.
    #[inline]
    pub fn number(&self, record: u64) -> u64 {
        match self.order {
            KeyOrder::Hashed => hash(record),
            KeyOrder::HashedGo => hash(record.swap_bytes()),
            KeyOrder::Ordered => record,
        }
    }

    /// The key with this number, in place of what `key` holds.
    pub fn write(&self, number: u64, key: &mut String) {
        use std::fmt::Write;
        key.clear();
        // A string takes any text.
        let _ = write!(key, "{PREFIX}{number:0width$}", width = self.digits);
    }

    /// The key of a record.
    pub fn key(&self, record: u64) -> String {
        let mut key = String::new();
        self.write(self.number(record), &mut key);
        key
    }

    /// The number in a key; None if the key is not one of these.
    #[inline]
    pub fn parse(&self, key: &str) -> Option<u64> {
        let digits = key.strip_prefix(PREFIX)?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok()
    }

    /// Where the key with this number stands among all keys, which are ordered as texts.
    pub fn place(&self, number: u64) -> KeyPlace {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        // Zeros in front make keys equally long. Behind the number, they change no order.
        let digits = digits.max(self.digits.min(DIGITS_MAX));
        KeyPlace { aligned: number * 10u64.pow((DIGITS_MAX - digits) as u32), digits: digits as u8 }
    }
}

/// No number in a key has more digits: it has at most 63 bits.
const DIGITS_MAX: usize = 19;

/// A place in the order of keys: the number as if it were followed by zeros, then, for a key that
/// begins with the other, the number of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPlace {
    aligned: u64,
    digits: u8,
}

/// The keys of a fragment: from the first one on, up to the first one of the next fragment. The
/// outer fragments go on to both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyRange {
    /// The first key, in this range.
    pub from: Option<KeyPlace>,
    /// The first key after the range.
    pub to: Option<KeyPlace>,
}

impl KeyRange {
    /// Whether a key is in the range.
    #[inline]
    pub fn contains(&self, place: KeyPlace) -> bool {
        self.from.is_none_or(|from| from <= place) && self.to.is_none_or(|to| place < to)
    }

    /// Whether every key is in the range.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether no key is in the range.
    pub fn is_empty(&self) -> bool {
        matches!((self.from, self.to), (Some(from), Some(to)) if to <= from)
    }
}

/// FNV-1a over the eight bytes of a number, from the lowest one on, as a number that is not negative
/// in two's complement: YCSB's hash of keys and ranks.
#[inline]
pub fn hash(number: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for byte in number.to_le_bytes() {
        hash = (hash ^ byte as u64).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).wrapping_abs() as u64 & i64::MAX as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(order: KeyOrder, digits: usize) -> Keys {
        Keys { order, digits }
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        let hashed = keys(KeyOrder::Hashed, 1);
        // The keys of the first records of any table that YCSB loads.
        for (record, key) in
            [(0, "user6284781860667377211"), (1, "user8517097267634966620"), (2, "user1820151046732198393")]
        {
            assert_eq!(hashed.key(record), key);
            assert_eq!(hashed.parse(key), Some(hashed.number(record)));
        }
        // The same of go-ycsb 1.0.1.
        let go = keys(KeyOrder::HashedGo, 1);
        for (record, key) in
            [(0, "user6284781860667377211"), (1, "user6284782960179005422"), (2, "user6284784059690633633")]
        {
            assert_eq!(go.key(record), key);
        }
        assert_eq!(keys(KeyOrder::Ordered, 1).key(17), "user17");
        assert_eq!(keys(KeyOrder::Ordered, 4).key(17), "user0017");
        assert_eq!(keys(KeyOrder::Ordered, 4).parse("user0017"), Some(17));
        for foreign in ["user", "user-1", "17", "user1x", "user99999999999999999999999", "users1"] {
            assert_eq!(hashed.parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn places_are_ordered_as_texts() {
        for digits in [1, 3, 20, 24] {
            let keys = keys(KeyOrder::Ordered, digits);
            let mut numbers: Vec<u64> =
                (0..120).chain([999, 1_000, 10_000, i64::MAX as u64, i64::MAX as u64 / 10]).collect();
            numbers.extend((0..200).map(hash));
            let mut by_text = numbers.clone();
            by_text.sort_by_key(|number| keys.key(*number));
            by_text.dedup();
            numbers.sort_by_key(|number| keys.place(*number));
            numbers.dedup();
            assert_eq!(numbers, by_text, "{digits} digits");
        }
    }
}
