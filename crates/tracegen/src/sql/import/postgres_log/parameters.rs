//! The parameters of a statement, as the details of an entry list them: `$1 = 'it''s', $2 = NULL`.

use crate::sql::import::values::Bound;

/// Reads the details of an entry. None if they list no parameters, or the list is cut off.
/// PostgreSQL 16 and later write `Parameters:`, earlier versions `parameters:`.
pub fn of_detail(detail: &str) -> Option<Vec<Bound>> {
    read(detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))?)
}

/// Reads the context of an error: `unnamed portal with parameters: $1 = '7'`.
/// The server writes it only with `log_parameter_max_length_on_error`.
pub fn of_context(context: &str) -> Option<Vec<Bound>> {
    let (before, list) = context.split_once(" with parameters: ")?;
    let line = before.rsplit('\n').next().unwrap_or(before);
    let is_portal = line.contains("portal") || line == "extended query";
    if is_portal { read(list) } else { None }
}

/// Reads a list of parameters.
fn read(list: &str) -> Option<Vec<Bound>> {
    let mut bounds = Vec::new();
    let mut rest = list;
    loop {
        let named = rest.strip_prefix('$')?;
        let (number, after) = named.split_once(" = ")?;
        if number.parse() != Ok(bounds.len() + 1) {
            return None;
        }
        let (bound, after) = take(after)?;
        bounds.push(bound);
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            // A context goes on in another line.
            None => return (after.is_empty() || after.starts_with('\n')).then_some(bounds),
        }
    }
}

fn take(text: &str) -> Option<(Bound, &str)> {
    if let Some(after) = text.strip_prefix("NULL") {
        return Some((None, after));
    }
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (some, after) = rest.split_once('\'')?;
        value.push_str(some);
        let Some(again) = after.strip_prefix('\'') else { return Some((Some(value), after)) };
        value.push('\'');
        rest = again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(texts: &[Option<&str>]) -> Option<Vec<Bound>> {
        Some(texts.iter().map(|text| text.map(str::to_string)).collect())
    }

    #[test]
    fn parameters_are_read_whatever_their_version_and_values() {
        let both = some(&[Some("it's"), None, Some("a, $2 = 'b"), Some("")]);
        assert_eq!(of_detail("parameters: $1 = 'it''s', $2 = NULL, $3 = 'a, $2 = ''b', $4 = ''"), both);
        assert_eq!(of_detail("Parameters: $1 = 'it''s', $2 = NULL, $3 = 'a, $2 = ''b', $4 = ''"), both);
        assert_eq!(of_detail("parameters: $1 = 'a\nb'"), some(&[Some("a\nb")]));
        for cut in ["parameters: $1 = 'a", "parameters: $1 = 'a', ", "parameters: $2 = 'a'", "prepare: PREPARE x", ""] {
            assert_eq!(of_detail(cut), None, "{cut}");
        }
    }

    #[test]
    fn parameters_of_an_error_are_in_its_context() {
        for context in [
            "extended query with parameters: $1 = '7', $2 = NULL",
            "unnamed portal with parameters: $1 = '7', $2 = NULL",
            "PL/pgSQL function f()\nportal \"C_1\" with parameters: $1 = '7', $2 = NULL\nmore",
        ] {
            assert_eq!(of_context(context), some(&[Some("7"), None]), "{context}");
        }
        assert_eq!(of_context("unnamed portal with parameters: $1 = 'a\nb'"), some(&[Some("a\nb")]));
        assert_eq!(of_context("SQL function \"f\" statement 1"), None);
    }
}
