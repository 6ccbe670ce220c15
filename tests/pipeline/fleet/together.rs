//! Several replayers together do the same as one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Host, OWN, ends, exits, json, run};
use crate::support::Workplace;

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_fleet_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Four replayers leave the same state in the store as one.
#[test]
fn four_replayers_do_what_one_would() {
    let place = Workplace::new();
    let hosts: Vec<Host> = (2..6).map(|n| Host::start(&place, n, &[])).collect();
    let weighted = format!("{}*2", hosts[1].address);
    let names = || hosts.iter().enumerate().map(|(at, host)| if at == 1 { weighted.as_str() } else { &host.address });
    let stores = servers::postgres().into_iter().chain(servers::mysql());
    for (number, server) in stores.enumerate() {
        let (name, store) = (format!("r{number}"), server.url(&database()));
        let arguments = ["--sessions", "2500", "--threads", "11", "--warmup", "300", "--sla", "95% < 10s, 0.1s"];
        let said = ends(&run(&place, &name, &store, names(), &arguments).output().expect("the program starts"));
        assert!(said.contains("weight 2") && !said.contains("hush"), "{said}");
        let report = json(&place, &format!("runs/{name}/experiments/0001-T11/replay.json"));
        let each = report["replayers"].as_array().expect("replayers");
        let dealt: Vec<usize> = each.iter().map(|r| r["fragments"].as_array().expect("some").len()).collect();
        let threads: u64 = each.iter().map(|r| r["threads"].as_u64().expect("a number")).sum();
        assert_eq!((each.len(), dealt.iter().sum::<usize>(), threads), (4, 8, 11), "{report}");
        assert!(dealt[1] > dealt[0], "{dealt:?}");
        assert_eq!(report["sessions"], 2500, "{report}");
        assert!(each.iter().all(|r| r["clock"][0]["round_trip_ns"].as_u64() > Some(0)), "{report}");
        // The logs of all fragments are here, and no read is unpredictable.
        let rows = "SELECT count(DISTINCT fragment) AS f, count(*) FILTER (unpredictable) AS u FROM operations";
        let rows = place.run(&["analyze", "sql", &format!("runs/{name}"), rows, "--format", "csv"]).succeeds();
        assert_eq!(rows, "f,u\n8,0\n");
        let trace = "runs/traces/busy.trace";
        let digest = place.run(&["trace", "digest", trace, "--sessions", "2800"]).succeeds();
        assert_eq!(place.run(&["replay", "digest", "--store", &store, "--trace", trace]).succeeds(), digest);
    }
    // No file contains the password of a store.
    let secrets = place.contents().into_iter().filter(|(_, content)| content.windows(4).any(|four| four == b"hush"));
    assert_eq!(secrets.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn a_trace_set_travels_once() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    ends(&run(&place, "a", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    let files = || {
        let entries = std::fs::read_dir(host.work.join("files")).expect("files").map(|e| e.expect("one"));
        let mut files: Vec<_> =
            entries.map(|e| (e.file_name(), e.metadata().expect("one").modified().expect("a time"))).collect();
        files.sort();
        files
    };
    let before = files();
    assert!(!before.is_empty());
    ends(&run(&place, "b", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    assert_eq!(files(), before);
}

/// A transfer continues after the part that the replayer has. If that part is damaged, the file is
/// sent again.
#[test]
fn a_trace_file_that_arrives_damaged_is_sent_again() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    ends(&run(&place, "a", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    let (whole, damaged): (Vec<_>, Vec<_>) = std::fs::read_dir(host.work.join("files"))
        .expect("files")
        .map(|entry| entry.expect("one").path())
        .map(|path| (std::fs::read(&path).expect("a file"), path))
        .unzip();
    for (content, path) in whole.iter().zip(&damaged) {
        let mut begin = content[..content.len() / 2].to_vec();
        begin[0] ^= 1;
        std::fs::write(path.with_extension("part"), begin).expect("a file");
        std::fs::remove_file(path).expect("it was there");
    }
    ends(&run(&place, "b", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    for (content, path) in whole.iter().zip(&damaged) {
        assert_eq!(std::fs::read(path).expect("it is there again"), *content);
        assert!(!path.with_extension("part").exists());
    }
}

/// Checks that the analysis covers the whole experiment, not only the part of one replayer.
fn is_whole(place: &Workplace, experiment: &str, fragments: usize) {
    let (verdict, report) =
        (json(place, &format!("{experiment}/verdict.json")), json(place, &format!("{experiment}/replay.json")));
    assert_eq!(verdict["figures"]["overall"]["ok"], report["ok"], "{verdict}");
    let reasons = verdict["reasons"].to_string();
    assert!(!reasons.contains("the log has"), "{reasons}");
    let plan = json(place, &format!("{experiment}/plan.json"));
    assert_eq!(plan["fragments"].as_array().map(Vec::len), Some(fragments), "{plan}");
}

/// Files in folders that both sides share are not sent.
#[test]
fn shared_folders_are_used_where_they_are() {
    let place = Workplace::new();
    let shared = place.path("").display().to_string();
    let host = Host::start(&place, 2, &["--share", &shared]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    ends(&run(&place, "a", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    let kept = std::fs::read_dir(&host.work).expect("its folder").flatten().map(|entry| entry.file_name());
    assert_eq!(kept.collect::<Vec<_>>(), ["lock"], "something was sent or logged there");
    assert!(place.path("runs/a/experiments/0001-T2/log/fragment-7.arrows").exists());
    is_whole(&place, "runs/a/experiments/0001-T2", 8);
    let second = Host::start(&place, 3, &["--share", &shared]);
    let both = [host.address.as_str(), second.address.as_str()];
    ends(&run(&place, "b", OWN, both, &short).output().expect("the program starts"));
    is_whole(&place, "runs/b/experiments/0001-T2", 8);
}

/// A replayer that shares the folder of runs, but not that of trace sets, has the trace set at
/// another path. The plan must not show that path.
#[test]
fn shared_runs_and_a_trace_set_that_was_sent() {
    let place = Workplace::with_trace();
    let runs = place.path("runs");
    std::fs::create_dir(&runs).expect("a folder");
    let host = Host::start(&place, 2, &["--share", &runs.display().to_string()]);
    let run = ["run", "--trace", "busy.trace", "--store", OWN, "--name", "a", "--replayer", &host.address];
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    ends(&place.command(&[&run[..], &short].concat()).output().expect("the program starts"));
    is_whole(&place, "runs/a/experiments/0001-T2", 2);
    let plan = json(&place, "runs/a/experiments/0001-T2/plan.json");
    assert!(plan["trace"].as_str().is_some_and(|trace| trace.ends_with("busy.trace")), "{plan}");
}

/// A path with `..` in it is valid too.
#[test]
fn replayers_on_this_machine_write_where_the_runs_are() {
    let place = Workplace::new();
    let here = place.path("").file_name().expect("a name").to_string_lossy().into_owned();
    let runs = format!("../{here}/runs");
    let short = ["--sessions", "500", "--threads", "4", "--sla", "95% < 10s, 0.1s", "--replayers", "2"];
    ends(&run(&place, "a", OWN, [], &[&short[..], &["--runs", &runs]].concat()).output().expect("the program starts"));
    is_whole(&place, "runs/a/experiments/0001-T4", 8);
    assert!(!place.path("replayer-work").exists(), "something was sent to a replayer on this machine");
}

/// Summaries of logs that stay on their hosts give the same figures as the logs.
#[test]
fn logs_that_are_left_come_to_the_same() {
    let place = Workplace::new();
    let hosts: Vec<Host> = (2..4).map(|n| Host::start(&place, n, &[])).collect();
    let names = || hosts.iter().map(|host| host.address.as_str());
    let lies = "memory:?latency_us=200&stale=0.5";
    let arguments =
        ["--sessions", "6000", "--threads", "8", "--warmup", "500", "--sla", "95% < 10s, 0.1s", "--leave-logs"];
    ends(&run(&place, "a", lies, names(), &arguments).output().expect("the program starts"));
    let experiment = "runs/a/experiments/0001-T8";
    assert!(!place.path(experiment).join("log").exists() && !place.path("runs/a/operations").exists());
    let summaries = std::fs::read_dir(place.path(experiment).join("summaries")).expect("summaries").count();
    assert_eq!(summaries, 2);
    // Without the checksums of the tables, which are sealed only from logs that are here.
    let verdict = || {
        let mut verdict = json(&place, &format!("{experiment}/verdict.json"));
        verdict.as_object_mut().expect("an object").remove("sealed");
        verdict
    };
    let left = verdict();
    assert!(left["figures"]["unpredictable_reads"].as_u64() > Some(0), "{left}");
    assert_eq!(left["replayers"].as_array().map(Vec::len), Some(2), "{left}");
    // An interrupted collection changes nothing.
    let log = "log/fragment-0.arrows";
    let runs = hosts.iter().flat_map(|host| std::fs::read_dir(host.work.join("runs")).expect("runs"));
    // The folder name has the number of threads of this replayer alone.
    let mut kept = runs.map(|run| run.expect("one").path().join("experiments/0001-T4").join(log));
    let kept = kept.find(|path| path.exists()).expect("somebody has it");
    std::fs::create_dir(place.path(experiment).join("log")).expect("a folder");
    std::fs::copy(kept, place.path(experiment).join(log)).expect("a copy");
    std::fs::remove_file(place.path(experiment).join("verdict.json")).expect("it was there");
    place.run(&["analyze", "summary", "runs/a"]);
    assert_eq!(verdict(), left);
    // A summary cannot be evaluated for another response time.
    let other = ["analyze", "summary", "runs/a", "--sla", "95% < 1ms"];
    place.run(&other).fails(2, &[experiment, "10000 ms", "encore collect"]);
    let rows = ["analyze", "sql", "runs/a", "SELECT count(*) AS n FROM operations", "--format", "csv"];
    let ran = place.run(&rows);
    assert!(ran.stderr().contains("the logs of experiment 1 are on"), "{}", ran.stderr());
    assert_eq!(ran.stdout(), "n\n0\n");

    place.run(&["collect", "runs/a", "--replayer", &hosts[0].address, "--replayer", &hosts[1].address]).succeeds();
    let rows = place.run(&rows).stdout();
    assert_ne!(rows, "n\n0\n");
    assert_eq!(verdict(), left);
}

#[test]
fn weights_can_be_measured() {
    let place = Workplace::new();
    let hosts: Vec<Host> = (2..4).map(|n| Host::start(&place, n, &[])).collect();
    let names = || hosts.iter().map(|host| host.address.as_str());
    let short = ["--sessions", "500", "--threads", "4", "--sla", "95% < 10s, 0.1s", "--calibrate"];
    let said = ends(&run(&place, "a", OWN, names(), &short).output().expect("the program starts"));
    assert!(said.contains("calibrating"), "{said}");
    let experiments = std::fs::read_dir(place.path("runs/a/experiments")).expect("experiments").count();
    assert_eq!(experiments, 1, "the calibration is none of them");
    for host in &hosts {
        let mut runs = std::fs::read_dir(host.work.join("runs")).expect("runs").map(|run| run.expect("one").path());
        // The folder name has the number of threads of this replayer alone.
        let calibrated = runs.find_map(|run| std::fs::read_dir(run.join("experiments/0000-T16/log")).ok());
        let logs = calibrated.expect("the folder of the calibration").count();
        assert_eq!(logs, 0, "a calibration that is done again would find them");
    }
    let weighted = format!("{}*2", hosts[0].address);
    let said = exits(&run(&place, "b", OWN, [weighted.as_str()], &short).output().expect("the program starts"), 2);
    assert!(said.contains("--calibrate") && said.contains("*2"), "{said}");
}

/// A coordinator starts as many replayers as `--replayers` says, and the plan of a comparison gives
/// the number for each series.
#[test]
fn several_replayers_on_one_machine() {
    let place = Workplace::new();
    let short = ["--sessions", "500", "--threads", "6", "--sla", "95% < 10s, 0.1s", "--replayers", "3"];
    ends(&run(&place, "a", OWN, [], &short).output().expect("the program starts"));
    let report = json(&place, "runs/a/experiments/0001-T6/replay.json");
    assert_eq!(report["replayers"].as_array().map(Vec::len), Some(3), "{report}");
    is_whole(&place, "runs/a/experiments/0001-T6", 8);
    let few = run(&place, "b", OWN, ["127.0.0.1:9"], &short).output().expect("the program starts");
    assert!(exits(&few, 2).contains("--replayers 3: --replayer names only 1"));

    let plan = r#"
        name = "clients"
        title = "Clients"
        spec = "busy.toml"
        sla = "50% < 10s, 100% unpredictable, 0.3s"
        measure = "throughput"
        set = ["fragments=4", "data.members=400", "sessions=40000"]
        axis = { label = "threads", points = [{ label = "8", threads = 8 }] }
        stores = [
            { label = "one", url = "memory:?latency_us=1000", replayers = 1 },
            { label = "four", url = "memory:?latency_us=1000", replayers = 4 },
        ]"#;
    std::fs::write(place.path("clients.toml"), plan).expect("a file");
    place.run(&["compare", "clients.toml"]).succeeds();
    let replayers = |cell: &str| {
        let report = json(&place, &format!("runs/clients/{cell}/experiments/0001-T8/replay.json"));
        report["replayers"].as_array().map(Vec::len)
    };
    assert_eq!((replayers("8-one"), replayers("8-four")), (Some(1), Some(4)));
    for cell in ["8-one", "8-four"] {
        is_whole(&place, &format!("runs/clients/{cell}/experiments/0001-T8"), 4);
    }
}
