//! How precisely TPC-C's business processes start at their due times, by one replayer and by several that share the
//! load, on PostgreSQL (benchfoundry-2016, Figures 6 and 7).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use serde::Serialize;
use servers::{Kind, Options, Server};

use crate::machine::Machine;
use crate::measure;
use crate::pacing::{BASE_PER_S, PERCENTILES, latencies, percentile};

/// What is measured.
pub struct Processes {
    /// Multiples of two processes a second, by one replayer.
    pub load_factors: Vec<u32>,
    /// The load factor that several replayers share.
    pub shared_factor: u32,
    /// Numbers of replayers that share it.
    pub replayers: Vec<u32>,
    /// The duration of each run.
    pub seconds: u32,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// Threads of all replayers together.
const THREADS: u32 = 64;

/// Warehouses; each replayer has its own, so there are as many as replayers at most.
const WAREHOUSES: u32 = 5;

/// The whole specification, with little data: what is measured is when a process starts, not the store.
const SPEC: &str = include_str!("../../traces/tpcc.toml");
const LITTLE: [&str; 2] = ["data.items=1000", "data.customers=30"];

/// Exit codes of a run that was measured: passed, failed, or void. A run is void if the replayer is late, which is
/// what the table shows.
const MEASURED: [i32; 3] = [0, 1, 3];

/// How often each difference between due time and start occurs. The begin of a transaction and its first statement
/// both have the due time of the process; the process starts with the earlier one.
const LATENCIES: &str = "SELECT ns, count(*) FROM (SELECT min(start_ns - due_ns) AS ns FROM operations \
                         WHERE due_ns IS NOT NULL AND NOT warmup GROUP BY fragment, session) GROUP BY ns";

#[derive(Debug, Serialize)]
struct Line {
    load_factor: u32,
    replayers: u32,
    processes: u64,
    /// Of [`PERCENTILES`], in nanoseconds.
    latency_ns: Vec<i64>,
}

/// Measures, and writes the table to `output` with `.md` and `.json`.
pub fn main(processes: &Processes, folder: &Path) -> anyhow::Result<()> {
    let encore = std::env::current_exe()?.with_file_name("encore");
    ensure!(encore.is_file(), "{} is missing; start the benches with benches/run, which builds it", encore.display());
    std::fs::write(folder.join("tpcc.toml"), SPEC)?;
    let arguments = ["-c", "max_connections=200", "-c", "shared_buffers=1GB"];
    let options = Options { durable: true, folder: Some(folder), arguments: &arguments, ..Options::default() };
    let server = Server::try_start(Kind::Postgres, options)?;
    let alone = processes.load_factors.iter().map(|factor| (*factor, 1));
    let shared = processes.replayers.iter().map(|replayers| (processes.shared_factor, *replayers));
    let mut lines: Vec<Line> = Vec::new();
    for (number, (load_factor, replayers)) in alone.chain(shared).enumerate() {
        let run = Run { encore: &encore, folder, url: &server.url("encore"), name: format!("run-{number}") };
        lines.push(run.measure(load_factor, replayers, processes.seconds)?);
        write(processes, &lines)?;
    }
    print!("{}", std::fs::read_to_string(processes.output.with_extension("md"))?);
    Ok(())
}

struct Run<'a> {
    encore: &'a Path,
    folder: &'a Path,
    url: &'a str,
    name: String,
}

impl Run<'_> {
    fn measure(&self, load_factor: u32, replayers: u32, seconds: u32) -> anyhow::Result<Line> {
        let per_s = load_factor * BASE_PER_S;
        let mut command = Command::new(self.encore);
        command.current_dir(self.folder).args(["run", "tpcc.toml", "--store", self.url, "--no-closing-read"]);
        command.args(["--rate", &per_s.to_string(), "--duration", &format!("{seconds}s"), "--name", &self.name]);
        command.args(["--threads", &THREADS.to_string(), "--replayers", &replayers.to_string(), "--tries", "20"]);
        // A rate is dealt by the sessions of the fragments, so that a replayer may need more than its share.
        let sessions = 2 * per_s * seconds + 100 * WAREHOUSES;
        let settings = [
            format!("sessions={sessions}"),
            format!("fragments={WAREHOUSES}"),
            format!("data.warehouses={WAREHOUSES}"),
            format!("data.terminals={THREADS}"),
        ];
        let settings = settings.iter().map(String::as_str).chain(LITTLE);
        command.args(settings.flat_map(|setting| ["--set", setting]));
        measure::run_to(&mut command, &MEASURED)?;
        let run = self.folder.join("runs").join(&self.name);
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for (latency_ns, processes) in latencies(&run, LATENCIES)? {
            *counts.entry(latency_ns).or_default() += processes;
        }
        ensure!(!counts.is_empty(), "{} has no process with a due time", run.display());
        std::fs::remove_dir_all(&run)?;
        let latency_ns = PERCENTILES.iter().map(|percent| percentile(&counts, *percent)).collect();
        let line = Line { load_factor, replayers, processes: counts.values().sum(), latency_ns };
        eprintln!("{line:?}");
        Ok(line)
    }
}

fn write(processes: &Processes, lines: &[Line]) -> anyhow::Result<()> {
    let machine = Machine::current();
    let names = PERCENTILES.map(|percent| format!("p{percent}"));
    let mut text = format!(
        "# Scheduling latency of TPC-C processes\n\n`benches/run processes --seconds {}`, on {machine}\n\n\
         From the due time of a business process to its start, in µs, from the log by SQL, as in Figures 6 and 7 of \
         benchfoundry-2016. A load factor of 1 is {BASE_PER_S} processes a second. The processes are TPC-C's five \
         transactions on {WAREHOUSES} warehouses with little data ({}), on a PostgreSQL of its own; T = {THREADS} for all \
         replayers together, which are processes on the same machine.\n\n\
         | load factor | replayers | processes | {} |\n|---:|---:|---:|{}\n",
        processes.seconds,
        LITTLE.join(", "),
        names.join(" | "),
        "---:|".repeat(PERCENTILES.len()),
    );
    for Line { load_factor, replayers, processes, latency_ns } in lines {
        let latencies: Vec<String> = latency_ns.iter().map(|ns| format!("{:.1}", *ns as f64 / 1e3)).collect();
        let _ = writeln!(text, "| {load_factor} | {replayers} | {processes} | {} |", latencies.join(" | "));
    }
    let json = serde_json::json!({ "machine": machine, "seconds": processes.seconds, "percentiles": PERCENTILES,
                                   "lines": lines });
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        schemas::files::write_atomically(&processes.output.with_extension(extension), text.as_bytes())?;
    }
    Ok(())
}
