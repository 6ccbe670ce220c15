//! The stores under test, and their connections, whatever their kind.

use std::path::Path;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use replayer::any_store::{AnyStore, Opened, Serving};
use replayer::source::Source;
use replayer::stores::memory::Memory;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::mysql::MySql;
use replayer::stores::pool::{Pool, Route};
use replayer::stores::postgres::Postgres;
use replayer::stores::redis::Redis;
use replayer::stores::sqlite::Sqlite;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, Connection, HeldState, OperationError, RUNNING, Serves, Store, StoreError};
use schemas::isolation::Isolation;
use schemas::vocabulary::kv::{Kv, Operation};

use super::super::subjects::{database, redis_url};
use super::{Client, SETTINGS};
use crate::kv::BUSY;
use crate::place::Place;
use crate::subjects::url_with;

type Done<'a> = LocalBoxFuture<'a, Result<(), OperationError>>;

/// A connection of any store.
pub trait AnyConnection {
    fn execute<'a>(&'a mut self, operation: &'a Operation, answer: &'a mut Answer) -> Done<'a>;
    fn begin<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a>;
    fn commit<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a>;
    fn abort<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a>;
}

impl<C: Connection<Kv>> AnyConnection for C {
    fn execute<'a>(&'a mut self, operation: &'a Operation, answer: &'a mut Answer) -> Done<'a> {
        Connection::<Kv>::execute(self, operation, answer).boxed_local()
    }

    fn begin<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a> {
        Connection::<Kv>::begin(self, answer).boxed_local()
    }

    fn commit<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a> {
        Connection::<Kv>::commit(self, answer).boxed_local()
    }

    fn abort<'a>(&'a mut self, answer: &'a mut Answer) -> Done<'a> {
        Connection::<Kv>::abort(self, answer).boxed_local()
    }
}

/// A store that has transactions.
pub struct Subject {
    pub url: String,
    /// The level that it says its transactions have.
    pub level: Isolation,
    store: Box<dyn Connects>,
}

trait Connects: AnyStore {
    fn connect<'a>(&'a self, source: &'a Source, count: u32) -> LocalBoxFuture<'a, Vec<Client>>;
    fn pooled<'a>(&'a self, source: &'a Source, count: u32, threads: u32) -> LocalBoxFuture<'a, Vec<Client>>;
    fn isolation(&self) -> LocalBoxFuture<'_, String>;
}

fn client(connection: impl AnyConnection + 'static) -> Client {
    Client { connection: Box::new(connection), answer: Answer::default() }
}

/// What follows is not part of a trace, so the next load must not rely on how far a trace was replayed. The
/// marker says the same as while an experiment runs.
async fn mark_running(store: &impl Store) {
    let marked = async {
        match store.held().await? {
            Some(held) => store.set_held(&HeldState { diverged: Some(RUNNING.to_string()), ..held }).await,
            None => Ok(()),
        }
    };
    marked.await.unwrap_or_else(|error| panic!("{error}"));
}

impl<S: Serves<Kv>> Connects for Opened<S> {
    fn connect<'a>(&'a self, source: &'a Source, count: u32) -> LocalBoxFuture<'a, Vec<Client>> {
        async move {
            mark_running(self.store()).await;
            let connected = self.store().connect(source, 0..count).await;
            connected.unwrap_or_else(|error| panic!("{error}")).into_iter().map(client).collect()
        }
        .boxed_local()
    }

    fn pooled<'a>(&'a self, source: &'a Source, count: u32, threads: u32) -> LocalBoxFuture<'a, Vec<Client>> {
        async move {
            mark_running(self.store()).await;
            let connected = self.store().connect(source, 0..count).await.unwrap_or_else(|error| panic!("{error}"));
            let pool = std::rc::Rc::new(Pool::new(connected));
            (0..threads).map(|_| client(Route::through(pool.clone()))).collect()
        }
        .boxed_local()
    }

    fn isolation(&self) -> LocalBoxFuture<'_, String> {
        async { Store::settings(self.store()).await.unwrap_or_else(|error| panic!("{error}"))["isolation"].clone() }
            .boxed_local()
    }
}

impl Subject {
    /// The store that `open` makes of a URL.
    pub fn new<S: Serves<Kv>>(url: &str, open: impl Fn(StoreUrl) -> Result<S, StoreError>) -> Subject {
        let store = open(StoreUrl::parse(url).expect(url)).unwrap_or_else(|error| panic!("{error}"));
        let level = Serves::<Kv>::transactions(&store).unwrap_or_else(|| panic!("{url}: no transactions"));
        Subject { url: url.to_string(), level, store: Box::new(Opened::new(store).serving::<Kv>()) }
    }

    /// The store of a URL, whatever its kind.
    pub fn of(url: &str) -> Subject {
        match url.split(':').next() {
            Some("sqlite") => Subject::new(url, Sqlite::open),
            Some("postgres") => Subject::new(url, Postgres::open),
            Some("mysql") => Subject::new(url, MySql::open),
            Some("mongodb") => Subject::new(url, MongoDb::open),
            Some("redis") => Subject::new(url, Redis::open),
            Some("memory") => Subject::new(url, Memory::open),
            _ => panic!("{url}: a store that no test knows"),
        }
    }

    /// Loads the data set, connects, and does something with the connections.
    pub fn run<X>(&self, place: &Place, count: u32, test: impl AsyncFnOnce(Vec<Client>) -> X) -> X {
        self.load(place);
        runtime().block_on(async { test(self.store.connect(&place.source, count).await).await })
    }

    /// The same through a pool of `count` connections.
    pub fn run_pooled<X>(
        &self,
        place: &Place,
        count: u32,
        threads: u32,
        test: impl AsyncFnOnce(Vec<Client>) -> X,
    ) -> X {
        self.load(place);
        runtime().block_on(async { test(self.store.pooled(&place.source, count, threads).await).await })
    }

    /// What the server says of its isolation.
    pub fn isolation(&self) -> String {
        runtime().block_on(self.store.isolation())
    }

    fn load(&self, place: &Place) {
        let url = &self.url;
        Serving::load(&*self.store, &place.source, &|_, _| {}).unwrap_or_else(|error| panic!("{url}: {error}"));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The trace set of these tests.
pub fn place() -> Place {
    Place::with(BUSY, &SETTINGS)
}

/// The same without scans, whose index other tests of Redis do not have.
pub fn place_without_scans() -> Place {
    Place::with(BUSY, &[&SETTINGS[..], &["mix.scan=0"]].concat())
}

/// Every store at each of its levels of isolation. A file of SQLite is in `folder`.
pub fn all(folder: &Path) -> Vec<Subject> {
    let name = database();
    let levels = |url: &str, levels: &[&str]| -> Vec<String> {
        levels.iter().map(|level| url_with(url, &format!("isolation={level}"))).collect()
    };
    let memory = ["serializable", "snapshot", "read-committed", "read-uncommitted"];
    let mut urls = levels("memory:", &memory);
    let file = |name: &str| format!("sqlite:{}?synchronous=off", folder.join(format!("{name}.db")).display());
    urls.extend([file("wal"), url_with(&file("journal"), "journal=delete")]);
    if let Some(server) = servers::postgres() {
        let url = url_with(&server.url(&name), "timeout_ms=60000");
        urls.extend(levels(&url, &["read-committed", "repeatable-read", "serializable"]));
    }
    if let Some(server) = servers::mysql() {
        let url = url_with(&server.url(&name), "timeout_ms=60000");
        urls.extend(levels(&url, &["repeatable-read", "read-committed", "serializable", "read-uncommitted"]));
    }
    urls.extend(servers::mongodb().map(|server| url_with(&server.url(&name), "isolation=snapshot")));
    urls.extend(servers::redis().map(redis_url));
    urls.iter().map(|url| Subject::of(url)).collect()
}

/// Each relational store at a level at which updates get lost, unless reads lock.
pub fn locking(folder: &Path) -> Vec<Subject> {
    let name = database();
    let file = format!("sqlite:{}?synchronous=off&locking=read", folder.join("locking.db").display());
    let servers = [servers::postgres(), servers::mysql()].into_iter().flatten();
    let urls = servers.map(|server| url_with(&server.url(&name), "isolation=read-committed&locking=read"));
    urls.chain([file]).map(|url| Subject::of(&url)).collect()
}
