//! Ports on loopback that nobody listens on.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that systems give to outgoing connections: such a one could
/// take the port of a server that is down for a moment, or connect to itself there.
const FIRST: u32 = 16384;
const COUNT: u32 = 16384;
/// Ports that a process tries before those of its neighbours, so that test
/// processes side by side do not pick the same one.
const EACH: u32 = 64;

/// A port that is free now, and another one at every call.
pub fn free() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let offset = std::process::id().wrapping_mul(EACH).wrapping_add(call) % COUNT;
        let port = (FIRST + offset) as u16;
        if is_free(port) {
            return port;
        }
    }
}

/// Whether nobody listens on a port of loopback.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
