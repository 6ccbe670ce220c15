//! A Redis cluster of primaries on loopback.

use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Kind, Options, Server, ports};

/// How many slots the keys of a cluster are divided into.
const SLOTS: usize = 16_384;
/// How many primaries a cluster has: fewer cannot agree that one of them is down.
const NODES: usize = 3;
/// How long the nodes may take to know each other. Only a hopelessly busy machine needs more than seconds.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks whether they do.
const PAUSE: Duration = Duration::from_millis(20);

/// Servers that share the slots of a cluster. Each of them can be killed, restarted or paused.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Server>,
}

impl RedisCluster {
    /// Starts a separate cluster of three primaries without replicas; see [`Server::start`].
    ///
    /// # Panics
    ///
    /// If the nodes do not become a cluster.
    pub fn start() -> Option<RedisCluster> {
        let mut nodes = Vec::with_capacity(NODES);
        let mut buses = Vec::with_capacity(NODES);
        for _ in 0..NODES {
            let bus = ports::free().to_string();
            let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            nodes.push(Server::start(Kind::Redis, Options { arguments: &arguments, ..Options::default() })?);
            buses.push(bus);
        }
        let cluster = RedisCluster { nodes };
        cluster.join(&buses).unwrap_or_else(|error| panic!("the nodes do not become a Redis cluster: {error}"));
        cluster.await_ready();
        Some(cluster)
    }

    /// The nodes, in the order of their slots.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The node that has the slot of a key.
    ///
    /// # Panics
    ///
    /// If the first node does not answer.
    pub fn node_of(&self, key: &str) -> &Server {
        let slot = ask(&self.nodes[0], &format!("CLUSTER KEYSLOT {key}")).ok();
        let slot = slot.and_then(|answer| answer.trim().strip_prefix(':')?.parse().ok()).map(owner);
        &self.nodes[slot.unwrap_or_else(|| panic!("no slot of {key:?}"))]
    }

    /// The URL of the first node, as a store expects it.
    pub fn url(&self) -> String {
        format!("redis://{}/?cluster=true", self.nodes[0].address())
    }

    /// Waits until all nodes know each other and serve their slots, for example after a restart.
    ///
    /// # Panics
    ///
    /// If they never do.
    pub fn await_ready(&self) {
        self.agree().unwrap_or_else(|error| panic!("the nodes do not become a Redis cluster: {error}"));
    }

    /// Gives each node its slots, and introduces all to the first.
    fn join(&self, buses: &[String]) -> Result<()> {
        for (index, node) in self.nodes.iter().enumerate() {
            let mut own = (0..SLOTS).filter(|slot| owner(*slot) == index);
            let (first, last) = (own.next().unwrap_or(0), own.next_back().unwrap_or(0));
            ask(node, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
        }
        for (node, bus) in self.nodes.iter().zip(buses).skip(1) {
            let address = node.address();
            ask(&self.nodes[0], &format!("CLUSTER MEET {} {bus}", address.replace(':', " ")))?;
        }
        Ok(())
    }

    /// Waits until each node knows the others and says that all slots are served.
    fn agree(&self) -> Result<()> {
        let start = Instant::now();
        let all = format!("cluster_known_nodes:{NODES}\r");
        for node in &self.nodes {
            loop {
                let info = ask(node, "CLUSTER INFO")?;
                if info.contains("cluster_state:ok\r") && info.contains(&all) {
                    break;
                }
                if start.elapsed() > PATIENCE {
                    return Err(Error::other(info));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// The node that has a slot.
fn owner(slot: usize) -> usize {
    slot * NODES / SLOTS
}

/// Clusters that no test uses at the moment.
static IDLE: Mutex<Vec<RedisCluster>> = Mutex::new(Vec::new());

/// A cluster that no other test uses until this value is dropped. It may contain what an earlier test
/// has left, which has to be a data set of Encore's.
#[derive(Debug)]
pub struct Lent(Option<RedisCluster>);

impl Deref for Lent {
    type Target = RedisCluster;

    fn deref(&self) -> &RedisCluster {
        // It is taken out only while the value is dropped.
        self.0.as_ref().expect("a cluster until the drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // After a panic, its contents are unknown.
        if let Some(cluster) = self.0.take().filter(|_| !std::thread::panicking()) {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(cluster);
        }
    }
}

/// A cluster for a test: one that is idle, or a new one; see [`Server::start`]. A cluster has one
/// database only, so tests do not share it.
pub fn redis_cluster() -> Option<Lent> {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    idle.or_else(RedisCluster::start).map(|cluster| Lent(Some(cluster)))
}

/// Sends a command, and reads the first piece of the answer. An error is what the node refuses.
fn ask(node: &Server, command: &str) -> Result<String> {
    let mut stream = TcpStream::connect(node.address())?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    if answer.starts_with('-') { Err(Error::other(format!("{command}: {answer}"))) } else { Ok(answer) }
}
