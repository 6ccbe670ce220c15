//! A thread's way to the records: a connection to a server, or to all nodes of a cluster.

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
    Value,
};

/// How often a command follows the nodes of a cluster that have just given its slot away.
const REDIRECTS_MAX: u32 = 16;

/// How many commands that do not depend on each other are under way at a time.
const TOGETHER_MAX: usize = 64;

/// What makes connections.
pub enum Connector {
    /// To a server by itself.
    One(Box<Client>),
    /// To the nodes of a cluster.
    Cluster(Box<ClusterClient>),
}

impl Connector {
    /// A new connection.
    pub async fn connect(&self) -> RedisResult<Wire> {
        match self {
            Connector::One(client) => connect(client).await.map(Wire::One),
            Connector::Cluster(client) => Box::pin(client.get_async_connection()).await.map(Wire::Cluster),
        }
    }
}

/// A connection.
#[derive(Clone)]
pub enum Wire {
    /// To a server by itself.
    One(MultiplexedConnection),
    /// To all nodes of a cluster.
    Cluster(ClusterConnection),
}

impl Wire {
    /// Sends a command, and waits for the answer. It is sent again only where a node of a cluster has
    /// refused it because the key is on another node.
    pub async fn query<X: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<X> {
        match self {
            Wire::One(link) => command.query_async(link).await,
            // In a box, so that commands to a server by itself need no room for it.
            Wire::Cluster(link) => Ok(X::from_redis_value(Box::pin(follow(link, command)).await?)?),
        }
    }

    /// Sends commands in one piece to a server by itself, and waits for all answers.
    pub async fn query_pipeline(&mut self, commands: &Pipeline) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Wire::One(link) => commands.clone().ignore_errors().query_async(link).await,
            Wire::Cluster(_) => Err((ErrorKind::Client, "transactions in a cluster are not supported").into()),
        }
    }

    /// Sends commands that do not depend on each other, and waits for all answers.
    pub async fn query_all<X: FromRedisValue>(&self, commands: &[Cmd]) -> RedisResult<Vec<X>> {
        let sent = stream::iter(commands).map(|command| {
            let mut wire = self.clone();
            async move { wire.query(command).await }
        });
        sent.buffered(TOGETHER_MAX).try_collect().await
    }
}

/// A connection without time limits of its own: those of Encore hold.
pub async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Sends a command to the node that has its key, and follows redirects. A node that redirects has not
/// executed the command.
async fn follow(link: &mut ClusterConnection, command: &Cmd) -> RedisResult<Value> {
    let mut done: RedisResult<Value> = command.query_async(link).await;
    for _ in 0..REDIRECTS_MAX {
        let Err(error) = &done else { break };
        let Some(node) = redirect(error) else { break };
        done = match error.kind() {
            // The slot is on its way to another node. That one takes the command only after ASKING.
            ErrorKind::Server(ServerErrorKind::Ask) => {
                let mut both = redis::pipe();
                both.cmd("ASKING").add_command(command.clone());
                let answers = link.route_pipeline(both, 1, 1, node).await;
                answers.and_then(|answers| answers.into_iter().next().unwrap_or(Value::Nil).extract_error())
            }
            // By now the driver asks for the slots of all nodes, and then goes on.
            _ => {
                let sent = link.route_command(command.clone(), RoutingInfo::SingleNode(node)).await;
                sent.and_then(Value::extract_error)
            }
        };
    }
    done
}

/// The node that has the key, if that is what an error says.
fn redirect(error: &RedisError) -> Option<SingleNodeRoutingInfo> {
    let (address, _) = error.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
    Some(SingleNodeRoutingInfo::ByAddress { host, port: port.parse().ok()? })
}
