//! The marker in `encore_state`: what a database holds.

use sqlx::{AssertSqlSafe, Error, SqlSafeStr, SqlStr};

use super::contents::{MARKER, every_table, tables_beside};
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
    /// It has this table, which Encore has not made, and perhaps others.
    Foreign(String),
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// Reads the marker of the database that a client is connected to.
pub(crate) async fn find<E: Engine>(client: &mut E::Client) -> Result<Found, Error> {
    let mut names = Vec::new();
    let mut take = |row: &<E::Client as Client>::Row| {
        names.push(String::from_utf8_lossy(row.octets(0)?).into_owned());
        Ok(())
    };
    client.visit(sql(E::DIALECT.tables), &mut take).await?;
    if !names.is_empty() && !names.iter().any(|name| name == MARKER) {
        return Ok(Found::Foreign(names.swap_remove(0)));
    }
    if names.is_empty() {
        return Ok(Found::Empty);
    }
    let held = marker::<E>(client).await?;
    // What is beside kept records stays there.
    let foreign = match &held {
        Some(held) if held.adopted => None,
        Some(held) => tables_beside(held, names),
        None => names.into_iter().find(|name| !every_table().any(|own| own == name)),
    };
    Ok(match (foreign, held) {
        (Some(table), _) => Found::Foreign(table),
        (None, Some(held)) => Found::Held(held),
        (None, None) => Found::Unfinished,
    })
}

/// What the marker's table says; None if it is empty. An error if there is no such table.
pub(super) async fn marker<E: Engine>(client: &mut E::Client) -> Result<Option<HeldState>, Error> {
    let mut text = None;
    let mut take = |row: &<E::Client as Client>::Row| {
        text = Some(row.text(0)?.to_string());
        Ok(())
    };
    client.visit(sql(format!("SELECT state FROM {MARKER}")), &mut take).await?;
    let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
    parsed.map_err(|e| Error::Decode(format!("{MARKER}: {e}").into()))
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
            Found::Foreign(table) => Err(self.foreign(&table)),
        }
    }

    /// The error of a database with a table that Encore has not made.
    pub(crate) fn foreign(&self, table: &str) -> StoreError {
        self.misused(format!(
            "contains table {table}, which Encore has not made, and a load overwrites the database; choose another \
             database, remove the table, or add --keep-data to run on the records of a table {}",
            kv::TABLE
        ))
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
