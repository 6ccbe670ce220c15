//! What the connections of a worker share.

use std::time::Duration;

use mongodb::bson::RawDocumentBuf;
use mongodb::{Collection, Database};
use schemas::workload::social::Payload;

use super::documents::Comments;
use super::shapes::Shapes;
use crate::source::Source;
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::collections::{COMMENTS, MEMBERS, RESOURCES};

/// What the connections of a worker share.
pub struct Shared {
    pub(super) database: Database,
    pub(super) members: Collection<RawDocumentBuf>,
    pub(super) resources: Collection<RawDocumentBuf>,
    pub(super) comments: Collection<RawDocumentBuf>,
    pub(super) design: Comments,
    pub(super) transactions: bool,
    pub(super) timeout: Duration,
    pub(super) payload: Payload,
    pub(super) top_k: u32,
    pub(super) shapes: Shapes,
}

impl Shared {
    /// For the data set of `source` in a worker's database.
    pub fn new(store: &MongoDb, database: &Database, source: &Source) -> Shared {
        Shared {
            members: database.collection(MEMBERS),
            resources: database.collection(RESOURCES),
            comments: database.collection(COMMENTS),
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
