//! The stores under test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::any_store::{AnyStore, Opened};
use replayer::source::Source;
use replayer::stores::casql::Casql;
use replayer::stores::memory::Memory;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::mysql::{MySql, MySqlServer};
use replayer::stores::postgres::{Postgres, PostgresServer};
use replayer::stores::relational::social::design::{Design, Images};
use replayer::stores::sqlite::{Sqlite, SqliteFile};
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, Connection, HeldState, OperationError, RUNNING, Serves, StoreError};
use schemas::social::Social;
use schemas::vocabulary::Vocabulary;

/// The stores under test, one line each. Files are in `folder`. Subjects on one server share a
/// database, so each of them must replace what the last one has left.
pub fn all(folder: &Path) -> Vec<Subject> {
    let name = format!("encore_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let file = |name: &str| format!("sqlite:{}?synchronous=off", folder.join(format!("{name}.db")).display());
    let mut subjects = Vec::new();
    for (number, design) in Design::all().enumerate() {
        subjects.push(designed(&file(&format!("design-{number}")), &design, Sqlite::open));
    }
    subjects.push(Subject::new(&format!("{}&journal=delete", file("journal")), Sqlite::open, ImagesSent::Yes));
    let postgres = servers::postgres().map(|server| server.url(&name));
    let mysql = servers::mysql().map(|server| server.url(&name));
    let memcached = servers::memcached().map(|server| server.address());
    for design in Design::all() {
        subjects.extend(postgres.iter().map(|url| designed(url, &design, Postgres::open)));
        subjects.extend(mysql.iter().map(|url| designed(url, &design, MySql::open)));
    }
    if let Some(server) = servers::mongodb() {
        for parameters in [
            "comments=embedded",
            "comments=collection&reset=reload",
            "comments=embedded&transactions=on&w=1&journal=false",
            "comments=collection&transactions=on&readConcernLevel=majority",
        ] {
            let url = url_with(&server.url(&name), parameters);
            subjects.push(Subject::new(&url, MongoDb::open, ImagesSent::Yes));
        }
    }
    let with = |url: &String, parameters: &str| url_with(url, parameters);
    if let Some(url) = &postgres {
        let strict = with(url, "isolation=serializable&synchronous_commit=off&reset=reload");
        subjects.push(Subject::new(&strict, Postgres::open, ImagesSent::Yes));
    }
    if let Some(url) = &mysql {
        let strict = with(url, "isolation=serializable&reset=reload");
        subjects.push(Subject::new(&strict, MySql::open, ImagesSent::Yes));
    }
    let Some(cache) = memcached else { return subjects };
    for parameters in ["consistency=invalidate", "consistency=lease&compress=on", "consistency=lease&counts=stored"] {
        let cached = |url: &String| with(&format!("casql+{url}"), &format!("memcached={cache}&{parameters}"));
        subjects.push(Subject::new(&cached(&file("cached")), Casql::<SqliteFile>::open, ImagesSent::Yes));
        subjects.extend(postgres.iter().map(|url| {
            let url = with(&cached(url), "friendship=one-row");
            Subject::new(&url, Casql::<PostgresServer>::open, ImagesSent::Yes)
        }));
        subjects
            .extend(mysql.iter().map(|url| Subject::new(&cached(url), Casql::<MySqlServer>::open, ImagesSent::Yes)));
    }
    subjects
}

/// How often [`all`] was called: each call has databases of its own.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// A URL with more parameters.
pub fn url_with(url: &str, parameters: &str) -> String {
    format!("{url}{}{parameters}", if url.contains('?') { '&' } else { '?' })
}

/// A relational store in one of its designs.
fn designed<S: Serves<Social>>(
    url: &str,
    design: &Design,
    open: impl Fn(StoreUrl) -> Result<S, StoreError>,
) -> Subject {
    let images = if design.images == Images::None { ImagesSent::No } else { ImagesSent::Yes };
    Subject::new(&url_with(url, &design.to_string().replace(", ", "&")), open, images)
}

/// The store that the others have to agree with.
pub fn reference() -> Subject {
    Subject::new("memory:", Memory::open, ImagesSent::No)
}

/// Whether images come with the answers of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagesSent {
    Yes,
    No,
}

/// A store under test, for the operations of a vocabulary.
pub struct Subject<V = Social> {
    /// Its URL, for messages and plans.
    pub url: String,
    /// Whether images come with its answers.
    pub images: ImagesSent,
    store: Box<dyn Connects<V>>,
}

impl<V: Vocabulary> Subject<V> {
    /// The store that `open` makes of a URL.
    pub fn new<S: Serves<V>>(
        url: &str,
        open: impl Fn(StoreUrl) -> Result<S, StoreError>,
        images: ImagesSent,
    ) -> Subject<V> {
        let store = open(StoreUrl::parse(url).expect(url)).unwrap_or_else(|error| panic!("{error}"));
        Subject { url: url.to_string(), images, store: Box::new(Opened::new(store).serving::<V>()) }
    }

    /// The store, to load, run and digest.
    pub fn store(&self) -> &dyn AnyStore {
        self.store.any()
    }

    /// The store with the data set of `source` in it.
    pub fn loaded(self, source: &Source) -> Subject<V> {
        self.load(source);
        self
    }

    /// Puts the data set of `source` into the store.
    pub fn load(&self, source: &Source) {
        self.store().load(source, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    }

    /// What the store has counted.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.store.counters()
    }

    /// Takes back the mark that [`Subject::connect`] leaves, so that a check looks at the data.
    pub fn pretend_unused(&self) {
        self.store.mark(None);
    }

    /// A connection.
    pub fn connect(&self, source: &Source) -> Box<dyn Client<V>> {
        self.store.connect(source)
    }
}

/// A connection of any kind.
pub trait Client<V: Vocabulary = Social> {
    /// Performs an operation and waits for its end.
    fn execute(&mut self, operation: &V::Operation) -> Result<Answer, OperationError>;
}

/// A store of any kind that hands out connections.
trait Connects<V> {
    fn any(&self) -> &dyn AnyStore;
    fn counters(&self) -> BTreeMap<String, u64>;
    fn mark(&self, diverged: Option<&str>);
    fn connect(&self, source: &Source) -> Box<dyn Client<V>>;
}

impl<V: Vocabulary, S: Serves<V>> Connects<V> for Opened<S> {
    fn any(&self) -> &dyn AnyStore {
        self
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        self.store().counters()
    }

    fn mark(&self, diverged: Option<&str>) {
        let store = self.store();
        let marked = runtime().block_on(async {
            match store.held().await? {
                Some(held) => store.set_held(&HeldState { diverged: diverged.map(str::to_string), ..held }).await,
                None => Ok(()),
            }
        });
        marked.unwrap_or_else(|error| panic!("{error}"));
    }

    fn connect(&self, source: &Source) -> Box<dyn Client<V>> {
        // What follows is not part of the trace, so a load must not rely on the positions. The marker
        // says the same as while an experiment runs.
        Connects::<V>::mark(self, Some(RUNNING));
        let runtime = runtime();
        let connected = runtime.block_on(self.store().connect(source, 0..1));
        let mut connections = connected.unwrap_or_else(|error| panic!("{error}"));
        let connection = connections.pop().expect("one connection");
        Box::new(Driven { runtime, connection })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

struct Driven<C> {
    runtime: tokio::runtime::Runtime,
    connection: C,
}

impl<V: Vocabulary, C: Connection<V>> Client<V> for Driven<C> {
    fn execute(&mut self, operation: &V::Operation) -> Result<Answer, OperationError> {
        let mut answer = Answer::default();
        answer.clear();
        answer.keep_rows();
        let (columns, mut memory) = (V::Columns::default(), V::Memory::default());
        let request = V::request(operation, &columns, &mut memory).map_err(|why| OperationError::Failed(why.into()))?;
        self.runtime.block_on(self.connection.execute(request, &mut answer))?;
        Ok(answer)
    }
}
