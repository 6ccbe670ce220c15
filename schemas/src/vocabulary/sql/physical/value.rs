//! Values that statements write and compare: those of parameters, in the kinds of columns.

use std::cmp::Ordering;

use super::super::{Type, Value, canonical};
use super::Relation;
use super::number::Number;
use super::tables::Kind;
use super::term::{Constant, Term, Test};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating point number.
    Float(f64),
    /// The digits of a decimal number.
    Decimal(String),
    /// A text, or the canonical text of a date or time.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Datum {
    /// The value of a parameter.
    pub fn of(value: Value<'_>) -> Datum {
        match value {
            Value::Null => Datum::Null,
            Value::Integer(number) => Datum::Integer(number),
            Value::Float(number) => Datum::Float(number),
            Value::Decimal(digits) => Datum::Decimal(digits.to_string()),
            Value::Text(text) | Value::Unknown(text) => Datum::Text(text.to_string()),
            Value::Timestamp(text) | Value::Date(text) => Datum::Text(moment(text)),
            Value::Bytes(bytes) => Datum::Bytes(bytes.to_vec()),
        }
    }

    fn number(&self) -> Option<Number> {
        match self {
            Datum::Integer(number) => Some(Number::whole(*number)),
            Datum::Decimal(digits) => Number::parse(digits),
            _ => None,
        }
    }

    /// Its canonical text.
    fn text(&self) -> Result<String, String> {
        Ok(match self {
            Datum::Integer(number) => number.to_string(),
            Datum::Decimal(digits) | Datum::Text(digits) => digits.clone(),
            Datum::Float(number) => {
                let mut text = String::new();
                canonical::float(*number, &mut text);
                text
            }
            Datum::Null | Datum::Bytes(_) => return Err("bytes are no text".to_string()),
        })
    }
}

/// The canonical text of a date or time: a blank between them, no zeros at the end of a fraction, no midnight.
fn moment(text: &str) -> String {
    let plain = text.replacen('T', " ", 1);
    let plain = match plain.split_once('.') {
        Some((whole, fraction)) => match fraction.trim_end_matches('0') {
            "" => whole.to_string(),
            fraction => format!("{whole}.{fraction}"),
        },
        None => plain,
    };
    let mut text = String::new();
    canonical::string(&plain, &mut text);
    text
}

/// Whether a column of a kind takes parameters of a type.
pub(super) fn takes(kind: Kind, parameter: Type) -> bool {
    match (kind, parameter) {
        (_, Type::Unknown) => true,
        (Kind::Integer | Kind::Decimal | Kind::Float | Kind::Float32, Type::Integer | Type::Decimal | Type::Float) => {
            true
        }
        (Kind::Text, Type::Bytes) => false,
        (Kind::Text, _) => true,
        (Kind::Bytes, Type::Bytes | Type::Text) => true,
        (Kind::Timestamp | Kind::Date, Type::Timestamp | Type::Date | Type::Text) => true,
        _ => false,
    }
}

/// The value in the kind of a column.
pub fn convert(value: Datum, kind: Kind) -> Result<Datum, String> {
    let wrong = |value: &Datum| Err(format!("{value:?} does not fit a column of kind {kind:?}"));
    Ok(match (kind, value) {
        (_, Datum::Null) => Datum::Null,
        (Kind::Integer, Datum::Integer(number)) => Datum::Integer(number),
        (Kind::Integer, Datum::Float(number)) if number.abs() < 9e15 => Datum::Integer(number.round() as i64),
        (Kind::Integer, value) => match number_of(&value).and_then(|number| number.round(0).as_whole()) {
            Some(number) => Datum::Integer(number),
            None => return wrong(&value),
        },
        (Kind::Decimal, Datum::Float(number)) => Datum::Decimal(Datum::Float(number).text()?),
        (Kind::Decimal, value) => match number_of(&value) {
            Some(number) => Datum::Decimal(number.text()),
            None => return wrong(&value),
        },
        (Kind::Float | Kind::Float32, value) => {
            let number = match &value {
                Datum::Float(number) => Some(*number),
                Datum::Integer(number) => Some(*number as f64),
                Datum::Decimal(digits) | Datum::Text(digits) => digits.trim().parse().ok(),
                _ => None,
            };
            let Some(number) = number else { return wrong(&value) };
            Datum::Float(if kind == Kind::Float32 { f64::from(number as f32) } else { number })
        }
        (Kind::Bytes, Datum::Text(text)) => Datum::Bytes(text.into_bytes()),
        (Kind::Bytes, Datum::Bytes(bytes)) => Datum::Bytes(bytes),
        (Kind::Bytes, value) => return wrong(&value),
        (Kind::Text, value) => Datum::Text(value.text()?),
        (Kind::Timestamp, Datum::Text(text)) => Datum::Text(moment(&text)),
        (Kind::Date, Datum::Text(text)) => Datum::Text(text.get(..10).unwrap_or(&text).to_string()),
        (Kind::Timestamp | Kind::Date, value) => return wrong(&value),
    })
}

/// The number that a value is, or that a text has.
fn number_of(value: &Datum) -> Option<Number> {
    match value {
        Datum::Text(text) => Number::parse(text),
        other => other.number(),
    }
}

impl Term {
    /// Its value, if it reads no column.
    pub fn value(&self, parameters: &[Datum]) -> Result<Datum, String> {
        Ok(match self {
            Term::Parameter(at) => parameters.get(*at).cloned().unwrap_or(Datum::Null),
            Term::Constant(constant) => constant.datum(),
            Term::Column(_) => return Err("a column has no value before its row is known".to_string()),
            Term::Arithmetic(operator, left, right) => match (left.value(parameters)?, right.value(parameters)?) {
                (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
                (left, right) => {
                    let both = left.number().zip(right.number());
                    let (left, right) = both.ok_or("calculates with what is no decimal number")?;
                    of_number(left.calculate(*operator, right)?)
                }
            },
            Term::Round(term, digits) => match term.value(parameters)? {
                Datum::Null => Datum::Null,
                value => of_number(value.number().ok_or("rounds what is no decimal number")?.round(*digits)),
            },
            Term::Concat(terms) => {
                let mut all = String::new();
                for term in terms {
                    match term.value(parameters)? {
                        Datum::Null => return Ok(Datum::Null),
                        value => all += &value.text()?,
                    }
                }
                Datum::Text(all)
            }
            Term::Substring(term, from, length) => match term.value(parameters)? {
                Datum::Null => Datum::Null,
                value => {
                    let text = value.text()?;
                    let from = (*from as usize).saturating_sub(1);
                    Datum::Text(text.chars().skip(from).take(*length as usize).collect())
                }
            },
            Term::Case(tests, otherwise) => {
                for (test, term) in tests {
                    if test.holds(parameters)? {
                        return term.value(parameters);
                    }
                }
                otherwise.value(parameters)?
            }
        })
    }
}

fn of_number(number: Number) -> Datum {
    number.as_whole().map_or_else(|| Datum::Decimal(number.text()), Datum::Integer)
}

impl Constant {
    /// Its value.
    pub fn datum(&self) -> Datum {
        match self {
            Constant::Null => Datum::Null,
            Constant::Integer(number) => Datum::Integer(*number),
            Constant::Decimal(digits) => Datum::Decimal(digits.clone()),
            Constant::Text(text) => Datum::Text(text.clone()),
        }
    }
}

impl Test {
    fn holds(&self, parameters: &[Datum]) -> Result<bool, String> {
        let order = match (self.left.value(parameters)?, self.right.value(parameters)?) {
            (Datum::Null, _) | (_, Datum::Null) => return Ok(false),
            (Datum::Text(left), Datum::Text(right)) => left.cmp(&right),
            (left, right) => {
                let both = left.number().zip(right.number());
                let (left, right) = both.ok_or("compares a text with a number")?;
                left.compare(right)?
            }
        };
        Ok(match self.relation {
            Relation::Equal => order == Ordering::Equal,
            Relation::NotEqual => order != Ordering::Equal,
            Relation::Less => order == Ordering::Less,
            Relation::LessOrEqual => order != Ordering::Greater,
            Relation::Greater => order == Ordering::Greater,
            Relation::GreaterOrEqual => order != Ordering::Less,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_kind_of_their_column() {
        let check = |value: Datum, kind, expect: Datum| assert_eq!(convert(value, kind), Ok(expect));
        let text = |text: &str| Datum::Text(text.into());
        check(Datum::Integer(5), Kind::Decimal, Datum::Decimal("5".into()));
        check(Datum::Decimal("0523.50".into()), Kind::Decimal, Datum::Decimal("523.5".into()));
        check(Datum::Decimal("2.5".into()), Kind::Integer, Datum::Integer(3));
        check(Datum::Integer(2), Kind::Float, Datum::Float(2.0));
        check(Datum::Integer(7), Kind::Text, text("7"));
        check(text("2016-05-16 00:00:00"), Kind::Timestamp, text("2016-05-16"));
        check(text("2016-05-16T01:02:03.500"), Kind::Timestamp, text("2016-05-16 01:02:03.5"));
        check(text("2016-05-16 01:02:03"), Kind::Date, text("2016-05-16"));
        check(Datum::Null, Kind::Integer, Datum::Null);
        assert!(convert(text("x"), Kind::Integer).is_err());
    }
}
