//! Real database servers on loopback, for tests and for trying Encore out.
//!
//! [`postgres`], [`mysql`], [`mongodb`], [`memcached`], [`redis`] and [`cassandra`] return one server of a kind
//! for the whole test process, started at first use. [`redis_cluster`] lends a Redis cluster of three
//! primaries, and [`cassandra_cluster`] is a Cassandra cluster of three nodes, if `ENCORE_TEST_CLUSTER` asks for it.
//! [`s3`] returns an S3 server, for the object storage of trace sets and runs. [`replicated()`] returns PostgreSQL, MongoDB or Redis with replicas. [`Server::start`] starts a separate server, which a test can
//! kill, restart or pause. [`Proxy`] forwards between a client and a server, and cuts, delays or
//! holds connections.
//!
//! If an environment variable names a server of the user (`ENCORE_TEST_POSTGRES_URL`,
//! `ENCORE_TEST_MYSQL_URL`, `ENCORE_TEST_MONGODB_URL`, `ENCORE_TEST_REDIS_URL`, `ENCORE_TEST_CASSANDRA_URL`,
//! HOST:PORT in `ENCORE_TEST_MEMCACHED`, and `http://KEY:SECRET@HOST:PORT` with a bucket `encore` in
//! `ENCORE_TEST_S3_URL`),
//! the shared server is that one. If a server's programs are not on the machine, there is no
//! server, and a line on standard error reports it. With `ENCORE_TEST_SERVERS=required` that is a
//! panic. Servers are started on Linux only.
//!
//! A server ends and its folder is removed when the process that started it ends, for whatever
//! reason. A small shell process, the *keeper*, does this (`keeper.sh`).
//!
//! ```no_run
//! use servers::{Kind, Options, Proxy, Server};
//!
//! // The shared server, with a database for this test:
//! let Some(shared) = servers::postgres() else { return };
//! println!("{}", shared.url("encore"));
//!
//! // A separate server, with faults:
//! let options = Options { arguments: &["-c", "max_connections=12"], ..Options::default() };
//! let Some(server) = Server::start(Kind::Postgres, options) else { return };
//! let proxy = Proxy::start(&server.address());
//! println!("{}", server.url_through(&proxy, "encore"));
//! proxy.cut_replies_every(7);
//! server.kill();
//! server.restart();
//! ```

mod cassandra_cluster;
mod engines;
mod error;
mod foreign;
mod keeper;
mod machine;
mod ports;
mod processes;
pub mod proxy;
mod redis_cluster;
mod replicated;
mod s3;
mod server;
mod shared;

pub use cassandra_cluster::CassandraCluster;
pub use engines::Kind;
pub use error::StartError;
pub use proxy::Proxy;
pub use redis_cluster::{Lent, RedisCluster, redis_cluster};
pub use replicated::{ReplicaOptions, Replicated};
pub use s3::{S3, s3};
pub use server::{Options, Server};
pub use shared::{cassandra, cassandra_cluster, cassandra_url, memcached, mongodb, mysql, postgres, redis, replicated};
