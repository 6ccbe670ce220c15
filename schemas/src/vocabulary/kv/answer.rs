//! What a read or a scan observed, as the numbers of a log.
//!
//! | operation | observed |
//! |---|---|
//! | `read` of a record that does not exist | nothing |
//! | `read` of a record | a mask, then a number for each bit of it, from the lowest bit on |
//! | `scan` | for each record its number in the key, then as for `read` |
//!
//! The mask has a bit for each field that was read and does not have its initial value. The number
//! is the id of the write that it came from, [`UNVERIFIABLE`] or [`ABSENT`]. So a record with its
//! initial values is a single 0.
//!
//! In a data set with balances, the balance that was read follows the numbers of its record. All bits of
//! the mask are then inverted, so that it is a negative number.

use super::{FIELDS_MAX, WriteId};

/// In place of an id: a value that is too short to begin with one.
pub const UNVERIFIABLE: i64 = -1;

/// In place of an id: the record exists, but the field has no value. No write leaves that.
pub const ABSENT: i64 = -2;

/// What was seen of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// 0 for the initial value, the id of a write, [`UNVERIFIABLE`] or [`ABSENT`].
    pub number: i64,
    /// The balance, if the field has one.
    pub balance: Option<i64>,
}

impl From<i64> for Seen {
    fn from(number: i64) -> Seen {
        Seen { number, balance: None }
    }
}

/// A record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    mask: u64,
    numbers: &'a [i64],
    balance: Option<i64>,
}

/// An answer that does not have the shape of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the observed values are not those of a record")]
pub struct Malformed;

impl<'a> Found<'a> {
    /// Adds to `values` what was read of a record: for each field its place and what was seen of it,
    /// or only the number. Fields come in ascending order.
    #[inline]
    pub fn push<S: Into<Seen>>(values: &mut Vec<i64>, fields: impl Iterator<Item = (u32, S)>) {
        let at = values.len();
        values.push(0);
        let (mut mask, mut known) = (0i64, None);
        for (field, seen) in fields {
            let Seen { number, balance } = seen.into();
            if number != 0 {
                mask |= 1 << field;
                values.push(number);
            }
            known = known.or(balance);
        }
        if let Some(balance) = known {
            mask = !mask;
            values.push(balance);
        }
        values[at] = mask;
    }

    /// Whether the first record of an answer to a read has a balance.
    #[inline]
    pub(super) fn begins_with_balance(observed: &[i64]) -> bool {
        observed.first().is_some_and(|mask| *mask < 0)
    }

    /// What a read observed; None if the record does not exist.
    pub fn read(observed: &'a [i64]) -> Result<Option<Found<'a>>, Malformed> {
        if observed.is_empty() {
            return Ok(None);
        }
        let (found, rest) = Found::split(observed)?;
        if rest.is_empty() { Ok(Some(found)) } else { Err(Malformed) }
    }

    fn split(observed: &'a [i64]) -> Result<(Found<'a>, &'a [i64]), Malformed> {
        let (first, rest) = observed.split_first().ok_or(Malformed)?;
        let mask = if *first < 0 { !first } else { *first } as u64;
        let (numbers, rest) = rest.split_at_checked(mask.count_ones() as usize).ok_or(Malformed)?;
        if *first >= 0 {
            return Ok((Found { mask, numbers, balance: None }, rest));
        }
        let (balance, rest) = rest.split_first().ok_or(Malformed)?;
        Ok((Found { mask, numbers, balance: Some(*balance) }, rest))
    }

    /// The balance that was read; None if the data set has none, or the field that holds it was not
    /// read or is not readable.
    pub fn balance(&self) -> Option<i64> {
        self.balance
    }

    /// The fields with other values than the initial ones: the place, and the id of the write that
    /// was seen; None if the value was too short for an id, or absent.
    pub fn written(&self) -> impl Iterator<Item = (u32, Option<WriteId>)> + '_ {
        let places = (0..FIELDS_MAX).filter(|field| self.mask >> field & 1 == 1);
        places.zip(self.numbers).map(|(field, number)| (field, WriteId::from_number(*number)))
    }

    /// The first field without a value, if there is one.
    pub fn first_absent(&self) -> Option<u32> {
        (0..FIELDS_MAX).find(|field| self.of(*field) == ABSENT)
    }

    /// What was seen of a field: 0 for its initial value, an id, [`UNVERIFIABLE`] or [`ABSENT`].
    pub fn of(&self, field: u32) -> i64 {
        if self.mask >> field & 1 == 0 {
            return 0;
        }
        let before = (self.mask & ((1 << field) - 1)).count_ones();
        self.numbers.get(before as usize).copied().unwrap_or_default()
    }

    /// The fields with other values than the initial ones, a bit each.
    pub fn mask(&self) -> u64 {
        self.mask
    }
}

/// The records that a scan returned, each with the number in its key.
#[derive(Debug, Clone)]
pub struct FoundRecords<'a>(&'a [i64]);

impl<'a> FoundRecords<'a> {
    /// What a scan observed.
    pub fn new(observed: &'a [i64]) -> FoundRecords<'a> {
        FoundRecords(observed)
    }
}

impl<'a> Iterator for FoundRecords<'a> {
    type Item = Result<(i64, Found<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (number, rest) = self.0.split_first()?;
        match Found::split(rest) {
            Ok((found, rest)) => {
                self.0 = rest;
                Some(Ok((*number, found)))
            }
            Err(malformed) => {
                self.0 = &[];
                Some(Err(malformed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_found() {
        let mut values = Vec::new();
        assert_eq!(Found::read(&values), Ok(None));
        Found::push(&mut values, [(0, 7), (3, 0), (5, UNVERIFIABLE), (62, 9)].into_iter());
        let found = Found::read(&values).unwrap().unwrap();
        let ids: Vec<(u32, Option<i64>)> =
            found.written().map(|(field, id)| (field, id.map(WriteId::number))).collect();
        assert_eq!(ids, [(0, Some(7)), (5, None), (62, Some(9))]);
        assert_eq!([0, 3, 5, 62].map(|field| found.of(field)), [7, 0, UNVERIFIABLE, 9]);
        assert_eq!(found.first_absent(), None);
        let mut lacking = Vec::new();
        Found::push(&mut lacking, [(0, 7), (3, ABSENT), (62, ABSENT)].into_iter());
        assert_eq!(Found::read(&lacking).unwrap().unwrap().first_absent(), Some(3));
        let mut initial = Vec::new();
        Found::push(&mut initial, [(0, 0), (1, 0)].into_iter());
        assert_eq!(initial, [0]);

        let scanned = [&[11][..], &values, &[12], &initial].concat();
        let records: Vec<(i64, u64)> =
            FoundRecords::new(&scanned).map(|one| one.map(|(n, f)| (n, f.mask())).unwrap()).collect();
        assert_eq!(records, [(11, 1 | 1 << 5 | 1 << 62), (12, 0)]);
    }

    #[test]
    fn a_balance_follows_its_record() {
        let (mut one, mut initial) = (Vec::new(), Vec::new());
        Found::push(&mut one, [(0, Seen { number: 7, balance: Some(-12) }), (3, 9.into())].into_iter());
        Found::push(&mut initial, [(0, Seen { number: 0, balance: Some(1_000) })].into_iter());
        assert_eq!((one.as_slice(), initial.as_slice()), (&[!9, 7, 9, -12][..], &[!0, 1_000][..]));
        let found = Found::read(&one).unwrap().unwrap();
        assert_eq!((found.mask(), found.of(0), found.of(3), found.balance()), (9, 7, 9, Some(-12)));
        let found = Found::read(&initial).unwrap().unwrap();
        assert_eq!((found.mask(), found.balance()), (0, Some(1_000)));

        let scanned = [&[11][..], &one, &[12], &initial].concat();
        let balances: Vec<Option<i64>> = FoundRecords::new(&scanned).map(|one| one.unwrap().1.balance()).collect();
        assert_eq!(balances, [Some(-12), Some(1_000)]);
    }

    #[test]
    fn answers_of_another_shape_are_refused() {
        for wrong in [&[1][..], &[-1], &[0, 0], &[3, 5], &[1, 5, 6], &[!1, 5], &[!0, 5, 6]] {
            assert_eq!(Found::read(wrong), Err(Malformed), "{wrong:?}");
        }
        let mut records = FoundRecords::new(&[4, 0, 5, 1]);
        assert!(records.next().unwrap().is_ok());
        assert_eq!(records.next(), Some(Err(Malformed)));
        assert_eq!(records.next(), None);
    }
}
