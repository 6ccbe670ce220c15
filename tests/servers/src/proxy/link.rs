//! One connection through a proxy: two sockets, and one thread for each direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::faults::{Fate, Faults};

/// The largest piece that is forwarded at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A client's connection, and the proxy's connection to the server.
#[derive(Debug)]
pub struct Link {
    client: TcpStream,
    server: TcpStream,
    /// Whether the next piece from the server is lost, and the connection with it.
    is_doomed: AtomicBool,
    is_closed: AtomicBool,
}

impl Link {
    /// Forwards until both sides have ended.
    pub fn run(client: TcpStream, server: TcpStream, faults: &Arc<Faults>) {
        // A proxy that waits for more data before it forwards would slow down clients.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (is_doomed, is_closed) = (AtomicBool::new(false), AtomicBool::new(false));
        let link = Arc::new(Link { client, server, is_doomed, is_closed });
        faults.add(&link);
        let (other, known) = (Arc::clone(&link), Arc::clone(faults));
        std::thread::spawn(move || other.forward_replies(&known));
        link.forward_requests(faults);
    }

    /// Whether it was cut or closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Closes both sides with an orderly shutdown.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // It does not matter if a side is closed already.
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }

    /// Closes both sides, and the client's with a reset if `reset` returns true. If they were
    /// closed already, this returns false and does not call `reset`.
    pub fn cut(&self, reset: impl FnOnce() -> bool) -> bool {
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        if reset() {
            reset_when_closed(&self.client);
            // Sends nothing, but wakes the threads. The last one to drop its socket causes the reset.
            let _ = (self.client.shutdown(Shutdown::Read), self.server.shutdown(Shutdown::Both));
        } else {
            self.close();
        }
        true
    }

    fn forward_requests(&self, faults: &Faults) {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let length = (&self.client).read(&mut piece);
            let Ok(length @ 1..) = length else {
                // The client may still wait for the reply to its last request.
                let how = if length.is_ok() { Shutdown::Write } else { Shutdown::Both };
                let _ = self.server.shutdown(how);
                return;
            };
            if !faults.may_pass(self) {
                return;
            }
            let fate = faults.settings().next_fate();
            if fate == Fate::Unanswered {
                self.is_doomed.store(true, Ordering::SeqCst);
            }
            let forwarded = if fate == Fate::Halved { length / 2 } else { length };
            let sent = (&self.server).write_all(&piece[..forwarded]);
            if fate == Fate::Halved {
                faults.cut(self);
            }
            if sent.is_err() || fate == Fate::Halved {
                return;
            }
        }
    }

    fn forward_replies(&self, faults: &Faults) {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(length @ 1..) = (&self.server).read(&mut piece) {
            if self.is_doomed.load(Ordering::SeqCst) {
                faults.cut(self);
                return;
            }
            let delay = faults.settings().delay;
            std::thread::sleep(delay);
            if !faults.may_pass(self) || (&self.client).write_all(&piece[..length]).is_err() {
                break;
            }
        }
        // After a cut by reset, an orderly shutdown would come before the reset.
        if !self.is_closed() {
            self.close();
        }
    }
}

/// Makes the close of a socket a reset.
fn reset_when_closed(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = std::mem::size_of_val(&linger) as libc::socklen_t;
    // SAFETY: the pointer is to a linger of the length given, which outlives the call.
    unsafe {
        let option = std::ptr::from_ref(&linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, option, length);
    }
}
