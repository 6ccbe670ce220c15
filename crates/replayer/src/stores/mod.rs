//! The stores: what each has to offer, and the list of them.
//!
//! A new store is one file in this folder that implements [`Store`] and
//! [`Connection`], and one line in [`open`]; `README.md` beside this file is the
//! guide.

pub mod answer;
pub mod casql;
pub mod memory;
pub mod mongodb;
pub mod mysql;
mod null;
pub mod pool;
pub mod postgres;
pub mod relational;
pub mod sqlite;
pub mod url;

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

use schemas::digest::StateDigest;
use schemas::run::{FragmentPosition, ReplayReport};
use schemas::social::Operation;

use crate::experiment::{Control, Experiment, ExperimentError, Snapshot};
use crate::source::Source;
pub use answer::Answer;
use url::StoreUrl;

/// Opens the store of a URL. Nothing is created or changed yet.
pub fn open(url: &str) -> Result<Box<dyn AnyStore>, StoreError> {
    let url = StoreUrl::parse(url)?;
    match url.scheme() {
        "sqlite" => boxed(sqlite::Sqlite::open(url)),
        "postgres" | "postgresql" => boxed(postgres::Postgres::open(url)),
        "mysql" | "mariadb" => boxed(mysql::MySql::open(url)),
        "mongodb" | "mongodb+srv" => boxed(mongodb::MongoDb::open(url)),
        "casql+sqlite" => boxed(casql::Casql::<sqlite::SqliteFile>::open(url)),
        "casql+postgres" | "casql+postgresql" => boxed(casql::Casql::<postgres::PostgresServer>::open(url)),
        "casql+mysql" | "casql+mariadb" => boxed(casql::Casql::<mysql::MySqlServer>::open(url)),
        "memory" => boxed(memory::Memory::open(url)),
        "null" => boxed(null::Null::open(url)),
        other => Err(StoreError::usage(&url, format!("no store {other:?}; there are {STORES}"))),
    }
}

/// The stores as people write them.
const STORES: &str =
    "sqlite:PATH, postgres://…, mysql://…, mongodb://…, casql+ before one of the first three, memory: and null:";

fn boxed<S: Store>(opened: Result<S, StoreError>) -> Result<Box<dyn AnyStore>, StoreError> {
    opened.map(|store| Box::new(store) as Box<dyn AnyStore>)
}

/// A store that cannot do what is asked of it. The URL in it carries no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {message}")]
pub struct StoreError {
    /// The store, without secrets.
    pub url: String,
    /// What is wrong and what to do.
    pub message: String,
    /// What is to blame.
    pub blame: Blame,
}

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user: a wrong URL, wrong parameters.
    Usage,
    /// The store's state: it is not loaded, holds something else or is not where
    /// the experiment starts. Loading it mends that.
    State,
    /// The store: it does not answer as it should.
    Store,
}

impl StoreError {
    /// The user has to act.
    pub fn usage(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::Usage }
    }

    /// The store is not in the expected state.
    pub fn state(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::State }
    }

    /// The same error, found while the state was checked: unless the store
    /// failed, its state is to blame.
    pub(crate) fn into_state(self) -> StoreError {
        let blame = match self.blame {
            Blame::Store => Blame::Store,
            Blame::Usage | Blame::State => Blame::State,
        };
        StoreError { blame, ..self }
    }

    /// The store failed.
    pub fn store(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::Store }
    }
}

/// What an error says of the statement, command or transaction that it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The store rolled it back because of others (a deadlock, say): it may
    /// be tried again at once.
    RolledBack,
    /// It did not happen.
    Refused,
    /// Nobody knows: a write may have happened. The connection may be broken.
    Lost,
}

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// It did not happen.
    Failed(String),
    /// A write that may have happened, now or later.
    Unknown(String),
}

/// How long something may take that is not an operation of an experiment (to
/// connect, to look at the state, to note it), where an operation may take `most`.
///
/// Whoever studies operations that are given up after a few milliseconds does not
/// mean that a server has to be reached, and a commit be on its disk, so soon.
pub(crate) fn patience(most: Duration) -> Duration {
    most.max(Duration::from_secs(5))
}

/// Reports (rows done, rows in all) of a load.
pub type LoadProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Why a state is unknown while an experiment runs, and after its replayer was killed.
pub const RUNNING: &str = "an experiment is running, or was killed";

/// What a store says of the state that it holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HeldState {
    /// The version of the store's tables; 0 where a store has none.
    #[serde(default)]
    pub layout: u32,
    /// The physical design that it was loaded with, by the URL's parameters; empty
    /// where a store has one only.
    #[serde(default)]
    pub design: BTreeMap<String, String>,
    /// The workload that it was loaded from.
    pub workload_id: String,
    /// How far each fragment has been replayed.
    pub positions: Vec<FragmentPosition>,
    /// Why the state is not what the positions say (an experiment is running or
    /// died, writes failed); none when it is.
    pub diverged: Option<String>,
}

impl HeldState {
    /// What a freshly loaded store says of itself.
    pub fn loaded(layout: u32, design: BTreeMap<String, String>, source: &Source) -> HeldState {
        let workload_id = source.manifest.workload_id.clone();
        HeldState { layout, design, workload_id, positions: vec![], diverged: None }
    }

    /// Refuses a store that was loaded with another layout or design. `wanted` is
    /// the URL's design, in the order in which it is spoken of.
    pub fn check(&self, url: &StoreUrl, layout: u32, wanted: &[(&str, &str)]) -> Result<(), StoreError> {
        let again = "load it again with `replayer load`";
        if self.layout != layout {
            let message =
                format!("has tables of version {}, this replayer works with version {layout}; {again}", self.layout);
            return Err(StoreError::usage(url, message));
        }
        let held = |name: &str| self.design.get(name).map_or("", String::as_str);
        if self.design.len() == wanted.len() && wanted.iter().all(|(name, value)| held(name) == *value) {
            return Ok(());
        }
        let said = |design: &mut dyn Iterator<Item = (&str, &str)>| {
            design.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
        };
        let found = said(&mut wanted.iter().map(|(name, _)| (*name, held(name))));
        let wanted = said(&mut wanted.iter().copied());
        Err(StoreError::usage(url, format!("is loaded with {found}, the URL asks for {wanted}; {again}")))
    }
}

/// A data store, seen from one process.
///
/// Methods that talk to it are async and run on the caller's runtime.
pub trait Store: Send + Sync + 'static {
    /// One client's way to the store.
    type Connection: Connection;

    /// The URL that it was opened with.
    fn url(&self) -> &StoreUrl;

    /// Whether the store lives and dies with this process, so that its first
    /// experiment has to load it.
    fn in_process(&self) -> bool {
        false
    }

    /// Whether the store keeps anything, so that its state can be checked.
    fn keeps_state(&self) -> bool {
        true
    }

    /// Puts the data set of a trace set in place of whatever data set of
    /// Encore's is there, by the fastest way.
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What the store says that it holds; none when nothing of Encore's is there.
    fn held(&self) -> impl Future<Output = Result<Option<HeldState>, StoreError>> + Send;

    /// Writes down what the store holds from now on.
    fn set_held(&self, state: &HeldState) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes what the store keeps beside its rows, like a cache, fit the state that they are
    /// in; comes before anybody connects. Most stores keep nothing.
    fn attune(&self, _held: &HeldState) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether what is kept beside the rows may hold what a write of this process has made
    /// stale.
    fn is_suspect(&self) -> bool {
        false
    }

    /// Checks by counting rows that a store at position 0 holds the data set.
    fn check_loaded(&self, source: &Source) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The settings in effect, as the store itself says: its version and whatever
    /// decides durability and isolation. Every store says `durability` and
    /// `isolation` in the words of [`promise`] too, so that they can be compared.
    fn settings(&self) -> impl Future<Output = Result<BTreeMap<String, String>, StoreError>> + Send;

    /// The digest of all that the store holds.
    fn digest(&self, source: &Source) -> impl Future<Output = Result<StateDigest, StoreError>> + Send;

    /// What the store has counted since it was opened, by name: cache misses, say.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// How many connections all threads may have together, where the URL says
    /// so (`connections=`); else each thread has its own.
    fn connections_max(&self) -> Option<u32> {
        None
    }

    /// A connection for each of these threads, ready for its first operation.
    /// They are made and used on one operating-system thread's runtime.
    fn connect(
        &self,
        source: &Source,
        threads: Range<u32>,
    ) -> impl Future<Output = Result<Vec<Self::Connection>, StoreError>>;
}

/// The words in which stores say what they promise (`durability`, `isolation`),
/// whatever their own settings are called. A remark may follow after `": "`.
pub mod promise {
    /// An acknowledged write survives a crash of the machine.
    pub const EVERY_COMMIT: &str = "every commit";
    /// A crash of the machine loses at most the last second or so.
    pub const WITHIN_A_SECOND: &str = "within a second";
    /// A crash of the machine loses what came after the last checkpoint.
    pub const AT_CHECKPOINTS: &str = "at checkpoints";
    /// Nothing is promised.
    pub const NONE: &str = "none";
    /// Each operation is as if it happened at one instant while it ran.
    pub const LINEARIZABLE: &str = "linearizable";
    /// Transactions are as if one came after the other.
    pub const SERIALIZABLE: &str = "serializable";
    /// A transaction sees one state; two may write what the other has read.
    pub const REPEATABLE_READ: &str = "repeatable read";
    /// Each statement sees what was committed when it began.
    pub const READ_COMMITTED: &str = "read committed";
    /// A statement may see what is never committed.
    pub const READ_UNCOMMITTED: &str = "read uncommitted";
}

/// One client's way to a store. One operation at a time.
pub trait Connection: 'static {
    /// Performs an operation. A read leaves in `answer` what it saw; `answer` is
    /// clear at the call.
    fn execute(
        &mut self,
        operation: &Operation,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<(), OperationError>>;
}

/// A [`Store`] of whatever kind. Methods block until they are done.
pub trait AnyStore: Send + Sync {
    /// [`Store::in_process`].
    fn in_process(&self) -> bool;
    /// [`Store::load`].
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError>;
    /// How far each fragment of the trace set has been replayed on the store, for an
    /// experiment that continues there; refuses a store that is not loaded with it,
    /// or in a state that nobody knows.
    fn positions(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError>;
    /// [`Store::digest`], of a store that holds the trace set's workload.
    fn digest(&self, source: &Source) -> Result<StateDigest, StoreError>;
    /// Refuses a store that does not hold the state that the experiment starts from.
    fn check(&self, experiment: &Experiment) -> Result<(), StoreError>;
    /// Runs an experiment, after [`AnyStore::check`]; `progress` is called several
    /// times a second.
    fn run(
        &self,
        experiment: &Experiment,
        control: &Control,
        progress: &mut dyn FnMut(Snapshot),
    ) -> Result<ReplayReport, ExperimentError>;
    /// Tells the store where it stands after an experiment that this replayer led, and
    /// how many writes of it did not succeed.
    fn settle(&self, experiment: u32, positions: &[FragmentPosition], writes_not_ok: u64) -> Result<(), StoreError>;
}

impl<S: Store> AnyStore for S {
    fn in_process(&self) -> bool {
        Store::in_process(self)
    }

    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        block_on(self.url(), Store::load(self, source, progress))
    }

    fn positions(&self, source: &Source) -> Result<Vec<FragmentPosition>, StoreError> {
        block_on(self.url(), crate::run::positions(self, source))
    }

    fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        block_on(self.url(), async {
            // Only a store that keeps something has a digest; the others say so.
            if self.keeps_state() {
                check_workload(self.url(), self.held().await?, source)?;
            }
            Store::digest(self, source).await
        })
    }

    fn check(&self, experiment: &Experiment) -> Result<(), StoreError> {
        block_on(self.url(), async {
            crate::run::check_state(self, experiment).await?;
            crate::run::attune(self).await
        })
    }

    fn run(
        &self,
        experiment: &Experiment,
        control: &Control,
        progress: &mut dyn FnMut(Snapshot),
    ) -> Result<ReplayReport, ExperimentError> {
        crate::run::run(self, experiment, control, progress)
    }

    fn settle(&self, experiment: u32, positions: &[FragmentPosition], writes_not_ok: u64) -> Result<(), StoreError> {
        crate::run::settle(self, experiment, positions, writes_not_ok)
    }
}

/// Runs a future on a small runtime of its own.
pub(crate) fn block_on<X>(
    url: &StoreUrl,
    future: impl Future<Output = Result<X, StoreError>>,
) -> Result<X, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| StoreError::store(url, format!("no runtime: {e}")))?;
    runtime.block_on(future)
}

/// Refuses a store that is not loaded, or with another workload.
pub(crate) fn check_workload(
    url: &StoreUrl,
    held: Option<HeldState>,
    source: &Source,
) -> Result<HeldState, StoreError> {
    let wanted = &source.manifest.workload_id;
    let load = "load it with `replayer load`";
    match held {
        None => Err(StoreError::state(url, format!("is not loaded; {load}"))),
        Some(held) if &held.workload_id != wanted => Err(StoreError::state(
            url,
            format!(
                "holds workload {}, the trace set {} has {wanted}; {load}",
                held.workload_id,
                source.folder.display()
            ),
        )),
        Some(held) => Ok(held),
    }
}
