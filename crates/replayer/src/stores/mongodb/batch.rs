//! Documents on their way into a collection.

use std::borrow::Cow;

use mongodb::bson::raw::RawDocumentBuf;
use schemas::table::TableError;

/// The most bytes (except for a single document) and documents of one insert: a message of
/// MongoDB's has at most 48 MB.
const BATCH_BYTES_MAX: usize = 4 << 20;
const BATCH_DOCUMENTS_MAX: usize = 10_000;

/// The most bytes of a document in MongoDB.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Why a data set cannot become documents.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A document would be too large.
    #[error("{what} {id}: document of {bytes} bytes exceeds MongoDB's limit of {DOCUMENT_BYTES_MAX}; {advice}")]
    TooLarge { what: &'static str, id: u64, bytes: usize, advice: &'static str },
}

/// Some documents of one collection.
pub struct Batch {
    /// The collection's name.
    pub collection: Cow<'static, str>,
    /// The documents, at least one.
    pub documents: Vec<RawDocumentBuf>,
    /// How many rows of the data set they come from.
    pub rows_of_data_set: u64,
    bytes: usize,
}

/// A document and how many rows of the data set it comes from.
pub type Made = Result<(RawDocumentBuf, u64), DocumentError>;

/// Batches as they are made.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<Batch, DocumentError>> + Send + 'a>;

/// Refuses a document that is too large.
pub fn fitting(
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

/// Documents for a collection, in batches.
pub fn in_batches<'a>(
    into: impl Into<Cow<'static, str>>,
    documents: impl Iterator<Item = Made> + Send + 'a,
) -> Batches<'a> {
    let (into, mut documents) = (into.into(), documents.peekable());
    Box::new(std::iter::from_fn(move || {
        let mut batch = Batch { collection: into.clone(), documents: vec![], rows_of_data_set: 0, bytes: 0 };
        while let Some(made) = documents.next_if(|made| batch.has_room_for(made)) {
            match made {
                Ok((document, rows)) => batch.push(document, rows),
                Err(error) => return Some(Err(error)),
            }
        }
        (!batch.documents.is_empty()).then_some(Ok(batch))
    }))
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
    use mongodb::bson::raw::cstr;

    use super::*;

    #[test]
    fn batches_end_before_they_are_too_large() {
        let made = |bytes: usize| -> Made {
            let mut document = RawDocumentBuf::new();
            document.append(cstr!("x"), "x".repeat(bytes));
            Ok((document, 2))
        };
        let mut batch = Batch { collection: "members".into(), documents: vec![], rows_of_data_set: 0, bytes: 0 };
        // A single document is taken whatever its size.
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
        assert!(error.contains("resource 7: document of 167772") && error.contains("do this"), "{error}");
    }
}
