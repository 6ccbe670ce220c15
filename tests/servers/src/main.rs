//! Runs all servers until Ctrl-C, for users who have none.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

use anyhow::{Context, bail};
use clap::Parser;
use servers::{CassandraCluster, Kind, Options, Server, StartError};

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

/// The port of each node of the Cassandra cluster, if no first port is given: the usual one.
const CLUSTER_PORT: u16 = 9042;

/// Runs PostgreSQL, MariaDB, MongoDB, memcached, Redis and Cassandra on loopback until Ctrl-C
///
/// Each server starts with empty data and the durability of production: a commit is on disk before
/// it is acknowledged. Cache sizes are the servers' own defaults, except 4 GiB for memcached. Once
/// all servers run, the program prints their URLs, one a line. It reports and skips servers that
/// are not installed. At the end it stops the servers and removes their data.
#[derive(Parser)]
#[command(name = "servers", after_help = EXAMPLES)]
struct Arguments {
    /// Folder for the data, on the disk to be measured [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Port of the first server; the others get the next ones [default: 54320, 33070, 27027, 11221, 63790, 19042]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=65529))]
    first_port: Option<u16>,

    /// Also run a Cassandra cluster of three nodes, on 127.0.0.11 to 127.0.0.13, port 9042 or that after the
    /// others'. It takes two gigabytes of memory
    #[arg(long)]
    cassandra_cluster: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p servers
  cargo run --release -p servers -- --folder /mnt/fast
  cargo run --release -p servers -- --first-port 9000
  cargo run --release -p servers -- --cassandra-cluster

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
    let cluster = if arguments.cassandra_cluster { start_cluster(arguments)? } else { None };
    let mut output = std::io::stdout().lock();
    for server in &servers {
        writeln!(output, "{}", server.url("encore"))?;
    }
    if let Some(cluster) = &cluster {
        writeln!(output, "{}", cluster.url("encore"))?;
    }
    output.flush()?;
    eprintln!("servers: running; Ctrl-C stops them and removes their data");
    interruption.recv().context("the handler for Ctrl-C is gone")?;
    drop((servers, cluster));
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
        match Server::try_start(kind, options) {
            Ok(server) => servers.push(server),
            Err(missing @ StartError::Missing(_)) => eprintln!("servers: {missing}; tests/run installs it"),
            Err(error) => return Err(error.into()),
        }
    }
    if servers.is_empty() {
        bail!("no server could be started");
    }
    Ok(servers)
}

fn start_cluster(arguments: &Arguments) -> anyhow::Result<Option<CassandraCluster>> {
    let port = arguments.first_port.map_or(CLUSTER_PORT, |first| first + SERVERS.len() as u16);
    match CassandraCluster::try_start(true, Some(port), arguments.folder.as_deref()) {
        Ok(cluster) => Ok(Some(cluster)),
        Err(missing @ StartError::Missing(_)) => {
            eprintln!("servers: {missing}; tests/run installs it");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
