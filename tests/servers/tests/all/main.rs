//! Tests with real servers, and with real connections.

mod cassandra_cluster;
mod cql;
mod environment;
mod lifecycle;
mod program;
mod proxy;
mod redis_cluster;
mod replicated;
mod support;
