//! The live progress display on a terminal. In a pipe it shows nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use schemas::latency::ResponseTimes;
use schemas::sla::short_time;
use schemas::verdict::all_hold;
use schemas::words::thousands;

use super::progress::{Progress, Stage};

/// Whether `--quiet` disables the display. It is global because a process has one terminal.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// When the program began, for the time that the display shows.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// An experiment, as the display announces it.
pub struct Announced {
    /// Its number.
    pub number: u32,
    /// Its load: `T=64`, `500 sessions/s`.
    pub load: String,
    /// The phase of the rating, and why it runs this load; empty outside of a rating.
    pub why: String,
    /// Its planned time in seconds, if it has one.
    pub planned_s: Option<f64>,
}

/// The display that is on the terminal now. Lines of other threads must not be printed into it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints a line to stderr, above the display if there is one.
pub fn say_above(line: &str) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let print = || anstream::eprintln!("{line}");
    shown.map_or_else(print, |bar| bar.suspend(print));
}

/// Disables the display.
pub fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// The line of the display; it disappears when this is dropped.
pub struct Live(ProgressBar);

impl Live {
    /// An empty line on stderr, if that is a terminal.
    pub fn start() -> Live {
        if IS_QUIET.load(Ordering::Relaxed) {
            return Live(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_elapsed(BEGAN.elapsed());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}{prefix}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Live(bar)
    }

    /// Shows the results so far below the line.
    pub fn with_sketch(self, sketch: &str) -> Live {
        if !sketch.is_empty() {
            self.0.set_prefix(format!("\n{sketch}"));
        }
        self
    }

    /// Shows how many sessions of a trace set are generated.
    pub fn generating(&self, sessions: u64, total: u64) {
        self.0.set_message(format!("generating: {} of {} sessions", thousands(sessions), thousands(total)));
    }

    /// Shows the stage of an experiment.
    pub fn experiment(&self, announced: &Announced, stage: &Stage) {
        let what = match stage {
            Stage::Loading { rows, rows_total } => {
                format!("loading: {} of {} rows", thousands(*rows), thousands(*rows_total))
            }
            Stage::Loaded { conditions } => all_hold(*conditions),
            Stage::Sending { bytes, bytes_total } => {
                let mib = |bytes: u64| thousands(bytes >> 20);
                format!("sending the trace set: {} of {} MiB", mib(*bytes), mib(*bytes_total))
            }
            Stage::Running { whole, each } => {
                let mut text = running(whole, announced.planned_s);
                // One line per replayer, so that a slow one can be seen.
                for (name, progress) in each.iter().filter(|_| each.len() > 1) {
                    text += &format!("\n    {name}  {}", running(progress, announced.planned_s));
                }
                text
            }
            Stage::Closing { items, items_total } => {
                let (items, of) = (thousands(*items), thousands(*items_total.max(items)));
                format!("closing read: {items} of {of} (--no-closing-read disables it)")
            }
            Stage::Collecting => "fetching the logs".to_string(),
        };
        self.0.set_message(format!("{}\n    {what}", announced.line()));
    }

    /// Prints a line above the display. It stays when the display disappears.
    pub fn above(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Shows that the log of an experiment is being validated.
    pub fn analyzing(&self, announced: &Announced) {
        self.0.set_message(format!("{}\n    validating", announced.line()));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}

impl Announced {
    fn line(&self) -> String {
        let Announced { number, load, why, .. } = self;
        format!("experiment {number}, {load}{}{why}", if why.is_empty() { "" } else { ": " })
    }
}

/// The column with the service times of an open loop; empty in a closed loop.
pub(super) fn service_p99(times: Option<&ResponseTimes>) -> String {
    times.map_or(String::new(), |times| format!("  service p99 {:>8}", short_time(times.percentile_ns(99.0))))
}

fn running(progress: &Progress, planned_s: Option<f64>) -> String {
    let elapsed_s = progress.elapsed_ns.max(1) as f64 / 1e9;
    let of = match planned_s {
        Some(planned_s) if !progress.is_warmup => format!(" of {planned_s}"),
        _ => String::new(),
    };
    let time = |percent| short_time(progress.response_times.percentile_ns(percent));
    format!(
        "{}{elapsed_s:.1}{of} s  {:>9}/s  p95 {:>8}  p99 {:>8}{}  errors {}",
        if progress.is_warmup { "warm-up " } else { "" },
        thousands((progress.ok as f64 / elapsed_s) as u64),
        time(95.0),
        time(99.0),
        service_p99(progress.service_times.as_ref()),
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
        let line = running(&progress, Some(3.0));
        assert_eq!(line, "1.5 of 3 s      2,000/s  p95 940.03us  p99 980.48us  errors 2");
        assert!(running(&progress, None).starts_with("1.5 s  "));
        let mut open_loop = progress.clone();
        open_loop.service_times.get_or_insert_default().record(7_000);
        assert!(running(&open_loop, None).contains("p99 980.48us  service p99      7us  errors 2"));
        progress.is_warmup = true;
        let line = running(&progress, Some(3.0));
        assert!(line.starts_with("warm-up 1.5 s  "), "{line}");
    }

    #[test]
    fn an_experiment_is_announced_with_its_reason() {
        let announced =
            |why: &str| Announced { number: 7, load: "T=64".into(), why: why.into(), planned_s: None }.line();
        assert_eq!(announced("final, confirms SoAR"), "experiment 7, T=64: final, confirms SoAR");
        assert_eq!(announced(""), "experiment 7, T=64");
    }
}
