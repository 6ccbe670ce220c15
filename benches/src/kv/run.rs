//! The runs of a store: for each workload a fresh server, on which the tools take turns.

use std::path::{Path, PathBuf};

use anyhow::Context;
use schemas::run::ReplayReport;
use servers::StartError;

use super::Arguments;
use super::goals::{self, ENCORE};
use super::stores::{Place, StoreName};
use super::workloads::Workload;
use crate::report::{Report, Section};
use crate::sample::{Figures, Sample};
use crate::tools::encore::{Encore, Replay};
use crate::tools::go_ycsb::{Binding, GoYcsb, Run as GoRun};
use crate::tools::pgbench::{self, Draw, Pgbench, Run as PgRun};
use crate::tools::redis_benchmark::{self, RedisBenchmark};

/// Records of each table. Three tables fit into the smallest cache that a server has by default
/// (128 MiB), so that clients are compared and not disks.
const RECORDS: u64 = 20_000;

/// Encore's settings, for the report.
const ENCORE_SETTINGS: &str = "one worker, --shared-actors, every operation logged, values built and read; p99 and \
                               operations/s from the log; a read-modify-write counts as its read and its update";

/// Where go-ycsb's figures come from, for the report.
const GO_YCSB_FIGURES: &str = "a table of its own; as many operations as Encore's run before; p99 and operations/s of \
                               its row TOTAL";

/// Besides pgbench's settings, for the report.
const PGBENCH_TABLE: &str = "a table loaded by Encore, with Encore's statements, except that the server makes the key \
                             of a number; writes one constant value";

/// pgbench by its draws.
const DRAWS: [(&str, Draw); 2] = [("pgbench", Draw::Zipfian), ("pgbench, uniform", Draw::Uniform)];

/// The measurement of a store.
pub struct Bench<'a> {
    arguments: &'a Arguments,
    store: StoreName,
    peers: &'a Path,
    folder: &'a Path,
    section: Section,
    report: &'a mut Report,
}

/// The other tools that are installed and serve a store.
struct Peers {
    go_ycsb: Option<GoYcsb>,
    pgbench: Option<Pgbench>,
    redis_benchmark: Option<RedisBenchmark>,
}

/// A workload on a running store, with all tables loaded.
struct Loaded<'a> {
    workload: Workload,
    place: &'a Place<'a>,
    encore: Encore,
    trace: PathBuf,
    url: String,
    /// go-ycsb, its binding, and how many records its table has.
    go_ycsb: Option<(&'a GoYcsb, Binding, u64)>,
    pgbench: Option<(&'a Pgbench, String)>,
    /// redis-benchmark, and the server's address.
    redis_benchmark: Option<(&'a RedisBenchmark, String)>,
}

impl<'a> Bench<'a> {
    /// The measurement of a store into a section.
    pub fn new(
        arguments: &'a Arguments,
        store: StoreName,
        peers: &'a Path,
        folder: &'a Path,
        section: Section,
        report: &'a mut Report,
    ) -> Bench<'a> {
        Bench { arguments, store, peers, folder, section, report }
    }

    /// Measures whatever the section does not have yet.
    pub fn run(&mut self) -> anyhow::Result<()> {
        let peers = self.find_peers();
        for workload in &self.arguments.workload {
            let tools = self.tools(&peers, *workload);
            if self.is_complete(*workload, &tools) {
                continue;
            }
            // A name of its own: files of SQLite must not be those of another workload.
            let folder = self.folder.join(format!("{}-{}", self.store.flag(), workload.letter()));
            std::fs::create_dir_all(&folder)?;
            crate::readable_by_servers(&folder)?;
            let place = match self.store.start(&folder) {
                Ok(place) => place,
                Err(error @ StartError::Missing(..)) => {
                    self.section.missing(self.store.name(), &error.to_string());
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let mut loaded = self.load(*workload, &place, &peers)?;
            for round in 1..=self.arguments.rounds {
                for threads in &self.arguments.threads {
                    self.take_turns(&mut loaded, round, *threads)?;
                }
            }
            drop(place);
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(())
    }

    /// Writes the report with the results so far.
    pub fn keep(&mut self, failure: Option<String>) -> anyhow::Result<()> {
        self.section.goals = goals::lines(&self.section.samples);
        self.section.failure = failure;
        self.report.put(self.section.clone());
        self.report.write(&self.arguments.output)
    }

    fn find_peers(&mut self) -> Peers {
        self.section.here(ENCORE, &crate::encore_version(), ENCORE_SETTINGS);
        let find = if self.store == StoreName::Sqlite { GoYcsb::with_sqlite } else { GoYcsb::find };
        let settings = format!("{}; {GO_YCSB_FIGURES}", self.store.go_ycsb_settings());
        let go_ycsb = self.section.find("go-ycsb", &settings, find(self.peers), GoYcsb::version);
        // Maven Central has YCSB's core, which measures a database that does nothing, and no binding.
        self.section.missing("YCSB", "version 0.17.0 has no binding on Maven Central, only its core");
        let pgbench = (self.store == StoreName::Postgres).then(|| {
            let settings = format!("{}; {PGBENCH_TABLE}; workloads A and C", pgbench::SETTINGS);
            self.section.find("pgbench", &settings, Pgbench::find(self.folder), Pgbench::version)
        });
        let redis_benchmark = (self.store == StoreName::Redis).then(|| {
            let found = RedisBenchmark::find();
            self.section.find(redis_benchmark::NAME, redis_benchmark::SETTINGS, found, RedisBenchmark::version)
        });
        Peers { go_ycsb, pgbench: pgbench.flatten(), redis_benchmark: redis_benchmark.flatten() }
    }

    /// The tools that take part in a workload.
    fn tools(&self, peers: &Peers, workload: Workload) -> Vec<&'static str> {
        let mut tools = vec![ENCORE];
        if peers.go_ycsb.is_some() && self.has_go_ycsb(workload) {
            tools.push("go-ycsb");
        }
        if peers.pgbench.is_some() && workload.scripts(RECORDS, Draw::Zipfian).is_some() {
            tools.extend(DRAWS.map(|(tool, _)| tool));
        }
        if peers.redis_benchmark.is_some() && workload == Workload::C {
            tools.push(redis_benchmark::NAME);
        }
        tools
    }

    /// go-ycsb's binding for Redis has no scans.
    fn has_go_ycsb(&self, workload: Workload) -> bool {
        (self.store, workload) != (StoreName::Redis, Workload::E)
    }

    fn is_complete(&self, workload: Workload, tools: &[&str]) -> bool {
        let has = |threads: u32, tool| self.has(workload.case(), threads, tool, self.arguments.rounds);
        self.arguments.threads.iter().all(|threads| tools.iter().all(|tool| has(*threads, tool)))
    }

    fn load<'b>(&mut self, workload: Workload, place: &'b Place<'b>, peers: &'b Peers) -> anyhow::Result<Loaded<'b>> {
        let Arguments { seconds, rounds, threads, .. } = self.arguments;
        let sessions = workload.sessions_per_s() * u64::from(*seconds) * u64::from(*rounds) * threads.len() as u64;
        let encore = Encore::new(self.folder)?;
        let settings = [format!("data.records={RECORDS}"), format!("sessions={sessions}")];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let name = format!("{}-{}", self.store.flag(), workload.letter());
        eprintln!("benches: {} on {}: generating and loading", workload.case(), self.store.name());
        let trace = encore.trace(&name, workload.spec(), &settings)?;
        let url = place.url(if self.store == StoreName::Redis { "0" } else { "kv" });
        encore.load(&trace, &url)?;
        let mut loaded =
            Loaded { workload, place, encore, trace, url, go_ycsb: None, pgbench: None, redis_benchmark: None };
        if let Some(go_ycsb) = peers.go_ycsb.as_ref().filter(|_| self.has_go_ycsb(workload)) {
            let binding = place.binding()?;
            go_ycsb.load(&binding, RECORDS)?;
            loaded.go_ycsb = Some((go_ycsb, binding, RECORDS));
        }
        if let (Some(pgbench), Some(_)) = (&peers.pgbench, workload.scripts(RECORDS, Draw::Zipfian)) {
            let url = place.url("pgbench");
            loaded.encore.load(&loaded.trace, &url)?;
            pgbench.check(&url, &crate::tools::pgbench_kv::check(RECORDS))?;
            loaded.pgbench = Some((pgbench, url));
        }
        if let Some(redis_benchmark) = peers.redis_benchmark.as_ref().filter(|_| workload == Workload::C) {
            let address = place.address()?;
            redis_benchmark.load(&address, RECORDS)?;
            loaded.redis_benchmark = Some((redis_benchmark, address));
        }
        Ok(loaded)
    }

    /// Every tool runs once.
    fn take_turns(&mut self, loaded: &mut Loaded<'_>, round: u32, threads: u32) -> anyhow::Result<()> {
        let (case, seconds) = (loaded.workload.case(), self.arguments.seconds);
        let wants_go_ycsb = loaded.go_ycsb.is_some() && !self.has(case, threads, "go-ycsb", round);
        let wants_redis_benchmark =
            loaded.redis_benchmark.is_some() && !self.has(case, threads, redis_benchmark::NAME, round);
        if wants_go_ycsb || wants_redis_benchmark || !self.has(case, threads, ENCORE, round) {
            let (figures, report) = loaded.replay(threads, seconds)?;
            let (version, settings) = settings(self.store, &report);
            self.section.here(self.store.name(), &version, &settings);
            self.take(case, threads, ENCORE, round, figures)?;
            if wants_go_ycsb && let Some(figures) = loaded.go_ycsb(threads, figures.operations)? {
                self.take(case, threads, "go-ycsb", round, figures)?;
            }
            if wants_redis_benchmark && let Some((redis_benchmark, address)) = &loaded.redis_benchmark {
                let run = || redis_benchmark.run(address, RECORDS, threads, figures.operations);
                let figures = loaded.place.beside(run)?;
                self.take(case, threads, redis_benchmark::NAME, round, figures)?;
            }
        }
        for (tool, draw) in DRAWS {
            let Some((pgbench, url)) = &loaded.pgbench else { continue };
            let Some(scripts) = loaded.workload.scripts(RECORDS, draw) else { continue };
            if !self.has(case, threads, tool, round) {
                let run = PgRun { url, scripts: &scripts, threads, seconds };
                let figures = loaded.place.beside(|| pgbench.run(&run))?;
                self.take(case, threads, tool, round, figures)?;
            }
        }
        Ok(())
    }

    /// Whether a tool has been measured in this round.
    fn has(&self, case: &str, threads: u32, tool: &str, round: u32) -> bool {
        self.section.rounds(case, threads, tool) >= round as usize
    }

    fn take(&mut self, case: &str, threads: u32, tool: &str, round: u32, figures: Figures) -> anyhow::Result<()> {
        // Encore runs for the sake of another tool's number of operations even if it has this round.
        if self.has(case, threads, tool, round) {
            return Ok(());
        }
        let rounds = self.arguments.rounds;
        eprintln!("[{round}/{rounds}] {}: {case}, T={threads}, {tool}: {figures}", self.store.name());
        self.section.samples.push(Sample { case: case.into(), threads, tool: tool.into(), figures });
        self.keep(Some("the measurement is under way".into()))
    }
}

impl Loaded<'_> {
    fn replay(&self, threads: u32, seconds: u32) -> anyhow::Result<(Figures, ReplayReport)> {
        let replay = Replay {
            trace: &self.trace,
            store: &self.url,
            threads,
            seconds: Some(seconds),
            continued: true,
            shared_actors: true,
        };
        let mut report = None;
        let figures = self.place.beside(|| {
            let (figures, of_run) = self.encore.replay_with_errors(&replay)?;
            report = Some(of_run);
            Ok(figures)
        })?;
        if figures.errors != Some(0.0) {
            // A replay continues only what has succeeded as a whole.
            self.encore.load(&self.trace, &self.url)?;
        }
        Ok((figures, report.context("a replay has a report")?))
    }

    /// Runs go-ycsb with as many operations as Encore has just performed; None if it takes no part.
    fn go_ycsb(&mut self, threads: u32, operations: f64) -> anyhow::Result<Option<Figures>> {
        let Some((go_ycsb, binding, records)) = &mut self.go_ycsb else { return Ok(None) };
        let run = GoRun {
            binding,
            workload: self.workload.properties(),
            records: *records,
            threads,
            operations: ((operations / self.workload.operations_each()) as u64).max(threads.into()),
        };
        let mut inserted = 0;
        let figures = self.place.beside(|| {
            let (figures, inserts) = go_ycsb.measure(&run)?;
            inserted = inserts;
            Ok(figures)
        })?;
        // Its next run must insert other keys.
        *records += inserted;
        Ok(Some(figures))
    }
}

/// The store's version, how it is set up, and its other settings, as it reports them.
fn settings(store: StoreName, report: &ReplayReport) -> (String, String) {
    let (version, others): (Vec<_>, Vec<_>) = report.store_settings.iter().partition(|(name, _)| *name == "version");
    let others: Vec<String> = others.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let version = version.first().map_or("version unknown".into(), |(_, version)| version.to_string());
    (version, format!("{} ({})", store.settings(), others.join(", ")))
}
