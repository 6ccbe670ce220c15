//! The marker in `encore_state`: what a database holds.

use sqlx::{AssertSqlSafe, Error, SqlSafeStr, SqlStr};

use super::contents::MARKER;
use super::engine::{Client, Engine, Fields, Parameter};
use super::{Dialect, Relational, kv};
use crate::stores::{HeldState, StoreError};

/// Marks a text as safe SQL: the program has written it, and quoted the names in it.
pub(crate) fn sql(text: impl Into<String>) -> SqlStr {
    AssertSqlSafe(text.into()).into_sql_str()
}

/// The statement that creates the marker's table.
pub(crate) fn state_creation(dialect: &Dialect) -> SqlStr {
    sql(format!("CREATE TABLE encore_state (state {} NOT NULL)", dialect.text))
}

/// What Encore finds in a database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has no tables.
    Empty,
    /// It has tables that Encore has not made.
    Foreign,
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// Reads the marker of the database that a client is connected to.
pub(crate) async fn find<E: Engine>(client: &mut E::Client) -> Result<Found, Error> {
    let mut counts = (0, 0);
    let count = |row: &<E::Client as Client>::Row| {
        counts = (row.integer(0)?, row.integer(1)?);
        Ok(())
    };
    client.visit(sql(E::DIALECT.tables), &mut { count }).await?;
    match counts {
        (0, _) => return Ok(Found::Empty),
        (_, 0) => return Ok(Found::Foreign),
        _ => {}
    }
    let mut text = None;
    let mut take = |row: &<E::Client as Client>::Row| {
        text = Some(row.text(0)?.to_string());
        Ok(())
    };
    client.visit(sql("SELECT state FROM encore_state"), &mut take).await?;
    let Some(text) = text else { return Ok(Found::Unfinished) };
    let held: HeldState = serde_json::from_str(&text).map_err(|e| Error::Decode(format!("{MARKER}: {e}").into()))?;
    // Another tool may have made its table beside the data set of another family.
    if !kv::has_loaded(&held) && client.run(sql(format!("SELECT 1 FROM {} LIMIT 1", kv::TABLE))).await.is_ok() {
        return Ok(Found::Foreign);
    }
    Ok(Found::Held(held))
}

/// Writes the marker of a database that has none yet.
pub(crate) async fn insert_state<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    let text = serde_json::to_string(state).map_err(|e| Error::Encode(e.into()))?;
    let parameter = (E::DIALECT.parameter)(1);
    let insertion = sql(format!("INSERT INTO {MARKER} (state) VALUES ({parameter})"));
    client.change(insertion, &[Parameter::Text(&text)]).await?;
    Ok(())
}

impl<E: Engine> Relational<E> {
    /// What was found in the database; an error if it is not Encore's.
    pub(crate) fn held_in(&self, found: Found) -> Result<Option<HeldState>, StoreError> {
        match found {
            Found::Held(held) => Ok(Some(held)),
            Found::Empty | Found::Unfinished => Ok(None),
            Found::Foreign => Err(self.misused(
                "contains tables that Encore has not made; choose another database, or add --keep-data to run on the \
                 records of its table usertable",
            )),
        }
    }

    pub(super) async fn write_state(&self, state: &HeldState) -> Result<(), StoreError> {
        let text = serde_json::to_string(state).map_err(|e| self.failed(e))?;
        let mut client = self.client().await?;
        let parameter = (E::DIALECT.parameter)(1);
        let update = sql(format!("UPDATE {MARKER} SET state = {parameter}"));
        self.in_time(client.change(update, &[Parameter::Text(&text)])).await?;
        self.in_time(client.disconnect()).await
    }

    /// The number that a query returns.
    pub(super) async fn count(&self, client: &mut E::Client, query: &str) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut take = |row: &<E::Client as Client>::Row| {
            count = row.integer(0)?;
            Ok(())
        };
        client.visit(sql(query), &mut take).await.map_err(|e| self.driver_failed(e))?;
        Ok(count as u64)
    }
}
