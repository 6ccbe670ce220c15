//! The text of statements: what a statement does, and the same statement in the dialect of a database.
//!
//! A parser decides what a statement does. The translation works on its tokens, so that what is the same in
//! all dialects stays as it was written.

mod definitions;
pub(super) mod dml;
pub(super) mod tokens;
pub(super) mod types;

use serde::{Deserialize, Serialize};
use sqlparser::ast::{SetExpr, Statement as Parsed};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

pub use definitions::{Definition, Keys, definitions};
pub use dml::{translate, without_locks};

/// In which SQL a trace set's texts are written, or a database expects them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// A schema that belongs to no database: backticks, and the types of MySQL, as in BenchFoundry.
    /// It is translated for every database, and texts are compared by their bytes.
    Logical,
    /// MariaDB and MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// The grammar of the parser.
    pub(super) fn grammar(self) -> Box<dyn Grammar> {
        match self {
            Dialect::Logical | Dialect::Mysql => Box::new(MySqlDialect {}),
            Dialect::Postgres => Box::new(PostgreSqlDialect {}),
            Dialect::Sqlite => Box::new(SQLiteDialect {}),
        }
    }

    /// Whether texts of this dialect are statements of MySQL by their form.
    fn is_like_mysql(self) -> bool {
        matches!(self, Dialect::Logical | Dialect::Mysql)
    }
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// Whether it returns rows.
    pub reads: bool,
    /// Whether it changes data.
    pub writes: bool,
    /// Whether the order of its rows counts.
    pub ordered: bool,
    /// How many parameters it has.
    pub parameters: usize,
}

/// What a statement does. The error says why it cannot be one of a trace set.
pub fn effect(text: &str, dialect: Dialect) -> Result<Effect, String> {
    let parsed =
        Parser::parse_sql(&*dialect.grammar(), text).map_err(|e| format!("is not SQL that Encore knows: {e}"))?;
    let [statement] = &parsed[..] else {
        return Err(format!("is {} statements; write one", parsed.len()));
    };
    let parameters = tokens::parameters(&tokens::of(text, dialect)?)?;
    let rows = |returning: bool| Effect { reads: returning, writes: true, ordered: false, parameters };
    match statement {
        Parsed::Query(query) => {
            let inner = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| &*cte.query.body);
            let writes = inner.chain([&*query.body]).any(does_write);
            Ok(Effect { reads: true, writes, ordered: query.order_by.is_some(), parameters })
        }
        Parsed::Insert(insert) => Ok(rows(insert.returning.is_some())),
        Parsed::Update(update) => Ok(rows(update.returning.is_some())),
        Parsed::Delete(delete) => Ok(rows(delete.returning.is_some())),
        Parsed::Merge(_) | Parsed::Truncate(_) => Ok(rows(false)),
        Parsed::Call(_) => Ok(rows(true)),
        Parsed::StartTransaction { .. } | Parsed::Commit { .. } | Parsed::Rollback { .. } => {
            Err("begins or ends a transaction; a trace has operations of its own for that".into())
        }
        Parsed::CreateTable(_)
        | Parsed::CreateIndex(_)
        | Parsed::CreateView(_)
        | Parsed::AlterTable(_)
        | Parsed::CreateSequence { .. }
        | Parsed::Drop { .. } => Err("changes the schema; a definition (DDL) belongs into the schema".into()),
        _ => Err("neither reads nor changes rows; remove it".into()),
    }
}

fn does_write(body: &SetExpr) -> bool {
    match body {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => true,
        SetExpr::Query(query) => does_write(&query.body),
        _ => false,
    }
}

/// Whether a statement inserts one row, or updates the one with its key.
pub fn is_upsert_of_a_row(text: &str, dialect: Dialect) -> bool {
    let parsed = Parser::parse_sql(&*dialect.grammar(), text);
    let Ok([Parsed::Insert(insert)]) = parsed.as_deref() else { return false };
    let source = insert.source.as_ref().map(|query| &*query.body);
    insert.on.is_some() && matches!(source, Some(SetExpr::Values(values)) if values.rows.len() == 1)
}

/// Whether a statement is an insert of values alone, into one row.
pub fn is_insert_of_a_row(text: &str, dialect: Dialect) -> bool {
    let parsed = Parser::parse_sql(&*dialect.grammar(), text);
    let Ok([Parsed::Insert(insert)]) = parsed.as_deref() else { return false };
    let source = insert.source.as_ref().map(|query| &*query.body);
    let is_plain = insert.on.is_none() && insert.returning.is_none() && !insert.ignore && insert.or.is_none();
    is_plain && !insert.replace_into && matches!(source, Some(SetExpr::Values(values)) if values.rows.len() == 1)
}

/// The name of a table as a statement of this dialect writes it.
pub fn quoted(name: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Logical | Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        Dialect::Postgres | Dialect::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Whether a token is this word, without quotes.
fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
