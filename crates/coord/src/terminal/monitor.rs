//! Lines with the figures of a running experiment at a fixed interval (BG's `monitor`). A line
//! covers its own interval, not all the time until then.

use std::sync::Arc;

use schemas::sla::short_time;
use schemas::words::thousands;

use super::live::service_p99;
use super::progress::Progress;

/// Watches one experiment.
pub struct Monitor {
    every_ns: i64,
    /// The progress that the last line covered.
    shown: Progress,
}

impl Monitor {
    /// A monitor with a line for every `every_s` seconds of the experiment.
    pub fn new(every_s: f64) -> Monitor {
        Monitor { every_ns: ((every_s * 1e9) as i64).max(1), shown: Progress::default() }
    }

    /// The lines that are due now: one for all replayers together, and one for each if there are
    /// several.
    pub fn lines(&mut self, whole: &Progress, each: &[(String, Arc<Progress>)]) -> Vec<String> {
        let line = self.line(whole);
        let several = each.iter().filter(|_| each.len() > 1 && line.is_some());
        let of_each = several.map(|(name, progress)| {
            let elapsed_s = progress.elapsed_ns.max(1) as f64 / 1e9;
            let time = |percent| short_time(progress.response_times.percentile_ns(percent));
            format!(
                "{:>14}  {:>8}/s  p95 {:>9}  p99 {:>9}{}  errors {}{}  CPUs {:.2}  max delay {}  {name}",
                "since start",
                thousands((progress.ok as f64 / elapsed_s).round() as u64),
                time(95.0),
                time(99.0),
                service_p99(progress.service_times.as_ref()),
                thousands(progress.errors),
                aborted(progress.aborted),
                progress.cpus_used,
                short_time(progress.dispatch_lag_ns_max),
            )
        });
        let of_each: Vec<String> = of_each.collect();
        line.into_iter().chain(of_each).collect()
    }

    /// The line that is due now, if one is.
    fn line(&mut self, now: &Progress) -> Option<String> {
        if now.is_warmup != self.shown.is_warmup {
            // The measured part has begun, and counts from 0 again.
            self.shown = Progress { is_warmup: now.is_warmup, ..Progress::default() };
        }
        if now.elapsed_ns / self.every_ns <= self.shown.elapsed_ns / self.every_ns {
            return None;
        }
        let times = now.response_times.since(&self.shown.response_times)?;
        let service_times = match (&now.service_times, &self.shown.service_times) {
            (Some(now), Some(shown)) => Some(now.since(shown)?),
            (now, _) => now.clone(),
        };
        let interval_s = (now.elapsed_ns - self.shown.elapsed_ns) as f64 / 1e9;
        let line = format!(
            "{:>9.1} s  {:>11}/s  p95 {:>9}  p99 {:>9}{}  errors {}{}{}",
            now.elapsed_ns as f64 / 1e9,
            thousands((now.ok.saturating_sub(self.shown.ok) as f64 / interval_s).round() as u64),
            short_time(times.percentile_ns(95.0)),
            short_time(times.percentile_ns(99.0)),
            service_p99(service_times.as_ref()),
            thousands(now.errors.saturating_sub(self.shown.errors)),
            aborted(now.aborted.saturating_sub(self.shown.aborted)),
            if now.is_warmup { "  warm-up" } else { "" },
        );
        self.shown = now.clone();
        Some(line)
    }
}

/// Operations of transactions that were rolled back; empty if there were none.
fn aborted(operations: u64) -> String {
    if operations > 0 { format!("  aborted {}", thousands(operations)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use schemas::latency::ResponseTimes;

    use super::*;

    /// Advances a progress to `elapsed_ms`, with `ok` more operations that took `response_us`
    /// each.
    fn add(progress: &mut Progress, elapsed_ms: i64, ok: u64, response_us: i64) {
        progress.elapsed_ns = elapsed_ms * 1_000_000;
        progress.ok += ok;
        (0..ok).for_each(|_| progress.response_times.record(response_us * 1000));
    }

    #[test]
    fn each_line_tells_of_its_own_interval() {
        let mut monitor = Monitor::new(2.0);
        let mut now = Progress::default();
        let mut lines = Vec::new();
        for (elapsed_ms, ok, response_us) in [(500, 100, 10), (2000, 300, 10), (2500, 50, 10), (4500, 100, 5000)] {
            add(&mut now, elapsed_ms, ok, response_us);
            lines.push(monitor.line(&now));
        }
        now.errors += 7;
        add(&mut now, 6100, 0, 0);
        lines.push(monitor.line(&now));
        let line = |text: &str| Some(text.to_string());
        assert_eq!(
            lines,
            [
                None,
                line("      2.0 s          200/s  p95   10.01us  p99   10.01us  errors 0"),
                None,
                line("      4.5 s           60/s  p95       5ms  p99       5ms  errors 0"),
                line("      6.1 s            0/s  p95       0ns  p99       0ns  errors 7"),
            ]
        );
    }

    /// In an open loop, a store that stalls shows in the response times and not in the service times.
    #[test]
    fn a_line_of_an_open_loop_has_both_times() {
        let mut monitor = Monitor::new(1.0);
        let mut now = Progress { service_times: Some(ResponseTimes::default()), ..Progress::default() };
        let mut lines = Vec::new();
        for (elapsed_ms, service_us) in [(1000, 20), (2000, 30)] {
            add(&mut now, elapsed_ms, 10, 5000);
            (0..10).for_each(|_| now.service_times.get_or_insert_default().record(service_us * 1000));
            lines.extend(monitor.line(&now));
        }
        assert_eq!(
            lines,
            [
                "      1.0 s           10/s  p95       5ms  p99       5ms  service p99  20.02us  errors 0",
                "      2.0 s           10/s  p95       5ms  p99       5ms  service p99  30.02us  errors 0",
            ]
        );
    }

    /// What transactions have rolled back is no error.
    #[test]
    fn a_line_tells_what_was_rolled_back() {
        let mut monitor = Monitor::new(1.0);
        let mut now = Progress { aborted: 1_200, ..Progress::default() };
        let mut lines = Vec::new();
        for elapsed_ms in [1000, 2000, 3000] {
            add(&mut now, elapsed_ms, 10, 10);
            lines.extend(monitor.line(&now));
            now.aborted += if elapsed_ms == 1000 { 0 } else { 5 };
        }
        let ends: Vec<&str> = lines.iter().map(|line| &line[line.find("errors").unwrap_or_default()..]).collect();
        assert_eq!(ends, ["errors 0  aborted 1,200", "errors 0", "errors 0  aborted 5"]);
    }

    #[test]
    fn a_measured_part_that_begins_after_a_warmup_starts_from_nothing() {
        let mut monitor = Monitor::new(1.0);
        let mut warmup = Progress { is_warmup: true, ..Progress::default() };
        add(&mut warmup, 500, 10, 10);
        assert_eq!(monitor.line(&warmup), None);
        add(&mut warmup, 1000, 1000, 10);
        let line = monitor.line(&warmup).unwrap();
        assert!(line.ends_with("errors 0  warm-up"), "{line}");
        let mut measured = Progress::default();
        // More than the warm-up had, so that only the phase tells the two apart.
        add(&mut measured, 2000, 5000, 10);
        let line = monitor.line(&measured).unwrap();
        assert!(line.contains("2.0 s") && line.contains("2,500/s") && !line.contains("warm-up"), "{line}");
    }
}
