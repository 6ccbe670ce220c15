//! Reads. Each sees one state of a document, and takes it from the bytes of the reply without
//! building documents.

use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::action::Find;
use mongodb::bson::raw::RawArray;
use mongodb::bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::raw_batch_cursor::RawBatch;
use schemas::social::{Action, Operation};

use super::audit::ids;
use super::documents::Comments;
use super::shared::Shared;
use crate::stores::Answer;
use crate::stores::mongodb::retry::Refusal;

/// All documents in one reply, as far as they fit.
const AT_ONCE: u32 = i32::MAX as u32;

impl Shared {
    /// Performs a read.
    pub(super) async fn read(&self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let (me, target) = (operation.socialite as i64, operation.target as i64);
        match operation.action {
            Action::ViewProfile => self.view_profile(target, me == target, answer).await,
            Action::ListFriends => self.list(target, &self.shapes.confirmed, "confirmedFriends", answer).await,
            Action::ViewFriendRequests => self.list(me, &self.shapes.pending, "pendingFriends", answer).await,
            Action::ViewTopKResources => {
                let find = self.resources.find(doc! { "wall": target }).projection(self.shapes.body.clone());
                let find = find.sort(doc! { "_id": -1 }).limit(self.top_k.into()).batch_size(AT_ONCE);
                self.take_in_bodies(find, answer).await
            }
            _ => self.view_comments(target, answer).await,
        }
    }

    async fn view_profile(&self, member: i64, is_own: bool, answer: &mut Answer) -> Result<(), Refusal> {
        let shape = if is_own { &self.shapes.own_profile } else { &self.shapes.profile };
        let reply = one(&self.members, member, shape).await?;
        let profile = first(&reply)?.ok_or_else(|| Refusal::refused("member not found"))?;
        let resources = self.resources.count_documents(doc! { "wall": member }).await?;
        let mut values = vec![length(profile, "friends")?, resources as i64];
        if is_own {
            values.push(length(profile, "pending")?);
        }
        answer.take_in(&values, profile.get_str("attributes")?, profile.get_binary("image")?.bytes);
        Ok(())
    }

    /// The members that an array names, all with one query. What the read observes is the array,
    /// in one state of its document.
    async fn list(&self, member: i64, shape: &Document, array: &str, answer: &mut Answer) -> Result<(), Refusal> {
        let reply = one(&self.members, member, shape).await?;
        let owner = first(&reply)?.ok_or_else(|| Refusal::refused("member not found"))?;
        let wanted = ids(owner.get_array(array)?).collect::<Result<Vec<i64>, Error>>()?;
        if wanted.is_empty() {
            return Ok(());
        }
        let count = wanted.len();
        let find = self.members.find(doc! { "_id": { "$in": wanted } });
        let find = find.projection(self.shapes.in_a_list.clone()).batch_size(AT_ONCE);
        let mut batches = find.batch().await?;
        let mut found = 0;
        while let Some(batch) = batches.try_next().await? {
            for member in documents_of(batch.doc_slices()?) {
                let member = member?;
                let id = [member.get_i64("_id")?];
                answer.take_in(&id, member.get_str("attributes")?, member.get_binary("thumbnail")?.bytes);
                found += 1;
            }
        }
        match found == count {
            true => Ok(()),
            false => Err(Refusal::refused(format!("found only {found} of the {count} members in {array}"))),
        }
    }

    async fn view_comments(&self, resource: i64, answer: &mut Answer) -> Result<(), Refusal> {
        match self.design {
            Comments::Embedded => {
                let reply = one(&self.resources, resource, &self.shapes.comments).await?;
                let resource = first(&reply)?.ok_or_else(|| Refusal::refused("resource not found"))?;
                for comment in documents_of(resource.get_array("comments")?) {
                    let comment = comment?;
                    answer.take_in(&[comment.get_i64("comment")?], comment.get_str("body")?, &[]);
                }
                Ok(())
            }
            Comments::Collection => {
                let find = self.comments.find(doc! { "resource": resource }).batch_size(AT_ONCE);
                self.take_in_bodies(find, answer).await
            }
        }
    }

    /// Rows of an id and a text.
    async fn take_in_bodies(&self, find: Find<'_, RawDocumentBuf>, answer: &mut Answer) -> Result<(), Refusal> {
        let mut batches = find.batch().await?;
        while let Some(batch) = batches.try_next().await? {
            for document in documents_of(batch.doc_slices()?) {
                let document = document?;
                answer.take_in(&[document.get_i64("_id")?], document.get_str("body")?, &[]);
            }
        }
        Ok(())
    }
}

/// Asks for one document by its id.
async fn one(collection: &Collection<RawDocumentBuf>, id: i64, shape: &Document) -> Result<RawBatch, Refusal> {
    // A negative limit: the server keeps no cursor.
    let find = collection.find(doc! { "_id": id }).projection(shape.clone()).limit(-1);
    find.batch().await?.try_next().await?.ok_or_else(|| Refusal::refused("unexpected reply: no batch"))
}

/// The document of a reply to [`one`], if there is any.
fn first(reply: &RawBatch) -> Result<Option<&RawDocument>, Refusal> {
    documents_of(reply.doc_slices()?).next().transpose()
}

fn documents_of(array: &RawArray) -> impl Iterator<Item = Result<&RawDocument, Refusal>> {
    array
        .into_iter()
        .map(|value| value?.as_document().ok_or_else(|| Refusal::refused("unexpected reply: not a document")))
}

/// A count, which the server sends with 32 or 64 bits.
fn length(document: &RawDocument, name: &str) -> Result<i64, Refusal> {
    match document.get(name)? {
        Some(RawBsonRef::Int32(length)) => Ok(length.into()),
        Some(RawBsonRef::Int64(length)) => Ok(length),
        _ => Err(Refusal::refused(format!("unexpected reply: {name} is not a number"))),
    }
}
