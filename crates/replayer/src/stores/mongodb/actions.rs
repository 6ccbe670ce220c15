//! Performs operations on a thread's connection; writes have their preconditions
//! for filters.
//!
//! What the server says it rolled back is tried again. A connection that breaks
//! is the driver's to replace: the next operation waits for a server as long as
//! an operation may take.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::{ClientSession, Collection, Database};
use schemas::social::{Action, Operation};

use super::documents::{self, Comments, MEMBERS, RESOURCES};
use super::fate;
use super::reads::Shapes;
use super::{MongoDb, transactions};
use crate::source::{Payload, Source};
use crate::stores::Fate;
use crate::stores::{Answer, Connection, OperationError};

/// How often an operation is tried that the server rolls back because of others.
const ATTEMPTS_MAX: u16 = 20;

/// How long to wait before the second attempt; twice as long before each further
/// one, up to the other. Whoever was in the way has to get on.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(50);

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
    /// The operation under way may have changed something that nothing takes back.
    may_have_changed: bool,
}

/// Why an attempt did not succeed.
#[derive(Debug)]
pub struct Refusal {
    pub fate: Fate,
    pub message: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { fate: fate::fate(&error), message: fate::words(&error) }
    }
}

impl From<mongodb::bson::error::Error> for Refusal {
    fn from(error: mongodb::bson::error::Error) -> Refusal {
        Refusal::refused(error)
    }
}

impl Refusal {
    /// Of something that did not happen.
    pub fn refused(message: impl ToString) -> Refusal {
        Refusal { fate: Fate::Refused, message: message.to_string() }
    }
}

/// One change of one document, which makes it only where it may.
pub enum Step {
    /// Filter and update.
    Update(Which, Document, Document),
    /// A comment in its own collection.
    Insert(RawDocumentBuf),
    /// The filter of a comment there.
    Delete(Document),
}

/// The collection of a step.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    Members,
    Resources,
}

impl Shared {
    /// What a write changes, one document after the other.
    pub(super) fn steps(&self, operation: &Operation) -> (Step, Option<Step>) {
        let (me, target) = (operation.socialite as i64, operation.target as i64);
        let members = |filter, update| Step::Update(Which::Members, filter, update);
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
            _ => (self.comment_step(operation), None),
        }
    }

    fn comment_step(&self, operation: &Operation) -> Step {
        let comment = operation.comment.unwrap_or_default();
        let (me, target, id) = (operation.socialite as i64, operation.target as i64, comment as i64);
        match (operation.action, self.design) {
            (Action::PostComment, Comments::Embedded) => {
                let filter = doc! { "_id": target, "comments.comment": { "$ne": id } };
                let posted = doc! { "comment": id, "author": me, "body": self.payload.comment(comment) };
                Step::Update(Which::Resources, filter, doc! { "$push": { "comments": posted } })
            }
            (Action::PostComment, Comments::Collection) => {
                let body = self.payload.comment(comment);
                Step::Insert(documents::comment_document(comment, operation.target, operation.socialite, &body))
            }
            (_, Comments::Embedded) => {
                let filter = doc! { "_id": target, "comments.comment": id };
                Step::Update(Which::Resources, filter, doc! { "$pull": { "comments": { "comment": id } } })
            }
            (_, Comments::Collection) => Step::Delete(doc! { "_id": id, "resource": target }),
        }
    }

    /// Makes a change, where its document is as the trace left it.
    pub(super) async fn take(&self, step: Step, session: Option<&mut ClientSession>) -> Result<(), Refusal> {
        let found = match step {
            Step::Update(which, filter, update) => {
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
            Step::Insert(comment) => self.comments.insert_one(comment).await.map(|_| 1)?,
            Step::Delete(filter) => self.comments.delete_one(filter).await?.deleted_count,
        };
        match found {
            0 => Err(Refusal::refused("no document is as the trace left it")),
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
        match self.shared.steps(operation).1 {
            Some(_) if self.shared.transactions => self.transact(operation, answer).await,
            None | Some(_) => self.change(operation, answer).await,
        }
    }

    /// One document after the other.
    async fn change(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        self.may_have_changed = true;
        let mut pause = Pause::default();
        while let Err(refusal) = shared.take(shared.steps(operation).0, None).await {
            pause.before_another_try(refusal, answer).await?;
        }
        let Some(mut second) = shared.steps(operation).1 else { return Ok(()) };
        while let Err(refusal) = shared.take(second, None).await {
            // The first document keeps its change, whatever became of the second.
            let half = |error| match error {
                OperationError::Failed(why) | OperationError::Unknown(why) => {
                    OperationError::Unknown(format!("done for one of the two members only: {why}"))
                }
            };
            pause.before_another_try(refusal, answer).await.map_err(half)?;
            let Some(again) = shared.steps(operation).1 else { return Ok(()) };
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

/// Waits between attempts.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Pause {
        Pause(RETRY_PAUSE)
    }
}

impl Pause {
    /// Returns when a write may be tried again; an error where it may not.
    async fn before_another_try(&mut self, refusal: Refusal, answer: &mut Answer) -> Result<(), OperationError> {
        match refusal.fate {
            Fate::RolledBack if answer.attempts < ATTEMPTS_MAX => {
                answer.attempts += 1;
                answer.clear_rows();
                tokio::time::sleep(self.0).await;
                self.0 = (self.0 * 2).min(RETRY_PAUSE_MAX);
                Ok(())
            }
            Fate::RolledBack | Fate::Refused => Err(OperationError::Failed(refusal.message)),
            Fate::Lost => Err(OperationError::Unknown(refusal.message)),
        }
    }
}

impl Connection for Actions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.may_have_changed = false;
        let most = self.shared.timeout;
        match tokio::time::timeout(most, self.perform(operation, answer)).await {
            Ok(done) => done,
            Err(_) => {
                let message = format!("no answer within {} ms", most.as_millis());
                match self.may_have_changed {
                    true => Err(OperationError::Unknown(message)),
                    false => Err(OperationError::Failed(message)),
                }
            }
        }
    }
}
