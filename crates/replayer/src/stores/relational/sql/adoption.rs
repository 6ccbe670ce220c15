//! Runs a trace set on a database that is there already, such as a copy of the one whose log it was imported from.
//!
//! The database is marked and nothing else is changed. What its tables hold is the user's care: the log does not say it.

use super::super::Relational;
use super::super::contents::{MARKER, MARKING};
use super::super::engine::{Client, Engine, Fields};
use super::super::state;
use super::{LAYOUT, design_of};
use crate::source::Source;
use crate::stores::adoption::Marked;
use crate::stores::{HeldState, LOAD_AGAIN, Store, StoreError};

/// Takes the database, see [`Serves::adopt`](crate::stores::Serves::adopt). A trace that has begun on it goes on.
pub(super) async fn adopt<E: Engine>(store: &Relational<E>, source: &Source) -> Result<(), StoreError> {
    let (id, folder) = (&source.manifest.workload_id, source.folder.display());
    match store.marked().await? {
        Marked::Empty => {
            return Err(store.misused(format!("contains no tables; copy the database that {folder} needs")));
        }
        Marked::Unfinished => {
            return Err(store.misused("contains the beginning of a load by Encore; remove --keep-data"));
        }
        Marked::Held(held) if !held.adopted => {
            return Err(store.misused("was loaded by Encore, which can load it again; remove --keep-data"));
        }
        Marked::Held(held) if held.diverged.is_some() => {
            let why = held.diverged.unwrap_or_default();
            return Err(StoreError::state(store.url(), format!("is in an unknown state: {why}; {LOAD_AGAIN}")));
        }
        Marked::Held(held) if held.workload_id == *id => return Ok(()),
        Marked::Held(_) | Marked::Foreign => {}
    }
    let statements = store.statements(source)?;
    let held = HeldState { adopted: true, ..HeldState::loaded(LAYOUT, design_of(&statements), source) };
    let mut client = store.client().await?;
    store.in_time(state::mark::<E>(&mut client, &held)).await?;
    store.in_time(client.disconnect()).await
}

/// The names of all tables of the database, without the marker's.
pub(super) async fn tables<E: Engine>(client: &mut E::Client) -> Result<Vec<String>, sqlx::Error> {
    let mut names = Vec::new();
    let mut take = |row: &<E::Client as Client>::Row| {
        names.push(String::from_utf8_lossy(row.octets(0)?).into_owned());
        Ok(())
    };
    client.visit(state::sql(E::DIALECT.tables), &mut take).await?;
    names.retain(|name| name != MARKER && name != MARKING);
    names.sort();
    Ok(names)
}
