//! Apache Cassandra 5.0, started from its jars.

mod cql;

use std::io::{Result, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Durability, Engine, Site, cache_folder, connect};
use crate::{machine, ports};

/// The jars that `tests/run` installs, below the cache folder.
const CACHED: &str = "cassandra-5.0.9";

/// The configuration of a node; words in braces are replaced.
const CONFIGURATION: &str = include_str!("cassandra.yaml");

/// Warnings and errors only, in the server's log.
const LOGGING: &str = include_str!("logback.xml");

/// What the Java machine is given: little memory, and what Cassandra uses of its insides.
const JAVA_OPTIONS: &str = include_str!("java.options");

/// The first argument is the program `java`, all others are options of Java.
const START: &str = "java=$1; shift; exec \"$java\" \"$@\" org.apache.cassandra.service.CassandraDaemon\n";

pub static ENGINE: Engine = Engine {
    name: "Cassandra",
    programs: "java 17, the jars of cassandra-all",
    variable: "ENCORE_TEST_CASSANDRA_URL",
    scheme: "cassandra",
    credentials: "",
    parameters: "",
    default_port: 9042,
    accounts: &[],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |_| None,
    replication: None,
};

fn find() -> Option<Vec<PathBuf>> {
    let jars = cache_folder()?.join(CACHED);
    Some(vec![machine::java()?, jars.is_dir().then_some(jars)?])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    for (name, sync) in [
        (Durability::Process, "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms"),
        (Durability::Machine, "commitlog_sync: batch"),
    ] {
        let text = CONFIGURATION
            .replace("{host}", &site.host.to_string())
            .replace("{seed}", &site.seed.unwrap_or(site.host).to_string())
            .replace("{commitlog_sync}", sync);
        site.write(configuration(name), &text)?;
    }
    site.create_folder("conf")?;
    site.write("conf/logback.xml", LOGGING)?;
    site.create_folder("tmp")?;
    site.write("start.sh", START)?;
    Ok(Vec::new())
}

fn configuration(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "periodic.yaml",
        Durability::Machine => "batch.yaml",
    }
}

fn command(site: &Site, port: u16, durability: Durability) -> Vec<String> {
    let mut command = vec!["sh".to_string(), site.path("start.sh"), site.program(0)];
    command.extend(["-cp".to_string(), format!("{}:{}/*", site.path("conf"), site.program(1))]);
    command.extend(JAVA_OPTIONS.lines().flat_map(str::split_whitespace).map(String::from));
    command.extend([
        // Native libraries are unpacked there, and removed with the folder.
        format!("-Djava.io.tmpdir={}", site.path("tmp")),
        format!("-Djna.tmpdir={}", site.path("tmp")),
        format!("-Dcassandra.config=file://{}", site.path(configuration(durability))),
        format!("-Dcassandra.storagedir={}", site.path("data")),
        format!("-Dcassandra.native_transport_port={port}"),
        format!("-Dcassandra.storage_port={}", ports::free_at(&[site.host])),
    ]);
    command
}

/// Clients are served last, when all else has started.
fn is_ready(address: SocketAddr) -> Result<bool> {
    let mut stream = connect(address)?;
    stream.write_all(&cql::OPTIONS)?;
    Ok(cql::read(&mut stream)?.is_supported())
}

/// Whether the node knows so many nodes that are up, itself included: their number is that of the replicas of
/// a keyspace of the server's own, which is read from all of them.
pub fn knows_three(address: SocketAddr) -> Result<bool> {
    let mut stream = connect(address)?;
    stream.write_all(&cql::startup())?;
    cql::read(&mut stream)?;
    stream.write_all(&cql::query_at_all("SELECT view_name FROM system_distributed.view_build_status"))?;
    Ok(cql::read(&mut stream)?.is_result())
}
