//! Simulated replayers, to measure a coordinator with many of them: all in one process. They answer
//! every call as a replayer would, and do nothing.

use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use analyzer::SummaryDocument;
use analyzer::figures::Summary;
use analyzer::join::{Place, Row};
use analyzer::timeline::Measured;
use analyzer::validate::Findings;
use futures::{Stream, StreamExt};
use schemas::latency::ResponseTimes;
use schemas::oplog::{LogRow, Outcome};
use schemas::plan::{Limit, Plan};
use schemas::rpc::replayer_server::{Replayer, ReplayerServer};
use schemas::rpc::{self, PROTOCOL_VERSION, Phase};
use schemas::run::{FragmentPosition, ReplayReport};
use schemas::sla::Sla;
use schemas::social::{Action, Operation, Social};
use schemas::vocabulary::Vocabulary;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// Operations per second of each simulated replayer.
const OPERATIONS_PER_S: u64 = 20_000;
/// The interval between progress reports, as in a replayer.
const PROGRESS: Duration = Duration::from_millis(500);
/// How many operations a summary has.
const SUMMARIZED: i64 = 2_000;

/// Listens as this many replayers, and prints their addresses. It runs until it is killed.
pub fn main(replayers: u32) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        for _ in 0..replayers {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            let service = ReplayerServer::new(Simulated::default());
            let incoming = TcpListenerStream::new(listener);
            tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        }
        std::io::stdout().flush()?;
        std::future::pending::<anyhow::Result<()>>().await
    })
}

#[derive(Default)]
struct Simulated {
    state: Mutex<State>,
    started: Arc<Notify>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    summary: Vec<u8>,
}

impl Simulated {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> Result<Plan, Status> {
        self.state().plan.clone().ok_or_else(|| Status::aborted("nothing is prepared"))
    }
}

fn seconds(plan: &Plan) -> f64 {
    match plan.limit {
        Limit::DurationS(seconds) => seconds,
        Limit::Sessions(_) | Limit::WholeTrace => 1.0,
    }
}

/// The nth response time; there are a few hundred different ones.
fn response_ns(n: u64) -> i64 {
    200_000 + (n * 7_919 % 997) as i64 * 3_000
}

fn times(operations: u64) -> ResponseTimes {
    let mut times = ResponseTimes::default();
    (0..operations.min(OPERATIONS_PER_S)).for_each(|n| times.record(response_ns(n)));
    times
}

fn report(plan: &Plan) -> ReplayReport {
    let elapsed_ns = (seconds(plan) * 1e9) as u64;
    let positions = plan.fragments.iter();
    let sessions = (seconds(plan) * OPERATIONS_PER_S as f64) as u64;
    ReplayReport {
        elapsed_ns,
        counted_ns: elapsed_ns,
        ok_counted: sessions,
        sessions,
        positions: positions.map(|f| FragmentPosition::at(f.fragment, f.first_session)).collect(),
        ok: sessions,
        worker_cpu_share: 0.5,
        dispatch_lag_ns_p99: 1_000,
        ..ReplayReport::default()
    }
}

/// The summary that `analyzer summarize` would have written.
fn summary(plan: &Plan, fleet: &ReplayReport, sla: &Sla) -> SummaryDocument {
    let counted_ns = fleet.elapsed_ns.min((seconds(plan) * 1e9) as u64);
    let measured =
        Measured { from_ns: fleet.warmup_ns as i64, elapsed_ns: fleet.elapsed_ns, counted_ns, planned_ns: None };
    let mut summary = Summary::new(Social::KINDS, sla.beta_ns, measured);
    for n in 0..SUMMARIZED {
        let start_ns = measured.from_ns + n * counted_ns as i64 / SUMMARIZED;
        let log = LogRow {
            session: n as u64,
            step: 0,
            try_number: 0,
            thread: 0,
            due_ns: None,
            start_ns,
            end_ns: start_ns + response_ns(n as u64),
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts: 1,
            outcome: Outcome::Ok,
        };
        let action = if n % 10 == 0 { Action::ListFriends } else { Action::ViewProfile };
        let operation = Operation { action, socialite: 0, target: 1, comment: None };
        let place = Place::default();
        let row = Row {
            log,
            operation,
            actor: 0,
            after: None,
            txn: None,
            kind: 0,
            noops: 0,
            warmup: false,
            drained: false,
            place,
            of_try: None,
        };
        summary.add(&row, &Findings::default());
    }
    SummaryDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        experiment: plan.experiment,
        trace_id: plan.trace_id.clone(),
        fragments: plan.fragments.iter().map(|fragment| fragment.fragment).collect(),
        report: None,
        sealed: Vec::new(),
        summary,
    }
}

type Replies<X> = Pin<Box<dyn Stream<Item = Result<X, Status>> + Send>>;

#[tonic::async_trait]
impl Replayer for Simulated {
    type LoadStream = Replies<rpc::LoadProgress>;
    type RunStream = Replies<rpc::Progress>;
    type FetchStream = Replies<rpc::FileChunk>;
    type CloseReadStream = Replies<rpc::CloseReadProgress>;

    async fn hello(&self, _: Request<rpc::HelloRequest>) -> Result<Response<rpc::HelloReply>, Status> {
        Ok(Response::new(rpc::HelloReply {
            protocol_version: PROTOCOL_VERSION,
            encore_version: env!("CARGO_PKG_VERSION").to_string(),
            cpus: 4,
            lease: "simulated".into(),
            host: "simulated".into(),
            system: "none".into(),
        }))
    }

    async fn clock(&self, _: Request<rpc::ClockRequest>) -> Result<Response<rpc::ClockReply>, Status> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(Response::new(rpc::ClockReply { unix_ns: now.as_nanos() as i64 }))
    }

    async fn release(&self, _: Request<rpc::ReleaseRequest>) -> Result<Response<rpc::ReleaseReply>, Status> {
        Ok(Response::new(rpc::ReleaseReply {}))
    }

    async fn offer(&self, _: Request<rpc::OfferRequest>) -> Result<Response<rpc::OfferReply>, Status> {
        Ok(Response::new(rpc::OfferReply { lacked: Vec::new(), is_fetching: false }))
    }

    async fn send(&self, _: Request<Streaming<rpc::FileChunk>>) -> Result<Response<rpc::SendReply>, Status> {
        Err(Status::aborted("no file is missing"))
    }

    async fn prepare(&self, request: Request<rpc::PrepareRequest>) -> Result<Response<rpc::PrepareReply>, Status> {
        let plan = serde_json::from_str(&request.into_inner().plan_json);
        self.state().plan = Some(plan.map_err(|e| Status::invalid_argument(e.to_string()))?);
        Ok(Response::new(rpc::PrepareReply { logs_are_shared: false, store_is_own: true }))
    }

    async fn load(&self, _: Request<rpc::LoadRequest>) -> Result<Response<Self::LoadStream>, Status> {
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn run(&self, _: Request<rpc::RunRequest>) -> Result<Response<Self::RunStream>, Status> {
        let (plan, started) = (self.plan()?, self.started.clone());
        let (sender, replies) = mpsc::channel(4);
        tokio::spawn(async move {
            let ready = rpc::Progress { phase: Phase::Ready.into(), ..Default::default() };
            let mut is_heard = sender.send(Ok(ready)).await.is_ok();
            started.notified().await;
            let ticks = (seconds(&plan) / PROGRESS.as_secs_f64()) as u64;
            for tick in 1..=ticks {
                tokio::time::sleep(PROGRESS).await;
                let ok = tick * OPERATIONS_PER_S / 2;
                let progress = rpc::Progress {
                    phase: Phase::Measuring.into(),
                    elapsed_ns: tick as i64 * PROGRESS.as_nanos() as i64,
                    ok,
                    response_times: times(ok).to_bytes(),
                    cpus_used: 0.5,
                    dispatch_lag_ns_max: 1_000,
                    ..Default::default()
                };
                is_heard = is_heard && sender.send(Ok(progress)).await.is_ok();
            }
        });
        Ok(Response::new(ReceiverStream::new(replies).boxed()))
    }

    async fn agree_start(&self, request: Request<rpc::StartProposal>) -> Result<Response<rpc::StartAnswer>, Status> {
        Ok(Response::new(rpc::StartAnswer { start_unix_ns: request.into_inner().start_unix_ns }))
    }

    async fn start(&self, _: Request<rpc::StartRequest>) -> Result<Response<rpc::StartReply>, Status> {
        self.started.notify_one();
        Ok(Response::new(rpc::StartReply { late_ns: 0 }))
    }

    async fn stop(&self, _: Request<rpc::StopRequest>) -> Result<Response<rpc::StopReply>, Status> {
        Ok(Response::new(rpc::StopReply {}))
    }

    async fn report(&self, _: Request<rpc::ReportRequest>) -> Result<Response<rpc::ReportReply>, Status> {
        let report_json = serde_json::to_string(&report(&self.plan()?)).map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(rpc::ReportReply { report_json }))
    }

    async fn close_read(&self, _: Request<rpc::CloseReadRequest>) -> Result<Response<Self::CloseReadStream>, Status> {
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn settle(&self, _: Request<rpc::SettleRequest>) -> Result<Response<rpc::SettleReply>, Status> {
        Ok(Response::new(rpc::SettleReply {}))
    }

    async fn summarize(
        &self,
        request: Request<rpc::SummarizeRequest>,
    ) -> Result<Response<rpc::SummarizeReply>, Status> {
        let rpc::SummarizeRequest { report_json, sla, .. } = request.into_inner();
        let fleet: ReplayReport =
            serde_json::from_str(&report_json).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let sla: Sla = sla.parse().map_err(|_| Status::invalid_argument("the SLA"))?;
        let document = summary(&self.plan()?, &fleet, &sla);
        self.state().summary = serde_json::to_vec(&document).map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(rpc::SummarizeReply {}))
    }

    async fn logs(&self, _: Request<rpc::LogsRequest>) -> Result<Response<rpc::LogsReply>, Status> {
        let state = self.state();
        let file = rpc::LogFile {
            path: "summary.json".into(),
            bytes: state.summary.len() as u64,
            blake3: blake3::hash(&state.summary).to_hex().to_string(),
        };
        Ok(Response::new(rpc::LogsReply { files: vec![file] }))
    }

    async fn fetch(&self, request: Request<rpc::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let (offset, summary) = (request.into_inner().offset, self.state().summary.clone());
        let data = summary.get(offset as usize..).unwrap_or_default().to_vec();
        let chunks: Vec<_> = data.chunks(rpc::CHUNK_BYTES).map(<[u8]>::to_vec).collect();
        let chunks = chunks.into_iter().map(|data| Ok(rpc::FileChunk { path: String::new(), offset: 0, data }));
        Ok(Response::new(futures::stream::iter(chunks).boxed()))
    }
}
