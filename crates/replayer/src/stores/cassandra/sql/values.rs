//! Values of statements in Cassandra's types, and values of answers as canonical texts.

use schemas::vocabulary::sql::physical::wide::Cql;
use schemas::vocabulary::sql::physical::{Datum, Kind, Number, convert};
use schemas::vocabulary::sql::{Rows, canonical};
use schemas::workload::sql::rows::decimal;
use scylla::cluster::metadata::ColumnType;
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use scylla::value::CqlDecimalBorrowed;

/// A value that a statement binds.
#[derive(Debug, Clone, PartialEq)]
pub enum Bind {
    /// NULL.
    Null,
    /// A whole number.
    Long(i64),
    /// A number of rows.
    Count(i32),
    /// A floating point number.
    Double(f64),
    /// A decimal number: the bytes of its digits, and how many of these are after the point.
    Decimal(Vec<u8>, i32),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl SerializeValue for Bind {
    fn serialize<'b>(
        &self,
        kind: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match self {
            Bind::Null => Ok(writer.set_null()),
            Bind::Long(number) => number.serialize(kind, writer),
            Bind::Count(number) => number.serialize(kind, writer),
            Bind::Double(number) => number.serialize(kind, writer),
            Bind::Decimal(digits, scale) => {
                CqlDecimalBorrowed::from_signed_be_bytes_slice_and_exponent(digits, *scale).serialize(kind, writer)
            }
            Bind::Text(text) => text.serialize(kind, writer),
            Bind::Bytes(bytes) => bytes.serialize(kind, writer),
        }
    }
}

/// The name of the type of a column. Times are texts, whose order is that of time, with all their digits.
pub fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "bigint",
        Kind::Decimal => "decimal",
        Kind::Float | Kind::Float32 => "double",
        Kind::Text | Kind::Timestamp | Kind::Date => "text",
        Kind::Bytes => "blob",
    }
}

/// A value of a column. Equal numbers have equal bytes, since these decide the partition.
fn bind(value: Datum) -> Result<Bind, String> {
    Ok(match value {
        Datum::Null => Bind::Null,
        Datum::Integer(number) => Bind::Long(number),
        Datum::Float(number) => Bind::Double(number),
        Datum::Decimal(digits) => {
            let number = Number::parse(&digits).ok_or_else(|| format!("{digits} is no decimal number"))?;
            let (digits, scale) = number.parts();
            Bind::Decimal(shortest(digits), i32::try_from(scale).map_err(|error| error.to_string())?)
        }
        Datum::Text(text) => Bind::Text(text),
        Datum::Bytes(bytes) => Bind::Bytes(bytes),
    })
}

/// The fewest bytes of a number with its sign.
fn shortest(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let sign = if number < 0 { 0xff } else { 0 };
    let is_spare = |at: usize| bytes[at] == sign && (bytes[at + 1] ^ sign) & 0x80 == 0;
    let start = (0..bytes.len() - 1).find(|at| !is_spare(*at)).unwrap_or(bytes.len() - 1);
    bytes[start..].to_vec()
}

/// The values of a statement; None if one of the key is NULL, so that no row can have it.
pub fn bound(cql: &Cql, parameters: &[Datum]) -> Result<Option<Vec<Bind>>, String> {
    let mut all = Vec::with_capacity(cql.values.len());
    for one in &cql.values {
        let value = one.term.value(parameters)?;
        let value = match (one.kind, value) {
            (Some(kind), value) => bind(convert(value, kind)?)?,
            (None, Datum::Integer(number)) if number >= 0 => Bind::Count(i32::try_from(number).unwrap_or(i32::MAX)),
            // As in SQL, there is no limit then.
            (None, Datum::Null) => Bind::Count(i32::MAX),
            (None, other) => return Err(format!("{other:?} is no number of rows")),
        };
        if one.is_key && value == Bind::Null {
            return Ok(None);
        }
        all.push(value);
    }
    Ok(Some(all))
}

/// Adds a value of an answer to a row.
pub fn add(rows: &mut Rows, cell: Option<&[u8]>, kind: Kind) -> Result<(), String> {
    let Some(cell) = cell else {
        rows.null();
        return Ok(());
    };
    let wrong = || format!("unexpected reply: {} bytes for {}", cell.len(), type_of(kind));
    let eight = || cell.try_into().map_err(|_| wrong());
    match kind {
        Kind::Integer => {
            let number = i64::from_be_bytes(eight()?);
            rows.value(|text| canonical::integer(number, text));
        }
        Kind::Float => {
            let number = f64::from_be_bytes(eight()?);
            rows.value(|text| canonical::float(number, text));
        }
        Kind::Float32 => {
            let number = f64::from_be_bytes(eight()?) as f32;
            rows.value(|text| canonical::float32(number, text));
        }
        Kind::Decimal => {
            let digits = digits(cell).ok_or_else(wrong)?;
            rows.value(|text| canonical::decimal(&digits, text));
        }
        Kind::Text | Kind::Timestamp | Kind::Date => {
            let content = std::str::from_utf8(cell).map_err(|_| wrong())?;
            rows.value(|text| canonical::string(content, text));
        }
        Kind::Bytes => rows.value(|text| canonical::bytes(cell, text)),
    }
    Ok(())
}

/// A whole number of an answer, for example of rows.
pub fn whole(cell: Option<&[u8]>) -> Option<i64> {
    Some(i64::from_be_bytes(cell?.try_into().ok()?))
}

/// The digits of a decimal number; None if it has more than 38, or is damaged.
fn digits(cell: &[u8]) -> Option<String> {
    let (scale, number) = cell.split_first_chunk::<4>()?;
    let scale = i32::from_be_bytes(*scale);
    let sign = if number.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut bytes = [sign; 16];
    let start = bytes.len().checked_sub(number.len())?;
    bytes[start..].copy_from_slice(number);
    let number = i128::from_be_bytes(bytes);
    match usize::try_from(scale) {
        Ok(scale) => Some(decimal(number, scale)),
        Err(_) => Some(decimal(number.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_have_the_fewest_bytes_and_come_back() {
        let check = |text: &str, bytes: &[u8], scale: i32| {
            let Ok(Bind::Decimal(found, places)) = bind(Datum::Decimal(text.into())) else { panic!("{text}") };
            assert_eq!((&found[..], places), (bytes, scale), "{text}");
            let cell = [&scale.to_be_bytes()[..], bytes].concat();
            assert_eq!(digits(&cell).as_deref(), Some(text));
        };
        check("0", &[0], 0);
        check("1.27", &[127], 2);
        check("1.28", &[0, 128], 2);
        check("-1.28", &[0x80], 2);
        check("-129", &[0xff, 0x7f], 0);
        assert_eq!(digits(&[0xff, 0xff, 0xff, 0xfe, 5]).as_deref(), Some("500"));
        assert_eq!((digits(&[0, 0, 0, 0]), digits(&[0; 21])), (None, None));
    }
}
