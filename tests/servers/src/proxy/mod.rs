//! A TCP proxy that cuts, delays or holds connections on request of a test.

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
/// It works in *pieces*: a piece is the result of one read from a connection, up to 64 KiB. A
/// client that waits for each reply sends a small request as one piece. The pieces of all
/// connections are counted together.
///
/// A cut closes the connections to the client and to the server. Every second cut resets the
/// client's connection, so that clients meet both kinds of loss.
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
    /// If there is no free port or no thread.
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

    /// Cuts all current connections; new ones are accepted.
    pub fn cut(&self) {
        self.faults.links().iter().for_each(|link| self.faults.cut(link));
    }

    /// Closes new connections at once while `refuse` is true.
    pub fn refuse(&self, refuse: bool) {
        self.faults.settings().refuse = refuse;
    }

    /// Forwards the next request, and cuts its connection when the reply comes. The server has done
    /// the work, and the client does not know it.
    pub fn cut_next_reply(&self) {
        self.faults.settings().lose_next_reply = true;
    }

    /// Does the same for every `k`-th piece that clients send from now on; 0 stops it.
    pub fn cut_replies_every(&self, k: u64) {
        self.faults.settings().lost_replies.restart(k);
    }

    /// Forwards half of every `k`-th piece that clients send from now on, and cuts its connection.
    /// So the request never arrives completely; 0 stops it.
    pub fn cut_requests_every(&self, k: u64) {
        self.faults.settings().lost_requests.restart(k);
    }

    /// Delays every piece of a reply by this much.
    pub fn delay(&self, delay: Duration) {
        self.faults.settings().delay = delay;
    }

    /// While `hold` is true, forwards nothing in either direction, like a server that does not
    /// answer. Then continues where it was.
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
        // Wakes the acceptor, which then sees that the proxy is closed.
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
        // The client may have given up its connection while it waited; that does not matter.
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
