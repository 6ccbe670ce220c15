//! What each write changes, one document after the other. Writes have their preconditions as filters.

use mongodb::ClientSession;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use schemas::social::{Action, Operation};

use super::documents::{Comments, comment_document};
use super::shared::Shared;
use crate::stores::mongodb::retry::Refusal;

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
                DocumentChange::Insert(comment_document(comment, operation.target, operation.socialite, &body))
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
