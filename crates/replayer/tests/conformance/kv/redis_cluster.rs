//! Redis clusters: which URLs fit which servers, foreign keys on any node, scans, redirects, no retries.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::any_store;
use replayer::stores::kv::KvData;
use replayer::stores::redis::Redis;
use replayer::stores::{Blame, OperationError};
use schemas::vocabulary::kv::{FoundRecords, Verb};
use servers::{RedisCluster, Server};

use super::subjects::subject;
use super::{operation, points, refused, scan, with_mix};
use crate::subjects::url_with;

/// One command on one node, whether the node has the key or not.
fn on<X: redis::FromRedisValue>(node: &Server, words: &str) -> redis::RedisResult<X> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = redis::Client::open(node.url("0")).expect("a URL");
        let mut link = client.get_multiplexed_async_connection().await.expect("a connection");
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().expect("a command"));
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut link).await
    })
}

/// One command on the node that has a key.
fn ask<X: redis::FromRedisValue>(cluster: &RedisCluster, command: &str, key: &str) -> X {
    on(cluster.node_of(key), &format!("{command} {key}")).expect(command)
}

#[test]
fn urls_that_do_not_fit_the_server_are_refused_with_the_remedy() {
    let place = points(&[]);
    let load = |url: &str| any_store::open(url).expect(url).load(&place.source, &|_, _| {});
    if let Some(cluster) = servers::redis_cluster() {
        for number in ["0", "3"] {
            let words = ["runs in cluster mode", "add cluster=true"];
            refused(load(&cluster.nodes()[1].url(number)), Blame::Usage, &words);
        }
        // Any of the nodes will do, and one of several that answers.
        load(&url_with(&cluster.nodes()[2].url("0"), "cluster=true")).expect("a load");
        let several = format!("redis://127.0.0.1:1,{}/?cluster=true", cluster.nodes()[1].address());
        load(&several).expect("a load");
    }
    if let Some(server) = servers::redis() {
        let url = url_with(&server.url("0"), "cluster=true");
        refused(load(&url), Blame::Usage, &["does not run in cluster mode", "remove cluster=true"]);
    }
}

#[test]
fn foreign_keys_on_any_node_are_refused_and_unchanged() {
    let Some(cluster) = servers::redis_cluster() else { return };
    let place = points(&[]);
    let store = any_store::open(&cluster.url()).expect("a store");
    let load = || store.load(&place.source, &|_, _| {});
    for node in cluster.nodes() {
        let is_here = |key: &String| std::ptr::eq(cluster.node_of(key), node);
        let key = (0..).map(|number| format!("precious{number}")).find(is_here).expect("a key of the node");
        // Beside Encore's own keys, and alone.
        for is_alone in [false, true] {
            match is_alone {
                false => drop(load().expect("a load")),
                true => cluster.nodes().iter().for_each(|node| on(node, "FLUSHDB").expect("FLUSHDB")),
            }
            on::<()>(node, &format!("SET {key} 42")).expect("SET");
            let words =
                if is_alone { ["1 keys that Encore has not made", "FLUSHDB"] } else { ["contains the key", &key] };
            refused(load(), Blame::Usage, &words);
            assert_eq!(ask::<String>(&cluster, "GET", &key), "42");
            ask::<()>(&cluster, "DEL", &key);
        }
    }
}

/// Keys of all nodes are counted and replaced, and a comparison sees what kind of server it was.
#[test]
fn records_are_on_all_nodes() {
    let Some(cluster) = servers::redis_cluster() else { return };
    let counts = || -> Vec<u64> { cluster.nodes().iter().map(|node| on(node, "DBSIZE").expect("DBSIZE")).collect() };
    for (mix, keys) in [("read = 1\nscan = 1\n", 242), ("read = 1\n", 241)] {
        let place = with_mix(mix, &[]);
        let subject = subject(&cluster.url(), Redis::open);
        subject.load(&place.source);
        assert!(counts().iter().sum::<u64>() == keys && counts().iter().all(|count| *count > 20), "{:?}", counts());
        let report = {
            let experiment = place.experiment(&cluster.url(), 2, "run");
            subject.store().check(&experiment).expect("a loaded store");
            subject.store().run(&experiment, &Default::default(), &mut |_| {}).expect("a run")
        };
        assert_eq!((report.failed, report.unknown), (0, 0));
        let settings = &report.store_settings;
        let told = ["mode", "primaries", "cluster_replicas"].map(|name| settings[name].as_str());
        assert_eq!(told, ["cluster", "3", "0"], "{settings:?}");
        assert_eq!(settings["isolation"], "linearizable: scans are not atomic");
        std::fs::remove_dir_all(place.path().join("run")).expect("a run folder");
    }
}

/// A key of the index whose record is deleted meanwhile must not cost a scan one of the records behind.
#[test]
fn a_scan_reads_on_where_records_are_deleted_meanwhile() {
    let Some(cluster) = servers::redis_cluster() else { return };
    let place = with_mix("read = 1\nscan = 1\n", &["data.key_order='ordered'", "data.key_digits=4", "data.records=50"]);
    let data = KvData::of(&place.source);
    let subject = subject(&cluster.url(), Redis::open);
    subject.load(&place.source);
    let mut client = subject.connect(&place.source);
    let deleted = [10, 12, 13, 14, 49];
    for record in deleted {
        ask::<()>(&cluster, "DEL", &data.keys.key(record));
    }
    let mut seen = |from, length| -> Vec<i64> {
        let values = client.execute(&scan(from, 0b11, length)).expect("a scan").values;
        FoundRecords::new(&values).map(|one| one.expect("a record").0).collect()
    };
    assert_eq!(seen(10, 1), [11]);
    assert_eq!(seen(10, 4), [11, 15, 16, 17]);
    assert_eq!(seen(46, 10), [46, 47, 48]);
    assert_eq!(seen(49, 2), [0; 0]);
}

/// Of two commands of a write, the second may be refused: the index is on another node than the record.
#[test]
fn half_a_write_has_the_right_fate() {
    let Some(cluster) = servers::redis_cluster() else { return };
    let place = with_mix("read = 1\nscan = 1\n", &["data.key_order='ordered'", "data.key_digits=4", "data.records=50"]);
    let data = KvData::of(&place.source);
    let subject = subject(&cluster.url(), Redis::open);
    subject.load(&place.source);
    let mut client = subject.connect(&place.source);
    let index = cluster.node_of("encore:keys");
    let is_apart = |record: &u64| !std::ptr::eq(cluster.node_of(&data.keys.key(*record)), index);
    let old = (0..50).find(is_apart).expect("a record on another node");
    let new = (50..).find(is_apart).expect("a record on another node");
    let set = |record: u64, count: u32| {
        let node = cluster.node_of(&data.keys.key(record));
        on::<()>(node, &format!("CONFIG SET min-replicas-to-write {count}")).expect("CONFIG SET");
    };
    let mut perform = |operation| client.execute(&operation);
    // Scans no longer find the record of a delete of unknown fate, and reads may still find it.
    set(old, 1);
    let half = perform(operation(Verb::Delete, old, 0, 1));
    assert!(matches!(&half, Err(OperationError::Unknown(why)) if why.contains("NOREPLICAS")), "{half:?}");
    let none = perform(operation(Verb::Delete, old, 0, 2));
    assert!(matches!(&none, Err(OperationError::Failed(why)) if why.contains("NOREPLICAS")), "{none:?}");
    set(old, 0);
    // It is there, with its initial values.
    assert_eq!(perform(operation(Verb::Read, old, 0b11, 0)).expect("a read").values, [0]);
    assert_eq!(perform(scan(old, 0b11, 1)).expect("a scan").values[0], old as i64 + 1);
    perform(operation(Verb::Delete, old, 0, 3)).expect("a delete");
    assert_eq!(perform(operation(Verb::Read, old, 0b11, 0)).expect("a read").values, [0; 0]);
    // An insert that is refused has not happened, although its key is in the index.
    set(new, 1);
    let half = perform(operation(Verb::Insert, new, 0b1111, 4));
    assert!(matches!(&half, Err(OperationError::Failed(why)) if why.contains("NOREPLICAS")), "{half:?}");
    set(new, 0);
    assert_eq!(perform(scan(new, 0b11, 1)).expect("a scan").values, [0; 0]);
    perform(operation(Verb::Insert, new, 0b1111, 5)).expect("an insert");
    assert_eq!(perform(scan(new, 0b11, 1)).expect("a scan").values[0], new as i64);
}

/// A node that no longer has a slot says who has it, and the client follows.
#[test]
fn slots_that_move_are_followed() {
    let Some(cluster) = RedisCluster::start() else { return };
    let place = points(&[]);
    let subject = subject(&cluster.url(), Redis::open);
    subject.load(&place.source);
    let mut client = subject.connect(&place.source);
    let key = KvData::of(&place.source).keys.key(5);
    let from = cluster.node_of(&key);
    let to = cluster.nodes().iter().find(|node| !std::ptr::eq(*node, from)).expect("another node");
    let id = |node: &Server| on::<String>(node, "CLUSTER MYID").expect("an id");
    let slot: u64 = on(from, &format!("CLUSTER KEYSLOT {key}")).expect("a slot");
    let set = |node: &Server, state: &str| on::<()>(node, &format!("CLUSTER SETSLOT {slot} {state}")).expect(state);
    // On its way: the old node answers ASK for a key that it does not have.
    client.execute(&operation(Verb::Delete, 5, 0, 0)).expect("a delete");
    set(to, &format!("IMPORTING {}", id(from)));
    set(from, &format!("MIGRATING {}", id(to)));
    client.execute(&operation(Verb::Insert, 5, 15, 1)).expect("an insert");
    assert_eq!(client.execute(&operation(Verb::Read, 5, 15, 0)).expect("a read").values.len(), 5);
    // There: the old node answers MOVED.
    for node in cluster.nodes().iter().filter(|node| !std::ptr::eq(*node, from)).chain([from]) {
        set(node, &format!("NODE {}", id(to)));
    }
    client.execute(&operation(Verb::Update, 5, 15, 2)).expect("an update");
    assert_eq!(client.execute(&operation(Verb::Read, 5, 15, 0)).expect("a read").values.len(), 5);
    assert_eq!(on::<u64>(to, &format!("EXISTS {key}")).expect("EXISTS"), 1);
}

/// A write that was sent and has no answer may have happened. The driver must not send it again: its
/// own retries would report an insert that has happened as one of a record that exists already.
#[test]
fn the_driver_does_not_repeat_a_write() {
    let writes = Arc::new(AtomicU32::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let counter = writes.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = counter.clone();
            std::thread::spawn(move || hang_up_at_writes(stream, address.port(), &counter));
        }
    });
    let place = points(&[]);
    let subject = subject(&format!("redis://{address}/?cluster=true"), Redis::open);
    let mut client = subject.connect(&place.source);
    for sent in 1..4 {
        let lost = client.execute(&operation(Verb::Update, 5, 15, 0));
        assert!(matches!(&lost, Err(OperationError::Unknown(why)) if !why.contains("timed out")), "{lost:?}");
        assert_eq!(writes.load(Ordering::SeqCst), sent);
    }
}

/// Answers as the only node of a cluster, up to the first write.
fn hang_up_at_writes(mut stream: TcpStream, port: u16, writes: &AtomicU32) {
    let mut requests = BufReader::new(stream.try_clone().expect("a second handle"));
    while let Some(words) = request(&mut requests) {
        let answer = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["CLUSTER", "SLOTS"] => {
                format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
            }
            ["GET", ..] => "$-1\r\n".to_string(),
            ["DBSIZE"] => ":0\r\n".to_string(),
            ["SCRIPT", "LOAD", ..] => "$4\r\nname\r\n".to_string(),
            ["EVALSHA", ..] => {
                writes.fetch_add(1, Ordering::SeqCst);
                return;
            }
            _ => "+OK\r\n".to_string(),
        };
        stream.write_all(answer.as_bytes()).expect("an answer is sent");
    }
}

/// The words of a request; None at its end.
fn request(requests: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let number = |requests: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        requests.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    let count = number(requests)?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let mut word = vec![0; number(requests)? + 2];
        requests.read_exact(&mut word).ok()?;
        words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    Some(words)
}
