//! The program that runs all servers for users.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Program, exchange, until};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_servers"));
    command.env_remove("ENCORE_TEST_SERVERS");
    command
}

#[test]
fn it_prints_urls_and_removes_all_at_an_interrupt() {
    // Fourteen successive ports that a parallel run does not take, below those of outgoing connections.
    let first = 10_000 + (std::process::id() % 450) as u16 * 14;
    let memcached = format!("127.0.0.1:{}", first + 3);
    let folder = tempfile::tempdir().expect("a temporary folder");
    // If root starts the servers, some run as other users.
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).expect("the folder is ours");
    let mut command = program();
    command.args(["--replicas", "--replica-delay", "5", "--first-port", &first.to_string(), "--folder"]);
    let mut running = Program::start(command.arg(folder.path()));
    let urls = running.lines_until(&format!("memcache://{memcached}"));
    for url in &urls {
        let known = [
            format!("postgres://encore:hush@127.0.0.1:{first}/encore"),
            format!("mysql://encore:hush@127.0.0.1:{}/encore", first + 1),
            format!("mongodb://127.0.0.1:{}/encore?replicaSet=rs0", first + 2),
        ];
        assert!(known.contains(url), "{url}");
    }
    let [a, b, c, d, e, redis, replica] = [7, 8, 9, 10, 11, 12, 13].map(|place| format!("127.0.0.1:{}", first + place));
    let replicated = running.lines_until(&format!("redis://{redis}/0?replica={replica}"));
    for url in &replicated {
        let known = [
            format!("redis://127.0.0.1:{}/0", first + 4),
            format!("cassandra://127.0.0.1:{}/encore", first + 5),
            format!("postgres://encore:hush@{a}/encore?replica={b}"),
            format!("mongodb://{c},{d},{e}/encore?replicaSet=rs0"),
        ];
        assert!(known.contains(url), "{url}");
    }
    until("memcached answers", || exchange(&memcached, b"version\r\n", 7).is_ok());

    // A second program finds its first port taken.
    let output = program().args(["--first-port", &first.to_string()]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("is taken") && error.contains("port "), "{error}");

    running.interrupt();
    assert_eq!(running.exit_code(), Some(0));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder stays").count(), 0);
    assert!(exchange(&memcached, b"version\r\n", 7).is_err());
}

#[test]
fn help_has_examples() {
    let output = program().arg("--help").output().expect("the program runs");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && help.contains("cargo run --release -p servers"), "{help}");
}
