//! Who may use the deck, and what nobody can send it.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::Deck;
use crate::support::Workplace;

#[test]
fn strangers_are_refused() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let own = format!("Host: {}\r\n", deck.address);
    let cookie = deck.cookie();
    let status = |method: &str, headers: &str, body: &str| deck.request(method, "/new", headers, body).status;
    assert_eq!(deck.get("/").status, 200);
    // Without the key, with a wrong one, and under a name that leads here.
    let locked = deck.request("GET", "/", &own, "");
    assert!(locked.status == 401 && locked.body.contains("The deck is locked"), "{}", locked.body);
    assert!(!locked.body.contains("name=\"token\"") && !locked.body.contains("runs"), "{}", locked.body);
    assert_eq!(deck.request("GET", "/?key=guess", &own, "").status, 401);
    assert_eq!(deck.request("GET", "/deck.css", &own, "").status, 401);
    assert_eq!(deck.request("GET", "/", &format!("Host: evil.example\r\n{cookie}"), "").status, 403);
    // Forms from elsewhere, and without the token.
    let from = |origin: &str| format!("{own}{cookie}Origin: {origin}\r\n");
    assert_eq!(status("POST", &from("http://evil.example"), "kind=rate"), 403);
    assert_eq!(status("POST", &from("null"), "kind=rate"), 403);
    assert_eq!(status("POST", &format!("{own}{cookie}"), "kind=rate"), 403);
    let here = from(&format!("http://{}", deck.address));
    let without = deck.request("POST", "/new", &here, "kind=rate&do=start");
    assert!(without.status == 403 && without.body.contains("another session"), "{}", without.body);
    // A form that is too long. The deck may close the connection before all of it was sent.
    assert!([0, 413].contains(&status("POST", &here, &format!("text={}", "x".repeat(1 << 20)))));
    // Nothing outside of the folder of runs.
    for path in ["/runs/..%2F..", "/runs/%2E%2E", "/files/../../etc/passwd", "/files/%2E%2E/busy.toml", "/runs/.deck"] {
        assert!([400, 404].contains(&deck.get(path).status), "{path}");
    }
    assert!(!place.path("runs").exists(), "nothing was started");
    place.run(&["deck", "--listen", "0.0.0.0:0"]).fails(2, &["--listen 0.0.0.0:0", "ssh -L"]);
}

#[test]
fn names_and_texts_from_a_run_folder_are_text() {
    let place = Workplace::new();
    let hostile = "<img src=x onerror=alert(1)>\"'&";
    let spec = std::fs::read_to_string(place.path("busy.toml")).unwrap();
    std::fs::write(place.path("busy.toml"), spec).unwrap();
    place.run(&["run", "busy.toml", "--store=memory:", "--threads=1", "--sessions=50", "--name=one"]).ends();
    let moved = place.path("runs").join(hostile.replace('/', "_"));
    std::fs::rename(place.path("runs/one"), &moved).unwrap();
    let document = std::fs::read_to_string(moved.join("run.json")).unwrap();
    std::fs::write(moved.join("run.json"), document.replace("\"memory:\"", "\"memory:<script>alert(2)</script>\""))
        .unwrap();
    std::fs::write(moved.join("report.html"), "<script>fetch('/')</script>").unwrap();
    let deck = Deck::start(&place);
    let home = deck.get("/");
    assert!(home.body.contains("&lt;img src=x") && home.body.contains("memory:&lt;script&gt;"), "{}", home.body);
    assert!(!home.body.contains("<img") && !home.body.contains("<script>"), "{}", home.body);
    assert!(home.head.contains("script-src 'self'") && home.head.contains("frame-ancestors 'none'"), "{}", home.head);
    let url = home.body.split("href=\"/runs/").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let page = deck.get(&format!("/runs/{url}"));
    assert!(page.status == 200 && !page.body.contains("<img"), "{}", page.body);
    // A page from the folder is in a sandbox: its scripts have no origin.
    let report = deck.get(&format!("/files/{url}/report.html"));
    assert!(report.status == 200 && report.head.contains("sandbox allow-scripts"), "{}", report.head);
    let broken = deck.get(&format!("/runs/{url}?show=sql&q={}", super::encoded("SELECT '<b>x</b>' AS \"<i>\"")));
    assert!(!broken.body.contains("<b>x") && !broken.body.contains("<i>"), "{}", broken.body);
    let error = deck.get(&format!("/runs/{url}?show=sql&q={}", super::encoded("SELECT <u>")));
    assert!(error.body.contains("role=\"alert\"") && !error.body.contains("<u>"), "{}", error.body);
}

#[test]
fn a_hundred_stalled_viewers_hold_up_nobody() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    std::fs::create_dir_all(place.path("runs/a")).unwrap();
    // It runs, as far as the deck can see: what its command has printed has no end.
    std::fs::create_dir_all(place.path("runs/.deck")).unwrap();
    std::fs::write(place.path("runs/.deck/a.log"), "$ encore rate\n").unwrap();
    let request = format!("GET /events?run=a HTTP/1.1\r\nHost: {}\r\n{}\r\n", deck.address, deck.cookie());
    let viewers: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut viewer = TcpStream::connect(&deck.address).expect("a connection");
            viewer.write_all(request.as_bytes()).expect("a request");
            viewer
        })
        .collect();
    let mut one = TcpStream::connect(&deck.address).expect("a connection");
    one.write_all(request.as_bytes()).expect("a request");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("event: frame") {
        let mut bytes = [0; 4096];
        let read = one.read(&mut bytes).expect("an event");
        assert!(read > 0, "the stream ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..read]);
    }
    assert_eq!(deck.get("/").status, 200);
    drop(viewers);
}
