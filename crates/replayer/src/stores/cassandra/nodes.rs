//! Sessions with the cluster, and which node coordinates an operation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::{
    DefaultPolicy, LoadBalancingPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy,
};
use scylla::policies::retry::FallthroughRetryPolicy;

use super::{Cassandra, place, timestamps, words};
use crate::stores::url::StoreUrl;
use crate::stores::{StoreError, patience};

/// How long a change of the schema, or a step of a load, may take at least: all nodes have to agree.
const SLOW: Duration = Duration::from_secs(90);

/// Which node coordinates an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coordinator {
    /// One that has a replica of the row.
    TokenAware,
    /// The same for all operations of a thread; threads take all nodes in turn.
    ByThread,
    /// The same, among these nodes.
    Nodes(Vec<String>),
}

impl Coordinator {
    /// That of a URL.
    pub fn of(url: &StoreUrl) -> Result<Coordinator, StoreError> {
        match url.text("coordinator") {
            None | Some("token-aware") => Ok(Coordinator::TokenAware),
            Some("by-thread") => Ok(Coordinator::ByThread),
            Some("") => Err(StoreError::usage(
                url,
                "parameter coordinator: names no node; use token-aware, by-thread or HOST:PORT",
            )),
            Some(hosts) => {
                let hosts = hosts.split(',').map(|host| place::with_port(url, host));
                Ok(Coordinator::Nodes(hosts.collect::<Result<_, _>>()?))
            }
        }
    }

    /// For the settings of a run.
    pub fn in_words(&self) -> String {
        match self {
            Coordinator::TokenAware => "token-aware".to_string(),
            Coordinator::ByThread => "by-thread".to_string(),
            Coordinator::Nodes(hosts) => hosts.join(","),
        }
    }
}

impl Cassandra {
    /// A session with the cluster. The driver repeats nothing by itself, and has no time limits of its
    /// own: those of Encore hold.
    pub(super) async fn session(&self) -> Result<Session, StoreError> {
        let profile = ExecutionProfile::builder()
            .request_timeout(None)
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            .load_balancing_policy(DefaultPolicy::builder().build())
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&self.place.hosts)
            .connection_timeout(patience(self.timeout))
            .pool_size(PoolSize::PerHost(self.connections_per_node))
            .keyspaces_to_fetch([self.place.keyspace.as_str()])
            .timestamp_generator(timestamps::of_process())
            .schema_agreement_timeout(SLOW)
            .default_execution_profile_handle(profile.into_handle());
        if let Some((name, password)) = &self.place.user {
            builder = builder.user(name, password);
        }
        let most = patience(self.timeout);
        match tokio::time::timeout(most, builder.build()).await {
            Ok(session) => session.map_err(|error| self.with_advice(words::of_session(&error))),
            Err(_) => {
                Err(StoreError::store(&self.url, format!("cannot connect: timed out after {} ms", most.as_millis())))
            }
        }
    }

    /// Waits for work that is not an operation, within a time limit.
    pub(super) async fn in_time<X>(
        &self,
        work: impl Future<Output = Result<X, ExecutionError>>,
    ) -> Result<X, StoreError> {
        let most = patience(self.timeout).max(SLOW);
        match tokio::time::timeout(most, work).await {
            Ok(done) => done.map_err(|error| self.failed(&error)),
            Err(_) => Err(StoreError::store(&self.url, format!("timed out after {} ms", most.as_millis()))),
        }
    }

    /// An error of the server or of the way to it, with what a user should do about it.
    pub(super) fn failed(&self, error: &ExecutionError) -> StoreError {
        self.with_advice(words::words(error))
    }

    pub(super) fn with_advice(&self, words: String) -> StoreError {
        match words::advice(&words) {
            Some(advice) => StoreError::store(&self.url, format!("{words}; {advice}")),
            None => StoreError::store(&self.url, words),
        }
    }

    /// For each node that coordinates, in turn, the policy that chooses it; none if the row chooses.
    pub(super) async fn coordinators(
        &self,
        session: &Session,
    ) -> Result<Vec<Arc<dyn LoadBalancingPolicy>>, StoreError> {
        let known = addresses(session);
        let chosen = match &self.coordinator {
            Coordinator::TokenAware => return Ok(Vec::new()),
            Coordinator::ByThread => known,
            Coordinator::Nodes(hosts) => {
                let mut chosen = Vec::with_capacity(hosts.len());
                for host in hosts {
                    chosen.push(self.resolve(host, &known).await?);
                }
                chosen
            }
        };
        Ok(chosen.into_iter().map(only).collect())
    }

    /// The node that a user names.
    async fn resolve(&self, host: &str, known: &[SocketAddr]) -> Result<SocketAddr, StoreError> {
        let refused = |why: String| Err(StoreError::usage(&self.url, format!("parameter coordinator: {why}")));
        let mut found = match tokio::net::lookup_host(host).await {
            Ok(found) => found,
            Err(error) => return refused(format!("{host}: {error}")),
        };
        match found.find(|address| known.contains(address)) {
            Some(address) => Ok(address),
            None => {
                let known = known.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ");
                refused(format!("{host} is not a node of the cluster; its nodes are {known}"))
            }
        }
    }
}

/// Lets one node coordinate.
pub fn only(address: SocketAddr) -> Arc<dyn LoadBalancingPolicy> {
    SingleTargetLoadBalancingPolicy::new(NodeIdentifier::NodeAddress(address), None)
}

/// The addresses of all nodes, in order.
pub fn addresses(session: &Session) -> Vec<SocketAddr> {
    let state = session.get_cluster_state();
    let mut addresses: Vec<SocketAddr> =
        state.get_nodes_info().iter().map(|node| SocketAddr::new(node.address.ip(), node.address.port())).collect();
    addresses.sort_unstable();
    addresses
}

/// How many nodes the smallest data centre has.
pub fn nodes_of_a_data_center(session: &Session) -> u32 {
    let state = session.get_cluster_state();
    let mut counts = std::collections::BTreeMap::<Option<&str>, u32>::new();
    for node in state.get_nodes_info() {
        *counts.entry(node.datacenter.as_deref()).or_default() += 1;
    }
    counts.into_values().min().unwrap_or_default()
}
