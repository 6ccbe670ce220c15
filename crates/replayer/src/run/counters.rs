//! What the store counts itself while an experiment runs.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::stores::Store;

/// How often the store is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// The counts of a store since `before`.
pub fn since(store: &impl Store, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let now = store.counters().into_iter();
    now.map(|(name, count)| (name.clone(), count.saturating_sub(before.get(&name).copied().unwrap_or(0)))).collect()
}

/// Runs `work`, and asks the store meanwhile what it has counted since `before`. `work` gets a function that returns the latest
/// answer. The store is asked on a thread of its own, because a server may answer late or not at all. A store that
/// counts nothing is not asked.
pub fn counted<X>(
    store: &impl Store,
    before: &BTreeMap<String, u64>,
    work: impl FnOnce(&dyn Fn() -> BTreeMap<String, u64>) -> X,
) -> X {
    if before.is_empty() {
        return work(&BTreeMap::new);
    }
    let latest = Mutex::new(BTreeMap::new());
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ended = ended;
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let counts = since(store, before);
                *latest.lock().unwrap_or_else(PoisonError::into_inner) = counts;
            }
        });
        let done = work(&|| latest.lock().unwrap_or_else(PoisonError::into_inner).clone());
        drop(end);
        done
    })
}
