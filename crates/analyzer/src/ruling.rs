//! The verdict on an experiment (pass, fail or void) and its reasons, from figures and reports
//! alone.

mod open_loop;

use schemas::RUN_FORMAT_VERSION;
use schemas::run::{EndReason, ReplayReport};
use schemas::sla::{Sla, short_time};
use schemas::verdict::{Figures, ReplayerFigures, Ruling, Verdict};
use schemas::workload::ActorWords;

use schemas::words::{plural, short_percent, thousands};

use self::open_loop::{late_starts, never_started, stopped_early};

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
const NO_REPORT: &str = "no replay.json: the experiment is still running, never started, or its replayer was killed";

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

/// The figures of a replayer, from those of its fragments.
pub fn of_replayer(name: String, threads: u32, figures: &Figures, sla: &Sla) -> ReplayerFigures {
    ReplayerFigures {
        name,
        threads,
        throughput_per_s: figures.throughput_per_s,
        within_beta_percent: figures.within_beta_percent,
        unpredictable_percent: figures.unpredictable_percent,
        missed: if issued(figures) == 0 { Vec::new() } else { missed_clauses(figures, sla) },
    }
}

/// Operations that were sent to the store. If there are none, no clause is met or missed: one of
/// many replayers may have had nothing left to do.
fn issued(figures: &Figures) -> u64 {
    let overall = &figures.overall;
    overall.ok + overall.failed + overall.unknown
}

/// Decides the verdict on an experiment. Without a report it is void. If several replayers took
/// part, every one of them has to meet the SLA by itself.
pub fn rule(
    figures: &Figures,
    each: &[ReplayerFigures],
    report: Option<&ReplayReport>,
    sla: &Sla,
    trace: TraceLimits,
) -> (Ruling, Vec<String>) {
    let void = void_reasons(figures, report, sla, trace);
    if !void.is_empty() {
        return (Ruling::Void, void);
    }
    let mut missed = missed_clauses(figures, sla);
    for replayer in each {
        missed.extend(replayer.missed.iter().map(|clause| format!("replayer {}: {clause}", replayer.name)));
    }
    missed.extend(report.and_then(|report| never_started(figures, report, sla)));
    missed.extend(report.and_then(stopped_early));
    if !missed.is_empty() {
        return (Ruling::Fail, missed);
    }
    if figures.throughput_per_s == 0.0 {
        let counted = short_time(figures.counted_ns);
        let reason = format!(
            "no operation succeeded within the counted time ({counted}); use longer experiments (--search-s, or a \
             longer SLA)"
        );
        return (Ruling::Void, vec![reason]);
    }
    (Ruling::Pass, missed)
}

/// The verdict on an experiment that could not be run, for instance because the
/// store was not in the expected state: void, for these reasons, without figures.
pub fn void_verdict(experiment: u32, threads: u32, sla: Sla, reasons: Vec<String>) -> Verdict {
    let (format_version, ruling, figures) = (RUN_FORMAT_VERSION, Ruling::Void, Figures::default());
    Verdict {
        format_version,
        experiment,
        threads,
        rate_per_s: None,
        sla,
        ruling,
        reasons,
        figures,
        replayers: Vec::new(),
        sealed: Vec::new(),
    }
}

fn void_reasons(figures: &Figures, report: Option<&ReplayReport>, sla: &Sla, trace: TraceLimits) -> Vec<String> {
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
        let reported = report.ok + report.failed + report.unknown + report.skipped;
        let (drained, reported_drained) = (figures.drained_operations, report.drained_operations);
        if reported_drained != drained {
            let rows = plural(drained, "row");
            let counted = thousands(reported_drained);
            reasons.push(format!("the log has {rows} after the planned time, the replayer counted {counted}"));
        }
        let (warmup, reported_warmup) = (figures.warmup_operations, report.warmup_operations);
        if reported != operations {
            let rows = plural(operations, "row");
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

fn missed_clauses(figures: &Figures, sla: &Sla) -> Vec<String> {
    let mut missed = Vec::new();
    if figures.within_beta_percent < sla.alpha_percent {
        let within = apart(figures.within_beta_percent, sla.alpha_percent);
        missed.push(format!("{within}% within {}, needs {}%", short_time(sla.beta_ns), sla.alpha_percent));
    }
    if figures.unpredictable_percent > sla.tau_percent {
        let found = apart(figures.unpredictable_percent, sla.tau_percent);
        missed.push(format!("{found}% of reads unpredictable, at most {}% allowed", sla.tau_percent));
    }
    missed
}

/// A share that misses its bound, with the digits of the tables, or more if it has to differ from
/// the bound.
fn apart(share: f64, bound: f64) -> String {
    let more = (4..15).map(|digits| {
        let scale = 10f64.powi(digits);
        (share * scale).round() / scale
    });
    let mut rounded = std::iter::once(short_percent(share)).chain(more);
    rounded.find(|rounded| *rounded != bound).unwrap_or(share).to_string()
}

fn number(value: f64) -> String {
    ((value * 10.0).round() / 10.0).to_string()
}

#[cfg(test)]
mod tests {
    use schemas::latency::ResponseTimes;
    use schemas::run::{Pacing, PacingCounts};
    use schemas::verdict::OperationFigures;
    use schemas::workload::Workload;
    use schemas::workload::kv::KvWorkload;
    use schemas::workload::social::SocialWorkload;

    use super::*;

    const LIMITS: TraceLimits =
        TraceLimits { threads: 64, active_threads_max: Some(41), actors: SocialWorkload::ACTORS };

    /// 1,000 operations, all ok and in time, no read unpredictable.
    fn good() -> (Figures, ReplayReport) {
        let of_a_second = Figures { elapsed_ns: 1_000_000_000, counted_ns: 1_000_000_000, ..Figures::default() };
        let mut figures = Figures { throughput_per_s: 1000.0, ..of_a_second };
        figures.overall = OperationFigures { ok: 1000, within_beta: 1000, ..OperationFigures::default() };
        figures.within_beta_percent = 100.0;
        (figures, crate::fixtures::report(1_000_000_000))
    }

    fn check(change: impl FnOnce(&mut Figures, &mut ReplayReport), ruling: Ruling, expect: &[&str]) {
        let (mut figures, mut report) = good();
        change(&mut figures, &mut report);
        let overall = &figures.overall;
        (report.ok, report.failed) = (overall.ok, overall.failed);
        (report.unknown, report.skipped) = (overall.unknown, overall.skipped);
        let (found, reasons) = rule(&figures, &[], Some(&report), &Sla::default(), LIMITS);
        assert_eq!((found, reasons), (ruling, expect.iter().map(|s| s.to_string()).collect()));
    }

    /// A log that lacks rows must not pass, whatever the cause.
    #[test]
    fn an_incomplete_log_is_void() {
        let (mut figures, mut report) = good();
        report.ok = 1200;
        let (ruling, reasons) = rule(&figures, &[], Some(&report), &Sla::default(), LIMITS);
        assert_eq!(ruling, Ruling::Void);
        assert_eq!(reasons, ["the log has 1,000 rows, the replayer counted 1,200"]);
        report.ok = 1000;
        figures.missing.push("fragment 0: torn".into());
        let (ruling, reasons) = rule(&figures, &[], Some(&report), &Sla::default(), LIMITS);
        assert_eq!((ruling, reasons), (Ruling::Void, vec!["fragment 0: torn".to_string()]));
    }

    #[test]
    fn clauses_pass_at_their_bound_and_fail_beyond() {
        check(|_, _| {}, Ruling::Pass, &[]);
        check(|f, _| f.within_beta_percent = 95.0, Ruling::Pass, &[]);
        check(|f, _| f.within_beta_percent = 93.21, Ruling::Fail, &["93.21% within 100ms, needs 95%"]);
        check(|f, _| f.within_beta_percent = 94.99996, Ruling::Fail, &["94.99996% within 100ms, needs 95%"]);
        check(|f, _| f.unpredictable_percent = 0.1, Ruling::Pass, &[]);
        let expect = "0.4% of reads unpredictable, at most 0.1% allowed";
        check(|f, _| f.unpredictable_percent = 0.4, Ruling::Fail, &[expect]);
        let expect = "0.161% of reads unpredictable, at most 0.1% allowed";
        check(|f, _| f.unpredictable_percent = 0.161, Ruling::Fail, &[expect]);
        check(
            |f, _| (f.within_beta_percent, f.unpredictable_percent) = (0.0, 0.101),
            Ruling::Fail,
            &["0% within 100ms, needs 95%", "0.101% of reads unpredictable, at most 0.1% allowed"],
        );
    }

    #[test]
    fn what_says_nothing_about_the_store_is_void() {
        let exhausted = EndReason::TraceExhausted { sessions_needed: 9000 };
        check(
            |_, r| (r.end, r.sessions) = (exhausted, 1000),
            Ruling::Void,
            &["trace too short: it ended after 1,000 measured sessions, and 9,000 in total would be enough"],
        );
        check(|_, r| r.end = EndReason::Interrupted, Ruling::Void, &["interrupted"]);
        let paced = |late_ns_p99, queued_ns_p99| {
            let none = || ResponseTimes::default();
            let pacing = Pacing::new(PacingCounts::default(), none(), none());
            Some(Pacing { late_ns_p99, queued_ns_p99, ..pacing })
        };
        let slow = "load generator too slow: sessions started late although a thread was free, p99 30ms, limit 25ms; \
                    use more workers or replayers";
        check(|_, r| r.pacing = paced(30_000_000, 0), Ruling::Void, &[slow]);
        // Queueing is the store's fault, however long it is.
        check(|_, r| r.pacing = paced(1_000, 30_000_000_000), Ruling::Pass, &[]);
        // 1,000 sessions were due in a second, so those of the last 100 ms may still wait.
        let waiting = |unstarted| {
            let none = ResponseTimes::default;
            let counts = PacingCounts { due: 1_000, unstarted, ..PacingCounts::default() };
            Some(Pacing::new(counts, none(), none()))
        };
        check(|_, r| (r.sessions, r.pacing) = (1_000, waiting(100)), Ruling::Pass, &[]);
        let left = "83.334% within 100ms, needs 95%, with what never started: 200 sessions waited for a thread for \
                    longer than 100ms";
        check(|_, r| (r.sessions, r.pacing) = (1_000, waiting(300)), Ruling::Fail, &[left]);
        // Skipped sessions miss the SLA, they are no errors that void the experiment.
        let skipping = |f: &mut Figures, r: &mut ReplayReport| {
            (f.overall.ok, f.overall.skipped, r.sessions) = (900, 100, 1_000);
            let counts = PacingCounts { due: 1_000, queued: 100, skipped: 100, ..PacingCounts::default() };
            r.pacing = Some(Pacing::new(counts, ResponseTimes::default(), ResponseTimes::default()));
        };
        let skipped = "90% within 100ms, needs 95%, with what never started: 100 operations skipped";
        check(skipping, Ruling::Fail, &[skipped]);
        let stopped = "stopped early: a session was due and all threads were busy (overload: stop)";
        check(|_, r| r.end = EndReason::Overloaded, Ruling::Fail, &[stopped]);
        check(|f, _| f.overall = OperationFigures::default(), Ruling::Void, &["no operation was logged"]);
        let late = "no operation succeeded within the counted time (1s); use longer experiments (--search-s, or a \
                    longer SLA)";
        check(|f, _| f.throughput_per_s = 0.0, Ruling::Void, &[late]);
        check(
            |f, _| (f.throughput_per_s, f.within_beta_percent) = (0.0, 0.0),
            Ruling::Fail,
            &["0% within 100ms, needs 95%"],
        );
        check(
            |f, r| {
                f.overall = OperationFigures::default();
                (f.warmup_operations, r.warmup_operations) = (500, 500);
            },
            Ruling::Void,
            &["nothing measured: all operations (500) were warm-up; use a shorter warm-up or a longer trace"],
        );
        check(
            |f, r| (f.warmup_operations, r.warmup_operations) = (500, 510),
            Ruling::Void,
            &["the log has 500 warm-up rows, the replayer counted 510"],
        );
        check(|f, r| (f.warmup_operations, r.warmup_operations) = (500, 500), Ruling::Pass, &[]);
        check(|f, _| f.overall.failed = 10, Ruling::Pass, &[]);
        check(
            |f, _| (f.overall.failed, f.overall.unknown, f.overall.skipped) = (5, 4, 3),
            Ruling::Void,
            &["1.2% of operations did not succeed (5 failed, 4 unknown, 3 skipped), limit 1%"],
        );
        check(
            |f, r| (r.worker_cpu_share, f.within_beta_percent) = (0.97, 10.0),
            Ruling::Void,
            &["load generator saturated: its busiest worker used 97% of a core"],
        );
        check(|_, r| r.log_stall_ns = 10_000_000, Ruling::Pass, &[]);
        check(
            |_, r| (r.log_stall_ns, r.trace_stall_ns) = (20_000_000, 30_000_000),
            Ruling::Void,
            &[
                "the replayer was blocked for 20ms: its log could not be written fast enough",
                "the replayer was blocked for 30ms: its trace could not be read fast enough",
            ],
        );
        check(|_, r| r.dispatch_lag_ns_p99 = 26_000_000, Ruling::Pass, &[]);
        check(
            |f, r| (r.dispatch_lag_ns_p99, f.within_beta_percent) = (26_000_000, 90.0),
            Ruling::Void,
            &["load generator too slow: scheduling delay p99 26ms, limit 25ms"],
        );
    }

    /// If a database is dropped in the middle, one operation of each thread fails at its time limit.
    #[test]
    fn a_store_that_is_gone_for_part_of_the_time_does_not_pass() {
        let gone = "threads spent 5.2% of the time in operations without success (4 failed, 0 unknown), limit 5%; the \
                    store may have been unreachable";
        let lost = |f: &mut Figures, error_ns: u64| {
            (f.overall.failed, f.counted_ns, f.error_ns) = (4, 1_000_000_000, error_ns);
        };
        check(|f, _| lost(f, 3_200_000_000), Ruling::Pass, &[]);
        check(|f, _| lost(f, 3_328_000_000), Ruling::Void, &[gone]);
    }

    /// Sessions that wait aside must not hide that the workload has too few actors for T.
    #[test]
    fn a_workload_that_limits_the_threads_is_void() {
        let limit = "the trace keeps at most 41 threads busy; raise data.members or access.unique_window";
        let idle = format!(
            "the workload, not the store, limits T: threads were idle 5.1% of the time, because the members of the \
             next sessions were busy; {limit}"
        );
        check(|_, r| (r.counted_ns, r.idle_ns) = (1_000_000_000, 3_200_000_000), Ruling::Pass, &[]);
        check(|_, r| (r.counted_ns, r.idle_ns) = (1_000_000_000, 3_264_000_000), Ruling::Void, &[&idle]);
        let hidden = format!("the workload, not the store, limits T: 43.1 sessions were under way on average; {limit}");
        check(|_, r| r.sessions_in_flight = 43.0, Ruling::Pass, &[]);
        check(|_, r| r.sessions_in_flight = 43.1, Ruling::Void, &[&hidden]);
        // Another family has other actors and keys.
        let of_records = TraceLimits { actors: KvWorkload::ACTORS, ..LIMITS };
        let (figures, mut report) = good();
        (report.ok, report.counted_ns, report.idle_ns) = (1000, 1_000_000_000, 3_264_000_000);
        let (_, reasons) = rule(&figures, &[], Some(&report), &Sla::default(), of_records);
        let words = "because the clients of the next sessions were busy; the trace keeps at most 41 threads busy; raise \
                     access.clients";
        assert!(reasons.len() == 1 && reasons[0].ends_with(words), "{reasons:?}");
        let (figures, mut report) = good();
        (report.ok, report.sessions_in_flight) = (1000, 64.0);
        let shared = TraceLimits { active_threads_max: None, ..LIMITS };
        assert_eq!(rule(&figures, &[], Some(&report), &Sla::default(), shared).0, Ruling::Pass);
    }

    /// A replayer that waits for a processor never uses all of one. It measures its own wait, in
    /// a pass as in a fail.
    #[test]
    fn a_starved_replayer_is_void() {
        let slow = "load generator too slow: mean scheduling delay 1ms, limit 500us (2.5% of the mean response time); a \
                    worker waited for a processor 61.2% of the time";
        let late = |f: &mut Figures, r: &mut ReplayReport, lag_ns: f64| {
            f.overall.mean_ns = 2e7;
            (r.dispatch_lag_ns_mean, r.run_delay_share) = (lag_ns, Some(0.6123));
        };
        check(|f, r| late(f, r, 1e6), Ruling::Void, &[slow]);
        let slow = "load generator too slow: mean scheduling delay 35.39ms, limit 200us";
        check(|f, r| (f.overall.mean_ns, r.dispatch_lag_ns_mean) = (412.0, 3.539e7), Ruling::Void, &[slow]);
        check(|f, r| (f.overall.mean_ns, r.dispatch_lag_ns_mean) = (1e7, 2.4e5), Ruling::Pass, &[]);
        // The time to wake up is not a wait for a processor.
        check(|f, r| (f.overall.mean_ns, r.dispatch_lag_ns_mean) = (1e5, 6e4), Ruling::Pass, &[]);
    }

    #[test]
    fn what_happened_to_a_replayer_makes_it_void() {
        let gone = "load2:7070 cannot be reached";
        let lost = |r: &mut ReplayReport| (r.end, r.faults) = (EndReason::Interrupted, vec![gone.to_string()]);
        check(|_, r| lost(r), Ruling::Void, &[gone]);
        check(
            |f, r| {
                lost(r);
                f.missing = vec!["fragment 1: no log".to_string()];
            },
            Ruling::Void,
            &[gone, "fragment 1: no log"],
        );
    }

    /// All replayers together may meet the SLA while one of them misses it.
    #[test]
    fn each_replayer_has_to_keep_the_sla() {
        let (figures, mut report) = good();
        report.ok = 1000;
        let slow = Figures { within_beta_percent: 94.0, ..figures.clone() };
        let of = |name: &str, figures: &Figures| of_replayer(name.into(), 4, figures, &Sla::default());
        let each = [of("load1:7070", &figures), of("load2:7070", &slow)];
        let (ruling, reasons) = rule(&figures, &each, Some(&report), &Sla::default(), LIMITS);
        assert_eq!(
            (ruling, reasons.as_slice()),
            (Ruling::Fail, &["replayer load2:7070: 94% within 100ms, needs 95%".to_string()][..])
        );
        let idle = of("load3:7070", &Figures::default());
        assert_eq!(idle.missed, Vec::<String>::new(), "who had nothing to do has missed nothing");
        assert_eq!(rule(&figures, &each[..1], Some(&report), &Sla::default(), LIMITS).0, Ruling::Pass);
    }

    #[test]
    fn a_dead_replayer_makes_it_void() {
        let (ruling, reasons) = rule(&good().0, &[], None, &Sla::default(), LIMITS);
        assert_eq!(ruling, Ruling::Void);
        assert_eq!(reasons, [NO_REPORT]);
    }
}
