//! What is logged of a statement: for rows their number and a hash, and the rows themselves if they are wanted.
//!
//! All databases must give the same hash for the same rows. So each value has one canonical text
//! ([`canonical`]), whatever the types of the database. A row is its values one after the other: a byte 0 for
//! NULL, else a byte 1, 4 bytes of length (little-endian) and the text. The first 8 bytes of its BLAKE3 sum, as
//! a little-endian number, are the hash of the row. The hash of a result adds those of its rows, modulo 2^64.
//! Where the statement orders its rows, the sum is multiplied by 2^40 + 435 before each addition.

/// The hash of no rows.
pub const EMPTY: i64 = 0;

/// The factor between the rows of an ordered result.
const FACTOR: u64 = (1 << 40) + 435;

const NULL: u8 = 0;
const TEXT: u8 = 1;

/// Takes in the rows of a result, value by value.
#[derive(Debug, Default)]
pub struct Rows {
    is_ordered: bool,
    rows: i64,
    hash: u64,
    row: Vec<u8>,
    /// The rows, if they are wanted.
    kept: Option<Vec<u8>>,
    text: String,
}

impl Rows {
    /// Forgets what was taken in. `is_ordered` says whether the order of the rows counts, `is_kept`
    /// whether the rows themselves are wanted.
    pub fn begin(&mut self, is_ordered: bool, is_kept: bool) {
        (self.is_ordered, self.rows, self.hash) = (is_ordered, 0, 0);
        self.row.clear();
        let kept = self.kept.take();
        self.kept = is_kept.then(|| {
            let mut kept = kept.unwrap_or_default();
            kept.clear();
            kept
        });
    }

    /// The next value of the row is NULL.
    pub fn null(&mut self) {
        self.row.push(NULL);
    }

    /// The next value of the row. `write` appends its canonical text; see [`canonical`].
    pub fn value(&mut self, write: impl FnOnce(&mut String)) {
        self.text.clear();
        write(&mut self.text);
        self.row.push(TEXT);
        // No value of a database has 4 GiB.
        self.row.extend_from_slice(&(self.text.len() as u32).to_le_bytes());
        self.row.extend_from_slice(self.text.as_bytes());
    }

    /// The values of the row so far.
    pub fn row(&self) -> &[u8] {
        &self.row
    }

    /// The same as texts, None for NULL.
    pub fn texts(&self) -> Vec<Option<String>> {
        read_values(&self.row).unwrap_or_else(|| unreachable!("a row has whole values"))
    }

    /// The row ends.
    pub fn end_row(&mut self) {
        let sum = blake3::hash(&self.row);
        let mut first = [0; 8];
        first.copy_from_slice(&sum.as_bytes()[..8]);
        if self.is_ordered {
            self.hash = self.hash.wrapping_mul(FACTOR);
        }
        self.hash = self.hash.wrapping_add(u64::from_le_bytes(first));
        self.rows += 1;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&(self.row.len() as u32).to_le_bytes());
            kept.extend_from_slice(&self.row);
        }
        self.row.clear();
    }

    /// Adds to what an operation observed: the number of rows, their hash, and the rows if they are wanted.
    pub fn finish(&self, observed: &mut Vec<i64>) {
        observed.extend([self.rows, self.hash as i64]);
        if let Some(kept) = &self.kept {
            observed.push(kept.len() as i64);
            for some in kept.chunks(8) {
                let mut word = [0; 8];
                word[..some.len()].copy_from_slice(some);
                observed.push(i64::from_le_bytes(word));
            }
        }
    }
}

/// What was logged of a statement that returns rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// How many rows.
    pub rows: i64,
    /// Their hash.
    pub hash: i64,
    /// The rows, if they were logged: their values, None for NULL.
    pub kept: Option<Vec<Vec<Option<String>>>>,
}

impl Answered {
    /// What the values of a log stand for; None if they are not an answer of rows.
    pub fn read(observed: &[i64]) -> Option<Answered> {
        match observed {
            [rows, hash] => Some(Answered { rows: *rows, hash: *hash, kept: None }),
            [rows, hash, bytes, words @ ..] => {
                let length = usize::try_from(*bytes).ok().filter(|length| length.div_ceil(8) == words.len())?;
                let all: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let kept = read_rows(&all[..length])?;
                Some(Answered { rows: *rows, hash: *hash, kept: Some(kept) })
            }
            _ => None,
        }
    }
}

fn read_rows(mut rest: &[u8]) -> Option<Vec<Vec<Option<String>>>> {
    let mut rows = Vec::new();
    while !rest.is_empty() {
        rows.push(read_values(part(&mut rest)?)?);
    }
    Some(rows)
}

fn read_values(mut row: &[u8]) -> Option<Vec<Option<String>>> {
    let mut values = Vec::new();
    while let Some((kind, after)) = row.split_first() {
        row = after;
        values.push(match *kind {
            NULL => None,
            TEXT => Some(String::from_utf8(part(&mut row)?.to_vec()).ok()?),
            _ => return None,
        });
    }
    Some(values)
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (part, left) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = left;
    Some(part)
}

/// The canonical text of values. Each function appends it.
pub mod canonical {
    use std::fmt::Write;

    /// A whole number: its digits.
    pub fn integer(number: i64, text: &mut String) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{number}");
    }

    /// A whole number without a sign.
    pub fn unsigned(number: u64, text: &mut String) {
        let _ = write!(text, "{number}");
    }

    /// A truth value is 1 or 0.
    pub fn boolean(is_true: bool, text: &mut String) {
        text.push(if is_true { '1' } else { '0' });
    }

    /// A floating point number: 15 digits, rounded, without an exponent and without zeros at the end. A database
    /// that computes with decimal numbers in floating point thus gives the same text as one that computes exactly,
    /// as long as 15 digits are enough.
    pub fn float(number: f64, text: &mut String) {
        if !number.is_finite() {
            let _ = write!(text, "{number}");
            return;
        }
        let rounded = format!("{number:.14e}");
        let (mantissa, exponent) = rounded.split_once('e').unwrap_or((rounded.as_str(), "0"));
        let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
        let digits: String = mantissa.chars().filter(|one| *one != '.').collect();
        // How many digits are before the point.
        let whole = exponent.parse().unwrap_or(0i32) + 1;
        let plain = match usize::try_from(whole) {
            Ok(whole) if whole >= digits.len() => format!("{sign}{digits:0<whole$}"),
            Ok(whole) => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
            Err(_) => format!("{sign}0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize)),
        };
        decimal(&plain, text);
    }

    /// A floating point number of 32 bits.
    pub fn float32(number: f32, text: &mut String) {
        let number = if number == 0.0 { 0.0 } else { number };
        let _ = write!(text, "{number}");
    }

    /// A decimal number from its digits, perhaps with a sign and a point: without zeros at its beginning
    /// and after the point at its end.
    pub fn decimal(digits: &str, text: &mut String) {
        let (sign, rest) = match digits.as_bytes().first() {
            Some(b'-') => ("-", &digits[1..]),
            Some(b'+') => ("", &digits[1..]),
            _ => ("", digits),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        if !(whole.is_empty() && fraction.is_empty()) {
            text.push_str(sign);
        }
        text.push_str(if whole.is_empty() { "0" } else { whole });
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(fraction);
        }
    }

    /// A text without blanks at its end. A date and a time of midnight, however a database stores it, is
    /// its date.
    pub fn string(content: &str, text: &mut String) {
        let content = content.trim_end_matches(' ');
        text.push_str(midnight(content).unwrap_or(content));
    }

    /// Bytes: a text if they are UTF-8, since MariaDB and MySQL do not tell bytes from texts that are compared by
    /// their bytes. Else `\x` and their hexadecimal digits.
    pub fn bytes(content: &[u8], text: &mut String) {
        if let Ok(content) = std::str::from_utf8(content) {
            string(content, text);
            return;
        }
        text.push_str("\\x");
        for byte in content {
            let _ = write!(text, "{byte:02x}");
        }
    }

    /// A date.
    pub fn date(year: i32, month: u32, day: u32, text: &mut String) {
        let _ = write!(text, "{year:04}-{month:02}-{day:02}");
    }

    /// A time of a day, `HH:MM:SS` and a fraction without zeros at its end.
    pub fn time(microseconds: u64, text: &mut String) {
        let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
        let _ = write!(text, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        if fraction > 0 {
            let digits = format!("{fraction:06}");
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
    }

    /// A date and a time: a blank between them. Midnight is left out.
    pub fn timestamp(date: (i32, u32, u32), microseconds: u64, text: &mut String) {
        self::date(date.0, date.1, date.2, text);
        if microseconds > 0 {
            text.push(' ');
            time(microseconds, text);
        }
    }

    /// The date (year, month, day) that is so many days after 1970-01-01.
    pub fn date_of(days: i64) -> (i32, u32, u32) {
        // Days since 0000-03-01, in eras of 400 years: the leap day is the last day of a year then.
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year as i32, month as u32, day as u32)
    }

    /// The date of a text like `2016-05-16 00:00:00`.
    fn midnight(content: &str) -> Option<&str> {
        let date = content.strip_suffix(" 00:00:00").or_else(|| content.strip_suffix("T00:00:00"))?;
        let is_date = date.len() == 10
            && date.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        is_date.then_some(date)
    }
}
