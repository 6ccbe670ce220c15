//! Loads a data set into a database, and resets the database to it.
//!
//! The first load fills `DATABASE_encore_loaded` and copies its collections with `$out`, inside
//! the server. Every later load of the same workload and design restores what operations have
//! changed since (`reset=copy`): of `social` the arrays of all members by `$merge`, and the
//! resources that have comments in them (or the comments) by `$out`; of `kv` all records by `$out`. With `reset=reload` there is no second database,
//! and every load inserts all documents.
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
//! | what actions change restored | 2.3 s | 2.0 s |
//!
//! In the last row, the arrays of members take 0.4 s (a copy of the members 1.0 s) and resources
//! 1.0 s (1.9 s by `$merge`, which looks each of them up).

use std::borrow::Cow;

use futures::TryStreamExt;
use futures::future;
use futures::stream::{self, StreamExt};
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::{Client, Database, IndexModel};

use super::batch::{Batch, Batches, DocumentError};
use super::collections::{RECORDS, SOCIAL};
use super::marker::{Found, foreign, list, listed, look_into, unmark, write_state};
use super::{MongoDb, Reset};
use crate::source::Source;
use crate::stores::{HeldState, LoadProgress, StoreError};

/// Batches in flight: the next one is made while the server works.
const BATCHES_IN_FLIGHT: usize = 3;

/// The documents of a data set.
pub trait Documents: Sync {
    /// The collections, and the indexes of each.
    fn collections(&self) -> Vec<(Cow<'static, str>, Vec<IndexModel>)>;

    /// Whether the names of the collections depend on the trace set. The database then says which ones are Encore's.
    fn are_listed(&self) -> bool {
        false
    }

    /// The marker of a freshly loaded store.
    fn loaded(&self, source: &Source) -> HeldState;

    /// All documents of a fragment, made on demand.
    fn of_fragment<'a>(&'a self, source: &'a Source, fragment: u32) -> Result<Batches<'a>, DocumentError>;

    /// Makes a database equal to the loaded one faster than by a copy, if it can. The two differ only
    /// in what operations change. Returns whether it has.
    fn restore(
        &self,
        from: &Database,
        to: &Database,
        fresh: &HeldState,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Names of databases are shorter than 64 bytes.
const NAME_BYTES_MAX: usize = 63;

const LOADED: &str = "_encore_loaded";

/// See the module.
pub async fn load<D: Documents>(
    store: &MongoDb,
    documents: &D,
    client: &Client,
    source: &Source,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let database = client.database(&store.database);
    let found = look_into(store, &database).await?;
    if let Found::Foreign(collection) = &found {
        return Err(foreign(store, collection));
    }
    match store.reset {
        Reset::Reload => fill(store, documents, source, &database, progress).await?,
        Reset::Copy => {
            let loaded = loaded(store, documents, client, source, progress).await?;
            let fresh = documents.loaded(source);
            let is_like = matches!(found, Found::Held(held) if is_like(&held, &fresh));
            let reset = reset(documents, &loaded, &database, &fresh, is_like);
            reset.await.map_err(|error| store.driver_failed(error))?;
        }
    }
    store.await_members().await?;
    progress(source.rows_total(), source.rows_total());
    Ok(())
}

/// The database that holds only the data set and is never replayed on. Filled if needed.
async fn loaded<D: Documents>(
    store: &MongoDb,
    documents: &D,
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
        Found::Held(held) if held == documents.loaded(source) => {}
        Found::Foreign(_) => {
            return Err(store.misused(format!(
                "the database {name} exists, and Encore has not made it; drop it, or choose another database"
            )));
        }
        _ => fill(store, documents, source, &loaded, progress).await?,
    }
    Ok(loaded)
}

/// Makes a database equal to the loaded one. `is_like` is true if the two can differ only in what
/// actions change.
async fn reset<D: Documents>(
    documents: &D,
    from: &Database,
    to: &Database,
    fresh: &HeldState,
    is_like: bool,
) -> Result<(), Error> {
    if is_like && documents.restore(from, to, fresh).await? {
        return Ok(());
    }
    copy(documents, from, to, fresh).await
}

/// Whether a store holds the documents and the workload of a freshly loaded one, in whatever
/// state a replay has left them.
fn is_like(held: &HeldState, fresh: &HeldState) -> bool {
    (held.layout, &held.design, &held.workload_id) == (fresh.layout, &fresh.design, &fresh.workload_id)
}

/// Removes all of Encore's documents from a database, for those that follow.
async fn make_empty(database: &Database, documents: &impl Documents) -> Result<(), Error> {
    unmark(database).await?;
    let listed = listed(database).await?;
    for name in SOCIAL.into_iter().chain([RECORDS]).chain(listed.iter().map(String::as_str)) {
        database.collection::<Document>(name).drop().await?;
    }
    let names = documents.collections().into_iter().map(|(name, _)| name.into_owned());
    list(database, &names.filter(|_| documents.are_listed()).collect::<Vec<_>>()).await
}

/// Builds the indexes, best after the documents are inserted, and writes the marker last.
async fn finish(documents: &impl Documents, database: &Database, fresh: &HeldState) -> Result<(), Error> {
    for (name, indexes) in documents.collections() {
        for index in indexes {
            database.collection::<Document>(&name).create_index(index).await?;
        }
    }
    write_state(database, fresh).await
}

/// Runs a pipeline that ends in a collection.
pub async fn pour(from: &Database, collection: &str, pipeline: Vec<Document>) -> Result<(), Error> {
    from.collection::<Document>(collection).aggregate(pipeline).await.map(|_| ())
}

/// Copies all collections of the loaded database, at the same time.
async fn copy(documents: &impl Documents, from: &Database, to: &Database, fresh: &HeldState) -> Result<(), Error> {
    make_empty(to, documents).await?;
    let collections = documents.collections();
    future::try_join_all(collections.iter().map(|(name, _)| replace(from, to, name))).await?;
    finish(documents, to, fresh).await
}

/// Replaces a collection by a copy of another one, atomically. Its indexes stay.
pub async fn replace(from: &Database, to: &Database, collection: &str) -> Result<(), Error> {
    pour(from, collection, vec![doc! { "$out": { "db": to.name(), "coll": collection } }]).await
}

/// Fills a database with all documents and indexes; the marker comes last.
async fn fill<D: Documents>(
    store: &MongoDb,
    documents: &D,
    source: &Source,
    database: &Database,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let failed = |error: Error| store.driver_failed(error);
    make_empty(database, documents).await.map_err(failed)?;
    for (name, _) in documents.collections() {
        database.create_collection(name.as_ref()).await.map_err(failed)?;
    }
    let unmakeable = |error: DocumentError| store.misused(error);
    let total = source.rows_total();
    let mut done = 0;
    for fragment in source.fragments() {
        let batches = documents.of_fragment(source, fragment).map_err(unmakeable)?;
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
    finish(documents, database, &documents.loaded(source)).await.map_err(failed)
}

enum InsertError {
    Document(DocumentError),
    Driver(Error),
}

/// Inserts a batch; returns the number of rows of the data set that it comes from.
async fn insert(database: &Database, batch: Result<Batch, DocumentError>) -> Result<u64, InsertError> {
    let batch = batch.map_err(InsertError::Document)?;
    let collection = database.collection::<RawDocumentBuf>(&batch.collection);
    collection.insert_many(&batch.documents).ordered(false).await.map_err(InsertError::Driver)?;
    Ok(batch.rows_of_data_set)
}
