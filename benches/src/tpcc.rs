//! TPC-C through Encore and through go-tpc, on the same servers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use schemas::run::RunFolder;
use schemas::spec::Spec;
use schemas::words::thousands;
use serde::Serialize;
use servers::{Kind, Options, Server, StartError};

use crate::machine::Machine;
use crate::measure::{self, Used, server_cpu_s};
use crate::sample::Spread;
use crate::tools::go_tpc::{self, GoTpc, Place};

/// What is measured.
pub struct Peers {
    /// Stores.
    pub stores: Vec<Store>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Warehouses.
    pub warehouses: u32,
    /// Rounds.
    pub rounds: u32,
    /// The duration of each run.
    pub seconds: u32,
    /// Whether go-tpc's own check of its data is timed too, which takes minutes.
    pub checks: bool,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// A store that both tools can drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Store {
    Postgres,
    Mysql,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Store::Postgres => "PostgreSQL",
            Store::Mysql => "MariaDB",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Store::Postgres => Kind::Postgres,
            Store::Mysql => Kind::Mysql,
        }
    }

    /// Both hold all data in memory, and write each commit to disk.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Store::Postgres => &["-c", "shared_buffers=1GB", "-c", "max_connections=200"],
            Store::Mysql => &["--innodb-buffer-pool-size=1G", "--max-connections=200"],
        }
    }

    fn driver(self) -> &'static str {
        match self {
            Store::Postgres => "postgres",
            Store::Mysql => "mysql",
        }
    }
}

const SPEC: &str = include_str!("../../traces/tpcc.toml");

/// Transactions of the trace set: more than all runs against a store take.
const SESSIONS: u64 = 600_000;

/// How often Encore tries a transaction that the store rolls back because of others.
const TRIES: &str = "20";

/// A run of a tool.
#[derive(Debug, Clone, Copy, Serialize)]
struct Figures {
    tpmc: f64,
    p90_ms: f64,
    /// Processor time of the tool's process, in milliseconds for each transaction that ended well.
    client_ms: f64,
    /// That of the server.
    server_ms: f64,
    failed: f64,
    memory_mib: f64,
}

/// All runs of a tool on a store with so many threads.
#[derive(Debug, Serialize)]
struct Line {
    store: &'static str,
    threads: u32,
    tool: &'static str,
    runs: Vec<Figures>,
}

impl Line {
    fn median(&self, of: fn(&Figures) -> f64) -> f64 {
        Spread::of(self.runs.iter().map(of)).map_or(0.0, |spread| spread.median)
    }
}

const ENCORE: &str = "Encore";
const GO_TPC: &str = "go-tpc";

/// Measures, and writes the table to `output` with `.md` and `.json`.
pub fn main(peers: &Peers, folder_of_peers: &Path, folder: &Path) -> anyhow::Result<()> {
    let replayer = std::env::current_exe()?.with_file_name("replayer");
    ensure!(replayer.is_file(), "{} is missing; start the benches with benches/run", replayer.display());
    let trace = folder.join("tpcc.trace");
    let terminals = peers.threads.iter().max().unwrap_or(&1).div_ceil(peers.warehouses).max(10);
    let settings = [
        format!("sessions={SESSIONS}"),
        format!("data.warehouses={}", peers.warehouses),
        format!("data.terminals={terminals}"),
        // As go-tpc does.
        "data.lines='together'".to_string(),
    ];
    let spec = Spec::parse_with(SPEC, "tpcc.toml", &settings)?;
    tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
    let go_tpc = GoTpc::find(folder_of_peers);
    if let Err(error) = &go_tpc {
        eprintln!("go-tpc is left out: {error:#}");
    }
    let bench = Bench { peers, replayer, trace, folder, go_tpc: go_tpc.ok() };
    let mut report = Report::default();
    for store in &peers.stores {
        let options =
            Options { durable: true, folder: Some(folder), arguments: store.arguments(), ..Options::default() };
        match Server::try_start(store.kind(), options) {
            Ok(server) => bench.measure(*store, &server, &mut report)?,
            Err(error @ StartError::Missing(..)) => eprintln!("{} is left out: {error}", store.name()),
            Err(error) => return Err(error.into()),
        }
    }
    print!("{}", std::fs::read_to_string(peers.output.with_extension("md"))?);
    Ok(())
}

struct Bench<'a> {
    peers: &'a Peers,
    replayer: PathBuf,
    trace: PathBuf,
    folder: &'a Path,
    go_tpc: Option<GoTpc>,
}

/// What was found so far.
#[derive(Default, Serialize)]
struct Report {
    lines: Vec<Line>,
    /// Sentences on loads and checks.
    loads: Vec<String>,
}

impl Bench<'_> {
    /// Loads a database for each tool, and measures both in turns.
    fn measure(&self, store: Store, server: &Server, report: &mut Report) -> anyhow::Result<()> {
        let url = server.url("encore");
        let began = Instant::now();
        let mut load = Command::new(&self.replayer);
        measure::run(load.arg("load").arg("--trace").arg(&self.trace).args(["--store", &url]))?;
        let loaded_s = began.elapsed().as_secs_f64();
        let mut said = format!("{}: Encore loads and checks its twelve conditions in {loaded_s:.0} s", store.name());
        let place = Place::of(&server.url("gotpc"), store.driver(), self.peers.warehouses)?;
        if let Some(go_tpc) = &self.go_tpc {
            let began = Instant::now();
            go_tpc.prepare(&place)?;
            let prepared_s = began.elapsed().as_secs_f64();
            let _ = write!(said, ", go-tpc loads in {prepared_s:.0} s");
            if self.peers.checks {
                let began = Instant::now();
                go_tpc.check(&place)?;
                let _ = write!(said, " and checks in {:.0} s", began.elapsed().as_secs_f64());
            }
        }
        eprintln!("{said}");
        report.loads.push(said);
        for round in 1..=self.peers.rounds {
            for threads in &self.peers.threads {
                self.turn(report, round, (store, *threads, ENCORE), server, || self.encore(&url, *threads))?;
                let Some(go_tpc) = &self.go_tpc else { continue };
                let run = || {
                    let (used, counted) = go_tpc.run(&place, *threads, self.peers.seconds)?;
                    let figures =
                        Figures { tpmc: counted.tpmc, p90_ms: counted.p90_ms, failed: counted.failed, ..NONE };
                    Ok((used, counted.transactions, figures))
                };
                self.turn(report, round, (store, *threads, GO_TPC), server, run)?;
            }
            self.write(report)?;
        }
        Ok(())
    }

    /// A run of a tool, with what the server used meanwhile.
    fn turn(
        &self,
        report: &mut Report,
        round: u32,
        (store, threads, tool): (Store, u32, &'static str),
        server: &Server,
        run: impl FnOnce() -> anyhow::Result<(Used, f64, Figures)>,
    ) -> anyhow::Result<()> {
        let before_s = server_cpu_s(&server.processes());
        let (used, transactions, figures) = run()?;
        let server_s = server_cpu_s(&server.processes()) - before_s;
        let figures = Figures {
            client_ms: used.cpu_s * 1e3 / transactions.max(1.0),
            server_ms: server_s * 1e3 / transactions.max(1.0),
            memory_mib: used.memory_bytes as f64 / 1_048_576.0,
            ..figures
        };
        eprintln!("[{round}/{}] {}, T={threads}, {tool}: {figures:?}", self.peers.rounds, store.name());
        let is_same = |line: &&mut Line| line.store == store.name() && line.threads == threads && line.tool == tool;
        match report.lines.iter_mut().find(is_same) {
            Some(line) => line.runs.push(figures),
            None => report.lines.push(Line { store: store.name(), threads, tool, runs: vec![figures] }),
        }
        Ok(())
    }

    fn encore(&self, url: &str, threads: u32) -> anyhow::Result<(Used, f64, Figures)> {
        let run = self.folder.join("run");
        let mut command = Command::new(&self.replayer);
        command.arg("run").arg("--trace").arg(&self.trace).arg("-o").arg(&run);
        command.args(["--store", url, "--json", "--continue", "--no-closing-read", "--tries", TRIES]);
        command.args(["--threads", &threads.to_string(), "--duration", &format!("{}s", self.peers.seconds)]);
        let used = measure::run(&mut command)?;
        let figures = analyzer::analyze(&RunFolder::new(&run), 1, None)?.figures;
        std::fs::remove_dir_all(&run)?;
        let new_order = figures.by_session.get("new_order").context("the log has no new order")?;
        let all = || figures.by_session.values();
        let failed = all().map(|own| own.failed + own.unknown + own.aborted).sum::<u64>() as f64;
        let transactions = all().map(|own| own.completed()).sum::<u64>() as f64;
        let figures = Figures { tpmc: new_order.per_minute, p90_ms: new_order.p90_ns as f64 / 1e6, failed, ..NONE };
        Ok((used, transactions, figures))
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        let Peers { seconds, rounds, warehouses, output, .. } = self.peers;
        let machine = Machine::current();
        let mut text = format!(
            "# TPC-C beside go-tpc\n\n`benches/run tpcc --seconds {seconds} --rounds {rounds} --warehouses {warehouses}`, on \
             {machine}\n\nMedians of the rounds, in which both tools take turns. Each has a database of its own on the same \
             server, with {warehouses} warehouses, no keying and no think times, the server's default isolation level, and \
             durable commits. {}, every statement logged; {}. CPU is that of the tool's whole process and of the server's \
             processes, in milliseconds for each transaction that ended well.\n\n\
             | store | T | tool | tpmC | lowest to highest | p90 of new orders, ms | client CPU, ms | server CPU, ms | memory, \
             MiB | failed |\n|---|---:|---|---:|---|---:|---:|---:|---:|---:|\n",
            crate::encore_version(),
            go_tpc::VERSION,
        );
        for line in &report.lines {
            let tpmc = Spread::of(line.runs.iter().map(|run| run.tpmc)).context("a line without a run")?;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} to {} | {:.1} | {:.2} | {:.2} | {:.0} | {:.0} |",
                line.store,
                line.threads,
                line.tool,
                thousands(tpmc.median as u64),
                thousands(tpmc.lowest as u64),
                thousands(tpmc.highest as u64),
                line.median(|run| run.p90_ms),
                line.median(|run| run.client_ms),
                line.median(|run| run.server_ms),
                line.median(|run| run.memory_mib),
                line.median(|run| run.failed),
            );
        }
        text += "\n- A new order of ten lines is 9 statements for Encore, which takes the stock of all lines by one \
                 (`data.lines = \"together\"`), and 18 for go-tpc; a delivery is 16 and 25. Both change the same rows. Each \
                 statement is prepared and one round trip.\n";
        for said in &report.loads {
            let _ = writeln!(text, "- {said}.");
        }
        for goal in goals(&report.lines) {
            let _ = writeln!(text, "- Goal: {goal}");
        }
        let json =
            serde_json::json!({ "machine": machine, "seconds": seconds, "warehouses": warehouses, "report": report });
        for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
            schemas::files::write_atomically(&output.with_extension(extension), text.as_bytes())?;
        }
        Ok(())
    }
}

const NONE: Figures = Figures { tpmc: 0.0, p90_ms: 0.0, client_ms: 0.0, server_ms: 0.0, failed: 0.0, memory_mib: 0.0 };

/// In how many lines Encore is no worse than go-tpc.
fn goals(lines: &[Line]) -> Vec<String> {
    let pairs: Vec<(&Line, &Line)> = lines
        .iter()
        .filter(|line| line.tool == ENCORE)
        .filter_map(|own| {
            let is_peer = |line: &&Line| line.tool == GO_TPC && (line.store, line.threads) == (own.store, own.threads);
            Some((own, lines.iter().find(is_peer)?))
        })
        .collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let count = |is_met: fn(&Line, &Line) -> bool| pairs.iter().filter(|(own, peer)| is_met(own, peer)).count();
    let faster = count(|own, peer| own.median(|run| run.tpmc) >= peer.median(|run| run.tpmc));
    let leaner = count(|own, peer| own.median(|run| run.client_ms) <= peer.median(|run| run.client_ms));
    vec![
        format!("tpmC no lower than go-tpc's: {faster} of {}.", pairs.len()),
        format!("Client CPU of a transaction no higher than go-tpc's: {leaner} of {}.", pairs.len()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_compare_lines_of_the_same_store_and_threads() {
        let line = |tool, threads, tpmc, client_ms| {
            let runs = vec![Figures { tpmc, client_ms, ..NONE }];
            Line { store: "PostgreSQL", threads, tool, runs }
        };
        let lines = [
            line(ENCORE, 1, 9.0, 2.0),
            line(GO_TPC, 1, 8.0, 1.0),
            line(ENCORE, 4, 7.0, 1.0),
            line(GO_TPC, 4, 8.0, 1.0),
        ];
        let said = goals(&lines);
        assert!(said[0].ends_with("1 of 2.") && said[1].ends_with("1 of 2."), "{said:?}");
        assert_eq!(goals(&lines[..1]), [""; 0]);
    }
}
