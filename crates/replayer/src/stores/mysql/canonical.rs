//! Values of MariaDB and MySQL as canonical texts. Prepared statements return them in the binary protocol.

use schemas::vocabulary::sql::{Rows, canonical};
use sqlx::mysql::MySqlRow;
use sqlx::{Error, Row, TypeInfo, ValueRef};

use crate::stores::relational::engine::Canonical;

impl Canonical for MySqlRow {
    fn add_to(&self, rows: &mut Rows) -> Result<(), Error> {
        for column in 0..self.len() {
            let value = self.try_get_raw(column)?;
            if value.is_null() {
                rows.null();
                continue;
            }
            let kind = value.type_info();
            match kind.name() {
                "DECIMAL" => {
                    let digits = utf8(self.try_get_unchecked(column)?)?;
                    rows.value(|text| canonical::decimal(digits, text));
                }
                "FLOAT" => {
                    let number: f32 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::float32(number, text));
                }
                "DOUBLE" => {
                    let number: f64 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::float(number, text));
                }
                "DATE" | "DATETIME" | "TIMESTAMP" => {
                    let bytes: &[u8] = self.try_get_unchecked(column)?;
                    let (date, time) = moment(bytes).ok_or_else(|| strange(column, "a time"))?;
                    rows.value(|text| canonical::timestamp(date, time, text));
                }
                "TIME" => {
                    let bytes: &[u8] = self.try_get_unchecked(column)?;
                    let (is_negative, time) = span(bytes).ok_or_else(|| strange(column, "a time"))?;
                    rows.value(|text| {
                        text.push_str(if is_negative { "-" } else { "" });
                        canonical::time(time, text);
                    });
                }
                "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" | "BINARY" | "VARBINARY" | "BIT" | "GEOMETRY" => {
                    let bytes: &[u8] = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::bytes(bytes, text));
                }
                name if name.ends_with("UNSIGNED") || name == "YEAR" => {
                    let number: u64 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::unsigned(number, text));
                }
                name if name.ends_with("INT") || name == "BOOLEAN" => {
                    let number: i64 = self.try_get_unchecked(column)?;
                    rows.value(|text| canonical::integer(number, text));
                }
                _ => {
                    let content = utf8(self.try_get_unchecked(column)?)?;
                    rows.value(|text| canonical::string(content, text));
                }
            }
        }
        Ok(())
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|e| Error::Decode(e.into()))
}

fn strange(column: usize, what: &str) -> Error {
    Error::Decode(format!("column {column} of a row is not {what} of the binary protocol").into())
}

/// A date and the microseconds of its day (MySQL's manual, "Binary Protocol Value").
fn moment(bytes: &[u8]) -> Option<((i32, u32, u32), u64)> {
    let (length, rest) = bytes.split_first()?;
    if *length == 0 {
        return Some(((0, 0, 0), 0));
    }
    let date = (u16::from_le_bytes([*rest.first()?, *rest.get(1)?]) as i32, *rest.get(2)? as u32, *rest.get(3)? as u32);
    Some((date, of_day(rest.get(4..)?)?))
}

/// Whether a span of time is negative, and its microseconds.
fn span(bytes: &[u8]) -> Option<(bool, u64)> {
    let (length, rest) = bytes.split_first()?;
    if *length == 0 {
        return Some((false, 0));
    }
    let days = u32::from_le_bytes(rest.get(1..5)?.try_into().ok()?) as u64;
    Some((*rest.first()? == 1, days * 86_400_000_000 + of_day(rest.get(5..)?)?))
}

/// Hours, minutes, seconds, perhaps microseconds. Nothing is midnight.
fn of_day(bytes: &[u8]) -> Option<u64> {
    let [hour, minute, second, rest @ ..] = bytes else { return bytes.is_empty().then_some(0) };
    let seconds = *hour as u64 * 3_600 + *minute as u64 * 60 + *second as u64;
    let micros = match rest {
        [] => 0,
        _ => u32::from_le_bytes(rest.get(..4)?.try_into().ok()?),
    };
    Some(seconds * 1_000_000 + micros as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_manual_says() {
        assert_eq!(moment(&[4, 0xe0, 0x07, 5, 16]), Some(((2016, 5, 16), 0)));
        let whole = [11, 0xe0, 0x07, 5, 16, 1, 2, 3, 0x20, 0xa1, 0x07, 0];
        assert_eq!(moment(&whole), Some(((2016, 5, 16), 3_723_500_000)));
        assert_eq!(moment(&[7, 0xe0, 0x07, 5]), None);
        assert_eq!(span(&[8, 1, 1, 0, 0, 0, 0, 0, 1]), Some((true, 86_401_000_000)));
        assert_eq!((moment(&[0]), span(&[0])), (Some(((0, 0, 0), 0)), Some((false, 0))));
    }
}
