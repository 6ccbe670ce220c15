//! The check of the conditions that the data of a trace set keep: after a load, and with the closing read after an
//! experiment.

use std::sync::atomic::{AtomicBool, Ordering};

use schemas::conditions::{self, Condition};
use schemas::run::ExperimentFolder;
use schemas::vocabulary::Vocabulary;

use crate::experiment::{Experiment, ExperimentError};
use crate::source::Source;
use crate::stores::{HeldState, Moment, Serves, StoreError, block_on};

/// Checks the conditions after an experiment, and writes what was found beside the logs. Returns false if `stop` was
/// set before all were checked; then nothing is written.
pub(super) fn check_conditions<V: Vocabulary, S: Serves<V>>(
    store: &S,
    experiment: &Experiment,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<bool, ExperimentError> {
    let mut go_on = |done, all| {
        progress(done, all);
        !stop.load(Ordering::Relaxed)
    };
    let found = block_on(store.url(), store.check_conditions(&experiment.source, Moment::Replayed, &mut go_on))?;
    let Some(found) = found else { return Ok(false) };
    conditions::write(&ExperimentFolder::new(&experiment.folder).checks(), experiment.plan.experiment, &found)?;
    Ok(true)
}

/// Checks the conditions of freshly loaded data. Refuses data that violate one, names all of these, and marks the
/// store so that no experiment starts from it. Returns how many there are.
pub(crate) async fn check_conditions_of_load<V: Vocabulary, S: Serves<V>>(
    store: &S,
    source: &Source,
) -> Result<u64, StoreError> {
    let found = store.check_conditions(source, Moment::Loaded, &mut |_, _| true).await?.unwrap_or_default();
    let broken: Vec<String> = found.iter().filter_map(Condition::with_rows).collect();
    if broken.is_empty() {
        return Ok(found.len() as u64);
    }
    let share = format!("{} of {}", broken.len(), schemas::words::plural(found.len() as u64, "condition"));
    if let Some(held) = store.held().await? {
        let diverged = Some(format!("after the load its data did not keep {share}"));
        store.set_held(&HeldState { diverged, ..held }).await?;
    }
    let folder = source.folder.display();
    let message = format!(
        "the data that were loaded do not keep {share} of {folder}:\n  {}\nso no experiment can start from them: the \
         trace set or its load is wrong; generate the trace set again, or correct what it was made from",
        broken.join("\n  ")
    );
    Err(StoreError::usage(store.url(), message))
}
