//! Why the figures of an experiment are not the store's: its errors, its load generator, its trace.

use schemas::run::{EndReason, ReplayReport};
use schemas::sla::{Sla, short_time};
use schemas::verdict::Figures;
use schemas::words::{plural, thousands};
use schemas::workload::ActorWords;

use super::open_loop::{late_starts, stalled_starts};

/// Maximum share of operations without success, in percent. With more errors, the figures do not
/// show the store's normal work.
const MOST_ERRORS_PERCENT: f64 = 1.0;
/// Maximum share of the time of all threads, in percent, spent in operations without success. If
/// a store is gone few operations fail, but each lasts until a time limit.
const MOST_ERROR_TIME_PERCENT: f64 = 5.0;
/// A worker thread that uses this share of a core is at its limit.
const FULL_CPU_SHARE: f64 = 0.95;
/// Maximum share of the time of all threads, in percent, without a session to run.
const MOST_IDLE_PERCENT: f64 = 5.0;
/// Maximum mean lateness of answers, in percent of the mean response time. In a closed loop
/// throughput is too low by the same share. Against stores of known throughput
/// (benches/truth.md), results above this limit were off by up to 45%, results below it by at
/// most 3.6%.
const MOST_LAG_PERCENT: f64 = 2.5;
/// The time that waking up a sleeping processor may take. Every client pays it for each answer
/// that it waits for.
const WAKE_UP_NS: f64 = 200_000.0;
/// Maximum share of the experiment, in percent, that workers may be blocked by the replayer's own
/// files.
const MOST_STALL_PERCENT: f64 = 1.0;

/// The reason for an experiment without a report.
pub(super) const NO_REPORT: &str =
    "no replay.json: the experiment is still running, never started, or its replayer was killed";

/// The limits that the trace of an experiment sets, whatever the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimits {
    /// T.
    pub threads: u32,
    /// How many threads the trace keeps busy for long, since an actor acts in one session at a
    /// time. None if one may act in several.
    pub active_threads_max: Option<u64>,
    /// What the family calls its actors.
    pub actors: ActorWords,
}

/// Why the experiment is void; empty if it is not.
pub(super) fn void_reasons(
    figures: &Figures,
    report: Option<&ReplayReport>,
    sla: &Sla,
    trace: TraceLimits,
) -> Vec<String> {
    let mut reasons = Vec::new();
    match report {
        None => reasons.push(NO_REPORT.to_string()),
        Some(report) => reasons.extend(replayer_reasons(figures, report, sla, trace)),
    }
    reasons.extend(figures.missing.iter().cloned());
    let overall = &figures.overall;
    let operations = overall.operations();
    // The counts of a lost replayer are lost with it.
    if let Some(report) = report.filter(|report| report.faults.is_empty()) {
        let reported =
            report.ok + report.failed + report.unknown + report.skipped + report.aborted + report.of_transactions;
        let (drained, reported_drained) = (figures.drained_operations, report.drained_operations);
        if reported_drained != drained {
            let rows = plural(drained, "row");
            let counted = thousands(reported_drained);
            reasons.push(format!("the log has {rows} after the planned time, the replayer counted {counted}"));
        }
        let (warmup, reported_warmup) = (figures.warmup_operations, report.warmup_operations);
        let of_transactions = figures.transactions.map_or(0, |transactions| transactions.rows);
        let logged = operations + overall.aborted + of_transactions;
        if reported != logged {
            let rows = plural(logged, "row");
            let counted = thousands(reported);
            reasons.push(format!("the log has {rows}, the replayer counted {counted}"));
        }
        if reported_warmup != warmup {
            let rows = plural(warmup, "warm-up row");
            let counted = thousands(reported_warmup);
            reasons.push(format!("the log has {rows}, the replayer counted {counted}"));
        }
    }
    // A session that the plan skips because all threads are busy is no error: it misses the SLA.
    let has_skipped = report.and_then(|report| report.pacing.as_ref()).is_some_and(|own| own.sessions_skipped > 0);
    let errors = operations - overall.ok - if has_skipped { overall.skipped } else { 0 };
    if operations == 0 && figures.warmup_operations > 0 {
        let warmup = thousands(figures.warmup_operations);
        reasons.push(format!(
            "nothing measured: all operations ({warmup}) were warm-up; use a shorter warm-up or a longer trace"
        ));
    } else if operations == 0 {
        reasons.push("no operation was logged".to_string());
    } else if errors as f64 * 100.0 > operations as f64 * MOST_ERRORS_PERCENT {
        let share = number(errors as f64 * 100.0 / operations as f64);
        let [failed, unknown, skipped] = [overall.failed, overall.unknown, overall.skipped].map(thousands);
        reasons.push(format!(
            "{share}% of operations did not succeed ({failed} failed, {unknown} unknown, {skipped} skipped), \
             limit {MOST_ERRORS_PERCENT}%"
        ));
    }
    let thread_ns = figures.counted_ns as f64 * trace.threads as f64;
    if figures.error_ns as f64 * 100.0 > thread_ns * MOST_ERROR_TIME_PERCENT {
        let share = number(figures.error_ns as f64 * 100.0 / thread_ns);
        let [failed, unknown] = [overall.failed, overall.unknown].map(thousands);
        reasons.push(format!(
            "threads spent {share}% of the time in operations without success ({failed} failed, {unknown} unknown), \
             limit {MOST_ERROR_TIME_PERCENT}%; the store may have been unreachable"
        ));
    }
    reasons
}

fn replayer_reasons(figures: &Figures, report: &ReplayReport, sla: &Sla, trace: TraceLimits) -> Vec<String> {
    let mut reasons = report.faults.clone();
    match report.end {
        // A stop because of overload is the store's fault, so it is no reason for a void experiment.
        EndReason::Limit | EndReason::Overloaded => {}
        // If one replayer is lost, the others are stopped.
        EndReason::Interrupted if !reasons.is_empty() => {}
        EndReason::TraceExhausted { sessions_needed } => {
            let sessions = plural(report.sessions, "measured session");
            let needed = thousands(sessions_needed);
            reasons.push(format!("trace too short: it ended after {sessions}, and {needed} in total would be enough"));
        }
        EndReason::Interrupted => reasons.push("interrupted".to_string()),
    }
    reasons.extend(throttle(report, trace));
    if report.worker_cpu_share >= FULL_CPU_SHARE {
        let share = number(report.worker_cpu_share * 100.0);
        reasons.push(format!("load generator saturated: its busiest worker used {share}% of a core"));
    }
    let stalls =
        [(report.log_stall_ns, "its log could not be written"), (report.trace_stall_ns, "its trace could not be read")];
    for (stall_ns, what) in stalls {
        if stall_ns as f64 * 100.0 > report.elapsed_ns as f64 * MOST_STALL_PERCENT {
            let time = short_time(stall_ns);
            reasons.push(format!("the replayer was blocked for {time}: {what} fast enough"));
        }
    }
    reasons.extend(lateness(figures, report, sla));
    reasons.extend(late_starts(report, sla));
    reasons.extend(stalled_starts(figures, report, sla));
    reasons
}

/// Whether the workload kept fewer threads busy than there were.
fn throttle(report: &ReplayReport, trace: TraceLimits) -> Option<String> {
    let thread_ns = report.counted_ns as f64 * trace.threads as f64;
    let idle_percent = if thread_ns > 0.0 { report.idle_ns as f64 * 100.0 / thread_ns } else { 0.0 };
    let most = trace.active_threads_max?;
    let (actors, remedy) = (trace.actors.plural, trace.actors.remedy());
    let at_most = format!("the trace keeps at most {most} threads busy; {remedy}");
    if idle_percent > MOST_IDLE_PERCENT {
        let share = number(idle_percent);
        return Some(format!(
            "the workload, not the store, limits T: threads were idle {share}% of the time, because the {actors} of \
             the next sessions were busy; {at_most}"
        ));
    }
    // A short experiment may end before the buffer of sessions that wait aside is full.
    let in_flight = report.sessions_in_flight;
    let lasting = most as f64 * (1.0 + MOST_IDLE_PERCENT / 100.0);
    (in_flight > lasting).then(|| {
        let in_flight = number(in_flight);
        format!("the workload, not the store, limits T: {in_flight} sessions were under way on average; {at_most}")
    })
}

/// Whether the replayer took up answers so late that its figures are not the store's.
fn lateness(figures: &Figures, report: &ReplayReport, sla: &Sla) -> Option<String> {
    let waited = report.run_delay_share.map_or(String::new(), |share| {
        format!("; a worker waited for a processor {}% of the time", number(share * 100.0))
    });
    let (mean_ns, response_ns) = (report.dispatch_lag_ns_mean, figures.overall.mean_ns);
    let percent = if response_ns > 0.0 { mean_ns * 100.0 / response_ns } else { 0.0 };
    if mean_ns > WAKE_UP_NS && percent > MOST_LAG_PERCENT {
        let (lag, limit) = (short_time(mean_ns as u64), most_lag(response_ns));
        return Some(format!("load generator too slow: mean scheduling delay {lag}, limit {limit}{waited}"));
    }
    let late = report.dispatch_lag_ns_p99 > sla.beta_ns / 4;
    (late && figures.within_beta_percent < sla.alpha_percent).then(|| {
        let (lag, limit) = (short_time(report.dispatch_lag_ns_p99), short_time(sla.beta_ns / 4));
        format!("load generator too slow: scheduling delay p99 {lag}, limit {limit}{waited}")
    })
}

/// The longest mean scheduling delay for this mean response time. Both limits of [`lateness`] must
/// be exceeded, so the larger one counts.
fn most_lag(response_ns: f64) -> String {
    let share_ns = response_ns * MOST_LAG_PERCENT / 100.0;
    if share_ns < WAKE_UP_NS {
        return short_time(WAKE_UP_NS as u64);
    }
    format!("{} ({MOST_LAG_PERCENT}% of the mean response time)", short_time(share_ns as u64))
}

fn number(value: f64) -> String {
    ((value * 10.0).round() / 10.0).to_string()
}
