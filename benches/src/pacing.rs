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
use servers::{Kind, Options, Server, StartError};

use crate::machine::Machine;
use crate::measure;
use crate::tools::pgbench::Pgbench;

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
pub const BASE_PER_S: u32 = 2;

/// The load factor of the paper's experiment with several instances.
const SHARED_FACTOR: u32 = 50;

/// The share of the replayer's capacity at which its precision has a goal, and the goal.
const OF_CAPACITY: f64 = 0.8;
const GOAL_P99_NS: i64 = 100_000;

/// The due starts a second and core against `null:` that are the goal.
const GOAL_STARTS: f64 = 1_000_000.0;

/// Sessions of a trace set that measures a throughput: against `null:`, and against a store that waits.
const NULL_SESSIONS: u64 = 8_000_000;
const STORE_SESSIONS: u64 = 600_000;

/// Threads and the mean wait of each in the run that only waits, in µs.
const WAITING_THREADS: u32 = 1_000;
const WAIT_US: u32 = 500;

/// What pgbench runs: as long as [`STORE`] takes.
const PGBENCH_SCRIPT: &str = "SELECT pg_sleep(0.001);";

/// The percentiles of the paper, and one more.
pub const PERCENTILES: [f64; 7] = [5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9];

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
    for line in bench.pgbench(&precision.load_factors)? {
        lines.push(line);
        write(precision, &lines, None)?;
    }
    let mut rates = Vec::new();
    let store = bench.throughput("threads that wait for the store", STORE, STORE_SESSIONS, &[], THREADS)?;
    lines.push(bench.at_capacity(STORE, store.per_s)?);
    rates.push(store);
    let waits = [format!("inter_arrival_time.mean_us={WAIT_US}")];
    rates.push(bench.throughput("waits of threads", "null:", STORE_SESSIONS * 5, &waits, WAITING_THREADS)?);
    let closed = bench.throughput("sessions without due times", "null:", NULL_SESSIONS, &[], THREADS)?;
    let capacity = bench.due_starts(closed.per_s.floor())?;
    // The last line: the goal is about it.
    lines.push(bench.at_capacity("null:", capacity.per_s)?);
    rates.extend([closed, capacity]);
    write(precision, &lines, Some(&rates))?;
    print!("{}", std::fs::read_to_string(precision.output.with_extension("md"))?);
    Ok(())
}

struct Bench<'a> {
    replayer: PathBuf,
    folder: &'a Path,
    seconds: u32,
}

/// What one replayer with one worker does at most.
#[derive(Debug, Clone, Serialize)]
struct Rate {
    case: String,
    /// Sessions a second.
    per_s: f64,
    /// Processor time of the worker, without that of waiting for due times.
    worker_cpu_s: f64,
    /// Sessions a second of that time: a second and core.
    per_core_s: f64,
    /// Processor time of the whole program, which also reads the trace and writes the log.
    program_cpu_s: f64,
}

impl Bench<'_> {
    /// The due starts a second that one replayer has at most against `null:`, at a rate that is too
    /// high for it.
    fn due_starts(&self, rate_per_s: f64) -> anyhow::Result<Rate> {
        let trace = self.trace("capacity", NULL_SESSIONS, &[])?;
        let rate = self.replay("due starts", &trace, "null:", Some(rate_per_s), THREADS)?;
        std::fs::remove_dir_all(trace)?;
        Ok(rate)
    }

    /// Sessions a second of a replayer without due times.
    fn throughput(&self, case: &str, store: &str, sessions: u64, set: &[String], threads: u32) -> anyhow::Result<Rate> {
        let trace = self.trace("capacity", sessions, set)?;
        let rate = self.replay(&format!("{case}, {store}, T = {threads}"), &trace, store, None, threads)?;
        std::fs::remove_dir_all(trace)?;
        Ok(rate)
    }

    /// Replays a whole trace set as fast as it goes.
    fn replay(
        &self,
        case: &str,
        trace: &Path,
        store: &str,
        rate_per_s: Option<f64>,
        threads: u32,
    ) -> anyhow::Result<Rate> {
        let run = self.folder.join("capacity");
        let mut command = self.command(trace, store, &run, threads);
        command.arg("--shared-actors");
        command.args(rate_per_s.iter().flat_map(|rate| ["--rate".to_string(), rate.to_string()]));
        let used = measure::run(&mut command)?;
        let report = read(&used.output)?;
        std::fs::remove_dir_all(run)?;
        let (sessions, seconds) = (report.sessions as f64, report.elapsed_ns as f64 / 1e9);
        let worker_cpu_s = report.worker_cpu_share * seconds;
        let (per_s, per_core_s) = (sessions / seconds, sessions / worker_cpu_s.max(1e-9));
        let rate = Rate { case: case.into(), per_s, worker_cpu_s, per_core_s, program_cpu_s: used.cpu_s };
        eprintln!("{case}: {per_s:.0}/s, {per_core_s:.0} a second and core of the worker");
        Ok(rate)
    }

    /// The scheduling latency of one replayer near its capacity.
    fn at_capacity(&self, store: &str, capacity_per_s: f64) -> anyhow::Result<Line> {
        let bench = Bench { seconds: self.seconds.min(OF_CAPACITY_SECONDS), replayer: self.replayer.clone(), ..*self };
        let per_s = (capacity_per_s * OF_CAPACITY).floor();
        bench.line(format!("{}% of the capacity, {store}", OF_CAPACITY * 100.0), store, 1, per_s)
    }

    /// The schedule lag that pgbench logs of itself at the same loads. None if it or the server is not
    /// installed.
    fn pgbench(&self, load_factors: &[u32]) -> anyhow::Result<Vec<Line>> {
        let Ok(pgbench) = Pgbench::find(self.folder) else {
            eprintln!("pgbench is not installed and left out");
            return Ok(Vec::new());
        };
        let arguments = ["-c", "max_connections=200"];
        let options = Options { folder: Some(self.folder), arguments: &arguments, ..Options::default() };
        let server = match Server::try_start(Kind::Postgres, options) {
            Ok(server) => server,
            Err(StartError::Missing(..)) => {
                eprintln!("PostgreSQL is not installed, and pgbench is left out");
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        let url = server.url("postgres");
        let line = |factor: &u32| -> anyhow::Result<Line> {
            let per_s = factor * BASE_PER_S;
            let paced = pgbench.paced(&url, PGBENCH_SCRIPT, per_s, THREADS, self.seconds)?;
            let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
            paced.lags_ns.iter().for_each(|ns| *counts.entry(*ns).or_default() += 1);
            let line = Line {
                case: format!("pgbench --rate, load factor {factor}"),
                replayers: 1,
                per_s: f64::from(per_s),
                sessions: paced.lags_ns.len() as u64,
                queued: 0,
                latency_ns: PERCENTILES.iter().map(|percent| percentile(&counts, *percent)).collect(),
                cpus: paced.cpu_s / f64::from(self.seconds),
            };
            eprintln!("{}", line.in_words());
            Ok(line)
        };
        load_factors.iter().map(line).collect()
    }

    /// The scheduling latency of replayers that share a load.
    fn line(&self, case: String, store: &str, replayers: u32, per_s: f64) -> anyhow::Result<Line> {
        let own_per_s = per_s / f64::from(replayers);
        let sessions = (own_per_s * f64::from(self.seconds)).ceil() as u64;
        let trace = self.trace("pacing", sessions + sessions / 10 + 1_000, &[])?;
        let run = |number: u32| self.folder.join(format!("pacing-{number}"));
        let replays = (0..replayers).map(|number| {
            let mut command = self.command(&trace, store, &run(number), THREADS);
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
            for (latency_ns, sessions) in latencies(&run(number as u32), LATENCIES)? {
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

    fn trace(&self, name: &str, sessions: u64, set: &[String]) -> anyhow::Result<PathBuf> {
        let trace = self.folder.join(format!("{name}.trace"));
        let set = [&[format!("sessions={sessions}")][..], set].concat();
        let spec = Spec::parse_with(SPEC, "quickstart.toml", &set)?;
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
        Ok(trace)
    }

    fn command(&self, trace: &Path, store: &str, run: &Path, threads: u32) -> Command {
        let mut command = Command::new(&self.replayer);
        command.arg("run").arg("--trace").arg(trace).arg("-o").arg(run).args(["--store", store, "--json"]);
        command.args(["--threads", &threads.to_string()]);
        command
    }
}

fn read(output: &str) -> anyhow::Result<ReplayReport> {
    serde_json::from_str(output).context("the replayer's report")
}

/// How often each scheduling latency occurs, from the log by SQL.
pub fn latencies(run: &Path, sql: &str) -> anyhow::Result<Vec<(i64, u64)>> {
    let run = RunFolder::new(run);
    let verdict = analyzer::analyze(&run, 1, None)?;
    let answer = Database::open(&run, &[verdict], None)?.query(sql)?;
    let number = |value: &Value| match value {
        Value::BigInt(number) => Ok(*number),
        other => anyhow::bail!("{other:?} is not a number"),
    };
    answer.rows.iter().map(|row| Ok((number(&row[0])?, number(&row[1])? as u64))).collect()
}

/// The latency that this share of the sessions did not exceed.
pub fn percentile(counts: &BTreeMap<i64, u64>, percent: f64) -> i64 {
    let all: u64 = counts.values().sum();
    let wanted = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
    let mut seen = 0;
    let found = counts.iter().find(|(_, sessions)| {
        seen += **sessions;
        seen >= wanted
    });
    found.map_or(0, |(latency_ns, _)| *latency_ns)
}

fn write(precision: &Precision, lines: &[Line], rates: Option<&[Rate]>) -> anyhow::Result<()> {
    let machine = Machine::current();
    let names = PERCENTILES.map(|percent| format!("p{percent}"));
    let mut text = format!(
        "# Scheduling latency\n\n`benches/run pacing --seconds {}`, on {machine}\n\n\
         From the due time of a session to its start, in µs, from the log by SQL. A load factor of 1 is {BASE_PER_S} \
         sessions a second, as in benchfoundry-2016 (Figures 6 and 7). The store is `{STORE}`, T = {THREADS} for each \
         replayer. Several replayers are processes on this machine that share the load. CPUs includes the time that a \
         replayer waits for due times with a busy processor. pgbench logs its schedule lag itself, with `-j 1 -c {THREADS}` \
         and `{PGBENCH_SCRIPT}` on a PostgreSQL of its own; its arrivals are Poisson, and its lag includes the time that a \
         transaction queues for a client.\n\n\
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
    if let (Some(rates), Some(last)) = (rates, lines.last()) {
        text += &of_rates(rates, last);
    }
    let json = serde_json::json!({ "machine": machine, "seconds": precision.seconds, "percentiles": PERCENTILES,
                                   "rates": rates, "lines": lines });
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        schemas::files::write_atomically(&precision.output.with_extension(extension), text.as_bytes())?;
    }
    Ok(())
}

/// The table of what one worker does at most, and the goals; the last rate is the due starts.
fn of_rates(rates: &[Rate], last: &Line) -> String {
    let mut text = "\nOne replayer with one worker, as fast as it goes. CPU of the worker is without the time that it waits for due \
                    times with a busy processor; CPU of the program includes reading the trace and writing the log.\n\n\
                    | what | a second | CPU s of the worker | a second and core | CPU s of the program |\n\
                    |---|---:|---:|---:|---:|\n"
        .to_string();
    for Rate { case, per_s, worker_cpu_s, per_core_s, program_cpu_s } in rates {
        let _ = writeln!(
            text,
            "| {case} | {} | {worker_cpu_s:.2} | {} | {program_cpu_s:.2} |",
            thousands(*per_s as u64),
            thousands(*per_core_s as u64)
        );
    }
    let met = |is_met: bool| if is_met { "met" } else { "missed" };
    let starts = rates.last().map_or(0.0, |rate| rate.per_core_s);
    let _ = write!(
        text,
        "\nGoal: at least {} due starts a second and core against `null:`: {}.\n\n\
         Goal: p99 at most {} µs at {}% of the capacity against `null:`: {}.\n",
        thousands(GOAL_STARTS as u64),
        met(starts >= GOAL_STARTS),
        GOAL_P99_NS / 1_000,
        OF_CAPACITY * 100.0,
        met(last.latency_ns[5] <= GOAL_P99_NS)
    );
    text
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
    fn goals_are_about_due_starts_and_the_last_line() {
        let rate = |per_core_s| Rate {
            case: "due starts".into(),
            per_s: 2_000_000.0,
            worker_cpu_s: 1.5,
            per_core_s,
            program_cpu_s: 3.0,
        };
        let line = |p99_ns| Line {
            case: String::new(),
            replayers: 1,
            per_s: 1.0,
            sessions: 1,
            queued: 0,
            latency_ns: vec![0, 0, 0, 0, 0, p99_ns, 0],
            cpus: 1.0,
        };
        let text = of_rates(&[rate(5e6), rate(999_999.0)], &line(100_000));
        assert!(text.contains("| due starts | 2,000,000 | 1.50 | 999,999 | 3.00 |"), "{text}");
        assert!(text.contains("1,000,000 due starts a second and core against `null:`: missed."), "{text}");
        assert!(text.contains("against `null:`: met.\n") && text.contains("p99 at most 100 µs at 80%"), "{text}");
    }

    #[test]
    fn percentiles_are_exact() {
        let counts = BTreeMap::from([(5, 90), (7, 9), (100, 1)]);
        assert_eq!([5.0, 90.0, 90.1, 99.0, 99.9].map(|percent| percentile(&counts, percent)), [5, 5, 7, 7, 100]);
        assert_eq!(percentile(&BTreeMap::new(), 50.0), 0);
    }
}
