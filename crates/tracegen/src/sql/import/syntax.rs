//! What the parser says of a statement: whether it reads and writes, and which of its literals can be parameters.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};
use sqlparser::ast::{Insert, SetExpr, Statement as Parsed};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;

use super::class::NO_DATA;
use super::lexer::Dialect;

/// Statements that the parser does not know.
pub const UNPARSABLE: &str = "statement that the SQL parser does not know";
/// SELECT … INTO.
pub const INTO: &str = "SELECT INTO: makes a table";

/// What a statement does, and where literals of it may be replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Syntax {
    /// Whether it returns rows.
    pub reads: bool,
    /// Whether it changes data.
    pub writes: bool,
    /// Whether the order of its rows counts.
    pub ordered: bool,
    /// Where in the text those literals begin that can be parameters, in bytes.
    pub replaceable: BTreeSet<usize>,
}

/// Reads a statement. The error is the reason why it is not taken.
pub fn read(text: &str, dialect: Dialect) -> Result<Syntax, &'static str> {
    let parsed = match dialect {
        Dialect::Postgres => Parser::parse_sql(&PostgreSqlDialect {}, text),
        Dialect::Mysql => Parser::parse_sql(&MySqlDialect {}, text),
    };
    let parsed = parsed.map_err(|_| UNPARSABLE)?;
    let [statement] = &parsed[..] else { return Err(UNPARSABLE) };
    let (reads, writes, ordered) = match statement {
        Parsed::Query(query) => {
            if is_into(&query.body) {
                return Err(INTO);
            }
            let inner = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| &*cte.query.body);
            (true, inner.chain([&*query.body]).any(does_write), query.order_by.is_some())
        }
        Parsed::Insert(Insert { returning, .. }) => (returning.is_some(), true, false),
        Parsed::Update(update) => (update.returning.is_some(), true, false),
        Parsed::Delete(delete) => (delete.returning.is_some(), true, false),
        Parsed::Merge(_) | Parsed::Truncate(_) => (false, true, false),
        Parsed::Call(_) => (true, true, false),
        _ => return Err(NO_DATA),
    };
    let mut literals = Literals::default();
    // Utility statements have no parameters.
    if !matches!(statement, Parsed::Truncate(_)) {
        let tree = serde_json::to_value(statement).map_err(|_| UNPARSABLE)?;
        literals.walk(&tree, false);
    }
    let replaceable = offsets(text, literals.values.difference(&literals.kept).copied());
    Ok(Syntax { reads, writes, ordered, replaceable })
}

fn does_write(body: &SetExpr) -> bool {
    match body {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => true,
        SetExpr::Query(query) => does_write(&query.body),
        _ => false,
    }
}

fn is_into(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_some(),
        SetExpr::Query(query) => is_into(&query.body),
        _ => false,
    }
}

/// Where a token begins: its line and its column, from 1.
type Start = (u64, u64);

/// The literals that are expressions, and those that must stay.
#[derive(Debug, Default)]
struct Literals {
    values: BTreeSet<Start>,
    kept: BTreeSet<Start>,
}

impl Literals {
    /// Looks at a part of the statement's tree. `is_kept` says whether its literals must stay.
    fn walk(&mut self, part: &Json, is_kept: bool) {
        let object = match part {
            Json::Array(parts) => return parts.iter().for_each(|part| self.walk(part, is_kept)),
            Json::Object(object) => object,
            _ => return,
        };
        let is_grouped = is_grouped(object);
        for (name, inner) in object {
            if let Some(start) = inner.get("span").filter(|_| name == "Value").and_then(start) {
                if is_kept {
                    self.kept.insert(start)
                } else {
                    self.values.insert(start)
                };
                continue;
            }
            let stays = match name.as_str() {
                // The grammar asks for a literal there.
                "Interval" => true,
                // A number there is a column's, and an expression must be the one of the rows.
                "order_by" | "OrderBy" => true,
                // An expression must be the same as that of its group, and two parameters never are.
                "group_by" => true,
                "projection" | "distinct" | "having" => is_grouped,
                _ => false,
            };
            self.walk(inner, is_kept || stays);
        }
    }
}

/// Whether an object is a SELECT whose rows are grouped.
fn is_grouped(object: &Map<String, Json>) -> bool {
    let Some(group_by) = object.get("group_by") else { return false };
    let is_plain = group_by.pointer("/Expressions/0").and_then(Json::as_array).is_some_and(Vec::is_empty);
    !is_plain || object.get("distinct").is_some_and(|distinct| !distinct.is_null())
}

fn start(span: &Json) -> Option<Start> {
    let of = |name: &str| span.pointer(name).and_then(Json::as_u64);
    // An empty span has line 0.
    Some((of("/start/line").filter(|line| *line > 0)?, of("/start/column")?))
}

/// Places of tokens, in ascending order, as bytes.
fn offsets(text: &str, starts: impl Iterator<Item = Start>) -> BTreeSet<usize> {
    let mut offsets = BTreeSet::new();
    let mut letters = text.char_indices();
    let (mut line, mut column) = (1, 1);
    for start in starts {
        for (offset, letter) in letters.by_ref() {
            let is_there = (line, column) == start;
            if letter == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
            if is_there {
                offsets.insert(offset);
                break;
            }
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The literals that can be parameters, as their first letters.
    fn check(text: &str, flags: (bool, bool, bool), replaceable: &[&str]) {
        let syntax = read(text, Dialect::Postgres).unwrap();
        assert_eq!((syntax.reads, syntax.writes, syntax.ordered), flags, "{text}");
        let found: Vec<String> = syntax.replaceable.iter().map(|at| text[*at..].chars().take(2).collect()).collect();
        assert_eq!(found, replaceable, "{text}");
    }

    const READS: (bool, bool, bool) = (true, false, false);
    const WRITES: (bool, bool, bool) = (false, true, false);
    const BOTH: (bool, bool, bool) = (true, true, false);

    #[test]
    fn literals_are_parameters_where_the_grammar_allows_it() {
        check("SELECT a FROM t WHERE b = 71 AND c IN ('x1', 'x2') LIMIT 72", READS, &["71", "'x", "'x", "72"]);
        check("SELECT 'é', 71, -73", READS, &["'é", "71", "73"]);
        check("INSERT INTO t VALUES (71, 'x')", WRITES, &["71", "'x"]);
        check("INSERT INTO t VALUES (71) ON CONFLICT (a) DO UPDATE SET b = 72 RETURNING b", BOTH, &["71", "72"]);
        check("UPDATE t SET a = a + 71\nWHERE b = 72", WRITES, &["71", "72"]);
        check("DELETE FROM t WHERE a > 71 RETURNING *", BOTH, &["71"]);
        check("WITH d AS (DELETE FROM t WHERE a = 71 RETURNING *) SELECT * FROM d", BOTH, &["71"]);
        check("SELECT '2020-01-01'::date, CAST('7' AS numeric(10,2))", READS, &["'2", "'7"]);
    }

    #[test]
    fn literals_stay_where_they_are_no_values() {
        check("SELECT a FROM t ORDER BY 1, b + 2", (true, false, true), &[]);
        check("SELECT a FROM t WHERE b > now() - INTERVAL '1 day'", READS, &[]);
        check("SELECT DATE '2020-01-01'", READS, &[]);
        check(
            "SELECT date_trunc('day', a), count(*) FROM t WHERE b = 71 GROUP BY date_trunc('day', a)",
            READS,
            &["71"],
        );
        check("SELECT DISTINCT coalesce(a, 'x') FROM t WHERE b = 71", READS, &["71"]);
        check("TRUNCATE t", WRITES, &[]);
    }

    #[test]
    fn what_is_no_statement_of_rows_is_refused() {
        for (text, reason) in [
            ("SELECT a FROM WHERE", UNPARSABLE),
            ("SELECT a INTO b FROM t", INTO),
            ("VACUUM t", NO_DATA),
            ("SELECT 1; SELECT 2", UNPARSABLE),
        ] {
            assert_eq!(read(text, Dialect::Postgres), Err(reason), "{text}");
        }
    }
}
