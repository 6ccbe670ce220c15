//! Records in the store where it stands after an experiment.

use std::time::Duration;

use schemas::run::FragmentPosition;

use super::state::{advanced, has_not_moved};
use crate::stores::{Blame, HeldState, Store, StoreError, block_on, this_process};

/// How often the replayer tries to record in the store where it stands, and the pause in between.
/// A server that restarts is back within seconds.
const SETTLE_ATTEMPTS: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// What is said if the marker has changed during an experiment.
const SHARED: &str = "was loaded or used by another program while the experiment ran, so its results are not of this \
                      workload alone; give each rating a database of its own";

/// Records in the store where it stands after an experiment. Refuses a store that another process
/// has loaded or used since the experiment began.
pub fn settle<S: Store>(
    store: &S,
    experiment: u32,
    positions: &[FragmentPosition],
    writes_not_ok: u64,
) -> Result<(), StoreError> {
    let diverged = match writes_not_ok {
        0 => None,
        n => Some(format!("{n} writes of experiment {experiment} did not succeed")),
    };
    block_on(store.url(), settle_patiently(store, positions, diverged))
}

async fn settle_patiently<S: Store>(
    store: &S,
    positions: &[FragmentPosition],
    diverged: Option<String>,
) -> Result<(), StoreError> {
    let mut attempt = 1;
    loop {
        let recorded = async {
            let Some(held) = store.held().await? else { return Ok(()) };
            let after = advanced(&held.positions, positions);
            let settled = HeldState { positions: after, diverged: diverged.clone(), user: None, ..held.clone() };
            // An earlier attempt has recorded it, but its answer was lost. Or the experiment was stopped
            // before it began, and the marker is what it was.
            let is_recorded = held == settled || (held.user.is_none() && has_not_moved(&held, positions));
            if is_recorded && diverged == held.diverged {
                return Ok(());
            }
            if held.user.as_deref() != Some(this_process()) {
                return Err(StoreError::state(store.url(), SHARED));
            }
            store.set_held(&settled).await
        };
        match recorded.await {
            Err(error) if error.blame == Blame::Store && attempt < SETTLE_ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
            result => return result,
        }
    }
}
