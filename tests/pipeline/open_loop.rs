//! Loads that vary over time, from the specification to the page.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Workplace;

/// The ready loads of ycsb-d-2016 come out in a chart of the wanted and the achieved rate. A factor
/// replays a whole period of each in a few seconds; the rates are those of the specification times
/// the factor.
#[test]
fn the_page_shows_the_wanted_and_the_achieved_rate() {
    let place = Workplace::new();
    for (shape, factor, period, from, to) in
        [("ramp", 10.0, "6s", 100.0, 800.0), ("sine", 10.0, "3s", 100.0, 700.0), ("spike", 10.0, "6s", 200.0, 1_000.0)]
    {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
        let spec = traces.join(format!("ycsb-d-2016-{shape}.toml")).display().to_string();
        let factor_text = factor.to_string();
        let short = ["--set", "data.records=1000", "--duration", period, "--rate-factor", &factor_text];
        let short = [&short[..], &["--threads", "4", "--name", shape]].concat();
        let said = place.run(&[&["run", &spec, "--store", "memory:"][..], &short].concat()).ends();
        assert!(said.contains("service time: p95"), "{shape}: {said}");
        let page = std::fs::read_to_string(place.path(&format!("runs/{shape}/report.html"))).expect("a page");
        assert!(page.contains("Operations that met both limits (M). Wanted and achieved rate"), "{shape}");
        let picture = std::fs::read_to_string(place.path(&format!("runs/{shape}/load.svg"))).expect("a picture");
        assert!(picture.starts_with("<svg ") && picture.contains("sessions/s"), "{shape}");
        let run = format!("runs/{shape}");
        let ask = |sql: &str| place.run(&["analyze", "sql", &run, sql, "--format", "csv"]).succeeds();
        let full = "to_s <= (SELECT counted_ns / 1e9 FROM experiments)";
        let slices = ask(&format!("SELECT count(*) AS n FROM timeline WHERE {full}"));
        let slices: usize = slices.trim().trim_start_matches("n\n").parse().expect("a number");
        // The rates are drawn again beside the consistency of the registers.
        for (series, charts) in [("M", 1), ("wanted", 2), ("achieved", 2)] {
            let points = page.matches(&format!("<title>{series} ")).count();
            assert!(points == charts * slices && slices >= 10, "{shape}: {points} of {series}, {slices} slices");
        }
        // The rate is that of the specification.
        let wanted = ask(&format!("SELECT min(due_per_s) AS low, max(due_per_s) AS high FROM timeline WHERE {full}"));
        let wanted: Vec<f64> = wanted.lines().nth(1).expect("a row").split(',').flat_map(str::parse).collect();
        let (low, high): (f64, f64) = (from * factor, to * factor);
        assert!(wanted.len() == 2 && wanted[0] >= low - 1e-6 && wanted[1] <= high + 1e-6, "{shape}: {wanted:?}");
        // A slice has the mean of its time, so it comes near the ends of the range.
        assert!(wanted[0] <= low * 1.5 && wanted[1] >= high * 0.8, "{shape}: {wanted:?}");
    }
}

/// The replayer stands still for a second and a half. Without that the store keeps up easily. All
/// sessions but the first T counted as queued because of the store, and the experiment failed.
#[test]
fn a_queue_behind_a_stopped_replayer_is_not_the_stores_fault() {
    let place = Workplace::new();
    place.run(&["trace", "gen", "busy.toml", "-o", "long.trace", "--sessions", "40000"]).succeeds();
    let replay = ["replay", "run", "--trace", "long.trace", "--store", "memory:?latency_us=1000", "--output=r"];
    let how = ["--threads", "16", "--rate", "1000", "--duration", "10s"];
    let mut child = place
        .command(&[&replay[..], &how].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let log = place.path("r/experiments/0001-T16/log/fragment-0.arrows");
    let patience = Instant::now() + Duration::from_secs(600);
    while std::fs::metadata(&log).map_or(0, |file| file.len()) < 10_000 {
        assert!(Instant::now() < patience && child.try_wait().expect("a child").is_none(), "no batch in the log");
        std::thread::sleep(Duration::from_millis(20));
    }
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: sends a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        if signal == libc::SIGSTOP {
            std::thread::sleep(Duration::from_millis(1_500));
        }
    }
    assert!(child.wait().expect("it ends").success());
    let report = std::fs::read_to_string(place.path("r/experiments/0001-T16/replay.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let pacing = &report["pacing"];
    let (stalled, queued) = (pacing["sessions_stalled"].as_u64(), pacing["sessions_queued"].as_u64());
    assert!(stalled >= Some(1_000) && stalled <= queued, "{pacing}");
    assert!(pacing["stalled_ns_max"].as_u64() >= Some(1_000_000_000), "{pacing}");
    let summary = place.run(&["analyze", "summary", "r", "--sla", "99% < 100ms, 10s", "--json"]).stdout();
    let verdict: serde_json::Value = serde_json::from_str(&summary).unwrap_or_else(|e| panic!("{e}: {summary}"));
    let verdict = if verdict.is_array() { &verdict[0] } else { &verdict };
    assert!(summary.contains("\"void\"") && summary.contains("because the replayer stood still"), "{verdict}");
}
