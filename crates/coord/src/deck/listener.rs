//! Connections of browsers: so many at a time, and none that has stopped to read for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// The most connections at a time. A browser has about six.
const CONNECTIONS_MAX: usize = 256;

/// How long a browser may leave what was sent to it unread.
const STALLED: Duration = Duration::from_secs(20);

/// The listener of the deck.
pub(super) struct Gate {
    listener: TcpListener,
    room: Arc<Semaphore>,
    stalled: Duration,
}

impl Gate {
    pub(super) fn new(listener: TcpListener) -> Gate {
        Gate { listener, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)), stalled: STALLED }
    }
}

impl Listener for Gate {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        // The semaphore is never closed; without a permit a connection would only not be counted.
        let permit = self.room.clone().acquire_owned().await.ok();
        // axum's own listener waits after an error such as too many open files.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Guarded { stream, _permit: permit, stalled: self.stalled, waiting: None }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when its reader has stalled.
pub(super) struct Guarded {
    stream: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
    stalled: Duration,
    /// Runs while something waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    /// Passes on what a write has come to, unless it has waited for too long.
    fn in_time<X>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<X>>) -> Poll<io::Result<X>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.stalled)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A viewer that reads nothing is dropped, and its place is free for another.
    #[tokio::test]
    async fn a_stalled_reader_is_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut gate = Gate { listener, room: Arc::new(Semaphore::new(1)), stalled: Duration::from_millis(50) };
        let stalled = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = gate.accept().await;
        let bytes = vec![0; 64 << 20];
        let error = connection.write_all(&bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(gate.room.available_permits(), 0);
        drop(connection);
        let mut reader = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = gate.accept().await;
        connection.write_all(b"seen").await.unwrap();
        drop(connection);
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "seen");
        drop(stalled);
    }
}
