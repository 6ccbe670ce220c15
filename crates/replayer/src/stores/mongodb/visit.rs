//! All documents of a collection.

use futures::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{RawDocument, RawDocumentBuf, doc};
use mongodb::error::{Error, Result};

/// Shows all documents of a collection, without keeping them.
pub async fn visit(
    database: &Database,
    collection: &str,
    mut visit: impl FnMut(&RawDocument) -> Result<()> + Send,
) -> Result<()> {
    let mut batches = database.collection::<RawDocumentBuf>(collection).find(doc! {}).batch().await?;
    while let Some(batch) = batches.try_next().await? {
        for document in batch.doc_slices()? {
            let document = document?;
            visit(document.as_document().ok_or_else(|| Error::custom("no document".to_string()))?)?;
        }
    }
    Ok(())
}
