//! The state that a store holds before and after an experiment.

use schemas::plan::Plan;
use schemas::run::FragmentPosition;
use schemas::vocabulary::Vocabulary;

use crate::experiment::Experiment;
use crate::source::Source;
use crate::stores::{HeldState, RUNNING, Serves, Store, StoreError, check_workload, this_process};

/// The positions of all fragments after some of them have moved on.
pub fn advanced(before: &[FragmentPosition], moved: &[FragmentPosition]) -> Vec<FragmentPosition> {
    let others = before.iter().filter(|old| moved.iter().all(|new| new.fragment != old.fragment));
    let mut all: Vec<FragmentPosition> = others.chain(moved).cloned().collect();
    all.sort_by_key(|position| position.fragment);
    all
}

/// Whether no fragment has moved on from where the store holds it.
pub fn has_not_moved(held: &HeldState, positions: &[FragmentPosition]) -> bool {
    positions.iter().all(|position| {
        let before = held.positions.iter().find(|before| before.fragment == position.fragment);
        before.unwrap_or(&FragmentPosition::at(position.fragment, 0)) == position
    })
}

/// How far each fragment of a trace set has been replayed on a store. Refuses a store without the
/// trace set's data, or in an unknown state.
pub async fn positions<V: Vocabulary, S: Serves<V>>(
    store: &S,
    source: &Source,
) -> Result<Vec<FragmentPosition>, StoreError> {
    Ok(known(store, source).await?.positions)
}

/// The marker of a store in a known state.
async fn known<V: Vocabulary, S: Serves<V>>(store: &S, source: &Source) -> Result<HeldState, StoreError> {
    let held = check_workload(store.url(), store.held().await?, source)?;
    store.check_design(&held)?;
    match held.diverged {
        None => Ok(held),
        Some(ref why) => {
            let remedy = held.remedy(store.url(), source);
            Err(StoreError::state(store.url(), format!("is in an unknown state: {why}; {remedy}")))
        }
    }
}

/// The store must hold the state that the plan starts from.
pub async fn check_state<V: Vocabulary, S: Serves<V>>(store: &S, experiment: &Experiment) -> Result<(), StoreError> {
    let (url, source, plan) = (store.url(), &experiment.source, &experiment.plan);
    if plan.transactions.used && source.manifest.transactions() > 0 && store.transactions().is_some() {
        store.check_transactions().await?;
    }
    if !store.keeps_state() {
        return Ok(());
    }
    let held = known(store, source).await?;
    let position = |fragment| {
        let found = held.positions.iter().find(|p| p.fragment == fragment);
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
                "has fragment {} at session {}, the experiment starts at {wanted}{given_back}; {}{}, or continue with \
                 --continue",
                fragment.fragment,
                at.next_session,
                held.remedy(url, source),
                if held.adopted { "" } else { " or --load" }
            );
            return Err(StoreError::state(url, message));
        }
    }
    if source.fragments().all(|f| position(f).next_session == 0) {
        // Whatever the error, these rows are not what the experiment needs: the state is to blame.
        store.check_loaded(source).await.map_err(|error| error.into_state().with(&held.remedy(url, source)))?;
    }
    Ok(())
}

/// Makes what the store keeps beside its rows match its state. The caller has checked the state.
pub async fn prepare_cache<S: Store>(store: &S) -> Result<(), StoreError> {
    match store.held().await? {
        Some(held) => store.prepare_cache(&held).await,
        None => Ok(()),
    }
}

/// Marks in the store that this experiment runs, so that no other starts from it. Returns what the
/// marker said before.
pub async fn set_running<S: Store>(store: &S, plan: &Plan) -> Result<Option<HeldState>, StoreError> {
    let before = store.held().await?;
    if let Some(held) = before.clone() {
        let user = Some(this_process().to_string());
        let closing_read = plan.closing_read.clone();
        let running = HeldState { diverged: Some(RUNNING.to_string()), user, closing_read, ..held };
        store.set_held(&running).await?;
    }
    Ok(before)
}
