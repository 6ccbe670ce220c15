//! The viewers that are compared: none, a client that reads the events of the deck, or a browser on this machine.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use browser::{Browser, Page};

use super::Place;
use super::running::Deck;

/// How often a viewer looks whether the run has begun.
const AGAIN: Duration = Duration::from_millis(100);

/// A viewer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    None,
    Reader,
    Browser,
}

impl fmt::Display for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Viewer::None => "none",
            Viewer::Reader => "one, elsewhere (a client that reads the events)",
            Viewer::Browser => "one browser on the same machine",
        })
    }
}

/// A viewer who watches from the moment on in which the run begins.
pub enum Watching<'a> {
    None,
    Reader { is_over: Arc<AtomicBool>, thread: JoinHandle<std::io::Result<usize>> },
    Browser { page: Page<'a>, deck: &'a Deck, name: String, feed: PathBuf },
}

impl Viewer {
    pub(super) fn watch<'a>(
        self,
        deck: &'a Deck,
        browser: Option<&'a Browser>,
        name: &str,
        place: &Place,
    ) -> anyhow::Result<Watching<'a>> {
        let feed = place.folder.join("runs").join(name).join("live.jsonl");
        Ok(match self {
            Viewer::None => Watching::None,
            Viewer::Reader => {
                let is_over = Arc::new(AtomicBool::new(false));
                let (over, address, cookie) = (is_over.clone(), deck.address.clone(), deck.cookie());
                let request = format!(
                    "GET /events?run={name} HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\nConnection: close\r\n\r\n"
                );
                let thread = std::thread::spawn(move || read(&address, &request, &feed, &over));
                Watching::Reader { is_over, thread }
            }
            Viewer::Browser => {
                let page = browser.context("no browser is here")?.open(&deck.url("/"));
                Watching::Browser { page, deck, name: name.to_string(), feed }
            }
        })
    }
}

/// Reads the pictures of a run once it has begun. Returns how many there were.
fn read(address: &str, request: &str, feed: &std::path::Path, is_over: &AtomicBool) -> std::io::Result<usize> {
    while !feed.exists() && !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(AGAIN);
    }
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let (mut pictures, mut bytes) = (0, vec![0; 1 << 16]);
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(pictures);
        }
        pictures += String::from_utf8_lossy(&bytes[..count]).matches("event: frame").count();
    }
}

impl Watching<'_> {
    /// Watches while something runs. An error if nothing was seen.
    pub fn during<X: Send>(self, work: impl FnOnce() -> anyhow::Result<X> + Send) -> anyhow::Result<X> {
        match self {
            Watching::None => work(),
            Watching::Reader { is_over, thread } => {
                let done = work();
                is_over.store(true, Ordering::Relaxed);
                let pictures = thread.join().map_err(|_| anyhow::anyhow!("the viewer failed"))??;
                anyhow::ensure!(
                    pictures > 1 || done.is_err(),
                    "the viewer saw {pictures} pictures; measure longer runs"
                );
                done
            }
            Watching::Browser { page, deck, name, feed } => std::thread::scope(|scope| {
                let running = scope.spawn(work);
                while !feed.exists() && !running.is_finished() {
                    std::thread::sleep(AGAIN);
                }
                page.go(&deck.url_without_key(&format!("/runs/{name}?show=live")));
                running.join().map_err(|_| anyhow::anyhow!("the run failed"))?
            }),
        }
    }
}
