//! The state that a store holds before and after an experiment.

use schemas::run::FragmentPosition;

use crate::experiment::Experiment;
use crate::source::Source;
use crate::stores::{HeldState, RUNNING, Store, StoreError, check_workload};

/// The positions of all fragments after some of them have moved on.
pub fn advanced(before: &[FragmentPosition], moved: &[FragmentPosition]) -> Vec<FragmentPosition> {
    let others = before.iter().filter(|old| moved.iter().all(|new| new.fragment != old.fragment));
    let mut all: Vec<FragmentPosition> = others.chain(moved).cloned().collect();
    all.sort_by_key(|position| position.fragment);
    all
}

/// What to do about a store that is not where it should be.
const AGAIN: &str = "load it again with `replayer load`";

/// How far each fragment of a trace set has been replayed on a store; a store
/// without the trace set's data, or in a state that nobody knows, is refused.
pub async fn positions<S: Store>(store: &S, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
    let held = check_workload(store.url(), store.held().await?, source)?;
    match held.diverged {
        None => Ok(held.positions),
        Some(why) => Err(StoreError::state(store.url(), format!("is not in a state to start from: {why}; {AGAIN}"))),
    }
}

/// The store must hold the state that the plan starts from.
pub async fn check_state<S: Store>(store: &S, experiment: &Experiment) -> Result<(), StoreError> {
    let (url, source, plan) = (store.url(), &experiment.source, &experiment.plan);
    if !store.keeps_state() {
        return Ok(());
    }
    let positions = positions(store, source).await?;
    let position = |fragment| {
        let found = positions.iter().find(|p| p.fragment == fragment);
        found.cloned().unwrap_or_else(|| FragmentPosition::at(fragment, 0))
    };
    for fragment in &plan.fragments {
        let (at, wanted) = (position(fragment.fragment), fragment.first_session);
        if at.next_session != wanted || at.given_back != fragment.given_back {
            let given_back = match (at.given_back.len(), fragment.given_back.len()) {
                (has, plans) if has != plans => format!(" ({has} sessions given back, the experiment expects {plans})"),
                _ => String::new(),
            };
            let message = format!(
                "has fragment {} at session {}, the experiment starts at {wanted}{given_back}; {AGAIN}",
                fragment.fragment, at.next_session
            );
            return Err(StoreError::state(url, message));
        }
    }
    if source.fragments().all(|f| position(f).next_session == 0) {
        // Whatever is wrong with its rows, they are not what the experiment needs.
        store.check_loaded(source).await.map_err(StoreError::into_state)?;
    }
    Ok(())
}

/// Makes what the store keeps beside its rows fit the state that it is in, which has been
/// checked.
pub async fn attune<S: Store>(store: &S) -> Result<(), StoreError> {
    match store.held().await? {
        Some(held) => store.attune(&held).await,
        None => Ok(()),
    }
}

/// Writes down that an experiment runs, so that the store is in no state to start from;
/// gives what was written there before.
pub async fn set_running<S: Store>(store: &S) -> Result<Option<HeldState>, StoreError> {
    let before = store.held().await?;
    if let Some(held) = before.clone() {
        store.set_held(&HeldState { diverged: Some(RUNNING.to_string()), ..held }).await?;
    }
    Ok(before)
}
