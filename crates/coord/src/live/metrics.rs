//! `--metrics-listen`: the board as OpenMetrics text over HTTP, for Prometheus.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::routing::get;

use super::board::{Board, Figures};
use crate::failure::Failure;

/// The media type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper ends of the histogram's buckets, in microseconds: three for each power of ten, from 10 µs to 10 s.
const BUCKETS_US: [u64; 19] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];

/// Serves the board at `/metrics` on a thread of its own, until the process ends. Returns the address with its port.
pub fn listen(address: SocketAddr, board: Arc<Board>) -> Result<SocketAddr, Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "--metrics-listen {address} is not a loopback address, and the metrics have neither TLS nor a password; \
             listen on 127.0.0.1, and let an agent on this machine or an SSH tunnel forward them"
        )));
    }
    let refused = |e: std::io::Error| Failure::usage(format!("--metrics-listen {address}: {e}"));
    let listener = std::net::TcpListener::bind(address).map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let metrics = move || async move { ([(header::CONTENT_TYPE, OPENMETRICS)], text(&board)) };
            // It ends with the process.
            let _ = axum::serve(listener, Router::new().route("/metrics", get(metrics))).await;
        })
    });
    Ok(bound)
}

/// The board as OpenMetrics text.
pub fn text(board: &Board) -> String {
    let figures = board.figures();
    let mut out = String::new();
    counters(&mut out, &figures);
    histogram(&mut out, &figures);
    gauges(&mut out, &figures);
    out.push_str("# EOF\n");
    out
}

/// The lines that describe a family. Writing to a string cannot fail.
fn family(out: &mut String, name: &str, kind: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

fn counters(out: &mut String, figures: &Figures) {
    let Figures { now, before, ended, .. } = figures;
    family(out, "encore_operations", "counter", None, "Operations of measured parts, by outcome.");
    let outcomes =
        [("ok", before.ok + now.ok), ("error", before.errors + now.errors), ("aborted", before.aborted + now.aborted)];
    for (outcome, count) in outcomes {
        let _ = writeln!(out, "encore_operations_total{{outcome=\"{outcome}\"}} {count}");
    }
    family(out, "encore_reads", "counter", None, "Reads of validated experiments.");
    let _ = writeln!(out, "encore_reads_total {}", before.reads);
    family(out, "encore_unpredictable_reads", "counter", None, "Reads that no correct store could have returned.");
    let _ = writeln!(out, "encore_unpredictable_reads_total {}", before.unpredictable);
    family(out, "encore_experiments", "counter", None, "Experiments that have ended, by verdict.");
    for (verdict, count) in ["pass", "fail", "void"].into_iter().zip(ended) {
        let _ = writeln!(out, "encore_experiments_total{{verdict=\"{verdict}\"}} {count}");
    }
}

/// The response times. The buckets come from an HDR histogram, so a value belongs to one of them with an error of
/// at most one in a thousand.
fn histogram(out: &mut String, figures: &Figures) {
    let mut times = figures.before.times.clone();
    times.merge(&figures.now.response_times);
    let name = "encore_response_seconds";
    family(out, name, "histogram", Some("seconds"), "Response times of successful operations.");
    for us in BUCKETS_US {
        let below = times.histogram().count_between(0, us * 1000);
        let _ = writeln!(out, "{name}_bucket{{le=\"{}\"}} {below}", us as f64 / 1e6);
    }
    let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {}", times.count());
    let _ = writeln!(out, "{name}_count {}", times.count());
    let _ = writeln!(out, "{name}_sum {}", times.mean_ns() * times.count() as f64 / 1e9);
}

fn gauges(out: &mut String, figures: &Figures) {
    family(out, "encore_experiment", "gauge", None, "The number of the running experiment, with its load.");
    let load = escaped(&figures.load);
    let _ = writeln!(out, "encore_experiment{{load=\"{load}\"}} {}", figures.experiment);
    if let Some(last) = &figures.last {
        let own = [
            ("encore_last_throughput", "Operations a second of the last experiment.", last.throughput_per_s),
            ("encore_last_within_ratio", "Share of its operations within the SLA.", last.within_percent / 100.0),
            ("encore_last_unpredictable_ratio", "Share of its reads.", last.unpredictable_percent / 100.0),
        ];
        for (name, help, value) in own {
            family(out, name, "gauge", None, help);
            let _ = writeln!(out, "{name} {value}");
        }
    }
    family(out, "encore_replayer_cpus", "gauge", None, "Processors that a replayer uses.");
    for (name, progress) in &figures.replayers {
        let _ = writeln!(out, "encore_replayer_cpus{{replayer=\"{}\"}} {}", escaped(name), progress.cpus_used);
    }
    let name = "encore_replayer_lag_max_seconds";
    family(out, name, "gauge", Some("seconds"), "How late a replayer has taken up work at most.");
    for (replayer, progress) in &figures.replayers {
        let lag_s = progress.dispatch_lag_ns_max as f64 / 1e9;
        let _ = writeln!(out, "{name}{{replayer=\"{}\"}} {lag_s}", escaped(replayer));
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Progress;

    #[test]
    fn counters_go_on_and_buckets_add_up() {
        let board = Board::default();
        let mut progress = Progress { ok: 3, errors: 1, ..Progress::default() };
        [15_000, 15_000, 3_000_000].into_iter().for_each(|ns| progress.response_times.record(ns));
        let each = [("a\"b".to_string(), Arc::new(Progress { cpus_used: 0.5, ..Progress::default() }))];
        board.begin(1, "T=1");
        board.running(&progress, &[]);
        board.begin(2, "T=2");
        board.running(&progress, &each);
        let text = text(&board);
        for expect in [
            "encore_operations_total{outcome=\"ok\"} 6\n",
            "encore_operations_total{outcome=\"error\"} 2\n",
            "encore_response_seconds_bucket{le=\"0.00001\"} 0\n",
            "encore_response_seconds_bucket{le=\"0.00002\"} 4\n",
            "encore_response_seconds_bucket{le=\"0.002\"} 4\n",
            "encore_response_seconds_bucket{le=\"0.005\"} 6\n",
            "encore_response_seconds_bucket{le=\"+Inf\"} 6\n",
            "encore_response_seconds_count 6\n",
            "encore_experiment{load=\"T=2\"} 2\n",
            "encore_replayer_cpus{replayer=\"a\\\"b\"} 0.5\n",
        ] {
            assert!(text.contains(expect), "{expect:?} is not in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn other_machines_are_refused() {
        let refused = listen("0.0.0.0:0".parse().unwrap(), Arc::default()).unwrap_err().to_string();
        assert!(refused.contains("--metrics-listen 0.0.0.0:0 is not a loopback address"), "{refused}");
    }
}
