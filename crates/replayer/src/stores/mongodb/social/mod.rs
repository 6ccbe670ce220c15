//! What the store does for `social`: BG's data as documents, its actions, its checks.

mod actions;
mod audit;
mod changes;
pub mod documents;
mod load;
mod reads;
mod reset;
mod shapes;
mod shared;
mod transactions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mongodb::Database;
use schemas::digest::StateDigest;
use schemas::social::Social;

use super::{MongoDb, Reads, closing};
use crate::source::Source;
use crate::stores::{LoadProgress, Serves, StoreError};
use actions::Actions;
use shared::Shared;

impl Serves<Social> for MongoDb {
    type Connection = Actions;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let loaded = async {
            self.check_own_transactions(&client.database(&self.database)).await?;
            super::load::load(self, &self.comments, &client, source, progress).await
        };
        closing(&client, loaded).await
    }

    fn design_settings(&self, _source: &Source) -> BTreeMap<String, String> {
        let mut settings = self.comments.settings();
        settings.insert("transactions".to_string(), if self.transactions { "on" } else { "off" }.to_string());
        settings
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, audit::check_counts(self, &database, source)).await
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        let client = self.keeper().await?;
        let database = client.database(&self.database);
        closing(&client, audit::digest(self, &database)).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<Actions>, StoreError> {
        let database = self.connected(&threads, Reads::AsAsked).await?;
        self.check_own_transactions(&database).await?;
        let shared = Arc::new(Shared::new(self, &database, source));
        Ok(threads.map(|_| Actions::new(shared.clone())).collect())
    }
}

impl MongoDb {
    /// Refuses `transactions=on` on a server that has none.
    async fn check_own_transactions(&self, database: &Database) -> Result<(), StoreError> {
        match self.transactions {
            true => self.check_replica_set(database, "transactions=off").await,
            false => Ok(()),
        }
    }
}
