//! The stores, and what each has to implement.
//!
//! A new store is one file in this folder that implements [`Store`], [`Serves`] for each
//! vocabulary and [`Connection`], and one line in the list of [`crate::any_store`];
//! `docs/src/how-to/own-store.md` is the guide.

pub mod adoption;
pub mod answer;
pub mod casql;
pub mod cassandra;
mod counted;
mod custom;
mod error;
mod fields;
pub mod kv;
mod link;
mod marker;
pub mod memcached;
pub mod memory;
pub mod mongodb;
pub mod mysql;
pub mod null;
mod physical;
pub mod pool;
pub mod postgres;
pub mod redis;
pub mod relational;
mod social;
pub mod sqlite;
pub mod url;

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::path::Path;
use std::pin::{Pin, pin};
use std::time::Duration;

use schemas::conditions::Condition;
use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::spec::Spec;
use schemas::vocabulary::Vocabulary;

use crate::source::Source;
pub use answer::Answer;
pub use error::{Blame, Fate, OperationError, StoreError};
pub(crate) use marker::check_workload;
pub use marker::{HeldState, LOAD_AGAIN, RUNNING, this_process};
use url::StoreUrl;

/// How long anything but an operation of an experiment may take (to connect, to read or write the
/// marker) if an operation may take `most`.
///
/// A user may study operations that time out after a few milliseconds. To connect to a server, or
/// to have a commit on its disk, takes longer.
pub(crate) fn patience(most: Duration) -> Duration {
    most.max(Duration::from_secs(5))
}

/// Reports (rows done, rows in all) of a load.
pub type LoadProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A data store, seen from one process, whatever is asked of it.
///
/// Methods that talk to it are async and run on the caller's runtime.
pub trait Store: Send + Sync + 'static {
    /// The URL that it was opened with.
    fn url(&self) -> &StoreUrl;

    /// Whether the store exists in this process only, so that its first experiment has to load it.
    fn in_process(&self) -> bool {
        false
    }

    /// The file on this machine that holds the store, if there is one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether the store keeps anything, so that its state can be checked.
    fn keeps_state(&self) -> bool {
        true
    }

    /// What the store's marker says; none if nothing of Encore's is there.
    fn held(&self) -> impl Future<Output = Result<Option<HeldState>, StoreError>> + Send;

    /// Writes into the marker what the store holds from now on.
    fn set_held(&self, state: &HeldState) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes what the store keeps beside its rows, like a cache, match the state of the rows.
    /// Called before any thread connects. Most stores keep nothing.
    fn prepare_cache(&self, _held: &HeldState) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether what is kept beside the rows may contain data that a write of this process has made stale.
    fn is_suspect(&self) -> bool {
        false
    }

    /// The settings in effect, as the store itself reports them: its version, and all that
    /// decides durability and isolation. Every store also reports `durability` and `isolation` in
    /// the words of [`promise`], so that stores can be compared.
    fn settings(&self) -> impl Future<Output = Result<BTreeMap<String, String>, StoreError>> + Send;

    /// What the store has counted since it was opened, by name: for example cache misses.
    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// How many connections all threads may have together, if the URL says so (`connections=`).
    /// Else each thread has its own.
    fn connections_max(&self) -> Option<u32> {
        None
    }
}

/// When the conditions of the data are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// After a load, before any session.
    Loaded,
    /// After sessions.
    Replayed,
}

/// A store that can be asked for the operations of a vocabulary.
pub trait Serves<V: Vocabulary>: Store {
    /// One client's connection to the store.
    type Connection: Connection<V>;

    /// Refuses a workload that asks for what the store does not have. Only the specification decides, so
    /// this is known before there is a trace set. `file` holds the specification, for the error.
    fn accepts(&self, _spec: &Spec, _file: &Path) -> Result<(), StoreError> {
        Ok(())
    }

    /// The isolation level in effect of transactions. None if the store has no transactions: then begin,
    /// commit and abort are logged and do nothing, and the run says so.
    fn transactions(&self) -> Option<Isolation> {
        None
    }

    /// Refuses transactions that the store has by its kind, but this server has not. Called before an
    /// experiment with transactions.
    fn check_transactions(&self) -> impl Future<Output = Result<(), StoreError>> {
        std::future::ready(Ok(()))
    }

    /// Loads the data set of a trace set by the fastest way. This overwrites any data set that
    /// Encore has loaded there.
    fn load(&self, source: &Source, progress: LoadProgress<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes the records that another tool has loaded as the data set, after a check of them, and
    /// writes the marker. No record is changed.
    fn adopt(&self, source: &Source) -> impl Future<Output = Result<(), StoreError>> {
        let message = format!(
            "the data set of {} can only be loaded by Encore: no other tool is known that loads data of {}; remove \
             --keep-data",
            source.folder.display(),
            V::NAME
        );
        std::future::ready(Err(StoreError::usage(self.url(), message)))
    }

    /// Refuses a store that was loaded with another physical design than the URL asks for.
    fn check_design(&self, _held: &HeldState) -> Result<(), StoreError> {
        Ok(())
    }

    /// The physical design that the URL asks for, by parameter. It is part of the settings in effect.
    fn design_settings(&self, _source: &Source) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Checks by counting rows that a store at position 0 holds the data set. The error does not say
    /// what to do: that depends on who has loaded the store.
    fn check_loaded(&self, source: &Source) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Has the loaded store prepare each statement of the trace set, and refuses the first one that it cannot. Nothing to
    /// do where the trace set has no statements of its own.
    fn check_statements(&self, _source: &Source) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Checks the conditions that the data of the trace set keep at a moment, one after the other. Calls `go_on` with
    /// the number of those that are done and of all; None if it answers false. A query that fails is in the result
    /// of its condition, and the others are checked all the same.
    fn check_conditions(
        &self,
        _source: &Source,
        _moment: Moment,
        _go_on: &mut dyn FnMut(u64, u64) -> bool,
    ) -> impl Future<Output = Result<Option<Vec<Condition>>, StoreError>> {
        std::future::ready(Ok(Some(Vec::new())))
    }

    /// The digest of all that the store holds.
    fn digest(&self, source: &Source) -> impl Future<Output = Result<StateDigest, StoreError>> + Send;

    /// A connection for each of these threads, ready for its first operation. Replicas that answer reads have
    /// all earlier writes by then.
    /// They are made and used on one operating-system thread's runtime.
    fn connect(
        &self,
        source: &Source,
        threads: Range<u32>,
    ) -> impl Future<Output = Result<Vec<Self::Connection>, StoreError>>;

    /// The same, for reads that must see every acknowledged write, whatever the URL says of replicas and of
    /// consistency: for the closing read.
    fn connect_to_latest(
        &self,
        source: &Source,
        threads: Range<u32>,
    ) -> impl Future<Output = Result<Vec<Self::Connection>, StoreError>> {
        self.connect(source, threads)
    }
}

/// The words in which all stores say what they promise (`durability`, `isolation`), whatever
/// their own settings are called. A remark may follow after `": "`.
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
    pub const SNAPSHOT: &str = "snapshot";
    /// A record that a transaction has read stays as it is for it.
    pub const REPEATABLE_READ: &str = "repeatable read";
    /// Each statement sees what was committed when it began.
    pub const READ_COMMITTED: &str = "read committed";
    /// A read may return what was true some time ago: it comes from a replica that may lag behind.
    pub const STALE: &str = "stale reads";
    /// A statement may see what is never committed.
    pub const READ_UNCOMMITTED: &str = "read uncommitted";
}

/// One client's connection to a store, for one operation at a time.
pub trait Connection<V: Vocabulary>: 'static {
    /// Performs an operation. A read leaves in `answer` what it saw; `answer` is
    /// clear at the call.
    fn execute(
        &mut self,
        request: &V::Request,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<(), OperationError>>;

    /// Begins a transaction: the operations until [`Connection::commit`] or [`Connection::abort`].
    ///
    /// In a transaction a connection retries nothing by itself, and uses one connection to the server. After
    /// [`OperationError::Aborted`] the transaction is over, and the next call may begin another one.
    /// Called only if the store has transactions ([`Serves::transactions`]).
    fn begin(&mut self, _answer: &mut Answer) -> impl Future<Output = Result<(), OperationError>> {
        std::future::ready(Ok(()))
    }

    /// Ends the transaction. [`OperationError::Unknown`] if it may have happened or not.
    fn commit(&mut self, _answer: &mut Answer) -> impl Future<Output = Result<(), OperationError>> {
        std::future::ready(Ok(()))
    }

    /// Ends the transaction, as if none of it had happened. Also called after an operation of the
    /// transaction that failed or has an unknown outcome.
    fn abort(&mut self, _answer: &mut Answer) -> impl Future<Output = Result<(), OperationError>> {
        std::future::ready(Ok(()))
    }
}

/// Runs a future on a small runtime of its own.
pub(crate) fn block_on<X>(
    url: &StoreUrl,
    future: impl Future<Output = Result<X, StoreError>>,
) -> Result<X, StoreError> {
    let mut result = None;
    // The runtime would be compiled again for each type of future; this way it sees only one.
    run_to_end(url, pin!(async { result = Some(future.await) }))?;
    result.expect("a future that ended")
}

fn run_to_end(url: &StoreUrl, future: Pin<&mut dyn Future<Output = ()>>) -> Result<(), StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| StoreError::store(url, format!("cannot start a runtime for the store: {e}")))?;
    runtime.block_on(future);
    Ok(())
}
