//! An experiment under way, or the one that ended last: whoever watches it may go
//! and come back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemas::rpc::{Phase, Progress};
use tokio::sync::watch;
use tonic::Status;

use crate::clock::process_cpu_ns;
use crate::experiment::{Part, Snapshot, StartSignal};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(500);
/// How soon a stop is noticed before the start.
const NOTICE: Duration = Duration::from_millis(50);

/// What is known of an experiment: its progress, and how it ended once it has.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The progress.
    pub progress: Progress,
    /// How it ended.
    pub end: Option<Result<(), Status>>,
}

/// The end of an experiment that is watched.
pub struct Job {
    /// Its number.
    pub experiment: u32,
    /// Whether the measured part has a start of its own, after a warm-up.
    warms_up: bool,
    start: Mutex<Sender<i64>>,
    seen: Arc<watch::Sender<Seen>>,
}

/// The end of it that runs.
pub struct Runner {
    started: Mutex<Receiver<i64>>,
    seen: Arc<watch::Sender<Seen>>,
    stop: Arc<AtomicBool>,
    told: Mutex<(Instant, i64)>,
}

/// An experiment of this number, with both of its ends.
pub fn job(experiment: u32, warms_up: bool, stop: Arc<AtomicBool>) -> (Job, Arc<Runner>) {
    let (start, started) = channel();
    let seen = Arc::new(watch::Sender::new(Seen::default()));
    let told = Mutex::new((Instant::now(), process_cpu_ns()));
    let runner = Runner { started: Mutex::new(started), seen: seen.clone(), stop, told };
    (Job { experiment, warms_up, start: Mutex::new(start), seen }, Arc::new(runner))
}

impl Job {
    /// Lets what it waits for start at this time, in nanoseconds since 1970; false when
    /// it waits for nothing.
    pub fn start(&self, unix_ns: i64) -> bool {
        let has_waited = self.seen.send_if_modified(|seen| {
            let next = match seen.progress.phase() {
                _ if seen.end.is_some() => None,
                Phase::Ready if self.warms_up => Some(Phase::WarmingUp),
                Phase::Ready | Phase::Warm => Some(Phase::Measuring),
                _ => None,
            };
            next.map(|next| seen.progress = Progress { phase: next.into(), ..Progress::default() }).is_some()
        });
        // One that was stopped meanwhile does not listen any more.
        has_waited && self.start.lock().unwrap_or_else(PoisonError::into_inner).send(unix_ns).is_ok()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.seen.borrow().end.is_some()
    }

    /// What is known of it from now on.
    pub fn watch(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }
}

impl Runner {
    /// Tells that all is ready, or warmed up, and waits for the start.
    pub fn signal(self: &Arc<Runner>) -> StartSignal {
        let runner = self.clone();
        Arc::new(move || {
            runner.seen.send_modify(|seen| {
                let is_warm = seen.progress.phase() == Phase::WarmingUp;
                seen.progress.phase = if is_warm { Phase::Warm } else { Phase::Ready }.into();
            });
            let started = runner.started.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match started.recv_timeout(NOTICE) {
                    Ok(unix_ns) => return Some(unix_ns),
                    Err(RecvTimeoutError::Timeout) if !runner.stop.load(Ordering::Relaxed) => {}
                    Err(_) => return None,
                }
            }
        })
    }

    /// Takes in how far it is.
    pub fn progress(&self, snapshot: &Snapshot) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = told.0.elapsed();
        // While it waits for its start there is nothing to tell.
        if elapsed < PROGRESS || snapshot.elapsed_ns == 0 {
            return;
        }
        let cpu_ns = process_cpu_ns();
        let [ok, failed, unknown, skipped] = snapshot.outcomes;
        let phase = match snapshot.part {
            Part::WarmUp => Phase::WarmingUp,
            Part::Measured => Phase::Measuring,
        };
        let progress = Progress {
            phase: phase.into(),
            elapsed_ns: snapshot.elapsed_ns,
            ok,
            failed,
            unknown,
            skipped,
            response_times: snapshot.response_times.to_bytes(),
            dispatch_lag_ns_max: snapshot.lag_ns_max.max(0) as u64,
            cpus_used: (cpu_ns - told.1) as f64 / elapsed.as_nanos() as f64,
        };
        *told = (Instant::now(), cpu_ns);
        self.seen.send_modify(|seen| seen.progress = progress);
    }

    /// It is over.
    pub fn end(&self, end: Result<(), Status>) {
        self.seen.send_modify(|seen| seen.end = Some(end));
    }
}
