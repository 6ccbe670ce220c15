//! Logs of a real PostgreSQL, imported and replayed into copies of the database: pgbench at a rate, beside pgreplay, and
//! go-tpc, whose tables must be the same in the end.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use schemas::sla::short_time;
use schemas::words::thousands;
use serde::Serialize;
use serde_json::Value;
use servers::{Kind, Options, Server};

use crate::machine::Machine;
use crate::measure::{self, Used};
use crate::pacing::{latencies, percentile};
use crate::tools::go_tpc::{self, GoTpc, Place};
use crate::tools::on_path;
use crate::tools::pgbench::Pgbench;
use crate::tools::pgreplay::Pgreplay;

/// What is measured.
pub struct Logs {
    /// Transactions a second of pgbench.
    pub per_s: u32,
    /// Clients of pgbench.
    pub clients: u32,
    /// The duration of each recording.
    pub seconds: u32,
    /// How often each log is replayed.
    pub rounds: u32,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

/// The statements of pgbench's own script `tpcb-like`.
const TPCB: &str = "\\set aid random(1, 100000)
\\set tid random(1, 10)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Threads of the replay at the log's own times.
const THREADS: &str = "16";

/// pgreplay is stopped after so many times the length of the log.
const PATIENCE: u32 = 6;

/// Tables of go-tpc's TPC-C.
const TABLES: [&str; 9] =
    ["warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock"];

/// How often each delay of the first operation of a session occurs.
const LATE: &str = "SELECT late_ns AS ns, count(*) FROM operations WHERE late_ns IS NOT NULL GROUP BY ns";
const QUEUED: &str = "SELECT queued_ns AS ns, count(*) FROM operations WHERE queued_ns IS NOT NULL GROUP BY ns";

/// What an import took.
#[derive(Debug, Serialize)]
struct Imported {
    log: &'static str,
    log_bytes: u64,
    statements: u64,
    transactions: u64,
    distinct: u64,
    seconds: f64,
    memory_bytes: u64,
}

/// Percentiles of a delay, in nanoseconds: the median, the 99th, and the longest.
#[derive(Debug, Clone, Copy, Serialize)]
struct Delay {
    p50_ns: i64,
    p99_ns: i64,
    max_ns: i64,
}

#[derive(Debug, Serialize)]
struct Replay {
    tool: String,
    seconds: f64,
    cpu_s: f64,
    /// How late the tool began a transaction whose connection was free.
    late: Option<Delay>,
    /// How long a transaction waited for the one before of its connection.
    queued: Option<Delay>,
    /// pgreplay's own words.
    behind: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    imported: Vec<Imported>,
    replays: Vec<Replay>,
    /// Sentences on what was compared.
    found: Vec<String>,
}

struct Bench<'a> {
    logs: &'a Logs,
    folder: &'a Path,
    encore: PathBuf,
    psql: PathBuf,
    server: Server,
    report: Report,
}

/// Measures, and writes the table to `output` with `.md` and `.json`.
pub fn main(logs: &Logs, peers: &Path, folder: &Path) -> anyhow::Result<()> {
    let encore = std::env::current_exe()?.with_file_name("encore");
    ensure!(encore.is_file(), "{} is missing; start the benches with benches/run, which builds it", encore.display());
    let psql = on_path("psql").context("psql is not installed")?;
    let written = folder.join("log");
    std::fs::create_dir(&written)?;
    // The server runs as another user.
    std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o777))?;
    let place = format!("log_directory={}", written.display());
    // Connections are logged because pgreplay needs them. Statements are logged where a database says so.
    let arguments = ["logging_collector=on", &place, "log_filename=all.log", "log_destination=csvlog"];
    let more = ["log_rotation_size=0", "log_connections=on", "log_disconnections=on", "log_file_mode=0644"];
    let sizes = ["shared_buffers=1GB", "max_connections=200"];
    let arguments: Vec<&str> =
        [&arguments[..], &more, &sizes].concat().into_iter().flat_map(|setting| ["-c", setting]).collect();
    let options = Options { durable: true, folder: Some(folder), arguments: &arguments, ..Options::default() };
    let server = Server::try_start(Kind::Postgres, options)?;
    let mut bench = Bench { logs, folder, encore, psql, server, report: Report::default() };
    bench.pgbench()?;
    bench.go_tpc(peers)?;
    bench.write()?;
    print!("{}", std::fs::read_to_string(logs.output.with_extension("md"))?);
    Ok(())
}

impl Bench<'_> {
    /// pgbench at a rate, replayed at the times of its log by both tools.
    fn pgbench(&mut self) -> anyhow::Result<()> {
        let Logs { per_s, clients, seconds, rounds, .. } = *self.logs;
        let pgbench = Pgbench::find(self.folder)?;
        self.sql("encore", &["CREATE DATABASE shop"])?;
        pgbench.initialize(&self.server.url("shop"))?;
        self.sql("encore", &["CREATE DATABASE before TEMPLATE shop", &logged("shop", true)])?;
        pgbench.paced(&self.server.url("shop"), TPCB, per_s, clients, seconds)?;
        let log = self.take_log("pgbench.csv")?;
        let trace = self.import("pgbench", &log, "shop")?;
        let pgreplay = Pgreplay::find();
        if let Err(error) = &pgreplay {
            eprintln!("pgreplay is left out: {error:#}");
        }
        for round in 1..=rounds {
            self.sql("encore", &["CREATE DATABASE copy TEMPLATE before"])?;
            let began = Instant::now();
            let (used, run) = self.replay(&trace, "copy", &["--threads", THREADS])?;
            let took_s = began.elapsed().as_secs_f64();
            let failed = self.failed(&run)?;
            let replay = Replay {
                tool: format!("{}, T = {THREADS}", crate::encore_version()),
                seconds: took_s,
                cpu_s: used.cpu_s,
                late: Some(Delay::of(&run, LATE)?),
                queued: Some(Delay::of(&run, QUEUED)?),
                behind: None,
            };
            eprintln!("[{round}/{rounds}] {replay:?}, {failed} failed");
            ensure!(failed == 0, "{failed} statements of the log failed in its replay");
            self.report.replays.push(replay);
            self.sql("encore", &["DROP DATABASE copy"])?;
            std::fs::remove_dir_all(run)?;
            let Ok(pgreplay) = &pgreplay else { continue };
            // It replays into the database that the log names.
            self.sql(
                "encore",
                &["DROP DATABASE shop", "CREATE DATABASE shop TEMPLATE before", &logged("shop", false)],
            )?;
            let place = self.place("shop", 1)?;
            let said = pgreplay.replay(&log, place.port, &place.password, PATIENCE * seconds)?;
            eprintln!("[{round}/{rounds}] pgreplay: {said:?}");
            let behind = said.behind.map(|words| if said.is_stopped { words + ", when it was stopped" } else { words });
            let (tool, seconds, cpu_s) = (pgreplay.version(), said.seconds, said.cpu_s);
            self.report.replays.push(Replay { tool, seconds, cpu_s, late: None, queued: None, behind });
        }
        Ok(())
    }

    /// go-tpc with one thread, replayed one transaction after the other.
    fn go_tpc(&mut self, peers: &Path) -> anyhow::Result<()> {
        let go_tpc = match GoTpc::find(peers) {
            Ok(go_tpc) => go_tpc,
            Err(error) => {
                eprintln!("go-tpc is left out: {error:#}");
                return Ok(());
            }
        };
        let place = self.place("gotpc", 1)?;
        self.sql("encore", &["CREATE DATABASE gotpc"])?;
        go_tpc.prepare(&place)?;
        self.sql("encore", &["CREATE DATABASE before_gotpc TEMPLATE gotpc", &logged("gotpc", true)])?;
        let (_, counted) = go_tpc.run(&place, 1, self.logs.seconds)?;
        let log = self.take_log("gotpc.csv")?;
        let trace = self.import("go-tpc", &log, "gotpc")?;
        let mut runs = Vec::new();
        for copy in ["gotpc_1", "gotpc_2"] {
            self.sql("encore", &[&format!("CREATE DATABASE {copy} TEMPLATE before_gotpc")])?;
            let (_, run) = self.replay(&trace, copy, &["--threads", "1"])?;
            let failed = self.failed(&run)?;
            ensure!(failed == 0, "{failed} statements of the log failed in its replay");
            for table in TABLES {
                let sum = |database: &str| {
                    let all = "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text)) FROM";
                    self.sql(database, &[&format!("{all} {table} t")])
                };
                let (wanted, is) = (sum("gotpc")?, sum(copy)?);
                ensure!(wanted == is, "{table} of {copy} has {is}, and go-tpc has left {wanted}");
                ensure!(table != "orders" || wanted != sum("before_gotpc")?, "go-tpc has changed nothing");
            }
            runs.push(run);
        }
        let mut compare = Command::new(&self.encore);
        compare.args(["analyze", "compare", "--results"]).args(&runs);
        let said = measure::run(&mut compare)?.output;
        let said = said
            .lines()
            .find(|line| line.contains("returned the same"))
            .context("no word on what the copies returned")?;
        // Without the names of the runs.
        let same = said.rsplit(": ").next().unwrap_or(said);
        let found = format!(
            "{}, one thread: {} transactions in {} s. Replayed with one thread into two copies, no statement fails, all nine \
             tables are the same as those that go-tpc left, to the last row, and between the copies: {}",
            go_tpc::VERSION,
            thousands(counted.transactions as u64),
            self.logs.seconds,
            same.trim(),
        );
        eprintln!("{found}");
        self.report.found.push(found);
        Ok(())
    }

    /// Takes what the server has logged so far.
    fn take_log(&self, name: &str) -> anyhow::Result<PathBuf> {
        let (written, taken) = (self.folder.join("log").join("all.csv"), self.folder.join(name));
        // The collector writes what it has received within a moment, and has no word for being done.
        let mut bytes = 0;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let now = std::fs::metadata(&written)?.len();
            if now == bytes {
                break;
            }
            bytes = now;
        }
        std::fs::copy(&written, &taken)?;
        // Its next file begins anew.
        std::fs::OpenOptions::new().write(true).open(&written)?.set_len(0)?;
        Ok(taken)
    }

    fn import(&mut self, name: &'static str, log: &Path, database: &str) -> anyhow::Result<PathBuf> {
        let trace = self.folder.join(format!("{name}.trace"));
        let mut command = Command::new(&self.encore);
        command.args(["trace", "import", "postgres-log"]).arg(log).args(["--database", database, "--json", "-o"]);
        let began = Instant::now();
        let used = measure::run(command.arg(&trace))?;
        let seconds = began.elapsed().as_secs_f64();
        let said: Value = serde_json::from_str(&used.output)?;
        let number =
            |name: &str| said["report"][name].as_u64().with_context(|| format!("the import reports no {name}: {said}"));
        let imported = Imported {
            log: name,
            log_bytes: std::fs::metadata(log)?.len(),
            statements: number("statements")?,
            transactions: number("transactions")?,
            distinct: number("distinct")?,
            seconds,
            memory_bytes: used.memory_bytes,
        };
        eprintln!("{imported:?}");
        self.report.imported.push(imported);
        Ok(trace)
    }

    fn replay(&self, trace: &Path, database: &str, more: &[&str]) -> anyhow::Result<(Used, PathBuf)> {
        let run = self.folder.join(format!("run-{database}"));
        let mut command = Command::new(&self.encore);
        command.args(["replay", "run", "--keep-data", "--store", &self.server.url(database), "--trace"]).arg(trace);
        // A run whose client was late is void, and measured all the same.
        let used = measure::run_to(command.arg("-o").arg(&run).args(more), &[0, 1, 3])?;
        Ok((used, run))
    }

    /// Operations of a run that did not succeed.
    fn failed(&self, run: &Path) -> anyhow::Result<u64> {
        let sql = "SELECT 0::BIGINT, count(*) FILTER (outcome <> 'ok') FROM operations";
        Ok(latencies(run, sql)?[0].1)
    }

    fn sql(&self, database: &str, statements: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.psql);
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", &self.server.url(database)]);
        Ok(measure::run(command.args(statements.iter().flat_map(|one| ["-c", one])))?.output)
    }

    /// Where other tools find a database.
    fn place(&self, database: &str, warehouses: u32) -> anyhow::Result<Place> {
        Place::of(&self.server.url(database), "postgres", warehouses)
    }

    fn write(&self) -> anyhow::Result<()> {
        let Logs { per_s, clients, seconds, rounds, output } = self.logs;
        let machine = Machine::current();
        let mut text = format!(
            "# Logs of PostgreSQL, imported and replayed\n\n`benches/run logs --seconds {seconds} --rounds {rounds}`, on \
             {machine}\n\nA PostgreSQL logs every statement as CSV (`log_statement = 'all'`, `log_duration = on`), and the log \
             is replayed into a copy of the database on the same server, which shares the processors with the tool and logs \
             nothing meanwhile. Commits are durable.\n\n\
             | log | size, MB | statements | transactions | distinct statements | import, s | statements/s | memory, MiB |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n"
        );
        for one in &self.report.imported {
            let _ = writeln!(
                text,
                "| {} | {:.1} | {} | {} | {} | {:.2} | {} | {:.0} |",
                one.log,
                one.log_bytes as f64 / 1e6,
                thousands(one.statements),
                thousands(one.transactions),
                one.distinct,
                one.seconds,
                thousands((one.statements as f64 / one.seconds) as u64),
                one.memory_bytes as f64 / 1_048_576.0,
            );
        }
        let _ = write!(
            text,
            "\n## At the times of the log\n\npgbench's script `tpcb-like`, {clients} clients, {per_s} transactions a second, \
             prepared, for {seconds} s. *Late* is how long after its time a tool began a transaction whose connection was free: \
             median, p99 and longest. *Queued* is how long a transaction waited for the one before of its connection. Time and \
             CPU include that Encore reads the trace set and writes and analyzes its log of every statement. pgreplay reports \
             its delay in words, and is stopped after {} s.\n\n\
             | tool | done after, s | CPU, s | late | queued | behind, in its words |\n|---|---:|---:|---|---|---|\n",
            PATIENCE * seconds,
        );
        for one in &self.report.replays {
            let in_words = |delay: &Option<Delay>| {
                let short = |ns: i64| short_time(ns.max(0) as u64);
                delay.map_or("".to_string(), |delay| {
                    format!("{}, {}, {}", short(delay.p50_ns), short(delay.p99_ns), short(delay.max_ns))
                })
            };
            let _ = writeln!(
                text,
                "| {} | {:.1} | {:.1} | {} | {} | {} |",
                one.tool,
                one.seconds,
                one.cpu_s,
                in_words(&one.late),
                in_words(&one.queued),
                one.behind.as_deref().unwrap_or_default(),
            );
        }
        text += "\n## The same tables\n\n";
        for found in &self.report.found {
            let _ = writeln!(text, "- {found}");
        }
        let json = serde_json::json!({ "machine": machine, "seconds": seconds, "per_s": per_s, "clients": clients,
                                       "report": self.report });
        for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
            schemas::files::write_atomically(&output.with_extension(extension), text.as_bytes())?;
        }
        Ok(())
    }
}

/// Whether the statements of a database are logged, from the next connection on.
fn logged(database: &str, is_logged: bool) -> String {
    let (statements, durations) = if is_logged { ("all", "on") } else { ("none", "off") };
    format!(
        "ALTER DATABASE {database} SET log_statement = '{statements}'; ALTER DATABASE {database} SET log_duration = {durations}"
    )
}

impl Delay {
    fn of(run: &Path, sql: &str) -> anyhow::Result<Delay> {
        let counts = latencies(run, sql)?.into_iter().collect();
        let [p50_ns, p99_ns, max_ns] = [50.0, 99.0, 100.0].map(|percent| percentile(&counts, percent));
        Ok(Delay { p50_ns, p99_ns, max_ns })
    }
}
