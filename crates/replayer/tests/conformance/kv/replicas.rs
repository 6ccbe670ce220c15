//! Reads from replicas: what they see while the replica stands still, and which servers are refused.

use replayer::any_store;
use replayer::source::Source;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::postgres::Postgres;
use replayer::stores::redis::Redis;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, Blame, Connection, Serves, Store, StoreError};
use schemas::vocabulary::kv::{Found, FoundRecords, Kv, Verb};
use servers::{Kind, Options, Proxy, ReplicaOptions, Replicated, Server};
use sqlx::{Connection as _, Executor, PgConnection, Row};
use tokio::runtime::Runtime;

use super::subjects::{database, number, replicated};
use super::{operation, points, refused, scan, with_mix};
use crate::subjects::url_with;

/// The record that is written.
const RECORD: u64 = 5;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Whose value the record's first field has: the number of the write, 0 for the initial value.
async fn read<C: Connection<Kv>>(connection: &mut C) -> i64 {
    let mut answer = Answer::default();
    connection.execute(&operation(Verb::Read, RECORD, 1, 0), &mut answer).await.expect("a read");
    Found::read(&answer.values).expect("what a read finds").expect("a record").of(0)
}

/// The same, by a scan.
async fn read_by_scan<C: Connection<Kv>>(connection: &mut C) -> i64 {
    let mut answer = Answer::default();
    connection.execute(&scan(RECORD, 1, 1), &mut answer).await.expect("a scan");
    FoundRecords::new(&answer.values).next().expect("a record").expect("what a scan finds").1.of(0)
}

async fn update<C: Connection<Kv>>(connection: &mut C, number: u16) -> i64 {
    let update = operation(Verb::Update, RECORD, 1, number);
    connection.execute(&update, &mut Answer::default()).await.expect("an update");
    update.id.number()
}

async fn load<S: Serves<Kv>>(store: &S, source: &Source) {
    store.load(source, &|_, _| {}).await.unwrap_or_else(|error| panic!("{error}"));
}

async fn one<S: Serves<Kv>>(store: &S, source: &Source) -> S::Connection {
    store.connect(source, 0..1).await.unwrap_or_else(|error| panic!("{error}")).pop().expect("one")
}

/// While `hold` keeps the replica where it is, operations read what was there before. Transactions and the closing
/// read see the latest state. Connections wait until the replica has it.
fn replica_answers<S: Serves<Kv>>(
    url: &str,
    open: impl Fn(StoreUrl) -> Result<S, StoreError>,
    hold: impl Fn(&Runtime, bool),
) {
    let place = with_mix("read = 1\nupdate = 1\nscan = 1\n", &[]);
    let source = &place.source;
    let store = open(StoreUrl::parse(url).expect(url)).unwrap_or_else(|error| panic!("{error}"));
    let runtime = runtime();
    runtime.block_on(load(&store, source));
    let mut connection = runtime.block_on(one(&store, source));
    hold(&runtime, true);
    let written = runtime.block_on(async {
        let mut latest = store.connect_to_latest(source, 0..1).await.expect(url).pop().expect("one");
        let written = update(&mut connection, 1).await;
        assert_eq!((read(&mut connection).await, read_by_scan(&mut connection).await), (0, 0), "{url}");
        assert_eq!((read(&mut latest).await, read_by_scan(&mut latest).await), (written, written), "{url}");
        let mut answer = Answer::default();
        connection.begin(&mut answer).await.expect(url);
        assert_eq!(read(&mut connection).await, written, "{url}");
        connection.commit(&mut answer).await.expect(url);
        let settings = store.settings().await.unwrap_or_else(|error| panic!("{error}"));
        assert!(settings["isolation"].starts_with("stale reads: "), "{url}: {settings:?}");
        written
    });
    hold(&runtime, false);
    runtime.block_on(async {
        let mut next = one(&store, source).await;
        assert_eq!((read(&mut next).await, read_by_scan(&mut next).await), (written, written), "{url}");
    });
}

#[test]
fn reads_go_to_the_replica_of_postgresql() {
    let Some(servers) = Replicated::start(Kind::Postgres, ReplicaOptions::default()) else { return };
    let hold = |runtime: &Runtime, hold: bool| {
        runtime.block_on(async {
            let mut replica = PgConnection::connect(&servers.replicas()[0].url("postgres")).await.expect("a replica");
            let (order, state) = if hold { ("pause", "paused") } else { ("resume", "not paused") };
            let statement = sqlx::AssertSqlSafe(format!("SELECT pg_wal_replay_{order}()"));
            replica.execute(statement).await.expect("superuser");
            loop {
                let row = replica.fetch_one("SELECT pg_get_wal_replay_pause_state()").await.expect("a state");
                if row.get::<String, _>(0) == state {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
    };
    replica_answers(&servers.url("held"), Postgres::open, hold);
}

#[test]
fn reads_go_to_the_replica_of_redis() {
    let options = Options { arguments: &["--repl-diskless-sync-delay", "0"], ..Options::default() };
    let Some(primary) = Server::start(Kind::Redis, options) else { return };
    let link = Proxy::start(&primary.address());
    let port = link.address().rsplit(':').next().and_then(|port| port.parse().ok());
    let Some(replica) = Server::start(Kind::Redis, Options { primary: port, ..Options::default() }) else { return };
    let url = format!("{}?replica={}", primary.url("0"), replica.address());
    replica_answers(&url, Redis::open, |_, hold| link.hold(hold));
    // A write that no replica has in time may be lost.
    let place = points(&[]);
    let waiting = url_with(&url, "wait=1&wait_ms=50");
    let store = Redis::open(StoreUrl::parse(&waiting).expect(&waiting)).expect(&waiting);
    let runtime = runtime();
    runtime.block_on(load(&store, &place.source));
    let mut connection = runtime.block_on(one(&store, &place.source));
    runtime.block_on(update(&mut connection, 1));
    link.hold(true);
    let late = operation(Verb::Update, RECORD, 1, 2);
    let late = runtime.block_on(connection.execute(&late, &mut Answer::default()));
    let expected = "written, but 0 of 1 replicas had it within 50 ms".to_string();
    assert_eq!(late, Err(replayer::stores::OperationError::Unknown(expected)));
    link.hold(false);
}

#[test]
fn reads_go_to_the_secondaries_of_mongodb() {
    let Some(servers) = Replicated::start(Kind::Mongodb, ReplicaOptions::default()) else { return };
    let hold = |_: &Runtime, hold: bool| servers.hold(hold);
    let url = url_with(&servers.url("held"), "readPreference=secondary&w=1");
    replica_answers(&url, MongoDb::open, hold);

    // In a causal session a read waits until the secondary has what the session has written.
    let place = points(&[]);
    let url = url_with(&url, "causal=on&readConcernLevel=majority&timeout_ms=500");
    let store = MongoDb::open(StoreUrl::parse(&url).expect(&url)).expect(&url);
    let runtime = runtime();
    runtime.block_on(load(&store, &place.source));
    let mut connection = runtime.block_on(one(&store, &place.source));
    for number in 1..20 {
        let written = runtime.block_on(update(&mut connection, number));
        assert_eq!(runtime.block_on(read(&mut connection)), written);
    }
    servers.hold(true);
    runtime.block_on(update(&mut connection, 20));
    let read = operation(Verb::Read, RECORD, 1, 0);
    let late = runtime.block_on(connection.execute(&read, &mut Answer::default()));
    assert!(
        matches!(&late, Err(replayer::stores::OperationError::Failed(why)) if why.contains("timed out")),
        "{late:?}"
    );
    hold(&runtime, false);
}

/// What the strongest settings promise is in the settings, so that a comparison marks the weaker ones.
#[test]
fn promises_of_replicas_differ_from_those_of_their_primaries() {
    for url in replicated(&database()) {
        let place = points(&[]);
        any_store::open(&url).and_then(|store| store.load(&place.source, &|_, _| {})).unwrap_or_else(|e| panic!("{e}"));
        let weak = url.replace("synchronous_commit=remote_apply", "synchronous_commit=on");
        let weak =
            weak.replace("wait=1", "timeout_ms=9000").replace("readPreference=primary", "readPreference=nearest");
        let of = |url: &str| {
            let parsed = StoreUrl::parse(url).expect(url);
            let settings = match url.split(':').next() {
                Some("postgres") => runtime().block_on(async { Postgres::open(parsed)?.settings().await }),
                Some("mongodb") => runtime().block_on(async { MongoDb::open(parsed)?.settings().await }),
                _ => runtime().block_on(async { Redis::open(parsed)?.settings().await }),
            };
            settings.unwrap_or_else(|error| panic!("{error}"))
        };
        let (strong, weak) = (of(&url), of(&weak));
        assert!(weak["isolation"].starts_with("stale reads: "), "{weak:?}");
        assert!(!strong["isolation"].contains("stale"), "{strong:?}");
        assert!(strong.contains_key("replica") || strong["replica_set_members"].split(", ").count() == 3, "{strong:?}");
    }
}

/// A read of MongoDB that is linearizable, and the answers of all operations with it.
#[test]
fn linearizable_reads_of_mongodb_see_every_write() {
    let Some(servers) = servers::replicated(Kind::Mongodb) else { return };
    let url = url_with(&servers.url(&database()), "w=majority&readConcernLevel=linearizable");
    let place = points(&[]);
    let store = MongoDb::open(StoreUrl::parse(&url).expect(&url)).expect(&url);
    let runtime = runtime();
    runtime.block_on(load(&store, &place.source));
    let mut connection = runtime.block_on(one(&store, &place.source));
    let mut other = runtime.block_on(one(&store, &place.source));
    for number in 1..10 {
        let written = runtime.block_on(update(&mut connection, number));
        assert_eq!(runtime.block_on(read(&mut other)), written);
    }
}

/// A replica that does not answer, and a server that is no replica of the primary, are refused by name before
/// anything is loaded.
#[test]
fn wrong_replicas_are_refused() {
    let place = points(&[]);
    let loaded = |url: &str| any_store::open(url).expect(url).load(&place.source, &|_, _| {});
    for kind in [Kind::Postgres, Kind::Redis] {
        let (alone, Some(servers)) =
            (if kind == Kind::Postgres { servers::postgres() } else { servers::redis() }, servers::replicated(kind))
        else {
            return;
        };
        let name = if kind == Kind::Redis { number().to_string() } else { database() };
        let primary = servers.primary();
        let with =
            |server: &Server, replica: &str| url_with(&server.url(&name), &format!("replica={replica}&timeout_ms=300"));
        let own = servers.replicas()[0].address();
        refused(loaded(&with(primary, "127.0.0.1:1")), Blame::Store, &["the replica 127.0.0.1:1: ", "refused"]);
        refused(loaded(&with(primary, &primary.address())), Blame::Usage, &[&primary.address(), "is no replica"]);
        if let Some(alone) = alone {
            refused(loaded(&with(alone, &own)), Blame::Usage, &[&own, "is a replica of another server"]);
        }
    }
    let Some(alone) = servers::mongodb() else { return };
    let url = url_with(&alone.url(&database()), "readPreference=secondary&timeout_ms=300");
    let store = MongoDb::open(StoreUrl::parse(&url).expect(&url)).expect(&url);
    let connected = runtime().block_on(async {
        load(&store, &place.source).await;
        Serves::<Kv>::connect(&store, &place.source, 0..1).await
    });
    refused(connected, Blame::Store, &["found no server"]);
}
