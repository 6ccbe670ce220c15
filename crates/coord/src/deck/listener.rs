//! Connections of browsers: so many at a time, over TLS if the deck has a certificate; none that has stopped to read
//! for long, and no stranger for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;

/// The most connections at a time. A browser has about six.
const CONNECTIONS_MAX: usize = 256;

/// How long a browser may leave what was sent to it unread, and how long a connection may take until it has shown
/// the key.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first byte of TLS.
const HANDSHAKE: u8 = 22;

/// What a browser gets that speaks without TLS to a deck with a certificate.
const NEEDS_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
                           This deck uses TLS: open it with https:// in place of http://.\n";

/// The listener of the deck.
pub(super) struct Gate {
    arrived: mpsc::Receiver<(Connection, SocketAddr)>,
    address: SocketAddr,
}

/// What the gate asks of connections.
struct Rules {
    tls: Option<TlsAcceptor>,
    patience: Duration,
    connections_max: usize,
}

impl Gate {
    /// A gate in the runtime of the caller.
    pub(super) fn new(listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> io::Result<Gate> {
        let tls = tls.map(TlsAcceptor::from);
        Gate::with(listener, Rules { tls, patience: PATIENCE, connections_max: CONNECTIONS_MAX })
    }

    fn with(listener: TcpListener, rules: Rules) -> io::Result<Gate> {
        let address = listener.local_addr()?;
        let (sender, arrived) = mpsc::channel(1);
        tokio::spawn(receive(listener, rules, sender));
        Ok(Gate { arrived, address })
    }
}

impl Listener for Gate {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.arrived.recv().await {
            Some(arrived) => arrived,
            // The task that receives ends with the runtime only.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Accepts connections until the gate is gone. Handshakes wait for each other in no case.
async fn receive(mut listener: TcpListener, rules: Rules, sender: mpsc::Sender<(Connection, SocketAddr)>) {
    let room = Arc::new(Semaphore::new(rules.connections_max));
    while !sender.is_closed() {
        // The semaphore is never closed; without a permit a connection would only not be counted.
        let permit = room.clone().acquire_owned().await.ok();
        // axum's own listener waits after an error such as too many open files.
        let (stream, address) = Listener::accept(&mut listener).await;
        let stranger = Stranger::default();
        let guarded = Guarded {
            stream,
            _permit: permit,
            patience: rules.patience,
            unread: None,
            stranger: stranger.clone(),
            greeting: Some(Box::pin(sleep(rules.patience))),
        };
        let Some(acceptor) = rules.tls.clone() else {
            let _ = sender.send((Connection { stream: Box::new(guarded), stranger }, address)).await;
            continue;
        };
        let (sender, patience) = (sender.clone(), rules.patience);
        tokio::spawn(async move {
            // A stranger who stays silent or speaks something else is gone.
            if let Ok(Some(stream)) = tokio::time::timeout(patience, shaken(guarded, acceptor)).await {
                let _ = sender.send((Connection { stream, stranger }, address)).await;
            }
        });
    }
}

/// The connection after the handshake of TLS. None if there was none.
async fn shaken(mut guarded: Guarded, acceptor: TlsAcceptor) -> Option<Box<dyn Stream>> {
    let mut first = [0];
    guarded.stream.peek(&mut first).await.ok()?;
    if first[0] != HANDSHAKE {
        // What was sent is read first: a connection that is closed before would take the answer with it.
        let _ = guarded.read(&mut [0; 4096]).await;
        let _ = guarded.write_all(NEEDS_TLS).await;
        let _ = guarded.shutdown().await;
        return None;
    }
    let stream = acceptor.accept(guarded).await.ok()?;
    Some(Box::new(stream))
}

/// Bytes to and from a browser.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection whose browser has not shown the key yet, until it has.
#[derive(Debug, Clone, Default)]
pub(super) struct Stranger(Arc<AtomicBool>);

impl Stranger {
    /// Its browser has shown the key.
    pub(super) fn is_known(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Connected<IncomingStream<'_, Gate>> for Stranger {
    fn connect_info(stream: IncomingStream<'_, Gate>) -> Stranger {
        stream.io().stranger.clone()
    }
}

/// A connection for the server.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    stranger: Stranger,
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A connection that fails when its reader has stalled, or when it is a stranger's for too long.
struct Guarded {
    stream: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
    patience: Duration,
    /// Runs while something waits to be written.
    unread: Option<Pin<Box<Sleep>>>,
    stranger: Stranger,
    /// Runs until the browser has shown the key.
    greeting: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    /// Passes on what a write has come to, unless it has waited for too long.
    fn in_time<X>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<X>>) -> Poll<io::Result<X>> {
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        let unread = self.unread.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        match unread.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.stranger.0.load(Ordering::Relaxed) {
            self.greeting = None;
        }
        let is_late = self.greeting.as_mut().is_some_and(|greeting| greeting.as_mut().poll(cx).is_ready());
        if is_late { Poll::Ready(Err(io::ErrorKind::TimedOut.into())) } else { read }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.in_time(cx, closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn gate(connections_max: usize) -> (Gate, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let rules = Rules { tls: None, patience: Duration::from_millis(50), connections_max };
        let gate = Gate::with(listener, rules).unwrap();
        let address = gate.address;
        (gate, address)
    }

    /// A viewer that reads nothing is dropped, and its place is free for another.
    #[tokio::test]
    async fn a_stalled_reader_is_dropped() {
        let (mut gate, address) = gate(1).await;
        let stalled = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = gate.accept().await;
        let bytes = vec![0; 64 << 20];
        let error = connection.write_all(&bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut reader = TcpStream::connect(address).await.unwrap();
        assert!(gate.arrived.try_recv().is_err(), "there is room for one only");
        drop(connection);
        let (mut connection, _) = gate.accept().await;
        connection.write_all(b"seen").await.unwrap();
        drop(connection);
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "seen");
        drop(stalled);
    }

    /// A connection that does not show the key would hold a place for ever.
    #[tokio::test]
    async fn a_silent_stranger_is_dropped_and_a_user_is_not() {
        let (mut gate, address) = gate(2).await;
        let [_silent, mut user] =
            [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let (mut first, _) = gate.accept().await;
        let (mut second, _) = gate.accept().await;
        second.stranger.is_known();
        assert_eq!(first.read(&mut [0; 1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        user.write_all(b"a").await.unwrap();
        assert_eq!(second.read(&mut [0; 1]).await.unwrap(), 1);
    }
}
