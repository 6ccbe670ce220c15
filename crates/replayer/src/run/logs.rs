//! The files of the logs, before the workers write to them.

use schemas::oplog::{LogHeader, ReservedLog};
use schemas::plan::FragmentPlan;
use schemas::table::TableError;

use crate::dispatch::aside_max;
use crate::experiment::Experiment;
use crate::log::UNWRITTEN_ROWS_MAX;

/// Creates the empty files of the logs. If one cannot be created, removes the others.
pub fn reserve_logs(experiment: &Experiment) -> Result<Vec<ReservedLog>, TableError> {
    let mut reserved = Vec::new();
    let fragments = if experiment.is_logged { &experiment.plan.fragments[..] } else { &[] };
    for fragment in fragments {
        match ReservedLog::create(&experiment.log_path(fragment.fragment)) {
            Ok(log) => reserved.push(log),
            Err(error) => {
                // The failure to create a log matters more than a failure to remove an empty one.
                let _ = reserved.into_iter().try_for_each(ReservedLog::remove);
                return Err(error);
            }
        }
    }
    Ok(reserved)
}

/// The header of each log.
pub fn log_headers(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    threads: &[u32],
    started_unix_ns: i64,
) -> Vec<LogHeader> {
    let plan = &experiment.plan;
    let threads_of = |index: usize| {
        shares.iter().position(|share| share.contains(&index)).map_or(plan.threads, |worker| threads[worker])
    };
    let header = |(index, fragment): (usize, &FragmentPlan)| LogHeader {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: plan.experiment,
        fragment: fragment.fragment,
        workload_id: experiment.source.manifest.workload_id.clone(),
        first_session: fragment.begins_at(),
        threads: threads_of(index),
        unwritten_rows_max: UNWRITTEN_ROWS_MAX,
        aside_sessions_max: if plan.unique_actors { aside_max(threads_of(index) as usize) as u64 } else { 0 },
        started_unix_ns,
    };
    plan.fragments.iter().enumerate().map(header).collect()
}
