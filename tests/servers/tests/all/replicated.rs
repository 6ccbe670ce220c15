//! Servers with replicas: what the primary has, the replicas have too, also after a restart.

use servers::{Kind, ReplicaOptions, Replicated, Server};

use crate::support::{self, Client};

fn with_each(test: impl Fn(Kind, Replicated) + Sync) {
    std::thread::scope(|scope| {
        for kind in [Kind::Postgres, Kind::Mongodb, Kind::Redis] {
            let test = &test;
            scope.spawn(move || {
                let Some(servers) = Replicated::start(kind, ReplicaOptions::default()) else { return };
                test(kind, servers);
            });
        }
    });
}

/// Whether a server has the value. A secondary of MongoDB's does not let this client read, and says so.
fn follows(replica: &Server, value: &str) -> bool {
    replica.kind() == Kind::Mongodb || Client::of(replica).read() == value
}

#[test]
fn replicas_follow_and_end_with_their_primary() {
    with_each(|kind, servers| {
        let all: Vec<&Server> = std::iter::once(servers.primary()).chain(servers.replicas()).collect();
        assert_eq!(all.len(), usize::from(Replicated::count(kind)));
        let url = servers.url("encore");
        assert!(all.iter().all(|server| url.contains(&server.address())), "{url}");
        Client::of(servers.primary()).write("first");
        for replica in servers.replicas() {
            support::until("the replica has the value", || follows(replica, "first"));
            replica.kill();
        }
        for replica in servers.replicas() {
            replica.restart();
        }
        Client::of(servers.primary()).write("second");
        for replica in servers.replicas() {
            support::until("it has the next one", || follows(replica, "second"));
        }
        let processes: Vec<u32> = all.iter().flat_map(|server| server.processes()).collect();
        assert!(processes.len() >= all.len());
        drop(servers);
        assert!(!processes.iter().any(|id| support::is_alive(*id)), "{kind:?}");
    });
}
