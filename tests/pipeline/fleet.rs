//! Replayers in processes of their own, each with an address and a work folder as on a
//! machine of its own: what they do together, and what happens when one is lost.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use servers::Proxy;

use crate::support::Workplace;

/// A store that every replayer has for itself, slow enough for things to happen meanwhile.
const OWN: &str = "memory:?latency_us=1000";

/// A replayer that waits for a coordinator.
struct Host {
    child: Child,
    address: String,
    work: PathBuf,
}

impl Host {
    /// On the loopback address 127.0.0.N, with more arguments.
    fn start(place: &Workplace, n: u32, more: &[&str]) -> Host {
        Host::listening(place, n, &format!("127.0.0.{n}:0"), more, |command| command)
    }

    fn listening(
        place: &Workplace,
        n: u32,
        address: &str,
        more: &[&str],
        changed: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Host {
        let work = format!("work-{n}");
        let mut command = place.command(&["replay", "serve", "--listen", address, "--work", &work]);
        command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = changed(&mut command).spawn().expect("a replayer");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_string();
        Host { child, address, work: place.path(&work) }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Bytes of the largest log that it has written.
    fn logged(&self) -> u64 {
        let mut most = 0;
        let mut folders = vec![self.work.join("runs")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.path().extension().is_some_and(|e| e == "arrows") => {
                        most = most.max(entry.metadata().map_or(0, |metadata| metadata.len()));
                    }
                    false => {}
                }
            }
        }
        most
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may be dead already, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `coord run` of the busy workload in 8 fragments on these replayers.
fn run<'a>(
    place: &Workplace,
    name: &str,
    store: &str,
    hosts: impl IntoIterator<Item = &'a str>,
    more: &[&str],
) -> Command {
    let mut command = place.command(&[
        "run",
        "busy.toml",
        "--set",
        "fragments=8",
        "--set",
        "data.members=800",
        "--name",
        name,
        "--store",
        store,
    ]);
    for host in hosts {
        command.args(["--replayer", host]);
    }
    command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run that takes a minute unless something happens to it.
const LONG: [&str; 6] = ["--sessions", "800000", "--threads", "8", "--sla", "95% < 100ms, 60s"];

/// The run came to its end: what it says of the store is not the point here, and so
/// short a run may be void on a slow disk.
fn ends(output: &Output) -> String {
    let code = output.status.code();
    exits(output, if code == Some(1) { 1 } else { 0 })
}

fn exits(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Waits for a condition that must come true; a minute is for very slow machines.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn json(place: &Workplace, file: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.path(file)).expect(file)).expect("JSON")
}

/// The experiments of a run with their rulings and reasons, in their order.
fn rulings(place: &Workplace, run: &str) -> Vec<(String, String)> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(place.path(run).join("experiments"))
        .expect("experiments")
        .map(|e| e.expect("one").path())
        .collect();
    folders.sort();
    let ruling = |folder: &PathBuf| {
        let verdict = std::fs::read(folder.join("verdict.json")).expect("a verdict");
        let verdict: serde_json::Value = serde_json::from_slice(&verdict).expect("JSON");
        (verdict["ruling"].as_str().unwrap_or_default().to_string(), verdict["reasons"].to_string())
    };
    folders.iter().map(ruling).collect()
}

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_fleet_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// What one replayer would have left in the store, four leave.
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
        // Every log is here, and their rows are all operations.
        let rows = "SELECT count(DISTINCT fragment) AS f, count(*) FILTER (unpredictable) AS u FROM operations";
        let rows = place.run(&["analyze", "sql", &format!("runs/{name}"), rows, "--format", "csv"]).succeeds();
        assert_eq!(rows, "f,u\n8,0\n");
        let trace = "runs/traces/busy.trace";
        let digest = place.run(&["trace", "digest", trace, "--sessions", "2800"]).succeeds();
        assert_eq!(place.run(&["replay", "digest", "--store", &store, "--trace", trace]).succeeds(), digest);
    }
    // No secret of a store is on a disk.
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

/// Of folders that both sides see nothing travels.
#[test]
fn shared_folders_are_used_where_they_are() {
    let place = Workplace::new();
    let shared = place.path("").display().to_string();
    let host = Host::start(&place, 2, &["--share", &shared]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    ends(&run(&place, "a", OWN, [host.address.as_str()], &short).output().expect("the program starts"));
    assert!(!host.work.exists(), "something was sent or logged there");
    assert!(place.path("runs/a/experiments/0001-T2/log/fragment-7.arrows").exists());
}

#[test]
fn a_replayer_that_dies_makes_the_experiment_void_and_is_waited_for() {
    let place = Workplace::new();
    let (first, mut second) = (Host::start(&place, 2, &[]), Host::start(&place, 3, &[]));
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = ["--sessions", "12000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).spawn().expect("a child");
    until("a log", || second.logged() > 3_000);
    second.child.kill().expect("it can be killed");
    second.child.wait().expect("it is dead");
    let again = Host::listening(&place, 3, &second.address, &[], |command| command);
    let said = ends(&child.wait_with_output().expect("it ends"));
    assert!(said.contains("is void") && said.contains(&again.address) && said.contains("retries left"), "{said}");
    let rulings = rulings(&place, "runs/a");
    assert_eq!(rulings.len(), 2, "{rulings:?}");
    assert!(rulings[0].0 == "void" && rulings[0].1.contains(&again.address), "{rulings:?}");
    assert!(!rulings[1].1.contains("127.0.0"), "{rulings:?}");
    // What the dead one had flushed is on its disk, and can be had.
    let log = |fragment| place.path(&format!("runs/a/experiments/0001-T8/log/fragment-{fragment}.arrows"));
    assert!((0..8).any(|fragment| !log(fragment).exists()), "nothing was lost");
    place.run(&["collect", "runs/a", "--replayer", &hosts[0], "--replayer", &hosts[1]]).succeeds();
    assert!((0..8).all(|fragment| log(fragment).exists()), "a log is missing");
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
    assert!(said.contains("experiment 1 is void, and no retry is left") && said.contains(&hosts[1]), "{said}");
    assert!(json(&place, "runs/a/run.json")["state"]["failed"].is_string());
    assert_eq!(rulings(&place, "runs/a")[0].0, "void");
}

/// The experiment does not need the network between coordinator and replayer.
#[test]
fn a_network_that_is_cut_and_comes_back_harms_nothing() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let proxy = Proxy::start(&host.address);
    let arguments = ["--sessions", "24000", "--threads", "8", "--sla", "95% < 10s, 0.1s"];
    let child = run(&place, "a", OWN, [proxy.address().as_str()], &arguments).spawn().expect("a child");
    until("a log", || host.logged() > 3_000);
    proxy.refuse(true);
    proxy.cut();
    std::thread::sleep(Duration::from_secs(2));
    proxy.refuse(false);
    ends(&child.wait_with_output().expect("it ends"));
    let report = json(&place, "runs/a/experiments/0001-T8/replay.json");
    assert_eq!((report["sessions"].as_u64(), report["faults"].is_null()), (Some(24_000), true), "{report}");
    assert_eq!(rulings(&place, "runs/a").len(), 1);
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
    assert!(said.contains("no retry is left") && said.contains(&hosts[1]), "{said}");
    assert!(began.elapsed() < Duration::from_secs(58), "it was waited for to the end");
}

/// The replayers stop by themselves, keep their logs, and have them for whoever asks.
#[test]
fn a_coordinator_that_dies_leaves_logs_that_can_be_collected() {
    let place = Workplace::new();
    let host = Host::start(&place, 2, &[]);
    let mut child = run(&place, "a", OWN, [host.address.as_str()], &LONG).spawn().expect("a child");
    until("a log", || host.logged() > 3_000);
    // As long as it lives the replayer is its own.
    let other = run(&place, "b", OWN, [host.address.as_str()], &LONG).output().expect("the program starts");
    let refused = exits(&other, 2);
    assert!(refused.contains("belongs to the coordinator on") && refused.contains(&host.address), "{refused}");
    child.kill().expect("it can be killed");
    child.wait().expect("it is dead");
    let collect = || place.run(&["collect", "runs/a", "--replayer", &host.address]);
    until("the lease to run out", || {
        !collect().stderr().contains("belongs to") && !collect().stderr().contains("is ending")
    });
    assert!(place.path("runs/a/experiments/0001-T8/log/fragment-0.arrows").exists());
    let summary = place.run(&["analyze", "summary", "runs/a", "--json"]).stdout();
    assert!(summary.contains("\"void\"") && !summary.contains("without its closing mark"), "{summary}");
}

/// A file that may not grow is what a full disk looks like to a program.
#[test]
fn a_full_disk_on_one_host_is_named() {
    let place = Workplace::new();
    let first = Host::start(&place, 2, &[]);
    let second = Host::listening(&place, 3, "127.0.0.3:0", &[], |command| {
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        }
    });
    let hosts = [first.address.clone(), second.address.clone()];
    let arguments = [&LONG[..], &["--retries", "0"]].concat();
    let output = run(&place, "a", OWN, hosts.iter().map(String::as_str), &arguments).output().expect("it ends");
    let said = exits(&output, 3);
    assert!(said.contains(&hosts[1]) && !said.contains(&format!("{}:", hosts[0])), "{said}");
}

#[test]
fn certificates_tell_friend_from_stranger() {
    let place = Workplace::new();
    let made = place.run(&["certs", "certs", "--host", "127.0.0.2"]).succeeds();
    assert!(made.contains("certs/replayer.pem") && made.contains("next:"), "{made}");
    place.run(&["certs", "others", "--host", "127.0.0.2"]).succeeds();
    place.run(&["certs", "certs"]).fails(2, &["certs/ca.pem is there already"]);
    let host = Host::start(&place, 2, &["--certs", "certs"]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    let with = |name: &str, more: &[&str]| {
        let arguments = [&short[..], more].concat();
        run(&place, name, OWN, [host.address.as_str()], &arguments).output().expect("the program starts")
    };
    ends(&with("a", &["--certs", "certs"]));
    for (name, certs) in [("b", &["--certs", "others"][..]), ("c", &[])] {
        let said = exits(&with(name, certs), 2);
        assert!(said.contains(&host.address), "{said}");
        assert!(!place.path("runs").join(name).exists(), "a run was begun");
    }
    let missing = exits(&with("d", &["--certs", "nowhere"]), 2);
    assert!(missing.contains("nowhere/ca.pem") || missing.contains("nowhere/coordinator.pem"), "{missing}");
}

#[test]
fn a_token_from_a_file_is_enough_and_is_shown_nowhere() {
    let place = Workplace::new();
    std::fs::write(place.path("token"), "f00dfacef00dface\n").expect("a file");
    std::fs::write(place.path("wrong"), "deadbeefdeadbeef\n").expect("a file");
    place.run(&["replay", "serve", "--listen", "127.0.0.2:0", "--token-file", "none"]).fails(2, &["--token-file none"]);
    let host = Host::start(&place, 2, &["--token-file", "token"]);
    let arguments = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s", "--token-file"];
    let with = |name: &str, token: &str| {
        let arguments = [&arguments[..], &[token]].concat();
        run(&place, name, OWN, [host.address.as_str()], &arguments).output().expect("the program starts")
    };
    ends(&with("a", "token"));
    let said = exits(&with("b", "wrong"), 2);
    assert!(said.contains("not this replayer's") && !said.contains("deadbeef"), "{said}");
    let secrets = place.contents().into_iter().filter(|(path, content)| {
        !path.ends_with("token") && content.windows(16).any(|text| text == b"f00dfacef00dface")
    });
    assert_eq!(secrets.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn an_address_that_others_reach_needs_certificates() {
    let place = Workplace::new();
    place.run(&["replay", "serve", "--listen", "0.0.0.0:0"]).fails(2, &["--listen 0.0.0.0:0", "coord certs"]);
    std::fs::write(place.path("token"), "f00dfacef00dface\n").expect("a file");
    let token = ["replay", "serve", "--listen", "0.0.0.0:0", "--token-file", "token"];
    place.run(&token).fails(2, &["--listen 0.0.0.0:0", "others can read"]);
    place.run(&["run", "busy.toml", "--threads", "1", "--replayer", "127.0.0.1:9"]).fails(2, &["--store"]);
    let nobody = ["run", "busy.toml", "--threads", "1", "--store", "memory:", "--replayer", "127.0.0.1:9"];
    place.run(&nobody).fails(2, &["127.0.0.1:9", "replayer serve"]);
}

/// An interrupted rating goes on, and measures nothing twice.
#[test]
fn a_rating_is_resumed() {
    let place = Workplace::new();
    let rate = ["rate", "busy.toml", "--store", OWN, "--name", "r", "--sessions", "400000"];
    let how = ["--sla", "95% < 100ms, 1s", "--search-s", "0.5", "--max-threads", "4", "--rating", "soar"];
    let mut command = place.command(&[&rate[..], &how].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    let third = place.path("runs/r/experiments/0003-T4/log/fragment-0.arrows");
    until("the third experiment", || std::fs::metadata(&third).is_ok_and(|file| file.len() > 1_000));
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    exits(&child.wait_with_output().expect("it ends"), 3);
    let before = std::fs::read(place.path("runs/r/experiments/0001-T1/verdict.json")).expect("a verdict");
    let said = place.run(&["rate", "--resume", "runs/r"]).succeeds();
    assert!(said.contains("SoAR"), "{said}");
    let rating = json(&place, "runs/r/rating.json");
    let experiments = rating["experiments"].as_array().expect("experiments");
    let numbers: Vec<u64> = experiments.iter().map(|e| e["experiment"].as_u64().expect("a number")).collect();
    assert_eq!(numbers[..3], [1, 2, 4], "{numbers:?}");
    assert_eq!(std::fs::read(place.path("runs/r/experiments/0001-T1/verdict.json")).expect("a verdict"), before);
    assert_eq!(json(&place, "runs/r/run.json")["state"], "complete");
    place.run(&["rate", "--resume", "runs/r"]).fails(2, &["--resume runs/r", "complete"]);
}
