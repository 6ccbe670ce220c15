//! A store that serves the family: counters in this process. With `stuck=N`, every Nth raise is
//! acknowledged and lost.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use replayer::any_store::{Kind, Opened};
use replayer::source::Source;
use replayer::stores::url::StoreUrl;
use replayer::stores::{
    Answer, Connection, HeldState, LoadProgress, OperationError, Serves, Store, StoreError, promise,
};
use schemas::digest::StateDigest;

use crate::workload::{Counting, Operation};

/// The kind of store, for the list.
pub const KIND: Kind = Kind {
    schemes: &["counters"],
    example: "counters:",
    open: |url| Ok(Opened::new(Counters::open(url)?).serving::<Counting>().boxed()),
};

/// The store.
pub struct Counters {
    url: StoreUrl,
    stuck: u64,
    held: Mutex<Option<HeldState>>,
    counters: Arc<Mutex<HashMap<u64, i64>>>,
}

impl Counters {
    fn open(url: StoreUrl) -> Result<Counters, StoreError> {
        url.allow(&["stuck"])?;
        let stuck = url.number("stuck", 0)?;
        Ok(Counters { url, stuck, held: Mutex::default(), counters: Arc::default() })
    }
}

impl Store for Counters {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn in_process(&self) -> bool {
        true
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.clone());
        Ok(())
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let promises = [("durability", promise::NONE), ("isolation", promise::LINEARIZABLE)];
        Ok(promises.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }
}

impl Serves<Counting> for Counters {
    type Connection = OneThread;

    async fn load(&self, source: &Source, _progress: LoadProgress<'_>) -> Result<(), StoreError> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.set_held(&HeldState::loaded(0, BTreeMap::new(), source)).await
    }

    async fn check_loaded(&self, _source: &Source) -> Result<(), StoreError> {
        Ok(())
    }

    async fn digest(&self, _source: &Source) -> Result<StateDigest, StoreError> {
        Err(StoreError::usage(&self.url, "counters have no digest"))
    }

    async fn connect(&self, _source: &Source, threads: Range<u32>) -> Result<Vec<OneThread>, StoreError> {
        Ok(threads.map(|_| OneThread { counters: self.counters.clone(), stuck: self.stuck, raises: 0 }).collect())
    }
}

/// A thread's connection.
pub struct OneThread {
    counters: Arc<Mutex<HashMap<u64, i64>>>,
    stuck: u64,
    raises: u64,
}

impl Connection<Counting> for OneThread {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counters.entry(operation.counter).or_default();
        if operation.raises {
            self.raises += 1;
            *counter += i64::from(self.stuck == 0 || !self.raises.is_multiple_of(self.stuck));
        } else {
            answer.values.push(*counter);
        }
        Ok(())
    }
}
