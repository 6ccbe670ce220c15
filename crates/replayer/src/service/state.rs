//! What a replayer that serves knows between two calls: its lease and its store, the experiment
//! that is prepared or runs, and the thread that works on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use schemas::manifest::Manifest;
use schemas::run::ReplayReport;
use tonic::Status;

use super::job::Job;
use super::lease::Leases;
use super::objects::Fetching;
use super::settings::Settings;
use super::shelf::Shelf;
use crate::any_store::AnyStore;
use crate::experiment::Experiment;

/// One replayer, which works on one experiment at a time.
#[derive(Clone)]
pub struct Service {
    pub settings: Arc<Settings>,
    pub shelf: Shelf,
    pub state: Arc<Mutex<State>>,
    pub stop: Arc<AtomicBool>,
    /// Whether to give up the operations in flight, too.
    pub abandon: Arc<AtomicBool>,
    /// Whether this replayer, or another one of the experiment, was overloaded.
    pub overloaded: Arc<AtomicBool>,
    /// The thread that loads or runs, or did so last.
    work: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// What the coordinator that holds the lease has set up so far.
#[derive(Default)]
pub struct State {
    pub leases: Leases,
    /// Kept between experiments, as long as the URL stays the same: a store in
    /// this process would be empty otherwise.
    pub store: Option<(String, Arc<dyn AnyStore>)>,
    pub offered: Option<Arc<Manifest>>,
    /// The trace set that is on its way here from object storage, or was last.
    pub fetching: Option<Arc<Fetching>>,
    pub prepared: Option<Arc<Experiment>>,
    pub job: Option<Arc<Job>>,
    /// The experiment of the job.
    pub experiment: Option<Arc<Experiment>>,
    pub report: Option<ReplayReport>,
}

impl State {
    pub fn is_running(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.has_ended())
    }
}

impl Service {
    pub fn new(settings: Settings) -> Service {
        Service {
            shelf: Shelf::new(settings.work.clone(), settings.trace_bytes_max),
            settings: Arc::new(settings),
            state: Arc::default(),
            stop: Arc::default(),
            abandon: Arc::default(),
            overloaded: Arc::default(),
            work: Arc::default(),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocking work on a thread of its own, when the work before is over. A load whose
    /// coordinator is gone must not overlap with the next load.
    pub fn work_on(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Status> {
        let mut latest = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.take();
        let begun = std::thread::Builder::new().spawn(move || {
            // A panic in it has been reported where it happened.
            let _ = before.map(JoinHandle::join);
            work();
        });
        *latest = Some(begun.map_err(|e| Status::resource_exhausted(format!("cannot start a thread: {e}")))?);
        Ok(())
    }

    /// Waits until the thread that loads or runs is done.
    pub fn finish_work(&self) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            // A panic in it has been reported where it happened.
            let _ = work.join();
        }
    }

    /// Ends the running experiment early. Sessions under way are finished and logged.
    pub fn stop_running(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The store and the experiment that is prepared on it.
    pub fn prepared(&self) -> Result<(Arc<dyn AnyStore>, Arc<Experiment>), Status> {
        let state = self.state();
        match (&state.store, &state.prepared) {
            (Some((_, store)), Some(experiment)) => Ok((store.clone(), experiment.clone())),
            _ => Err(Status::aborted("no experiment is prepared")),
        }
    }

    /// The experiment that runs, or ended last.
    pub fn job(&self) -> Result<Arc<Job>, Status> {
        self.state().job.clone().ok_or_else(|| Status::aborted("no experiment runs"))
    }
}
