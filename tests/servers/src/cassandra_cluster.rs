//! A Cassandra cluster of three nodes on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::engines::cassandra::knows_three;
use crate::shared::or_skip;
use crate::{Kind, Options, Server, StartError, ports};

/// The addresses of the nodes: a cluster's nodes have one port, each at its own address.
const HOSTS: [Ipv4Addr; 3] = [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(127, 0, 0, 12), Ipv4Addr::new(127, 0, 0, 13)];
/// How long the nodes may take to know each other. Only a hopelessly busy machine needs more than seconds.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks whether they do.
const PAUSE: Duration = Duration::from_millis(100);

/// Three nodes, each of which can have a copy of every row. Each of them can be killed, restarted or paused.
#[derive(Debug)]
pub struct CassandraCluster {
    nodes: Vec<Server>,
}

impl CassandraCluster {
    /// Starts a separate cluster; see [`Server::start`]. It takes half a minute and two gigabytes of memory.
    ///
    /// # Panics
    ///
    /// If the nodes do not become a cluster.
    pub fn start() -> Option<CassandraCluster> {
        let missing = || {
            or_skip::<Server>(Kind::Cassandra, Err(StartError::Missing(Kind::Cassandra, Kind::Cassandra.programs())))
        };
        match CassandraCluster::try_start(false, None, None) {
            Ok(cluster) => Some(cluster),
            Err(StartError::Missing(..)) => {
                missing().unwrap_or_else(|message| panic!("{message}"));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a separate cluster, or returns the reason why it could not; see [`Options`].
    ///
    /// # Panics
    ///
    /// If the nodes do not become a cluster.
    pub fn try_start(durable: bool, port: Option<u16>, folder: Option<&Path>) -> Result<CassandraCluster, StartError> {
        let port = port.unwrap_or_else(|| ports::free_at(&HOSTS));
        let between = format!("-Dcassandra.storage_port={}", ports::free_at(&HOSTS));
        let mut nodes = Vec::with_capacity(HOSTS.len());
        for host in HOSTS {
            let options = Options {
                arguments: &[&between],
                durable,
                port: Some(port),
                folder,
                host: Some(host),
                seed: Some(HOSTS[0]),
                ..Options::default()
            };
            nodes.push(Server::try_start(Kind::Cassandra, options)?);
        }
        let cluster = CassandraCluster { nodes };
        cluster.await_ready();
        Ok(cluster)
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The URL of a keyspace, with all nodes.
    pub fn url(&self, keyspace: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(Server::address).collect();
        format!("cassandra://{}/{keyspace}", hosts.join(","))
    }

    /// Waits until each node knows that all are up, for example after a restart.
    ///
    /// # Panics
    ///
    /// If they never do.
    pub fn await_ready(&self) {
        let start = Instant::now();
        for node in &self.nodes {
            let address: SocketAddr = node.address().parse().expect("an address of loopback");
            loop {
                let known = knows_three(address);
                if matches!(known, Ok(true)) {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "the nodes do not become a Cassandra cluster: {known:?}");
                std::thread::sleep(PAUSE);
            }
        }
    }
}
