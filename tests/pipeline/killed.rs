//! kill -9 at random moments of every stage: what was flushed is there, nothing is half-written
//! under its final name, and the next command goes on. A few moments each in a test;
//!
//!     ENCORE_KILLS=200 cargo test --release -p e2e --test pipeline killed -- --nocapture
//!
//! takes as many of each stage, and prints what it found.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Workplace;

/// How many moments of each stage.
fn kills() -> u64 {
    std::env::var("ENCORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

/// Moments that are the same each time.
struct Moments(u64);

impl Moments {
    /// Somewhere within a time.
    fn within(&mut self, time: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        time.mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// Runs a command to its end; how long it took.
fn timed(place: &Workplace, arguments: &[&str]) -> Duration {
    let began = Instant::now();
    place.run(arguments).succeeds();
    began.elapsed()
}

/// Runs a command and kills it after some time; whether it was still running.
fn killed(place: &Workplace, arguments: &[&str], after: Duration) -> bool {
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    std::thread::sleep(after);
    child.kill().expect("it can be killed, or has ended");
    child.wait().expect("it is dead").code().is_none()
}

/// Nothing under a final name is half there.
fn check_files(place: &Workplace) {
    for (path, content) in place.contents() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let whole = match path.extension().and_then(|e| e.to_str()) {
            // The markers of databases and what has a temporary name are their writers' business.
            _ if name.starts_with('.') => true,
            Some("json") => serde_json::from_slice::<Value>(&content).is_ok(),
            Some("parquet") => content.starts_with(b"PAR1") && content.ends_with(b"PAR1"),
            Some("html") => String::from_utf8_lossy(&content).trim_end().ends_with("</html>"),
            _ => true,
        };
        assert!(whole, "{} is half-written: {} bytes", path.display(), content.len());
    }
}

/// The stores whose states must survive: a file, and a server where there is one.
fn stores() -> Vec<String> {
    let database = format!("encore_killed_{}", std::process::id());
    let server = servers::postgres().map(|server| server.url(&database));
    ["sqlite:s.db?synchronous=off".to_string()].into_iter().chain(server).collect()
}

fn report(stage: &str, hits: u64) {
    println!("{stage}: {} kills, {hits} of them while it ran; nothing lost", kills());
}

#[test]
fn a_killed_load_is_loaded_again() {
    let place = Workplace::with_trace();
    for store in stores() {
        let load = ["replay", "load", "--trace", "busy.trace", "--store", &store];
        let (span, mut moments, mut hits) = (timed(&place, &load), Moments(1), 0);
        let digest = ["replay", "digest", "--trace", "busy.trace", "--store", &store];
        let whole = place.run(&digest).succeeds();
        for _ in 0..kills() {
            hits += u64::from(killed(&place, &load, moments.within(span)));
            // Loaded, or known not to be: never taken for loaded by halves.
            let ran = place.run(&digest);
            if ran.stdout() != whole {
                ran.fails(2, &["replayer load"]);
            }
            place.run(&load).succeeds();
            assert_eq!(place.run(&digest).succeeds(), whole);
        }
        report("load", hits);
    }
}

#[test]
fn a_killed_replay_keeps_what_was_flushed() {
    let place = Workplace::with_trace();
    for store in stores() {
        let words = |run: &str| {
            let words = ["replay", "run", "--trace", "busy.trace", "--store", &store, "--load", "-T", "4", "-o", run];
            words.map(ToString::to_string)
        };
        let whole = words("whole");
        let (span, mut moments, mut hits) = (timed(&place, &whole.each_ref().map(String::as_str)), Moments(2), 0);
        std::fs::remove_dir_all(place.path("whole")).expect("the run");
        for number in 0..kills() {
            let name = format!("r{number}");
            let words = words(&name);
            hits += u64::from(killed(&place, &words.each_ref().map(String::as_str), moments.within(span)));
            check_files(&place);
            let experiment = place.path(&name).join("experiments/0001-T4/plan.json");
            if experiment.exists() {
                // A run that can be read, whatever there is of it.
                let summary = place.run(&["analyze", "summary", &name, "--json"]).stdout();
                assert!(summary.contains("\"ruling\""), "{name}: {summary}");
                let sql = "SELECT count(*) FILTER (unpredictable) AS lies FROM operations";
                let lies = place.run(&["analyze", "sql", &name, sql, "--format", "csv"]).succeeds();
                assert_eq!(lies.lines().last(), Some("0"), "a truthful store");
            }
            if place.path(&name).exists() {
                std::fs::remove_dir_all(place.path(&name)).expect("the run");
            }
        }
        report("replay", hits);
    }
}

#[test]
fn a_killed_analysis_is_made_again() {
    let place = Workplace::with_trace();
    let replay = ["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "4", "-o", "r"];
    place.run(&replay).succeeds();
    let sql = ["analyze", "sql", "r", "SELECT count(*) AS n FROM operations", "--format", "csv"];
    let stages = [("summary and seal", ["analyze", "summary", "r"]), ("report", ["analyze", "report", "r"])];
    let count = place.run(&sql).succeeds();
    let anew = || {
        let verdict = place.path("r/experiments/0001-T4/verdict.json");
        for path in [place.path("r/operations"), place.path("r/unpredictable")] {
            if path.exists() {
                std::fs::remove_dir_all(path).expect("sealed tables");
            }
        }
        if verdict.exists() {
            std::fs::remove_file(verdict).expect("a verdict");
        }
    };
    for (stage, arguments) in stages {
        anew();
        let (span, mut moments, mut hits) = (timed(&place, &arguments), Moments(3), 0);
        for _ in 0..kills() {
            anew();
            hits += u64::from(killed(&place, &arguments, moments.within(span)));
            check_files(&place);
            place.run(&arguments).succeeds();
            assert_eq!(place.run(&sql).succeeds(), count);
        }
        report(stage, hits);
    }
}

#[test]
fn a_killed_rating_is_resumed() {
    let place = Workplace::with_trace();
    let rate = |name: &str| {
        let words =
            "rate --trace busy.trace --store memory:?latency_us=200 --search-s 0.1 --max-threads 4 --rating soar";
        let mut words: Vec<String> = words.split(' ').map(ToString::to_string).collect();
        words.extend(["--sla", "95% < 10s, 0.3s", "--name", name].map(ToString::to_string));
        words
    };
    let whole = rate("whole");
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let (span, mut moments, mut hits) = (timed(&place, &whole), Moments(4), 0);
    for number in 0..kills() {
        let name = format!("r{number}");
        let words = rate(&name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        hits += u64::from(killed(&place, &words, moments.within(span)));
        check_files(&place);
        let run = format!("runs/{name}");
        if place.path(&run).join("run.json").exists() {
            let patience = Instant::now() + Duration::from_secs(60);
            // Its replayers end when they notice that it is gone.
            loop {
                let resumed = place.run(&["rate", "--resume", &run]);
                let said = resumed.stderr();
                if !said.contains("another coordinator") || Instant::now() > patience {
                    assert!(said.contains("complete") || resumed.succeeds().contains("SoAR"), "{said}");
                    break;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            assert!(place.path(&run).join("report.html").exists());
        }
        check_files(&place);
    }
    report("rate", hits);
}
