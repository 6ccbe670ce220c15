//! Kills every stage with kill -9 at random moments. What was flushed is there, no file with a
//! final name is incomplete, and the next command continues. A test kills each stage a few times;
//!
//!     tests/run --kills 200
//!
//! kills each stage that often, and prints what it found.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{Host, ends};
use crate::support::Workplace;

/// How many times each stage is killed.
fn kills() -> u64 {
    std::env::var("ENCORE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

/// The kills of one stage, at moments that are the same in each run.
///
/// The span is divided into as many equal parts as there are kills, and each part has one moment. The
/// span is that of a first run, which also warms caches. If the later runs are so much faster that
/// every kill comes too late, some more follow at earlier and earlier moments.
struct Kills {
    stage: &'static str,
    random: u64,
    span: Duration,
    number: u64,
    hits: u64,
}

impl Kills {
    fn new(stage: &'static str, seed: u64, span: Duration) -> Kills {
        Kills { stage, random: seed, span, number: 0, hits: 0 }
    }

    /// Calls `kill` with the number and the moment of each kill. It returns whether the stage was
    /// still running.
    fn each(mut self, mut kill: impl FnMut(u64, Duration) -> bool) {
        const MORE: u64 = 6;
        while self.number < kills() || (self.hits == 0 && self.number < kills() + MORE) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let within = (self.random >> 11) as f64 / (1u64 << 53) as f64;
            if self.number >= kills() {
                self.span /= 2;
            }
            let part = (self.number % kills()) as f64;
            let moment = self.span.mul_f64((part + within) / kills() as f64);
            self.hits += u64::from(kill(self.number, moment));
            self.number += 1;
        }
        assert!(self.hits > 0, "{}: no kill came while it ran", self.stage);
        println!("{}: {} kills, {} of them while it ran; nothing lost", self.stage, self.number, self.hits);
    }
}

/// Runs a command to its end, and returns how long it took.
fn timed(place: &Workplace, arguments: &[&str]) -> Duration {
    let began = Instant::now();
    place.run(arguments).ends();
    began.elapsed()
}

/// Runs a command and kills it after some time. Returns whether it was still running.
fn killed(place: &Workplace, arguments: &[&str], after: Duration) -> bool {
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    std::thread::sleep(after);
    child.kill().expect("it can be killed, or has ended");
    child.wait().expect("it is dead").code().is_none()
}

/// Checks that no file with a final name is incomplete.
fn check_files(place: &Workplace) {
    for (path, content) in place.contents() {
        // Hidden files and folders are markers of databases and temporary files, which may be incomplete.
        if path.strip_prefix(place.path("")).unwrap_or(&path).iter().any(|part| part.to_string_lossy().starts_with('.'))
        {
            continue;
        }
        let whole = match path.extension().and_then(|e| e.to_str()) {
            Some("json") => serde_json::from_slice::<Value>(&content).is_ok(),
            Some("parquet") => content.starts_with(b"PAR1") && content.ends_with(b"PAR1"),
            Some("html") => String::from_utf8_lossy(&content).trim_end().ends_with("</html>"),
            _ => true,
        };
        assert!(whole, "{} is half-written: {} bytes", path.display(), content.len());
    }
}

/// The stores whose states must survive: a file, and a server if there is one. Tests run in
/// parallel, each with a database of its own.
fn stores(test: &str) -> Vec<String> {
    let database = format!("encore_killed_{test}_{}", std::process::id());
    let server = servers::postgres().map(|server| server.url(&database));
    ["sqlite:s.db?synchronous=off".to_string()].into_iter().chain(server).collect()
}

#[test]
fn a_killed_load_is_loaded_again() {
    let place = Workplace::with_trace();
    for store in stores("load") {
        let load = ["replay", "load", "--trace", "busy.trace", "--store", &store];
        let span = timed(&place, &load);
        let digest = ["replay", "digest", "--trace", "busy.trace", "--store", &store];
        let whole = place.run(&digest).succeeds();
        Kills::new("load", 1, span).each(|_, moment| {
            let hit = killed(&place, &load, moment);
            // The store is loaded, or its marker says that it is not. It must never count as loaded when it
            // is only partly loaded.
            let ran = place.run(&digest);
            if ran.stdout() != whole {
                ran.fails(2, &["encore replay load"]);
            }
            place.run(&load).succeeds();
            assert_eq!(place.run(&digest).succeeds(), whole);
            hit
        });
    }
}

#[test]
fn a_killed_replay_keeps_what_was_flushed() {
    let place = Workplace::with_trace();
    for store in stores("replay") {
        let words = |run: &str| {
            let words = ["replay", "run", "--trace", "busy.trace", "--store", &store, "--load", "-T", "4", "-o", run];
            words.map(ToString::to_string)
        };
        let whole = words("whole");
        let span = timed(&place, &whole.each_ref().map(String::as_str));
        std::fs::remove_dir_all(place.path("whole")).expect("the run");
        Kills::new("replay", 2, span).each(|number, moment| {
            let name = format!("r{number}");
            let words = words(&name);
            let hit = killed(&place, &words.each_ref().map(String::as_str), moment);
            check_files(&place);
            let experiment = place.path(&name).join("experiments/0001-T4/plan.json");
            if experiment.exists() {
                // The run can be read, however much of it there is.
                let summary = place.run(&["analyze", "summary", &name, "--json"]).stdout();
                assert!(summary.contains("\"ruling\""), "{name}: {summary}");
                let sql = "SELECT count(*) FILTER (unpredictable) AS lies FROM operations";
                let lies = place.run(&["analyze", "sql", &name, sql, "--format", "csv"]).succeeds();
                assert_eq!(lies.lines().last(), Some("0"), "a truthful store");
            }
            if place.path(&name).exists() {
                std::fs::remove_dir_all(place.path(&name)).expect("the run");
            }
            hit
        });
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
        let span = timed(&place, &arguments);
        Kills::new(stage, 3, span).each(|_, moment| {
            anew();
            let hit = killed(&place, &arguments, moment);
            check_files(&place);
            place.run(&arguments).ends();
            assert_eq!(place.run(&sql).succeeds(), count);
            hit
        });
    }
}

/// The files of a folder but hidden ones and summaries of fragments, by their paths in it, with their content.
fn files_of(place: &Workplace, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let within = |path: &Path| path.strip_prefix(place.path(folder)).ok().map(Path::to_path_buf);
    let is_hidden = |path: &Path| path.iter().any(|part| part.to_string_lossy().starts_with('.'));
    let files = place.contents().into_iter().filter_map(|(path, content)| Some((within(&path)?, content)));
    let kept = files.filter(|(path, _)| !is_hidden(path) && !path.iter().any(|part| part == "fragments"));
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    kept
}

/// The tasks that a cluster spreads: a killed one leaves nothing that looks whole, and again it ends the work.
#[test]
fn a_killed_task_of_a_generation_is_repeated() {
    let place = Workplace::with_trace();
    let whole = files_of(&place, "busy.trace");
    let part = |range| ["trace", "gen", "busy.toml", "-o", "apart.trace", "--only-fragments", range];
    let assemble = ["trace", "assemble", "apart.trace"];
    let manifest = place.path("apart.trace/manifest.json");
    let anew = || {
        if place.path("apart.trace").exists() {
            std::fs::remove_dir_all(place.path("apart.trace")).expect("a trace set");
        }
    };
    let span = timed(&place, &part("0..1"));
    Kills::new("gen --only-fragments", 6, span).each(|_, moment| {
        anew();
        let hit = killed(&place, &part("0..1"), moment);
        check_files(&place);
        place.run(&part("1..2")).succeeds();
        assert!(!manifest.exists(), "a part is no trace set");
        place.run(&part("0..1")).succeeds();
        place.run(&assemble).succeeds();
        assert!(files_of(&place, "apart.trace") == whole, "other files than in one go");
        hit
    });
    let parts = || {
        anew();
        place.run(&part("0..1")).succeeds();
        place.run(&part("1..2")).succeeds();
    };
    parts();
    let span = timed(&place, &assemble);
    Kills::new("assemble", 7, span).each(|_, moment| {
        parts();
        let hit = killed(&place, &assemble, moment);
        check_files(&place);
        place.run(&assemble).succeeds();
        assert!(files_of(&place, "apart.trace") == whole, "other files than in one go");
        hit
    });
}

#[test]
fn a_killed_task_of_an_analysis_is_repeated() {
    let place = Workplace::with_trace();
    place.run(&["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "4", "-o", "r"]).succeeds();
    let raw = files_of(&place, "r");
    let fragment = |number| ["analyze", "fragment", "r", "--experiment", "1", "--fragment", number];
    let merge = ["analyze", "merge", "r"];
    let anew = || {
        std::fs::remove_dir_all(place.path("r")).expect("the run");
        for (path, content) in &raw {
            let path = place.path("r").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, content).expect("a file");
        }
    };
    place.run(&["analyze", "summary", "r"]).ends();
    let whole = files_of(&place, "r");
    anew();
    let span = timed(&place, &fragment("0"));
    Kills::new("analyze fragment", 8, span).each(|_, moment| {
        anew();
        let hit = killed(&place, &fragment("0"), moment);
        check_files(&place);
        place.run(&fragment("1")).succeeds();
        place.run(&fragment("0")).succeeds();
        place.run(&merge).succeeds();
        assert!(files_of(&place, "r") == whole, "other files than in one go");
        hit
    });
    let analyzed = || {
        anew();
        place.run(&fragment("0")).succeeds();
        place.run(&fragment("1")).succeeds();
    };
    analyzed();
    let span = timed(&place, &merge);
    Kills::new("analyze merge", 9, span).each(|_, moment| {
        analyzed();
        let hit = killed(&place, &merge, moment);
        check_files(&place);
        place.run(&merge).succeeds();
        assert!(files_of(&place, "r") == whole, "other files than in one go");
        hit
    });
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
    // On a slow machine such a short rating may be void; only its duration matters here.
    let began = Instant::now();
    place.run(&whole);
    Kills::new("rate", 4, began.elapsed()).each(|number, moment| {
        let name = format!("r{number}");
        let words = rate(&name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let hit = killed(&place, &words, moment);
        check_files(&place);
        let run = format!("runs/{name}");
        if place.path(&run).join("run.json").exists() {
            let patience = Instant::now() + Duration::from_secs(60);
            // The replayers of the killed rating end when they notice its end.
            let resumed = loop {
                let resumed = place.run(&["rate", "--resume", &run]);
                if !resumed.stderr().contains("another coordinator") || Instant::now() > patience {
                    break resumed;
                }
                std::thread::sleep(Duration::from_millis(200));
            };
            if !resumed.stderr().contains("this run is complete") {
                resumed.ends();
            }
            let (said, errors) = (resumed.stdout(), resumed.stderr());
            assert!(place.path(&run).join("report.html").exists(), "{said}\n{errors}");
        }
        check_files(&place);
        hit
    });
}

/// A coordinator is killed while it fetches logs from a replayer's disk.
#[test]
fn a_killed_collect_is_repeated() {
    let place = Workplace::new();
    let start = || Host::start(&place, 9, &[]);
    let mut host = Some(start());
    // A restarted replayer listens on another port.
    let address_of = |host: &Option<Host>| host.as_ref().expect("a replayer").address.clone();
    let address = address_of(&host);
    let rate = "run busy.toml --store memory: --threads 4 --sessions 60000 --name r --leave-logs --replayer";
    let words: Vec<&str> = rate.split(' ').chain([address.as_str(), "--sla", "95% < 10s, 0.1s"]).collect();
    ends(&place.command(&words).output().expect("the program starts"));
    let logs = || {
        let files = place.contents().into_iter().filter(|(path, _)| path.starts_with(place.path("runs/r")));
        files.filter(|(path, _)| path.extension().is_some_and(|e| e == "arrows")).collect::<Vec<_>>()
    };
    let span = timed(&place, &["collect", "runs/r", "--replayer", &address]);
    let whole = logs();
    assert_eq!(whole.len(), 2, "a log for each fragment");
    Kills::new("collect", 5, span).each(|_, moment| {
        logs().iter().for_each(|(path, _)| std::fs::remove_file(path).expect("a log"));
        let hit = killed(&place, &["collect", "runs/r", "--replayer", &address_of(&host)], moment);
        assert!(logs().iter().all(|log| whole.contains(log)), "a log is half-written");
        // A replayer waits 15 s for a coordinator that has ended; a restarted replayer does not.
        drop(host.take());
        host = Some(start());
        place.run(&["collect", "runs/r", "--replayer", &address_of(&host)]).exits(0);
        assert!(logs() == whole, "other logs than before");
        hit
    });
}
