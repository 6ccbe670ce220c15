//! The numbered lists of BenchFoundry: schema, statements, sets of parameters.

use std::collections::BTreeMap;

use schemas::vocabulary::sql::text::{Dialect, Effect, effect};

use super::{ImportError, Text};
use crate::sql::literals::Literal;

/// A statement of the list.
pub(super) struct Operation {
    pub(super) number: i64,
    pub(super) text: String,
    pub(super) effect: Effect,
    pub(super) line: usize,
}

/// A set of parameters.
pub(super) struct Set {
    pub(super) line: usize,
    pub(super) values: Vec<Literal>,
}

/// A line `number:content`.
fn numbered<'a>(text: &Text, line: usize, content: &'a str) -> Result<(i64, &'a str), ImportError> {
    let parts = content.split_once(':').and_then(|(number, rest)| Some((number.trim().parse().ok()?, rest.trim())));
    parts.ok_or_else(|| text.wrong(line, "does not begin with a number and a colon, such as 0:"))
}

/// The definitions of the schema, one a line.
pub(super) fn schema(text: &Text, dialect: Dialect) -> Result<String, ImportError> {
    let mut all = String::new();
    for (line, content) in text.lines() {
        let (_, definition) = numbered(text, line, content)?;
        let definition = definition.trim_end_matches(';');
        let read = schemas::vocabulary::sql::text::definitions(definition, dialect, dialect);
        read.map_err(|message| text.wrong(line, message))?;
        all.push_str(definition);
        all.push_str(";\n");
    }
    Ok(all)
}

/// The statements, in the order of the file.
pub(super) fn operations(text: &Text, dialect: Dialect) -> Result<Vec<Operation>, ImportError> {
    let mut all: Vec<Operation> = Vec::new();
    for (line, content) in text.lines() {
        let (number, sql) = numbered(text, line, content)?;
        if let Some(first) = all.iter().find(|one| one.number == number) {
            return Err(text.wrong(line, format!("statement {number} is already in line {}", first.line)));
        }
        let sql = sql.trim_end_matches(';').trim_end();
        let effect = effect(sql, dialect).map_err(|why| text.wrong(line, format!("statement {number} {why}")))?;
        all.push(Operation { number, text: sql.to_string(), effect, line });
    }
    match all.is_empty() {
        true => Err(text.wrong(1, "has no statement")),
        false => Ok(all),
    }
}

/// The sets of parameters by their numbers.
pub(super) fn sets(text: Option<&Text>) -> Result<BTreeMap<i64, Set>, ImportError> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    collect(text, |line, part| Literal::parse(part).map_err(|why| text.wrong(line, why)))
        .map(|sets| sets.into_iter().map(|(number, (line, values))| (number, Set { line, values })).collect())
}

/// The sets of custom parameters by their numbers. Nobody but the adapter interprets them.
pub(super) fn custom_sets(text: Option<&Text>) -> Result<BTreeMap<i64, Vec<String>>, ImportError> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let sets = collect(text, |_, part| {
        Ok(match Literal::parse(part) {
            Ok(Literal::Text(content)) => content,
            _ => part.to_string(),
        })
    })?;
    Ok(sets.into_iter().map(|(number, (_, values))| (number, values)).collect())
}

type Collected<X> = BTreeMap<i64, (usize, Vec<X>)>;

fn collect<X>(text: &Text, read: impl Fn(usize, &str) -> Result<X, ImportError>) -> Result<Collected<X>, ImportError> {
    let mut all: Collected<X> = BTreeMap::new();
    for (line, content) in text.lines() {
        let (number, values) = numbered(text, line, content)?;
        let parts = parts(values).ok_or_else(|| text.wrong(line, "a text in quotes has no end"))?;
        let values = parts.into_iter().map(|part| read(line, part)).collect::<Result<_, _>>()?;
        if let Some((first, _)) = all.insert(number, (line, values)) {
            return Err(text.wrong(line, format!("set {number} is already in line {first}")));
        }
    }
    Ok(all)
}

/// What is between semicolons, except in quotes. None if a quote is open at the end.
pub(super) fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut open) = (Vec::new(), 0, None);
    for (at, one) in text.char_indices() {
        match (open, one) {
            // A doubled quote closes and opens again.
            (Some(quote), one) if one == quote => open = None,
            (None, '\'' | '"') => open = Some(one),
            (None, ';') => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = text[from..].trim();
    // A semicolon may end the line.
    if !last.is_empty() {
        parts.push(last);
    }
    open.is_none().then_some(parts)
}
