//! The values of fields. Each is a function of (seed, who wrote it, field), so none is stored.
//!
//! A value is ASCII text. It begins with 16 characters: the id of the write that it comes from (0
//! for an initial value) in 11 characters of 6 bits, and a check of 30 bits in 5. What follows is
//! filled up with characters that look random. A value that is shorter than 16 characters cannot
//! tell whose it is, unless it is shorter than every value that Encore writes: then no write of
//! Encore's has left it.
//!
//! In a data set with balances, the first field holds that of its record: after the 16 characters, as a
//! sign and 19 digits. The check covers it too.

use super::{Data, LengthDistribution};
use crate::spec::Spec;
use crate::vocabulary::kv::{Seen, UNVERIFIABLE, WriteId};

/// The characters of an id in a value.
const ID_CHARACTERS: usize = 11;
/// The characters of an id and its check: a value must be as long to be verified.
pub const VERIFIABLE_BYTES: usize = 16;

/// The characters of a balance.
const BALANCE_CHARACTERS: usize = 20;
/// The least length of a value that holds a balance.
pub const BALANCE_BYTES: usize = VERIFIABLE_BYTES + BALANCE_CHARACTERS;

/// The field that holds the balance of its record, in data sets with balances.
pub const BALANCE_FIELD: u32 = 0;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The number of each character of the alphabet; 64 for any other.
const NUMBERS: [u8; 256] = {
    let mut numbers = [64; 256];
    let mut at = 0;
    while at < 64 {
        numbers[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    numbers
};

/// The values of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    seed: u64,
    least: u32,
    most: u32,
    length: LengthDistribution,
    /// For each length from the least on: the share of values that are at most so long; `zipfian`
    /// only.
    shares: Vec<f64>,
    /// None if records have no balances.
    cash: Option<Cash>,
}

/// The money at first: the records have equal parts of it, and the first ones have one more each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cash {
    first_record: u64,
    each: i64,
    with_one_more: u64,
}

impl Values {
    /// The values of a specification's data set.
    pub fn new(common: &Spec, data: &Data) -> Values {
        let (least, most) = (data.field_bytes_min, data.field_bytes);
        let shares = match data.field_length {
            LengthDistribution::Zipfian => zipfian_shares((most - least + 1) as usize),
            _ => Vec::new(),
        };
        let cash = data.total_cash.map(|total| Cash {
            first_record: data.first_record,
            each: (total / data.records.max(1)) as i64,
            with_one_more: total % data.records.max(1),
        });
        Values { seed: common.seed, least, most, length: data.field_length, shares, cash }
    }

    /// The balance of a record of the data set before the first session; 0 if records have none.
    pub fn initial_balance(&self, record: u64) -> i64 {
        let Some(Cash { first_record, each, with_one_more }) = self.cash else { return 0 };
        each + i64::from(record.saturating_sub(first_record) < with_one_more)
    }

    /// Whether this field holds the balance of its record.
    #[inline]
    fn holds_balance(&self, field: u32) -> bool {
        field == BALANCE_FIELD && self.cash.is_some()
    }

    /// Whether every value is long enough to tell whose it is.
    pub fn are_verifiable(&self) -> bool {
        self.shortest() >= VERIFIABLE_BYTES
    }

    /// The length of the shortest value, in bytes.
    fn shortest(&self) -> usize {
        let least = if self.length == LengthDistribution::Constant { self.most } else { self.least };
        least as usize
    }

    /// Adds to `text` what a write writes into a field. `balance` is the new one of the record; it is
    /// not used if records have none.
    #[inline]
    pub fn written(&self, id: WriteId, balance: i64, field: u32, text: &mut String) {
        let balance = self.holds_balance(field).then_some(balance);
        self.push(id.number() as u64, id.number() as u64, balance, field, text);
    }

    /// Adds to `text` the initial value of a field of a record.
    pub fn initial(&self, record: u64, field: u32, text: &mut String) {
        let balance = self.holds_balance(field).then(|| self.initial_balance(record));
        self.push(0, record, balance, field, text);
    }

    fn push(&self, id: u64, own: u64, balance: Option<i64>, field: u32, text: &mut String) {
        let mut state = mixed(self.seed ^ mixed(own ^ (field as u64 + 1) << 57 ^ (id == 0) as u64));
        let mut left = self.length(&mut state);
        let begin = |place: usize| character(id >> (6 * place));
        let check = balance.map_or(check(id), |balance| check_with(id, balance));
        let head = (0..ID_CHARACTERS).map(begin).chain((0..5).map(|place| character(check >> (6 * place))));
        if let Some(balance) = balance {
            use std::fmt::Write;
            head.for_each(|one| text.push(one));
            // A string takes any text.
            let _ = write!(text, "{balance:+0width$}", width = BALANCE_CHARACTERS);
            left = left.saturating_sub(BALANCE_BYTES);
        } else {
            head.take(left).for_each(|one| text.push(one));
            left = left.saturating_sub(VERIFIABLE_BYTES);
        }
        while left > 0 {
            let mut bits = next(&mut state);
            for _ in 0..left.min(10) {
                text.push(character(bits));
                bits >>= 6;
            }
            left = left.saturating_sub(10);
        }
    }

    fn length(&self, state: &mut u64) -> usize {
        let length = match self.length {
            LengthDistribution::Constant => self.most,
            LengthDistribution::Uniform => {
                let choices = (self.most - self.least + 1) as u64;
                self.least + ((next(state) as u128 * choices as u128) >> 64) as u32
            }
            LengthDistribution::Zipfian => {
                let unit = (next(state) >> 11) as f64 / (1u64 << 53) as f64;
                let at = self.shares.partition_point(|share| *share < unit);
                self.most.min(self.least + at as u32)
            }
        };
        length as usize
    }

    /// What a read sees in the value of a field.
    #[inline]
    pub fn seen(&self, field: u32, value: &[u8]) -> Seen {
        if self.holds_balance(field) { self.seen_with_balance(value) } else { self.number(value).into() }
    }

    /// A value that is not one of Encore's counts as initial. If it is a number, as in tables that
    /// YCSB+T has loaded, it is the balance.
    fn seen_with_balance(&self, value: &[u8]) -> Seen {
        let balance = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i64>().ok();
        let own = value.get(VERIFIABLE_BYTES..BALANCE_BYTES).and_then(balance);
        let own = own.and_then(|balance| Some((balance, parse(value, |id| check_with(id, balance))?)));
        match own {
            Some((balance, id)) => Seen { number: id, balance: Some(balance) },
            None => Seen { number: 0, balance: balance(value.trim_ascii()) },
        }
    }

    /// Whose value this is: 0 for an initial one, an id, or [`UNVERIFIABLE`]. A value that no write
    /// of Encore's can have left counts as initial, such as those of a table that another tool has
    /// loaded.
    #[inline]
    pub fn number(&self, value: &[u8]) -> i64 {
        if value.len() < VERIFIABLE_BYTES {
            return if value.len() < self.shortest() { 0 } else { UNVERIFIABLE };
        }
        parse(value, check).unwrap_or(0)
    }
}

/// The id that a value begins with; None if what follows is not its check.
#[inline]
fn parse(value: &[u8], check: impl FnOnce(u64) -> u64) -> Option<i64> {
    let head = value.get(..VERIFIABLE_BYTES)?;
    let mut id = 0u64;
    let mut all = 0;
    for (place, one) in head[..ID_CHARACTERS].iter().enumerate() {
        let number = NUMBERS[*one as usize];
        all |= number;
        id |= (number as u64) << (6 * place);
    }
    let mut found = 0;
    for (place, one) in head[ID_CHARACTERS..].iter().enumerate() {
        let number = NUMBERS[*one as usize];
        all |= number;
        found |= (number as u64) << (6 * place);
    }
    (all < 64 && found == check(id) && id <= i64::MAX as u64).then_some(id as i64)
}

fn character(bits: u64) -> char {
    ALPHABET[(bits & 63) as usize] as char
}

/// 30 bits that a text which is not ours has by chance once in a thousand million times.
fn check(id: u64) -> u64 {
    mixed(id ^ 0x7E1C_0DE5_0F5A_17ED) >> 34
}

/// The same of an id and a balance.
fn check_with(id: u64, balance: i64) -> u64 {
    check(id ^ mixed(balance as u64 ^ 0x2545_F491_4F6C_DD1D))
}

/// The finalizer of SplitMix64.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed(*state)
}

/// The cumulated shares of ranks with the constant 0.99.
fn zipfian_shares(ranks: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut shares: Vec<f64> = (1..=ranks)
        .map(|rank| {
            sum += libm::pow(rank as f64, -0.99);
            sum
        })
        .collect();
    shares.iter_mut().for_each(|share| *share /= sum);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(least: u32, most: u32, length: LengthDistribution) -> Values {
        let text = format!(
            "name = 't'\nfamily = 'kv'\nsessions = 1\n[data]\nrecords = 1\nfield_bytes = {most}\n\
             field_bytes_min = {least}\n[mix]\nread = 1\n"
        );
        let spec = crate::spec::SpecOf::<super::super::KvWorkload>::parse(&text, "t.toml").unwrap();
        Values::new(&spec.common, &Data { field_length: length, ..spec.own.data })
    }

    fn text(values: &Values, id: WriteId, field: u32) -> String {
        let mut text = String::new();
        values.written(id, 0, field, &mut text);
        text
    }

    /// The first field holds id and balance; the others are those of a data set without balances.
    #[test]
    fn a_value_holds_the_balance_of_its_record() {
        let plain = values(1, 100, LengthDistribution::Constant);
        let rich = Values { cash: Some(Cash { first_record: 5, each: 10, with_one_more: 2 }), ..plain.clone() };
        let id = WriteId::new(7, 123, 3);
        for balance in [0, 1, -1, 999, i64::MAX, i64::MIN] {
            let mut text = String::new();
            rich.written(id, balance, 0, &mut text);
            assert_eq!(text.len(), 100);
            assert_eq!(rich.seen(0, text.as_bytes()), Seen { number: id.number(), balance: Some(balance) });
            // A balance that was changed is no write's.
            let changed = text.replacen('0', "1", 1);
            assert!(changed == text || rich.seen(0, changed.as_bytes()).number == 0);
        }
        let (mut own, mut others) = (String::new(), String::new());
        rich.written(id, 12, 1, &mut own);
        plain.written(id, 0, 1, &mut others);
        assert_eq!(own, others);
        assert_eq!(rich.seen(1, own.as_bytes()), id.number().into());
        assert_eq!([5, 6, 7, 8].map(|record| rich.initial_balance(record)), [11, 11, 10, 10]);
        let mut initial = String::new();
        rich.initial(6, 0, &mut initial);
        assert_eq!(rich.seen(0, initial.as_bytes()), Seen { number: 0, balance: Some(11) });
        assert_eq!(&initial[16..36], "+0000000000000000011");
        // A table that YCSB+T has loaded, and one with other values.
        assert_eq!(rich.seen(0, b"1000"), Seen { number: 0, balance: Some(1_000) });
        assert_eq!(rich.seen(0, b"some text"), Seen { number: 0, balance: None });
        // A value that is too short for a balance gets the room.
        let mut short = String::new();
        let text = Values { least: 1, most: 20, ..rich.clone() };
        text.written(id, 3, 0, &mut short);
        assert_eq!(short.len(), BALANCE_BYTES);
    }

    #[test]
    fn a_value_says_whose_it_is() {
        let values = values(1, 100, LengthDistribution::Constant);
        for id in [WriteId::new(0, 0, 0), WriteId::new(7, 123_456_789, 3), WriteId::new(32_767, (1 << 36) - 1, 4_000)] {
            let written = text(&values, id, 3);
            assert_eq!((written.len(), values.number(written.as_bytes())), (100, id.number()));
            assert_ne!(written, text(&values, id, 4));
            // Cut off or changed, it counts as no write's.
            assert_eq!(values.number(&written.as_bytes()[..15]), 0);
            let mut changed = written.into_bytes();
            changed[4] ^= 1;
            assert_eq!(values.number(&changed), 0);
        }
        let mut initial = String::new();
        values.initial(17, 0, &mut initial);
        assert_eq!((initial.len(), values.number(initial.as_bytes())), (100, 0));
        let mut other = String::new();
        values.initial(18, 0, &mut other);
        assert_ne!(initial, other);
        assert_eq!(values.number(b"+5<#!2'$ a value of another tool"), 0);
    }

    /// Short values that another tool had loaded were all unverifiable, so most undone writes of kept
    /// records were not found.
    #[test]
    fn a_short_value_is_unverifiable_only_if_a_write_may_have_left_it() {
        let check = |least, most, length, value: &[u8], expect| {
            assert_eq!(values(least, most, length).number(value), expect, "{least} to {most}, {length:?}: {value:?}");
        };
        for short in [&b""[..], b"b", b"fifteen letters"] {
            check(1, 24, LengthDistribution::Constant, short, 0);
            check(16, 24, LengthDistribution::Uniform, short, 0);
        }
        for distribution in [LengthDistribution::Uniform, LengthDistribution::Zipfian] {
            check(10, 24, distribution, b"nine char", 0);
            check(10, 24, distribution, b"ten charac", UNVERIFIABLE);
            check(10, 24, distribution, b"fifteen letters", UNVERIFIABLE);
        }
        check(1, 12, LengthDistribution::Constant, b"twelve chars", UNVERIFIABLE);
        check(1, 12, LengthDistribution::Constant, b"eleven char", 0);
    }

    #[test]
    fn lengths_follow_their_distribution() {
        let lengths = |values: &Values| -> Vec<usize> {
            (0..20_000).map(|session| text(values, WriteId::new(0, session, 0), 0).len()).collect()
        };
        let uniform = lengths(&values(11, 20, LengthDistribution::Uniform));
        for length in 11..=20 {
            let share = uniform.iter().filter(|one| **one == length).count() as f64 / 20_000.0;
            assert!((share - 0.1).abs() < 0.01, "{length}: {share}");
        }
        let zipfian = lengths(&values(1, 100, LengthDistribution::Zipfian));
        let sum: f64 = (1..=100).map(|rank| libm::pow(rank as f64, -0.99)).sum();
        for length in [1, 2, 10] {
            let share = zipfian.iter().filter(|one| **one == length).count() as f64 / 20_000.0;
            assert!((share - libm::pow(length as f64, -0.99) / sum).abs() < 0.01, "{length}: {share}");
        }
        assert!(zipfian.iter().all(|length| (1..=100).contains(length)));
        assert!(values(1, 100, LengthDistribution::Constant).are_verifiable());
        assert!(!values(1, 100, LengthDistribution::Uniform).are_verifiable());
    }

    /// Loaded stores hold these values, so a change of the function is a change of format.
    #[test]
    fn the_function_is_pinned() {
        let values = values(1, 40, LengthDistribution::Constant);
        assert_eq!(text(&values, WriteId::new(1, 2, 3), 4), "EACAAAAABAA65Uj2LWJgCNvx1CstwV2UXb1ZXNad");
    }
}
