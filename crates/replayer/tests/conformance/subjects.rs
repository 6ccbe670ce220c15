//! The stores under test.

use std::path::Path;

use replayer::source::Source;
use replayer::stores::memory::Memory;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::relational::design::{Design, Images};
use replayer::stores::sqlite::Sqlite;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, AnyStore, Connection, OperationError, Store, StoreError};
use schemas::social::Operation;

/// Every store under test, in files of `folder`: one line each.
pub fn all(folder: &Path) -> Vec<Subject> {
    let sqlite = |name: &str, parameters: &str, images| {
        let path = folder.join(format!("{name}.db"));
        Subject::new(&format!("sqlite:{}?synchronous=off{parameters}", path.display()), Sqlite::open, images)
    };
    let designs = Design::all().enumerate().map(|(number, design)| {
        let parameters = design.to_string().replace(", ", "&");
        let images = if design.images == Images::None { ImagesSent::No } else { ImagesSent::Yes };
        sqlite(&format!("design-{number}"), &format!("&{parameters}"), images)
    });
    let mut subjects: Vec<Subject> = designs.collect();
    subjects.push(sqlite("journal", "&journal=delete", ImagesSent::Yes));
    subjects.extend(mongodb(folder));
    subjects
}

/// MongoDB in all designs, where `ENCORE_MONGODB` names servers of it
/// (`mongodb://HOST:PORT`, with commas between them); without transactions where
/// `ENCORE_MONGODB_TRANSACTIONS` is `off`.
fn mongodb(folder: &Path) -> Vec<Subject> {
    let Ok(servers) = std::env::var("ENCORE_MONGODB") else { return vec![] };
    let transactions: &[&str] = match std::env::var("ENCORE_MONGODB_TRANSACTIONS").as_deref() {
        Ok("off") => &["off"],
        _ => &["off", "on"],
    };
    // Tests run side by side, each with its own folder.
    let place = folder.file_name().map(|name| name.to_string_lossy().replace('.', "")).unwrap_or_default();
    let mut subjects = vec![];
    for server in servers.split(',') {
        for comments in ["embedded", "collection"] {
            for transactions in transactions {
                let number = subjects.len();
                let url = format!("{server}/{place}_{number}?comments={comments}&transactions={transactions}");
                subjects.push(Subject::new(&url, MongoDb::open, ImagesSent::Yes));
            }
        }
    }
    subjects
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

/// A store under test.
pub struct Subject {
    /// Its URL, for messages and plans.
    pub url: String,
    /// Whether images come with its answers.
    pub images: ImagesSent,
    store: Box<dyn Opened>,
}

impl Subject {
    /// The store that `open` makes of a URL.
    pub fn new<S: Store>(url: &str, open: impl Fn(StoreUrl) -> Result<S, StoreError>, images: ImagesSent) -> Subject {
        let store = open(StoreUrl::parse(url).expect(url)).unwrap_or_else(|error| panic!("{error}"));
        Subject { url: url.to_string(), images, store: Box::new(store) }
    }

    /// The store, to load, run and digest.
    pub fn store(&self) -> &dyn AnyStore {
        self.store.any()
    }

    /// The store with the data set of `source` in it.
    pub fn loaded(self, source: &Source) -> Subject {
        self.store().load(source, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// A connection.
    pub fn connect(&self, source: &Source) -> Box<dyn Client> {
        self.store.connect(source)
    }
}

/// A connection of whatever kind.
pub trait Client {
    /// Performs an operation and waits for its end.
    fn execute(&mut self, operation: &Operation) -> Result<Answer, OperationError>;
}

/// A store of whatever kind that hands out connections.
trait Opened {
    fn any(&self) -> &dyn AnyStore;
    fn connect(&self, source: &Source) -> Box<dyn Client>;
}

impl<S: Store> Opened for S {
    fn any(&self) -> &dyn AnyStore {
        self
    }

    fn connect(&self, source: &Source) -> Box<dyn Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut connections =
            runtime.block_on(Store::connect(self, source, 0..1)).unwrap_or_else(|error| panic!("{error}"));
        let connection = connections.pop().expect("one connection");
        Box::new(Driven { runtime, connection })
    }
}

struct Driven<C> {
    runtime: tokio::runtime::Runtime,
    connection: C,
}

impl<C: Connection> Client for Driven<C> {
    fn execute(&mut self, operation: &Operation) -> Result<Answer, OperationError> {
        let mut answer = Answer::default();
        answer.clear();
        self.runtime.block_on(self.connection.execute(operation, &mut answer))?;
        Ok(answer)
    }
}
