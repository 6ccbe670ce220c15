//! The marker in `encore_state`: what a database holds.

use sqlx::{AssertSqlSafe, Error, SqlSafeStr, SqlStr};

use super::contents::MARKER;
use super::engine::{Client, Engine, Fields, Parameter};
use super::{Dialect, Relational};
use crate::stores::{HeldState, StoreError};

/// Marks a text as safe SQL: the program has written it, and quoted the names in it.
pub(crate) fn sql(text: impl Into<String>) -> SqlStr {
    AssertSqlSafe(text.into()).into_sql_str()
}

/// The statement that creates the marker's table.
pub(crate) fn state_creation(dialect: &Dialect) -> SqlStr {
    sql(format!("CREATE TABLE encore_state (state {} NOT NULL)", dialect.text))
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
