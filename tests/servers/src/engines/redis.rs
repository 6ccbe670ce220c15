//! Redis.

use std::io::Result;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Durability, Engine, Replication, Site, ask, words};
use crate::machine;

pub static ENGINE: Engine = Engine {
    name: "Redis",
    programs: "redis-server",
    variable: "ENCORE_TEST_REDIS_URL",
    scheme: "redis",
    credentials: "",
    parameters: "",
    default_port: 6379,
    accounts: &[],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |_| None,
    replication: Some(Replication {
        programs: "redis-server",
        find,
        prepare: |site, _| prepare(site),
        arguments: |primary| words(["--replicaof", "127.0.0.1", &primary.to_string()]),
        is_ready: follows,
    }),
};

fn find() -> Option<Vec<PathBuf>> {
    Some(vec![machine::program("redis-server")?])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    site.create_folder("data")?;
    // One program is all of Redis's: it does what its name says.
    std::os::unix::fs::symlink(&site.programs[0], site.folder.join("redis-server"))?;
    Ok(Vec::new())
}

/// Without persistence, unless a commit has to survive the end of the machine.
fn command(site: &Site, port: u16, durability: Durability) -> Vec<String> {
    let mut command = vec![site.path("redis-server"), "--port".to_string(), port.to_string()];
    command.extend(["--dir".to_string(), site.path("data")]);
    command.extend(words(["--bind", "127.0.0.1", "--databases", "256", "--save", ""]));
    command.extend(match durability {
        Durability::Machine => words(["--appendonly", "yes", "--appendfsync", "always"]),
        Durability::Process => words(["--appendonly", "no", "--appendfsync", "no"]),
    });
    command
}

/// Whether a replica has the data of its primary.
fn follows(address: SocketAddr) -> Result<bool> {
    let answer = ask(address, b"INFO replication\r\n")?;
    Ok(String::from_utf8_lossy(&answer).contains("master_link_status:up"))
}

/// A server that still loads its data answers with an error.
fn is_ready(address: SocketAddr) -> Result<bool> {
    Ok(ask(address, b"PING\r\n")?.starts_with(b"+PONG"))
}
