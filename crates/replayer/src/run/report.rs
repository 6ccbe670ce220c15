//! The report of an experiment from those of its workers.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use schemas::latency::ResponseTimes;
use schemas::plan::Limit;
use schemas::run::{EndReason, FragmentPosition, ReplayReport};
use schemas::share::sessions_enough;

use crate::experiment::{Control, Experiment, Snapshot};
use crate::worker::WorkerReport;

/// The report, which knows nothing of the store yet.
pub fn summarize(
    experiment: &Experiment,
    shares: &[Vec<usize>],
    workers: Vec<WorkerReport>,
    control: &Control,
) -> ReplayReport {
    let plan = &experiment.plan;
    let mut all = Snapshot::default();
    let mut lag = ResponseTimes::default();
    let mut positions: BTreeMap<u32, u64> = plan.fragments.iter().map(|f| (f.fragment, f.first_session)).collect();
    for (share, worker) in shares.iter().zip(&workers) {
        all.merge(&worker.snapshot);
        lag.merge(&worker.lag);
        for (index, position) in share.iter().zip(&worker.positions) {
            positions.insert(plan.fragments[*index].fragment, *position);
        }
    }
    let end = if workers.iter().any(|w| w.ran_out) {
        EndReason::TraceExhausted { sessions_needed: sessions_needed(experiment, shares, &workers) }
    } else if control.stop.load(Ordering::Relaxed) {
        EndReason::Interrupted
    } else {
        EndReason::Limit
    };
    let [ok, failed, unknown, skipped] = all.outcomes;
    ReplayReport {
        format_version: schemas::RUN_FORMAT_VERSION,
        end,
        warmup_ns: workers.iter().map(|w| w.warmup.ended_ns).max().unwrap_or(0).max(0) as u64,
        warmup_operations: workers.iter().map(|w| w.warmup.operations).sum(),
        elapsed_ns: all.elapsed_ns.max(0) as u64,
        sessions: workers.iter().map(|w| w.sessions).sum(),
        positions: positions
            .into_iter()
            .map(|(fragment, next_session)| FragmentPosition { fragment, next_session })
            .collect(),
        ok,
        failed,
        unknown,
        skipped,
        worker_cpu_share: workers.iter().map(|w| w.cpu_share).fold(0.0, f64::max),
        dispatch_lag_ns_p99: lag.percentile_ns(99.0),
        log_stall_ns: workers.iter().map(|w| w.log_stall_ns).max().unwrap_or(0),
        trace_stall_ns: workers.iter().map(|w| w.trace_stall_ns).max().unwrap_or(0),
        store_settings: BTreeMap::new(),
        store_counters: BTreeMap::new(),
        writes_not_ok: workers.iter().map(|w| w.writes_not_ok).sum(),
        replayers: Vec::new(),
        faults: Vec::new(),
    }
}

/// How many sessions the trace should have had: where the time decides, as many
/// as each worker would have run at its pace, with a fifth to spare.
fn sessions_needed(experiment: &Experiment, shares: &[Vec<usize>], workers: &[WorkerReport]) -> u64 {
    let stretches = &experiment.stretches;
    let weights: Vec<f64> = stretches.iter().map(|s| s.weight).collect();
    let mut wanted: Vec<u64> = stretches.iter().map(|s| s.end_session).collect();
    if let Limit::DurationS(duration_s) = experiment.plan.limit {
        for (share, worker) in shares.iter().zip(workers) {
            let weight: f64 = share.iter().map(|index| weights[*index]).sum();
            // A worker that has measured nothing has the pace of its warm-up.
            let (sessions, elapsed_ns) = match worker.sessions {
                0 => {
                    let firsts: u64 = share.iter().map(|index| stretches[*index].first_session).sum();
                    (worker.positions.iter().sum::<u64>() - firsts, worker.warmup.ended_ns)
                }
                measured => (measured, worker.snapshot.elapsed_ns),
            };
            let in_time = sessions as f64 / (elapsed_ns.max(1) as f64 / 1e9) * duration_s * 1.2;
            for (index, position) in share.iter().zip(&worker.positions) {
                let further = match sessions {
                    // Nothing is known of its pace: as much again as has been run so far.
                    0 => *position,
                    _ => (in_time * weights[*index] / weight).ceil() as u64,
                };
                wanted[*index] = stretches[*index].measured_from + further;
            }
        }
    }
    sessions_enough(&weights, &wanted)
}
