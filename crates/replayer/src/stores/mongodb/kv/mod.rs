//! What the store does for `kv`: records as in YCSB's binding. The document of a record is in the
//! collection `usertable`. Its `_id` is the key, and its fields `field0`, `field1`, and so on are
//! binary. Fields that are texts are read too.

mod actions;
mod records;
mod transactions;

use std::ops::Range;
use std::sync::Arc;

use mongodb::options::SessionOptions;
use mongodb::{ClientSession, Database};
use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::vocabulary::kv::Kv;

use super::{MongoDb, Reads, closing, load, marker};
use crate::source::Source;
use crate::stores::adoption::{self, Adopts, Marked, adopt};
use crate::stores::fields::check_one_state;
use crate::stores::{HeldState, LoadProgress, Serves, StoreError};
pub use actions::KvActions;
use actions::Shared;
use records::Records;
pub use records::check;

impl Serves<Kv> for MongoDb {
    type Connection = KvActions;

    fn transactions(&self) -> Option<Isolation> {
        Some(self.isolation)
    }

    async fn check_transactions(&self) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        closing(&client, self.check_replica_set(&client.database(&self.database), "--transactions off")).await
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        closing(&client, load::load(self, &Records, &client, source, progress)).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        check(&self.url, held)
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        adopt(self, source).await
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, records::check_count(self, &database, source)).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        check_one_state(&self.url, source)?;
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, records::digest(self, &database, source)).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<KvActions>, StoreError> {
        let database = self.connected(&threads, Reads::AsAsked).await?;
        let shared = Arc::new(Shared::new(self, &database, source));
        let mut connections = Vec::with_capacity(threads.len());
        for _ in threads {
            let session = if self.causal { Some(self.causal_session(&database).await?) } else { None };
            connections.push(KvActions::new(shared.clone(), session));
        }
        Ok(connections)
    }

    async fn connect_to_latest(&self, source: &Source, threads: Range<u32>) -> Result<Vec<KvActions>, StoreError> {
        let database = self.connected(&threads, Reads::Latest).await?;
        let shared = Arc::new(Shared::new(self, &database, source));
        Ok(threads.map(|_| KvActions::new(shared.clone(), None)).collect())
    }
}

impl MongoDb {
    /// A session whose reads see its own writes, and nothing older than what it has read.
    async fn causal_session(&self, database: &Database) -> Result<Box<ClientSession>, StoreError> {
        let options = SessionOptions::builder().causal_consistency(true).build();
        let session = self.in_time(database.client().start_session().with_options(options)).await?;
        Ok(Box::new(session))
    }
}

impl Adopts for MongoDb {
    async fn marked(&self) -> Result<Marked, StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        let looked = async {
            Ok(match marker::look_into(self, &database).await? {
                marker::Found::Empty => Marked::Empty,
                marker::Found::Unfinished => Marked::Unfinished,
                marker::Found::Held(held) => Marked::Held(held),
                marker::Found::Foreign(_) => match marker::marker(self, &database).await? {
                    // A collection of another program is beside Encore's own.
                    Some(held) => Marked::Held(held),
                    None => Marked::Foreign,
                },
            })
        };
        closing(&client, looked).await
    }

    async fn records(&self, _source: &Source) -> Result<adoption::Records, StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, records::found(self, &database)).await
    }

    fn fresh(&self, source: &Source) -> HeldState {
        load::Documents::loaded(&Records, source)
    }

    async fn mark(&self, _source: &Source, state: &HeldState) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, self.in_time(marker::mark(&database, state))).await
    }
}
