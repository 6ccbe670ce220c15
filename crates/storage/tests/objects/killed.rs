//! A process that is killed while it writes an object leaves none.

use std::process::{Command, Stdio};

use servers::Proxy;
use storage::Remote;

use crate::support::{bytes, prefix, url};

/// What the killed process writes, and where it is.
const FILE: &str = "ENCORE_TEST_KILLED_FILE";
/// Of several parts, each of which takes more than a hundred pieces of the proxy.
const LENGTH: usize = 40 << 20;
/// So many pieces are less than half of it, as one has 64 KiB at most.
const PIECES: u64 = 200;

/// The test below starts this one in a process of its own. Otherwise it does nothing.
#[test]
fn victim() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let remote = Remote::open(&url("s3://encore/killed")).expect("the server takes us");
    remote.put(file.as_ref(), "whole").expect("put");
}

#[test]
fn an_object_appears_whole_or_not_at_all() {
    let Some((server, direct)) = prefix("killed") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, bytes(LENGTH)).expect("written");
    let proxy = Proxy::start(&server.address());
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "killed::victim"]).env(FILE, &file).stdin(Stdio::null()).stdout(Stdio::null());
    command.envs(server.variables_through(&proxy));
    let mut victim = command.spawn().expect("this program starts");
    while proxy.requests() < PIECES {
        assert!(victim.try_wait().expect("its state").is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    proxy.hold(true);
    victim.kill().expect("killed");
    victim.wait().expect("its end");
    proxy.hold(false);
    assert_eq!(direct.list("").expect("a list"), []);
    assert!(!direct.exists("whole").expect("an answer"));

    // Left alone, the same process writes the object.
    assert!(command.status().expect("this program starts").success());
    assert_eq!(direct.list("").expect("a list")[0].bytes, LENGTH as u64);
}
