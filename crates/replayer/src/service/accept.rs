//! Accepts connections, and closes those that stay silent.
//!
//! A peer that connects and stays silent would hold a descriptor for ever, and a few hundred of them
//! would shut out the coordinator. So a connection has a time limit until its TLS handshake is done
//! and the first bytes of HTTP/2 have arrived. From then on, pings tell whether the peer is alive.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long a peer may take until its TLS handshake is done and its first bytes have arrived.
pub const GREETING: Duration = Duration::from_secs(5);

/// Connections at the same time. A coordinator has one or two.
const CONNECTIONS_MAX: usize = 128;

/// The pause after an error such as too many open files, which an immediate retry would meet again.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes that every client of HTTP/2 begins with.
const PREFACE_BYTES: usize = 24;

/// The connections that peers make.
pub fn incoming(listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    futures::stream::unfold((listener, free), async |(listener, free)| {
        // The semaphore is never closed.
        let place = free.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = Connection::new(stream, place);
                    return Some((Ok(connection), (listener, free)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    })
}

/// A connection that times out unless the peer sends something soon.
pub struct Connection {
    stream: TcpStream,
    heard: usize,
    /// Set when the connection is handed to the service, which is after the TLS handshake.
    is_served: Arc<AtomicBool>,
    greeting: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit) -> Connection {
        let greeting = Some(Box::pin(tokio::time::sleep(GREETING)));
        Connection { stream, heard: 0, is_served: Arc::default(), greeting, _place: place }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.is_served.store(true, Ordering::Relaxed);
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.heard += buffer.filled().len() - before;
        if self.heard >= PREFACE_BYTES && self.is_served.load(Ordering::Relaxed) {
            self.greeting = None;
        }
        let is_late = self.greeting.as_mut().is_some_and(|greeting| greeting.as_mut().poll(context).is_ready());
        if read.is_pending() && is_late {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "timed out: the peer sent no data")));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
