//! Vocabularies: the operations that a store can be asked for.
//!
//! Traces, replays and logs are the same for all of them. They know an operation by its code and
//! its name, and whether it reads or writes; only a vocabulary's own folder, its generators, its
//! adapters and its models know more.

pub mod kv;
mod row;
pub mod social;
pub mod sql;

use std::fmt::Debug;
use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Field;

use crate::table::TableError;
pub use row::TraceRow;

/// A vocabulary. The type itself is only a name for the compiler: code that is generic over it
/// is compiled once for each, so that an operation costs no choice between them.
pub trait Vocabulary: Copy + Debug + Default + Eq + Send + Sync + 'static {
    /// Its name in documents and messages.
    const NAME: &'static str;

    /// Its operations, in the order of their codes.
    const KINDS: &'static [OperationKind];

    /// Whether it has transactions. Where it has none, nothing that is compiled for it knows of them.
    const HAS_TRANSACTIONS: bool = has_control(Self::KINDS);

    /// Whether a verdict has figures of its sessions by their kinds.
    const HAS_SESSION_FIGURES: bool = false;

    /// One of its operations: small enough to copy.
    type Operation: Operation;

    /// Some of its operations, column by column.
    type Columns: Columns<Self::Operation>;

    /// What a session keeps of its reads for its later operations; `()` if none depends on a read.
    type Memory: Default + Debug;

    /// What a store gets: an operation with what it has of variable length. The operation itself if it has nothing
    /// else.
    type Request: Request<Self::Operation>;

    /// The request of an operation of these columns, after [`Vocabulary::resolve`]. The error says which
    /// result of an earlier operation is missing; then the operation is not sent.
    fn request<'a>(
        operation: &'a Self::Operation,
        columns: &Self::Columns,
        memory: &'a mut Self::Memory,
    ) -> Result<&'a Self::Request, &'static str>;

    /// The read of a whole item, for a [closing read](crate::workload::Closing). `parts` are the
    /// item's parts: a bit each. None if the vocabulary has no such read.
    fn read_whole(_item: u64, _parts: u64) -> Option<Self::Operation> {
        None
    }

    /// Clears the memory for a new session.
    #[inline]
    fn forget(_memory: &mut Self::Memory) {}

    /// Clears what another try of a transaction must not find.
    #[inline]
    fn forget_try(memory: &mut Self::Memory) {
        Self::forget(memory);
    }

    /// Keeps what a read that succeeded has observed.
    #[inline]
    fn remember(_memory: &mut Self::Memory, _operation: &Self::Operation, _observed: &[i64]) {}

    /// Fills in what an operation of the trace leaves open because it depends on what its session has
    /// read. This is the only way in which a read decides anything. The error says which read is
    /// missing; then the operation is not sent.
    #[inline]
    fn resolve(_operation: &mut Self::Operation, _memory: &Self::Memory) -> Result<(), &'static str> {
        Ok(())
    }
}

/// What a store gets of an operation.
pub trait Request<O> {
    /// The operation.
    fn operation(&self) -> &O;
}

impl<O: Operation> Request<O> for O {
    #[inline(always)]
    fn operation(&self) -> &O {
        self
    }
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationKind {
    /// The name in specifications, files and tables.
    pub name: &'static str,
    /// Whether it observes data.
    pub reads: bool,
    /// Whether it changes data. An operation may do both.
    pub writes: bool,
}

impl OperationKind {
    /// Whether it begins or ends a transaction, and is no operation on data.
    pub const fn is_control(&self) -> bool {
        !self.reads && !self.writes
    }
}

/// What an operation does to the transaction of its session. Such an operation neither reads nor writes
/// anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// Begins one.
    Begin,
    /// Ends it: all that it wrote becomes visible.
    Commit,
    /// Ends it: nothing that it wrote happened.
    Abort,
}

/// Whether one of these kinds begins or ends a transaction.
const fn has_control(kinds: &[OperationKind]) -> bool {
    let mut code = 0;
    while code < kinds.len() {
        if kinds[code].is_control() {
            return true;
        }
        code += 1;
    }
    false
}

/// An operation of a vocabulary.
pub trait Operation: Copy + Debug + Eq + Send + Sync + 'static {
    /// Its kind, as an index into [`Vocabulary::KINDS`].
    fn code(&self) -> u8;

    /// Whether it observes data.
    fn reads(&self) -> bool;

    /// Whether it changes data.
    fn writes(&self) -> bool;

    /// What it does to its session's transaction; None for operations on data. A vocabulary without
    /// transactions has only those, which costs a replay nothing.
    #[inline]
    fn control(&self) -> Option<Control> {
        None
    }

    /// The same where what it has of variable length begins so many bytes later.
    #[inline]
    fn moved(self, _by: usize) -> Self {
        self
    }

    /// The item that it adds to those of the data set, if it adds one.
    fn adds(&self) -> Option<u64> {
        None
    }
}

/// What the envelope of an operation says of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The fragment.
    pub fragment: u32,
    /// The session in its fragment.
    pub session: u64,
    /// The step in its session.
    pub step: u16,
    /// On whose behalf the session runs.
    pub actor: u64,
}

/// What a vocabulary stores of some operations, column by column; see
/// [`Chunk`](crate::trace::Chunk). The envelope of an operation is stored elsewhere.
pub trait Columns<O>: Clone + Debug + Default + Eq + Send + Sync + 'static {
    /// The columns in files, besides those of every vocabulary.
    fn fields() -> Vec<Field>;

    /// The operations as these columns.
    fn arrays(operations: &[O]) -> Vec<ArrayRef>;

    /// The columns of variable length that only trace sets have, after those of [`Columns::fields`].
    fn variable_fields() -> Vec<Field> {
        Vec::new()
    }

    /// The operations as those columns. `bytes` holds what each operation has of variable length.
    fn variable_arrays(_operations: &[O], _bytes: &[u8]) -> Vec<ArrayRef> {
        Vec::new()
    }

    /// The operation in a row, which has this place in the trace.
    fn get(&self, row: usize, place: Place) -> O;

    /// Adds an operation after the `rows` rows that are there, without what it has of variable length.
    fn push(&mut self, rows: usize, operation: &O);

    /// Adds an operation of other columns.
    fn push_from(&mut self, rows: usize, operation: &O, _other: &Self) {
        self.push(rows, operation);
    }

    /// Adds the operations of a batch after the `rows` rows that are there. `codes` are their
    /// kinds; each is an index into [`Vocabulary::KINDS`].
    fn append(
        &mut self,
        rows: usize,
        codes: impl Iterator<Item = u8>,
        batch: &RecordBatch,
        path: &Path,
    ) -> Result<(), TableError>;

    /// Moves the operations from a row on to new columns, with room for `room` rows.
    fn split_off(&mut self, row: usize, room: usize) -> Self;
}

/// The code of the operation with this name; None if the vocabulary has none.
pub fn code_of<V: Vocabulary>(name: &str) -> Option<u8> {
    V::KINDS.iter().position(|kind| kind.name == name).and_then(|code| u8::try_from(code).ok())
}
