//! The analyzer: computes sealed tables, figures, unpredictable reads and a verdict from a raw
//! operation log and its trace set.
//!
//! ```text
//!  log ──join──▶ order ──▶ validate ──▶ figures ──▶ ruling ──▶ verdict.json
//!  trace ─┘     by start      │            │
//!                             └── seal ────┴──▶ operations/, unpredictable/ ──▶ SQL
//! ```
//!
//! Fragments are independent. Each one is analyzed on its own thread, in memory that does not
//! grow with its log. Its summary merges with those of other fragments, also from another machine
//! (`encore analyze summarize`). The validator is pure and works without files:
//!
//! ```
//! use analyzer::validate::{CountWrite, Interval, acceptable_range};
//!
//! // A friend is added while the count is read: 5 or 6, nothing else.
//! let write = CountWrite { at: Interval { start: 10, end: 30 }, delta: 1 };
//! let range = acceptable_range(5, &[write], Interval { start: 20, end: 25 });
//! assert_eq!((range.low, range.high), (5, 6));
//! ```

mod apart;
pub mod chart;
pub mod checks;
pub mod cli;
mod closing;
pub mod cluster_plan;
mod compare;
pub mod consistency;
mod consistency_text;
mod consistency_words;
mod difference;
mod error;
mod experiment;
mod export;
mod families;
pub mod family;
pub mod figures;
#[cfg(test)]
mod fixtures;
mod fragment;
mod fragments;
mod freshness;
mod history;
pub mod html;
mod isolation;
pub mod join;
mod log;
pub mod order;
mod over_time;
mod ratings;
mod recorded;
mod registers;
mod report;
mod results;
pub mod ruling;
mod seal;
mod session_kinds;
mod sessions_text;
mod shares;
pub mod sql;
mod subject;
mod summarize;
mod tables;
pub mod timeline;
pub mod transactions;
pub mod validate;
mod verify;
mod witness;

pub use apart::{analyze_fragment, merge};
pub use error::{AnalyzeError, DataSetError};
pub use experiment::{Keep, analyze, analyze_with, record_void, stored_verdict};
pub use families::add;
pub use isolation::{sentence as isolation_in_words, transactions as transactions_in_words};
pub use ratings::ratings;
pub use report::{operations, sla_in_words, thousands};
pub use ruling::void_verdict;
pub use sessions_text::{headline, sessions};
pub use summarize::{SummaryDocument, summarize};
