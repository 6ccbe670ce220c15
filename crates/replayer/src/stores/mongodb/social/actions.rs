//! Performs operations on a thread's connection. Writes have their preconditions as filters.
//!
//! A write that the server rolled back is retried. The driver replaces a broken connection: the
//! next operation waits for a server as long as an operation may take.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::{ClientSession, Collection, Database};
use schemas::social::{Action, Operation, Social};

use super::documents::{self, Comments, MEMBERS, RESOURCES};
use super::reads::Shapes;
use super::transactions;
use schemas::workload::social::Payload;

use crate::source::Source;
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::retry::{Pause, Refusal};
use crate::stores::{Answer, Connection, OperationError};

/// What the connections of a worker share.
pub struct Shared {
    pub(super) database: Database,
    pub(super) members: Collection<RawDocumentBuf>,
    pub(super) resources: Collection<RawDocumentBuf>,
    pub(super) comments: Collection<RawDocumentBuf>,
    pub(super) design: Comments,
    transactions: bool,
    timeout: Duration,
    payload: Payload,
    pub(super) top_k: u32,
    pub(super) shapes: Shapes,
}

impl Shared {
    /// For the data set of `source` in a worker's database.
    pub fn new(store: &MongoDb, database: &Database, source: &Source) -> Shared {
        Shared {
            members: database.collection(MEMBERS),
            resources: database.collection(RESOURCES),
            comments: database.collection(documents::COMMENTS),
            database: database.clone(),
            design: store.comments,
            transactions: store.transactions,
            timeout: store.timeout,
            payload: source.payload(),
            top_k: source.data().top_k,
            shapes: Shapes::new(),
        }
    }
}

/// A thread's connection.
pub struct Actions {
    shared: Arc<Shared>,
    /// The operation under way may have changed something that is not rolled back.
    may_have_changed: bool,
}

/// One change of one document, made only if its precondition holds.
pub enum DocumentChange {
    /// Filter and update.
    Update(Which, Document, Document),
    /// A comment in its own collection.
    Insert(RawDocumentBuf),
    /// The filter of a comment in its own collection.
    Delete(Document),
}

/// The collection of a document that is updated.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    Members,
    Resources,
}

impl Shared {
    /// What a write changes, one document after the other.
    pub(super) fn changes(&self, operation: &Operation) -> (DocumentChange, Option<DocumentChange>) {
        let (me, target) = (operation.socialite as i64, operation.target as i64);
        let members = |filter, update| DocumentChange::Update(Which::Members, filter, update);
        match operation.action {
            Action::InviteFriend => {
                let filter = doc! { "_id": target, "pendingFriends": { "$ne": me } };
                (members(filter, doc! { "$push": { "pendingFriends": me } }), None)
            }
            Action::AcceptFriendRequest => {
                let both = doc! { "$pull": { "pendingFriends": target }, "$push": { "confirmedFriends": target } };
                let mine = members(doc! { "_id": me, "pendingFriends": target }, both);
                let hers = doc! { "_id": target, "confirmedFriends": { "$ne": me } };
                (mine, Some(members(hers, doc! { "$push": { "confirmedFriends": me } })))
            }
            Action::RejectFriendRequest => {
                let filter = doc! { "_id": me, "pendingFriends": target };
                (members(filter, doc! { "$pull": { "pendingFriends": target } }), None)
            }
            Action::ThawFriendship => {
                let end = |of: i64, with: i64| {
                    let filter = doc! { "_id": of, "confirmedFriends": with };
                    members(filter, doc! { "$pull": { "confirmedFriends": with } })
                };
                (end(me, target), Some(end(target, me)))
            }
            _ => (self.comment_change(operation), None),
        }
    }

    fn comment_change(&self, operation: &Operation) -> DocumentChange {
        let comment = operation.comment.unwrap_or_default();
        let (me, target, id) = (operation.socialite as i64, operation.target as i64, comment as i64);
        match (operation.action, self.design) {
            (Action::PostComment, Comments::Embedded) => {
                let filter = doc! { "_id": target, "comments.comment": { "$ne": id } };
                let posted = doc! { "comment": id, "author": me, "body": self.payload.comment(comment) };
                DocumentChange::Update(Which::Resources, filter, doc! { "$push": { "comments": posted } })
            }
            (Action::PostComment, Comments::Collection) => {
                let body = self.payload.comment(comment);
                DocumentChange::Insert(documents::comment_document(
                    comment,
                    operation.target,
                    operation.socialite,
                    &body,
                ))
            }
            (_, Comments::Embedded) => {
                let filter = doc! { "_id": target, "comments.comment": id };
                DocumentChange::Update(Which::Resources, filter, doc! { "$pull": { "comments": { "comment": id } } })
            }
            (_, Comments::Collection) => DocumentChange::Delete(doc! { "_id": id, "resource": target }),
        }
    }

    /// Makes a change, if its document is as the trace left it.
    pub(super) async fn make(
        &self,
        change: DocumentChange,
        session: Option<&mut ClientSession>,
    ) -> Result<(), Refusal> {
        let found = match change {
            DocumentChange::Update(which, filter, update) => {
                let collection = match which {
                    Which::Members => &self.members,
                    Which::Resources => &self.resources,
                };
                let update = collection.update_one(filter, update);
                let update = match session {
                    Some(session) => update.session(session),
                    None => update,
                };
                update.await?.matched_count
            }
            DocumentChange::Insert(comment) => self.comments.insert_one(comment).await.map(|_| 1)?,
            DocumentChange::Delete(filter) => self.comments.delete_one(filter).await?.deleted_count,
        };
        match found {
            0 => Err(Refusal::refused(
                "expected to change 1 document, changed none: the store's data does not match the trace",
            )),
            _ => Ok(()),
        }
    }
}

impl Actions {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>) -> Actions {
        Actions { shared, may_have_changed: false }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if operation.action.is_read() {
            let read = self.shared.read(operation, answer).await;
            return read.map_err(|refusal| OperationError::Failed(refusal.message));
        }
        match self.shared.changes(operation).1 {
            Some(_) if self.shared.transactions => self.transact(operation, answer).await,
            None | Some(_) => self.change(operation, answer).await,
        }
    }

    /// One document after the other.
    async fn change(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        self.may_have_changed = true;
        let mut pause = Pause::default();
        while let Err(refusal) = shared.make(shared.changes(operation).0, None).await {
            pause.before_another_try(refusal, answer).await?;
        }
        let Some(mut second) = shared.changes(operation).1 else { return Ok(()) };
        while let Err(refusal) = shared.make(second, None).await {
            // The first document keeps its change, whatever became of the second.
            let half = |error| match error {
                OperationError::Failed(why) | OperationError::Unknown(why) => {
                    OperationError::Unknown(format!("changed only one of the two members: {why}"))
                }
            };
            pause.before_another_try(refusal, answer).await.map_err(half)?;
            let Some(again) = shared.changes(operation).1 else { return Ok(()) };
            second = again;
        }
        Ok(())
    }

    /// Both documents or none.
    async fn transact(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        let mut pause = Pause::default();
        while let Err(refusal) = transactions::attempt(&shared, operation, &mut self.may_have_changed).await {
            pause.before_another_try(refusal, answer).await?;
        }
        Ok(())
    }
}

impl Connection<Social> for Actions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.may_have_changed = false;
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, self.may_have_changed)))
    }
}
