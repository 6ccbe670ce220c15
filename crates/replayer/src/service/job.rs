//! An experiment that runs, or the one that ended last. A coordinator that watches it may
//! disconnect and come back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemas::latency::ResponseTimes;
use schemas::rpc::{Phase, Progress};
use tokio::sync::watch;
use tonic::Status;

use crate::clock::process_cpu_ns;
use crate::experiment::{Part, Snapshot, StartSignal};

/// How often the replayer reports progress.
const PROGRESS: Duration = Duration::from_millis(500);
/// How often a replayer that waits for its start checks for a stop.
const NOTICE: Duration = Duration::from_millis(50);

/// What is known of an experiment: its progress, and how it ended once it has.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The progress.
    pub progress: Progress,
    /// How it ended.
    pub end: Option<Result<(), Status>>,
}

/// An experiment, as the service watches it.
pub struct Job {
    /// Its number.
    pub experiment: u32,
    /// Whether the measured part has a start of its own, after a warm-up.
    warms_up: bool,
    start: Mutex<Sender<i64>>,
    seen: Arc<watch::Sender<Seen>>,
}

/// An experiment, as its own thread runs it.
pub struct Runner {
    started: Mutex<Receiver<i64>>,
    seen: Arc<watch::Sender<Seen>>,
    stop: Arc<AtomicBool>,
    overloaded: Arc<AtomicBool>,
    measured: Mutex<(Instant, i64)>,
}

/// Makes both for the experiment with this number.
pub fn job(experiment: u32, warms_up: bool, stop: Arc<AtomicBool>, overloaded: Arc<AtomicBool>) -> (Job, Arc<Runner>) {
    let (start, started) = channel();
    let seen = Arc::new(watch::Sender::new(Seen::default()));
    let measured = Mutex::new((Instant::now(), process_cpu_ns()));
    let runner = Runner { started: Mutex::new(started), seen: seen.clone(), stop, overloaded, measured };
    (Job { experiment, warms_up, start: Mutex::new(start), seen }, Arc::new(runner))
}

impl Job {
    /// Starts what the experiment waits for at this time, in nanoseconds since 1970. False if the
    /// experiment waits for no start.
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
        // An experiment that was stopped in the meantime no longer receives the start.
        has_waited && self.start.lock().unwrap_or_else(PoisonError::into_inner).send(unix_ns).is_ok()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.seen.borrow().end.is_some()
    }

    /// Its progress and its end, from now on.
    pub fn watch(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }
}

impl Runner {
    /// A signal that reports the experiment as ready or warmed up, and waits for the start.
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

    /// Publishes the progress, but no more often than `PROGRESS`. An overload is published at once.
    pub fn progress(&self, snapshot: &Snapshot) {
        self.publish_overload();
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = measured.0.elapsed();
        // Before the start there is no progress.
        if elapsed < PROGRESS || snapshot.elapsed_ns == 0 {
            return;
        }
        let cpu_ns = process_cpu_ns();
        let [ok, failed, unknown, skipped, aborted] = snapshot.outcomes;
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
            aborted,
            response_times: snapshot.response_times.to_bytes(),
            service_times: snapshot.service_times.as_ref().map_or(Vec::new(), ResponseTimes::to_bytes),
            dispatch_lag_ns_max: snapshot.lag_ns_max.max(0) as u64,
            cpus_used: (cpu_ns - measured.1) as f64 / elapsed.as_nanos() as f64,
            overloaded: self.overloaded.load(Ordering::Relaxed),
            store_counters: snapshot.store_counters.clone().into_iter().collect(),
        };
        *measured = (Instant::now(), cpu_ns);
        self.seen.send_modify(|seen| seen.progress = progress);
    }

    /// Publishes that the experiment ends because of an overload, once.
    fn publish_overload(&self) {
        let is_overloaded = self.overloaded.load(Ordering::Relaxed);
        self.seen.send_if_modified(|seen| {
            let is_new = is_overloaded && !seen.progress.overloaded;
            seen.progress.overloaded |= is_overloaded;
            is_new
        });
    }

    /// Publishes the end of the experiment.
    pub fn end(&self, end: Result<(), Status>) {
        self.publish_overload();
        self.seen.send_modify(|seen| seen.end = Some(end));
    }
}
