//! The deck: its pages over HTTP, who may use them, and the whole of it in a browser.

mod access;
mod browser;
mod live;
mod pages;
mod prometheus;
mod tls;
mod traces;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::support::Workplace;

/// A deck that runs in a folder. It ends with the test.
pub struct Deck {
    child: Child,
    /// Its address: `127.0.0.1:PORT`.
    pub address: String,
    /// The key in the URL that it printed, if there is one.
    pub key: String,
    token: String,
    tls: Option<Arc<ClientConfig>>,
}

/// What came of a request.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Both directions of a connection.
trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

impl Deck {
    pub fn start(place: &Workplace) -> Deck {
        let mut deck = Deck::with(place, &[], None);
        let form = deck.get("/new?kind=rate").body;
        let token = form.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        deck.token = token.expect("a token").to_string();
        deck
    }

    /// A deck with further flags; one with a certificate is talked to by these rules.
    pub fn with(place: &Workplace, flags: &[&str], tls: Option<Arc<ClientConfig>>) -> Deck {
        let mut command = place.command(&[&["deck", "--no-open"][..], flags].concat());
        // Its pages print commands as for a user with a checkout.
        command.env("ENCORE_CALLED_AS", "./encore");
        // What a store's URL may name.
        command.env("DECK_PASSWORD", "hush-hush");
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("the deck starts");
        let out = child.stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("a line");
        let scheme = if tls.is_some() { "deck   https://" } else { "deck   http://" };
        let url = line.trim().strip_prefix(scheme).expect("the URL");
        let (address, key) = url.split_once("/?key=").unwrap_or((url.trim_end_matches('/'), ""));
        Deck { child, address: address.into(), key: key.into(), token: String::new(), tls }
    }

    fn connect(&self) -> Box<dyn Stream> {
        let stream = TcpStream::connect(&self.address).expect("the deck listens");
        let Some(tls) = &self.tls else { return Box::new(stream) };
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let client = ClientConnection::new(tls.clone(), name).expect("a client of TLS");
        Box::new(StreamOwned::new(client, stream))
    }

    /// The URL that opens it.
    pub fn url(&self) -> String {
        format!("http://{}/?key={}", self.address, self.key)
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().expect("a port")
    }

    /// The header that a browser sends once it has opened the deck.
    pub fn cookie(&self) -> String {
        format!("Cookie: encore-deck-{}={}\r\n", self.port(), self.key)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &format!("Host: {}\r\n{}", self.address, self.cookie()), "")
    }

    /// Sends a form as the deck's own page does.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let fields = fields.iter().copied().chain([("token", self.token.as_str())]);
        let form: Vec<String> = fields.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let origin = format!("Host: {}\r\nOrigin: http://{}\r\n{}", self.address, self.address, self.cookie());
        self.request("POST", path, &origin, &form.join("&"))
    }

    pub fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.connect();
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}{kind}\r\nContent-Length: {}\r\n", body.len());
        // The deck may refuse a long form before it was sent.
        let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_string(), body: body.to_string() }
    }

    /// Waits until a page has a text.
    pub fn until(&self, path: &str, text: &str) -> String {
        let patience = Instant::now() + Duration::from_secs(300);
        loop {
            let page = self.get(path).body;
            if page.contains(text) {
                return page;
            }
            assert!(Instant::now() < patience, "waited in vain for {text:?} on {path}: {page}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        let _ = self.child.wait();
    }
}

/// A value of a form or query.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
