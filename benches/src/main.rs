//! Measures Encore beside the tools in common use, and beside minimal clients, in several
//! interleaved rounds. `benches/run` starts it.

mod cluster;
mod codecs;
mod consistency;
mod deck;
mod fleet;
mod isolation;
mod kv;
mod large;
mod logs;
mod machine;
mod measure;
mod memcached;
mod null;
mod pacing;
mod postgres;
mod processes;
mod report;
mod sample;
mod simulated;
mod table;
mod tools;
mod tpcc;
mod truth;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use tempfile::TempDir;

use machine::Machine;
use report::{Report, Section};
use sample::Figures;
use tools::driver::{Driver, Task};

const EXAMPLES: &str = "Examples:
  benches/run                                    all groups (about twenty minutes)
  benches/run --only null --rounds 1             one group, one round
  benches/run --seconds 10 -o /tmp/figures       longer runs, other files
  benches/run kv --only redis                    key-value workloads on one store
  benches/run kv --only redis --resume           measure what an interrupted command left out
  benches/run codecs                             compare encodings and compressions
  benches/run large --log 1000000000             large trace sets and logs
  benches/run truth --threads 16 --theta 0.27    compare measured with true throughput
  benches/run consistency                        measure what the consistency metrics cost
  benches/run fleet                              measure the coordinator's cost per fleet size
  benches/run pacing                             measure how precisely due times are kept
  benches/run processes                          the same for TPC-C's business processes, on PostgreSQL
  benches/run isolation                          measure the check of isolation
  benches/run tpcc                               TPC-C beside go-tpc
  benches/run logs                               logs of PostgreSQL, beside pgreplay
  benches/run deck                               measure viewers of a run, and first paint

A command replaces its own sections of the report, and keeps the others.
The report names peers that are not installed, and skips them. go builds go-ycsb, mvn
downloads YCSB; install pgbench and memtier_benchmark with the system's packages. The
bench starts servers on loopback, and stops them at the end. Run nothing else at the same
time.";

/// Measures Encore beside other tools and writes FILE.md and FILE.json
#[derive(Parser)]
#[command(name = "benches/run", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Measure only this group; repeat the flag for more groups [default: all groups]
    #[arg(long, value_enum)]
    only: Vec<Group>,
    /// Number of rounds; each round measures everything once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Duration of each run against a server, in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Number of operations of each run against a back end that does nothing
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
    operations: u64,
    /// Path of the report, without .md and .json
    #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/results")]
    output: PathBuf,
    /// Folder for peers that are built or downloaded
    #[arg(long, value_name = "DIR", default_value = "benches-peers", global = true)]
    peers: PathBuf,
    /// Folder for data and logs, on the disk to be measured [default: the folder for temporary files]
    #[arg(long, value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Compare key-value workloads (YCSB A, C, E, F) with go-ycsb and pgbench, store by store
    Kv(kv::Arguments),
    /// Measure sizes and speeds of encodings and compressions, for trace and log
    Codecs,
    /// Measure time, memory and bytes of large trace sets and logs
    Large {
        /// Largest number of operations of a trace set
        #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
        trace: u64,
        /// Largest number of operations of a log; each needs some 40 bytes of disk space
        #[arg(long, value_name = "N", default_value_t = 100_000_000)]
        log: u64,
        /// Path of report and charts, without .md, .json and .svg
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/large")]
        output: PathBuf,
    },
    /// Compare measured with true throughput, on stores whose throughput follows from a formula
    Truth {
        /// Number of threads; repeat the flag for more values
        #[arg(long, value_name = "T", default_values_t = [1, 16, 64, 256, 1024])]
        threads: Vec<u32>,
        /// Skew of the access distribution (access.theta, 0 to 1); repeat the flag for more values
        #[arg(long, value_name = "THETA", default_values_t = [0.0, 0.27, 0.6, 0.99])]
        theta: Vec<f64>,
        /// Duration of an experiment in seconds; repeat the flag for more values
        #[arg(long, value_name = "S", default_values_t = [3])]
        seconds: Vec<u32>,
        /// Other load on the replayer's processor; repeat the flag for more values
        #[arg(long, value_enum, default_values_t = [truth::Host::Quiet, truth::Host::Starved])]
        host: Vec<truth::Host>,
        /// Keep the experiments that the report of an interrupted command has
        #[arg(long)]
        resume: bool,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/truth")]
        output: PathBuf,
    },
    /// Measure what the consistency metrics cost
    Consistency {
        /// Number of operations of each measurement of speed
        #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        operations: u64,
        /// Number of operations of the measurements of memory
        #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        long: u64,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/consistency")]
        output: PathBuf,
    },
    /// Measure what a fleet costs its coordinator
    Fleet {
        /// Number of simulated replayers; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [10, 100, 1000])]
        simulated: Vec<u32>,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/fleet")]
        output: PathBuf,
    },
    /// Measure how precisely sessions start at their due times
    Pacing {
        /// Load factor: two sessions a second times this; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [1, 5, 25, 125, 625])]
        load_factor: Vec<u32>,
        /// Number of replayers that share one load; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [1, 2, 3, 4, 5])]
        replayers: Vec<u32>,
        /// Duration of each run in seconds
        #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/pacing")]
        output: PathBuf,
    },
    /// Measure how precisely TPC-C's business processes start at their due times
    Processes {
        /// Load factor: two processes a second times this; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [1, 5, 25, 125])]
        load_factor: Vec<u32>,
        /// Load factor that several replayers share
        #[arg(long, value_name = "N", default_value_t = 50)]
        shared_factor: u32,
        /// Number of replayers that share one load, 1 to 5; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [1, 2, 3, 4, 5], value_parser = clap::value_parser!(u32).range(1..=5))]
        replayers: Vec<u32>,
        /// Duration of each run in seconds
        #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/processes")]
        output: PathBuf,
    },
    /// Compare TPC-C with go-tpc on PostgreSQL and MariaDB
    Tpcc {
        /// Store; repeat the flag for more values
        #[arg(long, value_enum, default_values_t = [tpcc::Store::Postgres, tpcc::Store::Mysql])]
        store: Vec<tpcc::Store>,
        /// Number of threads; repeat the flag for more values
        #[arg(long, value_name = "T", default_values_t = [1, 16, 64])]
        threads: Vec<u32>,
        /// Number of warehouses
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
        warehouses: u32,
        /// Number of rounds
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Duration of each run in seconds
        #[arg(long, value_name = "S", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Time go-tpc's own check of its data too, which takes minutes
        #[arg(long)]
        check: bool,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/tpcc")]
        output: PathBuf,
    },
    /// Import logs of PostgreSQL, and replay them beside pgreplay
    Logs {
        /// Transactions a second of pgbench
        #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        rate: u32,
        /// Number of clients of pgbench
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
        clients: u32,
        /// Number of rounds
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Duration of each recording in seconds
        #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/logs")]
        output: PathBuf,
    },
    /// Measure generation and analysis fragment by fragment, by one worker and by several
    Cluster {
        /// Number of operations of a run; repeat the flag for more values, ascending
        #[arg(long, value_name = "N", default_values_t = [1_000_000, 10_000_000, 100_000_000])]
        operations: Vec<u64>,
        /// Number of worker processes; repeat the flag for more values
        #[arg(long, value_name = "N", default_values_t = [1, 2, 4])]
        workers: Vec<u32>,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/cluster")]
        output: PathBuf,
    },
    /// Measure what viewers cost a run, and when a browser paints pages of the deck
    Deck {
        /// Number of rounds; each round measures everything once
        #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Number of sessions of each run whose throughput is measured; its analysis is left out
        #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        operations: u64,
        /// Number of small runs in the folder
        #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        runs: u32,
        /// Number of sessions of the large run
        #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        large: u64,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/deck")]
        output: PathBuf,
    },
    /// Measure speed and memory of the check of isolation
    Isolation {
        /// Transactions of each history
        #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
        transactions: u64,
        /// Number of rounds
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Path of the report, without .md and .json
        #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/isolation")]
        output: PathBuf,
    },
    /// The check of one history, in a separate process
    #[command(hide = true)]
    Isolated {
        #[arg(value_enum)]
        case: isolation::Case,
        transactions: u64,
    },
    /// Simulated replayers, in a separate process
    #[command(hide = true)]
    Simulated { replayers: u32 },
    /// The bare loop over the memcache crate, in a separate process
    #[command(hide = true)]
    Bare { address: String, threads: u32, seconds: u32 },
    /// A bare loop over a driver of PostgreSQL, in a separate process
    #[command(hide = true)]
    Driver {
        #[arg(value_enum)]
        driver: Driver,
        #[command(flatten)]
        task: Task,
    },
    /// The replayer without its log against a store that does nothing, in a separate process
    #[command(hide = true)]
    Unlogged { trace: PathBuf, threads: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Clients against a back end that does nothing
    Null,
    /// The same statements through Encore and through pgbench
    Postgres,
    /// Hits in memcached
    Memcached,
}

/// Settings for all groups.
pub struct Settings {
    /// How often everything is measured.
    pub rounds: u32,
    /// The duration of a run against a server, in seconds.
    pub seconds: u32,
    /// The operations of a run against a back end that does nothing.
    pub operations: u64,
    /// Folder of the peers.
    pub peers: PathBuf,
}

impl Settings {
    /// Reports progress: the figures just measured.
    pub fn progress(&self, round: u32, group: &str, case: &str, threads: u32, tool: &str, figures: &Figures) {
        eprintln!("[{round}/{}] {group}: {case}, T={threads}, {tool}: {figures}", self.rounds);
    }
}

/// The name and version of the replayer in the folder of this program.
pub fn encore_version() -> String {
    format!("Encore {}", env!("CARGO_PKG_VERSION"))
}

fn main() -> ExitCode {
    match execute(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn execute(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Command::Driver { driver, task }) => return tools::driver::main(driver, &task),
        Some(Command::Bare { address, threads, seconds }) => return tools::bare::main(&address, threads, seconds),
        Some(Command::Unlogged { trace, threads }) => return tools::unlogged::main(&trace, threads),
        Some(Command::Large { trace, log, output }) => {
            let folder = work_folder(cli.folder.as_deref())?;
            let path = folder.path().to_path_buf();
            return large::main(&large::Large { trace_operations: trace, log_operations: log, folder: path, output });
        }
        Some(Command::Fleet { simulated, output }) => {
            return fleet::main(&simulated, work_folder(cli.folder.as_deref())?.path(), &output);
        }
        Some(Command::Pacing { load_factor, replayers, seconds, output }) => {
            let precision = pacing::Precision { load_factors: load_factor, replayers, seconds, output };
            return pacing::main(&precision, work_folder(cli.folder.as_deref())?.path());
        }
        Some(Command::Truth { threads, theta, seconds, host, resume, output }) => {
            let truth = truth::Truth { threads, thetas: theta, seconds, hosts: host, resume, output };
            return truth::main(&truth, work_folder(cli.folder.as_deref())?.path());
        }
        Some(Command::Kv(kv)) => {
            let folder = work_folder(cli.folder.as_deref())?;
            readable_by_servers(folder.path())?;
            return kv::main(&kv, &std::path::absolute(&cli.peers)?, folder.path());
        }
        Some(Command::Processes { load_factor, shared_factor, replayers, seconds, output }) => {
            let folder = work_folder(cli.folder.as_deref())?;
            readable_by_servers(folder.path())?;
            let wanted = processes::Processes { load_factors: load_factor, shared_factor, replayers, seconds, output };
            return processes::main(&wanted, folder.path());
        }
        Some(Command::Tpcc { store, threads, warehouses, rounds, seconds, check, output }) => {
            let folder = work_folder(cli.folder.as_deref())?;
            readable_by_servers(folder.path())?;
            let peers = tpcc::Peers { stores: store, threads, warehouses, rounds, seconds, checks: check, output };
            return tpcc::main(&peers, &std::path::absolute(&cli.peers)?, folder.path());
        }
        Some(Command::Logs { rate, clients, rounds, seconds, output }) => {
            let folder = work_folder(cli.folder.as_deref())?;
            readable_by_servers(folder.path())?;
            let logs = logs::Logs { per_s: rate, clients, seconds, rounds, output };
            return logs::main(&logs, &std::path::absolute(&cli.peers)?, folder.path());
        }
        Some(Command::Cluster { operations, workers, output }) => {
            let wanted = cluster::Cluster { operations, workers, output };
            let cache = cli.peers.parent().unwrap_or(Path::new("."));
            return cluster::main(&wanted, cache, work_folder(cli.folder.as_deref())?.path());
        }
        Some(Command::Deck { rounds, operations, runs, large, output }) => {
            let measured = deck::Measured { rounds, operations, runs, large, output };
            return deck::main(&measured, work_folder(cli.folder.as_deref())?.path());
        }
        Some(Command::Isolation { transactions, rounds, output }) => {
            return isolation::main(transactions, rounds, &output);
        }
        Some(Command::Isolated { case, transactions }) => return isolation::check(case, transactions),
        Some(Command::Simulated { replayers }) => return simulated::main(replayers),
        Some(Command::Consistency { operations, long, output }) => {
            return consistency::main(operations as usize, long as usize, &output);
        }
        Some(Command::Codecs) => return codecs::main(work_folder(cli.folder.as_deref())?.path()),
        None => {}
    }
    let peers = std::path::absolute(&cli.peers)?;
    let settings = Settings { rounds: cli.rounds, seconds: cli.seconds, operations: cli.operations, peers };
    let folder = work_folder(cli.folder.as_deref())?;
    readable_by_servers(folder.path())?;
    let is_wanted = |group| cli.only.is_empty() || cli.only.contains(&group);
    let mut report = Report::read(&cli.output)?;
    let (machine, command) = (Machine::current(), command_line(&cli));
    type Run = fn(&Settings, &Path, &mut Section) -> anyhow::Result<()>;
    let groups: [(Group, &str, Run); 3] = [
        (Group::Null, null::GROUP, null::run),
        (Group::Postgres, postgres::GROUP, postgres::run),
        (Group::Memcached, memcached::GROUP, memcached::run),
    ];
    for (_, name, run) in groups.iter().filter(|(group, ..)| is_wanted(*group)) {
        let mut section = Section::new(name, &machine, &command);
        let done = run(&settings, folder.path(), &mut section);
        // Results from before a failure are not lost.
        section.failure = done.as_ref().err().map(|error| format!("{error:#}"));
        report.put(section);
        report.write(&cli.output)?;
        done?;
    }
    print!("{}", table::markdown(&report));
    Ok(())
}

/// A folder for data and logs, removed at the end.
fn work_folder(parent: Option<&Path>) -> anyhow::Result<TempDir> {
    let folder = parent.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    folder.context("cannot create a folder for data and logs; choose another with --folder")
}

/// A server that root starts runs as another user, who must be able to enter the folder.
fn readable_by_servers(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?)
}

/// The command that measures the same again.
fn command_line(cli: &Cli) -> String {
    let only: Vec<_> = cli.only.iter().filter_map(ValueEnum::to_possible_value).collect();
    let only: String = only.iter().map(|group| format!(" --only {}", group.get_name())).collect();
    format!("benches/run{only} --rounds {} --seconds {} --operations {}", cli.rounds, cli.seconds, cli.operations)
}
