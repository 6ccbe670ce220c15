//! Values of PostgreSQL as canonical texts. Prepared statements return them in the binary format.

use schemas::vocabulary::sql::{Rows, canonical};
use sqlx::postgres::PgRow;
use sqlx::{Error, Row, TypeInfo, ValueRef};

use crate::stores::relational::engine::Canonical;

/// Days from 1970-01-01 to PostgreSQL's day 0, 2000-01-01.
const DAY_0: i64 = 10_957;

const DAY_US: i64 = 86_400_000_000;

impl Canonical for PgRow {
    fn add_to(&self, rows: &mut Rows) -> Result<(), Error> {
        for column in 0..self.len() {
            let value = self.try_get_raw(column)?;
            if value.is_null() {
                rows.null();
                continue;
            }
            let kind = value.type_info().into_owned();
            let bytes = value.as_bytes().map_err(Error::Decode)?;
            let mut written = None;
            rows.value(|text| written = write(kind.name(), bytes, text));
            if written.is_none() {
                let message = format!("column {column} of a row is of type {}, and its bytes are not", kind.name());
                return Err(Error::Decode(message.into()));
            }
        }
        Ok(())
    }
}

/// Writes a value of a type. None if the bytes are not of it.
fn write(kind: &str, bytes: &[u8], text: &mut String) -> Option<()> {
    match kind {
        "INT2" => canonical::integer(i16::from_be_bytes(bytes.try_into().ok()?).into(), text),
        "INT4" => canonical::integer(i32::from_be_bytes(bytes.try_into().ok()?).into(), text),
        "INT8" => canonical::integer(i64::from_be_bytes(bytes.try_into().ok()?), text),
        "OID" => canonical::unsigned(u32::from_be_bytes(bytes.try_into().ok()?).into(), text),
        "FLOAT4" => canonical::float32(f32::from_be_bytes(bytes.try_into().ok()?), text),
        "FLOAT8" => canonical::float(f64::from_be_bytes(bytes.try_into().ok()?), text),
        "NUMERIC" => canonical::decimal(&digits(bytes)?, text),
        "BOOL" => canonical::boolean(*bytes.first()? != 0, text),
        "BYTEA" => canonical::bytes(bytes, text),
        "DATE" => {
            let (year, month, day) = canonical::date_of(DAY_0 + i64::from(i32::from_be_bytes(bytes.try_into().ok()?)));
            canonical::date(year, month, day, text);
        }
        "TIME" => canonical::time(u64::try_from(i64::from_be_bytes(bytes.try_into().ok()?)).ok()?, text),
        "TIMESTAMP" | "TIMESTAMPTZ" => {
            let us = i64::from_be_bytes(bytes.try_into().ok()?);
            let date = canonical::date_of(DAY_0 + us.div_euclid(DAY_US));
            canonical::timestamp(date, us.rem_euclid(DAY_US) as u64, text);
        }
        "UUID" => {
            for (place, byte) in bytes.iter().enumerate() {
                text.push_str(if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" });
                text.push_str(&format!("{byte:02x}"));
            }
        }
        "JSONB" => canonical::string(std::str::from_utf8(bytes.get(1..)?).ok()?, text),
        "TEXT" | "VARCHAR" | "CHAR" | "\"CHAR\"" | "NAME" | "JSON" | "XML" | "UNKNOWN" | "CITEXT" => {
            canonical::string(std::str::from_utf8(bytes).ok()?, text);
        }
        _ => other(bytes, text),
    }
    Some(())
}

/// Writes a value of a type that only PostgreSQL has: an array, an enumeration, an interval, an address. Those that the server
/// sends as texts stay texts; of others these are its bytes, which are the same in each run on PostgreSQL.
fn other(bytes: &[u8], text: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(plain) if !plain.contains(|letter: char| letter.is_control() && !letter.is_whitespace()) => {
            canonical::string(plain, text);
        }
        _ => canonical::bytes(bytes, text),
    }
}

/// The digits of a NUMERIC: groups of four, the weight of the first group, the sign, the digits after the point
/// (src/backend/utils/adt/numeric.c, numeric_send).
fn digits(bytes: &[u8]) -> Option<String> {
    let (header, groups) = bytes.split_first_chunk::<8>()?;
    let number = |at: usize| i16::from_be_bytes([header[at], header[at + 1]]);
    let (weight, sign, scale) = (i64::from(number(2)), number(4) as u16, usize::from(number(6) as u16));
    let mut text = match sign {
        0x0000 => String::new(),
        0x4000 => "-".to_string(),
        0xc000 => return Some("NaN".to_string()),
        _ => return None,
    };
    let groups: Vec<u16> = groups.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let group = |place: i64| {
        let index = usize::try_from(weight - place).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    for place in (0..=weight.max(0)).rev() {
        text.push_str(&format!("{:04}", group(place)));
    }
    if scale > 0 {
        text.push('.');
        let fraction: String = (1..=scale.div_ceil(4) as i64).map(|place| format!("{:04}", group(-place))).collect();
        text.push_str(&fraction[..scale]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: &str, bytes: &[u8]) -> Option<String> {
        let mut text = String::new();
        write(kind, bytes, &mut text).map(|()| text)
    }

    fn numeric(weight: i16, sign: u16, scale: u16, groups: &[u16]) -> Vec<u8> {
        let mut bytes = (groups.len() as i16).to_be_bytes().to_vec();
        bytes.extend(weight.to_be_bytes());
        bytes.extend(sign.to_be_bytes());
        bytes.extend(scale.to_be_bytes());
        groups.iter().for_each(|group| bytes.extend(group.to_be_bytes()));
        bytes
    }

    #[test]
    fn decimal_numbers_are_read_as_the_server_sends_them() {
        let check = |bytes: Vec<u8>, expect: &str| assert_eq!(text("NUMERIC", &bytes).as_deref(), Some(expect));
        check(numeric(0, 0, 0, &[]), "0");
        check(numeric(2, 0, 2, &[61, 7726, 7671, 3000]), "6177267671.3");
        check(numeric(-1, 0, 4, &[5656]), "0.5656");
        check(numeric(-2, 0x4000, 6, &[1200]), "-0.000012");
        check(numeric(1, 0, 0, &[1]), "10000");
    }

    #[test]
    fn times_count_from_the_year_2000() {
        assert_eq!(text("DATE", &5_980i32.to_be_bytes()).as_deref(), Some("2016-05-16"));
        assert_eq!(text("TIMESTAMP", &(5_980 * DAY_US).to_be_bytes()).as_deref(), Some("2016-05-16"));
        assert_eq!(text("TIMESTAMP", &(-1i64).to_be_bytes()).as_deref(), Some("1999-12-31 23:59:59.999999"));
        // What other databases do not have.
        assert_eq!(text("POINT", &[0; 2]), text("BYTEA", &[0; 2]));
        assert_eq!((text("mood", b"happy").as_deref(), text("VOID", b"").as_deref()), (Some("happy"), Some("")));
        assert_eq!(text("INT4", &[0; 3]), None);
    }
}
