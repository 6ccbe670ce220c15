//! Asks PostgreSQL for the types of parameters by `PREPARE`.
//!
//! A log of a database has the texts of values, and PostgreSQL compares no text with a column of another type. So the
//! parameters of such a statement are left open when it is prepared once, and PostgreSQL says what it takes them for.
//! Where that is ambiguous (`$1 + $2`), types are tried that fit most values.

use schemas::vocabulary::sql::Type;
use sqlx::postgres::PgConnection;
use sqlx::{Error, SqlStr};

use crate::stores::relational::engine::{Client, Fields};
use crate::stores::relational::state::sql;

const NAME: &str = "encore_asks";

/// What whole numbers are declared as. A function of PostgreSQL often wants the smaller ones (`left(text, integer)`).
const INTEGERS: [&str; 2] = ["bigint", "integer"];

/// What parameters of unknown type are declared as. The first one leaves them open.
const UNKNOWNS: [&str; 4] = ["unknown", "numeric", "bigint", "text"];

/// Another type is tried for so many parameters of a statement.
const SINGLES_MAX: usize = 100;

/// See [`Engine::casts`](crate::stores::relational::engine::Engine::casts). A statement that PostgreSQL refuses in any case gets no casts: it
/// fails when it is executed, with PostgreSQL's own message.
pub async fn casts(client: &mut PgConnection, statement: SqlStr, types: &[Type]) -> Result<Vec<Option<String>>, Error> {
    let has = |kind: Type| types.contains(&kind);
    if !has(Type::Unknown) && !has(Type::Integer) {
        return Ok(Vec::new());
    }
    for declared in candidates(types) {
        let prepare = format!("PREPARE {NAME} ({}) AS {}", declared.join(", "), statement.as_str());
        match client.run(sql(prepare)).await {
            Ok(()) => {
                let found = parameters(client).await?;
                client.run(sql(format!("DEALLOCATE {NAME}"))).await?;
                return Ok(found.into_iter().zip(types).map(|(found, kind)| cast(found, *kind)).collect());
            }
            Err(Error::Database(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(Vec::new())
}

/// The types to declare, in the order in which they are tried: what fits most values; then another type for one parameter, since
/// that settles an operator or a function; then another type for all of a kind.
fn candidates(types: &[Type]) -> Vec<Vec<&'static str>> {
    let usual: Vec<&str> = types.iter().map(|kind| declaration(*kind, INTEGERS[0], UNKNOWNS[0])).collect();
    let one = types.iter().enumerate().take(SINGLES_MAX).flat_map(|(place, kind)| {
        let others = match kind {
            Type::Integer => &INTEGERS[1..],
            Type::Unknown => &UNKNOWNS[1..],
            _ => &[],
        };
        let usual = &usual;
        others.iter().map(move |other| {
            let mut declared = usual.clone();
            declared[place] = other;
            declared
        })
    });
    let all = UNKNOWNS.iter().flat_map(|unknown| INTEGERS.iter().map(move |integer| (*unknown, *integer)));
    let all =
        all.skip(1).map(|(unknown, integer)| types.iter().map(|kind| declaration(*kind, integer, unknown)).collect());
    let mut found: Vec<Vec<&str>> = std::iter::once(usual.clone()).chain(one).chain(all).collect();
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|declared| seen.insert(declared.clone()));
    found
}

/// The type that a parameter is declared with. The statement has a cast for those that are sent as texts.
fn declaration(kind: Type, integer: &'static str, unknown: &'static str) -> &'static str {
    match kind {
        Type::Integer => integer,
        Type::Unknown => unknown,
        Type::Float => "double precision",
        Type::Bytes => "bytea",
        Type::Text | Type::Decimal | Type::Timestamp | Type::Date => "text",
    }
}

/// The types of the parameters of the prepared statement.
async fn parameters(client: &mut PgConnection) -> Result<Vec<String>, Error> {
    let query = format!(
        "SELECT kind::text FROM pg_prepared_statements, unnest(parameter_types) WITH ORDINALITY AS all_types (kind, place) \
         WHERE name = '{NAME}' ORDER BY place"
    );
    let mut found = Vec::new();
    client
        .visit(sql(query), &mut |row| {
            found.push(row.text(0)?.to_string());
            Ok(())
        })
        .await?;
    Ok(found)
}

/// The cast that a parameter needs; None if PostgreSQL converts it by itself.
fn cast(found: String, kind: Type) -> Option<String> {
    match (kind, found.as_str()) {
        (Type::Integer, "integer") => Some(found),
        (Type::Unknown, "text" | "character varying" | "name" | "unknown") => None,
        // These names have a length of 1 in a cast.
        (Type::Unknown, "character") => Some("bpchar".into()),
        (Type::Unknown, "bit") => Some("varbit".into()),
        (Type::Unknown, _) => Some(found),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_is_changed_before_all_are() {
        use Type::{Integer, Text};
        let found = candidates(&[Integer, Text, Integer]);
        let expect = [
            ["bigint", "text", "bigint"],
            ["integer", "text", "bigint"],
            ["bigint", "text", "integer"],
            ["integer", "text", "integer"],
        ];
        assert_eq!(found, expect);
        let open = candidates(&[Type::Unknown, Type::Unknown]);
        assert_eq!(open[..3], [["unknown", "unknown"], ["numeric", "unknown"], ["bigint", "unknown"]]);
        assert!(open.contains(&vec!["text", "text"]) && open.len() == 1 + 2 * 3 + 3);
    }
}
