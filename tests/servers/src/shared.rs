//! One server of each kind for the whole process.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{CassandraCluster, Kind, Options, ReplicaOptions, Replicated, Server, StartError};

/// The shared PostgreSQL server, started at first use; see [`Server::start`].
pub fn postgres() -> Option<&'static Server> {
    shared(Kind::Postgres)
}

/// The shared MariaDB server, or the user's MySQL; see [`Server::start`].
pub fn mysql() -> Option<&'static Server> {
    shared(Kind::Mysql)
}

/// The shared MongoDB server, a set of one replica; see [`Server::start`].
pub fn mongodb() -> Option<&'static Server> {
    shared(Kind::Mongodb)
}

/// The shared memcached server; see [`Server::start`].
pub fn memcached() -> Option<&'static Server> {
    shared(Kind::Memcached)
}

/// The shared Redis server; see [`Server::start`].
pub fn redis() -> Option<&'static Server> {
    shared(Kind::Redis)
}

/// The shared Cassandra server, a cluster of one node; see [`Server::start`].
pub fn cassandra() -> Option<&'static Server> {
    shared(Kind::Cassandra)
}

/// The variable that asks for tests on a cluster of three nodes, too: `tests/run --cluster` sets it.
const CLUSTER: &str = "ENCORE_TEST_CLUSTER";

/// The shared Cassandra cluster of three nodes; None unless `ENCORE_TEST_CLUSTER` is set.
pub fn cassandra_cluster() -> Option<&'static CassandraCluster> {
    static STARTED: OnceLock<Option<CassandraCluster>> = OnceLock::new();
    std::env::var_os(CLUSTER).filter(|value| !value.is_empty())?;
    STARTED.get_or_init(CassandraCluster::start).as_ref()
}

/// The URL of a keyspace on the shared cluster if there is one, else on the shared server of one node.
pub fn cassandra_url(keyspace: &str) -> Option<String> {
    match cassandra_cluster() {
        Some(cluster) => Some(cluster.url(keyspace)),
        None => cassandra().map(|server| server.url(keyspace)),
    }
}

/// The shared server of a kind.
pub fn shared(kind: Kind) -> Option<&'static Server> {
    // A failed start is stored too, so that each later test fails at once.
    static SERVERS: [OnceLock<Result<Option<Server>, String>>; Kind::ALL.len()] =
        [const { OnceLock::new() }; Kind::ALL.len()];
    let server = SERVERS[kind as usize].get_or_init(|| match Server::of_user(kind) {
        Some(server) => Ok(Some(server)),
        None => or_skip(kind, Server::try_start(kind, Options::default())),
    });
    server.as_ref().unwrap_or_else(|message| panic!("{message}")).as_ref()
}

/// The shared servers of this kind with replicas, started at first use; see [`Replicated::start`].
pub fn replicated(kind: Kind) -> Option<&'static Replicated> {
    static SERVERS: [OnceLock<Result<Option<Replicated>, String>>; Kind::ALL.len()] =
        [const { OnceLock::new() }; Kind::ALL.len()];
    let start = || or_skip(kind, Replicated::try_start(kind, ReplicaOptions::default()));
    let servers = SERVERS[kind as usize].get_or_init(start);
    servers.as_ref().unwrap_or_else(|message| panic!("{message}")).as_ref()
}

/// What was started; `None` if its programs are missing and not required; else an error message.
pub fn or_skip<S>(kind: Kind, started: Result<S, StartError>) -> Result<Option<S>, String> {
    static SAID: [AtomicBool; Kind::ALL.len()] = [const { AtomicBool::new(false) }; Kind::ALL.len()];
    match started {
        Ok(server) => Ok(Some(server)),
        Err(missing @ StartError::Missing(..)) => {
            if std::env::var_os("ENCORE_TEST_SERVERS").is_some_and(|value| value == "required") {
                return Err(format!("{missing}, and ENCORE_TEST_SERVERS=required is set"));
            }
            if !SAID[kind as usize].swap(true, Ordering::Relaxed) {
                let line = format!("skipped: {missing}; set {} or install it\n", kind.variable());
                // The test harness hides the output of `eprint` when a test passes.
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}
