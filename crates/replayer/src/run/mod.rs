//! Runs an experiment: check the state, connect, run the workers, close the
//! logs, write down the state.

mod closing;
mod conditions;
mod counters;
mod logs;
mod report;
mod settle;
mod state;
mod worker;
mod workers;

use schemas::files;
use schemas::isolation::{Isolation, TRANSACTIONS_SETTING};
use schemas::run::{ReplayReport, add_settings};
use schemas::vocabulary::Vocabulary;

use crate::experiment::{Control, Documents, Experiment, ExperimentError, Snapshot, StoreDuty};
use crate::stores::{Serves, block_on};
pub use closing::closing_read;
pub(crate) use conditions::check_conditions_of_load;
use report::summarize;
pub use settle::settle;
pub(crate) use state::{check_state, positions, prepare_cache};
use workers::run_workers;

/// How transactions are run, in words.
fn transactions(level: Option<Isolation>, used: bool) -> String {
    match (used, level) {
        (true, Some(level)) => level.name().to_string(),
        (true, None) => "best effort: the store has none, begin, commit and abort do nothing".to_string(),
        (false, _) => "off: begin, commit and abort do nothing".to_string(),
    }
}

/// Runs an experiment on a store.
pub fn run<V: Vocabulary, S: Serves<V>>(
    store: &S,
    experiment: &Experiment,
    control: &Control,
    progress: &mut dyn FnMut(Snapshot),
) -> Result<ReplayReport, ExperimentError> {
    let plan = &experiment.plan;
    let url = store.url();
    if control.duty != StoreDuty::Follows {
        block_on(url, check_state(store, experiment))?;
    }
    if control.duty == StoreDuty::Alone {
        block_on(url, prepare_cache(store))?;
    }
    let log_folder = experiment.folder.join("log");
    std::fs::create_dir_all(&log_folder).map_err(files::at(&log_folder))?;
    if experiment.documents == Documents::PlanAndReport {
        files::write_json(&experiment.folder.join("plan.json"), &plan.redacted())?;
    }
    let mut settings = block_on(url, store.settings())?;
    add_settings(&mut settings, store.design_settings(&experiment.source));
    if experiment.source.manifest.transactions() > 0 {
        settings.insert(TRANSACTIONS_SETTING.to_string(), transactions(store.transactions(), plan.transactions.used));
    }
    let counted_before = store.counters();
    let shares = experiment.shares();
    let began_with = match experiment.continues() && control.duty != StoreDuty::Follows {
        true => block_on(url, store.held())?.and_then(|held| held.closing_read),
        false => None,
    };
    let workers = counters::counted(store, &counted_before, |latest| {
        let mut progress = |snapshot| progress(Snapshot { store_counters: latest(), ..snapshot });
        run_workers(store, experiment, &shares, control, &mut progress)
    })?;

    let mut report = summarize(experiment, &shares, workers, control);
    report.began_with = began_with;
    report.store_settings = settings;
    report.store_counters = counters::since(store, &counted_before);
    if control.duty == StoreDuty::Follows && store.is_suspect() {
        // The leader settles for all replayers, and learns nothing but the number of failed writes.
        report.writes_not_ok += 1;
    }
    // The report is written before the store's state is recorded, since that may fail.
    if experiment.documents != Documents::Nothing {
        files::write_json(&experiment.folder.join("replay.json"), &report)?;
    }
    if control.duty == StoreDuty::Alone {
        settle(store, plan.experiment, &report.positions, report.writes_not_ok)?;
    }
    Ok(report)
}
