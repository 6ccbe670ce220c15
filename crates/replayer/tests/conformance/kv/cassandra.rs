//! Cassandra: what is stored, blind writes in the order of the trace, foreign tables, levels and copies that do not
//! fit, writes to a node that stops answering.

use replayer::any_store;
use replayer::experiment::Control;
use replayer::stores::cassandra::Cassandra;
use replayer::stores::{Blame, OperationError};
use schemas::vocabulary::kv::Verb;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use servers::Proxy;

use super::model::Model;
use super::subjects::{database, number, subject};
use super::{BUSY, operation, points, refused, with_mix};
use crate::place::Place;
use crate::subjects::url_with;

/// The record 0 of every data set with hashed keys.
const KEY: &str = "user6284781860667377211";

fn with_session<X>(url: &str, work: impl AsyncFnOnce(Session) -> X) -> X {
    let hosts = url["cassandra://".len()..].split('/').next().expect("hosts").split(',');
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let session = SessionBuilder::new().known_nodes(hosts).build().await.expect(url);
        work(session).await
    })
}

/// Statements, one after the other.
fn execute(url: &str, statements: &[String]) {
    with_session(url, async |session| {
        for statement in statements {
            session.query_unpaged(statement.as_str(), ()).await.expect(statement);
        }
    });
}

/// The only row of an answer.
fn ask<R>(url: &str, query: &str) -> R
where
    R: for<'frame, 'metadata> scylla::deserialize::row::DeserializeRow<'frame, 'metadata>,
{
    with_session(url, async |session| {
        let answer = session.query_unpaged(query, ()).await.expect(query);
        answer.into_rows_result().expect("rows").single_row::<R>().expect("one row")
    })
}

/// Records are rows as YCSB stores them, and partitions by themselves unless sessions scan.
#[test]
fn records_in_cassandra_are_those_of_ycsb() {
    for scans in [false, true] {
        let keyspace = database();
        let Some(url) = servers::cassandra_url(&keyspace) else { return };
        let place = with_mix(if scans { "read = 1\nscan = 1\n" } else { "read = 1\n" }, &["fragments=2"]);
        any_store::open(&url).expect(&url).load(&place.source, &|_, _| {}).expect(&url);
        let filter = format!("y_id = '{KEY}' ALLOW FILTERING");
        let query = format!("SELECT field3, writetime(field3) FROM {keyspace}.usertable WHERE {filter}");
        let (value, time) = ask::<(String, i64)>(&url, &query);
        let mut expected = String::new();
        Model::of(&place.source).values.initial(0, 3, &mut expected);
        assert_eq!((value, time), (expected, 1));
        let partitions =
            format!("SELECT DISTINCT {} FROM {keyspace}.usertable", if scans { "fragment" } else { "y_id" });
        let count = with_session(&url, async |session| {
            let answer = session.query_unpaged(partitions, ()).await.expect("partitions");
            answer.into_rows_result().expect("rows").rows_num()
        });
        assert_eq!(count, if scans { 2 } else { 240 });
    }
}

/// With their places in the trace as timestamps, blind writes at the weakest levels leave one state.
#[test]
fn blind_writes_leave_the_state_of_the_trace() {
    let points = points(&["fragments=2"]);
    let scanning = Place::with(BUSY, &["fragments=2"]);
    for place in [&points, &scanning] {
        let Some(url) = servers::cassandra_url(&database()) else { return };
        let url = url_with(&url, "read_level=ONE&write_level=ONE&coordinator=by-thread");
        let store = any_store::open(&url).expect(&url);
        let source = &place.source;
        for threads in [1, 9] {
            store.load(source, &|_, _| {}).expect(&url);
            assert_eq!(store.digest(source).expect(&url).to_string(), place.digest(Some(0)));
            let experiment = place.experiment(&url, threads, &format!("run-{}", number()));
            store.check(&experiment).expect(&url);
            let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect(&url);
            assert_eq!((report.failed, report.unknown, report.skipped), (0, 0, 0), "{url}");
            assert_eq!(store.digest(source).expect(&url).to_string(), place.digest(None), "{url}");
            let setting = |name: &str| report.store_settings.get(name).cloned().unwrap_or_default();
            assert_eq!((setting("read_level"), setting("write_level")), ("ONE".into(), "ONE".into()));
            assert!(setting("version").starts_with("Cassandra "), "{:?}", report.store_settings);
            assert_eq!(setting("durability"), "at checkpoints: the commit log goes to disk every 10000 ms");
            let isolation = if setting("nodes") == "1" { "linearizable: " } else { "none: reads at ONE may miss" };
            assert!(setting("isolation").starts_with(isolation), "{:?}", report.store_settings);
        }
    }
}

/// A blind update of a record that another session deletes would bring a part of it back.
#[test]
fn deletes_that_race_are_refused_without_conditions() {
    let Some(url) = servers::cassandra_url(&database()) else { return };
    let place = points(&["access.ordered_writes=false"]);
    let words = ["mix.delete", "access.ordered_writes = true", "conditions=lwt"];
    refused(any_store::open(&url).expect(&url).load(&place.source, &|_, _| {}), Blame::Usage, &words);
    let strict = url_with(&url, "conditions=lwt");
    any_store::open(&strict).expect(&url).load(&place.source, &|_, _| {}).expect(&url);
}

#[test]
fn foreign_tables_in_cassandra_are_refused_and_unchanged() {
    let keyspace = database();
    let Some(url) = servers::cassandra_url(&keyspace) else { return };
    let place = points(&[]);
    let create = [
        format!("CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"),
        format!("CREATE TABLE {keyspace}.usertable (y_id text PRIMARY KEY, field0 text)"),
        format!("INSERT INTO {keyspace}.usertable (y_id, field0) VALUES ('user1', 'precious')"),
    ];
    execute(&url, &create);
    let store = any_store::open(&url).expect(&url);
    let refuses = |table: &str| {
        let words = [table, "Encore has not made", "choose another keyspace"];
        refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &words);
    };
    refuses("table usertable");
    refused(store.positions(&place.source), Blame::Usage, &["table usertable"]);
    let query = format!("SELECT field0 FROM {keyspace}.usertable");
    assert_eq!(ask::<(String,)>(&url, &query).0, "precious");
    execute(&url, &[format!("DROP TABLE {keyspace}.usertable")]);
    store.load(&place.source, &|_, _| {}).expect(&url);
    // Also beside Encore's own tables.
    execute(&url, &[format!("CREATE TABLE {keyspace}.precious (id int PRIMARY KEY)")]);
    refuses("table precious");
    refused(store.adopt(&place.source), Blame::Usage, &["--keep-data does not support Cassandra"]);
}

#[test]
fn levels_and_copies_that_do_not_fit_the_cluster_are_refused() {
    let keyspace = database();
    let Some(url) = servers::cassandra_url(&keyspace) else { return };
    let place = points(&[]);
    let load = |parameters: &str| {
        let url = url_with(&url, parameters);
        any_store::open(&url).expect(&url).load(&place.source, &|_, _| {})
    };
    let nodes = if servers::cassandra_cluster().is_some() { 3 } else { 1 };
    let words = [&format!("asks for 9 copies of each row, and the cluster has {nodes} nodes"), "replication_factor="];
    refused(load("replication_factor=9"), Blame::Usage, &words.map(|word| word as &str));
    let words = ["read_level: TWO needs 2 copies", "the keyspace has 1", "replication_factor"];
    refused(load("replication_factor=1&read_level=TWO"), Blame::Usage, &words);
    load("replication_factor=1&read_repair=NONE&speculative_retry=NEVER").expect(&url);
    let query = format!(
        "SELECT read_repair, speculative_retry FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND \
         table_name = 'usertable'"
    );
    assert_eq!(ask::<(String, String)>(&url, &query), ("NONE".into(), "NEVER".into()));
    let check = |parameters: &str| {
        let url = url_with(&url, parameters);
        any_store::open(&url).expect(&url).positions(&place.source)
    };
    let words = ["was loaded with replication_factor=1, read_repair=NONE, speculative_retry=NEVER", "load it again"];
    refused(check("replication_factor=1"), Blame::Usage, &words);
    let wrong = url_with(&url, "coordinator=127.0.0.99:1");
    let subject = subject(&wrong, Cassandra::open).loaded(&place.source);
    let experiment = place.experiment(&wrong, 1, &format!("run-{}", number()));
    subject.store().check(&experiment).expect("the state is right");
    let error = subject.store().run(&experiment, &Control::default(), &mut |_| {}).expect_err("no such node");
    assert!(error.to_string().contains("127.0.0.99:1 is not a node of the cluster; its nodes are"), "{error}");
}

/// A write that was sent and has no answer may have happened; one that was not sent has not.
#[test]
fn writes_to_a_lost_node_have_the_right_fate() {
    let Some(server) = servers::cassandra() else { return };
    let proxy = Proxy::start(&server.address());
    let url = url_with(&server.url_through(&proxy, &database()), "timeout_ms=300");
    let place = points(&[]);
    let subject = subject(&url, Cassandra::open).loaded(&place.source);
    let mut client = subject.connect(&place.source);
    let operation = |verb| operation(verb, 5, 15, 0);
    client.execute(&operation(Verb::Update)).expect("an update");
    proxy.hold(true);
    let late = client.execute(&operation(Verb::Update));
    assert_eq!(late.err(), Some(OperationError::Unknown("timed out after 300 ms".into())));
    let read = client.execute(&operation(Verb::Read));
    assert!(matches!(read, Err(OperationError::Failed(_))), "{read:?}");
    proxy.hold(false);
    client.execute(&operation(Verb::Update)).expect("the node answers again");
    proxy.refuse(true);
    proxy.cut();
    // The driver may or may not have noticed yet.
    let lost = client.execute(&operation(Verb::Update));
    assert!(matches!(lost, Err(OperationError::Unknown(_) | OperationError::Failed(_))), "{lost:?}");
    let unsent = client.execute(&operation(Verb::Update));
    assert!(matches!(&unsent, Err(OperationError::Failed(why)) if why.contains("cannot connect")), "{unsent:?}");
}
