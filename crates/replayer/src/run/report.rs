//! Combines the reports of the workers into the report of an experiment.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use schemas::plan::{FragmentPlan, Limit};
use schemas::run::{EndReason, FragmentPosition, Pacing, ReplayReport};
use schemas::share::sessions_enough;

use crate::experiment::{Control, Experiment, Snapshot};
use crate::worker::{Kept, Lag, WorkerReport};

/// The report, without anything about the store yet.
pub fn summarize(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    workers: Vec<WorkerReport>,
    control: &Control,
) -> ReplayReport {
    let plan = &experiment.plan;
    let mut all = Snapshot::default();
    let mut lag = Lag::default();
    let mut kept: Option<Kept> = None;
    let at_first = |f: &FragmentPlan| FragmentPosition {
        fragment: f.fragment,
        next_session: f.first_session,
        given_back: f.given_back.clone(),
    };
    let mut positions: BTreeMap<u32, FragmentPosition> =
        plan.fragments.iter().map(|f| (f.fragment, at_first(f))).collect();
    for worker in &workers {
        all.merge(&worker.snapshot);
        lag.merge(&worker.lag);
        if let Some(own) = &worker.kept {
            kept.get_or_insert_default().merge(own);
        }
        positions.extend(worker.positions.iter().map(|position| (position.fragment, position.clone())));
    }
    let end = if workers.iter().any(|w| w.ran_out) {
        EndReason::TraceExhausted { sessions_needed: sessions_needed(experiment, shares, &workers) }
    } else if control.stop.load(Ordering::Relaxed) {
        EndReason::Interrupted
    } else if workers.iter().any(|w| w.was_overloaded) {
        EndReason::Overloaded
    } else {
        EndReason::Limit
    };
    let elapsed_ns = all.elapsed_ns.max(0) as u64;
    let counted_ns = match plan.limit {
        Limit::DurationS(seconds) if end == EndReason::Limit => (seconds * 1e9) as u64,
        Limit::DurationS(seconds) => elapsed_ns.min((seconds * 1e9) as u64),
        Limit::Sessions(_) | Limit::WholeTrace => elapsed_ns,
    };
    let session_ns: u64 = workers.iter().map(|w| w.session_ns).sum();
    let [ok, failed, unknown, skipped, aborted] = all.outcomes;
    ReplayReport {
        format_version: schemas::RUN_FORMAT_VERSION,
        end,
        warmup_ns: workers.iter().map(|w| w.warmup.ended_ns).max().unwrap_or(0).max(0) as u64,
        warmup_operations: workers.iter().map(|w| w.warmup.operations).sum(),
        elapsed_ns,
        counted_ns,
        ok_counted: all.ok_in_time,
        drained_operations: all.drained,
        sessions: workers.iter().map(|w| w.sessions).sum(),
        positions: positions.into_values().collect(),
        ok,
        failed,
        unknown,
        skipped,
        aborted,
        of_transactions: all.of_transactions,
        worker_cpu_share: workers.iter().map(|w| w.cpu_share).fold(0.0, f64::max),
        dispatch_lag_ns_mean: lag.mean_ns(),
        dispatch_lag_ns_p99: lag.times.percentile_ns(99.0),
        dispatch_lag_ns_max: lag.max_ns as u64,
        run_delay_share: workers.iter().filter_map(|w| w.run_delay_share).reduce(f64::max),
        idle_ns: workers.iter().map(|w| w.idle_ns).sum(),
        sessions_in_flight: session_ns as f64 / counted_ns.max(1) as f64,
        log_stall_ns: workers.iter().map(|w| w.log_stall_ns).max().unwrap_or(0),
        trace_stall_ns: workers.iter().map(|w| w.trace_stall_ns).max().unwrap_or(0),
        store_settings: BTreeMap::new(),
        store_counters: BTreeMap::new(),
        writes_not_ok: workers.iter().map(|w| w.writes_not_ok).sum(),
        began_with: None,
        pacing: kept.map(|kept| Pacing::new(kept.counts, kept.late, kept.queued)),
        replayers: Vec::new(),
        faults: Vec::new(),
    }
}

/// How many sessions the trace should have had. With a planned duration: as many as each worker
/// would have run at its pace, plus a fifth.
fn sessions_needed(experiment: &Experiment, shares: &[Vec<usize>], workers: &[WorkerReport]) -> u64 {
    let stretches = &experiment.stretches;
    let weights: Vec<f64> = stretches.iter().map(|s| s.weight).collect();
    let mut wanted: Vec<u64> = stretches.iter().map(|s| s.end_session).collect();
    if let Limit::DurationS(duration_s) = experiment.plan.limit {
        for (share, worker) in shares.iter().zip(workers) {
            let weight: f64 = share.iter().map(|index| weights[*index]).sum();
            // For a worker that has measured nothing, the pace of its warm-up counts.
            let (sessions, elapsed_ns) = match worker.sessions {
                0 => {
                    let firsts: u64 = share.iter().map(|index| stretches[*index].first_session).sum();
                    let run: u64 = worker.positions.iter().map(FragmentPosition::sessions_run).sum();
                    (run.saturating_sub(firsts), worker.warmup.ended_ns)
                }
                measured => (measured, worker.snapshot.elapsed_ns),
            };
            let in_time = sessions as f64 / (elapsed_ns.max(1) as f64 / 1e9) * duration_s * 1.2;
            for (index, position) in share.iter().zip(&worker.positions) {
                let further = match sessions {
                    // The worker's pace is unknown: as many sessions again as have been run so far.
                    0 => position.next_session,
                    _ => {
                        let needed = (in_time * weights[*index] / weight).ceil() as u64;
                        // The trace ran out, so the sessions that it had were not enough.
                        let had = position.next_session.saturating_sub(stretches[*index].measured_from);
                        needed.max(had + had / 5 + 1)
                    }
                };
                wanted[*index] = stretches[*index].measured_from + further;
            }
        }
    }
    sessions_enough(&weights, &wanted)
}
