//! The analyzer: from a raw operation log and its trace set to sealed tables,
//! figures, unpredictable reads and a ruling.
//!
//! ```text
//!  log ──join──▶ order ──▶ validate ──▶ figures ──▶ ruling ──▶ verdict.json
//!  trace ─┘     by start      │            │
//!                             └── seal ────┴──▶ operations/, unpredictable/ ──▶ SQL
//! ```
//!
//! Fragments share nothing: each goes through the stream on its own thread, in
//! memory that does not grow with its log, and leaves a summary that merges, also from
//! another machine (`analyzer summarize`).
//! The validator is pure; it can be driven without any file:
//!
//! ```
//! use analyzer::validate::{CountWrite, Interval, acceptable_range};
//!
//! // A friend is added while the count is read: 5 or 6, nothing else.
//! let write = CountWrite { at: Interval { start: 10, end: 30 }, delta: 1 };
//! let range = acceptable_range(5, &[write], Interval { start: 20, end: 25 });
//! assert_eq!((range.low, range.high), (5, 6));
//! ```

pub mod chart;
pub mod cli;
mod compare;
mod course;
mod difference;
mod error;
mod experiment;
mod export;
pub mod figures;
#[cfg(test)]
mod fixtures;
mod fragment;
mod freshness;
pub mod html;
pub mod initial;
pub mod join;
mod log;
pub mod order;
mod report;
pub mod ruling;
mod seal;
pub mod sql;
mod summarize;
pub mod timeline;
pub mod validate;
mod witness;

pub use error::AnalyzeError;
pub use experiment::{Keep, analyze, analyze_with, record_void, stored_verdict};
pub use report::{sla_in_words, thousands};
pub use ruling::void_verdict;
pub use summarize::{SummaryDocument, summarize};
