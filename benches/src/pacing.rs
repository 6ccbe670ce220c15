//! How precisely the replayer starts sessions at their due times, as BenchFoundry measures it
//! (benchfoundry-2016, Figures 6 and 7): at several rates, and spread over several replayers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use analyzer::sql::Database;
use anyhow::{Context, ensure};
use duckdb::types::Value;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sla::short_time;
use schemas::spec::Spec;
use schemas::words::{plural, thousands};
use serde::Serialize;

use crate::machine::Machine;
use crate::measure;

/// What is measured.
pub struct Precision {
    /// Multiples of [`BASE_PER_S`], by one replayer.
    pub load_factors: Vec<u32>,
    /// Numbers of replayers that share the load of [`SHARED_FACTOR`].
    pub replayers: Vec<u32>,
    /// The duration of each run.
    pub seconds: u32,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// The base unit of the paper: two business processes a second.
const BASE_PER_S: u32 = 2;

/// The load factor of the paper's experiment with several instances.
const SHARED_FACTOR: u32 = 50;

/// The share of the replayer's capacity at which its precision has a goal, and the goal.
const OF_CAPACITY: f64 = 0.8;
const GOAL_P99_NS: i64 = 100_000;

/// The percentiles of the paper, and one more.
const PERCENTILES: [f64; 7] = [5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9];

/// The longest run at that rate, in seconds: a longer one needs a large trace set and shows nothing
/// more.
const OF_CAPACITY_SECONDS: u32 = 5;

/// Threads of each replayer.
const THREADS: u32 = 64;

/// A store that takes a millisecond, so that threads do wait for it.
const STORE: &str = "memory:?latency_us=1000";

/// Reads and writes of a small social network.
const SPEC: &str = include_str!("../../traces/quickstart.toml");

/// How often each difference between due time and start occurs, over all sessions.
const LATENCIES: &str = "SELECT start_ns - due_ns AS ns, count(*) FROM operations WHERE due_ns IS NOT NULL \
                         AND NOT warmup GROUP BY ns";

/// The scheduling latency of one load.
#[derive(Debug, Clone, Serialize)]
struct Line {
    case: String,
    replayers: u32,
    per_s: f64,
    sessions: u64,
    queued: u64,
    /// Of [`PERCENTILES`], in nanoseconds.
    latency_ns: Vec<i64>,
    /// CPU time of all replayers over the wall time; 1 is one processor.
    cpus: f64,
}

impl Line {
    /// The line as progress shows it.
    fn in_words(&self) -> String {
        let Line { case, replayers, per_s, sessions, queued, latency_ns, cpus } = self;
        let latencies = PERCENTILES.iter().zip(latency_ns);
        let latencies: Vec<String> =
            latencies.map(|(percent, ns)| format!("p{percent} {}", short_time((*ns).max(0) as u64))).collect();
        format!(
            "{case}: {}, {per_s} sessions/s, {} ({} queued), {}, {cpus:.2} CPUs",
            plural((*replayers).into(), "replayer"),
            plural(*sessions, "session"),
            thousands(*queued),
            latencies.join(", "),
        )
    }
}

/// Measures, and writes the table to `output` with `.md` and `.json`.
pub fn main(precision: &Precision, folder: &Path) -> anyhow::Result<()> {
    let replayer = std::env::current_exe()?.with_file_name("replayer");
    ensure!(
        replayer.is_file(),
        "{} is missing; start the benches with benches/run, which builds it",
        replayer.display()
    );
    let bench = Bench { replayer, folder, seconds: precision.seconds };
    let mut lines = Vec::new();
    for factor in &precision.load_factors {
        lines.push(bench.line(format!("load factor {factor}"), STORE, 1, f64::from(factor * BASE_PER_S))?);
        write(precision, &lines, None)?;
    }
    for replayers in &precision.replayers {
        let per_s = f64::from(SHARED_FACTOR * BASE_PER_S);
        lines.push(bench.line(format!("load factor {SHARED_FACTOR}, shared"), STORE, *replayers, per_s)?);
        write(precision, &lines, None)?;
    }
    let capacity_per_s = bench.capacity_per_s()?;
    let per_s = (capacity_per_s * OF_CAPACITY).floor();
    lines.push(bench.at_capacity(per_s)?);
    write(precision, &lines, Some(capacity_per_s))?;
    print!("{}", std::fs::read_to_string(precision.output.with_extension("md"))?);
    Ok(())
}

struct Bench<'a> {
    replayer: PathBuf,
    folder: &'a Path,
    seconds: u32,
}

impl Bench<'_> {
    /// The sessions a second that one replayer starts at most against `null:` in an open loop. Without
    /// due times it starts more: that throughput is the rate that is too high for it.
    fn capacity_per_s(&self) -> anyhow::Result<f64> {
        let trace = self.trace("capacity", 8_000_000)?;
        let closed_per_s = self.throughput_per_s(&trace, None)?;
        let open_per_s = self.throughput_per_s(&trace, Some(closed_per_s.floor()))?;
        std::fs::remove_dir_all(trace)?;
        Ok(open_per_s)
    }

    /// Sessions a second of one replayer that replays a whole trace set against `null:`.
    fn throughput_per_s(&self, trace: &Path, rate_per_s: Option<f64>) -> anyhow::Result<f64> {
        let run = self.folder.join("capacity");
        let mut command = self.command(trace, "null:", &run);
        command.args(rate_per_s.iter().flat_map(|rate| ["--rate".to_string(), rate.to_string()]));
        let report = read(&measure::run(&mut command)?.output)?;
        std::fs::remove_dir_all(run)?;
        Ok(report.sessions as f64 / (report.elapsed_ns as f64 / 1e9))
    }

    /// The scheduling latency of one replayer near its capacity.
    fn at_capacity(&self, per_s: f64) -> anyhow::Result<Line> {
        let bench = Bench { seconds: self.seconds.min(OF_CAPACITY_SECONDS), replayer: self.replayer.clone(), ..*self };
        bench.line(format!("{}% of the capacity, null:", OF_CAPACITY * 100.0), "null:", 1, per_s)
    }

    /// The scheduling latency of replayers that share a load.
    fn line(&self, case: String, store: &str, replayers: u32, per_s: f64) -> anyhow::Result<Line> {
        let own_per_s = per_s / f64::from(replayers);
        let sessions = (own_per_s * f64::from(self.seconds)).ceil() as u64;
        let trace = self.trace("pacing", sessions + sessions / 10 + 1_000)?;
        let run = |number: u32| self.folder.join(format!("pacing-{number}"));
        let replays = (0..replayers).map(|number| {
            let mut command = self.command(&trace, store, &run(number));
            command.args(["--rate", &own_per_s.to_string(), "--duration", &format!("{}s", self.seconds)]);
            std::thread::spawn(move || measure::run(&mut command))
        });
        let replays: Vec<_> = replays.collect();
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        let (mut started, mut queued, mut cpu_s) = (0, 0, 0.0);
        for (number, replay) in replays.into_iter().enumerate() {
            let used = replay.join().map_err(|_| anyhow::anyhow!("a thread of the bench panicked"))??;
            cpu_s += used.cpu_s;
            let pacing = read(&used.output)?.pacing.context("the replayer reports no pacing")?;
            started += pacing.sessions_due - pacing.sessions_unstarted;
            queued += pacing.sessions_queued;
            for (latency_ns, sessions) in latencies(&run(number as u32))? {
                *counts.entry(latency_ns).or_default() += sessions;
            }
            std::fs::remove_dir_all(run(number as u32))?;
        }
        std::fs::remove_dir_all(trace)?;
        ensure!(counts.values().sum::<u64>() == started, "the logs do not have the sessions that were started");
        let latency_ns = PERCENTILES.iter().map(|percent| percentile(&counts, *percent)).collect();
        let cpus = cpu_s / f64::from(self.seconds);
        let line = Line { case, replayers, per_s, sessions: started, queued, latency_ns, cpus };
        eprintln!("{}", line.in_words());
        Ok(line)
    }

    fn trace(&self, name: &str, sessions: u64) -> anyhow::Result<PathBuf> {
        let trace = self.folder.join(format!("{name}.trace"));
        let spec = Spec::parse_with(SPEC, "quickstart.toml", &[format!("sessions={sessions}")])?;
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
        Ok(trace)
    }

    fn command(&self, trace: &Path, store: &str, run: &Path) -> Command {
        let mut command = Command::new(&self.replayer);
        command.arg("run").arg("--trace").arg(trace).arg("-o").arg(run).args(["--store", store, "--json"]);
        command.args(["--threads", &THREADS.to_string()]);
        command
    }
}

fn read(output: &str) -> anyhow::Result<ReplayReport> {
    serde_json::from_str(output).context("the replayer's report")
}

/// How often each scheduling latency occurs, from the log by SQL.
fn latencies(run: &Path) -> anyhow::Result<Vec<(i64, u64)>> {
    let run = RunFolder::new(run);
    let verdict = analyzer::analyze(&run, 1, None)?;
    let answer = Database::open(&run, &[verdict], None)?.query(LATENCIES)?;
    let number = |value: &Value| match value {
        Value::BigInt(number) => Ok(*number),
        other => anyhow::bail!("{other:?} is not a number"),
    };
    answer.rows.iter().map(|row| Ok((number(&row[0])?, number(&row[1])? as u64))).collect()
}

/// The latency that this share of the sessions did not exceed.
fn percentile(counts: &BTreeMap<i64, u64>, percent: f64) -> i64 {
    let all: u64 = counts.values().sum();
    let wanted = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
    let mut seen = 0;
    let found = counts.iter().find(|(_, sessions)| {
        seen += **sessions;
        seen >= wanted
    });
    found.map_or(0, |(latency_ns, _)| *latency_ns)
}

fn write(precision: &Precision, lines: &[Line], capacity_per_s: Option<f64>) -> anyhow::Result<()> {
    let machine = Machine::current();
    let names = PERCENTILES.map(|percent| format!("p{percent}"));
    let mut text = format!(
        "# Scheduling latency\n\n`benches/run pacing --seconds {}`, on {machine}\n\n\
         From the due time of a session to its start, in µs, from the log by SQL. A load factor of 1 is {BASE_PER_S} \
         sessions a second, as in benchfoundry-2016 (Figures 6 and 7). The store is `{STORE}`, T = {THREADS} for each \
         replayer. Several replayers are processes on this machine that share the load. CPUs includes the time that a \
         replayer waits for due times with a busy processor.\n\n\
         | load | replayers | sessions/s | sessions | queued | {} | CPUs |\n|---|---:|---:|---:|---:|{}---:|\n",
        precision.seconds,
        names.join(" | "),
        "---:|".repeat(names.len()),
    );
    for line in lines {
        let latencies: Vec<String> = line.latency_ns.iter().map(|ns| format!("{:.1}", *ns as f64 / 1e3)).collect();
        let Line { case, replayers, per_s, sessions, queued, cpus, .. } = line;
        let latencies = latencies.join(" | ");
        let _ = writeln!(text, "| {case} | {replayers} | {per_s} | {sessions} | {queued} | {latencies} | {cpus:.2} |");
    }
    if let (Some(capacity_per_s), Some(last)) = (capacity_per_s, lines.last()) {
        let p99_ns = last.latency_ns[5];
        let met = if p99_ns <= GOAL_P99_NS { "met" } else { "missed" };
        let _ = write!(
            text,
            "\nCapacity against `null:` in an open loop whose rate is too high: {capacity_per_s:.0} sessions a second.\n\nGoal: p99 at most \
             {} µs at {}% of the capacity: {met}.\n",
            GOAL_P99_NS / 1_000,
            OF_CAPACITY * 100.0
        );
    }
    let json = serde_json::json!({ "machine": machine, "seconds": precision.seconds, "percentiles": PERCENTILES,
                                   "capacity_per_s": capacity_per_s, "lines": lines });
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        schemas::files::write_atomically(&precision.output.with_extension(extension), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The progress was the debug form of a line, without units.
    #[test]
    fn progress_is_readable() {
        let line = Line {
            case: "load factor 25".into(),
            replayers: 1,
            per_s: 50.0,
            sessions: 1500,
            queued: 2,
            latency_ns: vec![900, 1_200, 2_000, 3_000, 4_000, 55_000, 1_250_000],
            cpus: 0.126,
        };
        let expect = "load factor 25: 1 replayer, 50 sessions/s, 1,500 sessions (2 queued), p5 900ns, p25 1.2us, \
                      p50 2us, p75 3us, p95 4us, p99 55us, p99.9 1.25ms, 0.13 CPUs";
        assert_eq!(line.in_words(), expect);
    }

    #[test]
    fn percentiles_are_exact() {
        let counts = BTreeMap::from([(5, 90), (7, 9), (100, 1)]);
        assert_eq!([5.0, 90.0, 90.1, 99.0, 99.9].map(|percent| percentile(&counts, percent)), [5, 5, 7, 7, 100]);
        assert_eq!(percentile(&BTreeMap::new(), 50.0), 0);
    }
}
