//! The conditions of a trace set's data, checked by its queries in the dialect of the database.

use std::time::Instant;

use schemas::conditions::{Condition, Found, ROW_CHARS_MAX, ROWS_KEPT};
use schemas::vocabulary::sql::Rows;
use schemas::workload::sql::checks::When;
use sqlx::SqlStr;

use super::super::Relational;
use super::super::engine::{Canonical, Client, Engine, Fields};
use super::statements::{Conditional, Statements};
use crate::stores::{Moment, StoreError};

/// See [`Serves::check_conditions`](crate::stores::Serves::check_conditions).
pub(super) async fn check<E: Engine>(
    store: &Relational<E>,
    statements: &Statements,
    moment: Moment,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Vec<Condition>>, StoreError> {
    let all = statements.conditions();
    let mut checked = Vec::with_capacity(all.len());
    for Conditional { check, query } in all {
        if !go_on(checked.len() as u64, all.len() as u64) {
            return Ok(None);
        }
        let begun = Instant::now();
        let found = match query {
            _ if check.when == When::AfterLoad && moment == Moment::Replayed => Found::LoadOnly,
            Ok(query) => violations(store, query.clone()).await.unwrap_or_else(|error| Found::Failed(error.message)),
            Err(why) => Found::Failed(why.clone()),
        };
        let took_ns = begun.elapsed().as_nanos() as u64;
        checked.push(Condition { name: check.name.clone(), title: check.title.clone(), found, took_ns });
    }
    Ok(go_on(all.len() as u64, all.len() as u64).then_some(checked))
}

/// The rows that a query returns. It gets a connection of its own: a query before it may have broken its own.
async fn violations<E: Engine>(store: &Relational<E>, query: SqlStr) -> Result<Found, StoreError> {
    let mut client = store.client().await?;
    let (mut rows, mut first, mut values) = (0, Vec::new(), Rows::default());
    values.begin(false, false);
    let mut take = |row: &<E::Client as Client>::Row| {
        rows += 1;
        if first.len() < ROWS_KEPT {
            row.add_to(&mut values)?;
            first.push(text_of(&row.names(), &values.texts()));
            values.end_row();
        }
        Ok(())
    };
    let done = client.visit(query, &mut take).await;
    done.map_err(|error| store.driver_failed(error))?;
    store.in_time(client.disconnect()).await?;
    Ok(if rows == 0 { Found::Holds } else { Found::Violated { rows, first } })
}

/// A row as `name = value, …`, cut where it is very long.
fn text_of(names: &[String], values: &[Option<String>]) -> String {
    let pairs = names.iter().zip(values).map(|(name, value)| {
        let value = value.as_deref().unwrap_or("NULL");
        format!("{name} = {}", value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>())
    });
    let text = pairs.collect::<Vec<_>>().join(", ");
    match text.char_indices().nth(ROW_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_columns() {
        let row = |value: &str| text_of(&["w_id".into(), "name".into()], &[Some(value.into()), None]);
        assert_eq!(row("1\n2"), "w_id = 1 2, name = NULL");
        let long = row(&"é".repeat(2 * ROW_CHARS_MAX));
        assert_eq!((long.chars().count(), long.ends_with("é…")), (ROW_CHARS_MAX + 1, true));
    }
}
