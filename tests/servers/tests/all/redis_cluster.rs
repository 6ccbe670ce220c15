//! Redis clusters: all slots are served, also after a restart, and nothing is left at the end.

use servers::{RedisCluster, Server};

use crate::support;

/// What a node answers to a command.
fn ask(node: &Server, command: &str) -> String {
    support::memcached(node, &format!("{command}\r\n"), "\r\n")
}

#[test]
fn a_cluster_serves_each_key_on_one_node() {
    let Some(cluster) = RedisCluster::start() else { return };
    let mut written = vec![0; cluster.nodes().len()];
    for number in 0..30 {
        let key = format!("key{number}");
        for (node, count) in cluster.nodes().iter().zip(&mut written) {
            let is_its_node = std::ptr::eq(node, cluster.node_of(&key));
            let answer = ask(node, &format!("SET {key} x"));
            assert!(answer.starts_with(if is_its_node { "+OK" } else { "-MOVED" }), "{key}: {answer}");
            *count += u32::from(is_its_node);
        }
    }
    assert!(written.iter().all(|count| *count > 0), "{written:?}");
    // A node comes back into its cluster, at its old place.
    let node = cluster.node_of("key0");
    node.kill();
    node.restart();
    cluster.await_ready();
    assert!(ask(node, "SET key0 x").starts_with("+OK"));
    let processes: Vec<u32> = cluster.nodes().iter().flat_map(Server::processes).collect();
    assert_eq!(processes.len(), cluster.nodes().len());
    drop(cluster);
    assert!(!processes.iter().any(|id| support::is_alive(*id)));
}

#[test]
fn a_cluster_is_lent_to_one_test_at_a_time() {
    let Some(first) = servers::redis_cluster() else { return };
    let Some(second) = servers::redis_cluster() else { return };
    let urls = [first.url(), second.url()];
    assert_ne!(urls[0], urls[1]);
    drop(first);
    let again = servers::redis_cluster().expect("the first one");
    assert_eq!(again.url(), urls[0]);
}
