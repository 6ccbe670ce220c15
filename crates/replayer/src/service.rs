//! The replayer as a service: a coordinator prepares, loads, starts and
//! collects experiments over gRPC (`schemas/proto/replayer.proto`).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::Stream;
use schemas::plan::Plan;
use schemas::rpc::replayer_server::{Replayer, ReplayerServer};
use schemas::rpc::{
    HelloReply, HelloRequest, LoadProgress, LoadRequest, PROTOCOL_VERSION, PrepareReply, PrepareRequest, Progress,
    ReportReply, ReportRequest, RunRequest, StartAnswer, StartProposal, StopReply, StopRequest,
};
use schemas::run::ReplayReport;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Code, Request, Response, Status};

use crate::experiment::{Control, Experiment, ExperimentError, Part, Snapshot};
use crate::stores::{self, AnyStore, Blame, StoreError};

/// How often progress goes to the coordinator.
const PROGRESS: Duration = Duration::from_millis(500);

/// Serves on `address` until `end` is done. `listening` is called with the
/// address once connections are accepted.
///
/// Only loopback addresses are served: the service runs what it is told to,
/// without asking who tells.
pub async fn serve(
    address: SocketAddr,
    listening: impl FnOnce(SocketAddr),
    end: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        is_loopback(address.ip()),
        "--listen {address}: only loopback addresses are served, since the service does not authenticate; use 127.0.0.1"
    );
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|e| anyhow::anyhow!("--listen {address}: {e}; take another port, or port 0 for any that is free"))?;
    listening(listener.local_addr()?);
    let service = Service::default();
    let (stop, work) = (service.stop.clone(), service.work.clone());
    tonic::transport::Server::builder()
        .add_service(ReplayerServer::new(service))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async move {
            end.await;
            stop.store(true, Ordering::Relaxed);
        })
        .await?;
    // What is in flight is finished and logged, whoever is still there to ask for it.
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = work {
        // A panic in it has been reported where it happened.
        let _ = work.join();
    }
    Ok(())
}

fn is_loopback(address: IpAddr) -> bool {
    address.is_loopback()
}

/// One replayer, which works on one experiment at a time.
#[derive(Default)]
struct Service {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    /// The thread that loads or runs, or did so last.
    work: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Default)]
struct State {
    /// Kept between experiments, as long as the URL stays the same: a store in
    /// this process would be empty otherwise.
    store: Option<(String, Arc<dyn AnyStore>)>,
    prepared: Option<Arc<Experiment>>,
    running: bool,
    report: Option<ReplayReport>,
}

impl Service {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocking work gets a thread of its own.
    fn work_on(&self, work: impl FnOnce() + Send + 'static) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::spawn(work));
    }

    fn prepared(&self) -> Result<(Arc<dyn AnyStore>, Arc<Experiment>), Status> {
        let state = self.state();
        match (&state.store, &state.prepared) {
            (Some((_, store)), Some(experiment)) => Ok((store.clone(), experiment.clone())),
            _ => Err(Status::aborted("no experiment is prepared")),
        }
    }
}

/// The codes that `replayer.proto` promises.
fn status(error: &ExperimentError) -> Status {
    let code = match error {
        ExperimentError::Store(StoreError { blame: Blame::State, .. }) => Code::FailedPrecondition,
        error if error.is_usage() => Code::InvalidArgument,
        _ => Code::Internal,
    };
    Status::new(code, error.to_string())
}

/// A panic must reach the coordinator too, as an error.
fn guarded<X>(work: impl FnOnce() -> Result<X, ExperimentError>) -> Result<X, Status> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| status(&e)),
        Err(_) => Err(Status::internal("the replayer panicked; its standard error says where")),
    }
}

type Replies<X> = Pin<Box<dyn Stream<Item = Result<X, Status>> + Send>>;

#[tonic::async_trait]
impl Replayer for Service {
    type LoadStream = Replies<LoadProgress>;
    type RunStream = Replies<Progress>;

    async fn hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let asked = request.into_inner();
        let encore_version = env!("CARGO_PKG_VERSION").to_string();
        if asked.protocol_version != PROTOCOL_VERSION {
            return Err(Status::unimplemented(format!(
                "this replayer (Encore {encore_version}) speaks protocol {PROTOCOL_VERSION}, the coordinator (Encore {}) speaks protocol {}",
                asked.encore_version, asked.protocol_version
            )));
        }
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Ok(Response::new(HelloReply { protocol_version: PROTOCOL_VERSION, encore_version, cpus }))
    }

    async fn prepare(&self, request: Request<PrepareRequest>) -> Result<Response<PrepareReply>, Status> {
        let request = request.into_inner();
        let plan: Plan =
            serde_json::from_str(&request.plan_json).map_err(|e| Status::invalid_argument(format!("plan: {e}")))?;
        let url = plan.store.clone();
        let experiment = Experiment::prepare(plan, PathBuf::from(request.experiment_folder)).map_err(|e| status(&e))?;
        let mut state = self.state();
        if state.running {
            return Err(Status::aborted("an experiment is running"));
        }
        if state.store.as_ref().is_none_or(|(open, _)| *open != url) {
            let store = stores::open(&url).map_err(|e| status(&ExperimentError::Store(e)))?;
            state.store = Some((url, Arc::from(store)));
        }
        state.prepared = Some(Arc::new(experiment));
        state.report = None;
        self.stop.store(false, Ordering::Relaxed);
        Ok(Response::new(PrepareReply {}))
    }

    async fn load(&self, _request: Request<LoadRequest>) -> Result<Response<Self::LoadStream>, Status> {
        let (store, experiment) = self.prepared()?;
        let (sender, replies) = mpsc::channel(16);
        // Loading blocks: it gets a thread of its own.
        self.work_on(move || {
            let told = Mutex::new(Instant::now());
            let progress = |rows, rows_total| {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.elapsed() >= PROGRESS {
                    *told = Instant::now();
                    // Nobody is hurt by progress that does not arrive.
                    let _ = sender.try_send(Ok(LoadProgress { rows, rows_total }));
                }
            };
            let result = guarded(|| {
                match experiment.continues() {
                    // No load would bring the store there: it is there, or it never will be.
                    true => store.check(&experiment)?,
                    false => store.load(experiment.source(), &progress)?,
                }
                Ok(())
            });
            let total = experiment.source().rows_total();
            let last = match result {
                Ok(()) => Ok(LoadProgress { rows: total, rows_total: total }),
                Err(status) => Err(status),
            };
            // The coordinator may be gone; then nobody waits for the answer.
            let _ = sender.blocking_send(last);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(replies))))
    }

    async fn agree_start(&self, request: Request<StartProposal>) -> Result<Response<StartAnswer>, Status> {
        self.prepared()?;
        let proposed = request.into_inner().start_unix_ns;
        // Enough time to hear the commitment, by this host's clock.
        let earliest = crate::clock::unix_ns() + 50_000_000;
        Ok(Response::new(StartAnswer { start_unix_ns: proposed.max(earliest) }))
    }

    async fn run(&self, request: Request<RunRequest>) -> Result<Response<Self::RunStream>, Status> {
        let start_unix_ns = request.into_inner().start_unix_ns;
        let (store, experiment) = self.prepared()?;
        {
            let mut state = self.state();
            if state.running {
                return Err(Status::aborted("an experiment is running"));
            }
            state.running = true;
            state.prepared = None;
        }
        let control = Control { stop: self.stop.clone(), start_unix_ns: Some(start_unix_ns) };
        let (sender, replies) = mpsc::channel(16);
        let state = self.state.clone();
        self.work_on(move || {
            let mut told = Instant::now();
            let mut progress = |snapshot: Snapshot| {
                if told.elapsed() >= PROGRESS {
                    told = Instant::now();
                    let _ = sender.try_send(Ok(message(&snapshot)));
                }
            };
            let result = guarded(|| store.run(&experiment, &control, &mut progress));
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.running = false;
            match result {
                Ok(report) => state.report = Some(report),
                Err(status) => {
                    drop(state);
                    let _ = sender.blocking_send(Err(status));
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(replies))))
    }

    async fn report(&self, _request: Request<ReportRequest>) -> Result<Response<ReportReply>, Status> {
        let state = self.state();
        let report = state.report.as_ref().ok_or_else(|| Status::aborted("no experiment has ended"))?;
        let report_json = serde_json::to_string(report).map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(ReportReply { report_json }))
    }

    async fn stop(&self, _request: Request<StopRequest>) -> Result<Response<StopReply>, Status> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(Response::new(StopReply {}))
    }
}

fn message(snapshot: &Snapshot) -> Progress {
    let [ok, failed, unknown, skipped] = snapshot.outcomes;
    Progress {
        elapsed_ns: snapshot.elapsed_ns,
        ok,
        failed,
        unknown,
        skipped,
        response_times: snapshot.response_times.to_bytes(),
        is_warmup: snapshot.part == Part::WarmUp,
    }
}
