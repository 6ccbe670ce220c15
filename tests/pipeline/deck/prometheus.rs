//! `--metrics-listen` as Prometheus reads it: promtool checks the text of a real rating, and the dashboard for Grafana
//! names nothing that the text lacks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::Workplace;

const RATING: [&str; 9] = [
    "rate",
    "busy.toml",
    "--store=memory:?latency_us=200",
    "--sla=95% < 100ms, 1% unpredictable, 2s",
    "--rating=socialites",
    "--search-s=1",
    "--max-threads=4",
    "--name=long",
    "--metrics-listen=127.0.0.1:0",
];

/// The program that `tests/run` takes out of Debian's package, or that of this machine. None if there is none, unless
/// ENCORE_TEST_SERVERS=required.
fn promtool() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = of("ENCORE_CACHE")
        .or_else(|| of("XDG_CACHE_HOME").map(|cache| cache.join("encore")))
        .or_else(|| of("HOME").map(|home| home.join(".cache/encore")))
        .unwrap_or_default();
    let works = |path: &PathBuf| {
        let mut command = Command::new(path);
        let command = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = [PathBuf::from("promtool"), cache.join("promtool/promtool")].into_iter().find(works);
    if found.is_none() {
        let required = std::env::var("ENCORE_TEST_SERVERS").is_ok_and(|value| value == "required");
        assert!(!required, "promtool is missing: tests/run downloads it");
        println!("left out: promtool is not here");
    }
    found
}

/// What the server answers to a request that accepts this.
fn get(address: &str, accept: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let kind =
        if accept.contains("openmetrics") { "application/openmetrics-text" } else { "text/plain; version=0.0.4" };
    assert!(head.to_lowercase().contains(kind), "{head}");
    Some(body.to_string())
}

/// The names of the samples of a text.
fn names(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(String::from).collect()
}

/// The names of metrics in a document of JSON: the words of expressions that begin like one.
fn asked_for(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::String(text) => {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            found.extend(words.filter(|word| word.starts_with("encore_")).map(String::from));
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| asked_for(value, found)),
        serde_json::Value::Object(pairs) => pairs
            .iter()
            .filter(|(key, value)| !value.is_string() || *key == "expr" || *key == "query")
            .for_each(|(_, value)| asked_for(value, found)),
        _ => {}
    }
}

fn promtool_accepts(promtool: &Path, arguments: &[&str], input: &str) {
    let mut command = Command::new(promtool);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool starts");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("the text");
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}\n{input}", String::from_utf8_lossy(&said));
}

#[test]
fn promtool_and_grafana_understand_the_metrics_of_a_rating() {
    let place = Workplace::new();
    let mut command = place.command(&RATING);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the rating starts");
    let mut said = BufReader::new(child.stderr.take().expect("its errors"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("metrics  http://").and_then(|url| url.strip_suffix("/metrics"));
    let address = address.expect("the address of the metrics");
    // What is said later must not fill the pipe.
    let rest = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/grafana/encore.json"));
    let document = serde_json::from_str(&document.expect("the dashboard")).expect("JSON");
    let mut wanted = BTreeSet::new();
    asked_for(&document, &mut wanted);
    assert!(wanted.len() >= 8, "{wanted:?}");
    // The last experiment that has ended, and one that runs.
    let texts = loop {
        let texts = ["application/openmetrics-text;version=1.0.0", "text/plain"].map(|accept| get(address, accept));
        let [Some(open), Some(plain)] = texts else { panic!("the rating ended before all its metrics were seen") };
        if names(&open).is_superset(&wanted) && names(&plain).is_superset(&wanted) {
            break [open, plain];
        }
        let lacking: Vec<_> = wanted.difference(&names(&open)).cloned().collect();
        assert!(child.try_wait().expect("a child").is_none(), "the rating ended without {lacking:?}: {open}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let [open, plain] = texts;
    assert!(open.ends_with("# EOF\n"), "{open}");
    if let Some(promtool) = promtool() {
        promtool_accepts(&promtool, &["check", "metrics"], &plain);
        // promtool has no check of OpenMetrics; its import reads it strictly, and wants a time in each line.
        let timed =
            |line: &str| if line.starts_with('#') { format!("{line}\n") } else { format!("{line} 1700000000\n") };
        std::fs::write(place.path("metrics.txt"), open.lines().map(timed).collect::<String>()).expect("a file");
        let [text, blocks] = ["metrics.txt", "blocks"].map(|name| place.path(name).display().to_string());
        promtool_accepts(&promtool, &["tsdb", "create-blocks-from", "openmetrics", &text, &blocks], "");
    }
    child.wait().expect("the rating ends");
    rest.join().expect("a thread").expect("its errors");
}
