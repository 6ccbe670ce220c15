//! `null:` answers at once with nothing: it measures the replayer.

use std::collections::BTreeMap;
use std::ops::Range;

use schemas::digest::StateDigest;
use schemas::social::Operation;

use super::url::StoreUrl;
use super::{Answer, Connection, HeldState, LoadProgress, OperationError, Store, StoreError, promise};
use crate::source::Source;

/// The store that holds nothing.
pub struct Null {
    url: StoreUrl,
}

impl Null {
    /// Takes no parameters.
    pub fn open(url: StoreUrl) -> Result<Null, StoreError> {
        url.allow(&[])?;
        Ok(Null { url })
    }

    fn holds_nothing(&self) -> StoreError {
        StoreError::usage(&self.url, "holds nothing, so there is no state to ask for")
    }
}

impl Store for Null {
    type Connection = NullConnection;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        false
    }

    async fn load(&self, _source: &Source, _progress: LoadProgress<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(None)
    }

    async fn set_held(&self, _state: &HeldState) -> Result<(), StoreError> {
        Ok(())
    }

    async fn check_loaded(&self, _source: &Source) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let durability = format!("{}: nothing is kept", promise::NONE);
        Ok(BTreeMap::from([("durability".into(), durability), ("isolation".into(), promise::NONE.into())]))
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        Err(self.holds_nothing())
    }

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<NullConnection>, StoreError> {
        Ok(threads.map(|_| NullConnection).collect())
    }
}

/// A connection to nowhere.
pub struct NullConnection;

impl Connection for NullConnection {
    #[inline]
    async fn execute(&mut self, _operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        Ok(())
    }
}
