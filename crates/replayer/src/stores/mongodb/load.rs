//! Loads a data set into a database, and brings it back to it.
//!
//! The first load fills `DATABASE_encore_loaded` and copies its collections with
//! `$out`, inside the server; every later one of the same workload and design
//! takes back what actions have changed since (`reset=copy`): the arrays of all
//! members by `$merge`, the resources that have comments in them (or the comments)
//! by `$out`. With `reset=reload` there is no second database, and every load
//! inserts all documents.
//!
//! Medians of four and six loads of 10,000 members with 100 friends, 10 resources
//! of one comment each, 12 KiB images and 2 KiB thumbnails; MongoDB 6.0.5, a
//! replica set of one member with a cache of 0.5 GB, on two cores that it shared
//! with other work:
//!
//! | load | comments embedded | in a collection |
//! |---|---|---|
//! | all documents inserted | 3.3 s | 4.5 s |
//! | all collections copied | 2.5 s | 3.9 s |
//! | what actions change taken back | 2.3 s | 2.0 s |
//!
//! Of the last, arrays of members take 0.4 s (a copy of the members 1.0 s) and
//! resources 1.0 s (1.9 s by `$merge`, which looks each of them up).

use futures::TryStreamExt;
use futures::future;
use futures::stream::{self, StreamExt};
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::{Client, Database};

use super::documents::{self, Batch, Comments, DocumentError};
use super::{MongoDb, Reset};
use crate::source::Source;
use crate::stores::{HeldState, LoadProgress, StoreError};

/// Batches on their way to the server: the next is made while it works.
const BATCHES_IN_FLIGHT: usize = 3;

/// Names of databases are shorter than 64 bytes.
const NAME_BYTES_MAX: usize = 63;

const LOADED: &str = "_encore_loaded";

/// The id of the one document of `encore_state`.
const MARKER: &str = "state";

/// What a database is to Encore.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// It has no collections, or is not there.
    Empty,
    /// It has collections, and none of them is Encore's marker.
    Foreign,
    /// Encore has begun to load it and did not come to an end.
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

fn foreign(store: &MongoDb) -> StoreError {
    store.misused("is a database with collections that Encore has not made; name another database")
}

async fn look_into(store: &MongoDb, database: &Database) -> Result<Found, StoreError> {
    let mut names = store.in_time(database.list_collection_names()).await?;
    // The server's own, a profile say, are not in the way.
    names.retain(|name| !name.starts_with("system."));
    if names.is_empty() {
        return Ok(Found::Empty);
    }
    if !names.iter().any(|name| name == documents::STATE) {
        return Ok(Found::Foreign);
    }
    let marker = database.collection::<Document>(documents::STATE);
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
    let marker = database.collection::<Document>(documents::STATE);
    marker.replace_one(doc! { "_id": MARKER }, doc! { "_id": MARKER, "state": text }).upsert(true).await.map(|_| ())
}

/// See the module.
pub async fn load(
    store: &MongoDb,
    client: &Client,
    source: &Source,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let database = client.database(&store.database);
    store.check_transactions(&database).await?;
    let found = look_into(store, &database).await?;
    if found == Found::Foreign {
        return Err(foreign(store));
    }
    match store.reset {
        Reset::Reload => fill(store, source, &database, progress).await?,
        Reset::Copy => {
            let loaded = loaded(store, client, source, progress).await?;
            let fresh = store.comments.loaded(source);
            let is_like = matches!(found, Found::Held(held) if is_like(&held, &fresh));
            let reset = reset(store.comments, &loaded, &database, &fresh, is_like);
            reset.await.map_err(|error| store.driver_failed(error))?;
        }
    }
    progress(source.rows_total(), source.rows_total());
    Ok(())
}

/// The database that holds the data set and nothing else ever; filled unless it is.
async fn loaded(
    store: &MongoDb,
    client: &Client,
    source: &Source,
    progress: LoadProgress<'_>,
) -> Result<Database, StoreError> {
    let name = format!("{}{LOADED}", store.database);
    if name.len() > NAME_BYTES_MAX {
        let most = NAME_BYTES_MAX - LOADED.len();
        return Err(store.misused(format!("the database's name is longer than {most} bytes; choose a shorter one")));
    }
    let loaded = client.database(&name);
    match look_into(store, &loaded).await? {
        Found::Held(held) if held == store.comments.loaded(source) => {}
        Found::Foreign => {
            return Err(store.misused(format!("the database {name} is in the way; Encore has not made it")));
        }
        _ => fill(store, source, &loaded, progress).await?,
    }
    Ok(loaded)
}

/// Makes a database what the loaded one is; `is_like` when it differs in what
/// actions change alone.
async fn reset(
    comments: Comments,
    from: &Database,
    to: &Database,
    fresh: &HeldState,
    is_like: bool,
) -> Result<(), Error> {
    match is_like && is_whole(comments, from, to).await? {
        true => restore(comments, from, to, fresh).await,
        false => copy(comments, from, to, fresh).await,
    }
}

/// Whether a store holds the documents and the workload of a freshly loaded one,
/// wherever a replay has left them.
fn is_like(held: &HeldState, fresh: &HeldState) -> bool {
    (held.layout, &held.design, &held.workload_id) == (fresh.layout, &fresh.design, &fresh.workload_id)
}

/// Whether the documents that no action makes or deletes are all there: only
/// Encore is to write in its database, but nobody keeps others out.
async fn is_whole(comments: Comments, from: &Database, to: &Database) -> Result<bool, Error> {
    for (name, _) in comments.collections().into_iter().filter(|(name, _)| *name != documents::COMMENTS) {
        let count = async |database: &Database| database.collection::<Document>(name).estimated_document_count().await;
        if count(from).await? != count(to).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the marker away: from now on the database is Encore's, and unfinished.
async fn unmark(database: &Database) -> Result<(), Error> {
    match database.create_collection(documents::STATE).await {
        Err(error) if !is_there_already(&error) => return Err(error),
        _ => {}
    }
    database.collection::<Document>(documents::STATE).delete_many(doc! {}).await.map(|_| ())
}

fn is_there_already(error: &Error) -> bool {
    const NAMESPACE_EXISTS: i32 = 48;
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == NAMESPACE_EXISTS)
}

/// Makes a database that has none of Encore's documents.
async fn make_empty(database: &Database) -> Result<(), Error> {
    unmark(database).await?;
    for name in [documents::MEMBERS, documents::RESOURCES, documents::COMMENTS] {
        database.collection::<Document>(name).drop().await?;
    }
    Ok(())
}

/// Builds the indexes, best when the documents are in, and puts the marker last.
async fn finish(comments: Comments, database: &Database, fresh: &HeldState) -> Result<(), Error> {
    for (name, index) in comments.collections() {
        if let Some(index) = index {
            database.collection::<Document>(name).create_index(index).await?;
        }
    }
    write_state(database, fresh).await
}

/// Runs a pipeline that ends in a collection.
async fn pour(from: &Database, collection: &str, pipeline: Vec<Document>) -> Result<(), Error> {
    from.collection::<Document>(collection).aggregate(pipeline).await.map(|_| ())
}

/// Copies all collections of the loaded database, side by side.
async fn copy(comments: Comments, from: &Database, to: &Database, fresh: &HeldState) -> Result<(), Error> {
    make_empty(to).await?;
    let copies = comments.collections().into_iter().map(|(name, _)| replace(from, to, name));
    future::try_join_all(copies).await?;
    finish(comments, to, fresh).await
}

/// Puts a copy of a collection in place of another one at once; indexes that are
/// there stay.
async fn replace(from: &Database, to: &Database, collection: &'static str) -> Result<(), Error> {
    pour(from, collection, vec![doc! { "$out": { "db": to.name(), "coll": collection } }]).await
}

/// Takes back what actions have changed, in all members and in all comments.
async fn restore(comments: Comments, from: &Database, to: &Database, fresh: &HeldState) -> Result<(), Error> {
    unmark(to).await?;
    let with_comments = match comments {
        Comments::Embedded => documents::RESOURCES,
        Comments::Collection => documents::COMMENTS,
    };
    future::try_join(restore_arrays(from, to), replace(from, to, with_comments)).await?;
    write_state(to, fresh).await
}

/// Gives each member the arrays that she has in the loaded database. The server
/// does not write a document whose fields are what they were.
async fn restore_arrays(from: &Database, to: &Database) -> Result<(), Error> {
    let merge = doc! { "$merge": {
        "into": { "db": to.name(), "coll": documents::MEMBERS },
        "on": "_id",
        "whenMatched": "merge",
        "whenNotMatched": "fail",
    } };
    let arrays = doc! { "$project": { "pendingFriends": 1, "confirmedFriends": 1 } };
    pour(from, documents::MEMBERS, vec![arrays, merge]).await
}

/// Fills a database with all documents and indexes; the marker comes last.
async fn fill(
    store: &MongoDb,
    source: &Source,
    database: &Database,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let failed = |error: Error| store.driver_failed(error);
    make_empty(database).await.map_err(failed)?;
    for (name, _) in store.comments.collections() {
        database.create_collection(name).await.map_err(failed)?;
    }
    let unmakeable = |error: DocumentError| store.misused(error);
    let total = source.rows_total();
    let mut done = 0;
    for fragment in source.fragments() {
        let batches = documents::of_fragment(source, fragment, store.comments).map_err(unmakeable)?;
        let inserts = stream::iter(batches).map(|batch| insert(database, batch));
        let mut inserted = inserts.buffer_unordered(BATCHES_IN_FLIGHT);
        while let Some(rows) = inserted.try_next().await.map_err(|error| match error {
            InsertError::Document(error) => unmakeable(error),
            InsertError::Driver(error) => failed(error),
        })? {
            done += rows;
            progress(done.min(total), total);
        }
    }
    finish(store.comments, database, &store.comments.loaded(source)).await.map_err(failed)
}

enum InsertError {
    Document(DocumentError),
    Driver(Error),
}

/// Inserts a batch; gives the number of rows of the data set that are in with it.
async fn insert(database: &Database, batch: Result<Batch, DocumentError>) -> Result<u64, InsertError> {
    let batch = batch.map_err(InsertError::Document)?;
    let collection = database.collection::<RawDocumentBuf>(batch.collection);
    collection.insert_many(&batch.documents).ordered(false).await.map_err(InsertError::Driver)?;
    Ok(batch.rows_of_data_set)
}
