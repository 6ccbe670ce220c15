//! The environment of a test process: its sudden end, missing programs, the user's servers.

use std::path::Path;
use std::time::Duration;

use servers::{Kind, Options, Server};

use crate::support::{self, until};

/// The tests below start this one in a separate process.
#[test]
#[ignore = "waits to be killed"]
fn victim() {
    let servers = [servers::postgres(), servers::mysql(), servers::mongodb(), servers::memcached(), servers::redis()];
    let lines: Vec<String> = servers
        .into_iter()
        .flatten()
        .flat_map(|server| {
            let processes = server.processes().into_iter().map(|id| format!("victim: process {id}"));
            processes.chain([format!("victim: folder {}", server.folder().display())]).collect::<Vec<_>>()
        })
        .collect();
    println!("\n{}\nvictim: ready", lines.join("\n"));
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_test_process_leaves_nothing() {
    let mut victim = support::this_program(&["--exact", "environment::victim", "--ignored", "--nocapture"]);
    let lines = victim.lines_until("victim: ready");
    victim.kill();
    let named = |what: &str| -> Vec<String> {
        lines.iter().filter_map(|line| line.strip_prefix(&format!("victim: {what} "))).map(String::from).collect()
    };
    let (processes, folders) = (named("process"), named("folder"));
    assert!(processes.len() >= folders.len());
    until("servers and folders are gone", || {
        !processes.iter().any(|id| support::is_alive(id.parse().expect("a number")))
            && !folders.iter().any(|folder| Path::new(folder).exists())
    });
}

#[test]
fn without_programs_there_is_no_server_and_one_line() {
    let nowhere = [("PATH", "/nowhere"), ("HOME", "/nowhere"), ("ENCORE_CACHE", "/nowhere")];
    let run = |required: &str| {
        let mut command =
            support::this_command(&["--exact", "environment::nothing_here", "--ignored", "--test-threads=1"]);
        command.envs(nowhere).env_remove("ENCORE_TEST_MONGODB_URL").env("ENCORE_TEST_SERVERS", required);
        command.output().expect("this program runs")
    };
    let output = run("");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let line = "skipped: no MongoDB server (mongod) on this machine; set ENCORE_TEST_MONGODB_URL or install it\n";
    assert_eq!(error, line);

    let output = run("required");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success());
    let panic = "no MongoDB server (mongod) on this machine, and ENCORE_TEST_SERVERS=required is set";
    assert!(said.contains(panic), "{said}");
}

/// The test above runs this one where no programs are found.
#[test]
#[ignore = "needs an environment without programs"]
fn nothing_here() {
    assert!(servers::mongodb().is_none() && servers::mongodb().is_none());
    assert!(Server::start(Kind::Mongodb, Options::default()).is_none());
}

#[test]
fn the_users_own_server_is_used() {
    let mut command = support::this_command(&["--exact", "environment::foreign", "--ignored"]);
    command.env("ENCORE_TEST_POSTGRES_URL", "postgres://me:x@db.example/mine?sslmode=require");
    command.env("ENCORE_TEST_MEMCACHED", "cache.example:4");
    let output = command.output().expect("this program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The test above runs this one with these servers in its environment.
#[test]
#[ignore = "needs the environment of another test"]
fn foreign() {
    let postgres = servers::postgres().expect("the user's");
    assert_eq!(postgres.url("test"), "postgres://me:x@db.example/test?sslmode=require");
    assert_eq!(postgres.address(), "db.example:5432");
    let memcached = servers::memcached().expect("the user's");
    assert_eq!(
        (memcached.url("test").as_str(), memcached.address().as_str()),
        ("memcache://cache.example:4", "cache.example:4")
    );
}
