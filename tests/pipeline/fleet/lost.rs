//! A replayer, the coordinator, the network or a disk fails.

use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use servers::Proxy;

use super::{Host, OWN, ends, exits, json, rulings, run};
use crate::support::{Workplace, until};

/// A run that takes minutes if no fault ends it.
const LONG: [&str; 6] = ["--sessions", "1000000", "--threads", "8", "--sla", "95% < 100ms, 120s"];

#[test]
fn a_replayer_that_dies_makes_the_experiment_void_and_is_waited_for() {
    let place = Workplace::new();
    let (first, mut second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = ["--sessions", "40000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("a log", || second.logged() > 3_000);
    second.child.kill().expect("it can be killed");
    second.child.wait().expect("it is dead");
    let again = Host::listening(&place, 3, &second.address, &[], |command| command);
    let said = ends(&child.wait_with_output().expect("it ends"));
    assert!(said.contains("is void") && said.contains(&again.address) && said.contains("1 retry left"), "{said}");
    let rulings = rulings(&place, "runs/a");
    assert_eq!(rulings.len(), 2, "{rulings:?}");
    assert!(rulings[0].0 == "void" && rulings[0].1.contains(&again.address), "{rulings:?}");
    assert!(!rulings[1].1.contains("127.0.0"), "{rulings:?}");
    // The rows that the dead replayer flushed are on its disk, and can be collected.
    let log = |fragment| place.path(&format!("runs/a/experiments/0001-T8/log/fragment-{fragment}.arrows"));
    assert!((0..8).any(|fragment| !log(fragment).exists()), "nothing was lost");
    place.run(&["collect", "runs/a", "--replayer", &hosts[0], "--replayer", &hosts[1]]).succeeds();
    assert!((0..8).all(|fragment| log(fragment).exists()), "a log is missing");
}

/// The replayer dies after the handshake, while it receives its trace set.
#[test]
fn a_replayer_that_dies_before_the_start_is_named_and_waited_for() {
    let place = Workplace::new();
    let (first, mut second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments =
        ["--set", "data.members=40000", "--sessions", "12000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("the first file", || std::fs::read_dir(second.work.join("files")).is_ok_and(|files| files.count() > 0));
    second.child.kill().expect("it can be killed");
    second.child.wait().expect("it is dead");
    let again = Host::listening(&place, 3, &second.address, &[], |command| command);
    let said = ends(&child.wait_with_output().expect("it ends"));
    assert!(said.contains("experiment 1 is void") && said.contains(&again.address), "{said}");
    let rulings = rulings(&place, "runs/a");
    assert!(rulings.len() == 2 && rulings[0].0 == "void" && rulings[0].1.contains(&again.address), "{rulings:?}");
}

#[test]
fn without_retries_a_lost_replayer_ends_the_run_with_its_name() {
    let place = Workplace::new();
    let (first, mut second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = [&LONG[..], &["--retries", "0"]].concat();
    let child = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("a log", || second.logged() > 3_000);
    second.child.kill().expect("it can be killed");
    let said = exits(&child.wait_with_output().expect("it ends"), 3);
    assert!(said.contains("experiment 1 is void, and no retries are left") && said.contains(&hosts[1]), "{said}");
    assert!(json(&place, "runs/a/run.json")["state"]["failed"].is_string());
    assert_eq!(rulings(&place, "runs/a")[0].0, "void");
}

/// An experiment does not need the network between coordinator and replayer.
#[test]
fn a_network_that_is_cut_and_comes_back_harms_nothing() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let proxy = Proxy::start(&host.address);
    let arguments = ["--sessions", "60000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, [proxy.address().as_str()], &arguments).spawn().expect("a child");
    until("a log", || host.logged() > 3_000);
    proxy.refuse(true);
    proxy.cut();
    std::thread::sleep(Duration::from_secs(2));
    proxy.refuse(false);
    ends(&child.wait_with_output().expect("it ends"));
    let report = json(&place, "runs/a/experiments/0001-T8/replay.json");
    assert_eq!((report["sessions"].as_u64(), report["faults"].is_null()), (Some(60_000), true), "{report}");
    assert_eq!(rulings(&place, "runs/a").len(), 1);
}

/// The network is cut in any phase of a run, and the run goes on when it is back.
#[test]
fn a_network_may_be_cut_at_any_time() {
    for after_ms in [0, 50, 100, 200, 400, 800] {
        let place = Workplace::new();
        let hosts = [Host::start(&place, 2, &[]), Host::start(&place, 3, &[])];
        let proxy = Proxy::start(&hosts[1].address);
        let arguments = ["--sessions", "3000", "--threads", "8", "--warmup", "1000", "--sla", "95% < 10s, 0.1s"];
        let names = [hosts[0].address.as_str(), &proxy.address()];
        let child = run(&place, "a", OWN, names, &arguments).spawn().expect("a child");
        until("the first file", || hosts[1].work.join("files").exists());
        std::thread::sleep(Duration::from_millis(after_ms));
        proxy.refuse(true);
        proxy.cut();
        std::thread::sleep(Duration::from_millis(1500));
        proxy.refuse(false);
        let said = ends(&child.wait_with_output().expect("it ends"));
        let rulings = rulings(&place, "runs/a");
        let last = format!("runs/a/experiments/{:04}-T8/replay.json", rulings.len());
        let report = json(&place, &last);
        assert_eq!(
            (report["sessions"].as_u64(), report["faults"].is_null()),
            (Some(3_000), true),
            "{after_ms}: {said}"
        );
    }
}

/// A connection may be lost after the last byte of a file, and before the replayer has checked it.
#[test]
fn a_file_of_which_all_bytes_arrived_is_taken() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let workload = ["--set", "fragments=8", "--set", "data.members=800"];
    place.run(&[&["trace", "gen", "busy.toml", "-o", "a.trace"], &workload[..]].concat()).succeeds();
    let file = &json(&place, "a.trace/manifest.json")["files"][0];
    let text = |key: &str| file[key].as_str().expect("a text").to_string();
    let files = host.work.join("files");
    std::fs::create_dir_all(&files).expect("a folder");
    let part = files.join(format!("{}.part", text("blake3")));
    std::fs::copy(place.path("a.trace").join(text("path")), &part).expect("a copy");
    let arguments = ["--sessions", "3000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, [host.address.as_str()], &arguments).spawn().expect("a child");
    ends(&child.wait_with_output().expect("it ends"));
    assert!(!part.exists());
}

/// A replayer that is unreachable when the coordinator stops the others must stop when it is
/// reachable again.
#[test]
fn a_replayer_that_was_out_of_reach_when_all_stopped_stops_too() {
    let place = Workplace::new();
    let (mut first, second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let proxy = Proxy::start(&second.address);
    let names = [first.address.clone(), proxy.address()];
    let arguments = [&LONG[..], &["--retries", "0"]].concat();
    let child = run(&place, "a", OWN, names.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("a log", || second.logged() > 3_000);
    // The coordinator gives the first replayer up 15 s after its end, while the second one is
    // unreachable.
    first.child.kill().expect("it can be killed");
    std::thread::sleep(Duration::from_secs(8));
    proxy.refuse(true);
    proxy.cut();
    std::thread::sleep(Duration::from_secs(11));
    proxy.refuse(false);
    let began = Instant::now();
    let said = exits(&child.wait_with_output().expect("it ends"), 3);
    assert!(said.contains("no retries are left") && said.contains(&names[0]), "{said}");
    assert!(began.elapsed() < Duration::from_secs(110), "it ran to its planned end");
}

#[test]
fn a_replayer_that_hangs_is_given_up() {
    let place = Workplace::new();
    let (first, second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = [&LONG[..], &["--retries", "0"]].concat();
    let child = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("a log", || second.logged() > 3_000);
    second.signal(libc::SIGSTOP);
    let began = Instant::now();
    let said = exits(&child.wait_with_output().expect("it ends"), 3);
    second.signal(libc::SIGCONT);
    assert!(said.contains("no retries are left") && said.contains(&hosts[1]), "{said}");
    assert!(began.elapsed() < Duration::from_secs(110), "it was waited for to the end");
}

/// The replayers stop by themselves, and keep their logs for a later `collect`.
#[test]
fn a_coordinator_that_dies_leaves_logs_that_can_be_collected() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let mut child = run(&place, "a", OWN, [host.address.as_str()], &LONG).spawn().expect("a child");
    until("a log", || host.logged() > 3_000);
    // While the coordinator lives, it has a lease on the replayer.
    let other = run(&place, "b", OWN, [host.address.as_str()], &LONG).output().expect("the program starts");
    let refused = exits(&other, 2);
    assert!(refused.contains("in use by the coordinator on") && refused.contains(&host.address), "{refused}");
    child.kill().expect("it can be killed");
    child.wait().expect("it is dead");
    let collect = || place.run(&["collect", "runs/a", "--replayer", &host.address]);
    until("the lease to run out", || {
        !collect().stderr().contains("in use by") && !collect().stderr().contains("is still ending")
    });
    assert!(place.path("runs/a/experiments/0001-T8/log/fragment-0.arrows").exists());
    let summary = place.run(&["analyze", "summary", "runs/a", "--json"]).stdout();
    assert!(summary.contains("\"void\"") && !summary.contains("log incomplete"), "{summary}");
}

/// A replayer whose files may not grow beyond a limit: to a program this looks like a full disk.
fn with_full_disk(place: &Workplace, n: u32, bytes: u64) -> Host {
    Host::listening(place, n, &format!("127.0.0.{n}:0"), &[], |command| {
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        }
    })
}

/// The logs fill the disk while the experiment runs.
#[test]
fn a_disk_that_fills_up_in_mid_run_makes_the_experiment_void() {
    let place = Workplace::new();
    let (first, second) = (Host::start(&place, 2, &[]), with_full_disk(&place, 3, 400_000));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = ["--sessions", "200000", "--threads", "8", "--sla", "95% < 100ms, 60s", "--retries", "0"];
    let output = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).output().expect("it ends");
    let said = exits(&output, 3);
    assert!(said.contains("experiment 1 is void") && said.contains("log/fragment-"), "{said}");
    let rulings = rulings(&place, "runs/a");
    assert!(rulings[0].0 == "void" && rulings[0].1.contains(&hosts[1]), "{rulings:?}");
    // The logs of the other replayer are here.
    let log = |fragment: u32| place.path(&format!("runs/a/experiments/0001-T8/log/fragment-{fragment}.arrows"));
    assert!((0..8).any(|fragment| log(fragment).exists()), "no log was fetched");
}

#[test]
fn a_full_disk_on_one_host_is_named() {
    let place = Workplace::new();
    let (first, second) = (Host::start(&place, 2, &[]), with_full_disk(&place, 3, 200_000));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = [&LONG[..], &["--retries", "0"]].concat();
    let output = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).output().expect("it ends");
    let said = exits(&output, 3);
    assert!(said.contains(&hosts[1]) && !said.contains(&format!("{}:", hosts[0])), "{said}");
}

/// `collect` after `--leave-logs` removes the verdicts that were made without the logs. `--resume`
/// then analyzes the logs again, and does not repeat the experiments.
#[test]
fn a_rating_is_resumed_after_its_logs_were_collected() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let rate = ["rate", "busy.toml", "--store", OWN, "--name", "r", "--sessions", "400000", "--leave-logs"];
    let how = ["--sla", "95% < 10s, 1s", "--search-s", "0.5", "--max-threads", "4", "--rating", "soar"];
    let of = ["--replayer", &host.address];
    let mut command = place.command(&[&rate[..], &how, &of].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    until("the third experiment", || place.experiment("runs/r", 3).is_some());
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    exits(&child.wait_with_output().expect("it ends"), 130);
    place.run(&[&["collect", "runs/r"][..], &of].concat()).succeeds();
    let first = place.path("runs/r/experiments/0001-T1");
    assert!(first.join("log/fragment-0.arrows").exists() && !first.join("verdict.json").exists());
    place.run(&[&["rate", "--resume", "runs/r"][..], &of].concat()).ends();
    let rating = json(&place, "runs/r/rating.json");
    let experiments = rating["experiments"].as_array().expect("experiments");
    let numbers: Vec<u64> = experiments.iter().map(|e| e["experiment"].as_u64().expect("a number")).collect();
    assert_eq!(numbers[..2], [1, 2], "{numbers:?}");
}

/// `--resume` must not repeat an extension of the trace from before the interruption.
#[test]
fn a_resumed_rating_extends_its_trace_for_what_is_new_alone() {
    let place = Workplace::new();
    let rate = ["rate", "busy.toml", "--store", OWN, "--name", "r", "--set", "sessions=100", "--between", "continue"];
    let how = ["--sla", "95% < 10s, 1s", "--search-s", "0.5", "--max-threads", "4", "--rating", "soar"];
    let mut command = place.command(&[&rate[..], &how].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    until("the third experiment", || place.experiment("runs/r", 3).is_some());
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let before = exits(&child.wait_with_output().expect("it ends"), 130);
    assert!(before.contains("trace too short: "), "{before}");
    let said = place.run(&["rate", "--resume", "runs/r"]).ends();
    for line in said.lines().filter(|line| line.starts_with("trace too short: ")) {
        let number = |word: &str| word.replace(',', "").parse::<u64>().ok();
        let numbers: Vec<u64> = line.split(' ').filter_map(number).collect();
        assert!(matches!(numbers[..], [sessions, needed, longer] if sessions < needed && needed < longer), "{line}");
    }
}

/// A resumed rating repeats no experiment.
#[test]
fn a_rating_is_resumed() {
    let place = Workplace::new();
    let rate = ["rate", "busy.toml", "--store", OWN, "--name", "r", "--sessions", "400000"];
    let how = ["--sla", "95% < 10s, 1s", "--search-s", "0.5", "--max-threads", "4", "--rating", "soar"];
    let mut command = place.command(&[&rate[..], &how].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    // While the rating lives, it has a lock on the run.
    until("the first experiment", || place.experiment_log_bytes("runs/r", 1) > 1_000);
    place.run(&["rate", "--resume", "runs/r"]).fails(2, &["runs/r", "another coordinator"]);
    // The experiments before the third decide its number of threads.
    until("the third experiment", || place.experiment_log_bytes("runs/r", 3) > 1_000);
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    exits(&child.wait_with_output().expect("it ends"), 130);
    let before = std::fs::read(place.path("runs/r/experiments/0001-T1/verdict.json")).expect("a verdict");
    // Another store or workload is refused: the existing results are for the first ones.
    let other = ["rate", "--resume", "runs/r", "--store", "memory:?latency_us=7"];
    place.run(&other).fails(2, &["--resume runs/r", OWN, "memory:?latency_us=7"]);
    let document = std::fs::read_to_string(place.path("runs/r/run.json")).expect("run.json");
    let id = json(&place, "runs/r/run.json")["workload_id"].as_str().expect("an id").to_string();
    std::fs::write(place.path("runs/r/run.json"), document.replace(&id, "of-another")).expect("it is written");
    place.run(&["rate", "--resume", "runs/r"]).fails(2, &["--resume runs/r", "has changed since the run began"]);
    std::fs::write(place.path("runs/r/run.json"), document).expect("it is written");
    // A variable may name the same store.
    let same = ["rate", "--resume", "runs/r", "--store", "${ENCORE_TEST_UNSET:-memory:?latency_us=1000}"];
    let said = place.run(&same).ends();
    assert!(said.contains("SoAR"), "{said}");
    let rating = json(&place, "runs/r/rating.json");
    let experiments = rating["experiments"].as_array().expect("experiments");
    let numbers: Vec<u64> = experiments.iter().map(|e| e["experiment"].as_u64().expect("a number")).collect();
    // The interrupt stopped the third experiment, unless it ended first on a busy machine.
    let third = json(&place, &format!("{}/replay.json", place.experiment("runs/r", 3).expect("it began").display()));
    assert_eq!(numbers[..2], [1, 2], "{numbers:?}");
    assert_eq!(numbers.contains(&3), third["end"] != "interrupted", "{numbers:?}");
    assert_eq!(std::fs::read(place.path("runs/r/experiments/0001-T1/verdict.json")).expect("a verdict"), before);
    assert_eq!(json(&place, "runs/r/run.json")["state"], "complete");
    place.run(&["rate", "--resume", "runs/r"]).fails(2, &["--resume runs/r", "complete"]);
    // A rating that was killed before it wrote its page only has to write the page.
    let page = place.path("runs/r/report.html");
    std::fs::remove_file(&page).expect("a page");
    place.run(&same).succeeds();
    assert!(page.exists());
    let again = json(&place, "runs/r/rating.json");
    assert_eq!(again["experiments"].as_array().expect("experiments").len(), numbers.len());
}
