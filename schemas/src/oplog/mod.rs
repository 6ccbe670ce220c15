//! The operation log: one row for every operation that a replayer ran or
//! skipped, an Arrow IPC stream for each fragment.
//!
//! A row identifies its operation only by (session, step); the trace has the rest. A row takes 18
//! bytes plus what the operation observed. The log is written batch by batch while the experiment
//! runs, so a killed replayer loses at most its last few batches. [`LogReader`] reads what is
//! there and says what is missing.

mod frames;
mod read;
mod transaction;
mod values;
mod write;

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, DictionaryArray, StringArray};
use arrow::datatypes::{DataType, Field, Int8Type, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

pub use frames::{LogEnd, has_begun};
pub use read::{LogColumns, LogReader, Observed};
pub use transaction::TryEnd;
pub use write::{LogBuffer, LogCompression, LogWriter, ReservedLog};

/// Maximum number of rows in a batch. Arrow's cost of some 30 µs for each batch is then a
/// nanosecond a row.
pub const BATCH_ROWS_MAX: usize = 32_768;

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(i8)]
pub enum Outcome {
    /// The store answered as it should.
    Ok = 0,
    /// It did not happen.
    Failed = 1,
    /// A write that may have happened at any time after its start, or never.
    Unknown = 2,
    /// Not issued, because an operation that it depends on did not succeed.
    Skipped = 3,
    /// The store rolled its transaction back because of others, or the transaction could not go on: it did
    /// not happen. This is no error of the store.
    Aborted = 4,
}

impl Outcome {
    /// Every outcome, in the order of their codes.
    pub const ALL: [Outcome; 5] = [Outcome::Ok, Outcome::Failed, Outcome::Unknown, Outcome::Skipped, Outcome::Aborted];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
            Outcome::Skipped => "skipped",
            Outcome::Aborted => "aborted",
        }
    }
}

/// The header of a log; stored as JSON in the schema's metadata, key `encore`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The experiment's number in its run.
    pub experiment: u32,
    /// The fragment.
    pub fragment: u32,
    /// The workload that was replayed.
    pub workload_id: String,
    /// The fragment's first session in this experiment.
    pub first_session: u64,
    /// Threads that worked on the fragment; no more sessions than this were ever in flight.
    pub threads: u32,
    /// Maximum number of rows of the fragment that are waiting to be written. A killed replayer
    /// loses at most these and what was in flight.
    pub unwritten_rows_max: u64,
    /// Maximum number of sessions that wait aside for a busy actor. At most so many sessions
    /// without a row precede one that has begun.
    pub aside_sessions_max: u64,
    /// Wall-clock time of time 0, in nanoseconds since 1970, for information.
    pub started_unix_ns: i64,
}

/// The columns of the operation log. Every row has its own value in the first five. The others
/// are mostly the same in many rows and are run-end encoded: a value that stays costs nothing.
///
/// Numbers of 64 bits are stored in two halves, since the upper one hardly ever changes:
/// `session` is `session_high * 2^32 + session_low`.
pub static LOG: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(Schema::new(log_fields())));

fn log_fields() -> Vec<Field> {
    let runs = |name: &str, values: DataType, nullable: bool| {
        let ends = Field::new("run_ends", DataType::Int32, false);
        // Arrow's builder of run-end encoded arrays declares all values nullable.
        let values = Field::new("values", values, true);
        Field::new(name, DataType::RunEndEncoded(Arc::new(ends), Arc::new(values)), nullable)
    };
    vec![
        Field::new("session_low", DataType::UInt32, false),
        Field::new("thread_low", DataType::UInt16, false),
        Field::new("start_ns_low", DataType::UInt32, false),
        Field::new("duration_ns_low", DataType::UInt32, false),
        Field::new("observed", DataType::Binary, false),
        runs("session_high", DataType::Int32, false),
        runs("thread_high", DataType::UInt16, false),
        runs("start_ns_high", DataType::Int32, false),
        runs("duration_ns_high", DataType::Int32, false),
        runs("step", DataType::Int16, false),
        runs("try", DataType::Int16, false),
        runs("due_ns", DataType::Int64, true),
        runs("waited_ns", DataType::Int64, false),
        runs("pool_wait_ns", DataType::Int64, false),
        runs("attempts", DataType::Int16, false),
        runs("outcome", DataType::Utf8, false),
        runs("error", DataType::Utf8, true),
    ]
}

/// The item field of the `observed` list.
pub fn observed_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Int64, false))
}

/// The `outcome` column from codes.
pub fn outcome_column(codes: Vec<i8>) -> ArrayRef {
    static NAMES: LazyLock<ArrayRef> =
        LazyLock::new(|| Arc::new(StringArray::from_iter_values(Outcome::ALL.iter().map(|o| o.name()))));
    // One shared array of names: the stream writer then sends it only once.
    Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), NAMES.clone()))
}

/// One row of the log, without the values observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRow {
    /// The session, counted from 0 in its fragment.
    pub session: u64,
    /// The operation's place in its session.
    pub step: u16,
    /// Which try of its transaction: 0 is the first. All operations of a transaction that is tried again
    /// have a row for each try.
    pub try_number: u16,
    /// The thread that ran it.
    pub thread: u32,
    /// When it should have started (open loop).
    pub due_ns: Option<i64>,
    /// When its thread took it up, from the experiment's start; the store is called
    /// some 50 ns later.
    pub start_ns: i64,
    /// When its answer was decoded.
    pub end_ns: i64,
    /// How long the operation waited for the one it depends on, before `start_ns`.
    pub waited_ns: i64,
    /// How long it waited for a connection, between `start_ns` and `end_ns`.
    pub pool_wait_ns: i64,
    /// How often it was sent in this try; 0 when it was not sent.
    pub attempts: u16,
    /// How it ended.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests;
