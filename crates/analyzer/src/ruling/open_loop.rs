//! What only an open loop can miss: sessions that started late, or never.

use schemas::run::{EndReason, ReplayReport};
use schemas::sla::{Sla, short_time};
use schemas::verdict::Figures;
use schemas::words::plural;

use super::missed::{apart, issued};

/// Whether the replayer started sessions so late, although a thread was waiting for them, that their
/// response times are not the store's. Queueing for a busy thread is the store's fault.
pub(super) fn late_starts(report: &ReplayReport, sla: &Sla) -> Option<String> {
    let late_ns = report.pacing.as_ref()?.late_ns_p99;
    (late_ns > sla.beta_ns / 4).then(|| {
        let (late, limit) = (short_time(late_ns), short_time(sla.beta_ns / 4));
        format!(
            "load generator too slow: sessions started late although a thread was free, p99 {late}, limit {limit}; use \
             more workers or replayers"
        )
    })
}

/// Whether sessions queued because the replayer stood still, and not because the store was slow. They
/// may be a quarter of those that the SLA lets miss, or queue for a quarter of β. Where that changes
/// no verdict, the verdict stands.
pub(super) fn stalled_starts(figures: &Figures, report: &ReplayReport, sla: &Sla) -> Option<String> {
    let pacing = report.pacing.as_ref().filter(|pacing| pacing.sessions_stalled > 0)?;
    let (stalled, longest_ns) = (pacing.sessions_stalled, pacing.stalled_ns_max);
    let is_stopped = report.end == EndReason::Overloaded;
    let misses = figures.within_beta_percent < sla.alpha_percent || pacing.sessions_skipped > 0;
    let most = pacing.sessions_due as f64 * (100.0 - sla.alpha_percent) / 100.0 / 4.0;
    let is_long = longest_ns > sla.beta_ns / 4 || pacing.sessions_skipped > 0;
    (is_stopped || (misses && is_long && stalled as f64 > most)).then(|| {
        format!(
            "load generator too slow: {} queued for up to {} because the replayer stood still; use a machine with free \
             processors",
            plural(stalled, "session"),
            short_time(longest_ns)
        )
    })
}

/// Whether the experiment ended because a session had to queue. Of several replayers, those on which it
/// had to are named.
pub(super) fn stopped_early(report: &ReplayReport) -> Option<String> {
    let overloaded = report.replayers.iter().filter(|replayer| replayer.overloaded);
    let names: Vec<&str> = overloaded.map(|replayer| replayer.name.as_str()).collect();
    let of = match names.len() {
        0 => String::new(),
        1 => format!(" of replayer {}", names[0]),
        _ => format!(" of replayers {}", names.join(", ")),
    };
    (report.end == EndReason::Overloaded)
        .then(|| format!("stopped early: a session was due and all threads{of} were busy (overload: stop)"))
}

/// Whether the SLA of an open loop is missed once the sessions that never started count. The share
/// within β has only operations that were sent to the store: it would improve as the store falls
/// behind. Sessions that the plan skips are misses. Sessions that waited for a thread at the end start
/// in the order of their due times, so all but those that were due in the last β waited longer than β.
pub(super) fn never_started(figures: &Figures, report: &ReplayReport, sla: &Sla) -> Option<String> {
    let pacing = report.pacing.as_ref()?;
    let (overall, counted_s) = (&figures.overall, figures.counted_ns as f64 / 1e9);
    if report.sessions == 0 || counted_s <= 0.0 {
        return None;
    }
    let skipped = if pacing.sessions_skipped > 0 { overall.skipped } else { 0 };
    let due_within_beta = pacing.sessions_due as f64 / counted_s * (sla.beta_ns as f64 / 1e9);
    let overdue = (pacing.sessions_unstarted as f64 - due_within_beta).max(0.0).round();
    let missing = skipped as f64 + overdue * overall.operations() as f64 / report.sessions as f64;
    let sent = issued(figures) as f64;
    let percent = figures.within_beta_percent * sent / (sent + missing);
    let is_missed_by_them = figures.within_beta_percent >= sla.alpha_percent && percent < sla.alpha_percent;
    is_missed_by_them.then(|| {
        let (within, beta) = (apart(percent, sla.alpha_percent), short_time(sla.beta_ns));
        let skipped = (skipped > 0).then(|| format!("{} skipped", plural(skipped, "operation")));
        let waiting = (overdue > 0.0)
            .then(|| format!("{} waited for a thread for longer than {beta}", plural(overdue as u64, "session")));
        let why: Vec<String> = skipped.into_iter().chain(waiting).collect();
        format!("{within}% within {beta}, needs {}%, with what never started: {}", sla.alpha_percent, why.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use schemas::latency::ResponseTimes;
    use schemas::run::{Host, Pacing, PacingCounts, ReplayerReport};

    use super::*;

    fn replayer(name: &str, overloaded: bool) -> ReplayerReport {
        ReplayerReport {
            name: name.into(),
            host: Host { name: "host".into(), system: "linux-x86_64".into(), cpus: 2 },
            fragments: Vec::new(),
            threads: 1,
            ok: 0,
            errors: 0,
            worker_cpu_share: 0.0,
            dispatch_lag_ns_mean: 0.0,
            dispatch_lag_ns_p99: 0,
            run_delay_share: None,
            idle_ns: 0,
            overloaded,
            clock: Default::default(),
        }
    }

    /// A replayer that stood still was taken for a slow store: all sessions but the first T queued.
    #[test]
    fn what_queues_because_the_replayer_stood_still_is_the_clients_fault() {
        let sla: Sla = "95% < 100ms, 10s".parse().unwrap();
        let check = |stalled, stalled_ns_max, skipped, within_beta_percent, expect: bool| {
            let counts =
                PacingCounts { due: 1_000, queued: 500, skipped, stalled, stalled_ns_max, ..PacingCounts::default() };
            let times = ResponseTimes::default;
            let report =
                ReplayReport { pacing: Some(Pacing::new(counts, times(), times())), ..ReplayReport::default() };
            let figures = Figures { within_beta_percent, ..Figures::default() };
            let why = stalled_starts(&figures, &report, &sla);
            assert_eq!(why.is_some(), expect, "{why:?}");
            assert!(why.iter().all(|why| why.contains("because the replayer stood still")), "{why:?}");
            let stopped = ReplayReport { end: EndReason::Overloaded, ..report };
            assert_eq!(stalled_starts(&figures, &stopped, &sla).is_some(), stalled > 0);
        };
        check(100, 900_000_000, 0, 90.0, true);
        check(100, 900_000_000, 0, 96.0, false);
        check(12, 900_000_000, 0, 90.0, false);
        check(100, 25_000_000, 0, 90.0, false);
        check(0, 0, 0, 90.0, false);
        check(100, 25_000_000, 100, 96.0, true);
    }

    #[test]
    fn the_overloaded_ones_of_several_replayers_are_named() {
        let check = |overloaded: [bool; 2], expect: &str| {
            let replayers = vec![replayer("a:1", overloaded[0]), replayer("b:2", overloaded[1])];
            let report = ReplayReport { end: EndReason::Overloaded, replayers, ..ReplayReport::default() };
            let expect = format!("stopped early: a session was due and {expect} were busy (overload: stop)");
            assert_eq!(stopped_early(&report), Some(expect));
        };
        check([false, true], "all threads of replayer b:2");
        check([true, true], "all threads of replayers a:1, b:2");
        check([false, false], "all threads");
        assert_eq!(stopped_early(&ReplayReport::default()), None);
    }
}
