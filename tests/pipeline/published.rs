//! Runs that are published in object storage: by their coordinator, and by replayers that share it.

use crate::bucket::Bucket;
use crate::fleet::Host;
use crate::support::Ran;

/// A replayer on 127.0.0.N that shares a place.
fn host(bucket: &Bucket, n: u32, share: &str) -> Host {
    Host::with_variables(&bucket.place, n, &["--share", share], &bucket.server.variables())
}

/// A run of two fragments that takes no time.
const RUN: [&str; 7] = ["run", "--threads", "2", "--sessions", "400", "--store", "memory:"];

/// The copy of a run has its rows and documents, and answers as the folder does.
#[test]
fn a_run_is_published_with_its_rows() {
    let Some(bucket) = Bucket::new("published") else { return };
    bucket.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let to = bucket.url("runs");
    let command = [&RUN[..], &["--trace", "busy.trace", "--name", "a", "--publish", &to]].concat();
    let said = bucket.run(&command).ends();
    assert!(said.contains(&format!("published {to}/a")), "{said}");
    for name in
        ["run.json", "report.html", "experiments/0001-T2/log/fragment-1.arrows", "experiments/0001-T2/verdict.json"]
    {
        let here = std::fs::read(bucket.place.path("runs/a").join(name)).expect(name);
        assert!(bucket.remote.get_bytes(&format!("runs/a/{name}")).expect(name) == here, "{name} differs");
    }
    assert!(!bucket.names("runs").iter().any(|name| name.ends_with("/lock") || name.contains(".encore-check")));
    let count = ["analyze", "sql", "runs/a", "SELECT count(*), sum(response_ns) FROM operations", "--format", "csv"];
    let here = bucket.run(&count).succeeds();
    let run = bucket.url("runs/a");
    let there = [&count[..2], &[&run], &count[3..]].concat();
    assert_eq!(bucket.run(&there).succeeds(), here);

    // Another run does not take its place.
    std::fs::rename(bucket.place.path("runs/a"), bucket.place.path("runs/b")).expect("renamed");
    bucket.run(&command).fails(2, &[&format!("{to}/a"), "another --name"]);
    assert!(!bucket.place.path("runs/a").exists());
}

/// Replayers that share object storage take the trace set from there and leave their logs there, and the coordinator has
/// neither. From the logs, the same verdict is made.
#[test]
fn replayers_meet_in_object_storage() {
    let Some(bucket) = Bucket::new("meeting") else { return };
    let (trace, runs) = (bucket.url("busy.trace"), bucket.url("runs"));
    bucket.run(&["trace", "gen", "busy.toml", "-o", &trace]).succeeds();
    let hosts = [host(&bucket, 2, &bucket.url("")), host(&bucket, 3, &bucket.url(""))];
    let [a, b] = hosts.each_ref().map(|host| host.address.as_str());
    let fleet = ["--replayer", a, "--replayer", b, "--leave-logs"];
    let to = ["--trace", &trace, "--name", "a", "--publish", &runs];
    bucket.run(&[&RUN[..], &fleet, &to].concat()).ends();
    for fragment in [0, 1] {
        assert!(
            bucket
                .remote
                .exists(&format!("runs/a/experiments/0001-T2/log/fragment-{fragment}.arrows"))
                .expect("an answer")
        );
        let here = format!("runs/a/experiments/0001-T2/log/fragment-{fragment}.arrows");
        assert!(!bucket.place.path(&here).exists(), "the logs came to the coordinator");
    }
    assert!(!bucket.remote.exists("runs/a/experiments/0001-T2/verdict.json").expect("an answer"));

    let run = bucket.url("runs/a");
    let tasks = bucket.run(&["analyze", "tasks", &run]).succeeds();
    assert_eq!(tasks.lines().count(), 2, "{tasks}");
    for task in tasks.lines() {
        let words: Vec<&str> = task.split(' ').collect();
        bucket.run(&[&["analyze", "fragment", &run, "--trace", &trace], &words[..]].concat()).succeeds();
    }
    bucket.run(&["analyze", "merge", &run, "--trace", &trace]).succeeds();
    // The coordinator's verdict is of the summaries that the replayers made.
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
    let here = std::fs::read(bucket.place.path("runs/a/experiments/0001-T2/verdict.json")).expect("a verdict");
    let there = bucket.remote.get_bytes("runs/a/experiments/0001-T2/verdict.json").expect("a verdict");
    let (here, mut there) = (json(&here), json(&there));
    let sealed = there.as_object_mut().and_then(|verdict| verdict.remove("sealed"));
    assert!(sealed.as_ref().and_then(|sealed| sealed.as_array()).is_some_and(|sealed| sealed.len() == 2), "{sealed:?}");
    assert_eq!(there, here);
    let count = ["analyze", "sql", &run, "SELECT count(*) > 0 FROM operations", "--format", "csv"];
    assert!(bucket.run(&count).succeeds().ends_with("true\n"));
}

/// What is wrong with a place is said when a service or a run starts.
#[test]
fn a_place_that_cannot_be_used_is_refused_at_once() {
    let Some(bucket) = Bucket::new("published-refused") else { return };
    let serve = |share: &str| bucket.run(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", share]);
    serve("s3://elsewhere/x").fails(2, &["--share s3://elsewhere/x", "no bucket elsewhere"]);
    serve("ftp://host/x").fails(2, &["--share ftp://", "s3://BUCKET"]);
    let mut command = bucket.place.command(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", &bucket.url("")]);
    command.envs(bucket.server.variables()).env("AWS_SECRET_ACCESS_KEY", "wrong");
    Ran::of("serve", command).fails(2, &[&bucket.url(""), "refuses these credentials"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut command = bucket.place.command(&["replay", "serve", "--listen", "127.0.0.1:0", "--share", &bucket.url("")]);
    command.envs(bucket.server.variables()).env("AWS_ENDPOINT_URL", format!("http://{port}"));
    Ran::of("serve", command).fails(3, &[&bucket.url(""), "cannot reach"]);

    bucket.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let run = |more: &[&str]| bucket.run(&[&RUN[..], &["--name", "a"], more].concat());
    run(&["busy.toml", "--publish", "s3://elsewhere/x"]).fails(2, &["s3://elsewhere/x", "no bucket elsewhere"]);
    run(&["busy.toml", "--publish", "runs"]).fails(2, &["--publish", "s3://BUCKET"]);
    run(&["busy.toml", "--runs", "s3://bucket/x"]).fails(2, &["--runs s3://bucket/x", "--publish s3://bucket/x"]);
    run(&["--trace", &bucket.url("none.trace")]).fails(2, &[&bucket.url("none.trace"), "manifest.json"]);
    // A replayer that shares something else cannot leave the logs there.
    let host = host(&bucket, 4, &bucket.url("other"));
    let to = bucket.url("runs");
    run(&["--trace", "busy.trace", "--replayer", &host.address, "--leave-logs", "--publish", &to])
        .fails(2, &[&host.address, "does not share it", "--share"]);
    let replay = |trace: &str, run: &str| {
        bucket.run(&["replay", "run", "--trace", trace, "--store", "memory:", "-T", "1", "-o", run])
    };
    replay("busy.trace", "s3://bucket/x").fails(2, &["-o s3://bucket/x", "--publish"]);
    replay("s3://bucket/busy.trace", "r").fails(2, &["--trace s3://bucket/busy.trace", "encore run"]);
    assert!(!bucket.place.path("runs/a").exists() && !bucket.place.path("s3:").exists());
}

/// A damaged file of a trace set in object storage is named, and nothing runs on it.
#[test]
fn a_damaged_trace_set_is_refused() {
    let Some(bucket) = Bucket::new("bent") else { return };
    let trace = bucket.url("busy.trace");
    bucket.run(&["trace", "gen", "busy.toml", "-o", &trace]).succeeds();
    let name = "operations/fragment=1/part-00000.parquet";
    let mut bytes = bucket.remote.get_bytes(&format!("busy.trace/{name}")).expect("a part");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // The coordinator has its own whole copy, the replayer finds the damaged one.
    bucket.run(&[&RUN[..], &["--trace", &trace, "--name", "whole"]].concat()).ends();
    bucket.remote.put_bytes(&format!("busy.trace/{name}"), &bytes).expect("put");
    let host = host(&bucket, 5, &bucket.url(""));
    let more = ["--trace", &trace, "--name", "a", "--replayer", &host.address];
    bucket.run(&[&RUN[..], &more].concat()).fails(2, &[&trace, name, "BLAKE3"]);
}
