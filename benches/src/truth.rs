//! Experiments against stores whose throughput follows from a formula: how far those that pass are
//! from the true throughput, and the verdicts of the others.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::Ruling;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::measure;

/// The experiments to run: each store with each combination of these.
pub struct Truth {
    /// T.
    pub threads: Vec<u32>,
    /// Skew of the access: the weight of rank i is i^-(1-theta).
    pub thetas: Vec<f64>,
    /// The durations of the experiments.
    pub seconds: Vec<u32>,
    /// Hosts without other load, or with busy loops beside the replayer.
    pub hosts: Vec<Host>,
    /// Keep the experiments that the report already has.
    pub resume: bool,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// The other load on the replayer's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// No other load.
    Quiet,
    /// Three busy loops on the replayer's only processor.
    Starved,
}

/// An experiment that passes must not be farther than this from the true throughput.
const MOST_OFF_PERCENT: f64 = 5.0;

/// The latency of every operation.
const LATENCY_S: f64 = 0.005;

/// How many operations the second store works on at a time.
const SERVERS: u32 = 32;

/// How long the third store stands still.
const STALL_S: f64 = 0.5;

/// BG's actions with 1% writes.
const SPEC: &str = include_str!("../../traces/bg-1-percent-writes.toml");

/// A store whose throughput is known.
#[derive(Clone, Copy)]
struct Store {
    name: &'static str,
    /// The behaviour of the store, as parameters of `memory:`.
    parameters: &'static str,
    /// Operations per second with this many threads, in an experiment of this many seconds.
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

/// One combination of the settings to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point {
    store: String,
    host: Host,
    theta: f64,
    seconds: u32,
    threads: u32,
}

/// The result of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    point: Point,
    true_per_s: f64,
    measured_per_s: f64,
    /// Mean scheduling delay, in percent of the mean response time.
    lag_percent: f64,
    /// The share of the time in which the worker waited for a processor, in percent.
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

/// A line for each experiment while the table is made.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { store, host, theta, seconds, threads } = &self.point;
        write!(f, "{store} {host:?} theta {theta} {seconds} s T={threads}: ")?;
        write!(f, "{:.0}/s of {:.0}/s ", self.measured_per_s, self.true_per_s)?;
        write!(f, "({:+.1}%, lag {:.1}%) ", self.off_percent(), self.lag_percent)?;
        write!(f, "{} {}", self.ruling.name(), self.reasons.join("; "))
    }
}

/// The report as JSON, beside the page for readers.
#[derive(Serialize, Deserialize)]
struct Report {
    command: String,
    machine: Machine,
    experiments: Vec<Row>,
}

/// Runs all experiments and writes the report. Fails if an experiment that passed is far from the truth.
pub fn main(truth: &Truth, folder: &Path) -> anyhow::Result<()> {
    let replayer = std::env::current_exe()?.with_file_name("replayer");
    anyhow::ensure!(
        replayer.is_file(),
        "{} is missing; start the benches with benches/run, which builds it",
        replayer.display()
    );
    let machine = Machine::current();
    let measured = if truth.resume { measured_before(truth, &machine)? } else { Vec::new() };
    let mut rows: Vec<Row> = Vec::new();
    for theta in &truth.thetas {
        let points: Vec<(Store, Point)> = points_of(truth, *theta).collect();
        let before = |point: &Point| measured.iter().find(|row| row.point == *point);
        if points.iter().all(|(_, point)| before(point).is_some()) {
            rows.extend(points.iter().filter_map(|(_, point)| before(point)).cloned());
            continue;
        }
        let most = truth.threads.iter().max().copied().unwrap_or(1) as f64;
        let longest = truth.seconds.iter().max().copied().unwrap_or(1) as f64;
        let sessions = (most / LATENCY_S * longest * 1.3) as u64 + 10_000;
        let settings = [format!("sessions={sessions}"), format!("access.theta={theta}")];
        let trace = folder.join(format!("theta-{theta}.trace"));
        let spec = Spec::parse_with(SPEC, "bg-1-percent-writes.toml", &settings)?;
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
        for (store, point) in points {
            if let Some(row) = before(&point) {
                rows.push(row.clone());
                continue;
            }
            let row = experiment(&replayer, &trace, folder, store, point)?;
            eprintln!("{row}");
            rows.push(row);
            // The whole bench may take hours, so each result is written at once, and --resume continues from
            // it. Earlier results of later points stay in the file until those points are measured again.
            let later = measured.iter().filter(|row| rows.iter().all(|done| done.point != row.point));
            write(truth, &machine, rows.iter().chain(later).cloned().collect())?;
        }
        std::fs::remove_dir_all(&trace)?;
    }
    let wrong = rows.iter().filter(|row| row.is_wrong()).count();
    write(truth, &machine, rows)?;
    anyhow::ensure!(
        wrong == 0,
        "{wrong} experiments passed with a throughput more than {MOST_OFF_PERCENT}% from the true one"
    );
    Ok(())
}

/// The experiments of an interrupted command, read from its report.
fn measured_before(truth: &Truth, machine: &Machine) -> anyhow::Result<Vec<Row>> {
    let path = truth.output.with_extension("json");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let report: Report = serde_json::from_str(&text).with_context(|| format!("{} is not a report", path.display()))?;
    anyhow::ensure!(
        report.machine == *machine,
        "{}: measured on {}, not on this machine ({machine}); choose another file with -o",
        path.display(),
        report.machine
    );
    Ok(report.experiments)
}

/// The points of a trace set, in measurement order.
fn points_of(truth: &Truth, theta: f64) -> impl Iterator<Item = (Store, Point)> + '_ {
    truth.hosts.iter().flat_map(move |host| {
        truth.seconds.iter().flat_map(move |seconds| {
            STORES.into_iter().flat_map(move |store| {
                truth.threads.iter().map(move |threads| {
                    let (host, seconds, threads) = (*host, *seconds, *threads);
                    (store, Point { store: store.name.to_string(), host, theta, seconds, threads })
                })
            })
        })
    })
}

fn experiment(replayer: &Path, trace: &Path, folder: &Path, store: Store, point: Point) -> anyhow::Result<Row> {
    let run = folder.join("run");
    let mut command = match point.host {
        Host::Quiet => Command::new(replayer),
        Host::Starved => {
            let mut pinned = Command::new("taskset");
            pinned.args(["-c", "0"]).arg(replayer);
            pinned
        }
    };
    command.arg("run").arg("--trace").arg(trace).arg("-o").arg(&run).arg("--json");
    command.args(["--store", &format!("memory:?{}", store.parameters), "-T", &point.threads.to_string()]);
    command.arg(format!("--duration={}s", point.seconds));
    let _loops = (point.host == Host::Starved).then(Loops::start).transpose()?;
    let report: ReplayReport = serde_json::from_str(&measure::run(&mut command)?.output)?;
    let verdict =
        analyzer::analyze_with(&RunFolder::new(&run), 1, Some(&Sla::default()), analyzer::Keep::Nothing, &|_| {})?;
    std::fs::remove_dir_all(&run)?;
    Ok(Row {
        true_per_s: (store.true_per_s)(point.threads as f64, point.seconds as f64),
        measured_per_s: verdict.figures.throughput_per_s,
        lag_percent: report.dispatch_lag_ns_mean * 100.0 / verdict.figures.overall.mean_ns.max(1.0),
        run_delay_percent: report.run_delay_share.unwrap_or(0.0) * 100.0,
        ruling: verdict.ruling,
        reasons: verdict.reasons,
        point,
    })
}

/// Busy loops on processor 0; dropping this value stops them.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> anyhow::Result<Loops> {
        let start = |_| {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().context("cannot start taskset; install util-linux")
        };
        Ok(Loops((0..3).map(start).collect::<anyhow::Result<_>>()?))
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended already, which does no harm.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn write(truth: &Truth, machine: &Machine, rows: Vec<Row>) -> anyhow::Result<()> {
    let list = |name: &str, values: Vec<String>| values.iter().map(|v| format!(" --{name} {v}")).collect::<String>();
    let command = format!(
        "benches/run truth{}{}{}{}",
        list("threads", truth.threads.iter().map(u32::to_string).collect()),
        list("theta", truth.thetas.iter().map(f64::to_string).collect()),
        list("seconds", truth.seconds.iter().map(u32::to_string).collect()),
        list("host", truth.hosts.iter().map(|host| format!("{host:?}").to_lowercase()).collect()),
    );
    let mut text = format!(
        "# Measured and true throughput\n\n`{command}`, on {machine}\n\n\
         BG's mix with 1% writes on `memory:`, whose throughput follows from its parameters: every operation takes \
         5 ms; the same with at most 32 operations at a time; the same with one stall of 0.5 s. The throughput of an \
         experiment that passes must be within {MOST_OFF_PERCENT}% of the true one; other experiments are void, with \
         the reason. Starved: the replayer shares one processor with three busy loops. Lag: mean scheduling delay, in \
         percent of the mean response time. Waited: share of the time in which the worker was ready but waited for a \
         processor.\n\n\
         | store | host | theta | seconds | T | true/s | measured/s | off | lag | waited | \
         verdict |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for row in &rows {
        let verdict = match row.ruling {
            Ruling::Pass => "pass".to_string(),
            other => format!("{}: {}", other.name(), row.reasons.join("; ")),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {:+.1}% | {:.1}% | {:.1}% | {verdict} |",
            row.point.store,
            format!("{:?}", row.point.host).to_lowercase(),
            row.point.theta,
            row.point.seconds,
            row.point.threads,
            row.true_per_s,
            row.measured_per_s,
            row.off_percent(),
            row.lag_percent,
            row.run_delay_percent,
        );
    }
    let report = Report { command, machine: machine.clone(), experiments: rows };
    for (extension, content) in [("md", text), ("json", serde_json::to_string_pretty(&report)? + "\n")] {
        let path = truth.output.with_extension(extension);
        schemas::files::write_atomically(&path, content.as_bytes())?;
    }
    Ok(())
}
