//! A deck in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use anyhow::Context;

use super::Place;

/// A deck that runs. It ends with this value.
pub struct Deck {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    key: String,
}

impl Deck {
    pub(super) fn start(place: &Place) -> anyhow::Result<Deck> {
        let mut command = place.command(&["deck", "--no-open"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the deck")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let url = line.trim().strip_prefix("deck   http://").and_then(|url| url.split_once("/?key="));
        let (address, key) = url.with_context(|| format!("the deck said {line:?} in place of its URL"))?;
        let (address, key) = (address.to_string(), key.to_string());
        Ok(Deck { child, address, key })
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The URL that opens a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}?key={}", self.address, self.key)
    }

    /// The URL of a page for a browser that has opened the deck.
    pub fn url_without_key(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The header that such a browser sends.
    pub fn cookie(&self) -> String {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        format!("Cookie: encore-deck-{port}={}", self.key)
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        // It may have ended itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
