//! The data set as documents: which collections there are, what a document of each looks like,
//! and the documents of a fragment.
//!
//! - `members`: `{_id: member, attributes, pendingFriends: [member], confirmedFriends: [member],
//!   thumbnail, image}`
//! - `resources`: `{_id: resource, owner, wall, body}`, and `comments: [{comment, author, body}]` if
//!   they are embedded; index `{wall: 1, _id: -1}`
//! - `comments`: `{_id: comment, resource, author, body}` if they are a collection; index
//!   `{resource: 1}`

use std::collections::{BTreeMap, HashMap};

use mongodb::bson::Binary;
use mongodb::bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use mongodb::bson::spec::BinarySubtype;
use schemas::workload::social::Payload;
use schemas::workload::social::dataset::Table;

use crate::source::Source;
use crate::stores::mongodb::batch::{Batches, DocumentError, Made, fitting, in_batches};
use crate::stores::mongodb::collections::{COMMENTS, MEMBERS, RESOURCES};
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, StoreError};

/// The version of the documents. A store with another version must be loaded again.
pub(super) const LAYOUT: u32 = 1;

/// Where the comments on resources are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// In an array of their resource's document.
    Embedded,
    /// Documents of their own collection.
    Collection,
}

impl Comments {
    const PARAMETER: &str = "comments";
    const ALL: [Comments; 2] = [Comments::Embedded, Comments::Collection];

    /// The word of the URL's parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Comments::Embedded => "embedded",
            Comments::Collection => "collection",
        }
    }

    /// What a URL asks for.
    pub fn of(url: &StoreUrl) -> Result<Comments, StoreError> {
        url.choice(Comments::PARAMETER, &Comments::ALL.map(|choice| (choice.name(), choice)))
    }

    /// The design, for a store's settings and its held state.
    pub fn settings(self) -> BTreeMap<String, String> {
        BTreeMap::from([(Comments::PARAMETER.to_string(), self.name().to_string())])
    }

    /// Refuses a store that was loaded with other documents than these.
    pub fn check(self, url: &StoreUrl, held: &HeldState) -> Result<(), StoreError> {
        held.check(url, LAYOUT, &[(Comments::PARAMETER, self.name())])
    }
}

/// All documents of a fragment, made on demand. A fragment has all data of its members, and the
/// comments on its resources.
pub fn of_fragment(source: &Source, fragment: u32, comments: Comments) -> Result<Batches<'_>, DocumentError> {
    let mut all = vec![members(source, fragment)?];
    match comments {
        Comments::Embedded => all.push(resources(source, fragment, comments_by_resource(source, fragment)?, true)?),
        Comments::Collection => {
            all.push(resources(source, fragment, HashMap::new(), false)?);
            all.push(comments_apart(source, fragment)?);
        }
    }
    Ok(Box::new(all.into_iter().flatten()))
}

/// What a member's arrays hold.
#[derive(Default)]
struct Lists {
    pending: Vec<i64>,
    confirmed: Vec<i64>,
}

fn members(source: &Source, fragment: u32) -> Result<Batches<'_>, DocumentError> {
    let mut lists: HashMap<u64, Lists> = HashMap::new();
    let folder = &source.folder;
    Table::Friendships.for_each(folder, fragment, |[a, b]| {
        lists.entry(a).or_default().confirmed.push(b as i64);
        lists.entry(b).or_default().confirmed.push(a as i64);
    })?;
    Table::Invitations.for_each(folder, fragment, |[inviter, invitee]| {
        lists.entry(invitee).or_default().pending.push(inviter as i64);
    })?;
    let payload = source.payload();
    batches(source, fragment, Table::Members, MEMBERS, move |[member]| {
        let lists = lists.remove(&member).unwrap_or_default();
        // Each friendship is in two documents and in one row.
        let friendships = lists.confirmed.iter().filter(|friend| **friend > member as i64).count();
        let rows = 1 + lists.pending.len() + friendships;
        let document = member_document(&payload, member, &lists);
        let advice = "give the workload fewer friends or smaller images";
        fitting("member", member, document, advice).map(|document| (document, rows as u64))
    })
}

fn member_document(payload: &Payload, member: u64, lists: &Lists) -> RawDocumentBuf {
    let bytes = |bytes| Binary { subtype: BinarySubtype::Generic, bytes };
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), member as i64);
    document.append(cstr!("attributes"), payload.attributes(member));
    document.append(cstr!("pendingFriends"), lists.pending.iter().copied().collect::<RawArrayBuf>());
    document.append(cstr!("confirmedFriends"), lists.confirmed.iter().copied().collect::<RawArrayBuf>());
    document.append(cstr!("thumbnail"), bytes(payload.thumbnail(member)));
    document.append(cstr!("image"), bytes(payload.image(member)));
    document
}

/// Comment and author of each comment on each resource that has any.
fn comments_by_resource(source: &Source, fragment: u32) -> Result<HashMap<u64, Vec<[u64; 2]>>, DocumentError> {
    let mut comments: HashMap<u64, Vec<[u64; 2]>> = HashMap::new();
    Table::Comments.for_each(&source.folder, fragment, |[comment, resource, author]| {
        comments.entry(resource).or_default().push([comment, author]);
    })?;
    Ok(comments)
}

fn resources(
    source: &Source,
    fragment: u32,
    mut comments: HashMap<u64, Vec<[u64; 2]>>,
    are_embedded: bool,
) -> Result<Batches<'_>, DocumentError> {
    let payload = source.payload();
    batches(source, fragment, Table::Resources, RESOURCES, move |[resource, owner, wall]| {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), resource as i64);
        document.append(cstr!("owner"), owner as i64);
        document.append(cstr!("wall"), wall as i64);
        document.append(cstr!("body"), payload.resource(resource));
        let mut rows = 1;
        if are_embedded {
            let comments = comments.remove(&resource).unwrap_or_default();
            rows += comments.len();
            let embedded = comments.into_iter().map(|[comment, author]| {
                let mut document = RawDocumentBuf::new();
                document.append(cstr!("comment"), comment as i64);
                document.append(cstr!("author"), author as i64);
                document.append(cstr!("body"), payload.comment(comment));
                document
            });
            document.append(cstr!("comments"), embedded.collect::<RawArrayBuf>());
        }
        let advice = "keep the comments apart with comments=collection";
        fitting("resource", resource, document, advice).map(|document| (document, rows as u64))
    })
}

fn comments_apart(source: &Source, fragment: u32) -> Result<Batches<'_>, DocumentError> {
    let payload = source.payload();
    batches(source, fragment, Table::Comments, COMMENTS, move |[comment, resource, author]| {
        Ok((comment_document(comment, resource, author, &payload.comment(comment)), 1))
    })
}

/// A document of the collection of comments.
pub fn comment_document(comment: u64, resource: u64, author: u64, body: &str) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), comment as i64);
    document.append(cstr!("resource"), resource as i64);
    document.append(cstr!("author"), author as i64);
    document.append(cstr!("body"), body);
    document
}

/// The documents that `document_of` makes of the rows of a table, in batches.
fn batches<'a, const N: usize>(
    source: &'a Source,
    fragment: u32,
    from: Table,
    into: &'static str,
    mut document_of: impl FnMut([u64; N]) -> Made + Send + 'a,
) -> Result<Batches<'a>, DocumentError> {
    let rows = from.rows::<N>(&source.folder, fragment)?.flat_map(|rows| match rows {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    Ok(in_batches(into, rows.map(move |row| document_of(row?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_with_other_documents_is_refused() {
        let url = StoreUrl::parse("mongodb://h/d?comments=collection").unwrap();
        let comments = Comments::of(&url).unwrap();
        let held = |layout, design: Comments| HeldState {
            layout,
            design: design.settings(),
            workload_id: String::new(),
            positions: vec![],
            diverged: None,
            user: None,
            adopted: false,
            closing_read: None,
        };
        comments.check(&url, &held(LAYOUT, Comments::Collection)).unwrap();
        let error = comments.check(&url, &held(LAYOUT, Comments::Embedded)).unwrap_err().to_string();
        assert!(error.contains("was loaded with comments=embedded, the URL says comments=collection;"), "{error}");
        let error = comments.check(&url, &held(9, Comments::Collection)).unwrap_err().to_string();
        assert!(error.contains("has tables of version 9"), "{error}");
    }
}
