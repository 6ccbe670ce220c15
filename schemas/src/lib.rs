//! Every format that crosses the border of one of Encore's tools.
//!
//! The generator writes trace sets, the replayer reads them and writes
//! operation logs, the analyzer joins the two and writes sealed tables and
//! verdicts, the coordinator plans. They share nothing but the types of this
//! crate, and this crate knows none of them:
//!
//! | module | format |
//! |---|---|
//! | [`spec`] | the workload specification (TOML) |
//! | [`social`] | the vocabulary of the `social` family: what each action changes and observes |
//! | [`session`] | kinds of sessions: BG's eight, single actions, composed ones |
//! | [`trace`], [`dataset`], [`manifest`] | a trace set: operations, data set, manifest |
//! | [`payload`], [`digest`] | strings and images as a function of (seed, kind, id, length); digest of a state |
//! | [`oplog`] | the operation log (Arrow IPC stream) |
//! | [`plan`], [`run`], [`verdict`], [`sla`] | the JSON documents of a run folder |
//! | [`comparison`] | the plan and the result of a comparison of stores |
//! | [`sealed`] | the sealed tables (Parquet) |
//! | [`rpc`] | the service that a replayer offers to a coordinator |
//! | [`latency`], [`share`] | response times as a histogram; what one of several gets of a whole |
//! | [`files`], [`terminal`] | how all of them are written, and what the tools print |
//!
//! `README.md` beside this crate documents every table and column for readers
//! who have pandas or a DuckDB shell and no Rust.
//!
//! ```
//! use schemas::social::{Action, Operation};
//!
//! // Accepting an invitation changes six data items at once.
//! let accept = Operation { action: Action::AcceptFriendRequest, socialite: 3, target: 8, comment: None };
//! assert_eq!(accept.changes().len(), 6);
//! assert!(accept.action.is_write());
//! ```

pub mod comparison;
mod damage;
pub mod dataset;
pub mod digest;
pub mod files;
pub mod latency;
pub mod manifest;
pub mod oplog;
pub mod payload;
pub mod plan;
mod plausible;
pub mod rpc;
pub mod run;
pub mod sealed;
pub mod session;
pub mod share;
pub mod sla;
pub mod social;
pub mod spec;
pub mod terminal;
pub mod trace;
pub mod verdict;
mod warmup;

/// The version of the trace format. Same spec, same seed, same version: the
/// same bytes.
pub const TRACE_FORMAT_VERSION: u32 = 4;

/// The version of the operation log and of the JSON documents of a run.
pub const RUN_FORMAT_VERSION: u32 = 3;
