//! The replayer as a service: a coordinator prepares, loads, starts and
//! collects experiments over gRPC (`schemas/proto/replayer.proto`).

mod accept;
mod access;
mod job;
mod lease;
mod logs;
mod paths;
mod shelf;
mod summarize;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use schemas::files::FileError;
use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::rpc::replayer_server::{Replayer, ReplayerServer};
use schemas::rpc::{
    ClockReply, ClockRequest, FetchRequest, FileChunk, HelloReply, HelloRequest, LEASE, LackedFile, LoadProgress,
    LoadRequest, LogsReply, LogsRequest, MESSAGE_BYTES_MAX, OfferReply, OfferRequest, PROTOCOL_VERSION, PrepareReply,
    PrepareRequest, Progress, ReleaseReply, ReleaseRequest, ReportReply, ReportRequest, RunRequest, SendReply,
    SettleReply, SettleRequest, StartAnswer, StartProposal, StartReply, StartRequest, StopReply, StopRequest,
    SummarizeReply, SummarizeRequest,
};
use schemas::run::{ExperimentFolder, FragmentPosition, Host, ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::trace::TableError;
use schemas::{files, rpc};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};

pub use access::{Access, Misuse, Token};
use job::{Job, Runner, job};
use lease::Leases;
pub use lease::unguessable;
pub use paths::Shares;
use shelf::{Receiving, Shelf, ShelfError};

use crate::clock::unix_ns;
use crate::experiment::{Control, Experiment, ExperimentError, StoreDuty};
use crate::source::Source;
use crate::stores::{self, AnyStore, Blame, StoreError};

/// How often loading is told of.
const PROGRESS: Duration = Duration::from_millis(500);
/// How often a connection is asked whether it lives, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
const PING_ANSWERED: Duration = Duration::from_secs(20);
/// How often leases are looked after.
const WATCH: Duration = Duration::from_millis(100);
/// Time enough to hear a start that was committed.
const HEARING: Duration = Duration::from_millis(50);

/// How far from now a start may be, by the replayer's clock.
const START_WITHIN: Duration = Duration::from_secs(30);

/// What a replayer is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it keeps trace sets that it is sent, and the logs of experiments.
    pub work: PathBuf,
    /// Where else a coordinator may have it read and write.
    pub shares: Shares,
    /// The most bytes of a trace set that it is sent.
    pub trace_bytes_max: u64,
    /// Who may speak to it.
    pub access: Access,
}

/// Serves until `end` is done. `listening` is called with the address once
/// connections are accepted.
pub async fn serve(
    settings: Settings,
    listening: impl FnOnce(SocketAddr),
    end: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let address = settings.address;
    settings.access.check(address)?;
    let tls = settings.access.tls()?;
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|e| anyhow::anyhow!("--listen {address}: {e}; take another port, or port 0 for any that is free"))?;
    // A coordinator that is gone without a word is noticed by its silence.
    let mut server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING_ANSWERED));
    if let Some(tls) = tls {
        server = server.tls_config(tls).map_err(|e| Misuse(format!("--certs: {}", rpc::innermost(&e))))?;
    }
    listening(listener.local_addr()?);
    let service = Service::new(settings);
    let watched = tokio::spawn(service.clone().watch_lease());
    let stopping = service.clone();
    server
        .add_service(
            ReplayerServer::new(service.clone())
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
        )
        .serve_with_incoming_shutdown(accept::incoming(listener), async move {
            end.await;
            stopping.stop.store(true, Ordering::Relaxed);
        })
        .await?;
    watched.abort();
    // What is in flight is finished and logged, whoever is still there to ask for it.
    let work = service.work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = work {
        // A panic in it has been reported where it happened.
        let _ = work.join();
    }
    Ok(())
}

/// One replayer, which works on one experiment at a time.
#[derive(Clone)]
struct Service {
    settings: Arc<Settings>,
    shelf: Shelf,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    /// Whether what is in flight is to be given up too.
    abandon: Arc<AtomicBool>,
    /// The thread that loads or runs, or did so last.
    work: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Default)]
struct State {
    leases: Leases,
    /// Kept between experiments, as long as the URL stays the same: a store in
    /// this process would be empty otherwise.
    store: Option<(String, Arc<dyn AnyStore>)>,
    offered: Option<Arc<Manifest>>,
    prepared: Option<Arc<Experiment>>,
    job: Option<Arc<Job>>,
    report: Option<ReplayReport>,
}

impl State {
    fn is_running(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.has_ended())
    }
}

impl Service {
    fn new(settings: Settings) -> Service {
        Service {
            shelf: Shelf::new(settings.work.clone(), settings.trace_bytes_max),
            settings: Arc::new(settings),
            state: Arc::default(),
            stop: Arc::default(),
            abandon: Arc::default(),
            work: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocking work gets a thread of its own, once the work before is over: a load that
    /// nobody waits for any more must not meet the next one.
    fn work_on(&self, work: impl FnOnce() + Send + 'static) {
        let mut latest = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.take();
        *latest = Some(std::thread::spawn(move || {
            // A panic in it has been reported where it happened.
            let _ = before.map(JoinHandle::join);
            work();
        }));
    }

    /// Ends the experiment of a coordinator that is not heard of any more.
    async fn watch_lease(self) {
        loop {
            tokio::time::sleep(WATCH).await;
            let mut state = self.state();
            if state.leases.has_run_out(Instant::now()) && state.is_running() {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The call of whoever has the replayer; renews the lease.
    fn admitted<X>(&self, request: Request<X>) -> Result<X, Status> {
        self.renew(request.metadata())?;
        Ok(request.into_inner())
    }

    /// Renews the lease that a call names.
    fn renew(&self, metadata: &MetadataMap) -> Result<(), Status> {
        self.settings.access.admit(metadata)?;
        let lease = metadata.get(LEASE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.state().leases.renew(Instant::now(), lease).map_err(Status::permission_denied)
    }

    fn prepared(&self) -> Result<(Arc<dyn AnyStore>, Arc<Experiment>), Status> {
        let state = self.state();
        match (&state.store, &state.prepared) {
            (Some((_, store)), Some(experiment)) => Ok((store.clone(), experiment.clone())),
            _ => Err(Status::aborted("no experiment is prepared")),
        }
    }

    fn job(&self) -> Result<Arc<Job>, Status> {
        self.state().job.clone().ok_or_else(|| Status::aborted("no experiment runs"))
    }

    /// The trace set of a plan: where the coordinator has it if that is shared, else
    /// as it was sent.
    fn trace(&self, plan: &Plan) -> Result<PathBuf, Status> {
        if self.shares(&plan.trace, &plan.trace_id) {
            return Ok(plan.trace.clone());
        }
        let offered = self.state().offered.clone().filter(|manifest| manifest.trace_id == plan.trace_id);
        let manifest = offered.ok_or_else(|| Status::aborted("the plan's trace set was not offered"))?;
        self.shelf.assemble(&manifest).map_err(|e| shelf_status(&e))
    }

    /// Whether a trace set is in a folder that both sides see.
    fn shares(&self, folder: &Path, trace_id: &str) -> bool {
        self.settings.shares.hold(folder) && Source::open(folder).is_ok_and(|s| s.manifest.trace_id == trace_id)
    }

    fn own_experiment(&self, run: &str, experiment: u32) -> Result<ExperimentFolder, Status> {
        let none =
            || Status::not_found(format!("no experiment {experiment} of run {run:?} is in this replayer's folder"));
        if !paths::is_name(run) {
            return Err(none());
        }
        let run = RunFolder::new(self.settings.work.join("runs").join(run));
        let found = run.experiments().map_err(|e| Status::internal(e.to_string()))?;
        found.into_iter().find(|(number, _)| *number == experiment).map(|(_, folder)| folder).ok_or_else(none)
    }
}

/// The codes that `replayer.proto` promises.
fn status(error: &ExperimentError) -> Status {
    let code = match error {
        ExperimentError::Store(StoreError { blame: Blame::State, .. }) => Code::FailedPrecondition,
        ExperimentError::Table(TableError { io: Some(kind), .. }) if is_full(*kind) => Code::ResourceExhausted,
        ExperimentError::File(error) if is_full(error.source.kind()) => Code::ResourceExhausted,
        error if error.is_usage() => Code::InvalidArgument,
        _ => Code::Internal,
    };
    Status::new(code, error.to_string())
}

fn shelf_status(error: &ShelfError) -> Status {
    let code = match error {
        ShelfError::Manifest(_) | ShelfError::Taken(_) => Code::InvalidArgument,
        ShelfError::Damaged { .. } => Code::DataLoss,
        ShelfError::NoRoom(_) => Code::ResourceExhausted,
        ShelfError::File(error) => return file_status(error),
    };
    Status::new(code, error.to_string())
}

fn file_status(error: &FileError) -> Status {
    let is_full = is_full(error.source.kind());
    Status::new(if is_full { Code::ResourceExhausted } else { Code::Internal }, error.to_string())
}

/// A start that is far off is a mistake of a clock, and would hold the replayer up.
fn check_start(start_unix_ns: i64) -> Result<(), Status> {
    let now_ns = unix_ns();
    let away = Duration::from_nanos(start_unix_ns.saturating_sub(now_ns).unsigned_abs());
    if away <= START_WITHIN {
        return Ok(());
    }
    let side = if start_unix_ns > now_ns { "after" } else { "before" };
    Err(Status::invalid_argument(format!(
        "the start is {:.0} s {side} now by this replayer's clock, and may be {} s away; set the clocks right",
        away.as_secs_f64(),
        START_WITHIN.as_secs()
    )))
}

/// Whether a disk has no room left, or not for this user.
fn is_full(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

/// A panic must reach the coordinator too, as an error.
fn guarded<X>(work: impl FnOnce() -> Result<X, ExperimentError>) -> Result<X, Status> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| status(&e)),
        Err(_) => Err(Status::internal("the replayer panicked; its standard error says where")),
    }
}

fn duty(part: i32) -> StoreDuty {
    match rpc::Part::try_from(part) {
        Ok(rpc::Part::Leads) => StoreDuty::Leads,
        Ok(rpc::Part::Follows) => StoreDuty::Follows,
        Ok(rpc::Part::Alone) | Err(_) => StoreDuty::Alone,
    }
}

type Replies<X> = Pin<Box<dyn Stream<Item = Result<X, Status>> + Send>>;

#[tonic::async_trait]
impl Replayer for Service {
    type LoadStream = Replies<LoadProgress>;
    type RunStream = Replies<Progress>;
    type FetchStream = Replies<FileChunk>;

    async fn hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        self.settings.access.admit(request.metadata())?;
        let asked = request.into_inner();
        let encore_version = env!("CARGO_PKG_VERSION").to_string();
        if asked.protocol_version != PROTOCOL_VERSION {
            return Err(Status::unimplemented(format!(
                "this replayer (Encore {encore_version}) speaks protocol {PROTOCOL_VERSION}, the coordinator (Encore {}) speaks protocol {}",
                asked.encore_version, asked.protocol_version
            )));
        }
        let lease = unguessable().map_err(|e| Status::internal(format!("no random number: {e}")))?;
        let length = Duration::from_millis(asked.lease_ms.into());
        let mut state = self.state();
        let has_run_out = state.leases.has_run_out(Instant::now());
        if has_run_out && state.is_running() {
            let whose = state.leases.coordinator();
            return Err(Status::permission_denied(format!(
                "an experiment of {whose} is ending; ask again in a moment"
            )));
        }
        state
            .leases
            .grant(Instant::now(), lease.clone(), asked.coordinator, length)
            .map_err(Status::permission_denied)?;
        // The last one's store, whose URL may hold secrets, is no business of the next one.
        *state = State { leases: std::mem::take(&mut state.leases), ..State::default() };
        let Host { name, system, cpus } = Host::current();
        let protocol_version = PROTOCOL_VERSION;
        Ok(Response::new(HelloReply { protocol_version, encore_version, cpus, lease, host: name, system }))
    }

    async fn clock(&self, request: Request<ClockRequest>) -> Result<Response<ClockReply>, Status> {
        self.admitted(request)?;
        Ok(Response::new(ClockReply { unix_ns: unix_ns() }))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Result<Response<ReleaseReply>, Status> {
        self.admitted(request)?;
        let mut state = self.state();
        state.leases.end();
        if state.is_running() {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(Response::new(ReleaseReply {}))
    }

    async fn offer(&self, request: Request<OfferRequest>) -> Result<Response<OfferReply>, Status> {
        let OfferRequest { manifest_json, folder } = self.admitted(request)?;
        let manifest = self.shelf.manifest(&manifest_json).map_err(|e| shelf_status(&e))?;
        let is_shared = self.shares(Path::new(&folder), &manifest.trace_id);
        let lacked = if is_shared { Vec::new() } else { self.shelf.lacked(&manifest) };
        if !lacked.is_empty() {
            self.shelf.claim().map_err(|e| shelf_status(&e))?;
        }
        self.state().offered = Some(Arc::new(manifest));
        let lacked = lacked.into_iter().map(|(entry, offset)| LackedFile { path: entry.path, offset });
        Ok(Response::new(OfferReply { lacked: lacked.collect() }))
    }

    async fn send(&self, request: Request<Streaming<FileChunk>>) -> Result<Response<SendReply>, Status> {
        let metadata = request.metadata().clone();
        let mut chunks = self.admitted(request)?;
        let mut receiving: Option<Receiving> = None;
        while let Some(chunk) = chunks.message().await? {
            self.renew(&metadata)?;
            let file = match &mut receiving {
                Some(file) => file,
                None => {
                    let offered = self.state().offered.clone();
                    let offered = offered.ok_or_else(|| Status::aborted("no trace set was offered"))?;
                    let entry = offered.files.iter().find(|entry| entry.path == chunk.path).cloned();
                    let entry = entry.ok_or_else(|| Status::not_found("the trace set offered has no such file"))?;
                    let shelf = self.shelf.clone();
                    // What is there already is read, which may take a while.
                    let opened = tokio::task::spawn_blocking(move || shelf.receive(&entry, chunk.offset)).await;
                    let opened = opened.map_err(|e| Status::internal(e.to_string()))?;
                    receiving.insert(opened.map_err(|e| shelf_status(&e))?)
                }
            };
            file.write(&chunk.data).map_err(|e| shelf_status(&e))?;
        }
        let receiving = receiving.ok_or_else(|| Status::invalid_argument("no file was sent"))?;
        receiving.finish().map_err(|e| shelf_status(&e))?;
        Ok(Response::new(SendReply {}))
    }

    async fn prepare(&self, request: Request<PrepareRequest>) -> Result<Response<PrepareReply>, Status> {
        let request = self.admitted(request)?;
        let mut plan: Plan =
            serde_json::from_str(&request.plan_json).map_err(|e| Status::invalid_argument(format!("plan: {e}")))?;
        if self.state().is_running() {
            return Err(Status::aborted("an experiment is running"));
        }
        plan.trace = self.trace(&plan)?;
        let shared = PathBuf::from(request.experiment_folder);
        let logs_are_shared = self.settings.shares.hold(&shared);
        let folder = if logs_are_shared {
            shared
        } else if paths::is_name(&request.run) {
            self.shelf.claim().map_err(|e| shelf_status(&e))?;
            let run = RunFolder::new(self.settings.work.join("runs").join(&request.run));
            run.experiment(plan.experiment, plan.threads).root().to_path_buf()
        } else {
            return Err(Status::invalid_argument(format!("{:?} is not the name of a run", request.run)));
        };
        let url = plan.store.clone();
        let mut experiment = Experiment::prepare(plan, folder).map_err(|e| status(&e))?;
        if request.unlogged {
            experiment = experiment.without_log();
        }
        if logs_are_shared {
            let is_whole = is_all_of_it(&experiment);
            experiment = experiment.in_shared_folder(is_whole);
        }
        let mut state = self.state();
        if state.store.as_ref().is_none_or(|(open, _)| *open != url) {
            let store = stores::open(&url).map_err(|e| status(&ExperimentError::Store(e)))?;
            state.store = Some((url, Arc::from(store)));
        }
        let store_is_own = state.store.as_ref().is_some_and(|(_, store)| store.in_process());
        state.prepared = Some(Arc::new(experiment));
        (state.job, state.report) = (None, None);
        self.stop.store(false, Ordering::Relaxed);
        self.abandon.store(false, Ordering::Relaxed);
        Ok(Response::new(PrepareReply { logs_are_shared, store_is_own }))
    }

    async fn load(&self, request: Request<LoadRequest>) -> Result<Response<Self::LoadStream>, Status> {
        let duty = duty(self.admitted(request)?.part);
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
                match experiment.continues() || duty == StoreDuty::Follows {
                    // No load would bring the store there, or another one has loaded it: it
                    // is there, or it never will be.
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

    async fn run(&self, request: Request<RunRequest>) -> Result<Response<Self::RunStream>, Status> {
        let RunRequest { experiment: number, part, warm_up } = self.admitted(request)?;
        let watched = self.state().job.clone();
        let watched = match watched {
            Some(job) if job.experiment == number => job,
            _ => self.begin(number, duty(part), warm_up)?,
        };
        let mut seen = watched.watch();
        let (sender, replies) = mpsc::channel(4);
        tokio::spawn(async move {
            loop {
                let now = seen.borrow_and_update().clone();
                // A coordinator that is gone may come back, and ask anew.
                if sender.send(Ok(now.progress)).await.is_err() {
                    return;
                }
                match now.end {
                    Some(Ok(())) => return,
                    Some(Err(status)) => {
                        let _ = sender.send(Err(status)).await;
                        return;
                    }
                    None if seen.changed().await.is_err() => return,
                    None => {}
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(replies))))
    }

    async fn agree_start(&self, request: Request<StartProposal>) -> Result<Response<StartAnswer>, Status> {
        let proposed = self.admitted(request)?.start_unix_ns;
        // What has passed is answered with the earliest that is left.
        check_start(proposed.max(unix_ns()))?;
        self.job()?;
        let earliest = unix_ns() + HEARING.as_nanos() as i64;
        Ok(Response::new(StartAnswer { start_unix_ns: proposed.max(earliest) }))
    }

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartReply>, Status> {
        let start_unix_ns = self.admitted(request)?.start_unix_ns;
        check_start(start_unix_ns)?;
        match self.job()?.start(start_unix_ns) {
            true => Ok(Response::new(StartReply { late_ns: (unix_ns() - start_unix_ns).max(0) })),
            false => Err(Status::aborted("the experiment waits for no start, or was stopped")),
        }
    }

    async fn stop(&self, request: Request<StopRequest>) -> Result<Response<StopReply>, Status> {
        let StopRequest { abandon } = self.admitted(request)?;
        self.stop.store(true, Ordering::Relaxed);
        self.abandon.fetch_or(abandon, Ordering::Relaxed);
        Ok(Response::new(StopReply {}))
    }

    async fn report(&self, request: Request<ReportRequest>) -> Result<Response<ReportReply>, Status> {
        self.admitted(request)?;
        let state = self.state();
        let report = state.report.as_ref().ok_or_else(|| Status::aborted("no experiment has ended"))?;
        let report_json = serde_json::to_string(report).map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(ReportReply { report_json }))
    }

    async fn settle(&self, request: Request<SettleRequest>) -> Result<Response<SettleReply>, Status> {
        let SettleRequest { positions_json, writes_not_ok } = self.admitted(request)?;
        let positions: Vec<FragmentPosition> =
            serde_json::from_str(&positions_json).map_err(|e| Status::invalid_argument(format!("positions: {e}")))?;
        let (store, job) = {
            let state = self.state();
            let store = state.store.as_ref().map(|(_, store)| store.clone());
            store.zip(state.job.clone()).ok_or_else(|| Status::aborted("no experiment has ended"))?
        };
        let settled = tokio::task::spawn_blocking(move || {
            guarded(|| Ok(store.settle(job.experiment, &positions, writes_not_ok)?))
        });
        settled.await.map_err(|e| Status::internal(e.to_string()))??;
        Ok(Response::new(SettleReply {}))
    }

    async fn summarize(&self, request: Request<SummarizeRequest>) -> Result<Response<SummarizeReply>, Status> {
        let SummarizeRequest { run, experiment, report_json, sla } = self.admitted(request)?;
        let folder = self.own_experiment(&run, experiment)?;
        let report: ReplayReport =
            serde_json::from_str(&report_json).map_err(|e| Status::invalid_argument(format!("report: {e}")))?;
        let sla: Sla = sla.parse().map_err(|e| Status::invalid_argument(format!("SLA: {e}")))?;
        let summarized = tokio::task::spawn_blocking(move || summarize::summarize(&folder, &report, &sla));
        summarized.await.map_err(|e| Status::internal(e.to_string()))??;
        Ok(Response::new(SummarizeReply {}))
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Result<Response<LogsReply>, Status> {
        let LogsRequest { run, experiment } = self.admitted(request)?;
        let folder = self.own_experiment(&run, experiment)?;
        let listed = tokio::task::spawn_blocking(move || logs::list(folder.root()));
        let files = listed.await.map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(LogsReply { files: files.map_err(|e| file_status(&e))? }))
    }

    async fn fetch(&self, request: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let FetchRequest { run, experiment, path, offset } = self.admitted(request)?;
        let folder = self.own_experiment(&run, experiment)?;
        if !paths::is_below(&path) {
            return Err(Status::not_found(format!("no file {path:?}")));
        }
        let file = folder.root().join(&path);
        let mut opened =
            std::fs::File::open(&file).map_err(|e| Status::not_found(format!("{}: {e}", file.display())))?;
        let (sender, replies) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || logs::send(&mut opened, &file, path, offset, &sender));
        Ok(Response::new(ReceiverStream::new(replies).boxed()))
    }
}

impl Service {
    /// Runs the prepared experiment on a thread of its own.
    fn begin(&self, number: u32, duty: StoreDuty, others_warm_up: bool) -> Result<Arc<Job>, Status> {
        let (store, experiment) = self.prepared()?;
        if experiment.plan().experiment != number {
            let prepared = experiment.plan().experiment;
            return Err(Status::aborted(format!("experiment {prepared} is prepared, not {number}")));
        }
        let warms_up = experiment.has_warmup() || others_warm_up;
        let (job, runner): (Job, Arc<Runner>) = job(number, warms_up, self.stop.clone());
        let job = Arc::new(job);
        {
            let mut state = self.state();
            if state.is_running() {
                return Err(Status::aborted("an experiment is running"));
            }
            (state.prepared, state.job) = (None, Some(job.clone()));
        }
        let (stop, abandon) = (self.stop.clone(), self.abandon.clone());
        let control = Control { stop, abandon, start: Some(runner.signal()), others_warm_up, duty };
        let state = self.state.clone();
        self.work_on(move || {
            let result = guarded(|| store.run(&experiment, &control, &mut |snapshot| runner.progress(&snapshot)));
            let end = result.map(|report| {
                state.lock().unwrap_or_else(PoisonError::into_inner).report = Some(report);
            });
            runner.end(end);
        });
        Ok(job)
    }
}

/// Whether the plan that a coordinator keeps in the experiment's folder has no fragments
/// but this replayer's: then it reports there even when the coordinator is gone.
fn is_all_of_it(experiment: &Experiment) -> bool {
    let whole = files::read_json::<Plan>(&experiment.folder.join("plan.json"));
    whole.is_ok_and(|whole| whole.fragments.len() == experiment.plan().fragments.len())
}
