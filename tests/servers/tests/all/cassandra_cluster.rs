//! Cassandra clusters: every node has a copy of a row, also after a restart, and nothing is left at the end.

use servers::{CassandraCluster, Server};

use crate::{cql, support};

#[test]
fn a_cluster_has_a_copy_of_each_row_on_each_node() {
    // It takes two gigabytes of memory: `tests/run --cluster` sets the variable.
    if std::env::var_os("ENCORE_TEST_CLUSTER").is_none_or(|value| value.is_empty()) {
        return;
    }
    let Some(cluster) = CassandraCluster::start() else { return };
    let nodes = cluster.nodes();
    for statement in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE k.t (id int PRIMARY KEY, value text)",
        "INSERT INTO k.t (id, value) VALUES (1, 'x')",
    ] {
        cql::query(&nodes[0], statement, if statement.starts_with("INSERT") { cql::ALL } else { cql::ONE })
            .expect(statement);
    }
    let read = |node: &Server, level| cql::query(node, "SELECT value FROM k.t", level).map(|answer| cql::text(&answer));
    for node in nodes {
        assert_eq!(read(node, cql::ALL).expect("an answer"), "x");
    }
    nodes[1].kill();
    support::until("the others notice it", || read(&nodes[0], cql::ALL).is_err());
    assert_eq!(read(&nodes[2], cql::ONE).expect("an answer"), "x");
    nodes[1].restart();
    cluster.await_ready();
    assert_eq!(read(&nodes[1], cql::ALL).expect("an answer"), "x");
    let processes: Vec<u32> = nodes.iter().flat_map(Server::processes).collect();
    assert_eq!(processes.len(), nodes.len());
    drop(cluster);
    assert!(!processes.iter().any(|id| support::is_alive(*id)));
}
