//! The proxy forwards, and injects the faults that a test asks for.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use servers::Proxy;

use crate::support::{connect, until};

/// A server that sends back each line, and stores everything that it received.
#[derive(Clone)]
struct Echo {
    address: String,
    got: Arc<Mutex<String>>,
    ended: Arc<AtomicU64>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let echo = Echo { address, got: Arc::default(), ended: Arc::default() };
        let started = echo.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, echo) = (stream.expect("a connection"), started.clone());
                std::thread::spawn(move || echo.answer(stream));
            }
        });
        echo
    }

    fn answer(&self, mut stream: TcpStream) {
        let (mut line, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            line.extend_from_slice(&piece[..length]);
            self.got.lock().expect("no panic").push_str(&String::from_utf8_lossy(&piece[..length]));
            if line.ends_with(b"\n") && stream.write_all(&std::mem::take(&mut line)).is_err() {
                break;
            }
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    fn got(&self) -> String {
        self.got.lock().expect("no panic").clone()
    }
}

fn say(stream: &mut TcpStream, line: &str) -> Result<String> {
    stream.write_all(line.as_bytes())?;
    hear(stream, line.len())
}

fn hear(stream: &mut TcpStream, length: usize) -> Result<String> {
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn setting() -> (Echo, Proxy, impl Fn() -> TcpStream) {
    let echo = Echo::start();
    let proxy = Proxy::start(&echo.address);
    let address = proxy.address();
    (echo, proxy, move || connect(&address).expect("the proxy accepts"))
}

#[test]
fn what_is_sent_arrives() {
    let (echo, proxy, client) = setting();
    let mut first = client();
    let mut second = client();
    assert_eq!(say(&mut first, "one\n").expect("an answer"), "one\n");
    assert_eq!(say(&mut second, "two\n").expect("an answer"), "two\n");
    let long = "x".repeat(1_000_000) + "\n";
    let mut writer = first.try_clone().expect("another handle");
    let sent = long.clone();
    let sender = std::thread::spawn(move || writer.write_all(sent.as_bytes()));
    assert_eq!(hear(&mut first, long.len()).expect("an answer"), long);
    sender.join().expect("no panic").expect("all is sent");
    // The end of a connection arrives too.
    drop((first, second));
    until("both ends are seen", || echo.ended.load(Ordering::SeqCst) == 2);
    assert_eq!(proxy.cuts(), 0);
    assert!(proxy.requests() >= 3);
}

#[test]
fn a_cut_ends_all_connections_and_new_ones_are_taken() {
    let (_echo, proxy, client) = setting();
    let mut clients = [client(), client()];
    clients.iter_mut().for_each(|client| assert!(say(client, "a\n").is_ok()));
    proxy.cut();
    let mut ends = clients.map(|mut client| client.read(&mut [0]).err().map(|error| error.kind()));
    // One connection was closed and the other reset; the order is not fixed.
    ends.sort();
    assert_eq!(ends, [None, Some(ErrorKind::ConnectionReset)]);
    assert_eq!(proxy.cuts(), 2);
    assert!(say(&mut client(), "b\n").is_ok());
}

#[test]
fn every_third_reply_is_lost_though_the_server_got_the_request() {
    let (echo, proxy, client) = setting();
    proxy.cut_replies_every(3);
    let mut stream = client();
    let mut heard = Vec::new();
    for number in 0..9 {
        match say(&mut stream, &format!("{number}\n")) {
            Ok(answer) => heard.push(answer.trim().to_string()),
            Err(_) => stream = client(),
        }
    }
    assert_eq!(heard, ["0", "1", "3", "4", "6", "7"]);
    assert_eq!(echo.got(), "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
    assert_eq!(proxy.cuts(), 3);
    proxy.cut_replies_every(0);
    (0..9).for_each(|_| assert!(say(&mut stream, "x\n").is_ok()));
    proxy.cut_next_reply();
    assert!(say(&mut stream, "y\n").is_err());
    assert!(say(&mut client(), "z\n").is_ok());
    assert_eq!(proxy.cuts(), 4);
}

#[test]
fn every_third_request_arrives_by_half() {
    let (echo, proxy, client) = setting();
    proxy.cut_requests_every(3);
    let mut stream = client();
    for round in 0..2 {
        assert!(say(&mut stream, "abc\n").is_ok());
        assert!(say(&mut stream, "def\n").is_ok());
        assert!(say(&mut stream, "ghi\n").is_err());
        until("the server sees the end", || echo.ended.load(Ordering::SeqCst) == round + 1);
        stream = client();
    }
    assert_eq!(echo.got(), "abc\ndef\ngh".repeat(2));
    assert_eq!(proxy.cuts(), 2);
}

#[test]
fn a_refused_connection_is_closed_at_once() {
    let (_echo, proxy, client) = setting();
    let mut present = client();
    assert!(say(&mut present, "a\n").is_ok());
    proxy.refuse(true);
    assert!(say(&mut client(), "b\n").is_err());
    assert!(say(&mut present, "c\n").is_ok());
    proxy.refuse(false);
    assert!(say(&mut client(), "d\n").is_ok());
}

#[test]
fn replies_are_delayed() {
    let (_echo, proxy, client) = setting();
    let delay = Duration::from_millis(50);
    proxy.delay(delay);
    let start = Instant::now();
    assert!(say(&mut client(), "a\n").is_ok());
    assert!(start.elapsed() >= delay);
}

#[test]
fn what_is_held_is_not_lost() {
    let (echo, proxy, client) = setting();
    let mut stream = client();
    assert!(say(&mut stream, "a\n").is_ok());
    proxy.hold(true);
    stream.write_all(b"b\n").expect("the operating system takes it");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    assert!(hear(&mut stream, 2).is_err());
    assert_eq!(echo.got(), "a\n");
    proxy.hold(false);
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    assert_eq!(hear(&mut stream, 2).expect("an answer"), "b\n");
    // A held connection can be cut.
    proxy.hold(true);
    stream.write_all(b"c\n").expect("the operating system takes it");
    proxy.cut();
    assert!(matches!(hear(&mut stream, 1), Err(error) if error.kind() == ErrorKind::UnexpectedEof));
    assert_eq!(echo.got(), "a\nb\n");
}

#[test]
fn nobody_behind_the_proxy_and_no_proxy() {
    let (_echo, proxy, client) = setting();
    let mut stream = client();
    let address = proxy.address();
    assert!(say(&mut stream, "a\n").is_ok());
    drop(proxy);
    assert!(say(&mut stream, "b\n").is_err());
    assert!(connect(&address).is_err());
    // The port is free now.
    let lonely = Proxy::start(&address);
    assert!(say(&mut connect(&lonely.address()).expect("the proxy accepts"), "c\n").is_err());
}
