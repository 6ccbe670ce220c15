//! The service as a coordinator sees it.

mod common;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{plan, trace};
use replayer::service::{Access, Settings, Shares, Token};
use replayer::source::Source;
use schemas::oplog::LogReader;
use schemas::plan::{Limit, Plan};
use schemas::rpc::replayer_client::ReplayerClient;
use schemas::rpc::{
    ClockRequest, FetchRequest, FileChunk, HelloRequest, LEASE, LoadRequest, LogsRequest, OfferRequest,
    PROTOCOL_VERSION, Part, Phase, PrepareRequest, Progress, ReportRequest, RunRequest, StartAnswer, StartProposal,
    StartRequest, StopRequest,
};
use schemas::run::{EndReason, ExperimentFolder, ReplayReport};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// A lease that no test outlives, however slow the machine.
const LONG: Duration = Duration::from_secs(600);

/// A client whose calls carry a lease, and a token if there is one.
type Client = ReplayerClient<InterceptedService<Channel, Carried>>;

#[derive(Clone, Default)]
struct Carried {
    lease: Option<MetadataValue<Ascii>>,
    token: Option<MetadataValue<Ascii>>,
}

impl tonic::service::Interceptor for Carried {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for (name, value) in [(LEASE, &self.lease), ("authorization", &self.token)] {
            if let Some(value) = value {
                request.metadata_mut().insert(name, value.clone());
            }
        }
        Ok(request)
    }
}

/// Asks for the replayer, as a coordinator of this name.
async fn hello(channel: &Channel, name: &str, lease: Duration, carried: Carried) -> Result<Client, Status> {
    let mut client = ReplayerClient::with_interceptor(channel.clone(), carried.clone());
    let request = HelloRequest {
        protocol_version: PROTOCOL_VERSION,
        encore_version: "test".into(),
        coordinator: name.into(),
        lease_ms: lease.as_millis() as u32,
    };
    let lease = client.hello(request).await?.into_inner().lease;
    let carried = Carried { lease: Some(lease.parse().expect("a name")), ..carried };
    Ok(ReplayerClient::with_interceptor(channel.clone(), carried))
}

fn settings(work: &Path, shares: &[PathBuf], token: Option<&str>) -> Settings {
    Settings {
        address: "127.0.0.1:0".parse().expect("an address"),
        work: work.to_path_buf(),
        shares: Shares::new(shares).expect("folders"),
        confines_stores: true,
        trace_bytes_max: 1 << 30,
        access: Access { certificates: None, token: token.map(|token| Token::new(token).expect("a token")) },
    }
}

/// Serves in this process while `speak` runs with a connection.
fn with_settings<X>(settings: Settings, speak: impl AsyncFnOnce(Channel) -> X) -> X {
    with_address(settings, async |address| {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        speak(endpoint.connect().await.expect("a connection")).await
    })
}

/// The same for clients that connect by themselves.
fn with_address<X>(settings: Settings, speak: impl AsyncFnOnce(SocketAddr) -> X) -> X {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    runtime.block_on(async {
        let (sender, address) = tokio::sync::oneshot::channel();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let listening = move |address| sender.send(address).expect("the test waits for it");
        let service = tokio::spawn(replayer::service::serve(settings, listening, async {
            // Dropping the sender ends the service too.
            let _ = ended.await;
        }));
        let result = speak(address.await.expect("an address")).await;
        end.send(()).expect("it still serves");
        service.await.expect("no panic").expect("it served");
        result
    })
}

/// A service that shares a folder with the coordinator. The coordinator holds the lease already.
fn with_service<X>(shared: &Path, speak: impl AsyncFnOnce(Client) -> X) -> X {
    let settings = settings(&shared.join("work"), &[shared.to_path_buf()], None);
    with_settings(settings, async |channel| {
        speak(hello(&channel, "test", LONG, Carried::default()).await.expect("a lease")).await
    })
}

/// Prepare and Load, with the plan in the experiment's folder as a coordinator keeps it.
async fn ready(client: &mut Client, plan: &Plan, folder: &Path) -> Result<(), Status> {
    let kept = ExperimentFolder::new(folder.join(plan.experiment.to_string()));
    std::fs::create_dir_all(kept.root()).expect("a folder");
    schemas::files::write_json(&kept.plan(), plan).expect("a plan");
    ready_in(client, plan, &kept).await
}

/// Prepare and Load in a folder, whatever it contains.
async fn ready_in(client: &mut Client, plan: &Plan, folder: &ExperimentFolder) -> Result<(), Status> {
    let experiment_folder = folder.root().display().to_string();
    let plan_json = serde_json::to_string(plan).expect("JSON");
    client
        .prepare(PrepareRequest { plan_json, experiment_folder, run: "test".into(), ..PrepareRequest::default() })
        .await?;
    let mut loading = client.load(LoadRequest { part: Part::Alone.into() }).await?.into_inner();
    while loading.message().await?.is_some() {}
    Ok(())
}

/// Run until it is ready, AgreeStart and Start; the stream goes on.
async fn start(client: &mut Client, experiment: u32) -> Result<tonic::Streaming<Progress>, Status> {
    let request = RunRequest { experiment, part: Part::Alone.into(), warm_up: false };
    let mut running = client.run(request).await?.into_inner();
    while running.message().await?.expect("it waits for its start").phase() != Phase::Ready {}
    agree(client).await?;
    Ok(running)
}

/// AgreeStart and Start.
async fn agree(client: &mut Client) -> Result<i64, Status> {
    let StartAnswer { start_unix_ns } = client.agree_start(StartProposal { start_unix_ns: 0 }).await?.into_inner();
    client.start(StartRequest { start_unix_ns }).await?;
    Ok(start_unix_ns)
}

async fn report(client: &mut Client) -> Result<ReplayReport, Status> {
    let report = client.report(ReportRequest {}).await?.into_inner();
    Ok(serde_json::from_str(&report.report_json).expect("a report"))
}

/// All phases of an experiment.
async fn experiment(client: &mut Client, plan: &Plan, folder: &Path) -> Result<ReplayReport, Status> {
    ready(client, plan, folder).await?;
    let mut running = start(client, plan.experiment).await?;
    while let Some(progress) = running.message().await? {
        if progress.phase() == Phase::Warm {
            agree(client).await?;
        }
    }
    report(client).await
}

fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i64
}

fn planned(source: &Source, experiment: u32, store: &str, plan: Plan) -> Plan {
    assert_eq!(plan.trace, source.folder);
    Plan { experiment, store: store.into(), ..plan }
}

/// A store in the service's process lives as long as the service. Before a plan that continues,
/// no data set is loaded.
#[test]
fn experiments_continue_through_the_service() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2"]);
    let sqlite = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    for (number, url) in [(1, "memory:"), (4, sqlite.as_str())] {
        with_service(folder.path(), async |mut client| {
            let first = planned(&source, number, url, plan(&source, 3, Limit::Sessions(150), &[], 10));
            let first = experiment(&mut client, &first, folder.path()).await.expect("an experiment");
            let next = planned(&source, number + 1, url, plan(&source, 3, Limit::Sessions(90), &first.positions, 0));
            let second = experiment(&mut client, &next, folder.path()).await.expect("an experiment");
            assert_eq!((&second.end, second.sessions, second.failed), (&EndReason::Limit, 90, 0), "{url}");
            // The store is 250 sessions after the beginning.
            let rest = planned(&source, number + 2, url, plan(&source, 3, Limit::WholeTrace, &second.positions, 0));
            let rest = experiment(&mut client, &rest, folder.path()).await.expect("an experiment");
            assert_eq!((rest.sessions, rest.ok), (150, 150), "{url}");
        });
    }
    let store = replayer::any_store::open(&sqlite).expect("a store");
    let expected = tracegen::digest(&source.folder, tracegen::Ran::All).expect("a digest");
    assert_eq!(store.digest(&source).expect("a digest"), expected);
}

/// A coordinator on another machine reaches only files in the replayer's folders.
#[test]
fn a_store_outside_the_folders_of_the_replayer_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (work, shared) = (folder.path().join("work"), folder.path().join("shared"));
    for folder in [&work, &shared] {
        std::fs::create_dir(folder).expect("a folder");
    }
    let source = trace(&shared, &["fragments=1"]);
    std::os::unix::fs::symlink(folder.path(), work.join("way-out")).expect("a link");
    let try_at = |confines_stores, path: PathBuf| {
        let settings = Settings { confines_stores, ..settings(&work, std::slice::from_ref(&shared), None) };
        with_settings(settings, async |channel| {
            let mut client = hello(&channel, "me", LONG, Carried::default()).await?;
            let url = format!("casql+sqlite:{}?memcached=127.0.0.1:1", path.display());
            let plan = planned(&source, 1, &url, plan(&source, 1, Limit::Sessions(1), &[], 0));
            let plan_json = serde_json::to_string(&plan).expect("a plan");
            client.prepare(PrepareRequest { run: "r".into(), plan_json, ..PrepareRequest::default() }).await
        })
    };
    for inside in [work.join("s.db"), shared.join("deep/s.db")] {
        try_at(true, inside).expect("it may be there");
    }
    for outside in [folder.path().join("s.db"), work.join("../s.db"), work.join("way-out/s.db")] {
        let refused = try_at(true, outside.clone()).expect_err("it may not be there");
        assert!(refused.code() == Code::InvalidArgument && refused.message().contains("--share"), "{refused}");
        try_at(false, outside).expect("a replayer of the coordinator's own may do what the user may");
    }
}

/// Of several replayers in the coordinator's folder, each writes its log only. No plan or report
/// of a part may be where that of the whole experiment should be.
#[test]
fn one_of_several_in_a_shared_folder_writes_its_log_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2"]);
    let whole = planned(&source, 1, "memory:", plan(&source, 2, Limit::WholeTrace, &[], 0));
    let mut part = whole.clone();
    part.fragments.truncate(1);
    for (name, kept) in [("kept", Some(&whole)), ("bare", None)] {
        let experiment = ExperimentFolder::new(folder.path().join(name));
        std::fs::create_dir_all(experiment.root()).expect("a folder");
        if let Some(plan) = kept {
            schemas::files::write_json(&experiment.plan(), plan).expect("a plan");
        }
        with_service(folder.path(), async |mut client| {
            ready_in(&mut client, &part, &experiment).await.expect("it is ready");
            let mut running = start(&mut client, 1).await.expect("it runs");
            while running.message().await.expect("progress").is_some() {}
            let report = report(&mut client).await.expect("the report comes over the wire");
            assert!(report.ok > 0, "{name}: {report:?}");
        });
        assert!(experiment.log(0).exists() && !experiment.log(1).exists(), "{name}");
        assert!(!experiment.report().exists(), "{name}: a report of a part");
        let found = schemas::files::read_json::<Plan>(&experiment.plan()).ok();
        assert_eq!(found.map(|plan| plan.fragments.len()), kept.map(|plan| plan.fragments.len()), "{name}");
    }
}

/// If a start does not come, the store stays as it was. If it comes late, the reply says so.
#[test]
fn an_experiment_that_never_starts_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    let sqlite = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    with_service(folder.path(), async |mut client| {
        let planned = |number| planned(&source, number, &sqlite, plan(&source, 2, Limit::Sessions(60), &[], 0));
        ready(&mut client, &planned(1), folder.path()).await.expect("it is ready");
        let request = RunRequest { experiment: 1, part: Part::Alone.into(), warm_up: false };
        let mut running = client.run(request).await.expect("it runs").into_inner();
        while running.message().await.expect("progress").expect("it waits").phase() != Phase::Ready {}
        client.stop(StopRequest::default()).await.expect("it hears");
        while running.message().await.expect("progress").is_some() {}
        // The store is not loaded again.
        let folder = ExperimentFolder::new(folder.path().join("2"));
        let plan_json = serde_json::to_string(&planned(2)).expect("JSON");
        let experiment_folder = folder.root().display().to_string();
        let request = PrepareRequest { plan_json, experiment_folder, run: "test".into(), ..PrepareRequest::default() };
        client.prepare(request).await.expect("it is prepared");
        let request = RunRequest { experiment: 2, part: Part::Alone.into(), warm_up: false };
        let mut running = client.run(request).await.expect("it runs").into_inner();
        while running.message().await.expect("progress").expect("it waits").phase() != Phase::Ready {}
        let start_unix_ns = unix_ns() - 10_000_000_000;
        let late = client.start(StartRequest { start_unix_ns }).await.expect("it starts").into_inner().late_ns;
        assert!(late >= 10_000_000_000, "{late}");
        while running.message().await.expect("progress").is_some() {}
        assert_eq!(report(&mut client).await.expect("a report").sessions, 60);
    });
}

/// A coordinator whose clock is wrong by hours must not hold the replayer up, and a stop
/// ends the wait for any start.
#[test]
fn a_start_that_is_far_off_is_refused_and_a_wait_for_one_can_be_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    with_service(folder.path(), async |mut client| {
        let plan = planned(&source, 1, "memory:", plan(&source, 2, Limit::WholeTrace, &[], 0));
        ready(&mut client, &plan, folder.path()).await.expect("it is ready");
        let request = RunRequest { experiment: 1, part: Part::Alone.into(), warm_up: false };
        let mut running = client.run(request).await.expect("it runs").into_inner();
        while running.message().await.expect("progress").expect("it waits").phase() != Phase::Ready {}
        for start_unix_ns in [i64::MIN, 0, unix_ns() + 3_600_000_000_000, i64::MAX] {
            let refused = client.start(StartRequest { start_unix_ns }).await.expect_err("too far");
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().contains("synchronize the clocks"), "{refused}");
        }
        let refused = client.agree_start(StartProposal { start_unix_ns: i64::MAX }).await.expect_err("too far");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let start_unix_ns = unix_ns() + 25_000_000_000;
        client.start(StartRequest { start_unix_ns }).await.expect("it waits for it");
        let asked = Instant::now();
        client.stop(StopRequest::default()).await.expect("it hears");
        while running.message().await.expect("progress").is_some() {}
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        assert_eq!(report(&mut client).await.expect("a report").sessions, 0);
    });
}

/// Peers that connect and send nothing must not shut out the coordinator.
#[test]
fn silent_connections_are_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    with_address(settings(&folder.path().join("work"), &[], None), async |address: SocketAddr| {
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(tokio::net::TcpStream::connect(address).await.expect("a connection"));
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = endpoint.connect().await.expect("a connection");
        let asked = hello(&channel, "test", LONG, Carried::default());
        let client = tokio::time::timeout(Duration::from_secs(60), asked).await.expect("it answers");
        let mut client = client.expect("a lease");
        // The first silent connection is closed; the coordinator's stays.
        let mut byte = [0; 64];
        loop {
            match silent[0].try_read(&mut byte) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(_) => break,
            }
        }
        client.clock(ClockRequest {}).await.expect("it is still there");
    });
}

/// Several replayers begin to measure at one instant, whether they had something to
/// warm up or only waited for those that had.
#[test]
fn the_measured_part_begins_when_it_is_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    for (experiment, warmup) in [(1, 50), (2, 0)] {
        with_service(folder.path(), async |mut client| {
            // The warm-up takes half a second at least, so that its progress is seen.
            let store = if warmup > 0 { "memory:?latency_us=20000" } else { "memory:" };
            let plan = planned(&source, experiment, store, plan(&source, 2, Limit::Sessions(60), &[], warmup));
            ready(&mut client, &plan, folder.path()).await.expect("it is ready");
            let request = RunRequest { experiment, part: Part::Alone.into(), warm_up: true };
            let mut running = client.run(request).await.expect("it runs").into_inner();
            let (mut starts, mut waited) = (Vec::new(), Vec::new());
            while let Some(progress) = running.message().await.expect("progress") {
                if matches!(progress.phase(), Phase::Ready | Phase::Warm) {
                    waited.push(progress.phase());
                    // Before the start is agreed, nothing happens.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    starts.push(agree(&mut client).await.expect("a start"));
                    if warmup > 0 || progress.phase() == Phase::Warm {
                        let again = client.start(StartRequest { start_unix_ns: unix_ns() }).await;
                        let error = again.expect_err("it has started");
                        assert_eq!(error.code(), Code::Aborted, "{error}");
                    }
                }
            }
            assert_eq!(waited, [Phase::Ready, Phase::Warm]);
            let report = report(&mut client).await.expect("a report");
            assert_eq!((report.warmup_operations > 0, report.sessions), (warmup > 0, 60));
            let log = folder.path().join(format!("{experiment}/log/fragment-0.arrows"));
            let zero_unix_ns = LogReader::open(&log).expect("a log").header().started_unix_ns;
            // Two clocks are read one after the other.
            let early_ns = starts[1] - (zero_unix_ns + report.warmup_ns as i64);
            assert!(early_ns < 1_000_000, "it began {early_ns} ns before its time");
        });
    }
}

#[test]
fn a_store_in_another_state_has_a_code_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    with_service(folder.path(), async |mut client| {
        let error = client.load(LoadRequest { part: Part::Alone.into() }).await.expect_err("nothing is prepared");
        assert_eq!(error.code(), Code::Aborted, "{error}");
        // The plan starts where no experiment has left the store.
        let at = [schemas::run::FragmentPosition::at(0, 7)];
        let stray = planned(&source, 1, "memory:", plan(&source, 1, Limit::Sessions(10), &at, 0));
        let error = experiment(&mut client, &stray, folder.path()).await.expect_err("it is not loaded");
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        let first = planned(&source, 2, "memory:", plan(&source, 1, Limit::Sessions(10), &[], 0));
        experiment(&mut client, &first, folder.path()).await.expect("an experiment");
        let error = experiment(&mut client, &stray, folder.path()).await.expect_err("it is elsewhere");
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(error.message().contains("at session 10, the experiment starts at 7"), "{error}");
        let nowhere = planned(&source, 3, "nowhere:", plan(&source, 1, Limit::Sessions(10), &[], 0));
        let error = experiment(&mut client, &nowhere, folder.path()).await.expect_err("no such store");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    });
}

/// A coordinator has the replayer alone until its lease runs out. The experiment that runs then
/// ends, and its log is there.
#[test]
fn an_experiment_ends_with_the_lease_and_keeps_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["sessions=400000"]);
    let settings = settings(&folder.path().join("work"), &[folder.path().to_path_buf()], None);
    with_settings(settings, async |channel| {
        let lease = Duration::from_secs(10);
        let mut first = hello(&channel, "first", lease, Carried::default()).await.expect("a lease");
        let plan = planned(&source, 1, "memory:?latency_us=500", plan(&source, 2, Limit::WholeTrace, &[], 0));
        ready(&mut first, &plan, folder.path()).await.expect("it is ready");
        let running = start(&mut first, 1).await.expect("it runs");
        let began = Instant::now();
        let refused = hello(&channel, "second", lease, Carried::default()).await.expect_err("it is taken");
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("in use by first"), "{refused}");
        drop(running);
        // No call renews the lease, so it runs out and ends the experiment.
        let mut second = loop {
            match hello(&channel, "second", lease, Carried::default()).await {
                Ok(client) => break client,
                Err(refused) => assert_eq!(refused.code(), Code::PermissionDenied, "{refused}"),
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the experiment goes on without a coordinator");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let late = first.clock(ClockRequest {}).await.expect_err("it is not hers any more");
        assert_eq!(late.code(), Code::PermissionDenied, "{late}");
        second.clock(ClockRequest {}).await.expect("it is hers");
    });
    let report: ReplayReport = schemas::files::read_json(&folder.path().join("1/replay.json")).expect("a report");
    assert_eq!(report.end, EndReason::Interrupted);
    assert!(report.ok > 0 && folder.path().join("1/log/fragment-0.arrows").exists());
}

/// After a connection is lost, a new one finds the experiment where it is.
#[test]
fn an_experiment_can_be_watched_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["sessions=1500"]);
    with_service(folder.path(), async |mut client| {
        let plan = planned(&source, 3, "memory:?latency_us=1000", plan(&source, 1, Limit::WholeTrace, &[], 0));
        ready(&mut client, &plan, folder.path()).await.expect("it is ready");
        drop(start(&mut client, 3).await.expect("it runs"));
        let request = RunRequest { experiment: 3, part: Part::Alone.into(), warm_up: false };
        let mut again = client.run(request).await.expect("it still runs").into_inner();
        let mut last = Progress::default();
        while let Some(progress) = again.message().await.expect("no error") {
            assert!(progress.ok >= last.ok);
            last = progress;
        }
        assert!(last.ok > 0 && last.cpus_used > 0.0, "{last:?}");
        let twice = client.start(StartRequest { start_unix_ns: unix_ns() }).await.expect_err("it has started");
        assert_eq!(twice.code(), Code::Aborted);
        // This works after the experiment's end too.
        let mut ended = client.run(request).await.expect("it has ended").into_inner();
        while ended.message().await.expect("no error").is_some() {}
        assert_eq!(report(&mut client).await.expect("a report").ok, 1500);
        let other = client.run(RunRequest { experiment: 4, ..request }).await.expect_err("nothing is prepared");
        assert_eq!(other.code(), Code::Aborted);
    });
}

/// Nothing is shared: the trace set is sent, the log is fetched, and no path leads out of the
/// replayer's folder.
#[test]
fn a_replayer_far_away_gets_the_trace_set_and_gives_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["sessions=300"]);
    let work = folder.path().join("work");
    with_settings(settings(&work, &[], None), async |channel| {
        let mut client = hello(&channel, "test", LONG, Carried::default()).await.expect("a lease");
        let plan = planned(&source, 1, "memory:", plan(&source, 2, Limit::WholeTrace, &[], 0));
        let refused = ready(&mut client, &plan, folder.path()).await.expect_err("it has no trace set");
        assert_eq!(refused.code(), Code::Aborted, "{refused}");
        let offer = OfferRequest {
            manifest_json: serde_json::to_string(&source.manifest).expect("JSON"),
            folder: source.folder.display().to_string(),
        };
        let lacked = client.offer(offer.clone()).await.expect("an answer").into_inner().lacked;
        assert_eq!(lacked.len(), source.manifest.files.len());
        for file in lacked {
            let data = std::fs::read(source.folder.join(&file.path)).expect("a file");
            let (begin, end) = data.split_at(data.len() / 2);
            let chunk = |path: &str, data: &[u8]| FileChunk { path: path.into(), offset: 0, data: data.to_vec() };
            let mut damaged = begin.to_vec();
            damaged.extend(end.iter().rev());
            damaged[0] ^= 1;
            let refused = client.send(tokio_stream::iter([chunk(&file.path, &damaged)])).await.expect_err("damaged");
            assert_eq!(refused.code(), Code::DataLoss, "{refused}");
            let sent = client.send(tokio_stream::iter([chunk(&file.path, begin), chunk("", end)])).await;
            sent.expect("it arrived");
        }
        assert!(client.offer(offer).await.expect("an answer").into_inner().lacked.is_empty());
        let out = folder.path().join("out");
        let first = experiment(&mut client, &plan, &out).await.expect("an experiment");
        let written = std::fs::read_dir(out.join("1")).expect("the coordinator's").count();
        assert_eq!((first.ok, written), (300, 1), "more than the plan is in a folder that is not shared");
        let logs = client.logs(LogsRequest { run: "test".into(), experiment: 1 }).await.expect("logs").into_inner();
        let log = logs.files.iter().find(|file| file.path == "log/fragment-0.arrows").expect("a log");
        let request =
            |run: &str, path: &str, offset| FetchRequest { run: run.into(), experiment: 1, path: path.into(), offset };
        let mut chunks = client.fetch(request("test", &log.path, 10)).await.expect("a log").into_inner();
        let mut fetched = Vec::new();
        while let Some(chunk) = chunks.message().await.expect("no error") {
            fetched.extend(chunk.data);
        }
        let kept = std::fs::read(work.join("runs/test/experiments/0001-T2/log/fragment-0.arrows")).expect("a log");
        assert_eq!(fetched, kept[10..]);
        assert_eq!(log.bytes, kept.len() as u64);
        for (run, path) in [
            ("..", "x"),
            ("test/..", "x"),
            ("test", "../../../../etc/passwd"),
            ("test", "/etc/passwd"),
            ("test", "log"),
        ] {
            let refused = client.fetch(request(run, path, 0)).await;
            let refused = match refused {
                Err(status) => status,
                Ok(chunks) => {
                    let mut chunks = chunks.into_inner();
                    loop {
                        match chunks.message().await {
                            Err(status) => break status,
                            Ok(Some(chunk)) => assert!(chunk.data.is_empty(), "{run} {path}"),
                            Ok(None) => panic!("{run} {path} was given"),
                        }
                    }
                }
            };
            assert!(matches!(refused.code(), Code::NotFound | Code::Internal), "{run} {path}: {refused}");
        }
    });
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    with_settings(settings(folder.path(), &[], Some("0123456789abcdef")), async |channel| {
        let refused = hello(&channel, "a", LONG, Carried::default()).await.expect_err("no token");
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        let token = |text: &str| Carried { lease: None, token: Some(format!("Bearer {text}").parse().expect("text")) };
        let refused = hello(&channel, "a", LONG, token("0123456789abcdeg")).await.expect_err("a wrong token");
        assert!(refused.code() == Code::Unauthenticated && !refused.message().contains("0123"), "{refused}");
        let mut client = hello(&channel, "a", LONG, token("0123456789abcdef")).await.expect("the token");
        client.clock(ClockRequest {}).await.expect("it is hers");
    });
}

#[test]
fn another_version_of_the_protocol_is_refused_with_both_named() {
    let folder = tempfile::tempdir().expect("a folder");
    with_settings(settings(folder.path(), &[], None), async |channel| {
        let request = HelloRequest {
            protocol_version: PROTOCOL_VERSION + 7,
            encore_version: "9.9".into(),
            coordinator: "a newer one".into(),
            lease_ms: 1000,
        };
        let refused = ReplayerClient::new(channel).hello(request).await.expect_err("it is another protocol");
        let (mine, theirs) = (format!("protocol {PROTOCOL_VERSION}"), format!("protocol {}", PROTOCOL_VERSION + 7));
        assert_eq!(refused.code(), Code::Unimplemented);
        for words in [&mine, &theirs, "Encore 9.9", env!("CARGO_PKG_VERSION")] {
            assert!(refused.message().contains(words), "{refused} lacks {words}");
        }
    });
}

#[test]
fn an_open_address_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = Settings { address: "0.0.0.0:0".parse().expect("an address"), ..settings(folder.path(), &[], None) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let served = runtime.block_on(replayer::service::serve(open, |_| panic!("it listens"), async {}));
    let error = served.expect_err("nobody asks who calls").to_string();
    assert!(error.contains("--listen 0.0.0.0:0") && error.contains("encore certs"), "{error}");
}
