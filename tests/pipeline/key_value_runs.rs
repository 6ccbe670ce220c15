//! Key-value workloads through all that a run can do: fleets, resumed ratings, comparisons, exports,
//! digests.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::fleet::{Host, ends};
use crate::key_value::{ask, is_flawless, workload};
use crate::support::Workplace;

/// Small, in fragments for several replayers.
const SMALL: [&str; 4] = ["--set", "data.records=600", "--set", "fragments=4"];

/// Two replayers, each called through TLS, on one Redis: the coordinator measures their speed, and no
/// read is unpredictable.
#[test]
fn two_replayers_share_a_key_value_store() {
    let place = Workplace::new();
    place.run(&["certs", "certs", "--host", "127.0.0.6", "--host", "127.0.0.7"]).succeeds();
    let hosts: Vec<Host> = (6..8).map(|n| Host::start(&place, n, &["--certs", "certs"])).collect();
    let redis = servers::Server::start(servers::Kind::Redis, servers::Options::default());
    let stores = ["memory:".to_string()].into_iter().chain(redis.as_ref().map(|server| server.url("0")));
    for (number, store) in stores.enumerate() {
        let name = format!("f{number}");
        let mut command = place.command(&["run", &workload("a"), "--store", &store, "--name", &name]);
        command.args(SMALL).args(["--threads", "6", "--sessions", "3000", "--certs", "certs", "--calibrate"]);
        for host in &hosts {
            command.args(["--replayer", &host.address]);
        }
        let said = ends(&command.output().expect("the program starts"));
        assert!(said.contains("calibrating"), "{said}");
        let run = format!("runs/{name}");
        is_flawless(&place, &run, &store, 3000);
        assert_eq!(ask(&place, &run, "SELECT count(DISTINCT fragment) FROM operations"), "4");
    }
}

#[test]
fn a_killed_key_value_rating_is_resumed() {
    let place = Workplace::new();
    let mut command = place.command(&["rate", &workload("f"), "--store", "sqlite:kv.db", "--name", "r"]);
    command.args(SMALL).args(["--sla", "50% < 10s, 0.5s", "--search-s", "0.4", "--max-threads", "8"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a rating");
    let first = || place.experiment("runs/r", 1).is_some_and(|folder| folder.join("trial.json").exists());
    let patience = Instant::now() + Duration::from_secs(120);
    while !first() {
        assert!(Instant::now() < patience, "no experiment has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it can be killed");
    assert_eq!(child.wait().expect("it is dead").code(), None, "it had ended before it was killed");
    let trial = place.experiment("runs/r", 1).expect("the first").join("trial.json");
    let before = std::fs::read(&trial).expect("a file");
    let resumed = loop {
        // The replayer of the killed rating ends when it notices its end.
        let resumed = place.run(&["rate", "--resume", "runs/r"]);
        if !resumed.stderr().contains("another") || Instant::now() > patience {
            break resumed;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(resumed.ends().contains("SoAR"), "{}", resumed.stdout());
    assert_eq!(std::fs::read(&trial).expect("a file"), before, "the first experiment ran again");
    assert_eq!(ask(&place, "runs/r", "SELECT count(*) FILTER (unpredictable), count(*) > 0 FROM operations"), "0,true");
}

#[test]
fn key_value_stores_are_compared() {
    let place = Workplace::new();
    let spec = workload("b");
    let plan = format!(
        "name = \"kv\"\ntitle = \"Records\"\nspec = \"{spec}\"\nsla = \"50% < 10s, 100% unpredictable, 0.3s\"\n\
         measure = \"throughput\"\nset = [\"data.records=300\", \"sessions=40000\"]\n\
         axis = {{ label = \"threads\", points = [{{ label = \"2\", threads = 2 }}] }}\n\
         stores = [{{ label = \"memory\", url = \"memory:?latency_us=300\" }}, {{ label = \"file\", url = \"sqlite:kv.db\" }}]\n"
    );
    std::fs::write(place.path("kv.toml"), plan).expect("the plan is written");
    let said = place.run(&["compare", "kv.toml"]).succeeds();
    assert!(said.contains("memory") && said.contains("file"), "{said}");
    for cell in ["2-memory", "2-file"] {
        let run = format!("runs/kv/{cell}");
        assert_eq!(ask(&place, &run, "SELECT count(*) FILTER (unpredictable), count(*) > 0 FROM operations"), "0,true");
    }
    place.run(&["analyze", "compare", "runs/kv/2-memory", "runs/kv/2-file", "--html", "both.html"]).succeeds();
    assert!(place.path("both.html").exists());
}

#[test]
fn key_value_rows_are_exported() {
    let place = Workplace::new();
    let run = ["run", &workload("e"), "--store", "memory:", "--threads", "2", "--sessions", "800", "--name", "x"];
    place.run(&[&run[..], &["--set", "data.records=300", "--set", "access.scan_length_max=9"]].concat()).ends();
    let rows: usize = ask(&place, "runs/x", "SELECT count(*) FROM operations").parse().expect("a number");
    let scans: usize =
        ask(&place, "runs/x", "SELECT count(*) FROM operations WHERE operation = 'scan'").parse().expect("a number");
    let export = |more: &[&str]| place.run(&[&["analyze", "export", "runs/x", "--format"][..], more].concat());
    let csv = export(&["csv"]).succeeds();
    assert!(csv.lines().next().is_some_and(|names| names.contains("key") && names.contains("fields")), "{csv}");
    assert_eq!(csv.lines().count(), 1 + rows);
    assert_eq!(export(&["csv", "--operation", "scan"]).succeeds().lines().count(), 1 + scans);
    export(&["json", "-o", "rows.json"]).succeeds();
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("rows.json")).expect("a file")).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(rows));
    export(&["parquet", "-o", "rows.parquet"]).succeeds();
    assert!(std::fs::read(place.path("rows.parquet")).expect("a file").starts_with(b"PAR1"));
    assert!(export(&["openmetrics"]).succeeds().contains("operation=\"scan\""));
    export(&["hgrm", "--operation", "view_profile"]).fails(2, &["view_profile", "scan"]);
}

/// With writes in order, a whole replay leaves one state in every store.
#[test]
fn key_value_replays_leave_the_state_of_the_trace() {
    let place = Workplace::new();
    let sizes = ["data.records=200", "sessions=2000", "access.ordered_writes=true", "mix.insert=10", "mix.delete=2"];
    let set: Vec<&str> = sizes.iter().flat_map(|size| ["--set", size]).collect();
    place.run(&[&["trace", "gen", &workload("f"), "-o", "f.trace"], &set[..]].concat()).succeeds();
    let digest = place.run(&["trace", "digest", "f.trace"]).succeeds();
    let last = |text: &str| text.lines().last().unwrap_or_default().trim_start_matches("digest ").to_string();
    for (number, store) in ["memory:", "sqlite:kv.db?synchronous=off"].into_iter().enumerate() {
        let run = format!("r{number}");
        let words =
            ["replay", "run", "--trace", "f.trace", "--store", store, "-T", "9", "--load", "--digest", "-o", &run];
        assert_eq!(last(&place.run(&words).succeeds()), last(&digest), "{store}");
    }
    let again = place.run(&["replay", "digest", "--trace", "f.trace", "--store", "sqlite:kv.db?synchronous=off"]);
    assert_eq!(last(&again.succeeds()), last(&digest));
}
