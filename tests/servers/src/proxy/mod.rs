//! A TCP proxy that cuts, delays or holds what passes, as a test asks.

mod faults;
mod link;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use faults::Faults;
use link::Link;

/// A proxy on loopback in front of one server.
///
/// It works in *pieces*: what one read from a connection gives, up to 64 KiB. A
/// client that sends a request and waits for its reply sends a small request as
/// one piece. The pieces of all connections are counted together.
///
/// A cut closes the connections to the client and to the server; every second
/// one resets the client's connection, so that clients meet both ways to lose one.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: Arc<Faults>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy in front of `target`, `HOST:PORT`, that forwards everything.
    ///
    /// # Panics
    ///
    /// If no port or no thread is to be had.
    pub fn start(target: &str) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("the address of a bound socket");
        let faults = Arc::new(Faults::default());
        let (target, known) = (target.to_string(), Arc::clone(&faults));
        let acceptor = std::thread::spawn(move || accept(&listener, &target, &known));
        Proxy { address, faults, acceptor: Some(acceptor) }
    }

    /// `HOST:PORT` for clients.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Cuts all connections that there are; new ones are taken.
    pub fn cut(&self) {
        self.faults.links().iter().for_each(|link| self.faults.cut(link));
    }

    /// Closes new connections at once, or no longer.
    pub fn refuse(&self, refuse: bool) {
        self.faults.settings().refuse = refuse;
    }

    /// Forwards the next request, and cuts its connection when the reply comes:
    /// the server has done what the client never hears of.
    pub fn cut_next_reply(&self) {
        self.faults.settings().lose_next_reply = true;
    }

    /// Does so for every `k`-th piece that clients send from now on; 0 ends it.
    pub fn cut_replies_every(&self, k: u64) {
        self.faults.settings().lost_replies.restart(k);
    }

    /// Forwards half of every `k`-th piece that clients send from now on, and cuts
    /// its connection: the request never arrives whole; 0 ends it.
    pub fn cut_requests_every(&self, k: u64) {
        self.faults.settings().lost_requests.restart(k);
    }

    /// Delays every piece of a reply by this much.
    pub fn delay(&self, delay: Duration) {
        self.faults.settings().delay = delay;
    }

    /// Forwards nothing in either direction, as a server that does not answer, or
    /// goes on where it was.
    pub fn hold(&self, hold: bool) {
        self.faults.settings().hold = hold;
        self.faults.wake();
    }

    /// How many connections were cut so far.
    pub fn cuts(&self) -> u64 {
        self.faults.cuts()
    }

    /// How many pieces clients have sent so far.
    pub fn requests(&self) -> u64 {
        self.faults.settings().requests
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.faults.settings().closed = true;
        self.faults.links().iter().for_each(|link| link.close());
        self.faults.wake();
        // Wakes the acceptor, which then sees that it is over.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, target: &str, faults: &Arc<Faults>) {
    for client in listener.incoming() {
        let (closed, refuse) = {
            let settings = faults.settings();
            (settings.closed, settings.refuse)
        };
        if closed {
            return;
        }
        // A connection that the client gave up while it waited is no matter.
        let Some(client) = client.ok().filter(|_| !refuse) else { continue };
        let (target, faults) = (target.to_string(), Arc::clone(faults));
        std::thread::spawn(move || {
            // Without a server, the client's connection is closed at once.
            if let Ok(server) = TcpStream::connect(&target) {
                Link::run(client, server, &faults);
            }
        });
    }
}
