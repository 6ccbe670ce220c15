//! Queries for a store's state: how much there is, the digest, and whether two documents agree.

use futures::TryStreamExt;
use mongodb::Database;
use mongodb::bson::raw::RawArray;
use mongodb::bson::{Document, RawDocument, doc};
use mongodb::error::{Error, Result};
use schemas::digest::StateDigest;
use schemas::workload::social::dataset::Table;

use super::documents::Comments;
use crate::source::Source;
use crate::stores::StoreError;
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::collections::{COMMENTS, MEMBERS, RESOURCES};
use crate::stores::mongodb::visit::visit;

/// Checks by counting that a freshly loaded store holds the data set.
pub async fn check_counts(
    store: &MongoDb,
    database: &Database,
    source: &Source,
) -> std::result::Result<(), StoreError> {
    let counts = counts(store.comments, database).await.map_err(|error| store.driver_failed(error))?;
    for (what, found, of, each) in counts {
        // Each friendship is in two arrays.
        let expected = each * source.rows(of) as i64;
        if found != expected {
            return Err(StoreError::miscounted(&store.url, what, found, expected, source));
        }
    }
    Ok(())
}

/// What there is: in words, how many, the table of the data set that it comes from, and how many
/// each row of that table makes.
type Counts = Vec<(&'static str, i64, Table, i64)>;

async fn counts(comments: Comments, database: &Database) -> Result<Counts> {
    let length = |array: &str| doc! { "$sum": { "$size": { "$ifNull": [array, []] } } };
    let members = doc! {
        "documents": { "$sum": 1 },
        "confirmed": length("$confirmedFriends"),
        "pending": length("$pendingFriends"),
    };
    let members = sums(database, MEMBERS, members).await?;
    let resources = doc! { "documents": { "$sum": 1 }, "comments": length("$comments") };
    let resources = sums(database, RESOURCES, resources).await?;
    let (what, comments) = match comments {
        Comments::Embedded => ("comments of collection resources", count(&resources, "comments")),
        Comments::Collection => {
            let comments = sums(database, COMMENTS, doc! { "documents": { "$sum": 1 } }).await?;
            ("documents of collection comments", count(&comments, "documents"))
        }
    };
    Ok(vec![
        ("documents of collection members", count(&members, "documents"), Table::Members, 1),
        ("confirmedFriends of collection members", count(&members, "confirmed"), Table::Friendships, 2),
        ("pendingFriends of collection members", count(&members, "pending"), Table::Invitations, 1),
        ("documents of collection resources", count(&resources, "documents"), Table::Resources, 1),
        (what, comments, Table::Comments, 1),
    ])
}

/// Sums over all documents of a collection; an empty document where there are none.
async fn sums(database: &Database, collection: &str, mut sums: Document) -> Result<Document> {
    sums.insert("_id", mongodb::bson::Bson::Null);
    let mut found = database.collection::<Document>(collection).aggregate([doc! { "$group": sums }]).await?;
    Ok(found.try_next().await?.unwrap_or_default())
}

/// A sum, which the server sends with 32 or 64 bits.
fn count(sums: &Document, name: &str) -> i64 {
    sums.get_i64(name).or_else(|_| sums.get_i32(name).map(i64::from)).unwrap_or(0)
}

/// The digest of all documents.
pub async fn digest(store: &MongoDb, database: &Database) -> std::result::Result<StateDigest, StoreError> {
    let failed = |error: Error| store.driver_failed(error);
    let (mut digest, mut seen_lower, mut seen_higher) = Default::default();
    visit(database, MEMBERS, |member| digest_member(member, &mut digest, &mut seen_lower, &mut seen_higher))
        .await
        .map_err(failed)?;
    // The digest of a friendship is the same from both sides. So the two digests differ if one
    // side lacks a friendship.
    if seen_lower != seen_higher {
        let one_sided = one_sided(database).await.map_err(failed)?;
        return Err(store.failed(format!(
            "{one_sided} friendships are stored for only one of the two members; load it again with \
             `encore replay load`"
        )));
    }
    digest.merge(seen_lower);
    visit(database, RESOURCES, |resource| digest_resource(resource, &mut digest)).await.map_err(failed)?;
    if store.comments == Comments::Collection {
        visit(database, COMMENTS, |comment| {
            let resource = id(comment, "resource")?;
            digest.comment(id(comment, "_id")?, resource, id(comment, "author")?, comment.get_str("body")?);
            Ok(())
        })
        .await
        .map_err(failed)?;
    }
    Ok(digest)
}

fn id(document: &RawDocument, name: &str) -> Result<u64> {
    Ok(document.get_i64(name)? as u64)
}

/// The ids of an array.
pub fn ids(array: &RawArray) -> impl Iterator<Item = Result<i64>> {
    array.into_iter().map(|value| {
        let value = value?;
        value.as_i64().ok_or_else(|| Error::custom(format!("{:?} in an array of ids", value.element_type())))
    })
}

/// A member, the member's waiting invitations, and the friendships. Friendships go into one of
/// two digests, by whether the member's id is the lower one of the two.
fn digest_member(
    member: &RawDocument,
    digest: &mut StateDigest,
    seen_lower: &mut StateDigest,
    seen_higher: &mut StateDigest,
) -> Result<()> {
    let me = id(member, "_id")?;
    let (image, thumbnail) = (member.get_binary("image")?, member.get_binary("thumbnail")?);
    digest.member(me, member.get_str("attributes")?, image.bytes, thumbnail.bytes);
    for friend in ids(member.get_array("confirmedFriends")?) {
        let friend = friend? as u64;
        if me < friend { &mut *seen_lower } else { &mut *seen_higher }.friendship(me, friend);
    }
    for inviter in ids(member.get_array("pendingFriends")?) {
        digest.invitation(inviter? as u64, me);
    }
    Ok(())
}

/// A resource and the comments embedded in it.
fn digest_resource(resource: &RawDocument, digest: &mut StateDigest) -> Result<()> {
    let number = id(resource, "_id")?;
    digest.resource(number, id(resource, "owner")?, id(resource, "wall")?, resource.get_str("body")?);
    let Some(comments) = resource.get("comments")?.and_then(|comments| comments.as_array()) else { return Ok(()) };
    for comment in comments {
        let comment = comment?;
        let comment = comment.as_document().ok_or_else(|| Error::custom("a comment is no document".to_string()))?;
        digest.comment(id(comment, "comment")?, number, id(comment, "author")?, comment.get_str("body")?);
    }
    Ok(())
}

/// How many friendships are not listed once by each of the two members.
async fn one_sided(database: &Database) -> Result<i64> {
    let pair = doc! { "$cond": [
        { "$lt": ["$_id", "$confirmedFriends"] },
        { "a": "$_id", "b": "$confirmedFriends" },
        { "a": "$confirmedFriends", "b": "$_id" },
    ] };
    let pipeline = [
        doc! { "$project": { "confirmedFriends": 1 } },
        doc! { "$unwind": "$confirmedFriends" },
        doc! { "$group": { "_id": pair, "known": { "$sum": 1 } } },
        doc! { "$match": { "known": { "$ne": 2 } } },
        doc! { "$count": "friendships" },
    ];
    let members = database.collection::<Document>(MEMBERS);
    let found = members.aggregate(pipeline).allow_disk_use(true).await?.try_next().await?;
    Ok(found.map_or(0, |found| count(&found, "friendships")))
}
