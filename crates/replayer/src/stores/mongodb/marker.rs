//! The marker: the collection `encore_state` says what the others hold.

use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::WriteConcern;
use mongodb::{Client, Database};

use super::MongoDb;
use super::collections::{RECORDS, SOCIAL, has_records, has_tables};
use crate::stores::{HeldState, StoreError};

/// The collection of the marker.
const STATE: &str = "encore_state";

/// The name of the collection of a marker that is being written beside kept records. A crash may leave it; it
/// says nothing.
const MARKING: &str = "encore_marking";

/// The id of the one document of `encore_state`.
const MARKER: &str = "state";

/// The id of the document of `encore_state` that lists collections whose names depend on a trace set. It stays while
/// the database is being loaded.
const LISTED: &str = "collections";

/// What Encore finds in a database.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// It has no collections, or is not there.
    Empty,
    /// It has this collection, which Encore has not made, and perhaps others.
    Foreign(String),
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
        Found::Foreign(collection) => Err(foreign(store, &collection)),
    }
}

/// The error of a database with a collection that Encore has not made.
pub fn foreign(store: &MongoDb, collection: &str) -> StoreError {
    store.misused(format!(
        "contains collection {collection}, which Encore has not made, and a load overwrites the database; choose \
         another database, remove the collection, or add --keep-data to run on the records of a collection {RECORDS}"
    ))
}

/// What the database holds.
pub async fn look_into(store: &MongoDb, database: &Database) -> Result<Found, StoreError> {
    let mut names = store.in_time(database.list_collection_names()).await?;
    // The server's own collections, for example a profile, do not matter.
    names.retain(|name| !name.starts_with("system.") && name != MARKING);
    names.sort();
    if names.is_empty() {
        return Ok(Found::Empty);
    }
    if !names.iter().any(|name| name == STATE) {
        return Ok(Found::Foreign(names.swap_remove(0)));
    }
    let held = marker(store, database).await?;
    let listed = store.in_time(listed(database)).await?;
    let is_listed = |name: &str| listed.iter().any(|own| own == name);
    let is_own = |name: &str| match &held {
        // What is beside kept records stays there.
        Some(held) if held.adopted => true,
        Some(held) if has_records(held) => name == RECORDS,
        Some(held) if has_tables(held) => is_listed(name),
        Some(_) => SOCIAL.contains(&name),
        None => name == RECORDS || SOCIAL.contains(&name) || is_listed(name),
    };
    let foreign = names.into_iter().find(|name| name != STATE && !is_own(name));
    Ok(match (foreign, held) {
        (Some(collection), _) => Found::Foreign(collection),
        (None, Some(held)) => Found::Held(held),
        (None, None) => Found::Unfinished,
    })
}

/// What the marker says; None if there is none.
pub async fn marker(store: &MongoDb, database: &Database) -> Result<Option<HeldState>, StoreError> {
    let marker = database.collection::<Document>(STATE);
    let Some(marker) = store.in_time(marker.find_one(doc! { "_id": MARKER })).await? else { return Ok(None) };
    let text = marker.get_str("state").map_err(|e| store.failed(format!("{STATE}: {e}")))?;
    serde_json::from_str(text).map(Some).map_err(|e| store.failed(format!("{STATE}: {e}")))
}

/// The collections of Encore whose names depend on a trace set.
pub async fn listed(database: &Database) -> Result<Vec<String>, Error> {
    let found = database.collection::<Document>(STATE).find_one(doc! { "_id": LISTED }).await?;
    let names = found.and_then(|found| found.get_array("names").ok().cloned()).unwrap_or_default();
    Ok(names.iter().filter_map(|name| name.as_str().map(String::from)).collect())
}

/// Says which collections of such names are Encore's.
pub async fn list(database: &Database, names: &[String]) -> Result<(), Error> {
    let state = database.collection::<Document>(STATE);
    let id = doc! { "_id": LISTED };
    match names.is_empty() {
        true => state.delete_one(id).await.map(|_| ()),
        false => state.replace_one(id, doc! { "_id": LISTED, "names": names }).upsert(true).await.map(|_| ()),
    }
}

/// Writes the marker.
pub async fn write_state(database: &Database, state: &HeldState) -> Result<(), Error> {
    write_into(database, STATE, state).await
}

/// Waits until a write concern holds for all earlier writes to the server: changes nothing of the marker, and
/// waits as if it had.
pub async fn touch(database: &Database, concern: WriteConcern) -> Result<(), Error> {
    let marker = database.collection::<Document>(STATE);
    let nothing = doc! { "$unset": { "nothing": "" } };
    marker.update_one(doc! { "_id": MARKER }, nothing).write_concern(concern).await.map(|_| ())
}

/// Marks a database with records of another tool. An empty collection of the marker would say that Encore has
/// begun to load these records, and the next load would remove them. So the collection has another name
/// until its document is there.
pub async fn mark(database: &Database, state: &HeldState) -> Result<(), Error> {
    if !database.list_collection_names().filter(doc! { "name": STATE }).await?.is_empty() {
        return write_state(database, state).await;
    }
    write_into(database, MARKING, state).await?;
    let [from, to] = [MARKING, STATE].map(|collection| format!("{}.{collection}", database.name()));
    let rename = doc! { "renameCollection": from, "to": to, "writeConcern": { "w": "majority" } };
    database.client().database("admin").run_command(rename).await.map(|_| ())
}

async fn write_into(database: &Database, collection: &str, state: &HeldState) -> Result<(), Error> {
    let text = serde_json::to_string(state).map_err(|e| Error::custom(e.to_string()))?;
    let marker = database.collection::<Document>(collection);
    marker.replace_one(doc! { "_id": MARKER }, doc! { "_id": MARKER, "state": text }).upsert(true).await.map(|_| ())
}

/// Removes the marker: from now on the database is Encore's, and unfinished.
pub async fn unmark(database: &Database) -> Result<(), Error> {
    match database.create_collection(STATE).await {
        Err(error) if !is_there_already(&error) => return Err(error),
        _ => {}
    }
    database.collection::<Document>(STATE).delete_many(doc! { "_id": MARKER }).await.map(|_| ())
}

fn is_there_already(error: &Error) -> bool {
    const NAMESPACE_EXISTS: i32 = 48;
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == NAMESPACE_EXISTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::block_on;
    use crate::stores::url::StoreUrl;

    /// A crash left an empty marker beside kept records, and the next load removed the records.
    #[test]
    fn marking_that_stops_midway_leaves_records_of_another_tool() {
        let Some(server) = servers::mongodb() else { return };
        let url = server.url(&format!("marking_{}", std::process::id()));
        let store = MongoDb::open(StoreUrl::parse(&url).expect(&url)).expect(&url);
        let held = |workload: &str| -> HeldState {
            let text = format!(r#"{{"workload_id":"{workload}","positions":[],"diverged":null,"adopted":true}}"#);
            serde_json::from_str(&text).expect("a marker")
        };
        let foreign = || Found::Foreign(RECORDS.to_string());
        let done = async {
            let database = store.keeper().await?.database(&store.database);
            store.in_time(database.create_collection(RECORDS)).await?;
            // Marking stops before the document, then before the name.
            store.in_time(database.create_collection(MARKING)).await?;
            assert_eq!(look_into(&store, &database).await?, foreign());
            store.in_time(write_into(&database, MARKING, &held("a"))).await?;
            assert_eq!(look_into(&store, &database).await?, foreign());
            for workload in ["a", "b"] {
                store.in_time(mark(&database, &held(workload))).await?;
                assert_eq!(look_into(&store, &database).await?, Found::Held(held(workload)));
            }
            store.in_time(database.drop()).await
        };
        block_on(&store.url, done).expect(&url);
    }
}
