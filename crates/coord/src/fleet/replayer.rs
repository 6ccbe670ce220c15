//! One replayer of the fleet, on this machine or another: its lease, and the phases
//! of an experiment as calls.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use replayer::service::unguessable;
use schemas::latency::ResponseTimes;
use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::rpc::{self, Phase};
use schemas::run::{ClockReading, ExperimentFolder, FragmentPosition, Host, ReplayReport};
use schemas::sla::Sla;
use storage::Url;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Status;

use super::address::Address;
use super::clock::unix_ns;
use super::link::{self, Client, Credentials, PATIENCE, PAUSE, Patience, answer, is_on_the_way, patiently};
use super::local::Process;
use super::order::{FleetSetting, Logs, Order};
use super::transfer::{self, Logged};
use crate::failure::Failure;
use crate::terminal::Progress;

/// How long a replayer stays leased to this coordinator without a call. After that time an
/// experiment without its coordinator ends, and the coordinator gives up a replayer that it
/// cannot reach.
const LEASE: Duration = Duration::from_secs(15);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How often a clock is read; the reading with the shortest round trip counts.
const CLOCK_READINGS: usize = 8;

/// A replayer.
pub struct Replayer {
    /// Its name in messages.
    pub name: String,
    /// Its share of the work, relative to the other replayers.
    pub weight: f64,
    /// Its machine.
    pub host: Host,
    address: Address,
    credentials: Credentials,
    client: Client,
    process: Option<Process>,
    renewing: Option<JoinHandle<()>>,
}

/// What a replayer answers to a plan.
#[derive(Debug, Clone, Copy)]
pub struct Prepared {
    /// Whether it writes its logs to the run's folder itself.
    pub logs_are_shared: bool,
    /// Whether no other replayer uses its store.
    pub store_is_own: bool,
}

/// The progress of a replayer, and the phase of its experiment.
#[derive(Debug, Clone)]
pub struct Update {
    /// Its index in the fleet.
    pub index: usize,
    /// What it waits for or does.
    pub phase: Phase,
    /// Whether a session had to queue, and the plan ends the experiment then.
    pub is_overloaded: bool,
    /// Its figures.
    pub progress: Progress,
}

impl Replayer {
    /// Starts a replayer on this machine, in a process of its own.
    pub async fn start() -> Result<Replayer, Failure> {
        let token = unguessable().map_err(|e| Failure::tool(format!("no random number: {e}")))?;
        let (process, address) = Process::start(&token).await?;
        let credentials = Credentials::new(Some(&token))?;
        let client = link::client(&address, None, credentials.clone())?;
        let name = format!("replayer {address}");
        let mut replayer = Replayer::new(name, address, credentials, client);
        replayer.process = Some(process);
        replayer.greet().await?;
        Ok(replayer)
    }

    /// Connects to a replayer that waits at an address.
    pub async fn reach(address: &Address, setting: &FleetSetting) -> Result<Replayer, Failure> {
        let tls = setting.certificates.as_deref().map(|folder| link::tls(folder, &address.host)).transpose()?;
        let credentials = Credentials::new(setting.token.as_deref())?;
        let client = link::client(address, tls, credentials.clone())?;
        let mut replayer = Replayer::new(address.to_string(), address.clone(), credentials, client);
        match replayer.greet().await {
            Ok(()) => Ok(replayer),
            // Nothing has run yet, so there is nothing to retry for.
            Err(Failure::Lost(why) | Failure::Tool(why)) => {
                Err(Failure::usage(link::no_answer(address, &why, setting.certificates.as_deref())))
            }
            Err(failure) => Err(failure),
        }
    }

    fn new(name: String, address: Address, credentials: Credentials, client: Client) -> Replayer {
        let host = Host { name: String::new(), system: String::new(), cpus: 0 };
        let weight = address.weight;
        Replayer { name, weight, host, address, credentials, client, process: None, renewing: None }
    }

    /// Another client for calls to it.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether it is a process of this coordinator.
    pub fn is_local(&self) -> bool {
        self.process.is_some()
    }

    /// The call Hello: leases the replayer, and refuses one with another protocol version.
    async fn greet(&mut self) -> Result<(), Failure> {
        let request = rpc::HelloRequest {
            protocol_version: rpc::PROTOCOL_VERSION,
            encore_version: env!("CARGO_PKG_VERSION").to_string(),
            coordinator: format!("the coordinator on {} (process {})", Host::current().name, std::process::id()),
            lease_ms: LEASE.as_millis() as u32,
        };
        let reply = answer(self.client.hello(request)).await;
        let reply = self.understood(reply).await?.into_inner();
        if reply.protocol_version != rpc::PROTOCOL_VERSION {
            return Err(Failure::usage(format!(
                "{} has protocol version {} (Encore {}), this coordinator {} (Encore {}); install the same version of \
                 Encore on both",
                self.name,
                reply.protocol_version,
                reply.encore_version,
                rpc::PROTOCOL_VERSION,
                env!("CARGO_PKG_VERSION")
            )));
        }
        self.host = Host { name: reply.host, system: reply.system, cpus: reply.cpus };
        self.credentials.set_lease(&reply.lease);
        self.stop_renewing();
        let mut client = self.client();
        self.renewing = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL).await;
                // An error shows in the next call that matters.
                let _ = answer(client.clock(rpc::ClockRequest {})).await;
            }
        }));
        Ok(())
    }

    fn stop_renewing(&mut self) {
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
    }

    /// How long a call that fails on its way is repeated. A network that was cut may come back; a
    /// process on this machine that cannot be reached is dead.
    fn patience(&self) -> Patience {
        Patience::lasting(if self.is_local() { Duration::ZERO } else { LEASE })
    }

    /// Makes sure that the replayer can be reached and is leased to this coordinator, after an
    /// error in the fleet. A local process that died is started again; the coordinator waits for
    /// other replayers.
    pub async fn recover(&mut self, until: Instant) -> Result<(), Failure> {
        loop {
            // A replayer that is still leased would refuse a new lease, even to this coordinator.
            if answer(self.client.clock(rpc::ClockRequest {})).await.is_ok() {
                return Ok(());
            }
            if let Some(process) = self.process.take() {
                self.stop_renewing();
                process.kill().await;
                *self = Replayer { weight: self.weight, ..Replayer::start().await? };
                return Ok(());
            }
            match self.greet().await {
                Err(Failure::Lost(_)) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                greeted => return greeted,
            }
        }
    }

    /// The offset of its clock to this machine's.
    pub async fn clock(&mut self) -> Result<ClockReading, Failure> {
        let mut best: Option<ClockReading> = None;
        for _ in 0..CLOCK_READINGS {
            let client = self.client();
            let read = patiently(self.patience(), || {
                let mut client = client.clone();
                async move {
                    let (asked, asked_unix_ns) = (Instant::now(), unix_ns(SystemTime::now()));
                    let there_ns = answer(client.clock(rpc::ClockRequest {})).await?.into_inner().unix_ns;
                    Ok((asked.elapsed().as_nanos() as i64, asked_unix_ns, there_ns))
                }
            });
            let read = read.await;
            let (round_trip_ns, asked_unix_ns, there_ns) = self.understood(read).await?;
            let reading =
                ClockReading { offset_ns: there_ns.saturating_sub(asked_unix_ns + round_trip_ns / 2), round_trip_ns };
            if best.is_none_or(|best| best.round_trip_ns > round_trip_ns) {
                best = Some(reading);
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Sends the files of a trace set that it does not have.
    pub async fn send(
        &mut self,
        folder: &Path,
        url: Option<&Url>,
        manifest: &Manifest,
        sent: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), Failure> {
        let sent = transfer::send(&self.name, &self.client, self.patience(), (folder, url), manifest, sent).await;
        self.explained(sent).await
    }

    /// Sends a plan, which the replayer checks.
    pub async fn prepare(
        &mut self,
        plan: &Plan,
        experiment_folder: &Path,
        order: &Order<'_>,
    ) -> Result<Prepared, Failure> {
        let plan_json = serde_json::to_string(plan).unwrap_or_else(|e| unreachable!("a plan is plain data: {e}"));
        let Some(experiment_folder) = experiment_folder.to_str().map(String::from) else {
            let folder = experiment_folder.display();
            return Err(Failure::usage(format!("{folder}: the name of a run's folder must be UTF-8")));
        };
        let (run, unlogged) = (order.run.to_string(), order.logs == Logs::Unwritten);
        let request =
            rpc::PrepareRequest { plan_json, experiment_folder, run, unlogged, publish_to: self.publish_to(order) };
        let client = self.client();
        let reply = patiently(self.patience(), || {
            let (mut client, request) = (client.clone(), request.clone());
            async move { answer(client.prepare(request)).await }
        });
        let reply = reply.await;
        let rpc::PrepareReply { logs_are_shared, store_is_own } = self.understood(reply).await?.into_inner();
        Ok(Prepared { logs_are_shared, store_is_own })
    }

    /// Brings the store to the state that the plan starts from, or checks that it is in that
    /// state. Returns how many conditions of its data were checked and hold.
    pub async fn load(&mut self, part: rpc::Part, watch: &mut (dyn FnMut(u64, u64) + Send)) -> Result<u64, Failure> {
        let reply = answer(self.client.load(rpc::LoadRequest { part: part.into() })).await;
        let mut stream = self.understood(reply).await?.into_inner();
        let mut conditions = 0;
        loop {
            let message = stream.message().await;
            match self.understood(message).await? {
                Some(progress) => {
                    conditions = progress.conditions;
                    watch(progress.rows, progress.rows_total);
                }
                None => return Ok(conditions),
            }
        }
    }

    /// Runs the prepared experiment to its end, and sends its progress to `updates`. If the
    /// connection is lost, it is made again; the replayer runs on meanwhile.
    pub async fn run(
        &mut self,
        index: usize,
        run: rpc::RunRequest,
        updates: mpsc::Sender<Update>,
    ) -> Result<(), Failure> {
        // A process on this machine may hang too.
        let mut patience = Patience::lasting(LEASE);
        loop {
            let status = match self.watch(index, run, &updates, &mut patience).await {
                Ok(()) => return Ok(()),
                Err(status) => status,
            };
            let is_dead = match &mut self.process {
                Some(process) if is_on_the_way(&status) => process.death().await,
                _ => None,
            };
            if let Some(death) = is_dead {
                return Err(Failure::Lost(format!("{}: {death}", self.name)));
            }
            if !patience.tries_again(&status).await {
                return Err(self.failure(&status));
            }
        }
    }

    async fn watch(
        &mut self,
        index: usize,
        run: rpc::RunRequest,
        updates: &mpsc::Sender<Update>,
        patience: &mut Patience,
    ) -> Result<(), Status> {
        let left = patience.left().max(PAUSE);
        let reply = tokio::time::timeout(left, self.client.run(run)).await;
        let mut stream = reply.map_err(|_| Status::unavailable("it does not answer"))??.into_inner();
        while let Some(message) = stream.message().await? {
            patience.heard();
            let (response_times, service_times) = (times(&message.response_times), times(&message.service_times));
            let (Some(response_times), Some(service_times)) = (response_times, service_times) else {
                return Err(Status::internal("it sent an invalid histogram"));
            };
            let (phase, is_overloaded) = (message.phase(), message.overloaded);
            let progress = Progress {
                is_warmup: matches!(phase, Phase::WarmingUp | Phase::Warm),
                elapsed_ns: message.elapsed_ns,
                ok: message.ok,
                errors: message.failed + message.unknown + message.skipped,
                aborted: message.aborted,
                response_times: response_times.unwrap_or_default(),
                service_times,
                cpus_used: message.cpus_used,
                dispatch_lag_ns_max: message.dispatch_lag_ns_max,
                store_counters: message.store_counters.into_iter().collect(),
            };
            // The receiver is gone only if the coordinator gives up the experiment.
            let _ = updates.send(Update { index, phase, is_overloaded, progress }).await;
        }
        Ok(())
    }

    /// The report of the experiment that ended last.
    pub async fn report(&mut self) -> Result<ReplayReport, Failure> {
        let client = self.client();
        let reply = patiently(self.patience(), || {
            let mut client = client.clone();
            async move { answer(client.report(rpc::ReportRequest {})).await }
        });
        let reply = reply.await;
        let reply = self.understood(reply).await?.into_inner();
        serde_json::from_str(&reply.report_json)
            .map_err(|e| Failure::tool(format!("{} sent an invalid report: {e}", self.name)))
    }

    /// Makes the replayer read every item of its fragments. Calls `watch` with the items so far, and
    /// those of the data set.
    pub async fn close_read(
        &mut self,
        experiment: u32,
        watch: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), Failure> {
        let reply = answer(self.client.close_read(rpc::CloseReadRequest { experiment })).await;
        let mut stream = self.understood(reply).await?.into_inner();
        loop {
            let message = stream.message().await;
            match self.understood(message).await? {
                Some(progress) => watch(progress.items, progress.items_total),
                None => return Ok(()),
            }
        }
    }

    /// Makes the replayer record in the store where it stands.
    pub async fn settle(&mut self, positions: &[FragmentPosition], writes_not_ok: u64) -> Result<(), Failure> {
        let positions_json = serde_json::to_string(positions).unwrap_or_else(|e| unreachable!("plain data: {e}"));
        let request = rpc::SettleRequest { positions_json, writes_not_ok };
        let client = self.client();
        // A store that is being restarted needs some seconds.
        let reply = patiently(self.patience(), || {
            let (mut client, request) = (client.clone(), request.clone());
            async move { client.settle(request).await }
        });
        let reply = reply.await;
        self.understood(reply).await.map(|_| ())
    }

    /// Fetches the logs of an experiment, and returns how many.
    pub async fn fetch(&mut self, logged: &Logged, folder: &ExperimentFolder) -> Result<usize, Failure> {
        let target = |path: &str| transfer::is_log(path).then(|| folder.root().join(path));
        let fetched = transfer::fetch(&self.name, &self.client, self.patience(), logged, &target).await;
        self.explained(fetched).await
    }

    /// Where it publishes the logs of an experiment; empty: nowhere. The coordinator does so for a process of its own.
    pub fn publish_to(&self, order: &Order<'_>) -> String {
        let to = order.publish_to.filter(|_| !self.is_local() && matches!(order.logs, Logs::Left(_)));
        to.map(ToString::to_string).unwrap_or_default()
    }

    /// Makes the replayer summarize the logs of an experiment, and publish them if there is a place, and fetches the
    /// summary.
    pub async fn summarize(
        &mut self,
        logged: &Logged,
        folder: &ExperimentFolder,
        report: &ReplayReport,
        sla: &Sla,
        publish_to: String,
    ) -> Result<usize, Failure> {
        let Logged { run, experiment } = logged.clone();
        let report_json = serde_json::to_string(report).unwrap_or_else(|e| unreachable!("plain data: {e}"));
        let request = rpc::SummarizeRequest { run, experiment, report_json, sla: sla.to_string(), publish_to };
        let client = self.client();
        // A summary takes time; the keep-alive notices a replayer that is gone.
        let reply = patiently(self.patience(), || {
            let (mut client, request) = (client.clone(), request.clone());
            async move { client.summarize(request).await }
        });
        let reply = reply.await;
        self.understood(reply).await?;
        let name = self.address().replace([':', '[', ']'], "_");
        let target = |path: &str| (path == "summary.json").then(|| folder.summaries().join(format!("{name}.json")));
        let fetched = transfer::fetch(&self.name, &self.client, self.patience(), logged, &target).await;
        self.explained(fetched).await
    }

    /// Releases the replayer, and ends a local process.
    pub async fn end(mut self) {
        self.stop_renewing();
        // A replayer that cannot be reached notices when its lease runs out.
        let _ = tokio::time::timeout(PATIENCE, self.client.release(rpc::ReleaseRequest {})).await;
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }

    /// The answer, or why there is none: the error of the replayer, or that it died.
    async fn understood<X>(&mut self, reply: Result<X, Status>) -> Result<X, Failure> {
        let failed = reply.map_err(|status| self.failure(&status));
        self.explained(failed).await
    }

    /// What its error status means.
    fn failure(&self, status: &Status) -> Failure {
        match self.is_local() {
            true => link::failure_here(&self.name, status),
            false => link::failure(&self.name, status),
        }
    }

    /// Replaces the error of a process that cannot be reached by how the process died.
    async fn explained<X>(&mut self, result: Result<X, Failure>) -> Result<X, Failure> {
        if let (Err(Failure::Lost(_)), Some(process)) = (&result, &mut self.process)
            && let Some(death) = process.death().await
        {
            return Err(Failure::Lost(format!("{}: {death}", self.name)));
        }
        result
    }

    /// Its address, for documents.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

/// A histogram in a message, if it has one; None if the bytes are something else.
fn times(bytes: &[u8]) -> Option<Option<ResponseTimes>> {
    if bytes.is_empty() { Some(None) } else { ResponseTimes::from_bytes(bytes).map(Some) }
}
