//! `--metrics-listen`: the board over HTTP, for Prometheus: as OpenMetrics text for who asks for it, else as
//! Prometheus's own text.

use std::fmt::{Display, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use super::board::{Board, Figures};
use crate::failure::Failure;

/// The two formats of text. They differ in what is said of counters, in units and in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Format {
    /// What a request asks for by its `Accept` header.
    fn asked(headers: &HeaderMap) -> Format {
        let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let is_open = accepted.any(|value| value.contains("application/openmetrics-text"));
        if is_open { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Its media type.
    fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

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
            let metrics = move |headers: HeaderMap| async move {
                if !is_asked_by_address(&headers) {
                    let why = "ask for the address that --metrics-listen has printed, or for localhost\n";
                    return (StatusCode::FORBIDDEN, why).into_response();
                }
                let format = Format::asked(&headers);
                ([(header::CONTENT_TYPE, format.media_type())], text(&board, format)).into_response()
            };
            // It ends with the process.
            let _ = axum::serve(listener, Router::new().route("/metrics", get(metrics))).await;
        })
    });
    Ok(bound)
}

/// Whether a request is for an address or for localhost. Under another name, a page of another site would read the metrics: its
/// name can be made to point to this machine.
fn is_asked_by_address(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    host.is_none_or(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.parse::<IpAddr>().is_ok()
    })
}

/// The board as text.
fn text(board: &Board, format: Format) -> String {
    let figures = board.figures();
    let mut out = Text { text: String::new(), format };
    counters(&mut out, &figures);
    histogram(&mut out, &figures);
    gauges(&mut out, &figures);
    if format == Format::OpenMetrics {
        out.line("# EOF");
    }
    out.text
}

/// A text of lines.
struct Text {
    text: String,
    format: Format,
}

impl Text {
    fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// The lines that describe a family.
    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        // Prometheus's text describes a counter by the name of its samples.
        let end = if kind == "counter" && self.format == Format::Prometheus { "_total" } else { "" };
        self.line(format_args!("# TYPE {name}{end} {kind}"));
        if let Some(unit) = unit.filter(|_| self.format == Format::OpenMetrics) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name}{end} {help}"));
    }
}

fn counters(out: &mut Text, figures: &Figures) {
    let Figures { now, before, ended, .. } = figures;
    out.family("encore_operations", "counter", None, "Operations of measured parts, by outcome.");
    let outcomes =
        [("ok", before.ok + now.ok), ("error", before.errors + now.errors), ("aborted", before.aborted + now.aborted)];
    for (outcome, count) in outcomes {
        out.line(format_args!("encore_operations_total{{outcome=\"{outcome}\"}} {count}"));
    }
    out.family("encore_reads", "counter", None, "Reads of validated experiments.");
    out.line(format_args!("encore_reads_total {}", before.reads));
    out.family("encore_unpredictable_reads", "counter", None, "Reads that no correct store could have returned.");
    out.line(format_args!("encore_unpredictable_reads_total {}", before.unpredictable));
    out.family("encore_experiments", "counter", None, "Experiments that have ended, by verdict.");
    for (verdict, count) in ["pass", "fail", "void"].into_iter().zip(ended) {
        out.line(format_args!("encore_experiments_total{{verdict=\"{verdict}\"}} {count}"));
    }
}

/// The response times. The buckets come from an HDR histogram, so a value belongs to one of them with an error of
/// at most one in a thousand.
fn histogram(out: &mut Text, figures: &Figures) {
    let mut times = figures.before.times.clone();
    times.merge(&figures.now.response_times);
    let name = "encore_response_seconds";
    out.family(name, "histogram", Some("seconds"), "Response times of successful operations.");
    for us in BUCKETS_US {
        let below = times.histogram().count_between(0, us * 1000);
        out.line(format_args!("{name}_bucket{{le=\"{}\"}} {below}", us as f64 / 1e6));
    }
    out.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {}", times.count()));
    out.line(format_args!("{name}_count {}", times.count()));
    out.line(format_args!("{name}_sum {}", times.mean_ns() * times.count() as f64 / 1e9));
}

fn gauges(out: &mut Text, figures: &Figures) {
    out.family("encore_experiment", "gauge", None, "The number of the running experiment, with its load.");
    let load = escaped(&figures.load);
    out.line(format_args!("encore_experiment{{load=\"{load}\"}} {}", figures.experiment));
    if let Some(last) = &figures.last {
        let own = [
            ("encore_last_throughput", "Operations a second of the last experiment.", last.throughput_per_s),
            ("encore_last_within_ratio", "Share of its operations within the SLA.", last.within_percent / 100.0),
            ("encore_last_unpredictable_ratio", "Share of its reads.", last.unpredictable_percent / 100.0),
        ];
        for (name, help, value) in own {
            out.family(name, "gauge", None, help);
            out.line(format_args!("{name} {value}"));
        }
    }
    out.family("encore_replayer_cpus", "gauge", None, "Processors that a replayer uses.");
    for (name, progress) in &figures.replayers {
        out.line(format_args!("encore_replayer_cpus{{replayer=\"{}\"}} {}", escaped(name), progress.cpus_used));
    }
    let name = "encore_replayer_lag_max_seconds";
    out.family(name, "gauge", Some("seconds"), "How late a replayer has taken up work at most.");
    for (replayer, progress) in &figures.replayers {
        let lag_s = progress.dispatch_lag_ns_max as f64 / 1e9;
        out.line(format_args!("{name}{{replayer=\"{}\"}} {lag_s}", escaped(replayer)));
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
        let text = |format| super::text(&board, format);
        let open = text(Format::OpenMetrics);
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
            assert!(open.contains(expect), "{expect:?} is not in {open}");
        }
        assert!(open.contains("# TYPE encore_operations counter\n") && open.ends_with("# EOF\n"), "{open}");
        let plain = text(Format::Prometheus);
        assert!(plain.contains("# TYPE encore_operations_total counter\n") && !plain.contains("# EOF"), "{plain}");
        let samples =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect::<Vec<_>>();
        assert_eq!(samples(&open), samples(&plain));
    }

    #[test]
    fn other_machines_are_refused() {
        let refused = listen("0.0.0.0:0".parse().unwrap(), Arc::default()).unwrap_err().to_string();
        assert!(refused.contains("--metrics-listen 0.0.0.0:0 is not a loopback address"), "{refused}");
    }
}
