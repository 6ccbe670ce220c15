//! The stores under test.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::stores::cassandra::Cassandra;
use replayer::stores::memcached::Memcached;
use replayer::stores::memory::Memory;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::mysql::MySql;
use replayer::stores::postgres::Postgres;
use replayer::stores::redis::Redis;
use replayer::stores::sqlite::Sqlite;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Serves, StoreError};
use schemas::vocabulary::kv::Kv;
use servers::Kind;

use super::BUSY;
use crate::place::Place;
use crate::subjects::{ImagesSent, Subject, url_with};

/// A number that no other test of this process has.
pub fn number() -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

/// A name of a database that no other test has.
pub fn database() -> String {
    format!("encore_kv_{}_{}", std::process::id(), number())
}

/// A database of Redis that no other test has.
pub fn redis_url(server: &servers::Server) -> String {
    server.url(&number().to_string())
}

/// memcached has no databases, so each test has a server of its own.
pub fn separate_memcached() -> Option<servers::Server> {
    servers::Server::start(servers::Kind::Memcached, servers::Options::default())
}

/// The URL of a memcached server.
pub fn memcached_url(server: &servers::Server) -> String {
    format!("memcached://{}", server.address())
}

/// A store, for the operations of `kv`.
pub fn subject<S: Serves<Kv>>(url: &str, open: impl Fn(StoreUrl) -> Result<S, StoreError>) -> Subject<Kv> {
    Subject::new(url, open, ImagesSent::No)
}

/// Performs a test on each store with the trace set of [`BUSY`] and settings. The flag says whether
/// the trace set has scans, which memcached does not serve.
pub fn each(settings: &[&str], test: impl Fn(&Place, Subject<Kv>, bool)) {
    let place = Place::with(BUSY, settings);
    each_with_scans(&place, |subject| test(&place, subject, true));
    let Some(server) = separate_memcached() else { return };
    let place = Place::with(BUSY, &[settings, &["mix.scan=0"]].concat());
    test(&place, subject(&memcached_url(&server), Memcached::open), false);
}

/// Performs a test on each store that has scans.
pub fn each_with_scans(place: &Place, test: impl Fn(Subject<Kv>)) {
    all(place.path()).into_iter().for_each(&test);
    if let Some(cluster) = servers::redis_cluster() {
        test(subject(&cluster.url(), Redis::open));
    }
}

/// The stores under test that have scans and databases, one line each. Files are in `folder`. Subjects of one server
/// share a database, so each of them must replace what the last one has left.
fn all(folder: &Path) -> Vec<Subject<Kv>> {
    let name = database();
    let file = |name: &str| format!("sqlite:{}?synchronous=off", folder.join(format!("{name}.db")).display());
    let sqlite = |url: &str| subject(url, Sqlite::open);
    let mut subjects = vec![reference(), sqlite(&file("wal")), sqlite(&format!("{}&journal=delete", file("journal")))];
    if let Some(server) = servers::postgres() {
        let url = server.url(&name);
        let strict = url_with(&url, "isolation=serializable&synchronous_commit=off&reset=reload");
        subjects.extend([url, strict].map(|url| subject(&url, Postgres::open)));
    }
    if let Some(server) = servers::mysql() {
        let url = server.url(&name);
        let strict = url_with(&url, "isolation=serializable&reset=reload");
        subjects.extend([url, strict].map(|url| subject(&url, MySql::open)));
    }
    if let Some(server) = servers::mongodb() {
        let parameters = ["reset=copy&w=1&journal=false", "reset=reload&readConcernLevel=majority"];
        let urls = parameters.map(|parameters| url_with(&server.url(&name), parameters));
        subjects.extend(urls.map(|url| subject(&url, MongoDb::open)));
    }
    subjects.extend(servers::redis().map(|server| subject(&redis_url(server), Redis::open)));
    if let Some(url) = servers::cassandra_url(&name) {
        // Without conditions it refuses nothing: `cassandra.rs` tests that.
        let strict = url_with(&url, "read_level=QUORUM&write_level=QUORUM&conditions=lwt");
        subjects.push(subject(&strict, Cassandra::open));
    }
    subjects.extend(replicated(&name).iter().map(|url| of_url(url)));
    subjects
}

/// Stores with replicas, at the strongest setting of each.
pub fn replicated(database: &str) -> Vec<String> {
    let settings = [
        (Kind::Postgres, "synchronous_commit=remote_apply"),
        (Kind::Mongodb, "w=majority&readConcernLevel=majority&readPreference=primary"),
        (Kind::Redis, "wait=1"),
    ];
    let url = |(kind, strongest): (Kind, &str)| {
        let database = if kind == Kind::Redis { number().to_string() } else { database.to_string() };
        servers::replicated(kind).map(|servers| url_with(&servers.url(&database), strongest))
    };
    settings.into_iter().filter_map(url).collect()
}

/// The store of a URL, whatever its kind.
pub fn of_url(url: &str) -> Subject<Kv> {
    match url.split(':').next() {
        Some("sqlite") => subject(url, Sqlite::open),
        Some("postgres") => subject(url, Postgres::open),
        Some("mysql" | "mariadb") => subject(url, MySql::open),
        Some("mongodb") => subject(url, MongoDb::open),
        Some("redis") => subject(url, Redis::open),
        Some("cassandra") => subject(url, Cassandra::open),
        Some("memcached") => subject(url, Memcached::open),
        _ => panic!("{url}: a store that no test knows"),
    }
}

/// The store that the others have to agree with.
pub fn reference() -> Subject<Kv> {
    memory("memory:")
}

/// The reference store, with faults.
pub fn memory(url: &str) -> Subject<Kv> {
    subject(url, Memory::open)
}
