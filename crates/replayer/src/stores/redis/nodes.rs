//! How the store is reached, chosen once when it is opened, and the connections for everything except
//! the operations of an experiment: one to the server, or one to each primary of a cluster.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::{Client, ConnectionAddr, ConnectionInfo, FromRedisValue, RedisError, RedisResult, Value};

use super::wire::{Connector, connect};
use super::words::words;
use crate::stores::StoreError;
use crate::stores::url::StoreUrl;

/// How many slots the keys of a cluster are divided into.
const SLOTS: u16 = 16_384;

/// The server, or servers, that a URL names.
pub enum Topology {
    /// A server by itself.
    One(Box<Client>),
    /// Nodes of a cluster. Any of them knows the others.
    Cluster(Vec<Client>),
}

/// Why there are no connections.
pub enum Obstacle {
    /// The URL does not fit the server.
    Url(&'static str),
    /// The nodes do not serve all keys.
    Incomplete(String),
    /// What the driver says.
    Driver(RedisError),
}

impl From<RedisError> for Obstacle {
    fn from(error: RedisError) -> Obstacle {
        Obstacle::Driver(error)
    }
}

impl From<redis::ParsingError> for Obstacle {
    fn from(error: redis::ParsingError) -> Obstacle {
        Obstacle::Driver(error.into())
    }
}

const NEEDS_CLUSTER: Obstacle = Obstacle::Url(
    "the server runs in cluster mode, which has no databases; add cluster=true, and remove the database number",
);
const NEEDS_NO_CLUSTER: Obstacle = Obstacle::Url("the server does not run in cluster mode; remove cluster=true");

impl Topology {
    /// That of a URL, of which `plain` is what the driver may see.
    pub fn of(url: &StoreUrl, plain: &str) -> Result<Topology, StoreError> {
        let open = |text: &str| {
            Client::open(text).map_err(|error| {
                StoreError::usage(url, format!("{}; write redis://USER:PASSWORD@HOST:PORT/NUMBER", words(&error)))
            })
        };
        if !url.choice("cluster", &[("false", false), ("true", true)])? {
            if each_host(plain).len() > 1 {
                return Err(StoreError::usage(url, "names several hosts; add cluster=true, or name one host"));
            }
            return Ok(Topology::One(Box::new(open(plain)?)));
        }
        let seeds = each_host(plain).iter().map(|text| open(text)).collect::<Result<Vec<_>, _>>()?;
        if seeds.iter().any(|seed| seed.get_connection_info().redis_settings().db() != 0) {
            let message = "names a database, but a cluster has only number 0; remove the number, or cluster=true";
            return Err(StoreError::usage(url, message));
        }
        Ok(Topology::Cluster(seeds))
    }

    /// Whether it is a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    /// The number of the database.
    pub fn database(&self) -> i64 {
        match self {
            Topology::One(client) => client.get_connection_info().redis_settings().db(),
            Topology::Cluster(_) => 0,
        }
    }

    /// Connections to all nodes that have keys.
    pub async fn connect(&self) -> Result<Nodes, Obstacle> {
        match self {
            Topology::One(client) => Nodes::alone(client).await,
            Topology::Cluster(seeds) => {
                let mut last = Obstacle::Incomplete("the URL names no node".to_string());
                for seed in seeds {
                    match Nodes::of_cluster(seed).await {
                        Err(Obstacle::Driver(error)) => last = error.into(),
                        done => return done,
                    }
                }
                Err(last)
            }
        }
    }

    /// What makes connections for operations. `most` is how long a node may take to accept one.
    pub fn connector(&self, nodes: &Nodes, most: Duration) -> RedisResult<Connector> {
        match self {
            Topology::One(client) => Ok(Connector::One(client.clone())),
            // Without retries: the driver would send a write again of which it does not know whether it
            // has happened. It returns redirects too then, which `wire.rs` follows.
            Topology::Cluster(_) => ClusterClientBuilder::new(nodes.infos.clone())
                .retries(0)
                .connection_timeout(most)
                .build()
                .map(|client| Connector::Cluster(Box::new(client))),
        }
    }
}

/// A URL with several hosts as URLs with one host each.
fn each_host(url: &str) -> Vec<String> {
    let (scheme, rest) = url.split_once("//").unwrap_or(("", url));
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, hosts) = place.split_at(place.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| format!("{scheme}//{user}{host}{path}")).collect()
}

/// A connection to each node that has keys: a server by itself, or all primaries of a cluster.
pub struct Nodes {
    infos: Vec<ConnectionInfo>,
    links: Vec<MultiplexedConnection>,
    /// Whose each slot is, by index; empty if one node has all keys.
    owners: Vec<u16>,
    /// How many replicas the primaries of a cluster have together; None for a server by itself.
    replicas: Option<usize>,
}

impl Nodes {
    async fn alone(client: &Client) -> Result<Nodes, Obstacle> {
        let mut link = match connect(client).await {
            Err(error) if error.to_string().contains("not allowed in cluster mode") => return Err(NEEDS_CLUSTER),
            made => made?,
        };
        // A user may not be allowed to ask.
        let info: RedisResult<String> = redis::cmd("INFO").arg("cluster").query_async(&mut link).await;
        if info.is_ok_and(|text| text.contains("cluster_enabled:1")) {
            return Err(NEEDS_CLUSTER);
        }
        let infos = vec![client.get_connection_info().clone()];
        Ok(Nodes { infos, links: vec![link], owners: Vec::new(), replicas: None })
    }

    async fn of_cluster(seed: &Client) -> Result<Nodes, Obstacle> {
        let mut link = connect(seed).await?;
        let ranges = redis::cmd("CLUSTER").arg("SLOTS").to_owned().query_async(&mut link).await;
        let ranges: Vec<Vec<Value>> = match ranges {
            Err(error) if error.to_string().contains("cluster support disabled") => return Err(NEEDS_NO_CLUSTER),
            asked => asked?,
        };
        let Slots { primaries, owners, replicas } = Slots::read(ranges, seed.get_connection_info())?;
        let mut links = Vec::with_capacity(primaries.len());
        for info in &primaries {
            links.push(connect(&Client::open(info.clone())?).await?);
        }
        Ok(Nodes { infos: primaries, links, owners, replicas: Some(replicas.len()) })
    }

    /// How many nodes have keys.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// How many replicas a cluster has.
    pub fn replicas(&self) -> Option<usize> {
        self.replicas
    }

    /// All of them.
    pub fn all(&mut self) -> &mut [MultiplexedConnection] {
        &mut self.links
    }

    /// The index of the node that has a key.
    pub fn place(&self, key: &str) -> usize {
        match self.owners.is_empty() {
            true => 0,
            false => self.owners[slot(key) as usize] as usize,
        }
    }

    /// The node that has a key.
    pub fn of(&mut self, key: &str) -> &mut MultiplexedConnection {
        let place = self.place(key);
        &mut self.links[place]
    }

    /// Another handle of a node's connection.
    pub fn handle(&self, place: usize) -> MultiplexedConnection {
        self.links[place].clone()
    }
}

/// The slot of a key. No key of Encore's has a hash tag in braces.
fn slot(key: &str) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(key.as_bytes()) % SLOTS
}

/// Who serves the slots of a cluster.
struct Slots {
    primaries: Vec<ConnectionInfo>,
    /// For each slot the index of its primary.
    owners: Vec<u16>,
    replicas: Vec<ConnectionAddr>,
}

impl Slots {
    /// Reads the answer to CLUSTER SLOTS: first and last slot of a range, its primary, its replicas.
    fn read(ranges: Vec<Vec<Value>>, seed: &ConnectionInfo) -> Result<Slots, Obstacle> {
        let mut slots = Slots { primaries: Vec::new(), owners: vec![u16::MAX; SLOTS.into()], replicas: Vec::new() };
        for range in ranges {
            let mut parts = range.into_iter();
            let (Some(first), Some(last), Some(primary)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let (first, last) = (u16::from_redis_value(first)?, u16::from_redis_value(last)?);
            let address = address(primary, seed.addr())?;
            let known = slots.primaries.iter().position(|info| *info.addr() == address);
            let owner = known.unwrap_or_else(|| {
                slots.primaries.push(seed.clone().set_addr(address));
                slots.primaries.len() - 1
            });
            if let Some(owned) = slots.owners.get_mut(usize::from(first)..=usize::from(last)) {
                // A cluster has a thousand nodes at most.
                owned.fill(owner as u16);
            }
            for replica in parts {
                // What follows the nodes is not one, in servers to come.
                let Ok(address) = self::address(replica, seed.addr()) else { continue };
                if !slots.replicas.contains(&address) {
                    slots.replicas.push(address);
                }
            }
        }
        match slots.owners.iter().filter(|owner| **owner == u16::MAX).count() {
            0 => Ok(slots),
            missing => Err(Obstacle::Incomplete(format!(
                "{missing} of the cluster's {SLOTS} slots have no node; repair it with `redis-cli --cluster fix \
                 HOST:PORT`"
            ))),
        }
    }
}

/// The address of a node: host and port, and more that is not needed. The host may be missing, and is
/// that of the node that was asked then.
fn address(node: Value, seed: &ConnectionAddr) -> Result<ConnectionAddr, redis::ParsingError> {
    let mut parts = Vec::<Value>::from_redis_value(node)?.into_iter();
    let host = Option::<String>::from_redis_value(parts.next().unwrap_or(Value::Nil))?;
    let port = u16::from_redis_value(parts.next().unwrap_or(Value::Nil))?;
    let host = |own: &str| host.filter(|host| !host.is_empty()).unwrap_or_else(|| own.to_string());
    Ok(match seed {
        ConnectionAddr::TcpTls { host: own, insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host(own), port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        ConnectionAddr::Tcp(own, _) => ConnectionAddr::Tcp(host(own), port),
        _ => ConnectionAddr::Tcp(host("127.0.0.1"), port),
    })
}

#[cfg(test)]
mod tests {
    use redis::IntoConnectionInfo;

    use super::*;

    #[test]
    fn each_host_gets_a_url() {
        let check = |url: &str, expect: &[&str]| assert_eq!(each_host(url), expect);
        check("redis://h:1/", &["redis://h:1/"]);
        check("rediss://u:p%40s@h:1,i:2/0", &["rediss://u:p%40s@h:1/0", "rediss://u:p%40s@i:2/0"]);
        check("redis://[::1]:1,[::1]:2", &["redis://[::1]:1", "redis://[::1]:2"]);
    }

    /// The examples of Redis's specification of its cluster.
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!((slot("123456789"), slot("foo")), (0x31C3, 12_182));
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn ranges_of_slots_have_owners() {
        let seed = "rediss://u:p@seed:1".into_connection_info().expect("a URL");
        let range = |first, last, nodes: [Value; 2]| [vec![Value::Int(first), Value::Int(last)], nodes.into()].concat();
        let ranges = vec![
            range(0, 99, [node(text("a"), 7), node(text("c"), 9)]),
            range(100, 16_382, [node(Value::Nil, 8), node(text("d"), 9)]),
            range(16_383, 16_383, [node(text("a"), 7), node(text("c"), 9)]),
        ];
        let Ok(slots) = Slots::read(ranges.clone(), &seed) else { panic!("all slots have nodes") };
        let addresses: Vec<String> = slots.primaries.iter().map(|info| info.addr().to_string()).collect();
        assert_eq!((addresses.as_slice(), slots.replicas.len()), (&["a:7".to_string(), "seed:8".to_string()][..], 2));
        assert_eq!([0, 99, 100, 16_382, 16_383].map(|slot| slots.owners[slot]), [0, 0, 1, 1, 0]);
        assert!(slots.primaries.iter().all(|info| matches!(info.addr(), ConnectionAddr::TcpTls { .. })));
        assert_eq!(slots.primaries[0].redis_settings().password(), Some("p"));
        match Slots::read(ranges[..1].to_vec(), &seed) {
            Err(Obstacle::Incomplete(why)) => assert!(why.starts_with("16284 of the cluster's 16384 slots"), "{why}"),
            _ => panic!("slots without a node"),
        }
    }
}
