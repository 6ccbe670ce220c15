//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// These ports are below those that systems give to outgoing connections. An outgoing connection
/// could take the port of a server that is down for a moment, or connect to itself there.
const FIRST: u32 = 16384;
const COUNT: u32 = 16384;
/// Each process tries this many ports before those of its neighbours, so that parallel test
/// processes do not pick the same one.
const EACH: u32 = 64;

/// A port that is free now; each call returns another one.
pub fn free() -> u16 {
    free_at(&[Ipv4Addr::LOCALHOST])
}

/// A port that is free now at each of these addresses; each call returns another one.
pub fn free_at(hosts: &[Ipv4Addr]) -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(EACH).wrapping_add(call) % COUNT;
        let port = (FIRST + offset) as u16;
        if hosts.iter().all(|host| is_free(*host, port)) {
            return port;
        }
    }
}

/// Whether a port of an address of loopback is free.
pub fn is_free(host: Ipv4Addr, port: u16) -> bool {
    TcpListener::bind((host, port)).is_ok()
}
