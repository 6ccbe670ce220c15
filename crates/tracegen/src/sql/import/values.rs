//! Values of parameters, and how the spool holds them.

use super::lexer::Kind;

/// A parameter as a log has it; None is NULL.
pub type Bound = Option<String>;

/// A value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// The digits of another number.
    Decimal(&'a str),
    /// A text whose type the log does not say: the database says it when it prepares the statement.
    Unknown(&'a str),
}

impl<'a> Value<'a> {
    /// The value of a literal.
    pub fn of_literal(kind: Kind, text: &'a str) -> Value<'a> {
        match kind {
            // The lexer has checked that it fits.
            Kind::Integer => text.parse().map_or(Value::Decimal(text), Value::Integer),
            Kind::Decimal => Value::Decimal(text),
            Kind::Quoted => Value::Unknown(text),
        }
    }
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const DECIMAL: u8 = 2;
const UNKNOWN: u8 = 3;

/// Adds a value to bytes.
pub fn encode(value: Value<'_>, bytes: &mut Vec<u8>) {
    let (kind, text) = match value {
        Value::Null => return bytes.push(NULL),
        Value::Integer(number) => {
            bytes.push(INTEGER);
            return bytes.extend_from_slice(&number.to_le_bytes());
        }
        Value::Decimal(text) => (DECIMAL, text),
        Value::Unknown(text) => (UNKNOWN, text),
    };
    bytes.push(kind);
    // A line of a log has at most 1 GiB.
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// The values that bytes hold. It ends at bytes that hold none.
pub fn decode(mut bytes: &[u8]) -> impl Iterator<Item = Value<'_>> {
    std::iter::from_fn(move || {
        let (kind, rest) = bytes.split_first()?;
        bytes = rest;
        match *kind {
            NULL => Some(Value::Null),
            INTEGER => {
                let (number, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Some(Value::Integer(i64::from_le_bytes(*number)))
            }
            kind => {
                let (length, rest) = bytes.split_first_chunk()?;
                let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                bytes = rest;
                let text = std::str::from_utf8(text).ok()?;
                Some(if kind == DECIMAL { Value::Decimal(text) } else { Value::Unknown(text) })
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_spool() {
        let values =
            [Value::Integer(-7), Value::Null, Value::Unknown("it's"), Value::Decimal("1.50"), Value::Unknown("")];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| encode(*value, &mut bytes));
        assert_eq!(decode(&bytes).collect::<Vec<_>>(), values);
    }
}
