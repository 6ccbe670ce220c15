//! A statement of a trace set in the dialect of a database: quotes, parameters, limits, upserts.

use sqlparser::tokenizer::{Token, Whitespace};

use super::tokens::{of, write};
use super::{Dialect, Keys, is_word, quoted};
use crate::vocabulary::sql::{Statement, Type};

/// The text of a statement for a database. `keys` are the primary keys of the tables, which an upsert of
/// MySQL leaves out.
///
/// A parameter of PostgreSQL says its type where it is sent as a text. `casts` are the types that the database itself
/// has said for parameters; it may be shorter than they are.
pub fn translate(
    statement: &Statement,
    from: Dialect,
    to: Dialect,
    keys: &Keys,
    casts: &[Option<String>],
) -> Result<String, String> {
    let mut tokens = numbered(of(&statement.text, from)?);
    if from.is_like_mysql() && !to.is_like_mysql() {
        swap_limits(&mut tokens);
        upsert_of_mysql(&mut tokens, to, keys)?;
    }
    if !from.is_like_mysql() && to.is_like_mysql() {
        upsert_for_mysql(&mut tokens)?;
    }
    let mut written = Vec::new();
    let text = write(&tokens, from, to, &mut |number| {
        written.push(number);
        let kind = statement.parameters.get(number - 1);
        if let Some(cast) = casts.get(number - 1).and_then(Option::as_ref) {
            return format!("CAST(${number} AS {cast})");
        }
        match (to, kind) {
            (Dialect::Postgres, Some(Type::Decimal)) => format!("CAST(${number} AS NUMERIC)"),
            (Dialect::Postgres, Some(Type::Timestamp)) => format!("CAST(${number} AS TIMESTAMP)"),
            (Dialect::Postgres, Some(Type::Date)) => format!("CAST(${number} AS DATE)"),
            (Dialect::Postgres, _) => format!("${number}"),
            (Dialect::Sqlite, _) => format!("?{number}"),
            (Dialect::Mysql | Dialect::Logical, _) => "?".to_string(),
        }
    })?;
    // MySQL binds parameters by their place in the text.
    let is_in_place = written.iter().copied().eq(1..=written.len());
    if to.is_like_mysql() && !is_in_place {
        return Err("uses a parameter twice or out of order, which MySQL cannot; write ? for each".into());
    }
    Ok(text)
}

/// The text without the locks that a query takes (`FOR UPDATE`, `FOR SHARE`) at its end; None if it takes none.
pub fn without_locks(text: &str, dialect: Dialect) -> Result<Option<String>, String> {
    let mut tokens = of(text, dialect)?;
    let locks = |at: &usize| {
        let next = solid(&tokens, at + 1).next();
        is_word(&tokens[*at], "for")
            && next.is_some_and(|next| ["update", "share", "no", "key"].iter().any(|word| is_word(&tokens[next], word)))
    };
    let first = solid(&tokens, 0).find(locks);
    // A query in parentheses goes on after its locks.
    let Some(start) = first.filter(|start| !tokens[*start..].contains(&Token::RParen)) else { return Ok(None) };
    tokens.truncate(start);
    let text: String = tokens.iter().map(Token::to_string).collect();
    Ok(Some(text.trim_end().to_string()))
}

/// Gives each `?` its number, so that tokens may change their places.
pub fn numbered(mut tokens: Vec<Token>) -> Vec<Token> {
    let mut number = 0;
    for token in &mut tokens {
        if matches!(token, Token::Placeholder(name) if name == "?") {
            number += 1;
            *token = Token::Placeholder(format!("?{number}"));
        }
    }
    tokens
}

/// The places of the tokens from one on that are not space.
fn solid(tokens: &[Token], from: usize) -> impl Iterator<Item = usize> + '_ {
    (from..tokens.len()).filter(|at| !matches!(tokens[*at], Token::Whitespace(_)))
}

/// The first place of a word from a place on.
fn place_of(tokens: &[Token], from: usize, word: &str) -> Option<usize> {
    solid(tokens, from).find(|at| is_word(&tokens[*at], word))
}

/// Where these words follow each other, with nothing else between them: the first and the last place.
fn find(tokens: &[Token], words: &[&str]) -> Option<(usize, usize)> {
    solid(tokens, 0).find_map(|start| {
        let places: Vec<usize> = solid(tokens, start).take(words.len()).collect();
        let fits =
            places.len() == words.len() && places.iter().zip(words).all(|(at, word)| is_word(&tokens[*at], word));
        fits.then(|| (start, places[words.len() - 1]))
    })
}

fn word(text: &str) -> [Token; 2] {
    [Token::make_word(text, None), Token::Whitespace(Whitespace::Space)]
}

/// `LIMIT 5, 10` is `LIMIT 10 OFFSET 5` elsewhere.
fn swap_limits(tokens: &mut Vec<Token>) {
    let mut from = 0;
    while let Some(limit) = place_of(tokens, from, "limit") {
        from = limit + 1;
        let after: Vec<usize> = solid(tokens, from).take(3).collect();
        if let [offset, comma, count] = after[..]
            && tokens[comma] == Token::Comma
        {
            tokens.swap(offset, count);
            tokens.splice(comma..=comma, [Token::Whitespace(Whitespace::Space)].into_iter().chain(word("OFFSET")));
        }
    }
}

/// The table of an insert, and where its name stands.
fn table_of_insert(tokens: &[Token]) -> Option<String> {
    let into = place_of(tokens, 0, "into")?;
    let mut name = None;
    for at in solid(tokens, into + 1) {
        match &tokens[at] {
            Token::Word(word) => name = Some(word.value.to_lowercase()),
            Token::Period => {}
            _ => break,
        }
        // A name is followed by a period or by something else.
        if name.is_some() && !matches!(solid(tokens, at + 1).next().map(|next| &tokens[next]), Some(Token::Period)) {
            break;
        }
    }
    name
}

/// `ON DUPLICATE KEY UPDATE a = VALUES(a)` is `ON CONFLICT (key) DO UPDATE SET a = excluded.a` elsewhere.
fn upsert_of_mysql(tokens: &mut Vec<Token>, to: Dialect, keys: &Keys) -> Result<(), String> {
    let Some((start, end)) = find(tokens, &["on", "duplicate", "key", "update"]) else { return Ok(()) };
    let table = table_of_insert(tokens).unwrap_or_default();
    let key = keys
        .of(&table)
        .ok_or_else(|| format!("updates rows of table {table} by its primary key, and the schema has none"))?;
    let fold = |name: &String| if to == Dialect::Postgres { name.to_lowercase() } else { name.clone() };
    let columns = key.iter().map(|name| quoted(&fold(name), to)).collect::<Vec<_>>().join(", ");
    let mut at = end + 1;
    while let Some(values) = place_of(tokens, at, "values") {
        let after: Vec<usize> = solid(tokens, values + 1).take(3).collect();
        let [open, name, close] = after[..] else { break };
        if tokens[open] == Token::LParen && tokens[close] == Token::RParen {
            let name = tokens[name].clone();
            tokens.splice(values..=close, [Token::make_word("excluded", None), Token::Period, name]);
        }
        at = values + 1;
    }
    // The columns are quoted for the database already, so they are one word.
    tokens.splice(start..=end, [Token::make_word(&format!("ON CONFLICT ({columns}) DO UPDATE SET"), None)]);
    Ok(())
}

/// The reverse, for MySQL.
fn upsert_for_mysql(tokens: &mut Vec<Token>) -> Result<(), String> {
    let Some((start, _)) = find(tokens, &["on", "conflict"]) else { return Ok(()) };
    if let Some((_, end)) = find(tokens, &["do", "nothing"]) {
        tokens.drain(start..=end);
        let Some(insert) = place_of(tokens, 0, "insert") else { return Ok(()) };
        tokens.splice(insert..=insert, [Token::make_word("INSERT IGNORE", None)]);
        return Ok(());
    }
    let Some((_, end)) = find(tokens, &["do", "update", "set"]) else {
        return Err("has an ON CONFLICT that MySQL does not have".into());
    };
    let mut at = end + 1;
    while let Some(excluded) = place_of(tokens, at, "excluded") {
        let after: Vec<usize> = solid(tokens, excluded + 1).take(2).collect();
        let [period, name] = after[..] else { break };
        if tokens[period] == Token::Period {
            let name = tokens[name].clone();
            tokens.splice(
                excluded..excluded + 1 + (after[1] - excluded),
                [Token::make_word("VALUES", None), Token::LParen, name, Token::RParen],
            );
        }
        at = excluded + 1;
    }
    tokens.splice(start..=end, [Token::make_word("ON DUPLICATE KEY UPDATE", None)]);
    Ok(())
}
