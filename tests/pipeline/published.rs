//! Runs that are published in object storage: by their coordinator, and by replayers that share it.

use servers::S3;
use storage::{Place, Remote};

use crate::fleet::Host;
use crate::support::{Ran, Workplace};

/// A prefix of the server for one test, and a folder to work in.
struct Shared {
    server: S3,
    place: Workplace,
    remote: Remote,
}

impl Shared {
    /// None without a server.
    fn new(prefix: &str) -> Option<Shared> {
        let server = servers::s3()?;
        let Ok(Place::Remote(url)) = Place::parse(&server.url(prefix)) else { panic!("a URL") };
        let variables = server.variables().into_iter().map(|(name, value)| (name.to_string(), value));
        let remote = Remote::open_with(&url, variables).expect("the server takes us");
        Some(Shared { server, place: Workplace::new(), remote })
    }

    fn url(&self, name: &str) -> String {
        self.remote.url().join(name).to_string()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.place.command(arguments);
        command.envs(self.server.variables());
        Ran::of(&arguments.join(" "), command)
    }

    /// A replayer on 127.0.0.N that shares a place.
    fn host(&self, n: u32, share: &str) -> Host {
        Host::with_variables(&self.place, n, &["--share", share], &self.server.variables())
    }

    /// The names of all objects below a name.
    fn names(&self, below: &str) -> Vec<String> {
        self.remote.list(below).expect("a list").into_iter().map(|object| object.name).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.remote.exists(name).expect("an answer")
    }
}

/// A run of two fragments that takes no time.
const RUN: [&str; 7] = ["run", "--threads", "2", "--sessions", "400", "--store", "memory:"];

/// The copy of a run has its rows and documents, and answers as the folder does.
#[test]
fn a_run_is_published_with_its_rows() {
    let Some(shared) = Shared::new("published") else { return };
    shared.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let to = shared.url("runs");
    let command = [&RUN[..], &["--trace", "busy.trace", "--name", "a", "--publish", &to]].concat();
    let said = shared.run(&command).ends();
    assert!(said.contains(&format!("published {to}/a")), "{said}");
    for name in
        ["run.json", "report.html", "experiments/0001-T2/log/fragment-1.arrows", "experiments/0001-T2/verdict.json"]
    {
        let here = std::fs::read(shared.place.path("runs/a").join(name)).expect(name);
        assert!(shared.remote.get_bytes(&format!("runs/a/{name}")).expect(name) == here, "{name} differs");
    }
    assert!(!shared.names("runs").iter().any(|name| name.ends_with("/lock") || name.contains(".encore-check")));
    let count = ["analyze", "sql", "runs/a", "SELECT count(*), sum(response_ns) FROM operations", "--format", "csv"];
    let here = shared.run(&count).succeeds();
    let run = shared.url("runs/a");
    let there = [&count[..2], &[&run], &count[3..]].concat();
    assert_eq!(shared.run(&there).succeeds(), here);

    // Another run does not take its place.
    std::fs::rename(shared.place.path("runs/a"), shared.place.path("runs/b")).expect("renamed");
    shared.run(&command).fails(2, &[&format!("{to}/a"), "another --name"]);
    assert!(!shared.place.path("runs/a").exists());
}

/// Replayers that share object storage take the trace set from there and leave their logs there, and the coordinator has
/// neither. From the logs, the same verdict is made.
#[test]
fn replayers_meet_in_object_storage() {
    let Some(shared) = Shared::new("meeting") else { return };
    let (trace, runs) = (shared.url("busy.trace"), shared.url("runs"));
    shared.run(&["trace", "gen", "busy.toml", "-o", &trace]).succeeds();
    let hosts = [shared.host(2, &shared.url("")), shared.host(3, &shared.url(""))];
    let [a, b] = hosts.each_ref().map(|host| host.address.as_str());
    let fleet = ["--replayer", a, "--replayer", b, "--leave-logs"];
    let to = ["--trace", &trace, "--name", "a", "--publish", &runs];
    shared.run(&[&RUN[..], &fleet, &to].concat()).ends();
    for fragment in [0, 1] {
        assert!(shared.has(&format!("runs/a/experiments/0001-T2/log/fragment-{fragment}.arrows")));
        let here = format!("runs/a/experiments/0001-T2/log/fragment-{fragment}.arrows");
        assert!(!shared.place.path(&here).exists(), "the logs came to the coordinator");
    }
    assert!(!shared.has("runs/a/experiments/0001-T2/verdict.json"));

    let run = shared.url("runs/a");
    let tasks = shared.run(&["analyze", "tasks", &run]).succeeds();
    assert_eq!(tasks.lines().count(), 2, "{tasks}");
    for task in tasks.lines() {
        let words: Vec<&str> = task.split(' ').collect();
        shared.run(&[&["analyze", "fragment", &run, "--trace", &trace], &words[..]].concat()).succeeds();
    }
    shared.run(&["analyze", "merge", &run, "--trace", &trace]).succeeds();
    // The coordinator's verdict is of the summaries that the replayers made.
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    let here = std::fs::read(shared.place.path("runs/a/experiments/0001-T2/verdict.json")).expect("a verdict");
    let there = shared.remote.get_bytes("runs/a/experiments/0001-T2/verdict.json").expect("a verdict");
    let (here, mut there) = (json(&here), json(&there));
    let sealed = there.as_object_mut().and_then(|verdict| verdict.remove("sealed"));
    assert!(sealed.as_ref().and_then(|sealed| sealed.as_array()).is_some_and(|sealed| sealed.len() == 2), "{sealed:?}");
    assert_eq!(there, here);
    let count = ["analyze", "sql", &run, "SELECT count(*) > 0 FROM operations", "--format", "csv"];
    assert!(shared.run(&count).succeeds().ends_with("true\n"));
}

/// What is wrong with a place is said when a service or a run starts.
#[test]
fn a_place_that_cannot_be_used_is_refused_at_once() {
    let Some(shared) = Shared::new("refused") else { return };
    let serve = |share: &str| shared.run(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", share]);
    serve("s3://elsewhere/x").fails(2, &["--share s3://elsewhere/x", "no bucket elsewhere"]);
    serve("ftp://host/x").fails(2, &["--share ftp://", "s3://BUCKET"]);
    let mut command = shared.place.command(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", &shared.url("")]);
    command.envs(shared.server.variables()).env("AWS_SECRET_ACCESS_KEY", "wrong");
    Ran::of("serve", command).fails(2, &[&shared.url(""), "refuses these credentials"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut command = shared.place.command(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", &shared.url("")]);
    command.envs(shared.server.variables()).env("AWS_ENDPOINT_URL", format!("http://{port}"));
    Ran::of("serve", command).fails(3, &[&shared.url(""), "cannot reach"]);

    shared.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let run = |more: &[&str]| shared.run(&[&RUN[..], &["--name", "a"], more].concat());
    run(&["busy.toml", "--publish", "s3://elsewhere/x"]).fails(2, &["s3://elsewhere/x", "no bucket elsewhere"]);
    run(&["busy.toml", "--publish", "runs"]).fails(2, &["--publish", "s3://BUCKET"]);
    run(&["busy.toml", "--runs", "s3://bucket/x"]).fails(2, &["--runs s3://bucket/x", "--publish s3://bucket/x"]);
    run(&["--trace", &shared.url("none.trace")]).fails(2, &[&shared.url("none.trace"), "manifest.json"]);
    // A replayer that shares something else cannot leave the logs there.
    let host = shared.host(4, &shared.url("other"));
    let to = shared.url("runs");
    run(&["--trace", "busy.trace", "--replayer", &host.address, "--leave-logs", "--publish", &to])
        .fails(2, &[&host.address, "does not share it", "--share"]);
    let replay = |trace: &str, run: &str| {
        shared.run(&["replay", "run", "--trace", trace, "--store", "memory:", "-T", "1", "-o", run])
    };
    replay("busy.trace", "s3://bucket/x").fails(2, &["-o s3://bucket/x", "--publish"]);
    replay("s3://bucket/busy.trace", "r").fails(2, &["--trace s3://bucket/busy.trace", "encore run"]);
    assert!(!shared.place.path("runs/a").exists() && !shared.place.path("s3:").exists());
}

/// A damaged file of a trace set in object storage is named, and nothing runs on it.
#[test]
fn a_damaged_trace_set_is_refused() {
    let Some(shared) = Shared::new("bent") else { return };
    let trace = shared.url("busy.trace");
    shared.run(&["trace", "gen", "busy.toml", "-o", &trace]).succeeds();
    let name = "operations/fragment=1/part-00000.parquet";
    let mut bytes = shared.remote.get_bytes(&format!("busy.trace/{name}")).expect("a part");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // The coordinator has its own whole copy, the replayer finds the damaged one.
    shared.run(&[&RUN[..], &["--trace", &trace, "--name", "whole"]].concat()).ends();
    shared.remote.put_bytes(&format!("busy.trace/{name}"), &bytes).expect("put");
    let host = shared.host(5, &shared.url(""));
    let more = ["--trace", &trace, "--name", "a", "--replayer", &host.address];
    shared.run(&[&RUN[..], &more].concat()).fails(2, &[&trace, name, "BLAKE3"]);
}
