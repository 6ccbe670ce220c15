//! Ratings against stores whose throughput is known by formula: how far a passing
//! experiment is from the truth, and what the others say.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Ruling;
use serde::Serialize;

use crate::machine::Machine;
use crate::measure;

/// What is measured: each store with each of these.
pub struct Truth {
    /// T.
    pub threads: Vec<u32>,
    /// Skew of the access: the weight of rank i is i^-(1-theta).
    pub thetas: Vec<f64>,
    /// How long the experiments are.
    pub seconds: Vec<u32>,
    /// Hosts by themselves, or with busy loops beside the replayer.
    pub hosts: Vec<Host>,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// What else runs on the replayer's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// Nothing.
    Quiet,
    /// Three loops that never rest, on the replayer's only processor.
    Starved,
}

/// No result that passes may be farther from the truth than this.
const MOST_OFF_PERCENT: f64 = 5.0;

/// Every operation takes as long.
const LATENCY_S: f64 = 0.005;

/// Operations that the second store works on at a time.
const SERVERS: u32 = 32;

/// How long the third one stands still.
const STALL_S: f64 = 0.5;

/// BG's actions with 1% writes.
const SPEC: &str = include_str!("../../traces/bg-1-percent-writes.toml");

/// A store whose throughput is known.
#[derive(Clone, Copy)]
struct Store {
    name: &'static str,
    /// What it does with each operation, as parameters of `memory:`.
    parameters: &'static str,
    /// Operations a second with so many threads, in an experiment of so many seconds.
    true_per_s: fn(f64, f64) -> f64,
}

const STORES: [Store; 3] = [
    Store { name: "5 ms", parameters: "latency_us=5000", true_per_s: |threads, _| threads / LATENCY_S },
    Store {
        name: "5 ms, 32 servers",
        parameters: "latency_us=5000&servers=32",
        true_per_s: |threads, _| threads.min(SERVERS as f64) / LATENCY_S,
    },
    Store {
        name: "5 ms, a stall of 0.5 s",
        parameters: "latency_us=5000&stall_ms=500",
        true_per_s: |threads, seconds| threads / LATENCY_S * (seconds - STALL_S) / seconds,
    },
];

/// What came of an experiment.
#[derive(Debug, Clone, Serialize)]
struct Row {
    store: &'static str,
    host: Host,
    theta: f64,
    seconds: u32,
    threads: u32,
    true_per_s: f64,
    measured_per_s: f64,
    /// Mean dispatch lag, in percent of the mean response time.
    lag_percent: f64,
    /// Share of the time that the worker waited for a processor, in percent.
    run_delay_percent: f64,
    ruling: Ruling,
    reasons: Vec<String>,
}

impl Row {
    fn off_percent(&self) -> f64 {
        (self.measured_per_s / self.true_per_s - 1.0) * 100.0
    }

    fn is_wrong(&self) -> bool {
        self.ruling == Ruling::Pass && self.off_percent().abs() > MOST_OFF_PERCENT
    }
}

/// Runs all, writes the report; an error when something that passed is far from the truth.
pub fn main(truth: &Truth, folder: &Path) -> anyhow::Result<()> {
    let replayer = std::env::current_exe()?.with_file_name("replayer");
    anyhow::ensure!(replayer.is_file(), "{} is not there; start this with benches/run", replayer.display());
    let mut rows = Vec::new();
    for theta in &truth.thetas {
        let most = truth.threads.iter().max().copied().unwrap_or(1) as f64;
        let longest = truth.seconds.iter().max().copied().unwrap_or(1) as f64;
        let sessions = (most / LATENCY_S * longest * 1.3) as u64 + 10_000;
        let settings = [format!("sessions={sessions}"), format!("access.theta={theta}")];
        let trace = folder.join(format!("theta-{theta}.trace"));
        let spec = Spec::parse_with(SPEC, "bg-1-percent-writes.toml", &settings)?;
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
        for host in &truth.hosts {
            for seconds in &truth.seconds {
                for store in STORES {
                    for threads in &truth.threads {
                        let row = experiment(&replayer, &trace, folder, store, *host, *theta, *seconds, *threads)?;
                        eprintln!(
                            "{} {:?} theta {theta} {seconds} s T={threads}: {:.0}/s of {:.0}/s ({:+.1}%, lag {:.1}%) {} {}",
                            row.store,
                            row.host,
                            row.measured_per_s,
                            row.true_per_s,
                            row.off_percent(),
                            row.lag_percent,
                            row.ruling.name(),
                            row.reasons.join("; ")
                        );
                        rows.push(row);
                    }
                }
            }
        }
        std::fs::remove_dir_all(&trace)?;
    }
    write(truth, &rows)?;
    let wrong = rows.iter().filter(|row| row.is_wrong()).count();
    anyhow::ensure!(wrong == 0, "{wrong} experiments passed more than {MOST_OFF_PERCENT}% off the truth");
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one point of a space of so many dimensions")]
fn experiment(
    replayer: &Path,
    trace: &Path,
    folder: &Path,
    store: Store,
    host: Host,
    theta: f64,
    seconds: u32,
    threads: u32,
) -> anyhow::Result<Row> {
    let run = folder.join("run");
    let mut command = match host {
        Host::Quiet => Command::new(replayer),
        Host::Starved => {
            let mut pinned = Command::new("taskset");
            pinned.args(["-c", "0"]).arg(replayer);
            pinned
        }
    };
    command.arg("run").arg("--trace").arg(trace).arg("-o").arg(&run).arg("--json");
    command.args(["--store", &format!("memory:?{}", store.parameters), "-T", &threads.to_string()]);
    command.arg(format!("--duration={seconds}s"));
    let _loops = (host == Host::Starved).then(Loops::start).transpose()?;
    let report: ReplayReport = serde_json::from_str(&measure::run(&mut command)?.output)?;
    let verdict =
        analyzer::analyze_with(&RunFolder::new(&run), 1, Some(&Sla::default()), analyzer::Keep::Nothing, &|_| {})?;
    std::fs::remove_dir_all(&run)?;
    Ok(Row {
        store: store.name,
        host,
        theta,
        seconds,
        threads,
        true_per_s: (store.true_per_s)(threads as f64, seconds as f64),
        measured_per_s: verdict.figures.throughput_per_s,
        lag_percent: report.dispatch_lag_ns_mean * 100.0 / verdict.figures.overall.mean_ns.max(1.0),
        run_delay_percent: report.run_delay_share.unwrap_or(0.0) * 100.0,
        ruling: verdict.ruling,
        reasons: verdict.reasons,
    })
}

/// Busy loops on processor 0, until they are dropped.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> anyhow::Result<Loops> {
        let start = |_| {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().context("taskset is not there")
        };
        Ok(Loops((0..3).map(start).collect::<anyhow::Result<_>>()?))
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already needs no end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn write(truth: &Truth, rows: &[Row]) -> anyhow::Result<()> {
    let machine = Machine::current();
    let list = |name: &str, values: Vec<String>| values.iter().map(|v| format!(" --{name} {v}")).collect::<String>();
    let command = format!(
        "benches/run truth{}{}{}{}",
        list("threads", truth.threads.iter().map(u32::to_string).collect()),
        list("theta", truth.thetas.iter().map(f64::to_string).collect()),
        list("seconds", truth.seconds.iter().map(u32::to_string).collect()),
        list("host", truth.hosts.iter().map(|host| format!("{host:?}").to_lowercase()).collect()),
    );
    let mut text = format!(
        "# Rated and true\n\n`{command}`, on {machine}\n\n\
         BG's mix with 1% writes on `memory:`, whose throughput follows from its parameters: every operation takes \
         5 ms; at most 32 are worked on at a time; once, it stands still for 0.5 s. A pass may be at most \
         {MOST_OFF_PERCENT}% off; everything else is void, with its cause. Starved: the replayer shares one processor \
         with three loops that never rest. Lag: how late answers were taken up on average, of the mean response time. \
         Waited: the share of the time in which the worker was ready and waited for a processor.\n\n\
         | store | host | theta | seconds | T | true/s | measured/s | off | lag | waited | \
         verdict |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for row in rows {
        let verdict = match row.ruling {
            Ruling::Pass => "pass".to_string(),
            other => format!("{}: {}", other.name(), row.reasons.join("; ")),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {:+.1}% | {:.1}% | {:.1}% | {verdict} |",
            row.store,
            format!("{:?}", row.host).to_lowercase(),
            row.theta,
            row.seconds,
            row.threads,
            row.true_per_s,
            row.measured_per_s,
            row.off_percent(),
            row.lag_percent,
            row.run_delay_percent,
        );
    }
    let json = serde_json::json!({ "command": command, "machine": machine, "experiments": rows });
    for (extension, content) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        let path = truth.output.with_extension(extension);
        std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
