//! memcached.

use std::io::Result;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Durability, Engine, Site, ask, words};
use crate::machine;

pub static ENGINE: Engine = Engine {
    name: "memcached",
    programs: "memcached",
    variable: "ENCORE_TEST_MEMCACHED",
    scheme: "memcache",
    credentials: "",
    parameters: "",
    default_port: 11211,
    accounts: &[],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare: |_| Ok(Vec::new()),
    command,
    is_ready,
    clean_up: |_| None,
    replication: None,
};

fn find() -> Option<Vec<PathBuf>> {
    Some(vec![machine::program("memcached")?])
}

fn command(site: &Site, port: u16, _: Durability) -> Vec<String> {
    let mut command = vec![site.program(0), "-p".to_string(), port.to_string()];
    command.extend(words(["-l", "127.0.0.1", "-U", "0"]));
    if machine::is_root() {
        command.extend(words(["-u", "root"]));
    }
    command
}

fn is_ready(address: SocketAddr) -> Result<bool> {
    Ok(ask(address, b"version\r\n")?.starts_with(b"VERSION "))
}
