//! `null:` answers at once and holds nothing. It measures the replayer.
//!
//! Writes succeed. Reads of the `social` vocabulary and scans see nothing. A read of a record sees
//! initial values, since it has to say at least whether the record exists. Statements return and change no rows. What it answers is not
//! right, so a run against it has no meaningful verdict on its reads. Balances are 0.

use std::collections::BTreeMap;
use std::ops::Range;

use schemas::digest::StateDigest;
use schemas::social::{self, Social};
use schemas::vocabulary::kv::{self, Found, Kv, Seen, Verb};
use schemas::vocabulary::sql::{self, EMPTY, Sql};
use schemas::vocabulary::{Request as _, Vocabulary};
use schemas::workload::kv::KvWorkload;

use super::url::StoreUrl;
use super::{Answer, Connection, HeldState, LoadProgress, OperationError, Serves, Store, StoreError, promise};
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
        StoreError::usage(&self.url, "stores nothing, so it has no state")
    }
}

impl Store for Null {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        false
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(None)
    }

    async fn set_held(&self, _state: &HeldState) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let durability = format!("{}: nothing is kept", promise::NONE);
        Ok(BTreeMap::from([("durability".into(), durability), ("isolation".into(), promise::NONE.into())]))
    }
}

impl<V: Vocabulary> Serves<V> for Null
where
    NullConnection: Connection<V>,
{
    type Connection = NullConnection;

    async fn load(&self, _source: &Source, _progress: LoadProgress<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn check_loaded(&self, _source: &Source) -> Result<(), StoreError> {
        Ok(())
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        Err(self.holds_nothing())
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<NullConnection>, StoreError> {
        let workload = KvWorkload::of(&source.manifest.spec);
        let has_balances = workload.is_ok_and(|workload| workload.data.total_cash.is_some());
        Ok(threads.map(|_| NullConnection { has_balances }).collect())
    }
}

/// A connection that does nothing.
pub struct NullConnection {
    has_balances: bool,
}

impl Connection<Social> for NullConnection {
    #[inline]
    async fn execute(&mut self, _operation: &social::Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        Ok(())
    }
}

impl Connection<Kv> for NullConnection {
    #[inline]
    async fn execute(&mut self, operation: &kv::Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if operation.verb == Verb::Read {
            let balance = self.has_balances.then_some(0);
            Found::push(&mut answer.values, [(0, Seen { number: 0, balance })].into_iter());
        }
        Ok(())
    }
}

impl Connection<Sql> for NullConnection {
    #[inline]
    async fn execute(&mut self, request: &sql::Request, answer: &mut Answer) -> Result<(), OperationError> {
        answer.values.push(0);
        if request.operation().verb.reads() {
            answer.values.push(EMPTY);
        }
        Ok(())
    }
}
