//! Performs operations on a thread's connection: one command each, on one document, except a scan.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::{Collection, Database};
use schemas::vocabulary::kv::{Kv, Operation, Verb};

use super::records::{binary, values};
use crate::source::Source;
use crate::stores::fields::{Fields, NO_OPERATION_ON_A_RECORD, exists, is_missing, places};
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::collections::RECORDS;
use crate::stores::mongodb::retry::{Pause, Refusal};
use crate::stores::{Answer, Connection, OperationError};

/// All documents in one reply, as far as they fit.
const AT_ONCE: u32 = i32::MAX as u32;

/// What the connections of a worker share.
pub struct Shared {
    records: Collection<RawDocumentBuf>,
    fields: Fields,
    timeout: Duration,
}

impl Shared {
    /// For the data set of `source` in a worker's database.
    pub fn new(store: &MongoDb, database: &Database, source: &Source) -> Shared {
        Shared { records: database.collection(RECORDS), fields: Fields::of(source), timeout: store.timeout }
    }

    /// Which fields a reply has; None for all.
    fn shape(&self, operation: &Operation) -> Option<Document> {
        let names = || places(operation.fields).map(|field| (self.fields.name(field).to_string(), 1.into()));
        (!self.fields.are_all(operation.fields)).then(|| names().collect())
    }

    fn written(&self, operation: &Operation) -> Document {
        let mut value = String::new();
        let written = places(operation.fields).map(|field| {
            self.fields.written(operation, field, &mut value);
            (self.fields.name(field).to_string(), binary(&value).into())
        });
        written.collect()
    }

    /// Changes a record. Returns how many documents it has found.
    async fn change(&self, operation: &Operation, key: &str) -> Result<u64, Error> {
        let which = doc! { "_id": key };
        match operation.verb {
            Verb::Update => {
                let change = doc! { "$set": self.written(operation) };
                Ok(self.records.update_one(which, change).await?.matched_count)
            }
            Verb::Delete => Ok(self.records.delete_one(which).await?.deleted_count),
            _ => {
                let mut document = which;
                document.extend(self.written(operation));
                let inserted = self.records.insert_one(RawDocumentBuf::try_from(&document)?).await;
                match inserted {
                    Err(error) if is_duplicate(&error) => Ok(0),
                    done => done.map(|_| 1),
                }
            }
        }
    }

    async fn read(&self, operation: &Operation, key: &str, answer: &mut Answer) -> Result<(), Refusal> {
        // A negative limit: the server keeps no cursor.
        let find = self.records.find(doc! { "_id": key }).limit(-1);
        let find = match self.shape(operation) {
            Some(shape) => find.projection(shape),
            None => find,
        };
        let mut batches = find.batch().await?;
        while let Some(batch) = batches.try_next().await? {
            for record in batch.doc_slices()? {
                self.see(operation, record?.as_document(), answer)?;
            }
        }
        Ok(())
    }

    async fn scan(&self, operation: &Operation, key: &str, answer: &mut Answer) -> Result<(), Refusal> {
        let find = self.records.find(doc! { "_id": { "$gte": key } }).sort(doc! { "_id": 1 });
        let find = find.limit(operation.length.into()).batch_size(AT_ONCE);
        let find = match self.shape(operation) {
            Some(shape) => find.projection(shape),
            None => find,
        };
        let mut batches = find.batch().await?;
        while let Some(batch) = batches.try_next().await? {
            for record in batch.doc_slices()? {
                let record = record?.as_document();
                let key = record.and_then(|record| record.get_str("_id").ok()).unwrap_or_default();
                self.fields.see_key(key.as_bytes(), answer);
                self.see(operation, record, answer)?;
            }
        }
        Ok(())
    }

    fn see(&self, operation: &Operation, record: Option<&RawDocument>, answer: &mut Answer) -> Result<(), Refusal> {
        let record = record.ok_or_else(|| Refusal::refused("unexpected reply: not a document"))?;
        let values = values(record, &self.fields)?;
        self.fields.see(places(operation.fields).map(|field| (field, values[field as usize])), answer);
        Ok(())
    }
}

/// Whether there is a document with this key.
fn is_duplicate(error: &Error) -> bool {
    const DUPLICATE_KEY: i32 = 11000;
    matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY)
}

/// A thread's connection.
pub struct KvActions {
    shared: Arc<Shared>,
    key: String,
}

impl KvActions {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>) -> KvActions {
        KvActions { shared, key: String::new() }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        let key = &self.key;
        let failed = |refusal: Refusal| OperationError::Failed(refusal.message);
        match operation.verb {
            Verb::Read => return shared.read(operation, key, answer).await.map_err(failed),
            Verb::Scan => return shared.scan(operation, key, answer).await.map_err(failed),
            Verb::Insert | Verb::Update | Verb::Delete => {}
            Verb::Begin | Verb::Commit | Verb::Abort => return Err(OperationError::Failed(NO_OPERATION_ON_A_RECORD.to_string())),
        }
        let mut pause = Pause::default();
        loop {
            match shared.change(operation, key).await {
                Ok(0) if operation.verb == Verb::Insert => return Err(exists(key)),
                Ok(0) => return Err(is_missing(key)),
                Ok(_) => return Ok(()),
                Err(error) => pause.before_another_try(error.into(), answer).await?,
            }
        }
    }
}

impl Connection<Kv> for KvActions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, operation.verb.writes())))
    }
}
