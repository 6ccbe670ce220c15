//! What is in a database, whatever the family that it was loaded for.

use std::collections::BTreeSet;

use sqlx::Error;

use super::contents::{MARKER, MARKING};
use super::engine::{Client, Engine, Fields};
use super::state::{marker, sql};
use super::{Relational, kv, social, sql as statements};
use crate::stores::adoption::Marked;
use crate::stores::{Blame, HeldState, Store, StoreError};

/// The names of all tables that Encore makes for families with tables of their own, the marker's last.
pub fn every_table() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<&str> = social::tables::every_name().chain([kv::TABLE]).collect();
    names.into_iter().chain([MARKING, MARKER])
}

/// The first of these tables that Encore has not made in a database with this marker: it is none of
/// those of the family that was loaded. The first version of the social tables had a marker like that
/// of records.
fn tables_beside(held: &HeldState, tables: Vec<String>) -> Option<String> {
    if let Some(names) = statements::loaded_names(held) {
        let names: BTreeSet<&str> = names.collect();
        return tables.into_iter().find(|name| name != MARKER && !names.contains(name.as_str()));
    }
    let has_records = kv::has_loaded(held) && tables.iter().any(|name| name == kv::TABLE);
    let is_of_family = |name: &str| match has_records {
        true => name == kv::TABLE,
        false => social::tables::every_name().any(|own| own == name),
    };
    tables.into_iter().find(|name| name != MARKER && !is_of_family(name))
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
    names.retain(|name| name != MARKING);
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

/// Drops all tables and views of a database that is Encore's, the marker's last.
pub(crate) async fn drop_all<E: Engine>(client: &mut E::Client) -> Result<(), Error> {
    let mut drops = Vec::new();
    let mut take = |row: &<E::Client as Client>::Row| {
        drops.push(String::from_utf8_lossy(row.octets(0)?).into_owned());
        Ok(())
    };
    client.visit(sql(E::DIALECT.drops), &mut take).await?;
    for drop in drops {
        client.run(sql(drop)).await?;
    }
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

    /// What the marker of a database says, whatever is beside it.
    pub(crate) async fn marked(&self) -> Result<Marked, StoreError> {
        match self.held().await {
            Ok(Some(held)) => return Ok(Marked::Held(held)),
            Ok(None) => return Ok(Marked::Empty),
            Err(error) if error.blame != Blame::Usage => return Err(error),
            Err(_) => {}
        }
        // There are tables that Encore has not made. A file must not be created, but this one is there.
        let mut client = self.client().await?;
        let found = marker::<E>(&mut client).await;
        self.in_time(client.disconnect()).await?;
        Ok(match found {
            Err(_) => Marked::Foreign,
            // A table of another program is beside Encore's own.
            Ok(None) => Marked::Unfinished,
            Ok(Some(held)) => Marked::Held(held),
        })
    }

    /// The error of a database with a table that Encore has not made.
    pub(crate) fn foreign(&self, table: &str) -> StoreError {
        self.misused(format!(
            "contains table {table}, which Encore has not made, and a load overwrites the database; choose another \
             database, remove the table, or add --keep-data to run on the records of a table {}, or on the tables that an \
             imported trace set needs",
            kv::TABLE
        ))
    }
}
