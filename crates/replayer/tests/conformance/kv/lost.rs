//! Writes to a server that stops answering, or dies.

use replayer::stores::OperationError;
use replayer::stores::kv::KvData;
use replayer::stores::memcached::Memcached;
use replayer::stores::redis::Redis;
use schemas::vocabulary::kv::{Kv, Verb};

use super::subjects::{memcached_url, separate_memcached, subject};
use super::{operation, points};
use crate::subjects::{Subject, url_with};

/// A write that was sent and has no answer may have happened; one that was not sent has not.
#[test]
fn writes_to_a_lost_server_have_the_right_fate() {
    if let Some(server) = servers::Server::start(servers::Kind::Redis, servers::Options::default()) {
        let url = url_with(&server.url("0"), "timeout_ms=300");
        lose(&server, &subject(&url, Redis::open), || {});
    }
    if let Some(cluster) = servers::RedisCluster::start() {
        let url = url_with(&cluster.url(), "timeout_ms=300");
        let key = KvData::of(&points(&[]).source).keys.key(RECORD);
        lose(cluster.node_of(&key), &subject(&url, Redis::open), || cluster.await_ready());
    }
    if let Some(server) = separate_memcached() {
        let url = url_with(&memcached_url(&server), "timeout_ms=300");
        lose(&server, &subject(&url, Memcached::open), || {});
    }
}

/// The record that is written.
const RECORD: u64 = 5;

/// `await_ready` waits until a server that has restarted takes commands.
fn lose(server: &servers::Server, subject: &Subject<Kv>, await_ready: impl Fn()) {
    let place = points(&[]);
    subject.load(&place.source);
    let mut client = subject.connect(&place.source);
    let operation = |verb| operation(verb, RECORD, 15, 0);
    server.pause();
    let late = client.execute(&operation(Verb::Update));
    assert_eq!(late.err(), Some(OperationError::Unknown("timed out after 300 ms".into())));
    let read = client.execute(&operation(Verb::Read));
    assert!(matches!(read, Err(OperationError::Failed(_))), "{read:?}");
    server.resume();
    client.execute(&operation(Verb::Update)).expect("the server answers again");
    server.kill();
    let lost = client.execute(&operation(Verb::Update));
    assert!(matches!(lost, Err(OperationError::Unknown(_))), "{lost:?}");
    let unsent = client.execute(&operation(Verb::Update));
    assert!(matches!(&unsent, Err(OperationError::Failed(why)) if why.contains("cannot connect")), "{unsent:?}");
    // The new server has no scripts, and no data.
    server.restart();
    await_ready();
    let missing = client.execute(&operation(Verb::Update));
    assert!(matches!(&missing, Err(OperationError::Failed(why)) if why.contains("does not exist")), "{missing:?}");
    client.execute(&operation(Verb::Insert)).expect("an insert");
    assert_eq!(client.execute(&operation(Verb::Read)).expect("a read").values.len(), 5);
}
