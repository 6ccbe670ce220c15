//! The data set as documents: which collections there are, what a document of
//! each looks like, and the documents of a fragment.
//!
//! | collection | documents |
//! |---|---|
//! | `members` | `{_id: member, attributes, pendingFriends: [member], confirmedFriends: [member], thumbnail, image}` |
//! | `resources` | `{_id: resource, owner, wall, body}`, and `comments: [{comment, author, body}]` where they are embedded; index `{wall: 1, _id: -1}` |
//! | `comments` | `{_id: comment, resource, author, body}` where they are a collection; index `{resource: 1}` |
//! | `encore_state` | the marker: what the other collections hold |

use std::collections::{BTreeMap, HashMap};

use mongodb::IndexModel;
use mongodb::bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, doc};
use schemas::dataset::Table;
use schemas::trace::TableError;

use crate::source::{Payload, Source};
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, StoreError};

/// The version of the documents: a store with other ones is loaded anew.
const LAYOUT: u32 = 1;

/// The collections.
pub const MEMBERS: &str = "members";
pub const RESOURCES: &str = "resources";
pub const COMMENTS: &str = "comments";
pub const STATE: &str = "encore_state";

/// Bytes and documents that are inserted at a time, a single document excepted:
/// a message of MongoDB's ends at 48 MB.
const BATCH_BYTES_MAX: usize = 4 << 20;
const BATCH_DOCUMENTS_MAX: usize = 10_000;

/// MongoDB's limit of a document.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

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

    /// What a freshly loaded store says of itself.
    pub fn loaded(self, source: &Source) -> HeldState {
        HeldState::loaded(LAYOUT, self.settings(), source)
    }

    /// Refuses a store that was loaded with other documents than these.
    pub fn check(self, url: &StoreUrl, held: &HeldState) -> Result<(), StoreError> {
        held.check(url, LAYOUT, &[(Comments::PARAMETER, self.name())])
    }

    /// The collections of the data, and the index that each is given.
    pub fn collections(self) -> Vec<(&'static str, Option<IndexModel>)> {
        let index = |keys| Some(IndexModel::builder().keys(keys).build());
        let mut all = vec![(MEMBERS, None), (RESOURCES, index(doc! { "wall": 1, "_id": -1 }))];
        if self == Comments::Collection {
            all.push((COMMENTS, index(doc! { "resource": 1 })));
        }
        all
    }
}

/// A data set that cannot become documents.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A document would be too large.
    #[error("{what} {id} would be a document of {bytes} bytes, MongoDB takes {DOCUMENT_BYTES_MAX}; {advice}")]
    TooLarge { what: &'static str, id: u64, bytes: usize, advice: &'static str },
}

/// Some documents of one collection.
pub struct Batch {
    /// The collection's name.
    pub collection: &'static str,
    /// The documents, at least one.
    pub documents: Vec<RawDocumentBuf>,
    /// How many rows of the data set they come from.
    pub rows_of_data_set: u64,
    bytes: usize,
}

/// A document and how many rows of the data set it comes from.
type Made = Result<(RawDocumentBuf, u64), DocumentError>;

/// Batches as they are made.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<Batch, DocumentError>> + Send + 'a>;

/// All documents of a fragment, made while they are asked for. All that is a
/// member's is in her fragment, and so are the comments on its resources.
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

fn fitting(
    what: &'static str,
    id: u64,
    document: RawDocumentBuf,
    advice: &'static str,
) -> Result<RawDocumentBuf, DocumentError> {
    match document.as_bytes().len() {
        bytes if bytes > DOCUMENT_BYTES_MAX => Err(DocumentError::TooLarge { what, id, bytes, advice }),
        _ => Ok(document),
    }
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
    let mut documents = rows.map(move |row| document_of(row?)).peekable();
    Ok(Box::new(std::iter::from_fn(move || {
        let mut batch = Batch { collection: into, documents: vec![], rows_of_data_set: 0, bytes: 0 };
        while let Some(made) = documents.next_if(|made| batch.has_room_for(made)) {
            match made {
                Ok((document, rows)) => batch.push(document, rows),
                Err(error) => return Some(Err(error)),
            }
        }
        (!batch.documents.is_empty()).then_some(Ok(batch))
    })))
}

impl Batch {
    fn has_room_for(&self, made: &Made) -> bool {
        let Ok((document, _)) = made else { return true };
        let fits = self.bytes + document.as_bytes().len() <= BATCH_BYTES_MAX;
        self.documents.is_empty() || (fits && self.documents.len() < BATCH_DOCUMENTS_MAX)
    }

    fn push(&mut self, document: RawDocumentBuf, rows: u64) {
        self.bytes += document.as_bytes().len();
        self.rows_of_data_set += rows;
        self.documents.push(document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_end_before_they_are_too_large() {
        let made = |bytes: usize| -> Made {
            let mut document = RawDocumentBuf::new();
            document.append(cstr!("x"), "x".repeat(bytes));
            Ok((document, 2))
        };
        let mut batch = Batch { collection: MEMBERS, documents: vec![], rows_of_data_set: 0, bytes: 0 };
        // A single document goes whatever its size.
        assert!(batch.has_room_for(&made(BATCH_BYTES_MAX)));
        let (document, rows) = made(BATCH_BYTES_MAX / 2).unwrap();
        batch.push(document, rows);
        assert!(batch.has_room_for(&made(BATCH_BYTES_MAX / 4)));
        assert!(!batch.has_room_for(&made(BATCH_BYTES_MAX / 2)));
        assert_eq!((batch.documents.len(), batch.rows_of_data_set), (1, 2));
    }

    #[test]
    fn a_document_beyond_the_limit_is_refused_by_name() {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("x"), "x".repeat(DOCUMENT_BYTES_MAX));
        let error = fitting("resource", 7, document, "do this").unwrap_err().to_string();
        assert!(error.contains("resource 7 would be a document of 167772") && error.contains("do this"), "{error}");
    }

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
        };
        comments.check(&url, &held(LAYOUT, Comments::Collection)).unwrap();
        let error = comments.check(&url, &held(LAYOUT, Comments::Embedded)).unwrap_err().to_string();
        assert!(error.contains("is loaded with comments=embedded, the URL asks for comments=collection;"), "{error}");
        let error = comments.check(&url, &held(9, Comments::Collection)).unwrap_err().to_string();
        assert!(error.contains("has tables of version 9"), "{error}");
    }
}
