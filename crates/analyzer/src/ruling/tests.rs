//! Tests verdicts: each reason, and what is none.

use schemas::latency::ResponseTimes;
use schemas::run::{EndReason, Pacing, PacingCounts};
use schemas::verdict::OperationFigures;
use schemas::workload::Workload;
use schemas::workload::kv::KvWorkload;
use schemas::workload::social::SocialWorkload;

use super::void::NO_REPORT;
use super::*;

const LIMITS: TraceLimits = TraceLimits { threads: 64, active_threads_max: Some(41), actors: SocialWorkload::ACTORS };

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
