//! Every format that Encore's tools write for each other or for users.
//!
//! The generator writes trace sets, the replayer reads them and writes
//! operation logs, the analyzer joins the two and writes sealed tables and
//! verdicts, the coordinator writes plans. The tools share only the types of this crate, and this
//! crate depends on none of them:
//!
//! | module | format |
//! |---|---|
//! | [`spec`], [`workload`] | the workload specification (TOML); the part of each family |
//! | [`anomalies`] | classes of anomalies of transactions, what a check of a history found |
//! | [`arrivals`] | when sessions arrive: the rate over time of a specification |
//! | [`vocabulary`] | the operations that a store can be asked for |
//! | [`vocabulary::sql`] | statements of relational databases: parameters, results, texts in each dialect |
//! | [`social`] | the vocabulary of BG: what each action changes and observes; kinds of sessions |
//! | [`trace`], [`manifest`] | a trace set: operations, manifest; the data set is its family's ([`workload`]) |
//! | [`table`] | how Parquet files are read |
//! | [`payload`], [`digest`] | bytes as a function of (seed, kind, id, length); digest of a state |
//! | [`oplog`] | the operation log (Arrow IPC stream) |
//! | [`plan`], [`run`], [`verdict`], [`sla`] | the JSON documents of a run folder |
//! | [`pace`], [`pace_request`] | how fast a plan starts sessions: due times, target, threads over time; flags for it |
//! | [`comparison`] | the plan and the result of a comparison of stores |
//! | [`sealed`] | the sealed tables (Parquet) |
//! | [`conditions`] | what a check of the conditions of the data has found (Parquet) |
//! | [`rpc`] | the service that a replayer offers to a coordinator |
//! | [`isolation`] | the levels of isolation of transactions |
//! | [`latency`], [`share`] | a histogram of response times; how sessions are divided among fragments |
//! | [`files`], [`terminal`], [`words`] | how the tools write files, print, and write numbers |
//!
//! `docs/src/reference/formats.md` and `views.md` document every table and column.
//!
//! ```
//! use schemas::social::{Action, Operation};
//!
//! // Accepting an invitation changes six data items at once.
//! let accept = Operation { action: Action::AcceptFriendRequest, socialite: 3, target: 8, comment: None };
//! assert_eq!(accept.changes().len(), 6);
//! assert!(accept.action.is_write());
//! ```

pub mod anomalies;
pub mod arrivals;
mod called;
pub mod comparison;
pub mod conditions;
mod damage;
pub mod digest;
pub mod files;
pub mod isolation;
pub mod latency;
pub mod manifest;
pub mod mean_rate;
pub mod oplog;
pub mod pace;
pub mod pace_request;
mod pacing;
pub mod payload;
pub mod plan;
mod plausible;
mod position;
pub mod program;
pub mod rpc;
pub mod run;
pub mod sealed;
pub mod share;
pub mod sla;
pub mod spec;
pub mod table;
pub mod terminal;
pub mod trace;
pub mod verdict;
pub mod vocabulary;
mod warmup;
pub mod words;
pub mod workload;
mod wrong;

pub use vocabulary::social;

/// The version of the trace format. The same spec, seed and version give the same bytes.
pub const TRACE_FORMAT_VERSION: u32 = 6;

/// The version of the operation log and of the JSON documents of a run.
pub const RUN_FORMAT_VERSION: u32 = 5;
