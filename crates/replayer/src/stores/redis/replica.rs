//! The replica that answers reads (`replica=HOST:PORT`), and the wait for replicas after writes (`wait=N`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::{Client, Cmd, ConnectionAddr, RedisResult};

use super::Redis;
use super::nodes::Nodes;
use super::settings::info;
use super::wire::{Connector, connect};
use crate::stores::url::{Address, StoreUrl};
use crate::stores::{StoreError, patience};

/// The parameters of the URL.
pub const PARAMETERS: [&str; 3] = ["replica", "wait", "wait_ms"];

/// How long a write waits for replicas unless the URL says otherwise.
const WAIT_MS: u32 = 1_000;

/// The time between two looks at how far the replica has come.
const PAUSE: Duration = Duration::from_millis(5);

/// How many replicas must have a write before it counts as done, and how long it waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub replicas: u32,
    pub most_ms: u32,
}

impl Wait {
    /// That of a URL; None if writes do not wait.
    pub fn of(url: &StoreUrl) -> Result<Option<Wait>, StoreError> {
        let most_ms = url.count("wait_ms")?;
        match url.count("wait")? {
            Some(replicas) => Ok(Some(Wait { replicas, most_ms: most_ms.unwrap_or(WAIT_MS) })),
            None if most_ms.is_some() => {
                Err(StoreError::usage(url, "wait_ms needs wait, the number of replicas to wait for; add wait=1"))
            }
            None => Ok(None),
        }
    }

    /// The command that waits. Its answer is how many replicas have all earlier writes of the connection.
    pub fn command(&self) -> Cmd {
        redis::cmd("WAIT").arg(self.replicas).arg(self.most_ms).to_owned()
    }
}

/// A replica, which has the same user, password and database as the primary.
pub struct Replica {
    address: Address,
    client: Client,
}

impl Replica {
    /// That of a URL whose server is `primary`; None if it names no replica.
    pub fn of(url: &StoreUrl, primary: &Client) -> Result<Option<Replica>, StoreError> {
        let Some(address) = url.address("replica")? else { return Ok(None) };
        let (host, port) = (address.host.clone(), address.port);
        let info = primary.get_connection_info().clone();
        let place = match info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let client = Client::open(info.set_addr(place)).map_err(|error| StoreError::usage(url, error))?;
        Ok(Some(Replica { address, client }))
    }

    /// What makes connections for reads.
    pub fn connector(&self) -> Connector {
        Connector::One(Box::new(self.client.clone()))
    }

    /// An error about the replica.
    pub fn failed(&self, error: StoreError) -> StoreError {
        StoreError { message: format!("the replica {}: {}", self.address, error.message), ..error }
    }

    /// Waits for work on the replica, within a time limit.
    async fn in_time<X>(&self, store: &Redis, work: impl Future<Output = RedisResult<X>>) -> Result<X, StoreError> {
        store.in_time(work).await.map_err(|error| self.failed(error))
    }

    /// Waits until the replica has every write that the primary has done so far. An error if it does not answer,
    /// stops on the way, or is no replica of the primary.
    pub async fn await_caught_up(&self, store: &Redis, nodes: &mut Nodes) -> Result<(), StoreError> {
        let primary = info(store, &mut nodes.all()[0], &["replication"]).await?;
        let fact = |facts: &BTreeMap<String, String>, name: &str| facts.get(name).cloned().unwrap_or_default();
        let number = |text: String| text.parse::<u64>().unwrap_or(0);
        let (id, target) = (fact(&primary, "master_replid"), number(fact(&primary, "master_repl_offset")));
        let mut link = self.in_time(store, connect(&self.client)).await?;
        let most = patience(store.timeout);
        let mut moved = (0, Instant::now());
        loop {
            let facts = info(store, &mut link, &["replication"]).await.map_err(|error| self.failed(error))?;
            let refused =
                |why: &str| Err(StoreError::usage(&store.url, format!("parameter replica: {} {why}", self.address)));
            if fact(&facts, "role") != "slave" {
                return refused(
                    "is no replica, since its role is not that of one; name a server that follows the primary",
                );
            }
            let is_linked = fact(&facts, "master_link_status") == "up";
            if is_linked && fact(&facts, "master_replid") != id {
                return refused("is a replica of another server; name one of the primary's");
            }
            let offset = number(fact(&facts, "slave_repl_offset"));
            if is_linked && offset >= target {
                return Ok(());
            }
            if offset != moved.0 {
                moved = (offset, Instant::now());
            } else if moved.1.elapsed() > most {
                let state = if is_linked { "connected to the primary" } else { "not connected to the primary" };
                let message = format!(
                    "has received nothing for {} ms, and is {state}; see `INFO replication` of both",
                    most.as_millis()
                );
                return Err(self.failed(StoreError::store(&store.url, message)));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl std::fmt::Display for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address)
    }
}
