//! What is in a database, whatever the family that it was loaded for.

use std::collections::BTreeSet;

use sqlx::Error;

use super::contents::MARKER;
use super::engine::{Client, Engine, Fields};
use super::state::sql;
use super::{Relational, kv, social};
use crate::stores::{HeldState, StoreError};

/// The names of all tables that Encore may have made, the marker's last. They are dropped when a
/// database is filled again, with whatever family.
pub fn every_table() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<&str> = social::tables::every_name().chain([kv::TABLE]).collect();
    names.into_iter().chain([MARKER])
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
}
