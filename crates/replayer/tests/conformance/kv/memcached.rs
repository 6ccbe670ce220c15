//! memcached: what is stored, foreign items, scans, updates at the same time, evictions, times to live.

use std::io::{Read, Write};

use replayer::any_store;
use replayer::stores::memcached::Memcached;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, Blame, Connection, Serves};
use schemas::vocabulary::kv::{Operation, Verb, WriteId};

use super::model::Model;
use super::subjects::{memcached_url, separate_memcached, subject};
use super::{points, refused, with_mix};
use crate::subjects::url_with;

/// Sends a line to memcached, and reads what comes at once.
fn with_memcached(server: &servers::Server, request: &str, end: &str) -> String {
    let mut stream = std::net::TcpStream::connect(server.address()).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    while !answer.ends_with(end) {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).expect("an answer");
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
    }
    answer
}

#[test]
fn items_in_memcached_are_those_of_ycsb_and_foreign_ones_are_refused() {
    let Some(server) = separate_memcached() else { return };
    let place = points(&["data.fields=2", "data.field_length='constant'"]);
    let url = memcached_url(&server);
    let subject = subject(&url, Memcached::open);
    assert_eq!(with_memcached(&server, "set precious 0 0 2\r\n42\r\n", "\r\n"), "STORED\r\n");
    let refuses = || {
        let load = subject.store().load(&place.source, &|_, _| {});
        refused(load, Blame::Usage, &["contains the item \"precious\"", "flush_all"]);
        assert!(with_memcached(&server, "get precious\r\n", "END\r\n").contains("\r\n42\r\n"));
    };
    refuses();
    assert_eq!(with_memcached(&server, "delete precious\r\n", "\r\n"), "DELETED\r\n");
    subject.load(&place.source);
    let item = with_memcached(&server, "get usertable-user6284781860667377211\r\n", "END\r\n");
    let mut expected = [String::new(), String::new()];
    let model = Model::of(&place.source);
    expected.iter_mut().zip(0..).for_each(|(text, field)| model.values.initial(0, field, text));
    let json = format!("{{\"field0\":\"{}\",\"field1\":\"{}\"}}", expected[0], expected[1]);
    assert_eq!(item.lines().nth(1), Some(json.as_str()), "{item}");
    // Also beside Encore's own items.
    assert_eq!(with_memcached(&server, "set precious 0 0 2\r\n42\r\n", "\r\n"), "STORED\r\n");
    refuses();
}

#[test]
fn scans_of_memcached_are_refused_before_anything_starts() {
    let Some(server) = separate_memcached() else { return };
    let place = with_mix("read = 1\nscan = 1\n", &[]);
    let store = any_store::open(&memcached_url(&server)).expect("a store");
    let words = ["has no scans", "mix.scan", "redis://", "mongodb://"];
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &words);
    let items = with_memcached(&server, "stats\r\n", "END\r\n");
    assert!(items.contains("STAT curr_items 0\r\n"), "{items}");
}

/// Writers of different fields of one record do not undo each other, and say how often they tried.
#[test]
fn updates_in_memcached_are_atomic() {
    let Some(server) = separate_memcached() else { return };
    let place = points(&["data.records=1", "fragments=1"]);
    let url = memcached_url(&server);
    let subject = subject(&url, Memcached::open);
    subject.load(&place.source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let store = Memcached::open(StoreUrl::parse(&url).expect("a URL")).expect("a store");
    let update = |field: u64, session| Operation {
        verb: Verb::Update,
        key: 0,
        fields: 1 << field,
        length: 0,
        id: WriteId::new(0, session, 0),
        amount: 0,
    };
    let attempts: u64 = runtime.block_on(async {
        let connections = store.connect(&place.source, 0..4).await.expect("connections");
        let writers = connections.into_iter().zip(0..).map(async |(mut connection, field)| {
            let mut attempts = 0;
            for session in 0..100 {
                let mut answer = Answer::default();
                answer.clear();
                connection.execute(&update(field, session), &mut answer).await.expect("an update");
                attempts += answer.attempts as u64;
            }
            attempts
        });
        futures::future::join_all(writers).await.into_iter().sum()
    });
    assert!(attempts > 400, "{attempts}");
    let read = Operation { verb: Verb::Read, fields: 15, ..update(0, 0) };
    let seen = subject.connect(&place.source).execute(&read).expect("a read").values;
    let last = WriteId::new(0, 99, 0).number();
    assert_eq!(seen, [15, last, last, last, last]);
}

/// The load of a data set that did not fit succeeded, and every experiment was void then.
#[test]
fn a_data_set_that_does_not_fit_is_refused() {
    let options = servers::Options { arguments: &["-m", "2"], ..servers::Options::default() };
    let Some(server) = servers::Server::start(servers::Kind::Memcached, options) else { return };
    let place = points(&["data.records=3000", "data.field_bytes=4000", "data.field_bytes_min=4000"]);
    let store = any_store::open(&memcached_url(&server)).expect("a store");
    // The server is left empty, so a second load says the same.
    for _ in 0..2 {
        let words = ["the 3000 records of", "do not fit into the server's 2 MB", "more memory (-m ", "data.records"];
        refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &words);
    }
    let few = points(&[]);
    store.load(&few.source, &|_, _| {}).expect("a load of what fits");
    store.check(&few.experiment(&memcached_url(&server), 1, "run")).expect("all of it is there");
}

/// A record that is evicted after the load is missing, and the check before an experiment finds that.
#[test]
fn missing_items_are_noticed() {
    let Some(server) = separate_memcached() else { return };
    let place = points(&[]);
    let store = any_store::open(&memcached_url(&server)).expect("a store");
    store.load(&place.source, &|_, _| {}).expect("a load");
    let answer = with_memcached(&server, "delete usertable-user6284781860667377211\r\n", "\r\n");
    assert_eq!(answer, "DELETED\r\n");
    let checked = store.check(&place.experiment(&memcached_url(&server), 1, "run"));
    refused(checked, Blame::State, &["found 239", "has 240", "more memory (-m)"]);
}

#[test]
fn times_to_live_are_kept() {
    let forever = points(&[]);
    let Some(server) = separate_memcached() else { return };
    let url = memcached_url(&server);
    let store = any_store::open(&url_with(&url, "ttl=500")).expect(&url);
    store.load(&forever.source, &|_, _| {}).expect(&url);
    let ttl = with_memcached(&server, "mg usertable-user6284781860667377211 t\r\n", "\r\n");
    let seconds = ttl.trim_end().strip_prefix("HD t").and_then(|ttl| ttl.parse::<i64>().ok());
    assert!(seconds.is_some_and(|seconds| (1..=500).contains(&seconds)), "{ttl}");
}
