//! Runs all servers until Ctrl-C, for users who have none, and servers with replicas.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use servers::{CassandraCluster, Kind, Options, ReplicaOptions, Replicated, Server, StartError};

/// Ports next to the usual ones, which are probably free, and arguments that differ from a server's
/// own defaults.
const SERVERS: [(Kind, u16, &[&str]); 6] = [
    (Kind::Postgres, 54320, &[]),
    (Kind::Mysql, 33070, &[]),
    (Kind::Mongodb, 27027, &[]),
    (Kind::Memcached, 11221, &["-m", "4096"]),
    (Kind::Redis, 63790, &[]),
    (Kind::Cassandra, 19042, &[]),
];

/// Servers with replicas, and the ports of the primaries. Replicas have the next ones.
const REPLICATED: [(Kind, u16); 3] = [(Kind::Postgres, 54330), (Kind::Mongodb, 27037), (Kind::Redis, 63800)];

/// The port of each node of the Cassandra cluster, if no first port is given: the usual one.
const CLUSTER_PORT: u16 = 9042;

/// Runs PostgreSQL, MariaDB, MongoDB, memcached, Redis and Cassandra on loopback until Ctrl-C
///
/// Each server starts with empty data and the durability of production: a commit is on disk before
/// it is acknowledged. Cache sizes are the servers' own defaults, except 4 GiB for memcached. Once
/// all servers run, the program prints their URLs, one a line. It reports and skips servers that
/// are not installed. At the end it stops the servers and removes their data.
///
/// With --replicas it also runs a second PostgreSQL with a streaming replica, a MongoDB replica set of three, and
/// a second Redis with a replica.
#[derive(Parser)]
#[command(name = "servers", after_help = EXAMPLES)]
struct Arguments {
    /// Folder for the data, on the disk to be measured [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Port of the first server; the others get the next ones [default: 54320, 33070, 27027, 11221, 63790, 19042;
    /// with replicas also 54330, 27037, 63800]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=65522))]
    first_port: Option<u16>,

    /// Also run a Cassandra cluster of three nodes, on 127.0.0.11 to 127.0.0.13, port 9042 or that after the
    /// others'. It takes two gigabytes of memory
    #[arg(long)]
    cassandra_cluster: bool,

    /// Also run PostgreSQL, MongoDB and Redis with replicas
    #[arg(long)]
    replicas: bool,

    /// How late PostgreSQL's replica applies each commit, in milliseconds; with --replicas [default: 0]
    #[arg(long, value_name = "MS", requires = "replicas", default_value_t = 0, hide_default_value = true)]
    replica_delay: u32,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p servers
  cargo run --release -p servers -- --folder /mnt/fast
  cargo run --release -p servers -- --first-port 9000
  cargo run --release -p servers -- --cassandra-cluster
  cargo run --release -p servers -- --replicas --replica-delay 100

Then, in another terminal:
  ./encore rate --store postgres://encore:hush@127.0.0.1:54320/encore";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (interrupted, interruption) = mpsc::channel();
    ctrlc::set_handler(move || {
        // There is no receiver any more once the servers are being stopped.
        let _ = interrupted.send(());
    })
    .context("no handler for Ctrl-C")?;

    let servers = start(arguments)?;
    let replicated = if arguments.replicas { start_replicated(arguments)? } else { Vec::new() };
    let cluster = if arguments.cassandra_cluster { start_cluster(arguments)? } else { None };
    let urls = servers.iter().map(|server| server.url("encore"));
    let urls = urls.chain(replicated.iter().map(|servers| servers.url("encore")));
    let urls = urls.chain(cluster.iter().map(|cluster| cluster.url("encore")));
    let mut output = std::io::stdout().lock();
    for url in urls {
        writeln!(output, "{url}")?;
    }
    output.flush()?;
    eprintln!("servers: running; Ctrl-C stops them and removes their data");
    interruption.recv().context("the handler for Ctrl-C is gone")?;
    drop((servers, replicated, cluster));
    Ok(())
}

fn start(arguments: &Arguments) -> anyhow::Result<Vec<Server>> {
    let mut servers = Vec::new();
    for (index, (kind, usual_port, extra)) in (0..).zip(SERVERS) {
        let port = arguments.first_port.map_or(usual_port, |first| first + index);
        let options = Options {
            arguments: extra,
            durable: true,
            port: Some(port),
            folder: arguments.folder.as_deref(),
            ..Options::default()
        };
        servers.extend(unless_missing(Server::try_start(kind, options))?);
    }
    if servers.is_empty() {
        bail!("no server could be started");
    }
    Ok(servers)
}

fn start_replicated(arguments: &Arguments) -> anyhow::Result<Vec<Replicated>> {
    let mut servers = Vec::new();
    // The port of the cluster comes first.
    let mut next = arguments.first_port.map(|first| first + SERVERS.len() as u16 + 1);
    for (kind, usual_port) in REPLICATED {
        let options = ReplicaOptions {
            apply_delay: Duration::from_millis(arguments.replica_delay.into()),
            durable: true,
            port: Some(next.unwrap_or(usual_port)),
            folder: arguments.folder.as_deref(),
        };
        servers.extend(unless_missing(Replicated::try_start(kind, options))?);
        next = next.map(|port| port + Replicated::count(kind));
    }
    Ok(servers)
}

fn start_cluster(arguments: &Arguments) -> anyhow::Result<Option<CassandraCluster>> {
    let port = arguments.first_port.map_or(CLUSTER_PORT, |first| first + SERVERS.len() as u16);
    unless_missing(CassandraCluster::try_start(true, Some(port), arguments.folder.as_deref()))
}

/// What was started. Says so if its programs are missing.
fn unless_missing<S>(started: Result<S, StartError>) -> anyhow::Result<Option<S>> {
    match started {
        Ok(started) => Ok(Some(started)),
        Err(missing @ StartError::Missing(..)) => {
            eprintln!("servers: {missing}; tests/run installs it");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
