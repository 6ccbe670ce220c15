//! The deck for other machines: over TLS, with a key, under its own names.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::Deck;
use crate::support::Workplace;

const LISTEN: [&str; 4] = ["--listen=127.0.0.1:0", "--certs=certs", "--host=127.0.0.1", "--host=lab.example"];

/// The rules of a browser that has imported the authority of `encore certs`.
fn trusting(place: &Workplace) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(place.path("certs/ca.pem")).expect("a certificate")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn certified() -> Workplace {
    let place = Workplace::new();
    place.run(&["certs", "certs", "--host", "127.0.0.1", "--host", "lab.example"]).succeeds();
    place
}

#[test]
fn over_tls_a_key_becomes_a_cookie() {
    let place = certified();
    let deck = Deck::with(&place, &LISTEN, Some(trusting(&place)));
    let host = format!("Host: {}\r\n", deck.address);
    let get = |path: &str, headers: &str| deck.request("GET", path, headers, "");
    let locked = get("/", &host);
    assert!(locked.status == 401 && locked.body.contains("The deck is locked"), "{} {}", locked.head, locked.body);
    assert_eq!(get(&format!("/?key={}x", deck.key), &host).status, 401);
    let opened = get(&format!("/runs/a?show=sql&key={}", deck.key), &host);
    let cookie = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    let (pair, rest) = cookie.split_once("; ").expect("attributes");
    assert_eq!(rest, "Path=/; HttpOnly; Secure; SameSite=Strict");
    assert!(pair.starts_with("__Host-encore-deck-"), "{pair}");
    assert!(opened.body.contains("/runs/a?show=sql") && !opened.body.contains(&deck.key), "{}", opened.body);
    let cookie = format!("Cookie: {pair}\r\n");
    let home = get("/", &format!("{host}{cookie}"));
    assert!(home.status == 200 && home.body.contains("There is no run yet"), "{}", home.body);
    // A name that the user allows, one that he does not, and a guess.
    assert_eq!(get("/", &format!("Host: lab.example:9000\r\n{cookie}")).status, 200);
    assert_eq!(get("/", &format!("Host: evil.example\r\n{cookie}")).status, 403);
    assert_eq!(get("/", &format!("{host}Cookie: {}=guess\r\n", pair.split('=').next().unwrap())).status, 401);
    // What changes something comes from the deck's own pages, and carries the token of their forms.
    let form = get("/new?kind=run", &format!("{host}{cookie}")).body;
    let token = form.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let body = format!("kind=run&name=a&threads=2&store=memory:&do=check&token={token}");
    let post = |origin: &str| deck.request("POST", "/new", &format!("{host}{cookie}Origin: {origin}\r\n"), &body);
    for origin in ["https://evil.example", &format!("http://{}", deck.address), "null"] {
        assert_eq!(post(origin).status, 403, "{origin}");
    }
    let own = post(&format!("https://{}", deck.address));
    assert!(own.status == 200 && own.body.contains("All is correct"), "{}", own.body);
    // Without TLS nothing of the deck is shown.
    let mut plain = TcpStream::connect(&deck.address).expect("a connection");
    plain.write_all(format!("GET /?key={} HTTP/1.1\r\n{host}\r\n", deck.key).as_bytes()).expect("a request");
    let mut answer = String::new();
    plain.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("https://"), "{answer}");
}

#[test]
fn a_secret_in_a_file_opens_the_deck() {
    let place = certified();
    std::fs::write(place.path("secret"), "correct-horse-battery\n").expect("a file");
    let deck = Deck::with(&place, &[&LISTEN[..], &["--token-file=secret"]].concat(), Some(trusting(&place)));
    assert_eq!(deck.key, "", "the printed URL has no secret");
    let host = format!("Host: {}\r\n", deck.address);
    let unlock = |origin: &str, key: &str| {
        let headers = format!("{host}Origin: https://{origin}\r\n");
        deck.request("POST", "/key", &headers, &format!("key={key}"))
    };
    assert_eq!(unlock(&deck.address, "correct-horse-batterz").status, 401);
    assert_eq!(unlock("evil.example", "correct-horse-battery").status, 403);
    let opened = unlock(&deck.address, "correct-horse-battery");
    let cookie = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert!(!cookie.contains("battery"), "{cookie}");
    let cookie = cookie.split("; ").next().unwrap();
    assert_eq!(deck.request("GET", "/", &format!("{host}Cookie: {cookie}\r\n"), "").status, 200);
    assert_eq!(deck.request("GET", "/?key=correct-horse-battery", &host, "").status, 200);
}

#[test]
fn what_is_missing_for_other_machines_is_named() {
    let place = certified();
    let deck = |flags: &[&str]| place.run(&[&["deck", "--no-open"][..], flags].concat());
    deck(&["--listen=0.0.0.0:0"]).fails(2, &["--listen 0.0.0.0:0", "encore certs", "ssh -L"]);
    deck(&["--listen=0.0.0.0:0", "--certs=certs"]).fails(2, &["--listen 0.0.0.0:0", "add --host"]);
    deck(&["--certs=nowhere"]).fails(2, &["--certs: nowhere/deck.pem", "encore certs"]);
    deck(&["--token-file=nowhere"]).fails(2, &["--token-file nowhere"]);
    std::fs::write(place.path("short"), "short").expect("a file");
    deck(&["--token-file=short"]).fails(2, &["--token-file short", "at least 16"]);
    std::fs::copy(place.path("certs/ca.key"), place.path("certs/deck.key")).expect("a copy");
    deck(&["--listen=0.0.0.0:0", "--certs=certs", "--host=lab"]).fails(2, &["--certs: certs/deck.key"]);
}
