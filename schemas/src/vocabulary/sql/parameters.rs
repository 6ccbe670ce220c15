//! Typed parameters, and how bytes hold them.
//!
//! A parameter is a byte that says what it is, then its content, little-endian:
//!
//! | byte | parameter | content |
//! |---|---|---|
//! | 0 | NULL | none |
//! | 1 | integer | 8 bytes, signed |
//! | 2 | float | 8 bytes, IEEE 754 |
//! | 3 | text | 4 bytes of length, then UTF-8 |
//! | 4 | bytes | 4 bytes of length, then the bytes |
//! | 5 | decimal | 4 bytes of length, then its digits as text |
//! | 6 | timestamp | 4 bytes of length, then `YYYY-MM-DD HH:MM:SS`, perhaps with a fraction |
//! | 7 | date | 4 bytes of length, then `YYYY-MM-DD` |
//! | 8 | result of an earlier step | its type (one of the other bytes), the row (0 first, 1 middle, 2 last), 2 bytes of step, 2 bytes of column from 0 |
//! | 9 | text whose type the database says | 4 bytes of length, then UTF-8 |

use std::fmt;
use std::str::FromStr;

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Type {
    /// A whole number of 64 bits.
    Integer = 1,
    /// A floating point number of 64 bits.
    Float = 2,
    /// A text.
    Text = 3,
    /// Bytes.
    Bytes = 4,
    /// A decimal number.
    Decimal = 5,
    /// A date and a time, without a time zone.
    Timestamp = 6,
    /// A date.
    Date = 7,
    /// What the database says when it prepares the statement. Logs of databases have the texts of values without
    /// their types.
    Unknown = 9,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 8] = [
        Type::Integer,
        Type::Float,
        Type::Text,
        Type::Bytes,
        Type::Decimal,
        Type::Timestamp,
        Type::Date,
        Type::Unknown,
    ];

    /// The name in the list of statements.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Float => "float",
            Type::Text => "text",
            Type::Bytes => "bytes",
            Type::Decimal => "decimal",
            Type::Timestamp => "timestamp",
            Type::Date => "date",
            Type::Unknown => "unknown",
        }
    }

    fn of_byte(byte: u8) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Type {
    type Err = String;

    fn from_str(name: &str) -> Result<Type, String> {
        Type::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let known = Type::ALL.map(Type::name).join(", ");
            format!("{name:?} is no type of a parameter; use one of {known}")
        })
    }
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL, of any type.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating point number.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// The digits of a decimal number.
    Decimal(&'a str),
    /// `YYYY-MM-DD HH:MM:SS`, perhaps with a fraction of a second.
    Timestamp(&'a str),
    /// `YYYY-MM-DD`.
    Date(&'a str),
    /// A text of the type that the database says.
    Unknown(&'a str),
}

impl Value<'_> {
    /// Its type; None for NULL.
    pub const fn kind(&self) -> Option<Type> {
        match self {
            Value::Null => None,
            Value::Integer(_) => Some(Type::Integer),
            Value::Float(_) => Some(Type::Float),
            Value::Text(_) => Some(Type::Text),
            Value::Bytes(_) => Some(Type::Bytes),
            Value::Decimal(_) => Some(Type::Decimal),
            Value::Timestamp(_) => Some(Type::Timestamp),
            Value::Date(_) => Some(Type::Date),
            Value::Unknown(_) => Some(Type::Unknown),
        }
    }
}

/// Which row of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first one.
    First,
    /// The one in the middle; of an even number of rows, the earlier of the two.
    Middle,
    /// The last one.
    Last,
    /// The one with this number, from 0 to [`Pick::NTH_MAX`].
    Nth(u8),
}

impl Pick {
    /// The highest number of a row: in bytes, rows with numbers come after the three others.
    pub const NTH_MAX: u8 = u8::MAX - NAMED;

    const fn byte(self) -> u8 {
        match self {
            Pick::First => 0,
            Pick::Middle => 1,
            Pick::Last => 2,
            Pick::Nth(number) => NAMED.saturating_add(number),
        }
    }

    const fn of_byte(byte: u8) -> Pick {
        match byte {
            0 => Pick::First,
            1 => Pick::Middle,
            2 => Pick::Last,
            number => Pick::Nth(number - NAMED),
        }
    }
}

/// How many rows have a name instead of a number.
const NAMED: u8 = 3;

/// A value that an earlier step of the session has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultOf {
    /// The type that the parameter has.
    pub kind: Type,
    /// The step, whose operation is [kept](super::Operation::is_kept).
    pub step: u16,
    /// The column, from 0.
    pub column: u16,
    /// The row.
    pub pick: Pick,
}

/// A parameter of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    /// A value.
    Value(Value<'a>),
    /// A result of an earlier step of the session.
    Result(ResultOf),
}

impl Parameter<'_> {
    /// Its type; None for NULL.
    pub const fn kind(&self) -> Option<Type> {
        match self {
            Parameter::Value(value) => value.kind(),
            Parameter::Result(result) => Some(result.kind),
        }
    }
}

const NULL: u8 = 0;
const RESULT: u8 = 8;

/// Adds parameters to bytes.
pub fn encode<'a>(parameters: impl IntoIterator<Item = Parameter<'a>>, bytes: &mut Vec<u8>) {
    for parameter in parameters {
        bytes.push(match parameter {
            Parameter::Result(_) => RESULT,
            Parameter::Value(value) => value.kind().map_or(NULL, |kind| kind as u8),
        });
        let content = match &parameter {
            Parameter::Value(Value::Null) => continue,
            Parameter::Value(Value::Integer(number)) => {
                bytes.extend_from_slice(&number.to_le_bytes());
                continue;
            }
            Parameter::Value(Value::Float(number)) => {
                bytes.extend_from_slice(&number.to_le_bytes());
                continue;
            }
            Parameter::Result(result) => {
                bytes.extend_from_slice(&[result.kind as u8, result.pick.byte()]);
                bytes.extend_from_slice(&result.step.to_le_bytes());
                bytes.extend_from_slice(&result.column.to_le_bytes());
                continue;
            }
            Parameter::Value(Value::Bytes(content)) => *content,
            Parameter::Value(
                Value::Text(text)
                | Value::Decimal(text)
                | Value::Timestamp(text)
                | Value::Date(text)
                | Value::Unknown(text),
            ) => text.as_bytes(),
        };
        // Longer content would not fit into a trace either.
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
    }
}

/// The parameters that bytes hold. The error says why they hold none; it is the last item.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Parameter<'_>, &'static str>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first()?;
        rest = after;
        let next = take(*kind, &mut rest);
        if next.is_err() {
            rest = &[];
        }
        Some(next)
    })
}

const CUT: &str = "a parameter is cut off";

fn take<'a>(kind: u8, rest: &mut &'a [u8]) -> Result<Parameter<'a>, &'static str> {
    let text = |rest: &mut &'a [u8]| std::str::from_utf8(content(rest)?).map_err(|_| "a text is not UTF-8");
    let kind = match kind {
        NULL => return Ok(Parameter::Value(Value::Null)),
        RESULT => {
            let [kind, pick, step @ .., low, high] = array::<6>(rest)?;
            let kind = Type::of_byte(kind).ok_or("a result has an unknown type")?;
            let (step, column) = (u16::from_le_bytes(step), u16::from_le_bytes([low, high]));
            return Ok(Parameter::Result(ResultOf { kind, step, column, pick: Pick::of_byte(pick) }));
        }
        other => Type::of_byte(other).ok_or("a parameter has an unknown type")?,
    };
    Ok(Parameter::Value(match kind {
        Type::Integer => Value::Integer(i64::from_le_bytes(array(rest)?)),
        Type::Float => Value::Float(f64::from_le_bytes(array(rest)?)),
        Type::Text => Value::Text(text(rest)?),
        Type::Bytes => Value::Bytes(content(rest)?),
        Type::Decimal => Value::Decimal(text(rest)?),
        Type::Timestamp => Value::Timestamp(text(rest)?),
        Type::Date => Value::Date(text(rest)?),
        Type::Unknown => Value::Unknown(text(rest)?),
    }))
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(CUT)?;
    *rest = left;
    Ok(*taken)
}

fn content<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let length = u32::from_le_bytes(array(rest)?) as usize;
    let (taken, left) = rest.split_at_checked(length).ok_or(CUT)?;
    *rest = left;
    Ok(taken)
}
