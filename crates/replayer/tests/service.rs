//! The service as a coordinator sees it.

mod common;

use common::{plan, trace};
use replayer::source::Source;
use schemas::plan::{Limit, Plan};
use schemas::rpc::replayer_client::ReplayerClient;
use schemas::rpc::{LoadRequest, PrepareRequest, ReportRequest, RunRequest, StartProposal};
use schemas::run::{EndReason, ReplayReport};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// Serves in this process, and speaks to it as long as the future runs.
fn with_service<X>(speak: impl AsyncFnOnce(ReplayerClient<Channel>) -> X) -> X {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    runtime.block_on(async {
        let (told, address) = tokio::sync::oneshot::channel();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let listening = move |address| told.send(address).expect("somebody asks");
        let loopback = "127.0.0.1:0".parse().expect("an address");
        let service = tokio::spawn(replayer::service::serve(loopback, listening, async {
            // The sender's end is as good as its word.
            let _ = ended.await;
        }));
        let address = address.await.expect("an address");
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = endpoint.connect().await.expect("a connection");
        let result = speak(ReplayerClient::new(channel)).await;
        end.send(()).expect("it still serves");
        service.await.expect("no panic").expect("it served");
        result
    })
}

/// Prepare, Load, AgreeStart, Run, Report.
async fn experiment(
    client: &mut ReplayerClient<Channel>,
    plan: &Plan,
    folder: &std::path::Path,
) -> Result<ReplayReport, Status> {
    let experiment_folder = folder.join(plan.experiment.to_string()).display().to_string();
    let plan_json = serde_json::to_string(plan).expect("JSON");
    client.prepare(PrepareRequest { plan_json, experiment_folder }).await?;
    let mut loading = client.load(LoadRequest {}).await?.into_inner();
    while loading.message().await?.is_some() {}
    let start = client.agree_start(StartProposal { start_unix_ns: 0 }).await?.into_inner();
    let mut running = client.run(RunRequest { start_unix_ns: start.start_unix_ns }).await?.into_inner();
    while running.message().await?.is_some() {}
    let report = client.report(ReportRequest {}).await?.into_inner();
    Ok(serde_json::from_str(&report.report_json).expect("a report"))
}

fn planned(source: &Source, experiment: u32, store: &str, plan: Plan) -> Plan {
    assert_eq!(plan.trace, source.folder);
    Plan { experiment, store: store.into(), ..plan }
}

/// A store in the service's process lives as long as the service, and a plan that
/// continues is not loaded.
#[test]
fn experiments_continue_through_the_service() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &["fragments=2"]);
    let sqlite = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    for (number, url) in [(1, "memory:"), (4, sqlite.as_str())] {
        with_service(async |mut client| {
            let first = planned(&source, number, url, plan(&source, 3, Limit::Sessions(150), &[], 10));
            let first = experiment(&mut client, &first, folder.path()).await.expect("an experiment");
            let next = planned(&source, number + 1, url, plan(&source, 3, Limit::Sessions(90), &first.positions, 0));
            let second = experiment(&mut client, &next, folder.path()).await.expect("an experiment");
            assert_eq!((&second.end, second.sessions, second.failed), (&EndReason::Limit, 90, 0), "{url}");
            // The store says where it is: 250 sessions after the beginning.
            let rest = planned(&source, number + 2, url, plan(&source, 3, Limit::WholeTrace, &second.positions, 0));
            let rest = experiment(&mut client, &rest, folder.path()).await.expect("an experiment");
            assert_eq!((rest.sessions, rest.ok), (150, 150), "{url}");
        });
    }
    let store = replayer::stores::open(&sqlite).expect("a store");
    let expected = tracegen::digest(&source.folder, None).expect("a digest");
    assert_eq!(store.digest(&source).expect("a digest"), expected);
}

#[test]
fn a_store_in_another_state_has_a_code_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &[]);
    with_service(async |mut client| {
        let error = client.load(LoadRequest {}).await.expect_err("nothing is prepared");
        assert_eq!(error.code(), Code::Aborted, "{error}");
        // The plan starts where no experiment has left the store.
        let at = [schemas::run::FragmentPosition { fragment: 0, next_session: 7 }];
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
