//! The marker: the collection `encore_state` says what the others hold.

use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::{Client, Database};

use super::MongoDb;
use crate::stores::{HeldState, StoreError};

/// The collection of the marker.
const STATE: &str = "encore_state";

/// The id of the one document of `encore_state`.
const MARKER: &str = "state";

/// What Encore finds in a database.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// It has no collections, or is not there.
    Empty,
    /// It has collections, and none of them is Encore's marker.
    Foreign,
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// What the database holds; none when there is no such database, or nothing in it.
pub async fn held(store: &MongoDb, client: &Client) -> Result<Option<HeldState>, StoreError> {
    match look_into(store, &client.database(&store.database)).await? {
        Found::Held(held) => Ok(Some(held)),
        Found::Empty | Found::Unfinished => Ok(None),
        Found::Foreign => Err(foreign(store)),
    }
}

/// The error of a database with other collections.
pub fn foreign(store: &MongoDb) -> StoreError {
    store.misused(
        "contains collections that Encore has not made; choose another database, or add --keep-data to run on the \
         records of its collection usertable",
    )
}

/// What the database holds.
pub async fn look_into(store: &MongoDb, database: &Database) -> Result<Found, StoreError> {
    let mut names = store.in_time(database.list_collection_names()).await?;
    // The server's own collections, for example a profile, do not matter.
    names.retain(|name| !name.starts_with("system."));
    if names.is_empty() {
        return Ok(Found::Empty);
    }
    if !names.iter().any(|name| name == STATE) {
        return Ok(Found::Foreign);
    }
    let marker = database.collection::<Document>(STATE);
    match store.in_time(marker.find_one(doc! { "_id": MARKER })).await? {
        None => Ok(Found::Unfinished),
        Some(marker) => {
            let text = marker.get_str("state").map_err(|e| store.failed(format!("encore_state: {e}")))?;
            serde_json::from_str(text).map(Found::Held).map_err(|e| store.failed(format!("encore_state: {e}")))
        }
    }
}

/// Writes the marker.
pub async fn write_state(database: &Database, state: &HeldState) -> Result<(), Error> {
    let text = serde_json::to_string(state).map_err(|e| Error::custom(e.to_string()))?;
    let marker = database.collection::<Document>(STATE);
    marker.replace_one(doc! { "_id": MARKER }, doc! { "_id": MARKER, "state": text }).upsert(true).await.map(|_| ())
}

/// Removes the marker: from now on the database is Encore's, and unfinished.
pub async fn unmark(database: &Database) -> Result<(), Error> {
    match database.create_collection(STATE).await {
        Err(error) if !is_there_already(&error) => return Err(error),
        _ => {}
    }
    database.collection::<Document>(STATE).delete_many(doc! {}).await.map(|_| ())
}

fn is_there_already(error: &Error) -> bool {
    const NAMESPACE_EXISTS: i32 = 48;
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == NAMESPACE_EXISTS)
}
