//! The parameters of a row: a JSON array of values and of results of earlier steps.
//!
//! Numbers keep the digits that they are written with, so that a decimal number of any length is exact.

use schemas::vocabulary::sql::{Parameter, Pick, ResultOf, Type, canonical};
use serde::Deserialize;

use crate::sql::literals::{Literal, bytes};

/// A parameter of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    Value(Literal),
    Result(ResultOf),
}

impl Argument {
    /// Its type; None for NULL.
    pub(super) fn kind(&self) -> Option<Type> {
        self.parameter().kind()
    }

    pub(super) fn parameter(&self) -> Parameter<'_> {
        match self {
            Argument::Value(value) => Parameter::Value(value.value()),
            Argument::Result(result) => Parameter::Result(*result),
        }
    }
}

/// A result of an earlier step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Result_ {
    step: u16,
    column: u16,
    #[serde(default)]
    row: Row,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Row {
    Named(Named),
    Nth(u64),
}

impl Default for Row {
    fn default() -> Row {
        Row::Named(Named::First)
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Named {
    First,
    Middle,
    Last,
}

/// The elements of a JSON array, as they are written.
pub(super) fn elements(text: &str) -> Result<Vec<&str>, String> {
    let wrong = || "parameters are no JSON array, such as [1, \"a\", null]".to_string();
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let (mut all, mut from, mut depth, mut in_text, mut escaped) = (Vec::new(), 0, 0_u32, false, false);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1).ok_or_else(wrong)?,
            b',' if depth == 0 => {
                all.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = inner[from..].trim();
    if !(last.is_empty() && all.is_empty()) {
        all.push(last);
    }
    if in_text || depth > 0 || all.iter().any(|element| element.is_empty()) { Err(wrong()) } else { Ok(all) }
}

/// The parameter that an element stands for, in the type that it is declared with.
pub(super) fn argument(element: &str, declared: Option<Type>) -> Result<Argument, String> {
    if element.starts_with('{') {
        return result(element, declared).map(Argument::Result);
    }
    let value = literal(element)?;
    let Some(declared) = declared else { return Ok(Argument::Value(value)) };
    let typed = typed(&value, declared);
    typed.map(Argument::Value).ok_or_else(|| format!("is {element}, and its type is {declared}; {}", form(declared)))
}

fn result(element: &str, declared: Option<Type>) -> Result<ResultOf, String> {
    let form = "write {\"step\": 1, \"column\": 0, \"row\": \"first\", \"type\": \"integer\"}";
    let result: Result_ =
        serde_json::from_str(element).map_err(|error| format!("is {element}, which is no result: {error}; {form}"))?;
    let own = result.kind.map(|kind| kind.parse::<Type>()).transpose()?;
    let kind = match (own, declared) {
        (Some(own), Some(declared)) if own != declared => {
            return Err(format!("is a result of type {own}, and its type is {declared}"));
        }
        (own, declared) => own.or(declared),
    };
    let kind = kind.ok_or_else(|| format!("is a result without a type; {form}"))?;
    let pick = match result.row {
        Row::Named(Named::First) => Pick::First,
        Row::Named(Named::Middle) => Pick::Middle,
        Row::Named(Named::Last) => Pick::Last,
        Row::Nth(number) => match u8::try_from(number) {
            Ok(number) if number <= Pick::NTH_MAX => Pick::Nth(number),
            _ => return Err(format!("is row {number} of a result; rows are numbered from 0 to {}", Pick::NTH_MAX)),
        },
    };
    Ok(ResultOf { kind, step: result.step, column: result.column, pick })
}

/// The value of an element by its form alone.
fn literal(element: &str) -> Result<Literal, String> {
    let wrong = |error: serde_json::Error| format!("is {element}, which is no value of JSON: {error}");
    match serde_json::from_str(element).map_err(wrong)? {
        serde_json::Value::Null => Ok(Literal::Null),
        serde_json::Value::Bool(is_true) => Ok(Literal::Integer(is_true.into())),
        serde_json::Value::String(text) => Ok(Literal::Text(text)),
        serde_json::Value::Number(number) => Ok(self::number(element, number.as_f64().unwrap_or(f64::NAN))),
        _ => Err(format!("is {element}; write a number, a text, a truth value, null or a result")),
    }
}

fn number(digits: &str, float: f64) -> Literal {
    if let Ok(whole) = digits.parse() {
        return Literal::Integer(whole);
    }
    if digits.contains(['e', 'E']) {
        return Literal::Float(float);
    }
    let mut plain = String::new();
    canonical::decimal(digits, &mut plain);
    Literal::Decimal(plain)
}

/// The value in a declared type; None if it has none.
fn typed(value: &Literal, declared: Type) -> Option<Literal> {
    match (value, declared) {
        (Literal::Text(digits), Type::Bytes) => bytes(digits).map(Literal::Bytes),
        (Literal::Text(text), Type::Decimal | Type::Date | Type::Timestamp) => {
            Literal::parse(text).ok().filter(|value| *value != Literal::Null)?.widened(declared)
        }
        (Literal::Text(text), Type::Unknown) => Some(Literal::Unknown(text.clone())),
        (value, declared) => value.widened(declared),
    }
}

/// How a value of a type is written.
fn form(kind: Type) -> &'static str {
    match kind {
        Type::Integer => "write a whole number without quotes",
        Type::Float => "write a number without quotes",
        Type::Decimal => "write a number, or its digits in quotes",
        Type::Text | Type::Unknown => "write a text in quotes",
        Type::Bytes => "write hexadecimal digits in quotes",
        Type::Timestamp => "write \"2016-05-16 01:02:03\"",
        Type::Date => "write \"2016-05-16\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_split_as_they_are_written() {
        let check = |text: &str, expect: &[&str]| assert_eq!(elements(text).unwrap(), expect, "{text}");
        check("[]", &[]);
        check(" [ 1 , -2.50 ]", &["1", "-2.50"]);
        check(
            r#"["a,]\"", null, {"step": 1, "column": [0]}]"#,
            &[r#""a,]\"""#, "null", r#"{"step": 1, "column": [0]}"#],
        );
        for wrong in ["", "1", "[1", "[1,]", "[,1]", "[\"a]", "[1]]", "[{]"] {
            assert!(elements(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_take_the_declared_type_and_lose_no_digit() {
        let check = |element: &str, declared: Option<Type>, expect: Option<Literal>| {
            assert_eq!(argument(element, declared).ok(), expect.map(Argument::Value), "{element}");
        };
        check("12345678901234567890.10", None, Some(Literal::Decimal("12345678901234567890.1".into())));
        check("99999999999999999999", None, Some(Literal::Decimal("99999999999999999999".into())));
        check("-5", None, Some(Literal::Integer(-5)));
        check("true", Some(Type::Integer), Some(Literal::Integer(1)));
        check("1e3", None, Some(Literal::Float(1000.0)));
        check("5", Some(Type::Decimal), Some(Literal::Decimal("5".into())));
        check("\"5.50\"", Some(Type::Decimal), Some(Literal::Decimal("5.5".into())));
        check("\"00ff\"", Some(Type::Bytes), Some(Literal::Bytes(vec![0, 255])));
        check("\"2016-5-16\"", Some(Type::Timestamp), Some(Literal::Timestamp("2016-05-16 00:00:00".into())));
        check("\"2016-05-16\"", Some(Type::Date), Some(Literal::Date("2016-05-16".into())));
        check("null", Some(Type::Bytes), Some(Literal::Null));
        for (wrong, declared) in [
            ("\"5\"", Type::Integer),
            ("5.5", Type::Integer),
            ("5", Type::Text),
            ("\"x\"", Type::Decimal),
            ("\"NULL\"", Type::Decimal),
            ("\"2016-02-30\"", Type::Date),
            ("\"0g\"", Type::Bytes),
            ("[1]", Type::Integer),
            ("x", Type::Integer),
        ] {
            check(wrong, Some(declared), None);
        }
    }

    #[test]
    fn an_object_is_a_result_of_an_earlier_step() {
        let one = r#"{"step": 2, "column": 1, "row": "last", "type": "integer"}"#;
        let expect = ResultOf { kind: Type::Integer, step: 2, column: 1, pick: Pick::Last };
        for declared in [None, Some(Type::Integer)] {
            let argument = argument(one, declared).unwrap();
            assert_eq!(argument.parameter(), Parameter::Result(expect));
        }
        let numbered = argument(r#"{"step": 2, "column": 1, "row": 252, "type": "integer"}"#, None).unwrap();
        assert_eq!(numbered.parameter(), Parameter::Result(ResultOf { pick: Pick::Nth(252), ..expect }));
        let beyond = argument(r#"{"step": 2, "column": 1, "row": 253, "type": "integer"}"#, None).unwrap_err();
        assert!(beyond.contains("row 253") && beyond.contains("from 0 to 252"), "{beyond}");
        assert!(argument(one, Some(Type::Text)).unwrap_err().contains("of type integer, and its type is text"));
        assert!(argument(r#"{"step": 2, "column": 1}"#, None).unwrap_err().contains("without a type"));
        assert!(argument(r#"{"step": 2, "columm": 1}"#, None).unwrap_err().contains("no result"));
    }
}
