//! Values with content of their own, and how texts write them: numbers, texts in quotes, dates, NULL.

use schemas::vocabulary::sql::{Type, Value, canonical};

/// A value with its own content.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::sql) enum Literal {
    Null,
    Integer(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Decimal(String),
    Timestamp(String),
    Date(String),
    /// A text of the type that the database says.
    Unknown(String),
}

impl Literal {
    /// Its type; None for NULL.
    pub(in crate::sql) fn kind(&self) -> Option<Type> {
        self.value().kind()
    }

    pub(in crate::sql) fn value(&self) -> Value<'_> {
        match self {
            Literal::Null => Value::Null,
            Literal::Integer(number) => Value::Integer(*number),
            Literal::Float(number) => Value::Float(*number),
            Literal::Text(text) => Value::Text(text),
            Literal::Bytes(bytes) => Value::Bytes(bytes),
            Literal::Decimal(digits) => Value::Decimal(digits),
            Literal::Timestamp(text) => Value::Timestamp(text),
            Literal::Date(text) => Value::Date(text),
            Literal::Unknown(text) => Value::Unknown(text),
        }
    }

    /// The same value of a wider type.
    pub(in crate::sql) fn widened(&self, to: Type) -> Option<Literal> {
        Some(match (self, to) {
            (Literal::Null, _) => Literal::Null,
            (same, to) if same.kind() == Some(to) => same.clone(),
            (Literal::Integer(number), Type::Decimal) => Literal::Decimal(number.to_string()),
            (Literal::Integer(number), Type::Float) => Literal::Float(*number as f64),
            (Literal::Decimal(digits), Type::Float) => Literal::Float(digits.parse().ok()?),
            (Literal::Date(date), Type::Timestamp) => Literal::Timestamp(format!("{date} 00:00:00")),
            _ => return None,
        })
    }

    /// Reads a value.
    pub(in crate::sql) fn parse(text: &str) -> Result<Literal, String> {
        if let Some(content) = quoted(text, '\'').or_else(|| quoted(text, '"')) {
            return Ok(Literal::Text(content));
        }
        if text.eq_ignore_ascii_case("null") {
            return Ok(Literal::Null);
        }
        if let Some(truth) = [("true", 1), ("false", 0)].into_iter().find(|(word, _)| text.eq_ignore_ascii_case(word)) {
            return Ok(Literal::Integer(truth.1));
        }
        if let Some(digits) = text.strip_prefix(['x', 'X']).and_then(|rest| quoted(rest, '\'')) {
            return bytes(&digits).map(Literal::Bytes).ok_or_else(|| format!("{text} is not hexadecimal"));
        }
        number(text).or_else(|| time(text)).ok_or_else(|| {
            format!("{text} is no value; write a number, a text in quotes, a date such as 2016-05-16, or NULL")
        })
    }
}

/// The content of a text in quotes; a quote in it is doubled.
fn quoted(text: &str, quote: char) -> Option<String> {
    let content = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let doubled = format!("{quote}{quote}");
    let single = content.replace(&doubled, "");
    (!single.contains(quote)).then(|| content.replace(&doubled, &quote.to_string()))
}

pub(in crate::sql) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}

fn number(text: &str) -> Option<Literal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    if !starts || !digits.contains(|one: char| one.is_ascii_digit()) {
        return None;
    }
    if let Ok(whole) = text.parse() {
        return Some(Literal::Integer(whole));
    }
    let is_decimal =
        digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && digits.matches('.').count() <= 1;
    if is_decimal {
        let mut plain = String::new();
        canonical::decimal(text, &mut plain);
        return Some(Literal::Decimal(plain));
    }
    text.parse().ok().filter(|number: &f64| number.is_finite()).map(Literal::Float)
}

/// A date such as `2016-5-16`, perhaps with a time such as ` 1:02:03.5`.
fn time(text: &str) -> Option<Literal> {
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-')?;
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    let Some(time) = time else { return Some(Literal::Date(date)) };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_time = hour < 24
        && minute < 60
        && second < 60
        && fraction.len() <= 6
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
    is_time.then(|| Literal::Timestamp(format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}")))
}

fn numbers(text: &str, between: char) -> Option<[u32; 3]> {
    let all: Vec<u32> = text.split(between).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    all.try_into().ok()
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The type that holds values of both.
pub(in crate::sql) fn wider(a: Type, b: Type) -> Option<Type> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (Type::Integer, Type::Decimal) | (Type::Decimal, Type::Integer) => Some(Type::Decimal),
        (Type::Integer | Type::Decimal, Type::Float) | (Type::Float, Type::Integer | Type::Decimal) => {
            Some(Type::Float)
        }
        (Type::Date, Type::Timestamp) | (Type::Timestamp, Type::Date) => Some(Type::Timestamp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let check = |text: &str, expect: Option<Literal>| assert_eq!(Literal::parse(text).ok(), expect, "{text}");
        check("0", Some(Literal::Integer(0)));
        check("-17", Some(Literal::Integer(-17)));
        check(".5656", Some(Literal::Decimal("0.5656".into())));
        check("0982192511.53", Some(Literal::Decimal("982192511.53".into())));
        check("99999999999999999999", Some(Literal::Decimal("99999999999999999999".into())));
        check("1e3", Some(Literal::Float(1000.0)));
        check("'it''s; so'", Some(Literal::Text("it's; so".into())));
        check("\"a\"", Some(Literal::Text("a".into())));
        check("''", Some(Literal::Text(String::new())));
        check("NULL", Some(Literal::Null));
        check("X'00ff'", Some(Literal::Bytes(vec![0, 255])));
        check("2016-5-16", Some(Literal::Date("2016-05-16".into())));
        check("2016-5-16 1:02:03.500", Some(Literal::Timestamp("2016-05-16 01:02:03.5".into())));
        for wrong in ["2016-2-30", "2016-5-16 24:00:00", "JANUBB", "'a'b'", "X'0'", "-", "1.2.3"] {
            check(wrong, None);
        }
    }

    #[test]
    fn values_become_wider_and_never_narrower() {
        let check = |from: Literal, to, expect: Option<Literal>| assert_eq!(from.widened(to), expect);
        check(Literal::Integer(5), Type::Decimal, Some(Literal::Decimal("5".into())));
        check(
            Literal::Date("2016-05-16".into()),
            Type::Timestamp,
            Some(Literal::Timestamp("2016-05-16 00:00:00".into())),
        );
        check(Literal::Null, Type::Bytes, Some(Literal::Null));
        check(Literal::Decimal("5.5".into()), Type::Integer, None);
        check(Literal::Text("5".into()), Type::Integer, None);
    }
}
