//! Performs operations on a thread's connection: one command each, on one document, except a scan.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::raw_batch_cursor::RawBatch;
use mongodb::{ClientSession, Collection, Database};
use schemas::vocabulary::kv::{Kv, Operation, Verb};

use super::records::{binary, values};
use crate::source::Source;
use crate::stores::fields::{Fields, NO_OPERATION_ON_A_RECORD, exists, is_missing, places};
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::collections::RECORDS;
use crate::stores::mongodb::retry::{Pause, Refusal};
use crate::stores::mongodb::transaction::Transaction;
use crate::stores::{Answer, Connection, OperationError};

/// All documents in one reply, as far as they fit.
const AT_ONCE: u32 = i32::MAX as u32;

/// What the connections of a worker share.
pub struct Shared {
    pub(super) database: Database,
    records: Collection<RawDocumentBuf>,
    pub(super) fields: Fields,
    pub(super) timeout: Duration,
}

impl Shared {
    /// For the data set of `source` in a worker's database.
    pub fn new(store: &MongoDb, database: &Database, source: &Source) -> Shared {
        Shared {
            database: database.clone(),
            records: database.collection(RECORDS),
            fields: Fields::of(source),
            timeout: store.timeout,
        }
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
    pub(super) async fn change(
        &self,
        operation: &Operation,
        key: &str,
        session: Option<&mut ClientSession>,
    ) -> Result<u64, Error> {
        let which = doc! { "_id": key };
        match operation.verb {
            Verb::Update => {
                let update = self.records.update_one(which, doc! { "$set": self.written(operation) });
                let update = match session {
                    Some(session) => update.session(session),
                    None => update,
                };
                Ok(update.await?.matched_count)
            }
            Verb::Delete => {
                let delete = self.records.delete_one(which);
                let delete = match session {
                    Some(session) => delete.session(session),
                    None => delete,
                };
                Ok(delete.await?.deleted_count)
            }
            _ => {
                let mut document = which;
                document.extend(self.written(operation));
                let document = RawDocumentBuf::try_from(&document)?;
                let insert = self.records.insert_one(document);
                let insert = match session {
                    Some(session) => insert.session(session),
                    None => insert,
                };
                match insert.await {
                    Err(error) if is_duplicate(&error) => Ok(0),
                    done => done.map(|_| 1),
                }
            }
        }
    }

    /// Reads a record, or records from a key on.
    pub(super) async fn look(
        &self,
        operation: &Operation,
        key: &str,
        session: Option<&mut ClientSession>,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let find = match operation.verb {
            Verb::Scan => {
                let find = self.records.find(doc! { "_id": { "$gte": key } }).sort(doc! { "_id": 1 });
                find.limit(operation.length.into()).batch_size(AT_ONCE)
            }
            // A negative limit: the server keeps no cursor.
            _ => self.records.find(doc! { "_id": key }).limit(-1),
        };
        let find = match self.shape(operation) {
            Some(shape) => find.projection(shape),
            None => find,
        };
        match session {
            None => self.see_all(operation, find.batch().await?, answer).await,
            Some(session) => {
                let mut batches = find.session(&mut *session).batch().await?;
                self.see_all(operation, batches.stream(session), answer).await
            }
        }
    }

    async fn see_all(
        &self,
        operation: &Operation,
        mut batches: impl Stream<Item = Result<RawBatch, Error>> + Unpin,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        while let Some(batch) = batches.try_next().await? {
            for record in batch.doc_slices()? {
                let record = record?.as_document();
                if operation.verb == Verb::Scan {
                    let key = record.and_then(|record| record.get_str("_id").ok()).unwrap_or_default();
                    self.fields.see_key(key.as_bytes(), answer);
                }
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
    pub(super) shared: Arc<Shared>,
    pub(super) key: String,
    /// For operations outside of transactions, if they are causally consistent.
    session: Option<Box<ClientSession>>,
    pub(super) transaction: Transaction,
}

impl KvActions {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>, session: Option<Box<ClientSession>>) -> KvActions {
        KvActions { shared, key: String::new(), session, transaction: Transaction::None }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        let key = &self.key;
        match operation.verb {
            Verb::Read | Verb::Scan => {
                let looked = shared.look(operation, key, self.session.as_deref_mut(), answer).await;
                return looked.map_err(|refusal| OperationError::Failed(refusal.message));
            }
            Verb::Insert | Verb::Update | Verb::Delete => {}
            Verb::Begin | Verb::Commit | Verb::Abort => {
                return Err(OperationError::Failed(NO_OPERATION_ON_A_RECORD.to_string()));
            }
        }
        let mut pause = Pause::default();
        loop {
            match shared.change(operation, key, self.session.as_deref_mut()).await {
                Ok(0) => return Err(none_found(operation, key)),
                Ok(_) => return Ok(()),
                Err(error) => pause.before_another_try(error.into(), answer).await?,
            }
        }
    }
}

/// Why a write has changed no document.
pub(super) fn none_found(operation: &Operation, key: &str) -> OperationError {
    match operation.verb {
        Verb::Insert => exists(key),
        _ => is_missing(key),
    }
}

impl Connection<Kv> for KvActions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if self.transaction.is_under_way() {
            return self.execute_inside(operation, answer).await;
        }
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, operation.verb.writes())))
    }

    async fn begin(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.begin(&self.shared.database, self.shared.timeout).await
    }

    async fn commit(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.commit(self.shared.timeout).await
    }

    async fn abort(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.abort(self.shared.timeout).await;
        Ok(())
    }
}
