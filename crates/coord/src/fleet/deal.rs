//! Splits a plan among replayers, and merges their answers.

use std::sync::Arc;

use schemas::manifest::Manifest;
use schemas::pace::ThreadsFrom;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::{EndReason, ReplayReport};
use schemas::share::{ends_after, sessions_by_fragment};

use crate::terminal::Progress;

/// What one replayer does in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Its index in the fleet.
    pub replayer: usize,
    /// Its part of the plan.
    pub plan: Plan,
}

/// Splits a plan among replayers of these weights, in their order. Each fragment goes to the
/// replayer that has the least of its due share; threads and sessions follow the fragments. No
/// more replayers take part than there are fragments or threads (at any time): the heaviest ones do.
pub fn shares(plan: &Plan, manifest: &Manifest, weights: &[f64]) -> Vec<Share> {
    let least = plan.threads_over_time.iter().map(|step| step.threads).fold(plan.threads, u32::min);
    let participants = weights.len().min(plan.fragments.len()).min(least as usize).max(1);
    let mut taking_part: Vec<usize> = (0..weights.len()).collect();
    taking_part.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    taking_part.truncate(participants);
    taking_part.sort_unstable();

    let weight_of = |fragment: &FragmentPlan| {
        manifest.fragments.iter().find(|f| f.fragment == fragment.fragment).map_or(0.0, |f| f.weight)
    };
    let mut dealt: Vec<Vec<FragmentPlan>> = vec![Vec::new(); participants];
    let mut has = vec![0.0; participants];
    for fragment in &plan.fragments {
        // Every replayer gets a fragment: those without one come first.
        let least = (0..participants).min_by(|a, b| {
            let filled = |participant: usize| has[participant] / weights[taking_part[participant]];
            (!dealt[*a].is_empty(), filled(*a))
                .partial_cmp(&(!dealt[*b].is_empty(), filled(*b)))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(participant) = least {
            has[participant] += weight_of(fragment);
            dealt[participant].push(fragment.clone());
        }
    }
    // Each replayer gets one thread, and the rest in proportion to its work.
    let threads = sessions_by_fragment(&has, u64::from(plan.threads) - participants as u64);
    let limits = limits(plan, &plan.fragments.iter().map(weight_of).collect::<Vec<_>>(), &dealt);
    let over_time = threads_over_time(&plan.threads_over_time, &has);
    let parts = taking_part.into_iter().zip(dealt).zip(threads).zip(limits).zip(over_time);
    parts
        .map(|((((replayer, fragments), threads), limit), threads_over_time)| {
            let threads = threads as u32 + 1;
            // Each thread keeps its own pace, wherever it runs.
            let target_per_s = plan.target_per_s.map(|all| all * f64::from(threads) / f64::from(plan.threads));
            let plan = Plan { fragments, limit, threads, target_per_s, threads_over_time, ..plan.clone() };
            Share { replayer, plan }
        })
        .collect()
}

/// The threads of each share over time: at least one each, and the rest in proportion to its work, as
/// with all threads.
fn threads_over_time(steps: &[ThreadsFrom], work: &[f64]) -> Vec<Vec<ThreadsFrom>> {
    let mut dealt = vec![Vec::with_capacity(steps.len()); work.len()];
    for step in steps {
        let spare = u64::from(step.threads).saturating_sub(work.len() as u64);
        for (share, threads) in dealt.iter_mut().zip(sessions_by_fragment(work, spare)) {
            share.push(ThreadsFrom { threads: threads as u32 + 1, ..*step });
        }
    }
    dealt
}

/// When each share ends. Together the shares run the sessions that a single replayer would run.
fn limits(plan: &Plan, weights: &[f64], dealt: &[Vec<FragmentPlan>]) -> Vec<Limit> {
    let Limit::Sessions(sessions) = plan.limit else { return vec![plan.limit; dealt.len()] };
    let from: Vec<u64> = plan.fragments.iter().map(|f| f.first_session + f.warmup_sessions).collect();
    let ends = ends_after(weights, &from, sessions);
    let of = |fragment: &FragmentPlan| {
        let index = plan.fragments.iter().position(|f| f.fragment == fragment.fragment);
        index.map_or(0, |index| ends[index] - from[index])
    };
    dealt.iter().map(|fragments| Limit::Sessions(fragments.iter().map(of).sum())).collect()
}

/// The progress of all replayers together.
pub fn progress(latest: &[Arc<Progress>]) -> Progress {
    // As long as one replayer is warming up, the whole is.
    let is_warmup = latest.iter().any(|progress| progress.is_warmup);
    let mut sum = Progress { is_warmup, ..Progress::default() };
    for progress in latest {
        sum.elapsed_ns = sum.elapsed_ns.max(progress.elapsed_ns);
        sum.ok += progress.ok;
        sum.errors += progress.errors;
        sum.aborted += progress.aborted;
        sum.response_times.merge(&progress.response_times);
        if let Some(times) = &progress.service_times {
            sum.service_times.get_or_insert_default().merge(times);
        }
        sum.cpus_used += progress.cpus_used;
        sum.dispatch_lag_ns_max = sum.dispatch_lag_ns_max.max(progress.dispatch_lag_ns_max);
        for (name, count) in &progress.store_counters {
            let sum = sum.store_counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    sum
}

/// Merges the reports of all replayers: counts add up, and what may limit a replayer is taken
/// from the one that it limits most. None without reports.
pub fn merged(reports: Vec<ReplayReport>, manifest: &Manifest) -> Option<ReplayReport> {
    let ends = reports.iter().map(|report| match report.end {
        // Sessions are split among fragments by weight. This is how many the trace needs so that
        // the replayer's own fragments have enough.
        EndReason::TraceExhausted { sessions_needed } => {
            let sessions_needed = (sessions_needed as f64 / share_of(report, manifest)).ceil() as u64;
            EndReason::TraceExhausted { sessions_needed }
        }
        ref other => other.clone(),
    });
    let end = ends.reduce(|a, b| match (a, b) {
        (EndReason::Interrupted, _) | (_, EndReason::Interrupted) => EndReason::Interrupted,
        (EndReason::Overloaded, _) | (_, EndReason::Overloaded) => EndReason::Overloaded,
        (EndReason::TraceExhausted { sessions_needed: a }, EndReason::TraceExhausted { sessions_needed: b }) => {
            EndReason::TraceExhausted { sessions_needed: a.max(b) }
        }
        (EndReason::Limit, other) | (other, EndReason::Limit) => other,
    })?;
    let sum = reports.into_iter().reduce(|mut sum, report| {
        sum.warmup_ns = sum.warmup_ns.max(report.warmup_ns);
        sum.warmup_operations += report.warmup_operations;
        sum.elapsed_ns = sum.elapsed_ns.max(report.elapsed_ns);
        sum.counted_ns = sum.counted_ns.max(report.counted_ns);
        sum.ok_counted += report.ok_counted;
        sum.drained_operations += report.drained_operations;
        sum.sessions += report.sessions;
        sum.positions.extend(report.positions);
        sum.positions.sort_by_key(|p| p.fragment);
        sum.ok += report.ok;
        sum.failed += report.failed;
        sum.unknown += report.unknown;
        sum.skipped += report.skipped;
        sum.aborted += report.aborted;
        sum.of_transactions += report.of_transactions;
        sum.worker_cpu_share = sum.worker_cpu_share.max(report.worker_cpu_share);
        sum.dispatch_lag_ns_mean = sum.dispatch_lag_ns_mean.max(report.dispatch_lag_ns_mean);
        sum.dispatch_lag_ns_p99 = sum.dispatch_lag_ns_p99.max(report.dispatch_lag_ns_p99);
        sum.dispatch_lag_ns_max = sum.dispatch_lag_ns_max.max(report.dispatch_lag_ns_max);
        sum.run_delay_share = [sum.run_delay_share, report.run_delay_share].into_iter().flatten().reduce(f64::max);
        sum.idle_ns += report.idle_ns;
        sum.sessions_in_flight += report.sessions_in_flight;
        sum.log_stall_ns = sum.log_stall_ns.max(report.log_stall_ns);
        sum.trace_stall_ns = sum.trace_stall_ns.max(report.trace_stall_ns);
        sum.store_settings.extend(report.store_settings);
        for (name, count) in report.store_counters {
            *sum.store_counters.entry(name).or_default() += count;
        }
        sum.writes_not_ok += report.writes_not_ok;
        // Only replayers that check the store's state know it.
        sum.began_with = sum.began_with.or(report.began_with);
        sum.pacing = match (sum.pacing.take(), report.pacing) {
            (Some(sum), Some(one)) => Some(sum.merged(one)),
            (sum, one) => sum.or(one),
        };
        sum
    });
    sum.map(|sum| ReplayReport { end, ..sum })
}

/// The share of a trace set's sessions that belongs to the fragments of a report.
fn share_of(report: &ReplayReport, manifest: &Manifest) -> f64 {
    let is_own = |fragment: u32| report.positions.iter().any(|position| position.fragment == fragment);
    let whole: f64 = manifest.fragments.iter().map(|f| f.weight).sum();
    let own: f64 = manifest.fragments.iter().filter(|f| is_own(f.fragment)).map(|f| f.weight).sum();
    if own > 0.0 { own / whole } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use schemas::latency::ResponseTimes;
    use schemas::manifest::FragmentCounts;
    use schemas::run::{FragmentPosition, Pacing, PacingCounts};
    use schemas::spec::Spec;

    use super::*;

    /// A plan for the first 11 sessions of a trace set whose fragments have these weights.
    fn plan(threads: u32, weights: &[f64]) -> (Plan, Manifest) {
        let counts = weights.iter().enumerate().map(|(fragment, weight)| FragmentCounts {
            fragment: fragment as u32,
            weight: *weight,
            actors: 10,
            sessions: 100,
            operations: 100,
        });
        let spec = Spec::parse("name = \"w\"\nsessions = 1\n[data]\nmembers = 10\n[mix]\nlist_friends = 1", "spec");
        let manifest = Manifest {
            format_version: schemas::TRACE_FORMAT_VERSION,
            generator_version: String::new(),
            workload_id: String::new(),
            trace_id: "id".into(),
            spec: spec.unwrap(),
            fragments: counts.collect(),
            requested_mix: Default::default(),
            achieved_mix: Default::default(),
            operations_by_name: Default::default(),
            noops: Default::default(),
            ended_early: Default::default(),
            active_threads_max: 1,
            statistics: schemas::manifest::plain(&schemas::workload::social::SocialStatistics::default()),
            files: Vec::new(),
        };
        let plan = Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            trace: "a.trace".into(),
            trace_id: "id".into(),
            store: "memory:".into(),
            threads,
            workers: 1,
            limit: Limit::Sessions(11),
            fragments: schemas::plan::fragments(&manifest, &[], 0),
            unique_actors: true,
            closing_read: None,
            open_loop: None,
            target_per_s: None,
            threads_over_time: Vec::new(),
            transactions: Default::default(),
        };
        (plan, manifest)
    }

    #[test]
    fn nothing_is_lost_in_dealing() {
        for (threads, fragments, replayers, expect) in
            [(7, 5, 2, 2), (1, 5, 3, 1), (9, 1, 3, 1), (4, 4, 4, 4), (100, 16, 3, 3)]
        {
            let (whole, manifest) = plan(threads, &vec![1.0 / fragments as f64; fragments]);
            let shares = shares(&whole, &manifest, &vec![1.0; replayers]);
            assert_eq!(shares.len(), expect);
            assert!(shares.iter().all(|s| s.plan.threads > 0 && !s.plan.fragments.is_empty()));
            assert_eq!(shares.iter().map(|s| s.plan.threads).sum::<u32>(), threads);
            let mut dealt: Vec<u32> = shares.iter().flat_map(|s| s.plan.fragments.iter().map(|f| f.fragment)).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, (0..fragments as u32).collect::<Vec<_>>());
            let sessions = |share: &Share| if let Limit::Sessions(n) = share.plan.limit { n } else { 0 };
            assert_eq!(shares.iter().map(sessions).sum::<u64>(), 11);
        }
        let (whole, manifest) = plan(3, &[0.5, 0.5]);
        assert_eq!(shares(&whole, &manifest, &[1.0]), [Share { replayer: 0, plan: whole }]);
    }

    /// Sessions a second and threads over time add up to those of the whole plan.
    #[test]
    fn the_pace_of_a_closed_loop_is_dealt() {
        let (whole, manifest) = plan(40, &[0.125; 8]);
        let steps = [(0.0, 8), (30.0, 40), (60.0, 2)].map(|(from_s, threads)| ThreadsFrom { from_s, threads });
        let whole = Plan { target_per_s: Some(100.0), threads_over_time: steps.to_vec(), ..whole };
        let shares = shares(&whole, &manifest, &[1.0, 3.0]);
        let targets: Vec<f64> = shares.iter().filter_map(|share| share.plan.target_per_s).collect();
        assert_eq!(targets, [25.0, 75.0]);
        let threads_at =
            |share: &Share| share.plan.threads_over_time.iter().map(|step| step.threads).collect::<Vec<_>>();
        let threads: Vec<Vec<u32>> = shares.iter().map(threads_at).collect();
        assert_eq!(threads, [[2, 10, 1], [6, 30, 1]]);
    }

    /// Of an open loop the progress has service times beside response times, whichever replayer has any.
    #[test]
    fn the_progress_of_a_fleet_has_the_times_of_all() {
        let times = |ns: i64| {
            let mut times = ResponseTimes::default();
            times.record(ns);
            times
        };
        let of = |response_ns, service_ns: Option<i64>, is_warmup| {
            Arc::new(Progress {
                is_warmup,
                elapsed_ns: response_ns,
                ok: 1,
                response_times: times(response_ns),
                service_times: service_ns.map(times),
                ..Progress::default()
            })
        };
        let sum = progress(&[of(9_000_000, Some(1_000), false), of(5_000, None, false), of(7_000, Some(3_000), false)]);
        let service = sum.service_times.unwrap();
        assert_eq!((sum.ok, sum.response_times.count(), service.count()), (3, 3, 2));
        assert!(service.max_ns() < 3_100 && sum.response_times.max_ns() > 8_900_000 && !sum.is_warmup);
        let closed = progress(&[of(1, None, false), of(2, None, true)]);
        assert!(closed.service_times.is_none() && closed.is_warmup);
    }

    /// A fleet's percentiles come from the distributions of its replayers, and nothing is dropped.
    #[test]
    fn how_due_times_were_kept_is_merged() {
        let (_, manifest) = plan(2, &[0.5, 0.5]);
        let report = |due, late_ns: i64| {
            let mut late = ResponseTimes::default();
            late.record_n(late_ns, due);
            let counts = PacingCounts { due, ..PacingCounts::default() };
            let pacing = Some(Pacing::new(counts, late, ResponseTimes::default()));
            ReplayReport { pacing, ..ReplayReport::default() }
        };
        let stopped = ReplayReport { end: EndReason::Overloaded, ..report(1, 9_000_000) };
        let both = merged(vec![report(99, 1_000), stopped], &manifest).unwrap();
        let pacing = both.pacing.unwrap();
        assert_eq!((both.end, pacing.sessions_due, pacing.late_ns_p99), (EndReason::Overloaded, 100, 1_000));
        assert!(pacing.late_ns_max > 8_000_000);
    }

    #[test]
    fn the_heavier_replayer_gets_more() {
        let (whole, manifest) = plan(40, &[0.125; 8]);
        let dealt: Vec<(usize, u32)> = shares(&whole, &manifest, &[1.0, 2.0, 1.0])
            .iter()
            .map(|share| (share.plan.fragments.len(), share.plan.threads))
            .collect();
        assert_eq!(dealt.iter().map(|(fragments, _)| fragments).sum::<usize>(), 8);
        assert_eq!((dealt[1].0, dealt[1].1), (4, 20), "{dealt:?}");
        // With too few threads for all, the heaviest take part.
        let (whole, manifest) = plan(2, &[0.125; 8]);
        let taking_part: Vec<usize> =
            shares(&whole, &manifest, &[1.0, 3.0, 2.0]).iter().map(|share| share.replayer).collect();
        assert_eq!(taking_part, [1, 2]);
    }

    /// Unequal fragments end where one replayer would have ended them.
    #[test]
    fn together_they_run_the_sessions_of_one() {
        let (whole, manifest) = plan(4, &[0.7, 0.1, 0.2]);
        let weights = [0.7, 0.1, 0.2];
        let expect = ends_after(&weights, &[0, 0, 0], 11);
        for share in shares(&whole, &manifest, &[1.0, 1.0]) {
            let own: u64 = share.plan.fragments.iter().map(|f| expect[f.fragment as usize]).sum();
            assert_eq!(share.plan.limit, Limit::Sessions(own));
        }
    }

    #[test]
    fn a_trace_that_runs_out_on_one_replayer_has_run_out() {
        // Three sessions of four belong to the second fragment.
        let (_, manifest) = plan(2, &[1.0, 3.0]);
        let report = |end, fragment, sessions| ReplayReport {
            positions: vec![FragmentPosition::at(fragment, sessions)],
            end,
            elapsed_ns: 5,
            sessions,
            ok: sessions,
            store_counters: [("misses".to_string(), sessions)].into(),
            ..ReplayReport::default()
        };
        let exhausted = |sessions_needed| EndReason::TraceExhausted { sessions_needed };
        let end = |ends: [EndReason; 2]| {
            let [first, second] = ends;
            merged(vec![report(first, 0, 10), report(second, 1, 20)], &manifest).unwrap().end
        };
        assert_eq!(end([EndReason::Limit, exhausted(30)]), exhausted(40));
        // The other replayer may have done little: the longer trace is split between both.
        assert_eq!(end([exhausted(30), EndReason::Limit]), exhausted(120));
        assert_eq!(end([exhausted(12), exhausted(30)]), exhausted(48));
        assert_eq!(end([EndReason::Interrupted, exhausted(30)]), EndReason::Interrupted);
        assert_eq!(end([EndReason::Limit, EndReason::Limit]), EndReason::Limit);
        let sum = merged(vec![report(EndReason::Limit, 0, 10), report(EndReason::Limit, 1, 20)], &manifest).unwrap();
        assert_eq!((sum.ok, sum.store_counters["misses"]), (30, 30));
        assert!(merged(Vec::new(), &manifest).is_none());
    }
}
