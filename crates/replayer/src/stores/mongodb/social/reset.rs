//! Restores what actions have changed, from a loaded copy.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::error::Error;

use super::documents::Comments;
use crate::stores::HeldState;
use crate::stores::mongodb::collections::{COMMENTS, MEMBERS, RESOURCES};
use crate::stores::mongodb::load::{Documents, pour, replace};
use crate::stores::mongodb::marker::{unmark, write_state};

/// Whether the documents that no action makes or deletes are all there. Only Encore should write
/// to its database, but nothing keeps other clients out.
pub async fn is_whole(comments: Comments, from: &Database, to: &Database) -> Result<bool, Error> {
    for (name, _) in comments.collections().into_iter().filter(|(name, _)| name != COMMENTS) {
        let count = async |database: &Database| database.collection::<Document>(&name).estimated_document_count().await;
        if count(from).await? != count(to).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Restores what actions have changed, in all members and in all comments.
pub async fn restore(comments: Comments, from: &Database, to: &Database, fresh: &HeldState) -> Result<(), Error> {
    unmark(to).await?;
    let with_comments = match comments {
        Comments::Embedded => RESOURCES,
        Comments::Collection => COMMENTS,
    };
    futures::future::try_join(restore_arrays(from, to), replace(from, to, with_comments)).await?;
    write_state(to, fresh).await
}

/// Gives each member the arrays that the member has in the loaded database. The server does not
/// write a document whose fields have not changed.
async fn restore_arrays(from: &Database, to: &Database) -> Result<(), Error> {
    let merge = doc! { "$merge": {
        "into": { "db": to.name(), "coll": MEMBERS },
        "on": "_id",
        "whenMatched": "merge",
        "whenNotMatched": "fail",
    } };
    let arrays = doc! { "$project": { "pendingFriends": 1, "confirmedFriends": 1 } };
    pour(from, MEMBERS, vec![arrays, merge]).await
}
