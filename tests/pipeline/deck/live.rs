//! What a run shows while it runs: its feed, the same for all viewers, and the metrics for Prometheus.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use schemas::run::{LiveEvent, LiveLine};

use super::Deck;
use crate::support::Workplace;

const LONG: [&str; 7] =
    ["run", "busy.toml", "--store=memory:?latency_us=500", "--threads=4", "--duration=8s", "--rate=400", "--name=long"];

/// The next event of a stream of pictures: its id and its data.
fn next(reader: &mut impl BufRead) -> Option<(String, String)> {
    let (mut id, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(own) = line.strip_prefix("id: ") {
            id = own.trim().to_string();
        }
        if let Some(data) = line.strip_prefix("data: ").filter(|data| data.len() > 2) {
            return Some((id, data.to_string()));
        }
    }
}

/// All that the deck answers.
fn read(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

fn watch(deck: &Deck, seen: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&deck.address).expect("a connection");
    let seen = if seen.is_empty() { String::new() } else { format!("Last-Event-ID: {seen}\r\n") };
    let request = format!(
        "GET /events?run=long HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}{seen}\r\n",
        deck.address,
        deck.cookie()
    );
    stream.write_all(request.as_bytes()).expect("a request");
    BufReader::new(stream)
}

#[test]
fn all_viewers_of_a_run_see_the_same() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let mut child = place.command(&LONG).stdout(Stdio::null()).spawn().expect("the run starts");
    deck.until("/runs/long?show=live", "wanted operations/s");
    // An experiment under way is not analyzed: its log is not whole.
    let asked = place.run(&["analyze", "sql", "runs/long", "SELECT count(*) AS n FROM experiments", "--format", "csv"]);
    assert_eq!(asked.succeeds(), "n\n0\n");
    assert!(asked.stderr().contains("experiment 1 is under way"), "{}", asked.stderr());
    let experiment = place.experiment("runs/long", 1).expect("an experiment");
    assert!(!experiment.join("verdict.json").exists() && !place.path("runs/long/operations").exists());
    let viewers: Vec<_> = (0..10).map(|_| watch(&deck, "")).collect();
    let seen: Vec<Vec<(u64, String)>> = std::thread::scope(|scope| {
        let look = |(number, mut viewer): (usize, BufReader<TcpStream>)| {
            let deck = &deck;
            scope.spawn(move || {
                let mut seen = Vec::new();
                while let Some((id, data)) = next(&mut viewer) {
                    seen.push((id.parse::<u64>().expect("a number"), data));
                    // One of them is away in mid-run, and says what he saw last.
                    if number == 0 && seen.len() == 2 {
                        viewer = watch(deck, &id);
                    }
                }
                seen
            })
        };
        let viewers: Vec<_> = viewers.into_iter().enumerate().map(look).collect();
        viewers.into_iter().map(|viewer| viewer.join().expect("a viewer")).collect()
    });
    child.wait().expect("the run ends");
    let mut pictures = BTreeMap::new();
    for (number, own) in seen.iter().enumerate() {
        assert!(own.len() >= 3, "viewer {number} saw {} pictures", own.len());
        assert!(own.is_sorted_by(|(a, _), (b, _)| a < b), "viewer {number} saw a picture twice, or an old one");
        assert_eq!(own.last(), seen[0].last(), "viewer {number} saw another end");
        for (id, data) in own {
            assert_eq!(pictures.entry(id).or_insert(data), &data, "viewer {number} saw another picture {id}");
        }
    }
    let text = std::fs::read_to_string(place.path("runs/long/live.jsonl")).unwrap();
    let lines: Vec<LiveLine> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let figures = lines.iter().filter_map(|line| match &line.event {
        LiveEvent::Running(figures) => Some(figures),
        _ => None,
    });
    let figures: Vec<_> = figures.collect();
    assert!(figures.iter().any(|own| own.wanted_per_s.is_some() && own.ok_per_s > 0.0 && own.replayers.len() == 1));
    // What the store counts itself is known while the experiment runs.
    assert!(figures.iter().any(|own| own.store_counters.get("lies_told") == Some(&0)), "{text}");
    assert!(
        seen[0].iter().any(|(_, data)| data.contains("Counters of the store so far")),
        "no viewer saw the counters"
    );
    // A picture has all that is known of the run, also for who came before it began.
    assert!(
        seen[0].iter().all(|(_, data)| data.contains("SLA: ") && data.contains("The command that started this run"))
    );
    assert!(matches!(lines.last().map(|line| &line.event), Some(LiveEvent::Ended(_))));
}

#[test]
fn prometheus_and_a_browser_see_a_run_of_the_terminal() {
    let place = Workplace::new();
    let arguments = [&LONG[..], &["--metrics-listen=127.0.0.1:0", "--deck"]].concat();
    let mut command = place.command(&arguments);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the run starts");
    let mut said = BufReader::new(child.stderr.take().expect("its errors"));
    let mut line = || {
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        line.trim().to_string()
    };
    let metrics = line().strip_prefix("metrics  http://").expect("the address of the metrics").to_string();
    let deck = line().strip_prefix("deck   http://").expect("the URL of the deck").to_string();
    let get = |url: &str| {
        let (address, path) = url.split_once('/').expect("a path");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let accept = "Accept: application/openmetrics-text; version=1.0.0";
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n{accept}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    };
    let opened = get(&deck);
    assert!(opened.starts_with("HTTP/1.1 303") && opened.contains("/runs/long?show=live"), "{opened}");
    // The live page exists before the run begins, and its events end with the verdict.
    let (address, key) =
        deck.split_once('/').and_then(|(a, path)| Some((a, path.split("key=").nth(1)?))).expect("a key");
    let port = address.rsplit(':').next().expect("a port");
    let request = |page: &str| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let cookie = format!("Cookie: encore-deck-{port}={key}");
        let request = format!("GET {page} HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        stream
    };
    let page = read(request("/runs/long?show=live"));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let viewer = request("/events?run=long");
    let mut text = get(&metrics);
    while !text.contains("encore_replayer_cpus{replayer=") || text.contains("{outcome=\"ok\"} 0\n") {
        assert!(child.try_wait().expect("a child").is_none(), "the run ended before its metrics were seen: {text}");
        std::thread::sleep(std::time::Duration::from_millis(50));
        text = get(&metrics);
    }
    assert!(text.contains("application/openmetrics-text") && text.trim_end().ends_with("# EOF"), "{text}");
    let seen = read(viewer);
    assert!(seen.contains("event: last") && seen.contains("Verdict: "), "{seen}");
    let page = read(request("/runs/long"));
    assert!(page.contains(">complete<") && page.contains("Open the report"), "{page}");
    child.wait().expect("it ends");
}

/// Who watches a run of the terminal sees its end, also if it is stopped; and a page can stop it.
#[test]
fn a_run_of_the_terminal_is_stopped_from_its_page() {
    let place = Workplace::new();
    let mut command = place.command(&[&LONG[..], &["--deck"]].concat());
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the run starts");
    let mut said = BufReader::new(child.stderr.take().expect("its errors"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("deck   http://").expect("the URL of the deck").to_string();
    let (address, key) =
        url.split_once('/').and_then(|(a, path)| Some((a, path.split("key=").nth(1)?))).expect("a key");
    let cookie = format!("Cookie: encore-deck-{}={key}", address.rsplit(':').next().expect("a port"));
    let request = |head: &str, body: &str| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let origin = format!("Origin: http://{address}\r\nContent-Type: application/x-www-form-urlencoded");
        let text = format!(
            "{head} HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\n{origin}\r\nContent-Length: {}\r\nConnection: \
             close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).expect("a request");
        stream
    };
    let mut page = String::new();
    while !page.contains("wanted operations/s") {
        assert!(child.try_wait().expect("a child").is_none(), "the run ended before it was stopped");
        page = read(request("GET /runs/long?show=live", ""));
    }
    let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let viewer = request("GET /events?run=long", "");
    let stopped = read(request("POST /runs/long", &format!("act=stop&token={token}")));
    assert!(stopped.starts_with("HTTP/1.1 303"), "{stopped}");
    let seen = read(viewer);
    assert!(seen.contains("event: last"), "the viewer has not seen the end: {seen}");
    let code = child.wait().expect("the run ends").code();
    assert_eq!(code, Some(130));
}
