//! How one plan is shared among replayers, and how their answers become one.

use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::{EndReason, ReplayReport};

use super::Progress;

/// The plan of each replayer that takes part: fragments are dealt by turns, and
/// with them threads and sessions. No more replayers take part than there are
/// fragments or threads.
pub fn plans(plan: &Plan, replayers: usize) -> Vec<Plan> {
    let parts = replayers.min(plan.fragments.len()).min(plan.threads as usize).max(1);
    (0..parts)
        .map(|part| {
            let fragments: Vec<FragmentPlan> = plan.fragments.iter().copied().skip(part).step_by(parts).collect();
            let limit = match plan.limit {
                Limit::Sessions(sessions) => Limit::Sessions(share(sessions, part, parts)),
                other => other,
            };
            let threads = share(plan.threads as u64, part, parts) as u32;
            Plan { fragments, limit, threads, ..plan.clone() }
        })
        .collect()
}

/// A part's share of a whole; the first ones get what is left over.
fn share(whole: u64, part: usize, parts: usize) -> u64 {
    let (part, parts) = (part as u64, parts as u64);
    whole / parts + u64::from(part < whole % parts)
}

/// The progress of all replayers together.
pub fn progress(latest: &[Progress]) -> Progress {
    // As long as one of them is warming up, the whole is.
    let is_warmup = latest.iter().any(|progress| progress.is_warmup);
    let mut sum = Progress { is_warmup, ..Progress::default() };
    for progress in latest {
        sum.elapsed_ns = sum.elapsed_ns.max(progress.elapsed_ns);
        sum.ok += progress.ok;
        sum.errors += progress.errors;
        sum.response_times.merge(&progress.response_times);
    }
    sum
}

/// The reports of all replayers as one: counts add up, and whatever limits a
/// replayer is taken from the one that it limits most. None without reports.
pub fn merged(reports: Vec<ReplayReport>) -> Option<ReplayReport> {
    reports.into_iter().reduce(|mut sum, report| {
        sum.end = match (sum.end, report.end) {
            (EndReason::Interrupted, _) | (_, EndReason::Interrupted) => EndReason::Interrupted,
            (EndReason::TraceExhausted { sessions_needed: a }, EndReason::TraceExhausted { sessions_needed: b }) => {
                EndReason::TraceExhausted { sessions_needed: a + b }
            }
            // The other one's sessions are part of what would have been enough.
            (EndReason::TraceExhausted { sessions_needed }, EndReason::Limit) => {
                EndReason::TraceExhausted { sessions_needed: sessions_needed + report.sessions }
            }
            (EndReason::Limit, EndReason::TraceExhausted { sessions_needed }) => {
                EndReason::TraceExhausted { sessions_needed: sessions_needed + sum.sessions }
            }
            (EndReason::Limit, EndReason::Limit) => EndReason::Limit,
        };
        sum.warmup_ns = sum.warmup_ns.max(report.warmup_ns);
        sum.warmup_operations += report.warmup_operations;
        sum.elapsed_ns = sum.elapsed_ns.max(report.elapsed_ns);
        sum.sessions += report.sessions;
        sum.positions.extend(report.positions);
        sum.positions.sort_by_key(|p| p.fragment);
        sum.ok += report.ok;
        sum.failed += report.failed;
        sum.unknown += report.unknown;
        sum.skipped += report.skipped;
        sum.worker_cpu_share = sum.worker_cpu_share.max(report.worker_cpu_share);
        sum.dispatch_lag_ns_p99 = sum.dispatch_lag_ns_p99.max(report.dispatch_lag_ns_p99);
        sum.log_stall_ns = sum.log_stall_ns.max(report.log_stall_ns);
        sum.trace_stall_ns = sum.trace_stall_ns.max(report.trace_stall_ns);
        sum.store_settings.extend(report.store_settings);
        for (name, count) in report.store_counters {
            *sum.store_counters.entry(name).or_default() += count;
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(threads: u32, fragments: u32) -> Plan {
        Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            trace: "a.trace".into(),
            trace_id: "id".into(),
            store: "memory:".into(),
            threads,
            workers: 1,
            limit: Limit::Sessions(11),
            fragments: (0..fragments)
                .map(|fragment| FragmentPlan { fragment, first_session: 0, warmup_sessions: 0 })
                .collect(),
            unique_socialites: true,
        }
    }

    #[test]
    fn nothing_is_lost_in_dealing() {
        for (threads, fragments, replayers, expect) in [(7, 5, 2, 2), (1, 5, 3, 1), (9, 1, 3, 1), (4, 4, 4, 4)] {
            let whole = plan(threads, fragments);
            let plans = plans(&whole, replayers);
            assert_eq!(plans.len(), expect);
            assert!(plans.iter().all(|p| p.threads > 0 && !p.fragments.is_empty()));
            assert_eq!(plans.iter().map(|p| p.threads).sum::<u32>(), threads);
            let mut dealt: Vec<u32> = plans.iter().flat_map(|p| p.fragments.iter().map(|f| f.fragment)).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, (0..fragments).collect::<Vec<_>>());
            let sessions: u64 = plans.iter().map(|p| if let Limit::Sessions(n) = p.limit { n } else { 0 }).sum();
            assert_eq!(sessions, 11);
        }
        assert_eq!(plans(&plan(3, 2), 1), vec![plan(3, 2)]);
    }

    #[test]
    fn a_trace_that_ran_out_anywhere_ran_out() {
        let report = |end, sessions| ReplayReport {
            format_version: schemas::RUN_FORMAT_VERSION,
            end,
            warmup_ns: 0,
            warmup_operations: 0,
            elapsed_ns: 5,
            sessions,
            positions: Vec::new(),
            ok: sessions,
            failed: 0,
            unknown: 0,
            skipped: 0,
            worker_cpu_share: 0.5,
            dispatch_lag_ns_p99: 1,
            log_stall_ns: 0,
            trace_stall_ns: 0,
            store_settings: Default::default(),
            store_counters: [("misses".to_string(), sessions)].into(),
        };
        let exhausted = EndReason::TraceExhausted { sessions_needed: 30 };
        let sum = merged(vec![report(EndReason::Limit, 10), report(exhausted, 20)]).unwrap();
        assert_eq!((sum.end, sum.ok), (EndReason::TraceExhausted { sessions_needed: 40 }, 30));
        assert_eq!(sum.store_counters["misses"], 30);
        assert!(merged(Vec::new()).is_none());
    }
}
