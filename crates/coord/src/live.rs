//! The line on a terminal that tells what goes on at the moment; nothing in a pipe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use schemas::sla::short_time;

use crate::fleet::{Progress, Stage};
use crate::render::thousands;

/// Whether the command line asked for plain lines alone: one terminal, one answer.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on nothing moves on the terminal.
pub fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// The line; it is gone when this is dropped.
pub struct Live(ProgressBar);

impl Live {
    /// An empty line on stderr, if that is a terminal.
    pub fn new() -> Live {
        if IS_QUIET.load(Ordering::Relaxed) {
            return Live(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}{prefix}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Live(bar)
    }

    /// Shows what is known so far below the line.
    pub fn with_sketch(self, sketch: &str) -> Live {
        if !sketch.is_empty() {
            self.0.set_prefix(format!("\n{sketch}"));
        }
        self
    }

    /// A trace set is being generated.
    pub fn generating(&self, sessions: u64, total: u64) {
        self.0.set_message(format!("generating: {} of {} sessions", thousands(sessions), thousands(total)));
    }

    /// An experiment with this many threads is under way.
    pub fn experiment(&self, experiment: u32, threads: u32, stage: &Stage) {
        let what = match stage {
            Stage::Loading { rows, rows_total } => {
                format!("loading: {} of {} rows", thousands(*rows), thousands(*rows_total))
            }
            Stage::Sending { bytes, bytes_total } => {
                let mib = |bytes: u64| thousands(bytes >> 20);
                format!("sending the trace set: {} of {} MiB", mib(*bytes), mib(*bytes_total))
            }
            Stage::Running { whole, each } => {
                let mut text = running(whole);
                // One below the other, so that a lame one is seen.
                for (name, progress) in each.iter().filter(|_| each.len() > 1) {
                    text += &format!("\n    {name}  {}", running(progress));
                }
                text
            }
            Stage::Collecting => "fetching the logs".to_string(),
        };
        self.0.set_message(format!("#{experiment} T={threads}  {what}"));
    }

    /// Prints a line that stays, above this one.
    pub fn above(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// An experiment's log is being validated.
    pub fn analyzing(&self, experiment: u32, threads: u32) {
        self.0.set_message(format!("#{experiment} T={threads}  validating"));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn running(progress: &Progress) -> String {
    let elapsed_s = progress.elapsed_ns.max(1) as f64 / 1e9;
    let time = |percent| short_time(progress.response_times.percentile_ns(percent));
    format!(
        "{}{elapsed_s:5.1} s  {:>9}/s  p95 {:>8}  p99 {:>8}  errors {}",
        if progress.is_warmup { "warm-up " } else { "" },
        thousands((progress.ok as f64 / elapsed_s) as u64),
        time(95.0),
        time(99.0),
        thousands(progress.errors)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_experiment_in_a_line() {
        let mut progress = Progress { elapsed_ns: 1_500_000_000, ok: 3000, errors: 2, ..Progress::default() };
        (0..100).for_each(|i| progress.response_times.record(i * 10_000));
        assert_eq!(running(&progress), "  1.5 s      2,000/s  p95 940.03us  p99 980.48us  errors 2");
        progress.is_warmup = true;
        assert!(running(&progress).starts_with("warm-up   1.5 s"), "{}", running(&progress));
    }
}
